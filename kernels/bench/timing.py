"""Time on the GPU: cold L2, warm clocks, implementations in alternating order, quantiles.

One timed run is: overwrite a buffer far larger than L2, record an event, run, record an event.
Filling the buffer takes longer than launching, so the host is ahead and its time is not counted.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, Protocol

QUANTILES = (0.2, 0.5, 0.8)
FLUSH_BYTES = 512 * 2**20
VISITS = 4  # A B C C B A A B C C B A
VISIT_US = 30_000.0  # time that one visit spends on one implementation, roughly
RUNS = (3, 25)  # fewest and most runs of a visit
STABLE = 0.02  # two warm-up batches that differ by less count as stable
WARM_UP_BATCHES = 12
GRAPH_BELOW_US = 50.0  # shorter runs are replayed from a CUDA graph

Run = Callable[[], object]


class Timer(Protocol):
    def batch(self, run: Run, n: int) -> list[float]:
        """Run n times and return n times in microseconds."""

    def graph(self, run: Run) -> Run:
        """Return something that replays what `run` launches."""


class CudaTimer:
    """CUDA events around each run, L2 overwritten before it."""

    def __init__(self, flush_bytes: int = FLUSH_BYTES) -> None:
        import torch

        self.cuda: Any = torch.cuda
        self.buffer = torch.empty(flush_bytes, dtype=torch.int8, device="cuda")

    def batch(self, run: Run, n: int) -> list[float]:
        events = [[self.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(n)]
        for start, end in events:
            self.buffer.zero_()
            start.record()
            run()
            end.record()
        self.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in events]

    def graph(self, run: Run) -> Run:
        graph = self.cuda.CUDAGraph()
        with self.cuda.graph(graph):
            run()
        replay: Run = graph.replay
        return replay


def quantiles(times: Sequence[float], at: Sequence[float] = QUANTILES) -> list[float]:
    """Return quantiles with linear interpolation between the two nearest times."""
    if not times:
        raise ValueError("quantiles need at least one time, got none")
    ordered = sorted(times)
    found = []
    for q in at:
        place = q * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        found.append(ordered[low] + (place - low) * (ordered[high] - ordered[low]))
    return found


def warm(timer: Timer, run: Run) -> float:
    """Run until two batches in a row agree, and return the last median in microseconds."""
    last = median(timer.batch(run, 2))
    for _ in range(WARM_UP_BATCHES):
        now = median(timer.batch(run, 5 if last < VISIT_US else 2))
        if abs(now - last) <= STABLE * last:
            return now
        last = now
    return last


def interleaved(timer: Timer, runs: Mapping[str, Run]) -> dict[str, list[float] | Exception]:
    """Time all implementations of one case, forwards and backwards through their order.

    Returns
    -------
    For each name all its times in microseconds, or the exception that it ended with. A failure
    takes nothing away from the others.
    """
    outcome: dict[str, list[float] | Exception] = {}
    reps: dict[str, int] = {}
    for name, run in runs.items():
        try:
            each = warm(timer, run)
        except Exception as fault:
            outcome[name] = fault
        else:
            outcome[name], reps[name] = [], max(RUNS[0], min(RUNS[1], int(VISIT_US / each)))
    for visit in range(VISITS):
        for name in list(runs) if visit % 2 == 0 else reversed(list(runs)):
            times = outcome[name]
            if isinstance(times, Exception):
                continue
            try:
                times += timer.batch(runs[name], reps[name])
            except Exception as fault:
                outcome[name] = fault
    return outcome


def method() -> dict[str, Any]:
    """Return how times are taken, for the result file."""
    return {
        "timer": "CUDA events",
        "warm_up": f"batches of 5 until two agree within {STABLE:.0%}, at most {WARM_UP_BATCHES}",
        "repetitions": f"{VISITS} visits of {RUNS[0]} to {RUNS[1]} runs",
        "quantiles": list(QUANTILES),
        "l2": "cold",
        "flush_bytes": FLUSH_BYTES,
        "order": "forwards and backwards in turn: A B C C B A",
        "inputs": "normal distribution",
        "graph_below_us": GRAPH_BELOW_US,
    }
