"""Residual add and RMSNorm in one kernel: the sum is normalised while it is still on the chip.

Rows of up to 32768 columns are held here, longer ones streamed by `kernels/rms_norm_streamed.py`;
backward is in `kernels/rms_norm_backward.py`. Unfused, the add reads two tensors and writes one,
the norm reads one and writes one: five passes over the rows instead of four.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from kernels.device import on_its_device
from kernels.rms_norm_backward import backward_work, rms_norm_backward
from kernels.rms_norm_streamed import rms_norm_streamed_kernel
from kernels.work import Work

DTYPES = (torch.float16, torch.bfloat16, torch.float32)
COLUMN_LIMIT = 2**31 - 2**15  # the loop over a row counts in 32 bits


# --8<-- [start:kernel]
@triton.jit
def rms_norm_kernel(
    x_ptr, residual_ptr, weight_ptr,                               # (M, N), (M, N), (N,)
    out_ptr, residual_out_ptr, rstd_ptr,                           # contiguous; rstd (M,) fp32
    stride_xm, stride_xn, stride_rm, stride_rn, stride_w,          # elements
    M, N, eps,                                                     # sizes; added to the mean square
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WITH_RSTD: tl.constexpr,
):  # fmt: skip
    """One tile of BLOCK_M whole rows, held between the sum of squares and the result."""
    offs_m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N).to(tl.int64)
    mask_m, mask_n = offs_m < M, offs_n < N
    mask = mask_m[:, None] & mask_n[None, :]
    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn
    r_ptrs = residual_ptr + offs_m[:, None] * stride_rm + offs_n[None, :] * stride_rn
    x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
    h = x + tl.load(r_ptrs, mask=mask, other=0.0).to(tl.float32)
    # Backward sees the stored sum: normalize that one, not the one before it was rounded.
    stored = h.to(residual_out_ptr.dtype.element_ty)
    offsets = offs_m[:, None] * N + offs_n[None, :]
    tl.store(residual_out_ptr + offsets, stored, mask=mask)  # now: a wide row fills the registers
    h = stored.to(tl.float32)
    rstd = 1.0 / tl.sqrt(tl.sum(h * h, 1) / N + eps)
    if WITH_RSTD:
        tl.store(rstd_ptr + offs_m, rstd, mask=mask_m)
    weight = tl.load(weight_ptr + offs_n * stride_w, mask=mask_n, other=0.0).to(tl.float32)
    out = h * rstd[:, None] * weight[None, :]
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


# --8<-- [end:kernel]


ONE_PASS = 32768  # widest row that is held
# Widest row: elements of a tile (at least one row), warps.
CONFIGS = {256: (2048, 4), 1024: (2048, 2), 4096: (4096, 4), 8192: (0, 8), ONE_PASS: (0, 32)}
STREAMED = (16384, 32)  # BLOCK_N, warps


# --8<-- [start:launch]
class RmsNorm(torch.autograd.Function):
    """Connects the two files; the normalised rows are recomputed from residual_out and rstd."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[torch.Tensor, torch.Tensor]:
        x, residual, weight, eps = args
        ctx.set_materialize_grads(False)
        with_rstd = any(ctx.needs_input_grad)  # only backward reads it
        N = x.shape[-1]
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        residual_out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        rstd = torch.empty(x.shape[:-1], dtype=torch.float32, device=x.device)
        ctx.save_for_backward(residual_out, weight, rstd)
        if x.numel() == 0:
            return out, residual_out
        rows, residual_rows = x.reshape(-1, N), residual.reshape(-1, N)
        M = rows.shape[0]
        tensors = rows, residual_rows, weight, out, residual_out, rstd
        strides = *rows.stride(), *residual_rows.stride(), weight.stride(0)
        if N > ONE_PASS:
            BLOCK_N, warps = STREAMED
            rms_norm_streamed_kernel[(M,)](
                *tensors, *strides, N, eps, BLOCK_N, with_rstd, num_warps=warps
            )
            return out, residual_out
        BLOCK_N = triton.next_power_of_2(N)
        tile, warps = CONFIGS[min(width for width in CONFIGS if width >= N)]
        BLOCK_M = max(1, tile // BLOCK_N)
        rms_norm_kernel[(triton.cdiv(M, BLOCK_M),)](
            *tensors, *strides, M, N, eps, BLOCK_M, BLOCK_N, with_rstd, num_warps=warps
        )
        return out, residual_out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        dx, dweight = rms_norm_backward(*gradients, *ctx.saved_tensors)
        return dx, dx, dweight, None


@on_its_device
def rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return h / sqrt(mean(h^2) + eps) * weight and h = x + residual, differentiable in all three.

    Computed in float32 from the sum as it is stored, rounded to the dtype of x.

    Parameters
    ----------
    x, residual : (..., N) float16, bfloat16 or float32; one dimension or more, any strides
    weight : (N,), dtype of x or float32
    eps : at least 0

    Returns
    -------
    out : (..., N), dtype of x, contiguous
    residual_out : (..., N), dtype of x, contiguous; x + residual

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.

    References
    ----------
    Zhang, Sennrich, "Root Mean Square Layer Normalization", 2019, arXiv:1910.07467, equation 4.
    """
    if x.dtype not in DTYPES:
        raise ValueError(f"x is {x.dtype}; allowed: {', '.join(map(str, DTYPES))}")
    if x.dim() == 0:
        raise ValueError("x has 0 dimensions; allowed: 1 or more, (..., N)")
    if x.shape[-1] > COLUMN_LIMIT:
        raise ValueError(f"x has {x.shape[-1]} columns; allowed: up to {COLUMN_LIMIT}")
    if (residual.shape, residual.dtype, residual.device) != (x.shape, x.dtype, x.device):
        raise ValueError(
            f"residual is {tuple(residual.shape)} {residual.dtype} on {residual.device}; "
            f"allowed: as x, {tuple(x.shape)} {x.dtype} on {x.device}"
        )
    fits = weight.shape == x.shape[-1:] and weight.device == x.device
    if not fits or weight.dtype not in (x.dtype, torch.float32):
        raise ValueError(
            f"weight is {tuple(weight.shape)} {weight.dtype} on {weight.device}; "
            f"allowed: ({x.shape[-1]},) {x.dtype} or torch.float32 on {x.device}"
        )
    if not 0 <= eps < float("inf"):
        raise ValueError(f"eps is {eps}; allowed: finite and at least 0")
    return RmsNorm.apply(x, residual, weight, eps)  # type: ignore[no-any-return]


# --8<-- [end:launch]


def reference(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return out and residual_out in float64; differentiable."""
    h = x.double() + residual.double()
    return h / (h.square().mean(-1, keepdim=True) + eps).sqrt() * weight.double(), h


def inputs(shape: dict[str, Any], dtype: torch.dtype, device: str, seed: int = 0) -> dict[str, Any]:
    """Return x and residual (M, N) and weight (N,), random normal."""
    generator = torch.Generator(device).manual_seed(seed)
    M, N = shape["M"], shape["N"]
    sizes = {"x": (M, N), "residual": (M, N), "weight": (N,)}
    options: dict[str, Any] = {"dtype": dtype, "device": device, "generator": generator}
    return {name: torch.randn(size, **options) for name, size in sizes.items()}


def work(shape: dict[str, Any], itemsize: int, passes: str = "forward") -> Work:
    """Bytes and FLOPs of one call: two tensors read and two written; five operations a number.

    Forward alone, as measured here; before a backward it also writes rstd, 4 bytes a row.
    """
    if passes == "backward":
        return backward_work(shape, itemsize)
    M, N = shape["M"], shape["N"]
    reads = 4 if N > ONE_PASS else 2
    return Work((4 * M * N + N) * itemsize, ((reads + 2) * M * N + N) * itemsize, 5 * M * N)


WIDTHS = (4096, 1024, 32768, 256, 512, 2048, 8192, 16384, 65536)
SHAPES: dict[str, list[dict[str, Any]]] = {
    "test": [
        {"M": M, "N": N}
        for M, N in (
            (1, 1), (7, 1), (1, 2), (300, 5), (65, 64), (9, 1000), (5, 4097),
            (2, 8193), (1, 32768), (2, 32769), (1, 46336),
        )
    ],
    "bench": [{"M": 2**power // N, "N": N} for power in (28, 25) for N in WIDTHS],
}  # fmt: skip
