"""What the kernel of a notebook says while a page is built."""

import subprocess
import sys

from sitebuild.labs import ROOT

START = """
from jupyter_client.manager import start_new_kernel
from sitebuild.notebooks import guard_kernels

guard_kernels()
manager, client = start_new_kernel()
client.stop_channels()
manager.shutdown_kernel()
"""


def test_a_kernel_starts_without_a_warning() -> None:
    command = [sys.executable, "-c", START]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
