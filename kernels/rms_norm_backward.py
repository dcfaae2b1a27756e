"""Gradients of the fused residual add and RMSNorm.

x and residual enter only through their sum h, so they share one gradient. The gradient of weight is
a sum over all rows: each program keeps its own and they are added at the end, always in the same
order, so that two runs agree bit for bit.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.work import Work


# --8<-- [start:kernel]
@triton.jit
def rms_norm_backward_kernel(
    dout_ptr, dresidual_ptr, h_ptr, weight_ptr, rstd_ptr,          # dresidual: of residual_out
    dx_ptr, dweight_ptr,                                           # (M, N); (programs, N) fp32
    stride_om, stride_on, stride_rm, stride_rn, stride_w,          # elements
    M, N, programs,                                                # sizes; programs in the grid
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HAS_DRESIDUAL: tl.constexpr,
):  # fmt: skip
    """Tiles of BLOCK_M whole rows, and this program's share of dweight."""
    offs_n = tl.arange(0, BLOCK_N).to(tl.int64)
    mask_n = offs_n < N
    weight = tl.load(weight_ptr + offs_n * stride_w, mask=mask_n, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK_N,), tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(M, BLOCK_M), programs):
        offs_m = (tile * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
        mask_m = offs_m < M
        mask = mask_m[:, None] & mask_n[None, :]
        offsets = offs_m[:, None] * N + offs_n[None, :]
        dout_ptrs = dout_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on
        dout = tl.load(dout_ptrs, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + offs_m, mask=mask_m, other=0.0)
        normed = tl.load(h_ptr + offsets, mask=mask, other=0.0).to(tl.float32) * rstd[:, None]
        dweight += tl.sum(dout * normed, 0)
        dnormed = dout * weight[None, :]
        along = tl.sum(dnormed * normed, 1) / N  # what the norm takes away again
        dx = (dnormed - normed * along[:, None]) * rstd[:, None]
        if HAS_DRESIDUAL:
            r_ptrs = dresidual_ptr + offs_m[:, None] * stride_rm + offs_n[None, :] * stride_rn
            dx += tl.load(r_ptrs, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_ptr + offsets, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    tl.store(dweight_ptr + tl.program_id(0).to(tl.int64) * N + offs_n, dweight, mask=mask_n)


# --8<-- [end:kernel]


# --8<-- [start:streamed]
@triton.jit
def rms_norm_backward_streamed_kernel(
    dout_ptr, dresidual_ptr, h_ptr, weight_ptr, rstd_ptr,          # dresidual: of residual_out
    dx_ptr,                                                        # (M, N) contiguous
    stride_om, stride_on, stride_rm, stride_rn, stride_w,          # elements
    N,                                                             # columns
    BLOCK_N: tl.constexpr, HAS_DRESIDUAL: tl.constexpr,
):  # fmt: skip
    """One row too long to hold, in two passes."""
    row = tl.program_id(0).to(tl.int64)
    rstd = tl.load(rstd_ptr + row)
    products = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = offs_n < N
        dout = tl.load(dout_ptr + row * stride_om + offs_n * stride_on, mask=mask, other=0.0)
        h = tl.load(h_ptr + row * N + offs_n, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + offs_n * stride_w, mask=mask, other=0.0).to(tl.float32)
        products += dout.to(tl.float32) * weight * (h * rstd)
    along = tl.sum(products, 0) / N
    for start in range(0, N, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = offs_n < N
        dout = tl.load(dout_ptr + row * stride_om + offs_n * stride_on, mask=mask, other=0.0)
        h = tl.load(h_ptr + row * N + offs_n, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + offs_n * stride_w, mask=mask, other=0.0).to(tl.float32)
        dx = (dout.to(tl.float32) * weight - h * rstd * along) * rstd
        if HAS_DRESIDUAL:
            r_ptrs = dresidual_ptr + row * stride_rm + offs_n * stride_rn
            dx += tl.load(r_ptrs, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_ptr + row * N + offs_n, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def weight_gradient_kernel(
    dout_ptr, h_ptr, rstd_ptr,                                     # (M, N), (M, N), (M,)
    dweight_ptr,                                                   # (strips, N) fp32
    stride_om, stride_on,                                          # elements
    M, N, strip,                                                   # sizes; rows of a strip
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """BLOCK_N columns of dweight, summed over one strip of rows."""
    blocks = tl.cdiv(N, BLOCK_N)
    number = tl.program_id(0) // blocks
    offs_n = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_n = offs_n < N
    dweight = tl.zeros((BLOCK_N,), tl.float32)
    stop = tl.minimum((number + 1) * strip, M)
    for start in range(number * strip, stop, BLOCK_M):
        offs_m = start + tl.arange(0, BLOCK_M).to(tl.int64)
        mask = (offs_m < stop)[:, None] & mask_n[None, :]
        dout_ptrs = dout_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on
        dout = tl.load(dout_ptrs, mask=mask, other=0.0).to(tl.float32)
        h = tl.load(h_ptr + offs_m[:, None] * N + offs_n[None, :], mask=mask, other=0.0)
        rstd = tl.load(rstd_ptr + offs_m, mask=offs_m < stop, other=0.0)
        dweight += tl.sum(dout * h.to(tl.float32) * rstd[:, None], 0)
    tl.store(dweight_ptr + number.to(tl.int64) * N + offs_n, dweight, mask=mask_n)


# --8<-- [end:streamed]

TILE = 4096  # elements of a tile of short rows
ONE_PASS = 8192  # widest row that is held; its gradients fill twice the registers of forward
WARPS = {4096: 8, 8192: 16}  # widest row: warps
PROGRAMS_PER_SM = 2
STREAMED = (8192, 16)  # BLOCK_N, warps
STRIP = (16, 256, 8)  # BLOCK_M, BLOCK_N, warps of the weight's own kernel
STRIP_ROWS = 512


# --8<-- [start:launch]
def rms_norm_backward(
    dout: torch.Tensor | None,
    dresidual: torch.Tensor | None,
    h: torch.Tensor,
    weight: torch.Tensor,
    rstd: torch.Tensor,
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Return the gradient that x and residual share, and that of weight.

    Parameters
    ----------
    dout, dresidual : gradients of out and residual_out (..., N), any strides; None is zero
    h : (..., N) contiguous, the sum as forward returned it
    weight : (N,)
    rstd : (...) float32, one over the root mean square of each row
    """
    if dout is None:
        return dresidual, None
    N = h.shape[-1]
    dx = torch.empty(h.shape, dtype=h.dtype, device=h.device)
    if h.numel() == 0:
        return dx, torch.zeros_like(weight)
    M = h.numel() // N
    dout = dout.reshape(M, N)
    has_dresidual = dresidual is not None
    added = dout if dresidual is None else dresidual.reshape(M, N)
    tensors = dout, added, h, weight, rstd, dx
    strides = *dout.stride(), *added.stride(), weight.stride(0)
    if N > ONE_PASS:
        BLOCK_N, warps = STREAMED
        rms_norm_backward_streamed_kernel[(M,)](
            *tensors, *strides, N, BLOCK_N, has_dresidual, num_warps=warps
        )
        BLOCK_M, BLOCK_N, warps = STRIP
        strips = triton.cdiv(M, STRIP_ROWS)
        parts = torch.empty((strips, N), dtype=torch.float32, device=h.device)
        weight_gradient_kernel[(strips * triton.cdiv(N, BLOCK_N),)](
            dout, h, rstd, parts, *dout.stride(), M, N, STRIP_ROWS,
            BLOCK_M, BLOCK_N, num_warps=warps,
        )  # fmt: skip
        return dx, parts.sum(0).to(weight.dtype)
    BLOCK_N = triton.next_power_of_2(N)
    BLOCK_M, warps = max(1, TILE // BLOCK_N), WARPS[max(TILE, BLOCK_N)]
    sms = torch.cuda.get_device_properties(h.device).multi_processor_count if h.is_cuda else 1
    programs = min(triton.cdiv(M, BLOCK_M), PROGRAMS_PER_SM * sms)
    parts = torch.empty((programs, N), dtype=torch.float32, device=h.device)
    rms_norm_backward_kernel[(programs,)](
        *tensors, parts, *strides, M, N, programs, BLOCK_M, BLOCK_N, has_dresidual, num_warps=warps
    )
    return dx, parts.sum(0).to(weight.dtype)


# --8<-- [end:launch]


def backward_work(shape: dict[str, Any], itemsize: int) -> Work:
    """Bytes and FLOPs of backward: three tensors read, one written; ten operations a number."""
    M, N = shape["M"], shape["N"]
    small = 2 * N * itemsize + 4 * M  # weight and its gradient; rstd
    again = 4 * M * N * itemsize if N > ONE_PASS else 0  # dout and h, by both further passes
    whole = 4 * M * N * itemsize + small
    return Work(whole, whole + again, 10 * M * N)
