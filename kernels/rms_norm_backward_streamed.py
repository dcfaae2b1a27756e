"""Gradients of RMSNorm for rows too long to hold: first one number a row, then columns."""

import triton
import triton.language as tl


# --8<-- [start:streamed]
@triton.jit
def row_sums_kernel(
    dout_ptr, h_ptr, weight_ptr, rstd_ptr, along_ptr,              # (M, N) twice, (N,), (M,) twice
    stride_om, stride_on, stride_w,                                # elements; h contiguous
    N,                                                             # columns
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """The mean over one row of dout * weight * normalised h: what the norm takes away again."""
    row = tl.program_id(0).to(tl.int64)
    products = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, N, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask = offs_n < N
        dout = tl.load(dout_ptr + row * stride_om + offs_n * stride_on, mask=mask, other=0.0)
        h = tl.load(h_ptr + row * N + offs_n, mask=mask, other=0.0)
        weight = tl.load(weight_ptr + offs_n * stride_w, mask=mask, other=0.0)
        products += dout.to(tl.float32) * weight.to(tl.float32) * h.to(tl.float32)
    tl.store(along_ptr + row, tl.sum(products, 0) * tl.load(rstd_ptr + row) / N)


@triton.jit
def column_gradients_kernel(
    dout_ptr, dresidual_ptr, h_ptr, weight_ptr, rstd_ptr,          # dresidual: of residual_out
    dx_ptr, dweight_ptr, along_ptr,                                # (M, N); (strips, N) fp32; (M,)
    stride_om, stride_on, stride_rm, stride_rn, stride_w,          # elements
    M, N, blocks,                                                  # sizes; blocks of columns
    TILES: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HAS_DRESIDUAL: tl.constexpr,
):  # fmt: skip
    """BLOCK_N columns of dx over a strip of TILES * BLOCK_M rows, and their share of dweight."""
    strip, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    offs_n = block.to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_n = offs_n < N
    weight = tl.load(weight_ptr + offs_n * stride_w, mask=mask_n, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for tile in range(TILES):
        offs_m = (strip.to(tl.int64) * TILES + tile) * BLOCK_M + tl.arange(0, BLOCK_M)
        mask_m = offs_m < M
        mask = mask_m[:, None] & mask_n[None, :]
        offsets = offs_m[:, None] * N + offs_n[None, :]
        dout_ptrs = dout_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on
        dout = tl.load(dout_ptrs, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + offs_m, mask=mask_m, other=0.0)[:, None]
        along = tl.load(along_ptr + offs_m, mask=mask_m, other=0.0)[:, None]
        normed = tl.load(h_ptr + offsets, mask=mask, other=0.0).to(tl.float32) * rstd
        dweight += dout * normed
        dx = (dout * weight[None, :] - normed * along) * rstd
        if HAS_DRESIDUAL:
            r_ptrs = dresidual_ptr + offs_m[:, None] * stride_rm + offs_n[None, :] * stride_rn
            dx += tl.load(r_ptrs, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_ptr + offsets, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    share = dweight_ptr + strip.to(tl.int64) * N + offs_n
    tl.store(share, tl.sum(dweight, 0), mask=mask_n)


# --8<-- [end:streamed]
