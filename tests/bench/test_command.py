"""The command line: refusals in one line, and what it asks for."""

import subprocess
import sys
from pathlib import Path

import pytest

from kernels.bench.__main__ import no_device, parser

ROOT = Path(__file__).resolve().parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kernels.bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.skipif(no_device() is None, reason="needs a machine without a CUDA GPU")
def test_without_a_gpu_it_refuses_in_one_line() -> None:
    done = bench("softmax")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("the benchmark needs")
    assert "CUDA" in done.stderr


def test_an_unknown_kernel_is_named_with_what_is_allowed() -> None:
    done = bench("sortmax")
    assert done.returncode == 2
    assert done.stderr.startswith("no kernel 'sortmax'; allowed: softmax, rms_norm, matmul, ")


def test_what_is_not_said_is_left_open() -> None:
    asked = parser().parse_args([])
    assert (asked.stems, asked.commit, asked.dirty, asked.minutes) == ([], None, None, None)
    assert asked.out.name == "results"


def test_everything_can_be_said() -> None:
    line = "softmax matmul --device-name X --quick --commit abc --no-dirty --minutes 8.5 --publish"
    asked = parser().parse_args([*line.split(), "--again"])
    assert asked.stems == ["softmax", "matmul"]
    assert (asked.device_name, asked.quick, asked.commit) == ("X", True, "abc")
    assert (asked.dirty, asked.minutes, asked.publish, asked.again) == (False, 8.5, True, True)
