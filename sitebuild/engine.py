"""Python for the browser: fetch the pinned release, check it, and put it into a built site.

Run it: `python -m sitebuild.engine`; `make serve`, `make site` and `make test` do. A machine that
cannot fetch it builds the site without: labs then show their recorded output and say so.
"""

import hashlib
import json
import logging
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

from sitebuild.labs import ROOT

CACHE = ROOT / ".pyodide"  # not in .cache, which `zensical build --clean` empties
TIME_LIMIT_S = 300.0
log = logging.getLogger("mkdocs.engine")


class EngineError(RuntimeError):
    """A file of the engine is not the pinned one. The message names it."""


class OutOfReachError(RuntimeError):
    """The engine could not be fetched. The message says why."""


class Pin(NamedTuple):
    package: str
    version: str
    sha256: dict[str, str]  # of each file that the site needs

    @property
    def folder(self) -> Path:
        """Where the files lie once they are fetched and checked; it exists only then."""
        return CACHE / self.version

    def megabytes(self) -> float:
        """Return the size of the fetched files."""
        return sum((self.folder / name).stat().st_size for name in self.sha256) / 1e6


def pin() -> Pin:
    """Return what `requirements/pyodide.toml` pins."""
    return Pin(**tomllib.loads((ROOT / "requirements" / "pyodide.toml").read_text("utf-8")))


def check(folder: Path, pinned: Pin) -> None:
    """Raise `EngineError` unless `folder` holds the pinned files."""
    wrong = []
    for name, expected in pinned.sha256.items():
        path = folder / name
        found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
        if found != expected:
            wrong.append(f"\n  {name}: {found}, pinned is {expected}")
    if wrong:
        raise EngineError(
            f"{pinned.package} {pinned.version} is not what requirements/pyodide.toml pins, and "
            f"is refused:{''.join(wrong)}"
        )


def fetch() -> None:
    """Put the pinned files into `.pyodide/`, unless they are there.

    Raises
    ------
    EngineError
        If a file is not the pinned one; nothing of it is kept.
    OutOfReachError
        If npm, or the registry it asks, is out of reach.
    """
    pinned = pin()
    if pinned.folder.is_dir():
        try:
            return check(pinned.folder, pinned)
        except EngineError:
            shutil.rmtree(pinned.folder)
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=".new-") as scratch:
        files = Path(scratch) / "files"
        files.mkdir()
        _unpack(_download(pinned, Path(scratch)), files, pinned)
        check(files, pinned)
        for old in CACHE.glob("[!.]*"):
            shutil.rmtree(old, ignore_errors=True)
        files.rename(pinned.folder)
    return None


def _download(pinned: Pin, folder: Path) -> Path:
    npm = shutil.which("npm") or _npm_of_python()
    name = f"{pinned.package}@{pinned.version}"
    options = "--loglevel=error --fetch-retries=0 --fetch-timeout=120000 --ignore-scripts"
    command = [npm, "pack", name, *options.split()]
    _call(command, folder)
    archive = next(folder.glob("*.tgz"), None)
    if archive is None:
        raise OutOfReachError(f"npm pack {name} left no archive")
    return archive


def _unpack(archive: Path, folder: Path, pinned: Pin) -> None:
    """Write the pinned files of the archive into `folder`; `check` names those that are missing."""
    wanted = {f"package/{name}": name for name in pinned.sha256}
    try:
        with tarfile.open(archive) as members:
            for member in members:
                if member.isfile() and member.name in wanted:
                    data = members.extractfile(member)
                    (folder / wanted[member.name]).write_bytes(data.read() if data else b"")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise EngineError(f"{archive.name} cannot be read and is refused: {error}") from None


def _npm_of_python() -> str:
    """Return the npm of a Python package, for a machine without Node."""
    npm = Path(sys.executable).with_name("npm")
    if not npm.exists():
        print("Installing npm from a Python package")
        options = "--quiet --disable-pip-version-check --retries 0 --timeout 20 --require-hashes"
        install = [sys.executable, "-m", "pip", "install", *options.split(), "--requirement"]
        _call([*install, str(ROOT / "requirements" / "npm.txt")], ROOT)
    return str(npm)


def _call(command: list[str], folder: Path) -> None:
    shown = " ".join([Path(command[0]).name, *command[1:3]])
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OutOfReachError(f"{shown}: {error}") from None
    if done.returncode:
        complaints = [line for line in done.stderr.splitlines() if "error" in line.lower()]
        raise OutOfReachError(f"{shown}: {[*complaints, f'exit status {done.returncode}'][0]}")


def write_engine(site: Path) -> None:
    """Copy the engine into `site`, with an `engine.json` that names its version, or none."""
    pinned = pin()
    target = site / "assets" / "pyodide"
    version = None
    if not pinned.folder.is_dir():
        log.info("No Python for the browser: labs cannot be run in the page (make engine)")
    else:
        try:
            check(pinned.folder, pinned)
        except EngineError as error:
            log.warning(f"{error}\n`make engine` fetches it anew")
        else:
            shutil.copytree(pinned.folder, target / pinned.version, dirs_exist_ok=True)
            version = pinned.version
    target.mkdir(parents=True, exist_ok=True)
    (target / "engine.json").write_text(json.dumps({"version": version}) + "\n", "utf-8")


def main() -> None:
    try:
        fetch()
    except OutOfReachError as error:
        print(f"The site is built without Python for the browser: {error}", file=sys.stderr)
    except EngineError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
