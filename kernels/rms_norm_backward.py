"""Gradients of the fused residual add and RMSNorm.

x and residual enter only through their sum h, so they share one gradient. The gradient of weight is
a sum over all rows: each program keeps its own and they are added at the end, always in the same
order, so that two runs agree bit for bit.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.rms_norm_backward_streamed import column_gradients_kernel, row_sums_kernel
from kernels.work import Work


# --8<-- [start:kernel]
@triton.jit
def rms_norm_backward_kernel(
    dout_ptr, dresidual_ptr, h_ptr, weight_ptr, rstd_ptr,          # dresidual: of residual_out
    dx_ptr, dweight_ptr,                                           # (M, N); (programs, N) fp32
    stride_om, stride_on, stride_rm, stride_rn, stride_w,          # elements
    M, N, tiles, programs,                                         # sizes; tiles of BLOCK_M rows
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HAS_DRESIDUAL: tl.constexpr,
):  # fmt: skip
    """Tiles of BLOCK_M whole rows, and this program's share of dweight."""
    offs_n = tl.arange(0, BLOCK_N).to(tl.int64)
    mask_n = offs_n < N
    weight = tl.load(weight_ptr + offs_n * stride_w, mask=mask_n, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for tile in range(tl.program_id(0), tiles, programs):
        first = tl.full((), BLOCK_M, tl.int64) * tile  # 64 bits, as rows may pass 2**31
        offs_m = first + tl.arange(0, BLOCK_M)
        mask_m = offs_m < M
        mask = mask_m[:, None] & mask_n[None, :]
        offsets = offs_m[:, None] * N + offs_n[None, :]
        dout_ptrs = dout_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on
        dout = tl.load(dout_ptrs, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + offs_m, mask=mask_m, other=0.0)
        normed = tl.load(h_ptr + offsets, mask=mask, other=0.0).to(tl.float32) * rstd[:, None]
        dweight += dout * normed
        dnormed = dout * weight[None, :]
        along = tl.sum(dnormed * normed, 1) / N  # what the norm takes away again
        dx = (dnormed - normed * along[:, None]) * rstd[:, None]
        if HAS_DRESIDUAL:
            r_ptrs = dresidual_ptr + offs_m[:, None] * stride_rm + offs_n[None, :] * stride_rn
            dx += tl.load(r_ptrs, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_ptr + offsets, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    share = dweight_ptr + tl.program_id(0).to(tl.int64) * N + offs_n
    tl.store(share, tl.sum(dweight, 0), mask=mask_n)


# --8<-- [end:kernel]


# Widest row: elements of a tile (at least one row), warps, programs an SM.
CONFIGS = {1024: (4096, 4, 8), 4096: (4096, 8, 8), 8192: (0, 32, 1)}
ONE_PASS = 8192  # widest row that is held; its gradients fill twice the registers of forward
ROW_SUMS = (16384, 32)  # BLOCK_N, warps
COLUMNS = (4, 512, 4)  # BLOCK_M, BLOCK_N, warps
STRIP = 128  # rows whose gradients of weight one program adds up


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
        BLOCK_N, warps = ROW_SUMS
        along = torch.empty(M, dtype=torch.float32, device=h.device)
        row_sums_kernel[(M,)](
            dout, h, weight, rstd, along, *dout.stride(), weight.stride(0),
            N, BLOCK_N, num_warps=warps,
        )  # fmt: skip
        BLOCK_M, BLOCK_N, warps = COLUMNS
        strips, blocks = triton.cdiv(M, STRIP), triton.cdiv(N, BLOCK_N)
        parts = torch.empty((strips, N), dtype=torch.float32, device=h.device)
        column_gradients_kernel[(strips * blocks,)](
            *tensors, parts, along, *strides, M, N, blocks,
            STRIP // BLOCK_M, BLOCK_M, BLOCK_N, has_dresidual, num_warps=warps,
        )  # fmt: skip
        return dx, parts.sum(0).to(weight.dtype)
    BLOCK_N = triton.next_power_of_2(N)
    tile, warps, per_sm = CONFIGS[min(width for width in CONFIGS if width >= N)]
    BLOCK_M = max(1, tile // BLOCK_N)
    tiles = triton.cdiv(M, BLOCK_M)
    sms = torch.cuda.get_device_properties(h.device).multi_processor_count if h.is_cuda else 1
    programs = min(tiles, per_sm * sms)
    parts = torch.empty((programs, N), dtype=torch.float32, device=h.device)
    rms_norm_backward_kernel[(programs,)](
        *tensors, parts, *strides, M, N, tiles, programs, BLOCK_M, BLOCK_N, has_dresidual,
        num_warps=warps,
    )  # fmt: skip
    return dx, parts.sum(0).to(weight.dtype)


# --8<-- [end:launch]


def backward_work(shape: dict[str, Any], itemsize: int) -> Work:
    """Bytes and FLOPs of backward: three tensors read, one written; ten operations a number."""
    M, N = shape["M"], shape["N"]
    small = 2 * N * itemsize + 4 * M  # weight and its gradient; rstd
    again = 2 * M * N * itemsize + 8 * M if N > ONE_PASS else 0  # dout and h twice; row sums
    whole = 4 * M * N * itemsize + small
    return Work(whole, whole + again, 10 * M * N)
