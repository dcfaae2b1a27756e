"""`mkdocs build --strict` stops on each kind of fault, and says where it is."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sitebuild.labs import ROOT

LAB = "snippets/waves.py"
PAGE = "docs/lessons/roofline.md"
NOTEBOOK = "docs/practice/softmax_rounding.py"
GUARD = "def main() -> None:\n"
FIRST_LINE = (ROOT / LAB).read_text("utf-8").split(GUARD)[0].count("\n") + 2  # of main()


def build(tree: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", "out"],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def in_main(tree: Path, line: str) -> None:
    """Put one line at the start of a lab's main()."""
    path = tree / LAB
    source = path.read_text("utf-8")
    assert GUARD in source
    path.write_text(source.replace(GUARD, f"{GUARD}    {line}\n"), "utf-8")


def append(tree: Path, file: str, text: str) -> None:
    path = tree / file
    path.write_text(path.read_text("utf-8") + f"\n{text}\n", "utf-8")


def test_the_copy_builds_before_anything_is_broken(copy: Path) -> None:
    status, output = build(copy)
    assert status == 0, output
    assert (copy / "out" / ".built").read_text() == "ok\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "raise RuntimeError('broken')",
            f" at {LAB}:{FIRST_LINE}: RuntimeError: broken",
        ),
        ("raise SystemExit(3)", "snippets.waves ended with exit status 3"),
        ("raise SystemExit(0)", "snippets.waves printed nothing"),
        ("import sys; print('oh', file=sys.stderr)", "snippets.waves wrote to standard error"),
        ("print('x' * 70000)", "snippets.waves printed more than 64 KiB"),
        (
            "print('Traceback (most recent call last)')",
            "lessons/roofline.md: publishes a traceback",
        ),
        ("(", "snippets.waves ended with exit status 1"),
        ("import warnings; warnings.warn('old')", "snippets.waves ended with exit status 1"),
        ("print(chr(27) + '[31mred')", "snippets.waves printed '\\x1b'"),
        ("print('`' * 8)", "snippets.waves printed '````````'"),
        ("import sys; sys.stdout.buffer.write(bytes([255]))", "printed what is not UTF-8"),
        ("import os; os.kill(os.getpid(), 9)", "snippets.waves ended with exit status -9"),
    ],
)
def test_a_lab_that_fails_stops_the_build(copy: Path, line: str, message: str) -> None:
    in_main(copy, line)
    status, output = build(copy)
    assert status != 0
    assert message in output


REACHES_OUT = [
    (
        "import socket; socket.socket().connect(('127.0.0.1', 9))",
        "may not use the network, tried ('127.0.0.1', 9)",
    ),
    (
        "import pathlib; pathlib.Path('docs/new.md').write_text('new')",
        "may not write outside the temporary folder, tried 'docs/new.md'",
    ),
    (
        "print(open('/etc/passwd').read())",
        "may read files of the repository only, tried '/etc/passwd'",
    ),
    ("import os; os.system('true')", "may not start another program, tried b'true'"),
]


@pytest.mark.parametrize(("line", "message"), REACHES_OUT)
def test_a_lab_that_reaches_out_of_the_repository_stops_the_build(
    copy: Path, line: str, message: str
) -> None:
    in_main(copy, line)
    status, output = build(copy)
    assert status != 0
    assert f" at {LAB}:{FIRST_LINE}: GuardError: a lab {message}" in output


@pytest.mark.parametrize(("line", "message"), REACHES_OUT[:3])
def test_a_block_that_reaches_out_of_the_repository_stops_the_build(
    copy: Path, line: str, message: str
) -> None:
    append(copy, PAGE, f'```python exec="1" id="reaches-out"\n{line}\n```')
    status, output = build(copy)
    assert status != 0
    assert f"a block of a page {message}" in output
    assert "code block 'reaches-out'" in output


def test_a_notebook_that_reaches_out_of_the_repository_stops_the_build(copy: Path) -> None:
    line, message = REACHES_OUT[0]
    append(copy, NOTEBOOK, f"# %%\n{line}")
    status, output = build(copy)
    assert status != 0
    assert f"a block of a page {message}" in output


