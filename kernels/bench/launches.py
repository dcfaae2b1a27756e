"""What a launch costs: the time of a call among equal calls, with and without a CUDA graph.

The device is never the limit for small problems; the host is. A graph launches the same kernels
with one call, so the difference between the two is the host's work.
"""

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import torch

from kernels.bench.cases import Case
from kernels.bench.measure import describe, inputs_of
from kernels.bench.peers import prepared, ready
from kernels.bench.timing import quantiles

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
CALLS = 20  # equal calls in one timed run
RUNS = 25
NAMES = ("ours", "eager", "sdpa-cudnn")


def shape_of(N: int) -> dict[str, Any]:
    return {"B": 1, "H": 8, "H_KV": 8, "N_Q": N, "N_K": N, "D": 64, "causal": False}


def measure(module: ModuleType) -> list[dict[str, Any]]:
    """Return a row for each length and implementation: us of one call, stream and graph.

    The L2 is warm and the inputs stay the same: this is about launching, not about memory.
    """
    rows = []
    for N in LENGTHS:
        case = Case("flash_attention", "forward", "bf16", shape_of(N))
        inputs = inputs_of(case, module, "cuda")
        for name in NAMES:
            row = {"implementation": name, **case.fields()}
            try:
                call = ready(prepared(name, case.stem, module, inputs, "forward"))
                row |= {"us": per_call(partial(_repeat, call))}
                row |= {"graph_us": per_call(captured(call))}
            except Exception as fault:
                row |= {"error": describe(fault)}
            rows.append(row)
    return rows


def captured(call: Callable[[], object]) -> Callable[[], object]:
    """Return the replay of a graph of CALLS calls."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _repeat(call)
    replay: Callable[[], object] = graph.replay
    return replay


def per_call(run: Callable[[], object]) -> list[float]:
    """Return the quantiles of the time of one call in microseconds."""
    cuda: Any = torch.cuda
    times = []
    for _ in range(RUNS + 3):
        start, end = (cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / CALLS)
    return [round(us, 3) for us in quantiles(times[3:])]


def _repeat(call: Callable[[], object]) -> None:
    for _ in range(CALLS):
        call()
