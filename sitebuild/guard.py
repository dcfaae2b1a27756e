"""Keep what a page runs from the network, from files elsewhere and from other programs.

A page must follow from the repository alone. The lab runner starts each lab through this file,
`python sitebuild/guard.py snippets.roofline`; the blocks of a page and the cells of a notebook are
watched inside the build and the kernel that run them. It catches mistakes and says what is wrong
with them; code that wants to get round it can, so that CI runs a stranger's change without a
secret and without a right to write.
"""

import os
import re
import runpy
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LAB_RUNNER = str(ROOT / "sitebuild" / "labs.py")
# how markdown-exec names the code of a block, and ipykernel that of a notebook's cell
OF_A_PAGE = re.compile(r"^<code block: |\bipykernel_\d+\b")
REPOSITORY = f"{ROOT}{os.sep}"
TEMPORARY = os.path.realpath(os.environ.get("TMPDIR") or "/tmp") + os.sep
PYTHON = {f"{prefix}{os.sep}" for prefix in (sys.prefix, sys.base_prefix)}
DEVICES = {os.devnull, "/dev/urandom"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# events of Python's audit hooks, with the places of their arguments that matter
NETWORK = {
    "socket.connect": 1,
    "socket.bind": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}
PROGRAMS = {
    "subprocess.Popen": 1,
    "os.system": 0,
    "os.exec": 0,
    "os.posix_spawn": 0,
    "os.spawn": 1,
    "pty.spawn": 0,
}
WRITES = {  # the paths they change
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.link": (1,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.utime": (0,),
    "shutil.rmtree": (0,),
    "sqlite3.connect": (0,),
}
BY_FOLDER = {"os.remove", "os.mkdir", "os.rmdir"}  # a name in an open folder, its last argument


class GuardError(RuntimeError):
    """What a page runs did something that a page may not depend on. The message says what."""


def complaint(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Return what is wrong with an audited event, or None."""
    if event == "open":
        return _complaint_on_open(*arguments)
    if event in NETWORK:
        return f"may not use the network, tried {arguments[NETWORK[event]]!r}"
    if event in PROGRAMS:
        return f"may not start another program, tried {arguments[PROGRAMS[event]]!r}"
    if event in WRITES and not (event in BY_FOLDER and arguments[-1] not in (-1, None)):
        for place in WRITES[event]:
            if found := _complaint_on_write(arguments[place]):
                return found
    return None


def _complaint_on_open(path: Any, _: str | None, flags: int) -> str | None:
    if isinstance(path, int) or path in DEVICES:  # a number is a file that is open already
        return None
    if flags & WRITING:
        return _complaint_on_write(path)
    if _lies_in(path, (REPOSITORY, TEMPORARY, *PYTHON)):
        return None
    return f"may read files of the repository only, tried {os.fsdecode(path)!r}"


def _complaint_on_write(path: Any) -> str | None:
    is_temporary = _lies_in(path, (TEMPORARY,)) and not _lies_in(path, (REPOSITORY,))
    if is_temporary or "__pycache__" in os.fsdecode(path):
        return None
    return f"may not write outside the temporary folder, tried {os.fsdecode(path)!r}"


def _lies_in(path: Any, folders: tuple[str, ...]) -> bool:
    """Is this in one of the folders, by its name or by its real name."""
    name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100, resolve() would follow links
    names = (name + os.sep, os.path.realpath(name) + os.sep)
    return any(name.startswith(folders) for name in names)


def guard_lab() -> None:
    """Refuse such events in this process from now on."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if found := complaint(event, arguments):
            raise GuardError(f"a lab {found}")

    sys.addaudithook(hook)


def guard_blocks() -> None:
    """Refuse such events in a build or a kernel when a block or cell of a page is behind them."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        found = complaint(event, arguments)
        if found and _is_asked_by_a_block():
            raise GuardError(f"a block of a page {found}")

    sys.addaudithook(hook)


def _is_asked_by_a_block() -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == LAB_RUNNER:
            return False  # it keeps a cache and starts the labs
        if OF_A_PAGE.search(frame.f_code.co_filename):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def main() -> None:
    module = sys.argv[1]
    sys.path[0] = str(ROOT)
    guard_lab()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
