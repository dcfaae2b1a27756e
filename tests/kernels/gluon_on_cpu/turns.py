"""Warps of one program: threads that take turns, in an order that a seed decides.

One thread runs at a time, until it comes to shared memory, a barrier, a copy or a product. Then the
turn goes to whoever ranks first of those who can go on, warps and copies that could land, and ranks
are drawn anew now and then: so one warp runs far ahead, another falls behind, and copies come late.
When nothing can go on, that is a hang, seen at once.
"""

import random
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

ANEW = 0.05  # how often who has the turn gets another rank
TURNS = 100_000  # a program of the tests takes some thousands


class Warp(threading.Thread):
    """One role of a program, of one warp or of a warpgroup that walks as one."""

    def __init__(self, program: "Program", function: Callable[..., None], arguments: Any) -> None:
        super().__init__(daemon=True, name=f"{function.__name__} {len(program.warps)}")
        self.program, self.function, self.arguments = program, function, arguments
        self.turn = threading.Lock()
        self.turn.acquire()
        self.may_go_on: Callable[[], bool] = lambda: True
        self.waits_for = ""
        # what it began and has not waited for, the oldest first, and what it has not fenced
        self.products: list[Callable[[], Any]] = []
        self.stores: list[Callable[[], Any]] = []
        self.unfenced: list[Callable[[], Any]] = []

    def run(self) -> None:
        self.turn.acquire()
        try:
            self.function(*self.arguments)
            assert not self.products, f"{self.name} ends while a product is under way"
            assert not self.stores, f"{self.name} ends while a store reads shared memory"
        except Exception as fault:
            self.program.fault = self.program.fault or fault
        finally:
            self.program.warps.remove(self)
            self.program.turn.release()

    def go_on(self) -> None:
        """Run until the next pause, or the end. Called by the program."""
        self.turn.release()
        self.program.turn.acquire()

    def place(self) -> str:
        """The lines it stands at, outermost first, without those of this model."""
        frames = traceback.extract_stack(sys._current_frames()[self.ident or 0])
        model = {*map(str, Path(__file__).parent.glob("*.py")), threading.__file__}
        return " > ".join(f.line or "" for f in frames if f.filename not in model)


def current() -> Warp:
    """Return the warp whose turn it is."""
    warp = threading.current_thread()
    assert isinstance(warp, Warp)
    return warp


def pause(until: Callable[[], bool] = lambda: True, waits_for: str = "") -> None:
    """Give the turn away, and have it again some time after `until` holds."""
    warp = current()
    warp.may_go_on, warp.waits_for = until, waits_for
    warp.program.turn.release()
    warp.turn.acquire()
    assert not warp.program.over, "another warp has failed"


class Program:
    """One program of a launch: its warps, its barriers, and the copies that are under way."""

    def __init__(self, pid: int, programs: int, order: random.Random) -> None:
        self.pid, self.programs, self.order = pid, programs, order
        self.turn = threading.Lock()
        self.turn.acquire()
        self.warps: list[Warp] = []
        self.loads: list[Callable[[], None]] = []
        self.barriers: list[Any] = []
        self.fault: Exception | None = None
        self.over = False

    def begin(self, function: Callable[..., None], arguments: Any) -> Warp:
        """Let one more warp take part."""
        self.warps.append(Warp(self, function, arguments))
        self.warps[-1].start()
        return self.warps[-1]

    def run(self, function: Callable[..., None], *arguments: Any) -> None:
        """Run the kernel to its end, and see that it leaves nothing behind."""
        self.begin(function, arguments)
        try:
            self.take_turns()
        finally:
            self.over = True
            for warp in [*self.warps]:  # after a fault, each ends where it stands
                warp.go_on()
        assert not self.loads, "the program ends while a copy is under way"
        asked = [barrier.nbytes for barrier in self.barriers]
        assert not any(asked), f"bytes asked for, less bytes that came: {asked}"

    def take_turns(self) -> None:
        """Give turns until no warp is left, one has failed, or all wait."""
        ranks: dict[Any, float] = {}
        for _ in range(TURNS):
            if self.fault:
                raise self.fault
            if not self.warps:
                return
            ready = [warp for warp in self.warps if warp.may_go_on()] + self.loads
            assert ready, "\n".join(
                ["a hang:", *(f"{w.name} waits for {w.waits_for}: {w.place()}" for w in self.warps)]
            )
            for one in ready:
                ranks.setdefault(one, self.order.random())
            first = min(ready, key=ranks.__getitem__)
            if self.order.random() < ANEW:
                ranks[first] = self.order.random()
            if isinstance(first, Warp):
                first.go_on()
            else:
                self.loads.remove(first)
                first()
        raise AssertionError(f"no end after {TURNS} turns")
