"""Run a program of the page in the browser's Python; `engine-worker.js` loads this file.

Every run gets a folder of its own and modules of its own, so nothing is left of the last one.
"""

import builtins
import linecache
import os
import runpy
import shutil
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO


def execute(files: Mapping[str, str], module: str) -> str:
    """Run `module` from `files` as `python -m` would; return the traceback, "" without a fault.

    The traceback shows the frames that lie in `files` and leaves out those of Python itself.
    """
    folder = tempfile.mkdtemp()
    before = Path.cwd(), list(sys.path), sys.stdout, sys.stderr, builtins.input
    known = set(sys.modules)
    try:
        for name, text in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        os.chdir(folder)
        sys.path.insert(0, folder)
        sys.stdout, sys.stderr = streams = _stream(1), _stream(2)
        builtins.input = _no_input
        fault = _run(module, folder)
        for stream in streams:
            stream.close()  # which sends the rest; a program may have closed them already
        return fault
    finally:
        os.chdir(before[0])
        sys.path[:], sys.stdout, sys.stderr, builtins.input = before[1:]
        for name in set(sys.modules) - known:
            if _lies_in(folder, getattr(sys.modules[name], "__file__", None)):
                del sys.modules[name]
        sys.path_importer_cache.pop(folder, None)
        linecache.clearcache()
        shutil.rmtree(folder)


def _run(module: str, folder: str) -> str:
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as leaving:
        return "" if leaving.code in (None, 0) else f"SystemExit: {leaving.code}"
    except BaseException as error:
        report = traceback.TracebackException.from_exception(error)
        _trim(report, folder, set())
        return "".join(report.format()).rstrip()
    return ""


def _trim(report: traceback.TracebackException | None, folder: str, seen: set[int]) -> None:
    """Keep the frames of the program, here and in what caused the error."""
    if report is None or id(report) in seen:
        return
    seen.add(id(report))
    frames = [frame for frame in report.stack or [] if _lies_in(folder, frame.filename)]
    for frame in frames:
        frame.filename = os.path.relpath(frame.filename, folder)
    # None leaves out the line `Traceback ...`, as Python does for a file it cannot read
    report.stack = traceback.StackSummary.from_list(frames) if frames else None
    if _lies_in(folder, getattr(report, "filename", None)):  # of a SyntaxError
        report.filename = os.path.relpath(report.filename, folder)
    for other in (report.__cause__, report.__context__, *(report.exceptions or ())):
        _trim(other, folder, seen)


def _lies_in(folder: str, file: str | None) -> bool:
    return file is not None and file.startswith(folder + os.sep)


def _stream(number: int) -> TextIO:
    return open(number, "w", buffering=1, encoding="utf-8", newline="\n", closefd=False)


def _no_input(prompt: object = "") -> str:  # noqa: ARG001
    raise RuntimeError("nobody answers input() here; write the value into the program instead")
