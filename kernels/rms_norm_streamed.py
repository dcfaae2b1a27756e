"""Residual add and RMSNorm of rows that do not fit on the chip: read twice, written once."""

import triton
import triton.language as tl


# --8<-- [start:streamed]
@triton.jit
def rms_norm_streamed_kernel(
    x_ptr, residual_ptr, weight_ptr,                               # (M, N), (M, N), (N,)
    out_ptr, residual_out_ptr, rstd_ptr,                           # contiguous; rstd (M,) fp32
    stride_xm, stride_xn, stride_rm, stride_rn, stride_w,          # elements
    N, eps,                                                        # columns; to the mean square
    BLOCK_N: tl.constexpr, WITH_RSTD: tl.constexpr,
):  # fmt: skip
    """One row too long to hold, in two passes; the second finds most of it in the L2."""
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N).to(tl.int64)
        x_ptrs = x_ptr + row * stride_xm + offs_n * stride_xn
        r_ptrs = residual_ptr + row * stride_rm + offs_n * stride_rn
        x = tl.load(x_ptrs, mask=offs_n < N, other=0.0, eviction_policy="evict_last")
        r = tl.load(r_ptrs, mask=offs_n < N, other=0.0, eviction_policy="evict_last")
        h = x.to(tl.float32) + r.to(tl.float32)
        h = h.to(residual_out_ptr.dtype.element_ty).to(tl.float32)  # as it is stored
        squares += h * h
    rstd = 1.0 / tl.sqrt(tl.sum(squares, 0) / N + eps)
    if WITH_RSTD:
        tl.store(rstd_ptr + row, rstd)
    for start in range(0, N, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = offs_n < N
        x_ptrs = x_ptr + row * stride_xm + offs_n * stride_xn
        r_ptrs = residual_ptr + row * stride_rm + offs_n * stride_rn
        x = tl.load(x_ptrs, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        r = tl.load(r_ptrs, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        weight = tl.load(weight_ptr + offs_n * stride_w, mask=mask, other=0.0).to(tl.float32)
        h, offsets = (x + r).to(residual_out_ptr.dtype.element_ty), row * N + offs_n
        tl.store(residual_out_ptr + offsets, h, mask=mask)
        h = h.to(tl.float32)
        tl.store(out_ptr + offsets, (h * rstd * weight).to(out_ptr.dtype.element_ty), mask=mask)


# --8<-- [end:streamed]
