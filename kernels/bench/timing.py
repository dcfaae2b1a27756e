"""Time on the GPU: cold L2, warm clocks, implementations in alternating order, quantiles.

One timed run is: overwrite a buffer far larger than L2, record an event, run, record an event.
Filling the buffer gives the host a lead, so that its time is not counted. What keeps the host
as busy as the GPU would use up that lead, and is replayed from a CUDA graph.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import Any, Protocol

QUANTILES = (0.2, 0.5, 0.8)
FLUSH_BYTES = 512 * 2**20
VISITS = 8  # of each implementation, at least
VISIT_US = 15_000.0  # time that one visit spends on one implementation, roughly
RUNS = (2, 12)  # fewest and most runs of a visit
STABLE = 0.02  # two warm-up batches that differ by less count as stable
WARM_UP_BATCHES = 12
HOST_RUNS = 3

Run = Callable[[], object]


class Timer(Protocol):
    def batch(self, run: Run, n: int) -> list[float]:
        """Run n times and return n times in microseconds."""

    def host_us(self, run: Run) -> float:
        """Return how long the host is busy with one run, in microseconds."""

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

    def host_us(self, run: Run) -> float:
        taken = []
        for _ in range(HOST_RUNS):
            self.cuda.synchronize()
            began = perf_counter()
            run()
            taken.append(perf_counter() - began)
        self.cuda.synchronize()
        return median(taken) * 1e6

    def graph(self, run: Run) -> Run:
        graph = self.cuda.CUDAGraph()
        # Backward runs on the stream that forward ran on, so a capture takes that one as well. The
        # default stream cannot be captured; another one stands in for it.
        stream = self.cuda.current_stream()
        own = None if stream == self.cuda.default_stream() else stream
        with self.cuda.graph(graph, stream=own):
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


def in_turn(names: Sequence[str]) -> list[list[str]]:
    """Return orders, VISITS or more, in which each name follows every other equally often.

    A board at its power limit is slower after a neighbour that heats it, so neighbours change. Of
    an odd number of names some pairs meet once more than others.

    References
    ----------
    Williams, "Experimental designs balanced for the estimation of residual effects of treatments",
    Australian Journal of Scientific Research A 2, 1949.
    """
    n = len(names) + len(names) % 2
    zigzag = [(i + 1) // 2 if i % 2 else -i // 2 for i in range(n)]  # 0 1 -1 2 -2 ...
    orders = [[names[(first + step) % n] for step in zigzag if (first + step) % n < len(names)]
              for first in range(n)]  # fmt: skip
    return orders * -(-VISITS // n)


def interleaved(timer: Timer, runs: Mapping[str, Run]) -> dict[str, list[float] | Exception]:
    """Time all implementations of one case, in turn.

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
    for order in in_turn(list(runs)):
        for name in order:
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
        "repetitions": f"{VISITS} visits or more of {RUNS[0]} to {RUNS[1]} runs",
        "quantiles": list(QUANTILES),
        "l2": "cold",
        "flush_bytes": FLUSH_BYTES,
        "order": "in turn; each follows every other about equally often (Williams design)",
        "inputs": "normal distribution",
        "graphs": "where one takes less than twice the time of the host that launches it",
    }
