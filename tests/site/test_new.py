"""`make new` makes what runs and passes, says what is left to fill, or makes nothing."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sitebuild.labs import ROOT
from sitebuild.new import FILES, RefusedError, create, with_line_in_nav
from sitebuild.topics import lessons

NAV = "nav:\n  - Lessons:\n      - lessons/one.md\n      - lessons/two.md\n  - Other: x.md\n"


def run(tree: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=tree, capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stdout + done.stderr


def snapshot(tree: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}


def add_after(file: Path, mark: str, text: str) -> None:
    before, after = file.read_text("utf-8").split(mark)
    file.write_text(before + mark + text + after, "utf-8")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Folders and navigation alone: enough for a lesson or a kernel to be made."""
    folders = {(tmp_path / to).parent for files in FILES.values() for to in files.values()}
    [folder.mkdir(parents=True, exist_ok=True) for folder in folders]
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    return tmp_path


@pytest.fixture
def whole(copy: Path) -> Path:
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def test_a_lesson_runs_passes_builds_and_lists_what_is_left(whole: Path) -> None:
    made = [
        path.relative_to(whole).as_posix()
        for path in create("lesson", "no_lesson", whole, "no_exercise")
    ]
    assert made == [
        "docs/lessons/no_lesson.md",
        "snippets/no_lesson.py",
        "tests/snippets/test_no_lesson.py",
        "tests/mutants/snippets/no_lesson.toml",
        "snippets/practice/no_exercise.py",
        "tests/practice/test_no_exercise.py",
        "tests/mutants/practice/no_exercise.toml",
        "mkdocs.yml",
    ]
    status, output = run(whole, "tests.mutants.run", "no_lesson")
    assert status == 0, output
    assert "all 6 6 0" in " ".join(output.split())
    status, output = run(whole, "pytest", "-q", "tests/practice/test_exercises.py")
    assert status == 0, output
    status, output = run(whole, "mkdocs", "build", "--strict", "--site-dir", "out")
    assert status == 0, output
    page = (whole / "out/lessons/no_lesson/index.html").read_text("utf-8")
    last = len(lessons()) + 1
    assert f"Lesson {last} of {last}" in page
    assert "the mean of [1.0, 4.0]" in page

    status, output = run(whole, "pytest", "-q", "tests/test_layout.py")
    assert status == 1
    assert set(re.findall(r"^FAILED \S+::(\w+)", output, re.M)) == {
        "test_nothing_is_left_to_fill",
        "test_a_lesson_is_short_and_its_minutes_are_what_reading_takes",
    }
    assert "docs/lessons/no_lesson.md:5: - TO FILL what the reader can do afterwards" in output


def test_a_kernel_passes_builds_and_lists_what_is_left(whole: Path) -> None:
    create("kernel", "no_kernel", whole)
    status, output = run(whole, "pytest", "-q", "tests/kernels/test_no_kernel.py")
    assert status == 0, output
    status, output = run(whole, "mkdocs", "build", "--strict", "--site-dir", "out")
    assert status == 0, output
    assert "Not captured yet." in (whole / "out/kernels/no_kernel/index.html").read_text("utf-8")

    status, output = run(whole, "pytest", "-q", "tests/test_layout.py")
    assert status == 1
    assert set(re.findall(r"^FAILED \S+::(\w+)", output, re.M)) == {
        "test_nothing_is_left_to_fill",
        "test_the_benchmark_measures_exactly_the_kernels_that_have_a_page",
        "test_the_table_of_the_kernels_is_in_the_order_of_the_navigation",
    }


def test_a_kernel_whose_two_lines_are_added_needs_no_result(whole: Path) -> None:
    status, told = run(whole, "sitebuild.new", "kernel", "no_kernel")
    (row,) = re.findall(r"^  docs/kernels/index\.md +(\|.+\|)$", told, re.M)
    assert '  kernels/bench/cases.py    "no_kernel" in STEMS\n' in told
    add_after(whole / "docs/kernels/index.md", ", one at a time. |\n", f"{row}\n")
    add_after(whole / "kernels/bench/cases.py", '"flash_decode", ', '"no_kernel", ')
    status, output = run(whole, "pytest", "-q", "tests/test_layout.py", "tests/bench")
    assert status == 1
    assert re.findall(r"^FAILED \S+::(\w+)", output, re.M) == ["test_nothing_is_left_to_fill"]


