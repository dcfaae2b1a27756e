"""Softmax of rows of any width: read once where a row fits on the chip, streamed where not.

Rows of up to 1024 columns share a program, rows of up to 65536 have one each, and both are read
once and held; the widest of them in the 16 bits that they come in. Longer rows are streamed twice,
the second time mostly out of the caches.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl

from kernels.device import on_its_device
from kernels.differentiation import refuse_gradients
from kernels.work import Work

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
COLUMN_LIMIT = 2**31 - 2**15  # the loop over a row counts in 32 bits
# exp2 is one instruction; exp and a division of each number would be several.
LOG2_E = tl.constexpr(math.log2(math.e))


# --8<-- [start:kernel]
@triton.jit
def softmax_kernel(
    x_ptr, y_ptr,                                                  # (M, N); y contiguous
    stride_xm, stride_xn,                                          # elements
    M, N,                                                          # sizes
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """BLOCK_M whole rows."""
    offs_m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = (offs_m < M)[:, None] & (offs_n < N)[None, :]
    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn
    x = tl.load(x_ptrs, mask=mask, other=-float("inf")).to(tl.float32)
    row_max = tl.max(x, 1)
    row_max = tl.where(row_max == -float("inf"), 0.0, row_max)  # -inf - -inf is NaN
    p = tl.exp2((x - row_max[:, None]) * LOG2_E)
    total = tl.sum(p, 1)
    y = p * (1.0 / tl.where(total == 0.0, 1.0, total))[:, None]  # a row of -inf only: 0
    y_ptrs = y_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


# --8<-- [end:kernel]


# --8<-- [start:wide]
@triton.jit
def opaque(x):
    """Return x; what the compiler knew of it is forgotten.

    Else it would keep the 32-bit numbers that it makes of 16-bit ones, in twice the registers.
    """
    bits = x.to(tl.int16, bitcast=True)
    bits = tl.inline_asm_elementwise(
        "mov.b32 $0, $1;", "=r,r", [bits], dtype=tl.int16, is_pure=False, pack=2
    )
    return bits.to(x.dtype, bitcast=True)


@triton.jit
def softmax_wide_kernel(
    x_ptr, y_ptr,                                                  # (M, N); y contiguous
    stride_xm, stride_xn,                                          # elements
    N,                                                             # columns
    BLOCK_N: tl.constexpr, PARTS: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """One row in PARTS parts of BLOCK_N, read once and held as it came; exponentials made twice."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_N).to(tl.int64)
    parts = ()
    for i in tl.static_range(PARTS):
        offs_n = i * BLOCK_N + offs
        x_ptrs = x_ptr + row * stride_xm + offs_n * stride_xn
        parts += (tl.load(x_ptrs, mask=offs_n < N, other=-float("inf")),)
    highest = parts[0]
    for i in tl.static_range(1, PARTS):
        highest = tl.maximum(highest, parts[i])
    row_max = tl.max(highest.to(tl.float32), 0)
    row_max = tl.where(row_max == -float("inf"), 0.0, row_max)
    sums = tl.zeros((BLOCK_N,), tl.float32)
    again = ()
    for i in tl.static_range(PARTS):
        x = opaque(parts[i]) if PACKED else parts[i]
        sums += tl.exp2((x.to(tl.float32) - row_max) * LOG2_E)
        again += (x,)
    total = tl.sum(sums, 0)
    factor = 1.0 / tl.where(total == 0.0, 1.0, total)
    for i in tl.static_range(PARTS):
        x = opaque(again[i]) if PACKED else again[i]
        offs_n = i * BLOCK_N + offs
        y = tl.exp2((x.to(tl.float32) - row_max) * LOG2_E) * factor
        tl.store(y_ptr + row * N + offs_n, y.to(y_ptr.dtype.element_ty), mask=offs_n < N)


# --8<-- [end:wide]


# --8<-- [start:streamed]
@triton.jit
def softmax_streamed_kernel(
    x_ptr, y_ptr,                                                  # (M, N); y contiguous
    stride_xm, stride_xn,                                          # elements
    N,                                                             # columns
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One row in two passes of tiles: BLOCK_N online softmaxes side by side, then the result."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_N).to(tl.int64)
    running_max = tl.full((BLOCK_N,), -float("inf"), tl.float32)  # of every BLOCK_N-th column
    running_sum = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        offs_n = start + offs
        x_ptrs = x_ptr + row * stride_xm + offs_n * stride_xn
        x = tl.load(x_ptrs, mask=offs_n < N, other=-float("inf"), eviction_policy="evict_last")
        new_max = tl.maximum(running_max, x.to(tl.float32))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)  # nothing but -inf so far
        correction = tl.exp2((running_max - shift) * LOG2_E)
        running_sum = running_sum * correction + tl.exp2((x.to(tl.float32) - shift) * LOG2_E)
        running_max = new_max
    row_max = tl.max(running_max, 0)  # partial softmaxes merge like tiles
    shift = tl.where(row_max == -float("inf"), 0.0, row_max)
    total = tl.sum(running_sum * tl.exp2((running_max - shift) * LOG2_E), 0)
    factor = 1.0 / tl.where(total == 0.0, 1.0, total)
    for start in range(0, N, BLOCK_N):
        offs_n = start + offs
        x_ptrs = x_ptr + row * stride_xm + offs_n * stride_xn
        x = tl.load(x_ptrs, mask=offs_n < N, other=-float("inf"), eviction_policy="evict_first")
        y = tl.exp2((x.to(tl.float32) - shift) * LOG2_E) * factor
        tl.store(y_ptr + row * N + offs_n, y.to(y_ptr.dtype.element_ty), mask=offs_n < N)


