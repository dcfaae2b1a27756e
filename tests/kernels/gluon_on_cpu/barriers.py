"""Barriers in shared memory, under the names of Gluon's `mbarrier`.

A phase ends when as many have arrived as the barrier counts, and all bytes asked for have come.
"""

from typing import Any

from tests.kernels.gluon_on_cpu.turns import current, pause


class Barrier:
    """One barrier. `phase` is the parity of the phase that it is in."""

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.phase = self.count = self.pending = self.nbytes = 0
        current().program.barriers.append(self)

    def change(self, arrivals: int, nbytes: int) -> None:
        assert self.count, "the barrier is not initialised"
        self.pending -= arrivals
        self.nbytes += nbytes
        assert self.pending >= 0, f"more than the {self.count} arrivals that a phase has"
        if self.pending == self.nbytes == 0:
            self.phase ^= 1
            self.pending = self.count


class Barriers:
    """A ring of barriers."""

    def __init__(self, number: int) -> None:
        self.slots = [Barrier(slot) for slot in range(number)]

    def index(self, slot: Any) -> Barrier:
        assert 0 <= slot < len(self.slots), f"barrier {slot} of {len(self.slots)}"
        return self.slots[int(slot)]


def MBarrierLayout() -> Any:  # noqa: N802
    """Return nothing: where a barrier lies does not matter here."""
    return None


def init(barrier: Barrier, count: int) -> None:
    barrier.count = barrier.pending = count


def expect(barrier: Barrier, nbytes: int) -> None:
    pause()
    barrier.change(1, nbytes)


def arrive(barrier: Barrier, count: int) -> None:
    pause()
    barrier.change(count, 0)


def wait(barrier: Barrier, phase: Any, pred: Any = True) -> None:
    if pred:
        pause(lambda: barrier.phase != phase, f"phase {int(phase)} of slot {barrier.slot}")
