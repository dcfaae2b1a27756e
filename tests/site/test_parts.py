"""The files of a lesson are those of its labs and exercises too."""

import subprocess
import sys

from sitebuild.labs import ROOT
from sitebuild.parts import files, parts

TRACKED = [
    "docs/lessons/roofline.md",
    "kernels/results/roofline.h200.json",
    "snippets/waves.py",
    "snippets/practice/fused_bytes.py",
    "tests/practice/test_fused_bytes.py",
    "tests/mutants/snippets/waves.toml",
    "snippets/banks.py",
    "docs/kernels/microwaves.md",
    "kernels/bench/waves.py",
]


def test_a_lesson_has_its_labs_and_exercises() -> None:
    assert parts("roofline")[0] == "roofline"
    assert {"fusion", "waves", "fused_bytes"} <= set(parts("roofline"))
    assert files("roofline", TRACKED) == TRACKED[:6]


def test_another_stem_has_itself() -> None:
    assert parts("rms_norm") == ["rms_norm"]
    own = ["snippets/waves.py", "tests/mutants/snippets/waves.toml", "kernels/bench/waves.py"]
    assert files("waves", TRACKED) == own


def test_a_name_that_no_file_has_is_said() -> None:
    command = [sys.executable, "-m", "sitebuild.parts", "nonesuch"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "no file is named nonesuch\n")