def test_a_link_out_of_the_repository_is_neither_included_nor_published(
    copy: Path, tmp_path: Path
) -> None:
    place = "docs/assets/secrets.txt"
    (tmp_path / "secrets.txt").write_text("a secret")
    (copy / place).symlink_to(tmp_path / "secrets.txt")
    append(copy, PAGE, f'```\n--8<-- "{place}"\n```')
    status, output = build(copy)
    assert status != 0
    assert f"{place} is a link to {tmp_path / 'secrets.txt'}, outside the repository" in output


@pytest.mark.parametrize(
    "line",
    [
        "while True: pass",
        "import time; time.sleep(600)",
        "while True: print()",
        "import os, time; os.fork() or os.setsid() or time.sleep(600); time.sleep(600)",
    ],
)
def test_a_lab_that_hangs_is_stopped_at_the_time_limit(copy: Path, line: str) -> None:
    labs = copy / "sitebuild" / "labs.py"
    labs.write_text(labs.read_text().replace("TIME_LIMIT_S = 20.0", "TIME_LIMIT_S = 4.0"))
    in_main(copy, line)
    status, output = build(copy)
    assert status != 0
    assert re.search("snippets.waves (ran past its time limit of 4 s|printed more)", output)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (PAGE, '```python exec="1" id="endless"\nwhile True:\n    pass\n```'),
        (NOTEBOOK, "# %%\nwhile True:\n    pass"),
    ],
)
def test_a_block_or_cell_that_hangs_is_stopped_at_the_time_limit(
    copy: Path, file: str, text: str
) -> None:
    gate = copy / "sitebuild" / "gate.py"
    gate.write_text(gate.read_text().replace("PAGE_LIMIT_S = 300", "PAGE_LIMIT_S = 15"))
    append(copy, file, text)
    status, output = build(copy)
    assert status != 0
    assert "what this page runs took longer than 15 s and was stopped" in output


def test_what_a_lab_leaves_running_does_not_hold_up_the_build(copy: Path) -> None:
    in_main(copy, "import os, time; os.fork() or (os.setsid(), time.sleep(20), os._exit(0))")
    started = time.monotonic()
    status, output = build(copy)
    assert status == 0, output
    assert time.monotonic() - started < 15


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('```python\n--8<-- "snippets/nowhere.py"\n```', "nowhere.py"),
        ('```python\n--8<-- "snippets/waves.py:nowhere"\n```', "nowhere"),
        ('```\n--8<-- "/etc/passwd"\n```', "passwd"),
        ('```\n--8<-- "../../../../../../etc/passwd"\n```', "passwd"),
        ("[gone](gone.md)", "gone.md"),
        ("[gone](hbm_traffic.md#gone)", "#gone"),
        ('`--8 < --"snippets/waves.py"`', "lessons/roofline.md: shows an include marker"),
        ("$\\frac{a$", "lessons/roofline.md: TeX that cannot be read"),
        ("[a term][nowhere]", "lessons/roofline.md: [nowhere] is neither in the glossary"),
        ("[nowhere][]", "lessons/roofline.md: [nowhere] is neither"),
        ("[the *word*][nowhere]", "lessons/roofline.md: [nowhere] is neither"),
        ("[`code`][no.where]", "lessons/roofline.md: [no.where] is neither"),
        ("[two\nlines][]", "lessons/roofline.md: [two\nlines] is neither"),
        ("| a |\n| --- |\n| [x][a+b] |", "lessons/roofline.md: [a+b] is neither"),
        ('```python exec="1"\nraise ValueError("in the page")\n```', "in the page"),
        ("```python exec=1 result=text source=block\nprint(1)\n```", "that was not run"),
        ('~~~py exec="1"\nprint(1)\n~~~', "that was not run"),
        ('```python exec="off"\nprint(1)\n```', "that was not run"),
        ('```python exec="1" result="text"\npass\n```', "has an empty result block"),
        ('```python exec="1"\nprint("[x](hbm_traffic.md#gone)")\n```', "#gone, which is not there"),
        ("[x](../practice/softmax_rounding.py#gone)", "#gone, which is not there"),
        (
            '```python exec="1"\nfrom sitebuild import run\nprint(run("snippets.nowhere"))\n```',
            "no module 'snippets.nowhere'",
        ),
        ('```python exec="1"\nprint("[gone](gone.md)")\n```', "prints a link to 'gone.md'"),
        ("```mermaid\ngraph LR\n```", "has a mermaid diagram"),
        ('<pre class="mermaid">graph LR</pre>', "has a mermaid diagram"),
        ('<img src="https://example.org/x.png" alt="">', "loads from another host"),
        ('<script src="//example.org/x.js"></script>', "loads from another host"),
        ('<IMG SRC = "https://example.org/x.png" alt="">', "loads from another host"),
        ('<img srcset="https://example.org/x.png 2x" alt="">', "loads from another host"),
        ('<object data="https://example.org/x"></object>', "loads from another host"),
        ('<svg><use href="https://example.org/x#y"/></svg>', "loads from another host"),
        ("<p style=\"background: url('https://example.org/x.png')\">x</p>", "another host"),
        ('<style>@import "//example.org/x.css";</style>', "loads from another host"),
    ],
)
def test_a_fault_in_a_page_stops_the_build(copy: Path, text: str, message: str) -> None:
    append(copy, PAGE, text)
    status, output = build(copy)
    assert status != 0
    assert message in output


