"""Run a lab or a figure in a child process and return what it prints.

A lab never runs inside the build itself: there its main guard would not fire, the prints of
what it imports would vanish, and one `sys.exit(0)` would end the build with no site.
"""

import ast
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUARD = ROOT / "sitebuild" / "guard.py"
PACKAGES = ("snippets", "kernels", "sitebuild")
TIME_LIMIT_S = 20.0
OUTPUT_LIMIT_BYTES = 64 * 1024
# control characters, and a line that would end the fence around an output
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|^ *(?:`{3,}|~{3,})", re.M)


class LabError(RuntimeError):
    """A lab failed, hung, printed nothing, or printed too much. The message names it."""


def run(module: str, time_limit_s: float = TIME_LIMIT_S) -> str:
    """Return the standard output of `python -m module`, from the cache when nothing changed.

    Parameters
    ----------
    module : a module of this repository, for example `"snippets.roofline"`.
    time_limit_s : seconds after which the lab counts as hanging and is killed.

    Raises
    ------
    LabError
        If the module does not exist, exits non-zero, runs past the time limit, writes to
        standard error, prints nothing, more than 64 KiB, or what is not plain UTF-8 text.
    """
    cached = ROOT / ".cache" / "labs" / f"{module}-{_key(module)}.txt"
    if cached.exists():
        return cached.read_text("utf-8")
    output = _run_child(module, time_limit_s)
    cached.parent.mkdir(parents=True, exist_ok=True)
    for old in cached.parent.glob(f"{module}-*.txt"):
        old.unlink(missing_ok=True)
    _write_atomically(cached, output)
    return output


def source_files(module: str) -> list[Path]:
    """Return the files of this repository that `module` runs: itself and all it imports."""
    start = _path_of(module)
    if start is None:
        allowed = ", ".join(PACKAGES)
        raise LabError(f"no module {module!r}; labs and figures live in the packages {allowed}")
    found = {start}
    queue = [start]
    while queue:
        for path in imports_of(queue.pop()):
            if path not in found:
                found.add(path)
                queue.append(path)
    return sorted(found)


def _run_child(module: str, time_limit_s: float) -> str:
    # Only PATH and the temporary folder come from outside, so that no setting of the
    # reader's machine changes what a page shows.
    env = {k: os.environ[k] for k in ("PATH", "TMPDIR", "SYSTEMROOT") if k in os.environ}
    env |= {"PYTHONHASHSEED": "0", "PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"}
    # Files and not pipes: what a lab leaves running may hold a pipe open for ever.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [sys.executable, "-W", "error", GUARD, module],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        deadline = time.monotonic() + time_limit_s
        try:
            while child.poll() is None:
                if time.monotonic() > deadline:
                    raise LabError(
                        f"{module} ran past its time limit of {time_limit_s:g} s and was stopped"
                    )
                if max(os.fstat(f.fileno()).st_size for f in (output, errors)) > OUTPUT_LIMIT_BYTES:
                    break
                time.sleep(0.002)
        finally:
            _kill(child)
            child.wait()
        output.seek(0)
        errors.seek(0)
        printed = output.read(OUTPUT_LIMIT_BYTES + 1)
        complaint = errors.read(OUTPUT_LIMIT_BYTES).decode("utf-8", "replace").strip()[-4000:]
    if len(printed) > OUTPUT_LIMIT_BYTES:
        raise LabError(f"{module} printed more than {OUTPUT_LIMIT_BYTES // 1024} KiB")
    if child.returncode:
        where = _place_of(complaint)
        raise LabError(f"{module} ended with exit status {child.returncode}{where}\n{complaint}")
    if complaint:
        raise LabError(f"{module} wrote to standard error\n{complaint}")
    try:
        text = printed.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LabError(f"{module} printed what is not UTF-8: {error}") from None
    if not text.strip():
        raise LabError(f"{module} printed nothing; does it call main() under its main guard?")
    if found := UNPRINTABLE.search(text):
        raise LabError(f"{module} printed {found[0]!r}, which a page cannot show as text")
    return text


def _place_of(traceback: str) -> str:
    """Return ` at file:line: error` for the last frame that lies in a lab or what it imports."""
    traceback = traceback.split("\nException ignored in", 1)[0]  # on the way out
    frames = re.findall(r'^ *File "(.+)", line (\d+)', traceback, re.M)
    ours = [(path, line) for file, line in frames if _is_ours(path := Path(file))]
    if not ours:
        return ""
    path, line = ours[-1]
    return f" at {path.relative_to(ROOT).as_posix()}:{line}: {traceback.splitlines()[-1]}"


def _is_ours(path: Path) -> bool:
    inside = path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PACKAGES
    return inside and path != GUARD


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the child with everything it started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        child.kill()


def _key(module: str) -> str:
    """Digest of all that can change the output: code, captured results, Python."""
    digest = hashlib.sha256(f"{sys.version} {module}".encode())
    files = source_files(module)
    files += sorted((ROOT / "kernels" / "results").glob("*.json"))
    if ROOT / "kernels" / "bench" / "stale.py" in files:  # what it calls stale hangs on them
        files += sorted((ROOT / "kernels").rglob("*.py"))
    if ROOT / "sitebuild" / "references.py" in files:
        files += [ROOT / "docs" / "reference" / name for name in ("glossary.md", "sources.md")]
    for path in files:
        data = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT).as_posix()} {len(data)}\n".encode() + data)
    return digest.hexdigest()[:24]


def _path_of(module: str) -> Path | None:
    if module.split(".")[0] not in PACKAGES:
        return None
    base = ROOT.joinpath(*module.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):  # Python's own order
        if path.is_file():
            return path
    return None


def imports_of(path: Path) -> set[Path]:
    """Return the project files that one file imports, the packages' own `__init__` included."""
    names = _names_imported(path, path.stat().st_mtime_ns)
    return {found for name in names if (found := _path_of(name)) is not None}


@cache
def _names_imported(path: Path, mtime_ns: int) -> set[str]:  # noqa: ARG001, part of the cache key
    names: set[str] = set()
    parts = path.relative_to(ROOT).with_suffix("").parts
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError:
        return names  # the child process will report it, with file and line
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = list(parts[: len(parts) - node.level]) if node.level else []
            module = ".".join([*start, node.module] if node.module else start)
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    names.update(".".join(parts[:n]) for n in range(1, len(parts)))
    for name in list(names):
        pieces = name.split(".")
        names.update(".".join(pieces[:n]) for n in range(1, len(pieces)))
    return names


def _write_atomically(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
    Path(temporary).replace(path)
