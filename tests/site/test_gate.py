"""`mkdocs build --strict` stops on each kind of fault, and says where it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LAB = "snippets/waves.py"
PAGE = "docs/lessons/roofline.md"
NOTEBOOK = "docs/practice/softmax_rounding.py"
GUARD = "def main() -> None:\n"


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
        ("raise RuntimeError('broken on purpose')", "snippets.waves ended with exit status 1"),
        ("raise SystemExit(3)", "snippets.waves ended with exit status 3"),
        ("raise SystemExit(0)", "snippets.waves printed nothing"),
        ("import sys; print('oh', file=sys.stderr)", "snippets.waves wrote to standard error"),
        ("print('x' * 70000)", "snippets.waves printed more than 64 KiB"),
        ("print('Traceback (most recent call last)')", "lessons/roofline.md publishes a traceback"),
        ("(", "snippets.waves ended with exit status 1"),
        ("import warnings; warnings.warn('old')", "snippets.waves ended with exit status 1"),
        ("import os; os.kill(os.getpid(), 9)", "snippets.waves ended with exit status -9"),
    ],
)
def test_a_lab_that_fails_stops_the_build(copy: Path, line: str, message: str) -> None:
    in_main(copy, line)
    status, output = build(copy)
    assert status != 0
    assert message in output


@pytest.mark.parametrize("line", ["while True: pass", "import time; time.sleep(600)"])
def test_a_lab_that_hangs_is_stopped_at_the_time_limit(copy: Path, line: str) -> None:
    labs = copy / "sitebuild" / "labs.py"
    labs.write_text(labs.read_text().replace("TIME_LIMIT_S = 20.0", "TIME_LIMIT_S = 4.0"))
    in_main(copy, line)
    status, output = build(copy)
    assert status != 0
    assert "snippets.waves ran past its time limit of 4 s" in output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('```python\n--8<-- "snippets/nowhere.py"\n```', "nowhere.py"),
        ('```python\n--8<-- "snippets/waves.py:nowhere"\n```', "nowhere"),
        ('```\n--8<-- "/etc/passwd"\n```', "passwd"),
        ('```\n--8<-- "../../../../../../etc/passwd"\n```', "passwd"),
        ("[gone](gone.md)", "gone.md"),
        ("[gone](hbm_traffic.md#gone)", "#gone"),
        ('`--8 < --"snippets/waves.py"`', "lessons/roofline.md shows an include marker"),
        ("$\\frac{a$", "TeX that cannot be read"),
        ("[a term][nowhere]", "lessons/roofline.md has a reference"),
        ("[nowhere][]", "lessons/roofline.md has a reference"),
        ('```python exec="1"\nraise ValueError("in the page")\n```', "in the page"),
        ("```python exec=1 result=text source=block\nprint(1)\n```", "that was not run"),
        ('```python exec="1" result="text"\npass\n```', "has an empty result block"),
        (
            '```python exec="1"\nfrom sitebuild import run\nprint(run("snippets.nowhere"))\n```',
            "no module 'snippets.nowhere'",
        ),
        ('```python exec="1"\nprint("[gone](gone.md)")\n```', "prints a link to 'gone.md'"),
        ('<img src="https://example.org/x.png" alt="">', "loads from another host"),
        ('<script src="//example.org/x.js"></script>', "loads from another host"),
    ],
)
def test_a_fault_in_a_page_stops_the_build(copy: Path, text: str, message: str) -> None:
    append(copy, PAGE, text)
    status, output = build(copy)
    assert status != 0
    assert message in output


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


def test_a_page_that_ends_the_process_leaves_the_old_site(copy: Path, tmp_path: Path) -> None:
    # an in-process exit code of 0 looks like success; only the missing marker betrays it
    append(copy, PAGE, '```python exec="1"\nimport sys\nsys.exit(0)\n```')
    (copy / "site").mkdir()
    (copy / "site" / "index.html").write_text("the old site")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    made = copy / ".venv"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "python").symlink_to(python)
    (copy / "requirements").mkdir()
    (copy / "requirements" / "docs.txt").touch()
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