@pytest.mark.parametrize(
    "endpoint", ["example.org/answers", "http://example.org/a", "https://a; b", "javascript:x"]
)
def test_an_endpoint_for_feedback_that_no_page_can_send_to_is_named(
    copy: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("FEEDBACK_ENDPOINT", endpoint)
    status, output = build(copy)
    assert status != 0
    assert (
        f"extra.feedback.endpoint is {endpoint!r}; allowed: nothing, an https:// address" in output
    )


def test_a_failing_notebook_cell_stops_the_build(copy: Path) -> None:
    append(copy, NOTEBOOK, '# %%\nraise ValueError("in the notebook")')
    status, output = build(copy)
    assert status != 0
    assert "in the notebook" in output


def test_a_page_outside_the_navigation_stops_the_build(copy: Path) -> None:
    (copy / "docs" / "lessons" / "stray.md").write_text("# Stray\n")
    status, output = build(copy)
    assert status != 0
    assert "stray.md" in output


def test_a_page_that_ends_the_process_fails_the_build(copy: Path) -> None:
    append(copy, PAGE, '```python exec="1"\nimport sys\nsys.exit(0)\n```')
    status, output = build(copy)
    assert status == 1
    assert "The build ended early: a page stopped the process." in output


@pytest.mark.parametrize(
    "goals", ["a text", "{a: b}", "[a, null]", "[]", "[1]", "&a [*a]", "'"], ids=str
)
def test_front_matter_that_is_not_what_it_should_be_is_named(copy: Path, goals: str) -> None:
    page = copy / PAGE
    text = re.sub(r"goals:\n(  - .*\n)+", f"goals: {goals}\n", page.read_text("utf-8"))
    page.write_text(text, "utf-8")
    status, output = build(copy)
    assert status != 0
    assert "roofline.md" in output


def test_a_page_that_ends_the_process_leaves_the_old_site(copy: Path, tmp_path: Path) -> None:
    # nothing of the build runs after this; only the missing marker betrays it
    append(copy, PAGE, '```python exec="1"\nimport os\nos._exit(0)\n```')
    (copy / "site").mkdir()
    (copy / "site" / "index.html").write_text("the old site")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    made = copy / ".venv"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "python").symlink_to(python)
    for stamp in (".made", ".docs"):
        (made / stamp).touch()
    done = subprocess.run(["make", "site"], cwd=copy, capture_output=True, text=True)
    assert done.returncode != 0
    assert "The build ended early" in done.stdout
    assert (copy / "site" / "index.html").read_text() == "the old site"


def test_an_edited_lab_runs_again_and_the_others_do_not(copy: Path) -> None:
    assert build(copy)[0] == 0
    before = {path.name: path.stat().st_mtime_ns for path in (copy / ".cache/labs").iterdir()}
    in_main(copy, "print('a new first line')")
    status, output = build(copy)
    assert status == 0, output
    after = {path.name: path.stat().st_mtime_ns for path in (copy / ".cache/labs").iterdir()}
    changed = {name.rsplit("-", 1)[0] for name, _ in before.items() ^ after.items()}
    assert "a new first line" in (copy / "out/lessons/roofline/index.html").read_text("utf-8")
    assert changed == {"snippets.waves", "sitebuild.figures.waves"}


def test_the_environment_of_the_reader_does_not_reach_a_lab(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "seen")
    in_main(copy, "import os; print('A_SECRET' in os.environ)")
    assert build(copy)[0] == 0
    page = (copy / "out/lessons/roofline/index.html").read_text("utf-8")
    assert "False" in page
    assert os.environ["A_SECRET"] == "seen"
