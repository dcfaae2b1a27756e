"""TO FILL one sentence on what it computes and how: here, every element times two."""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.work import Work

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


# --8<-- [start:kernel]
@triton.jit
def new_stem_kernel(
    x_ptr, y_ptr,                                                  # (N,), both contiguous
    N,                                                             # elements
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """TO FILL what one program does: BLOCK_N elements."""
    offs_n = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offs_n < N
    x = tl.load(x_ptr + offs_n, mask=mask).to(tl.float32)
    tl.store(y_ptr + offs_n, (x * 2).to(y_ptr.dtype.element_ty), mask=mask)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def new_stem(x: torch.Tensor) -> torch.Tensor:
    """Return 2 x. No gradients.

    Parameters
    ----------
    x : float16, bfloat16 or float32, any shape, any strides

    Returns
    -------
    y : shape and dtype of x, contiguous

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.

    References
    ----------
    TO FILL authors, title, year, address, equation or algorithm.
    """
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; allowed: {', '.join(map(str, DTYPES))}")
    if x.requires_grad and torch.is_grad_enabled():
        raise ValueError("x requires a gradient; allowed: none, or under torch.no_grad()")
    x = x.contiguous()
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    N, BLOCK_N = x.numel(), 1024
    if N:
        new_stem_kernel[(triton.cdiv(N, BLOCK_N),)](x, y, N, BLOCK_N)
    return y


# --8<-- [end:launch]


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return the same in float64; shares nothing with the kernel."""
    return x.double() + x.double()


def eager(x: torch.Tensor) -> torch.Tensor:
    """Return the same in ordinary PyTorch, which sets how exact the kernel must be."""
    return x * 2


def inputs(shape: dict[str, Any], dtype: torch.dtype, device: str, seed: int = 0) -> dict[str, Any]:
    """Return x (M, N), random normal."""
    generator = torch.Generator(device).manual_seed(seed)
    size = shape["M"], shape["N"]
    return {"x": torch.randn(size, dtype=dtype, device=device, generator=generator)}


def work(shape: dict[str, Any], itemsize: int, passes: str = "forward") -> Work:
    """Bytes and FLOP of one call: each element read once, multiplied, written once."""
    if passes != "forward":
        raise ValueError(f"passes is {passes!r}; allowed: 'forward'")
    numbers = shape["M"] * shape["N"]
    return Work(2 * numbers * itemsize, 2 * numbers * itemsize, numbers)


SHAPES: dict[str, list[dict[str, Any]]] = {
    "test": [{"M": M, "N": N} for M, N in ((1, 1), (3, 5), (1, 1024), (1, 1025), (7, 700))],
    "bench": [{"M": 2**power // 4096, "N": 4096} for power in (28, 25)],
}
