"""Python for the browser is the pinned one or none, and runs a program as `python -m` does."""

import hashlib
import importlib.util
import io
import json
import os
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sitebuild import engine
from sitebuild.engine import EngineError, OutOfReachError, Pin
from sitebuild.labs import ROOT

GOOD = {"pyodide.mjs": b"export {}", "python_stdlib.zip": b"the library"}
PINNED = Pin("pyodide", "1.2.3", {n: hashlib.sha256(data).hexdigest() for n, data in GOOD.items()})


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(engine, "CACHE", tmp_path / "cache" / "pyodide")
    monkeypatch.setattr(engine, "pin", lambda: PINNED)
    return tmp_path / "cache"


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put an npm into PATH that runs a line of shell; return a file that tells of its calls."""

    def install(line: str = "true") -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        calls = tmp_path / "calls"
        (folder / "npm").write_text(f'#!/bin/sh\necho "$@" >> "{calls}"\n{line}\n')
        (folder / "npm").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return calls

    return install


@pytest.fixture
def registry(tmp_path: Path, npm: Callable[..., Path]) -> Callable[[dict[str, bytes]], Path]:
    """Have npm deliver an archive with these files."""

    def offer(files: dict[str, bytes]) -> Path:
        archive = tmp_path / "offered.tgz"
        with tarfile.open(archive, "w:gz") as out:
            for name, data in files.items():
                entry = tarfile.TarInfo(f"package/{name}")
                entry.size = len(data)
                out.addfile(entry, io.BytesIO(data))
        return npm(f'cp "{archive}" pyodide-1.2.3.tgz')

    return offer


def left_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_the_pinned_files_and_no_others_are_kept(cache: Path, registry) -> None:
    calls = registry({**GOOD, "console.html": b"not needed"})
    engine.fetch()
    assert left_in(cache) == ["pyodide", "pyodide/1.2.3", *(f"pyodide/1.2.3/{n}" for n in GOOD)]
    assert {n: (PINNED.folder / n).read_bytes() for n in GOOD} == GOOD
    assert calls.read_text().startswith("pack pyodide@1.2.3 ")


def test_what_is_there_is_not_fetched_again(registry) -> None:
    calls = registry(GOOD)
    engine.fetch()
    engine.fetch()
    assert calls.read_text().count("pack") == 1


@pytest.mark.parametrize(
    ("offered", "found"),
    [
        ({**GOOD, "pyodide.mjs": b"export {} // and more"}, "pyodide.mjs: "),
        ({"pyodide.mjs": GOOD["pyodide.mjs"]}, "python_stdlib.zip: no file, pinned is "),
    ],
)
def test_a_package_that_differs_is_refused_and_nothing_of_it_stays(
    cache: Path, registry, offered: dict[str, bytes], found: str
) -> None:
    registry(offered)
    with pytest.raises(EngineError, match=r"pyodide 1\.2\.3 .* is refused") as refusal:
        engine.fetch()
    assert found in str(refusal.value)
    assert str(refusal.value).count("pinned is") == 1
    assert left_in(cache) == ["pyodide"]


def test_an_archive_cut_short_is_refused_and_nothing_of_it_stays(cache: Path, registry) -> None:
    registry({"pyodide.mjs": os.urandom(50_000)})
    archive = cache.parent / "offered.tgz"
    archive.write_bytes(archive.read_bytes()[:20_000])
    with pytest.raises(EngineError, match=r"pyodide-1\.2\.3\.tgz cannot be read and is refused"):
        engine.fetch()
    assert left_in(cache) == ["pyodide"]


def test_a_refusal_ends_the_command_with_its_message(registry) -> None:
    registry({})
    with pytest.raises(SystemExit, match=r"pyodide\.mjs: no file"):
        engine.main()


def test_out_of_reach_is_one_line_and_no_failure(
    cache: Path, npm, capsys: pytest.CaptureFixture[str]
) -> None:
    npm("echo 'npm error code ENOTFOUND' >&2; echo 'npm error a log is in /root' >&2; exit 1")
    engine.main()
    assert capsys.readouterr().err == (
        "The site is built without Python for the browser: "
        "npm pack pyodide@1.2.3: npm error code ENOTFOUND\n"
    )
    assert left_in(cache) == ["pyodide"]


def test_an_npm_that_hangs_is_given_up(npm, monkeypatch: pytest.MonkeyPatch) -> None:
    npm("exec sleep 60")
    monkeypatch.setattr(engine, "TIME_LIMIT_S", 0.2)
    with pytest.raises(OutOfReachError, match="timed out"):
        engine.fetch()


def test_without_node_npm_comes_from_the_locked_python_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[list[str]] = []
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(engine.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(engine, "_call", lambda command, _: called.append(command))
    with pytest.raises(OutOfReachError, match="left no archive"):  # this npm does nothing
        engine.fetch()
    install, pack = called
    assert {"pip", "--require-hashes", str(ROOT / "requirements" / "npm.txt")} <= set(install)
    assert pack[:3] == [str(tmp_path / "npm"), "pack", "pyodide@1.2.3"]


def test_a_damaged_cache_is_fetched_anew(registry) -> None:
    registry(GOOD)
    engine.fetch()
    (PINNED.folder / "pyodide.mjs").write_text("damaged")
    engine.fetch()
    assert (PINNED.folder / "pyodide.mjs").read_bytes() == GOOD["pyodide.mjs"]


def test_a_new_version_takes_the_place_of_the_old(cache: Path, registry) -> None:
    (cache / "pyodide" / "1.2.2").mkdir(parents=True)
    registry(GOOD)
    engine.fetch()
    assert [path.name for path in (cache / "pyodide").iterdir()] == ["1.2.3"]


def test_a_site_holds_the_engine_and_says_its_version(tmp_path: Path, registry) -> None:
    registry(GOOD)
    engine.fetch()
    engine.write_engine(tmp_path / "site")
    folder = tmp_path / "site" / "assets" / "pyodide"
    assert {path.name: path.read_bytes() for path in (folder / "1.2.3").iterdir()} == GOOD
    assert json.loads((folder / "engine.json").read_text()) == {"version": "1.2.3"}


def test_a_site_without_the_engine_says_so_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="mkdocs")
    engine.write_engine(tmp_path / "site")
    folder = tmp_path / "site" / "assets" / "pyodide"
    assert json.loads((folder / "engine.json").read_text()) == {"version": None}
    assert left_in(folder) == ["engine.json"]
    assert [(r.levelname, r.message) for r in caplog.records] == [
        ("INFO", "No Python for the browser: labs cannot be run in the page (make engine)")
    ]


def test_a_damaged_cache_does_not_reach_a_site(
    tmp_path: Path, registry, caplog: pytest.LogCaptureFixture
) -> None:
    registry(GOOD)
    engine.fetch()
    (PINNED.folder / "pyodide.mjs").write_text("damaged")
    engine.write_engine(tmp_path / "site")
    assert left_in(tmp_path / "site" / "assets" / "pyodide") == ["engine.json"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]  # fails a strict build


@pytest.fixture
def execute() -> Callable[[dict[str, str], str], str]:
    spec = importlib.util.spec_from_file_location("page", ROOT / "docs/assets/js/engine.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda files, name: module.execute({"lab/__init__.py": "", **files}, name)


def test_a_program_runs_with_its_imports_as_main(execute, capfd) -> None:
    files = {"lab/a.py": "from lab import b\nprint(__name__, b.x)", "lab/b.py": "x = 'é'"}
    assert execute(files, "lab.a") == ""
    assert capfd.readouterr().out == "__main__ é\n"


def test_nothing_is_left_of_a_run(execute, capfd) -> None:
    before = Path.cwd(), list(sys.path), sys.stdout, set(sys.modules)
    first = "import lab.b, sys\nlab.b.x = 'changed'\nopen('file', 'w').close()\nsys.stdout = None"
    second = "import os\nfrom lab import b\nprint(b.x, os.path.exists('file'))"
    assert execute({"lab/a.py": first, "lab/b.py": "x = 1"}, "lab.a") == ""
    assert execute({"lab/a.py": second, "lab/b.py": "x = 2"}, "lab.a") == ""
    assert capfd.readouterr().out == "2 False\n"
    assert (Path.cwd(), list(sys.path), sys.stdout, set(sys.modules)) == before


def test_a_traceback_shows_the_program_and_not_what_runs_it(execute) -> None:
    source = "import json\n\ndef main():\n    json.loads('{')\n\nmain()\n"
    lines = execute({"lab/a.py": source}, "lab.a").splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert [line.split(",")[:2] for line in lines if "File" in line] == [
        ['  File "lab/a.py"', " line 6"],
        ['  File "lab/a.py"', " line 4"],
    ]
    assert lines[-1].startswith("json.decoder.JSONDecodeError: ")


def test_the_causes_of_an_error_and_its_parts_are_trimmed_too(execute) -> None:
    cause = "try:\n    int('x')\nexcept ValueError as e:\n    raise KeyError('no') from e"
    group = "def f():\n    raise ValueError(1)\ntry:\n    f()\nexcept ValueError as e:\n    "
    group += "raise ExceptionGroup('both', [e])"
    shown = execute({"lab/a.py": cause}, "lab.a") + execute({"lab/b.py": group}, "lab.b")
    assert "The above exception was the direct cause" in shown
    assert "ExceptionGroup: both (1 sub-exception)" in shown
    assert shown.count("File ") == shown.count('File "lab/')


def test_wrong_syntax_is_shown_at_its_line(execute) -> None:
    shown = execute({"lab/a.py": "print(1)\nx = (\n"}, "lab.a")
    assert shown.startswith('  File "lab/a.py", line 2\n')
    assert shown.endswith("SyntaxError: '(' was never closed")


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("import sys; sys.exit()", ""),
        ("import sys; sys.exit(0)", ""),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import sys; sys.exit('no keys')", "SystemExit: no keys"),
    ],
)
def test_leaving_a_program_counts_by_its_status(execute, line: str, fault: str) -> None:
    assert execute({"lab/a.py": line}, "lab.a") == fault


def test_a_question_to_the_reader_gets_a_clear_error(execute) -> None:
    fault = execute({"lab/a.py": "input('N? ')"}, "lab.a")
    assert fault.endswith("write the value into the program instead")
    assert fault.count("File ") == 1
