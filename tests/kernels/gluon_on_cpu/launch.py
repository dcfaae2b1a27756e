"""Put the stand-ins in the place of Gluon's language, in the modules that the kernels are in.

A kernel keeps its Python function, which looks its names up in its module: nothing is rewritten.
"""

import random
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import pytest
import torch
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonJITFunction

from tests.kernels.gluon_on_cpu import barriers, in_flight, language
from tests.kernels.gluon_on_cpu.memory import Descriptor, Pointer
from tests.kernels.gluon_on_cpu.turns import Program

STAND_INS = {
    "gl": language,
    "mbarrier": barriers,
    "tma": in_flight,
    "TensorDescriptor": Descriptor,
    "described": lambda x, block, _layout: Descriptor.from_tensor(x, list(block), None),
    "async_add": in_flight.async_add,
    "async_load": in_flight.async_load,
    "async_store": in_flight.async_store,
    "fence_async_shared": in_flight.fence_async_shared,
    "warpgroup_mma": in_flight.warpgroup_mma,
    "warpgroup_mma_wait": in_flight.warpgroup_mma_wait,
}


class Constant(int):
    """A whole number that is a constant of a kernel, and has a value for its launcher."""

    value = property(int)


class Kernel:
    """A function of Gluon that runs as it is written, called or launched."""

    def __init__(self, function: Callable[..., Any], seed: int) -> None:
        self.function, self.seed = function, seed
        self.__name__ = function.__name__

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __getitem__(self, grid: tuple[int]) -> Callable[..., None]:
        return partial(self.launch, grid[0])

    def launch(self, programs: int, *arguments: Any, num_warps: int) -> None:  # noqa: ARG002
        """Run one program after the other."""
        passed = [Pointer(x.view(-1)) if isinstance(x, torch.Tensor) else x for x in arguments]
        order = random.Random(self.seed)
        for pid in range(programs):
            Program(pid, programs, order).run(self.function, *passed)


def run_on_cpu(monkeypatch: pytest.MonkeyPatch, modules: list[ModuleType], seed: int) -> None:
    """Let the kernels of the modules run here; the seed decides the order of all turns."""
    for module in modules:
        for name, thing in [*vars(module).items()]:
            new = STAND_INS.get(name, thing)
            if isinstance(thing, GluonJITFunction):
                new = Kernel(thing.fn, seed)
            elif isinstance(thing, gl.constexpr):
                new = Constant(thing.value) if isinstance(thing.value, int) else thing.value
            monkeypatch.setattr(module, name, new)
