"""Tiles of a matrix product: the order in which they are done, and how one is fetched."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


# --8<-- [start:tiles]
@triton.jit
def load_tile(
    x, row, column, ROWS, COLUMNS,                                 # operand; corner; sizes
    BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr, TMA: tl.constexpr, FLIPPED: tl.constexpr,
):  # fmt: skip
    """A tile of x from its corner, 0 beyond the ends; x is a descriptor or pointer and strides."""
    if TMA and FLIPPED:  # the columns of x are contiguous: the descriptor is of its transpose
        tile = x.load([column, row]).T
    elif TMA:
        tile = x.load([row, column])
    else:
        offs_r = (row + tl.arange(0, BLOCK_R)).to(tl.int64)
        offs_c = (column + tl.arange(0, BLOCK_C)).to(tl.int64)
        mask = (offs_r < ROWS)[:, None] & (offs_c < COLUMNS)[None, :]
        tile = tl.load(x[0] + offs_r[:, None] * x[1] + offs_c[None, :] * x[2], mask=mask, other=0.0)
    return tile


@triton.jit
def grouped_tile(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Row and column of a tile, GROUP_M rows of tiles at a time, column after column."""
    group = tile // (GROUP_M * tiles_n)
    rows = tl.minimum(tiles_m - group * GROUP_M, GROUP_M)  # the last group may be smaller
    within = tile % (GROUP_M * tiles_n)
    return group * GROUP_M + within % rows, within // rows


# --8<-- [end:tiles]


def operand(x: torch.Tensor, rows: int, columns: int) -> tuple[TensorDescriptor | None, bool]:
    """Return a TMA descriptor of (rows, columns) tiles of x and whether it is of the transpose.

    None where TMA cannot fetch them: it needs one dimension with stride 1, a start and a distance
    between rows that are multiples of 16 bytes, and rows that do not overlap.
    """
    flipped = x.stride(1) != 1
    y, block = (x.T, [columns, rows]) if flipped else (x, [rows, columns])
    distance = y.stride(0) * x.itemsize
    apart = y.stride(1) == 1 and y.stride(0) >= y.shape[1]
    old = x.is_cuda and torch.cuda.get_device_capability(x.device)[0] < 9
    if old or not apart or distance % 16 or x.data_ptr() % 16:
        return None, False
    return TensorDescriptor(y, list(y.shape), list(y.stride()), block), flipped
