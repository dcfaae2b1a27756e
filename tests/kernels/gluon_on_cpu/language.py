"""What kernels use of Gluon's language `gl`, under the same names, on the CPU."""

from typing import Any

import torch

from tests.kernels.gluon_on_cpu.barriers import Barriers
from tests.kernels.gluon_on_cpu.memory import Pointer, Tile, Value, nothing, value
from tests.kernels.gluon_on_cpu.turns import current, pause

float16, bfloat16, float32 = torch.float16, torch.bfloat16, torch.float32
int32, int64 = torch.int32, torch.int64
static_range = range


def layout(*_arguments: Any, **_options: Any) -> None:
    """Return nothing: which thread holds which number is for the compiler alone."""


SliceLayout = DotOperandLayout = NVMMADistributedLayout = layout
BlockedLayout = SwizzledSharedLayout = layout


class NVMMASharedLayout:
    """The same for shared memory."""

    def __init__(self, **_options: Any) -> None: ...

    get_default_for = staticmethod(layout)


def program_id(_axis: int) -> Value:
    return value(torch.tensor(current().program.pid))


def num_programs(_axis: int) -> Value:
    return value(torch.tensor(current().program.programs))


def warp_specialize(parts: list[Any], _warps: list[int], _registers: list[int]) -> None:
    """Run all parts side by side, and go on when all have ended."""
    program = current().program
    begun = [program.begin(function, arguments) for function, arguments in parts]
    pause(lambda: not set(begun) & set(program.warps), "those it began")


def allocate_shared_memory(dtype: torch.dtype, shape: list[int], _layout: Any) -> Any:
    if dtype == int64:
        return Barriers(shape[0])
    return Tile(torch.full(shape, nothing(dtype), dtype=dtype))


def load(pointer: Pointer) -> Value:
    return value(pointer.data[pointer.places()])


def atomic_add(pointer: Pointer, x: int, sem: str = "acq_rel") -> Value:  # noqa: ARG001
    before = load(pointer).clone()
    pointer.data[pointer.places()] += x
    return before


def store(pointer: Pointer, x: Any, mask: Any = True) -> None:
    written = torch.as_tensor(mask).expand(torch.as_tensor(x).shape)
    at = Pointer(pointer.data, torch.as_tensor(pointer.at)[written]).places()
    pointer.data[at] = torch.as_tensor(x, dtype=pointer.data.dtype)[written]


def cdiv(a: Any, b: Any) -> Any:
    return -(-a // b)


def minimum(a: Any, b: Any) -> Any:
    return torch.minimum(torch.as_tensor(a), torch.as_tensor(b))


def maximum(a: Any, b: Any) -> Any:
    return torch.maximum(torch.as_tensor(a), torch.as_tensor(b))


def arange(start: int, end: int, _layout: Any) -> Value:
    return value(torch.arange(start, end))


def full(shape: list[int], x: Any, dtype: torch.dtype, _layout: Any) -> Value:
    return value(torch.as_tensor(x, dtype=dtype).expand(shape))


def zeros(shape: list[int], dtype: torch.dtype, layout: Any) -> Value:
    return full(shape, 0.0, dtype, layout)


def convert_layout(x: Value, _layout: Any, assert_trivial: bool = False) -> Value:  # noqa: ARG001
    return x


def max(x: Value, axis: int) -> Any:
    return x.amax(axis)


def sum(x: Value, axis: int) -> Any:
    return x.sum(axis)


to_tensor, exp2, log2, where = torch.as_tensor, torch.exp2, torch.log2, torch.where