# --8<-- [end:streamed]


# --8<-- [start:paths]
SEVERAL_ROWS, ONE_PASS = 1024, 65536  # widest rows of a path
# Widest row: rows a program, warps.
CONFIGS = {
    256: (0, 2),  # 0 rows: as many as make 2048 elements
    512: (4, 2),
    1024: (2, 4),
    4096: (1, 4),
    8192: (1, 8),
}
# The same for rows in parts: BLOCK_N, warps, most registers a thread (16-bit numbers), so that
# more than one program has room on an SM; None: no limit.
WIDE = {16384: (2048, 8, 80), 32768: (2048, 8, 128), 65536: (4096, 16, None)}
STREAMED = (8192, 32)  # BLOCK_N, warps


def path(n: int) -> str:
    """Return which path rows of n columns take: `several rows`, `one pass` or `streamed`."""
    return "several rows" if n <= SEVERAL_ROWS else "one pass" if n <= ONE_PASS else "streamed"


# --8<-- [end:paths]


# --8<-- [start:launch]
@on_its_device
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax of x along its last dimension. No gradients.

    A row that holds nothing but -inf gives 0 throughout, where `torch.softmax` gives NaN: no key
    is visible, so no weight is given. Rows that hold NaN or +inf are NaN, as in torch.

    Parameters
    ----------
    x : (..., N) float16, bfloat16 or float32; one dimension or more, any sizes, any strides

    Returns
    -------
    y : (..., N), dtype of x, contiguous; computed in float32

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.

    References
    ----------
    Milakov, Gimelshein, "Online normalizer calculation for softmax", 2018, arXiv:1805.02867,
    algorithm 3.
    """
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; allowed: {', '.join(map(str, DTYPES))}")
    if x.dim() == 0:
        raise ValueError("x has 0 dimensions; allowed: 1 or more, (..., N)")
    if x.shape[-1] > COLUMN_LIMIT:
        raise ValueError(f"x has {x.shape[-1]} columns; allowed: up to {COLUMN_LIMIT}")
    refuse_gradients(x=x)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return y
    N = x.shape[-1]
    rows = x.reshape(-1, N)  # copied only if the rows do not lie at one distance from each other
    M = rows.shape[0]
    if path(N) == "streamed":
        BLOCK_N, warps = STREAMED
        softmax_streamed_kernel[(M,)](rows, y, *rows.stride(), N, BLOCK_N, num_warps=warps)
        return y
    width = triton.next_power_of_2(N)
    if max(CONFIGS) < N:
        BLOCK_N, warps, registers = WIDE[width]
        packed = x.is_cuda and x.itemsize == 2  # the interpreter has no assembly
        softmax_wide_kernel[(M,)](
            rows, y, *rows.stride(), N, BLOCK_N, width // BLOCK_N, packed, num_warps=warps,
            maxnreg=registers if packed else None,
        )  # fmt: skip
        return y
    BLOCK_M, warps = CONFIGS[min(widest for widest in CONFIGS if widest >= N)]
    BLOCK_M = BLOCK_M or 2048 // width
    softmax_kernel[(triton.cdiv(M, BLOCK_M),)](
        rows, y, *rows.stride(), M, N, BLOCK_M, width, num_warps=warps
    )
    return y


# --8<-- [end:launch]


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax in float64, 0 in rows of -inf only."""
    x = x.double()
    empty = (x == float("-inf")).all(-1, keepdim=True)
    return torch.softmax(x.masked_fill(empty, 0.0), -1).masked_fill(empty, 0.0)


def inputs(shape: dict[str, Any], dtype: torch.dtype, device: str, seed: int = 0) -> dict[str, Any]:
    """Return x (M, N), random normal."""
    generator = torch.Generator(device).manual_seed(seed)
    size = shape["M"], shape["N"]
    return {"x": torch.randn(size, dtype=dtype, device=device, generator=generator)}


def work(shape: dict[str, Any], itemsize: int, passes: str = "forward") -> Work:
    """Bytes and FLOPs of one call: a maximum, a difference, an exp, a sum, a quotient a number."""
    if passes != "forward":
        raise ValueError(f"passes is {passes!r}; allowed: 'forward'")
    numbers = shape["M"] * shape["N"]
    reads = 2 if path(shape["N"]) == "streamed" else 1
    return Work(2 * numbers * itemsize, (reads + 1) * numbers * itemsize, 5 * numbers)


WIDTHS = (4096, 1024, 32768, 256, 512, 2048, 8192, 16384, 65536, 131072)
SHAPES: dict[str, list[dict[str, Any]]] = {
    "test": [
        {"M": M, "N": N}
        for M, N in (
            (1, 1), (7, 1), (1, 2), (33, 5), (65, 64), (9, 1000), (5, 1024),  # several rows
            (3, 1025), (2, 4097), (2, 20000), (1, 32768), (2, 32769),
            (1, 46336),  # one pass
            (2, 65537), (1, 100000),  # streamed
        )
    ],
    "bench": [{"M": 2**power // N, "N": N} for power in (28, 25) for N in WIDTHS],
}  # fmt: skip
