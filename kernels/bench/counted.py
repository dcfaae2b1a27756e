"""The child process that ncu watches: runs each requested case once, with a mark before it.

`python -m kernels.bench.counted REQUESTS DONE`: REQUESTS is JSON, a list of
[implementation, stem, direction, dtype, shape]; DONE gets a line of JSON for each, null or why it
failed. Compiling and warming up happen outside the profiled window.
"""

import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from kernels.bench.cases import Case
from kernels.bench.measure import gradients_of, inputs_of
from kernels.bench.peers import prepared

CUDA: Any = torch.cuda


def run_once(name: str, case: Case) -> None:
    """Run one implementation of one case inside the profiled window."""
    module: Any = importlib.import_module(f"kernels.{case.stem}")
    inputs = inputs_of(case, module, "cuda")
    gradients = gradients_of(case, module, inputs)
    run = prepared(name, case.stem, module, inputs, case.direction, gradients)
    run()
    with window():
        run()


def mark() -> None:
    """Launch the kernel that begins a new case in ncu's table."""
    with window():
        CUDA._sleep(1)


@contextmanager
def window() -> Iterator[None]:
    torch.cuda.synchronize()
    CUDA.profiler.start()
    try:
        yield
        torch.cuda.synchronize()
    finally:
        CUDA.profiler.stop()


def main(arguments: list[str]) -> None:
    requests, done = map(Path, arguments)
    with done.open("w", encoding="utf-8") as out:
        for name, *fields in json.loads(requests.read_text("utf-8")):
            failed = None
            mark()
            try:
                run_once(name, Case(*fields))
            except Exception as fault:
                failed = f"{type(fault).__name__}: {(str(fault).splitlines() or [''])[0][:200]}"
            torch.cuda.empty_cache()
            print(json.dumps(failed), file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
