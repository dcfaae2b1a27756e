"""What a lab or a block may do, event by event, and what it may still do."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from sitebuild import guard
from sitebuild.guard import complaint
from sitebuild.labs import GUARD, ROOT

READ, WRITE = os.O_RDONLY, os.O_WRONLY | os.O_CREAT
TEMPORARY = "/tmp/only/here/"
ELSEWHERE = Path.home() / "elsewhere.txt"


@pytest.fixture(autouse=True)
def the_repository_is_where_we_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(guard, "TEMPORARY", TEMPORARY)  # a checkout may lie in the real one


def guarded(code: str, tree: Path) -> subprocess.CompletedProcess[str]:
    """Run code as a module of a tree of its own, through a copy of the guard."""
    (tree / "sitebuild").mkdir(parents=True)
    (tree / "sitebuild" / "guard.py").write_text(GUARD.read_text("utf-8"), "utf-8")
    (tree / "lab.py").write_text(code, "utf-8")
    command = [sys.executable, "sitebuild/guard.py", "lab"]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("open", (str(ROOT / "mkdocs.yml"), "r", READ)),
        ("open", ("snippets/roofline.py", "r", READ)),
        ("open", (b"snippets/roofline.py", "rb", READ)),
        ("open", (os.__file__, "r", READ)),
        ("open", (os.devnull, "w", WRITE)),
        ("open", (3, "w", WRITE)),
        ("open", (f"{TEMPORARY}out.txt", "w", WRITE)),
        ("open", (str(ROOT / "snippets/__pycache__/roofline.pyc"), "w", WRITE)),
        ("os.rename", (f"{TEMPORARY}a", f"{TEMPORARY}b", -1, -1)),
        ("os.remove", ("name in an open folder", 5)),
        ("socket.__new__", (None, 2, 1, 0)),
        ("import", ("math", None)),
    ],
)
def test_what_follows_from_the_repository_is_allowed(event: str, arguments: Any) -> None:
    assert complaint(event, arguments) is None


@pytest.mark.parametrize(
    ("event", "arguments", "expected"),
    [
        ("open", (str(ELSEWHERE), "r", READ), "may read files of the repository only"),
        ("open", ("../elsewhere.txt", "r", READ), "may read files of the repository only"),
        ("open", (f"{ROOT}-twin/x", "r", READ), "may read files of the repository only"),
        ("open", (str(ELSEWHERE), "a", WRITE), "may not write outside"),
        ("open", ("docs/index.md", "r+", os.O_RDWR), "may not write outside"),
        ("open", (os.__file__, "w", WRITE), "may not write outside"),
        ("os.remove", ("docs/index.md", -1), "may not write outside"),
        ("os.mkdir", (str(ELSEWHERE), 0o777, -1), "may not write outside"),
        ("os.rename", (f"{TEMPORARY}a", "docs/index.md", -1, -1), "may not write outside"),
        ("os.rename", ("docs/index.md", f"{TEMPORARY}a", -1, -1), "may not write outside"),
        ("os.symlink", ("/etc/passwd", "docs/passwd", -1), "may not write outside"),
        ("shutil.rmtree", (str(ROOT), None), "may not write outside"),
        ("socket.connect", (None, ("192.0.2.1", 80)), "may not use the network"),
        ("socket.sendto", (None, ("192.0.2.1", 80)), "may not use the network"),
        ("socket.getaddrinfo", ("example.org", 80, 0, 0, 0), "may not use the network"),
        ("subprocess.Popen", ("curl", ["curl"], None, None), "may not start another program"),
        ("os.posix_spawn", ("/bin/curl", ["curl"], {}), "may not start another program"),
    ],
)
def test_what_does_not_is_refused_by_name(event: str, arguments: Any, expected: str) -> None:
    assert expected in (complaint(event, arguments) or "")


def test_a_lab_may_use_a_temporary_folder(tmp_path: Path) -> None:
    code = "import tempfile\nwith tempfile.TemporaryDirectory() as t:\n    open(t + '/x', 'w')\n"
    done = guarded(f"{code}print('done')\n", tmp_path / "tree")
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


def test_a_lab_may_not_write_into_its_own_tree_though_that_lies_in_the_temporary_folder(
    tmp_path: Path,
) -> None:
    done = guarded("open('lab.txt', 'w')", tmp_path / "tree")
    assert tmp_path.is_relative_to(os.path.realpath(tempfile.gettempdir()))
    assert "GuardError: a lab may not write outside the temporary folder" in done.stderr
    assert not (tmp_path / "tree" / "lab.txt").exists()


def test_a_lab_sees_itself_as_main_and_its_exit_status_is_kept(tmp_path: Path) -> None:
    done = guarded("import sys\nprint(__name__, sys.path[0])\nsys.exit(3)", tmp_path / "tree")
    assert done.stdout == f"__main__ {tmp_path / 'tree'}\n"
    assert done.returncode == 3
