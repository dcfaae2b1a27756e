"""Every lab prints the same bytes on every Python found on this machine, and on every run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 72  # characters of a line that the page shows without scrolling
LABS = sorted(path.stem for path in (ROOT / "snippets").glob("*.py") if path.stem != "__init__")
ALL = """
import importlib, sys
for lab in sys.argv[1:]:
    print("==", lab)
    importlib.import_module("snippets." + lab).main()
"""


def works(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True).returncode == 0


MINORS = range(11, 15)
OTHERS = [
    python
    for minor in MINORS
    for python in (
        shutil.which(f"python3.{minor}"),
        *map(str, (Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python")),
    )
    if python and works(python)
]


def outputs(python: str, hash_seed: str) -> bytes:
    done = subprocess.run(
        [python, "-W", "error", "-c", ALL, *LABS],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture(scope="module")
def expected() -> bytes:
    return outputs(sys.executable, "0")


@pytest.mark.parametrize("python", [sys.executable, *OTHERS])
def test_the_labs_print_the_same_bytes(python: str, expected: bytes) -> None:
    assert outputs(python, "1234") == expected


def test_no_line_of_output_is_too_long_for_a_page(expected: bytes) -> None:
    long = [line for line in expected.decode().splitlines() if len(line) > WIDTH]
    assert long == [], f"longer than {WIDTH} characters"
