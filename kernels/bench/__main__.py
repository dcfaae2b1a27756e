"""`python -m kernels.bench [stem ...]`: measure kernels on the CUDA device of this machine."""

import argparse
import importlib
import sys
import time
from pathlib import Path
from typing import Any

from kernels.bench.cases import JOBS

RESULTS = Path(__file__).resolve().parents[1] / "results"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m kernels.bench", description=__doc__)
    made.add_argument("stems", nargs="*", metavar="stem", help=f"default: {', '.join(JOBS)}")
    made.add_argument("--device-name", help="name for the result file and its pages")
    made.add_argument("--quick", action="store_true", help="few shapes, one data type")
    made.add_argument("--commit", help="the commit of this tree, where git does not know it")
    made.add_argument("--dirty", action=argparse.BooleanOptionalAction, default=None)
    made.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    made.add_argument("--minutes", type=float, help="stop cleanly after so many minutes")
    made.add_argument("--publish", action="store_true", help="write results with cases left")
    made.add_argument("--again", action="store_true", help="measure what is complete anew")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the job. Returns 0 when all is measured, 3 when some is left, 2 without a GPU."""
    began = time.monotonic()
    asked = parser().parse_args(arguments)
    if unknown := [stem for stem in asked.stems if stem not in JOBS]:
        print(f"no kernel {unknown[0]!r}; allowed: {', '.join(JOBS)}", file=sys.stderr)
        return 2
    if complaint := no_device():
        print(complaint, file=sys.stderr)
        return 2
    import torch

    from kernels.bench import ceilings, counters, launched, launches, provenance
    from kernels.bench.job import Order, run
    from kernels.bench.measure import Machine
    from kernels.bench.timing import CudaTimer

    cuda: Any = torch.cuda
    cuda.set_stream(cuda.Stream())  # the default stream cannot be captured
    timer = CudaTimer()
    facts = provenance.device_facts()
    machine = Machine(
        timer=timer,
        device="cuda",
        facts=facts | {"name": asked.device_name or facts["name"]},
        versions=provenance.versions(),
        ceilings=lambda: ceilings.measure(timer),
        clocks=provenance.Clocks,
        copy_of=ceilings.copy_of,
        traffic=counters.count,
        launches=launches.measure,
        peak=launched.peak_bytes,
        launched=launched.launched,
    )
    order = Order(
        out=asked.out,
        resume_from=(RESULTS,),
        quick=asked.quick,
        commit=provenance.commit(asked.commit),
        dirty=provenance.dirty() if asked.dirty is None else asked.dirty,
        deadline=began + 60 * asked.minutes if asked.minutes else float("inf"),
        publish=asked.publish,
        again=asked.again,
    )
    left: list[str] = []
    for stem in asked.stems or JOBS:
        try:
            left += run(stem, importlib.import_module(f"kernels.{stem}"), machine, order)
        except KeyboardInterrupt:
            print("\ninterrupted; what was measured is kept, the same command goes on",
                  file=sys.stderr)  # fmt: skip
            return 130
    for label in left:
        print(f"left: {label}")
    return 3 if left else 0


def no_device() -> str | None:
    """Return why nothing can be measured here, or None."""
    try:
        import torch
    except ImportError:
        return "the benchmark needs torch with CUDA, and torch is not installed"
    if not torch.cuda.is_available():
        return "the benchmark needs a CUDA GPU, and torch sees none"
    return None


if __name__ == "__main__":
    sys.exit(main())