@pytest.mark.parametrize(
    ("kind", "stem", "message"),
    [
        ("chapter", "tile_sizes", "KIND is 'chapter'; allowed: lesson, kernel"),
        ("", "tile_sizes", "KIND is ''; allowed: lesson, kernel"),
        ("lesson", "", "STEM is ''; allowed: a noun in lower case"),
        ("lesson", "Tile", "STEM is 'Tile'; allowed: a noun in lower case"),
        ("lesson", "tile-sizes", "STEM is 'tile-sizes'; allowed: a noun in lower case"),
        ("lesson", "tile__sizes", "STEM is 'tile__sizes'; allowed: a noun in lower case"),
        ("lesson", "9tiles", "STEM is '9tiles'; allowed: a noun in lower case"),
        ("lesson", "../tiles", "STEM is '../tiles'; allowed: a noun in lower case"),
        ("lesson", "lambda", "STEM is 'lambda'; allowed: a noun in lower case"),
        ("lesson", "statistics", "'statistics', which would hide the Python module of that name"),
        ("kernel", "torch", "'torch', which would hide the Python module of that name"),
    ],
)
def test_what_cannot_be_made_is_refused_and_nothing_is_written(
    small: Path, kind: str, stem: str, message: str
) -> None:
    before = snapshot(small)
    with pytest.raises(RefusedError, match=re.escape(message)):
        create(kind, stem, small, "answers")
    assert snapshot(small) == before


@pytest.mark.parametrize(
    ("exercise", "message"),
    [
        ("", "EXERCISE is ''; allowed: a noun in lower case"),
        ("Best", "EXERCISE is 'Best'; allowed: a noun in lower case"),
        ("statistics", "EXERCISE is 'statistics', which would hide the Python module"),
        ("tiles", "EXERCISE is 'tiles', as STEM is; a name leads to one thing"),
    ],
)
def test_a_lesson_needs_a_name_for_its_exercise(small: Path, exercise: str, message: str) -> None:
    before = snapshot(small)
    with pytest.raises(RefusedError, match=re.escape(message)):
        create("lesson", "tiles", small, exercise)
    assert snapshot(small) == before


@pytest.mark.parametrize(
    "taken",
    [to.format(stem="tiles", exercise="answers") for to in [*FILES["lesson"].values()]],
    ids=str,
)
def test_a_file_that_is_there_is_named_and_kept(small: Path, taken: str) -> None:
    (small / taken).write_text("mine")
    before = snapshot(small)
    with pytest.raises(RefusedError, match=f"tiles is taken: {re.escape(taken)}"):
        create("lesson", "tiles", small, "answers")
    assert snapshot(small) == before


def test_a_write_that_fails_takes_back_the_others(small: Path) -> None:
    shutil.rmtree(small / "tests" / "mutants" / "snippets")
    before = snapshot(small)
    with pytest.raises(FileNotFoundError):
        create("lesson", "tiles", small, "answers")
    assert snapshot(small) == before


@pytest.mark.parametrize("stem", ["a_stem", "z_stem"])
@pytest.mark.parametrize("kind", FILES)
def test_what_is_made_has_nothing_to_lint(small: Path, kind: str, stem: str) -> None:
    create(kind, stem, small, f"{stem}_exercise")
    [
        (small / name / "__init__.py").touch()
        for name in ("snippets", "kernels", "snippets/practice")
    ]
    shutil.copy(ROOT / "pyproject.toml", small)
    assert run(small, "ruff", "check", ".") == (0, "All checks passed!\n")
    assert run(small, "ruff", "format", "--check", ".")[0] == 0


def test_a_page_stands_last_in_its_section() -> None:
    assert with_line_in_nav(NAV, "lessons", "three") == NAV.replace(
        "two.md\n", "two.md\n      - lessons/three.md\n"
    )
    with pytest.raises(RefusedError, match=r"mkdocs\.yml has no page of kernels/ in nav"):
        with_line_in_nav(NAV, "kernels", "three")


def test_the_command_says_what_it_made_or_why_it_made_nothing(whole: Path) -> None:
    status, output = run(whole, "sitebuild.new", "kernel", "no_kernel")
    assert status == 0
    assert output.startswith("docs/kernels/no_kernel.md\nkernels/no_kernel.py\n")
    status, output = run(whole, "sitebuild.new", "kernel", "no_kernel")
    assert status == 2
    assert output.startswith("Nothing was made: no_kernel is taken: docs/kernels/no_kernel.md")
    assert run(whole, "sitebuild.new")[1].startswith("Nothing was made: KIND is ''; allowed: ")
