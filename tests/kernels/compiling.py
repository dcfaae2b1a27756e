"""What compilers make of the kernels, for tests that need no GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def uninterpreted(*command: str) -> str:
    """Return what Python prints where Triton interprets nothing."""
    environment = {name: x for name, x in os.environ.items() if name != "TRITON_INTERPRET"}
    ran = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, cwd=ROOT
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def compiled_attention(
    kernel: str, generation: int, itemsize: int, D: int, config: tuple[int, ...],
    mask: str = "causal",
) -> dict[str, Any]:  # fmt: skip
    """Return `shared` bytes a block, `registers` a thread, and `products_of` on Hopper.

    Masks are none, causal and window.
    """
    sizes = map(str, (generation, itemsize, D, *config))
    printed = uninterpreted("-m", "tests.kernels.compile_attention", kernel, mask, *sizes)
    found: dict[str, Any] = json.loads(printed)
    return found
