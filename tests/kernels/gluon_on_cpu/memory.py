"""Where a kernel keeps its numbers: registers, shared memory, and tensors in global memory."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from tests.kernels.gluon_on_cpu.turns import current, pause


class Value(torch.Tensor):
    """What a program holds in registers; how it lies in them is for the compiler alone."""

    type: Any = SimpleNamespace(layout=None)


def value(x: torch.Tensor) -> Value:
    return x.as_subclass(Value)


def nothing(dtype: torch.dtype) -> float | int:
    """What memory holds before it is written: NaN, or a whole number that no place has."""
    return math.nan if dtype.is_floating_point else torch.iinfo(dtype).min


class Tile:
    """Shared memory, or a view of it. It holds nothing until something has been written."""

    def __init__(self, data: torch.Tensor) -> None:
        self.data, self.dtype, self.shape = data, data.dtype, data.shape

    def index(self, slot: Any) -> "Tile":
        assert 0 <= slot < self.shape[0], f"slot {slot} of {self.shape[0]}"
        return Tile(self.data[int(slot)])

    def reshape(self, shape: list[int]) -> "Tile":
        return Tile(self.data.view(shape))

    def permute(self, order: tuple[int, ...]) -> "Tile":
        return Tile(self.data.permute(order))

    def slice(self, start: int, length: int, dim: int) -> "Tile":
        return Tile(self.data.narrow(dim, start, length))

    def load(self, _layout: Any) -> Value:
        pause()
        return value(self.data.clone())

    def store(self, x: Value) -> None:
        """Write. Until this warp's fence it is NaN, as a copy or a product may find it.

        Whole numbers go from warp to warp, which a barrier alone puts in order.
        """
        pause()
        assert x.shape == self.shape
        if not self.dtype.is_floating_point:
            self.data.copy_(x)
            return
        self.data.fill_(math.nan)
        current().unfenced.append(lambda: self.data.copy_(x))


def watched(data: torch.Tensor) -> Callable[[], torch.Tensor]:
    """Return what is read of `data` from now until the call: NaN where it has changed meanwhile."""
    before = data.clone()
    return lambda: torch.where(data == before, before, math.nan)


class Pointer:
    """An address of global memory; addresses outside of the tensor are refused."""

    def __init__(self, data: torch.Tensor, at: Any = 0) -> None:
        self.data, self.at = data, at

    def __add__(self, offset: Any) -> "Pointer":
        return Pointer(self.data, self.at + offset)

    def places(self) -> torch.Tensor:
        places = torch.as_tensor(self.at)
        assert ((places >= 0) & (places < len(self.data))).all(), "an address outside the tensor"
        return places


class Descriptor:
    """A tensor as TMA sees it: blocks of it, which may reach beyond its edges."""

    def __init__(
        self, x: torch.Tensor, shape: list[int], strides: list[int], block: list[int], layout: Any
    ) -> None:
        self.data, self.dtype, self.layout = x.as_strided(shape, strides), x.dtype, layout
        self.block_type = SimpleNamespace(shape=block, nbytes=math.prod(block) * x.itemsize)

    @classmethod
    def from_tensor(cls, x: torch.Tensor, block: list[int], layout: Any) -> "Descriptor":
        return cls(x, list(x.shape), list(x.stride()), block, layout)

    def inside(self, at: list[Any]) -> tuple[torch.Tensor, tuple[slice, ...]]:
        """Return what the tensor has of the block at `at`, and where in the block that is."""
        blocks = zip(map(int, at), self.block_type.shape, self.data.shape, strict=True)
        spans = [(first, max(0, first), min(first + size, end)) for first, size, end in blocks]
        ours = tuple(slice(begin - first, max(begin, end) - first) for first, begin, end in spans)
        return self.data[tuple(slice(begin, max(begin, end)) for _, begin, end in spans)], ours
