"""The rules of the tree as code: a stem joins page, lab and test, and nothing stands alone."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from kernels.bench.cases import LADDER, MODEL, STEMS, TRIAL
from sitebuild.exercises import FOLDER, exercises, read
from sitebuild.labs import ROOT, imports_of
from sitebuild.references import glossary, sources
from sitebuild.topics import front_matter, lessons, optional

LABS = sorted(path.stem for path in (ROOT / "snippets").glob("*.py") if path.stem != "__init__")
DATA = {"hardware", "captured"}  # read by labs and pages; shown, but not run on a page
LESSONS = sorted(path.stem for path in (ROOT / "docs" / "lessons").glob("*.md"))
FIGURES = sorted(
    path.stem for path in (ROOT / "sitebuild" / "figures").glob("*.py") if path.stem != "__init__"
)
PAGES = sorted((ROOT / "docs").rglob("*.md"))
KERNELS = sorted(
    path.stem
    for path in (ROOT / "docs" / "kernels").glob("*.md")
    if path.stem not in ("index", MODEL)
)
STEPS = "attention_ladder"  # a folder of kernels, whose page holds them against one another
SINGLE = sorted(set(KERNELS) - {STEPS})
BY_KERNEL = {
    "kernel_shares",
    "kernel_speed",
}  # drawn anew by every kernel page, and run as a module by none
MUTANTS = sorted((ROOT / "tests" / "mutants").glob("*/*.toml"))
INCLUDE = re.compile(r'^ *--8<-- "(?P<file>[^":]+)(?::(?P<section>[\w-]+))?"$', re.M)
RUN = re.compile(r'run\("([\w.]+)"\)')
FENCE = re.compile(r"^( *)```.*?^\1```$", re.M | re.S)
# what a reader need not open: an answer, a hint, a solution, the links to more
FOLD = re.compile(r"^\?\?\? .*\n(?:(?: {4}.*)?\n)*|<div class=\"optional\"[\s\S]*?</div>", re.M)
EXERCISE = re.compile(r'^print\(exercise\("(\w+)"\)\)$', re.M)
EXCERPT = re.compile(r'^ +print\(excerpt\("([\w.]+)", .+\)\)$', re.M)
COUNTS = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
NUMBERED_LESSON = re.compile(rf"\blessons? \d+\b|\b(?:{COUNTS}|\d+) lessons\b", re.I)
HEADINGS = (
    "Key points",
    "Where it helps and where it breaks",
    "Common mistakes",
    "Exercises",
    "Sources",
)
TESTED = ("snippets", "practice", "kernels", "mutants")
LAB_LINES = 90
EXERCISE_LINES = 150
LESSON_WORDS = range(450, 951)
WORDS_A_MINUTE = 180


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


def lesson(stem: str) -> str:
    return text_of(ROOT / "docs" / "lessons" / f"{stem}.md")


def prose(stem: str) -> str:
    """A lesson without front matter, code, tables and markup."""
    body = lesson(stem).split("\n---\n", 1)[1]
    body = FENCE.sub("", FOLD.sub("", body))
    body = re.sub(r"^\|.*$", "", body, flags=re.M)
    body = re.sub(r"^\$\$$.*?^\$\$$", "", body, flags=re.M | re.S)
    return re.sub(r"<[^>]+>|\]\([^)]*\)|\]\[[^\]]*\]|[#*`]", " ", body)


def words(stem: str) -> int:
    return len(prose(stem).split())


def pages_with(pattern: re.Pattern[str], wanted: str) -> list[str]:
    return [page.name for page in PAGES if wanted in pattern.findall(text_of(page))]


def pages_that_show(lab: str) -> list[str]:
    file = f"snippets/{lab}.py"
    return [p.name for p in PAGES if file in [m["file"] for m in INCLUDE.finditer(text_of(p))]]


def sections_of(file: Path) -> set[str]:
    return set(re.findall(r"^# --8<-- \[start:([\w-]+)\]$", text_of(file), re.M))


def linked_terms(stem: str) -> list[str]:
    """The glossary anchors that a page links to, in order."""
    terms = glossary()
    used = re.findall(r"\[([^\]\n]+)\]\[([^\]\n]*)\]", FENCE.sub("", lesson(stem)))
    names = [(target or shown).replace("\n", " ").lower() for shown, target in used]
    return [terms[name][0] for name in names if name in terms]


def names_in(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""]


def duplicates(items: list[str]) -> set[str]:
    return {item for item in items if items.count(item) > 1}


def test_the_navigation_names_every_lesson_once() -> None:
    assert sorted(lessons()) == LESSONS


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=lambda path: path.stem)
def test_no_prose_counts_the_lessons_or_names_one_by_its_number(page: Path) -> None:
    found = NUMBERED_LESSON.findall(FENCE.sub("", text_of(page)))
    assert found == [], "goes wrong when a lesson comes or moves: name the lesson"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("As [Lesson 3](x.md) has it, in lessons 4 and 5.", ["Lesson 3", "lessons 4"]),
        ("A course in eight lessons, all 12 lessons.", ["eight lessons", "12 lessons"]),
        ("The first lesson; a lesson of 8 minutes; the lessons on tiles.", []),
    ],
)
def test_a_number_of_a_lesson_is_found(text: str, found: list[str]) -> None:
    assert NUMBERED_LESSON.findall(text) == found


@pytest.mark.parametrize("stem", LESSONS)
def test_a_lesson_has_its_lab_and_the_lab_its_test(stem: str) -> None:
    assert (ROOT / "snippets" / f"{stem}.py").is_file()
    assert (ROOT / "tests" / "snippets" / f"test_{stem}.py").is_file()
    assert f"snippets.{stem}" in RUN.findall(lesson(stem))


@pytest.mark.parametrize("lab", LABS)
def test_a_lab_is_tested_and_has_mutants(lab: str) -> None:
    assert (ROOT / "tests" / "snippets" / f"test_{lab}.py").is_file()
    mutants = tomllib.loads(text_of(ROOT / "tests" / "mutants" / "snippets" / f"{lab}.toml"))[
        "mutant"
    ]
    assert 3 <= len(mutants) <= 8
    assert {mutant["file"] for mutant in mutants} == {f"snippets/{lab}.py"}


@pytest.mark.parametrize("lab", LABS)
def test_a_lab_is_shown_by_exactly_one_page(lab: str) -> None:
    assert len(pages_that_show(lab)) == 1


@pytest.mark.parametrize("lab", sorted(set(LABS) - DATA))
def test_a_lab_runs_on_the_page_that_shows_it(lab: str) -> None:
    assert pages_with(RUN, f"snippets.{lab}") == pages_that_show(lab)


@pytest.mark.parametrize("figure", sorted(set(FIGURES) - BY_KERNEL))
def test_a_figure_stands_on_exactly_one_page(figure: str) -> None:
    assert len(pages_with(RUN, f"sitebuild.figures.{figure}")) == 1


def test_the_benchmark_measures_exactly_the_kernels_that_have_a_page() -> None:
    assert sorted(STEMS) == KERNELS


def test_the_navigation_names_every_kernel_page_once_and_the_index_first() -> None:
    named = re.findall(r"^ +- kernels/(\w+)\.md$", text_of(ROOT / "mkdocs.yml"), re.M)
    assert named[0] == "index"
    assert sorted(named[1:]) == sorted([*KERNELS, MODEL])


def test_the_table_of_the_kernels_is_in_the_order_of_the_navigation() -> None:
    named = re.findall(r"^ +- kernels/(\w+)\.md$", text_of(ROOT / "mkdocs.yml"), re.M)
    index = text_of(ROOT / "docs" / "kernels" / "index.md")
    rows = re.findall(r"^\| \[.+\]\((\w+)\.md\) \| .+ \|$", index, re.M)
    assert rows == [stem for stem in named if stem not in ("index", MODEL)]


@pytest.mark.parametrize("stem", KERNELS)
def test_a_kernel_page_has_its_kernel_and_the_kernel_its_test_and_mutants(stem: str) -> None:
    sources = [ROOT / "kernels" / f"{stem}.py", *(ROOT / "kernels" / stem).glob("step1_*.py")]
    (first,) = (path.relative_to(ROOT).as_posix() for path in sources if path.is_file())
    assert (ROOT / "tests" / "kernels" / f"test_{stem}.py").is_file()
    mutants = tomllib.loads(text_of(ROOT / "tests" / "mutants" / "kernels" / f"{stem}.toml"))
    assert first in {mutant["file"] for mutant in mutants["mutant"]}


@pytest.mark.parametrize("stem", SINGLE)
def test_a_kernel_page_shows_its_kernel_its_results_and_how_to_get_them(stem: str) -> None:
    page = text_of(ROOT / "docs" / "kernels" / f"{stem}.md")
    shown = {(m["file"], m["section"]) for m in INCLUDE.finditer(page)}
    printed = re.findall(rf'(\w+)\("{stem}"\)', page)
    assert shown >= {(f"kernels/{stem}.py", "kernel"), (f"kernels/{stem}.py", "launch")}
    parts = {"answer", "shares", "exactness", "traffic", "speed", "chart", "roofline", "provenance"}
    assert set(printed) >= parts
    assert f"$ make bench STEM={stem}\n" in page


def test_the_ladder_s_page_shows_each_step_or_what_it_changes_and_all_that_was_measured() -> None:
    page = text_of(ROOT / "docs" / "kernels" / f"{STEPS}.md")
    shown = {m["file"] for m in INCLUDE.finditer(page)}
    assert f"kernels/{STEPS}/step1_two_loops.py" in shown
    changed = re.findall(r'^ *print\(difference\("([\w-]+)"\)\)$', page, re.M)
    assert changed == [*LADDER[1:], TRIAL]
    parts = re.findall(r"^print\(.*?(\w+)\(\)\W*$", page, re.M)
    assert parts == ["short", "trial", "speed", "evidence", "exactness"]
    assert f'print(provenance("{STEPS}"))' in page
    assert f"$ make bench STEM={STEPS}\n" in page


def test_the_model_path_has_its_page_its_test_and_mutants() -> None:
    page = text_of(ROOT / "docs" / "kernels" / f"{MODEL}.md")
    shown = {m["file"] for m in INCLUDE.finditer(page)}
    assert shown == {p.relative_to(ROOT).as_posix() for p in (ROOT / "kernels").glob(f"{MODEL}*")}
    parts = ("answer", "speed", "amdahl", "launches", "memory")
    assert [part for part in parts if f"{part}()" not in page] == []
    assert set(re.findall(rf'print\((\w+)\("{MODEL}"\)\)', page)) == {
        "exactness", "paths", "provenance"
    }  # fmt: skip
    assert f"$ make bench STEM={MODEL}\n" in page
    assert (ROOT / "tests" / "kernels" / f"test_{MODEL}.py").is_file()
    assert (ROOT / "tests" / "mutants" / "kernels" / f"{MODEL}.toml").is_file()


@pytest.mark.parametrize("figure", sorted(BY_KERNEL))
def test_a_figure_by_kernel_stands_on_every_kernel_page(figure: str) -> None:
    using = f"from sitebuild.figures.{figure} import chart"
    assert sorted(page.stem for page in PAGES if using in text_of(page)) == SINGLE


@pytest.mark.parametrize("lab", LABS)
def test_a_lab_is_short_and_says_what_to_notice_and_how_to_run_it(lab: str) -> None:
    source = text_of(ROOT / "snippets" / f"{lab}.py")
    doc = ast.get_docstring(ast.parse(source)) or ""
    assert len(source.splitlines()) <= LAB_LINES
    assert "\nWhat to notice: " in doc
    assert f"Run it: `python -m snippets.{lab}`" in doc


@pytest.mark.parametrize("lab", LABS)
def test_a_lab_imports_the_standard_library_and_other_labs_only(lab: str) -> None:
    path = ROOT / "snippets" / f"{lab}.py"
    roots = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text_of(path)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
    }
    assert roots <= sys.stdlib_module_names | {"snippets"}
    assert {found.parent.name for found in imports_of(path)} <= {"snippets"}


@pytest.mark.parametrize("lab", LABS)
def test_a_lab_depends_on_nothing_that_its_cache_key_misses(lab: str) -> None:
    tree = ast.parse(text_of(ROOT / "snippets" / f"{lab}.py"))
    called = {ast.unparse(n.func).split(".")[-1] for n in ast.walk(tree) if isinstance(n, ast.Call)}
    relative = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level]
    reads = called & {"open", "read_text", "read_bytes", "import_module", "__import__", "exec"}
    assert relative == []
    assert reads == ({"read_text"} if lab == "captured" else set())  # the results are in the key


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_every_include_names_a_file_and_section_that_exist(page: Path) -> None:
    text = text_of(page)
    includes = list(INCLUDE.finditer(text))
    missing = [
        m[0]
        for m in includes
        if not (ROOT / m["file"]).is_file()
        or (m["section"] and m["section"] not in sections_of(ROOT / m["file"]))
    ]
    assert missing == []
    # a formatter that breaks a marker would make the include vanish in silence
    assert text.count("8<") == len(includes)


@pytest.mark.parametrize("stem", LESSONS)
def test_a_lesson_has_its_parts_in_order(stem: str) -> None:
    found = re.findall(r"^## (.+)$", FENCE.sub("", lesson(stem)), re.M)
    assert [heading for heading in found if heading in HEADINGS] == list(HEADINGS)
    assert set(front_matter(stem)) >= {"level", "minutes", "goals", "prerequisites", "description"}


@pytest.mark.parametrize("stem", LESSONS)
def test_a_lesson_asks_a_question_and_takes_the_answer_from_its_labs(stem: str) -> None:
    (question,) = re.findall(r'<div class="predict" markdown>\n(.+?)\n</div>', lesson(stem), re.S)
    assert question.startswith("**Predict.** ")
    assert question.count('\n??? question "Reveal"\n') == 1
    assert set(EXCERPT.findall(question)) <= set(RUN.findall(lesson(stem)))
    assert len(EXCERPT.findall(question)) == 1


@pytest.mark.parametrize("stem", LESSONS)
def test_a_lesson_has_an_exercise_on_paper_and_one_in_code(stem: str) -> None:
    (section,) = re.findall(r"^## Exercises\n(.+?)^## ", lesson(stem), re.M | re.S)
    (paper,) = re.findall(
        r"^<section class=\"exercise\".*?>$(.+?)^</section>$", section, re.M | re.S
    )
    folds = re.findall(r'^( *)\?\?\? \w+ "(.+)"$', paper, re.M)
    assert section.startswith("\n### On paper: ")
    assert folds == [("", "Hint 1 of 2"), ("    ", "Hint 2 of 2"), ("", "Solution")]
    assert len(EXERCISE.findall(section)) >= 1


@pytest.mark.parametrize("stem", LESSONS)
def test_a_lesson_names_what_is_optional_and_points_to_its_own_exercises(stem: str) -> None:
    assert optional(stem)["Practice"] == "#exercises"
    assert "\nOptional: use only what helps you learn.\n" in lesson(stem)


def test_an_exercise_stands_on_exactly_one_lesson() -> None:
    shown = [name for stem in LESSONS for name in EXERCISE.findall(lesson(stem))]
    assert sorted(shown) == exercises()


def test_every_file_of_the_exercises_is_one_or_what_checks_them() -> None:
    found = {path.stem for path in FOLDER.glob("*.py")}
    assert found - set(exercises()) == {"__init__", "grading"}
    assert found & set(LABS) == set()  # a name leads to one thing


@pytest.mark.parametrize("stem", exercises())
def test_an_exercise_is_short_tested_and_has_mutants(stem: str) -> None:
    mutants = tomllib.loads(text_of(ROOT / "tests" / "mutants" / "practice" / f"{stem}.toml"))
    assert len(text_of(FOLDER / f"{stem}.py").splitlines()) <= EXERCISE_LINES
    assert (ROOT / "tests" / "practice" / f"test_{stem}.py").is_file()
    assert 3 <= len(mutants["mutant"]) <= 8
    assert {mutant["file"] for mutant in mutants["mutant"]} == {f"snippets/practice/{stem}.py"}


@pytest.mark.parametrize("stem", exercises())
def test_three_wrong_answers_and_another_right_one_are_tried_on_a_check(stem: str) -> None:
    test = text_of(ROOT / "tests" / "practice" / f"test_{stem}.py")
    assert test.count("pytest.param(") >= 3
    assert test.count(f'refuse("{stem}", edits)') == 1
    assert f'assert judge("{stem}", answer) == ""' in test


@pytest.mark.parametrize("stem", exercises())
def test_an_answer_and_its_check_need_the_standard_library_and_labs_only(stem: str) -> None:
    path = FOLDER / f"{stem}.py"
    nodes = [
        n for n in ast.walk(ast.parse(text_of(path))) if isinstance(n, ast.Import | ast.ImportFrom)
    ]
    roots = {name.split(".")[0] for node in nodes for name in names_in(node)}
    assert roots <= sys.stdlib_module_names | {"snippets"}
    imported = [line for line in read(stem).skeleton.splitlines() if "import" in line]
    assert set(imported) <= {"import math"}, "a start imports nothing but math"


@pytest.mark.parametrize("stem", LESSONS)
def test_a_lesson_is_short_and_its_minutes_are_what_reading_takes(stem: str) -> None:
    count, minutes = words(stem), front_matter(stem)["minutes"]
    assert count in LESSON_WORDS
    # the labs take up to twice as long to read as the prose
    assert count / WORDS_A_MINUTE <= minutes <= 3 * count / WORDS_A_MINUTE


@pytest.mark.parametrize("stem", LESSONS)
def test_a_lesson_links_a_term_once(stem: str) -> None:
    assert duplicates(linked_terms(stem)) == set()


def test_the_glossary_is_in_alphabetical_order_and_its_names_are_unique() -> None:
    text = text_of(ROOT / "docs" / "reference" / "glossary.md")
    names = re.findall(r"^## (.+?) \{", text, re.M)
    every_name = [name.lower() for entry in names for name in entry.split(", ")]
    assert [name.lower() for name in names] == sorted(name.lower() for name in names)
    assert duplicates(every_name) == set()
    assert not glossary().keys() & sources().keys()


def test_every_source_has_an_address_and_is_used() -> None:
    entries = sources()
    without = [key for key, (_, text) in entries.items() if not re.search(r"<https://\S+>", text)]
    used = "\n".join(text_of(page) for page in PAGES) + text_of(ROOT / "snippets" / "hardware.py")
    unused = [
        key
        for key in entries
        if f"][{key}]" not in used and f" {key}" not in used and f'"{key}' not in used
    ]
    assert without == []
    assert unused == []


@pytest.mark.parametrize("file", MUTANTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_mutant_changes_exactly_one_place(file: Path) -> None:
    mutants = tomllib.loads(text_of(file))["mutant"]
    found = [text_of(ROOT / m["file"]).count(m["old"]) for m in mutants]
    assert found == [1] * len(mutants)
    assert all(m["old"] != m["new"] for m in mutants)


def test_nothing_is_left_to_fill() -> None:
    folders = ("docs", "snippets", "kernels", *(f"tests/{d}" for d in TESTED))
    files = [f for d in folders for s in ("md", "py", "toml") for f in (ROOT / d).rglob(f"*.{s}")]
    left = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in sorted(files)
        for number, line in enumerate(text_of(file).splitlines(), start=1)
        if "TO FILL" in line
    ]
    assert left == [], "\n" + "\n".join(left)


def test_no_file_is_named_for_being_shared() -> None:
    names = {"utils", "util", "helpers", "helper", "common", "misc", "base"}
    every = [p for d in ("snippets", "sitebuild", "tests") for p in (ROOT / d).rglob("*.py")]
    assert [str(path) for path in every if path.stem in names] == []
