"""Before and after the Hopper backward: what belongs to each query, and the sum that is dQ."""

import triton
import triton.language as tl

from kernels.attention_tiles import LN_2, load_tile, store_tile


# --8<-- [start:prepare]
@triton.jit
def prepare_kernel(
    out, dout,                               # (B, H, N_Q, D), by pointer: launched sooner
    lse_ptr, dlse_ptr,                       # (B, H, N_Q)
    lse_2_ptr, delta_ptr, sum_ptr,           # (B H, rows), the same, and (B H, rows, BLOCK_D)
    H, N_Q, rows,                            # sizes; N_Q filled up to whole tiles
    D: tl.constexpr, BLOCK_D: tl.constexpr, HAS_DLSE: tl.constexpr,
):  # fmt: skip
    """lse to base 2, delta = sum(out * dout) - dlse, and dQ set to 0, for 64 queries."""
    head, start = tl.program_id(0) // (rows // 64), tl.program_id(0) % (rows // 64) * 64
    out_tile = load_tile(out, head // H, head % H, start, N_Q, D, 64, BLOCK_D, False).to(tl.float32)
    dout_tile = load_tile(dout, head // H, head % H, start, N_Q, D, 64, BLOCK_D, False).to(
        tl.float32
    )
    queries = start + tl.arange(0, 64)
    seen = head.to(tl.int64) * N_Q + queries
    delta = tl.sum(out_tile * dout_tile, 1)
    if HAS_DLSE:
        delta -= tl.load(dlse_ptr + seen, mask=queries < N_Q, other=0.0)
    # +inf makes p 0: beyond the last query, and where a query sees no key (its lse is -inf)
    lse = tl.load(lse_ptr + seen, mask=queries < N_Q, other=-float("inf"))
    lse_2 = tl.where(lse == -float("inf"), float("inf"), lse / LN_2)
    tl.store(lse_2_ptr + head.to(tl.int64) * rows + queries, lse_2)
    tl.store(delta_ptr + head.to(tl.int64) * rows + queries, delta)
    at = tl.program_id(0).to(tl.int64) * 64 * BLOCK_D + tl.arange(0, 64 * BLOCK_D)
    tl.store(sum_ptr + at, tl.zeros((64 * BLOCK_D,), tl.float32))


# --8<-- [end:prepare]


# --8<-- [start:finish]
@triton.jit
def finish_kernel(
    sum_ptr, dq, scale,                      # what `by_thread` makes of dQ; (B, H, N_Q, D)
    H, N_Q, rows,                            # sizes; N_Q filled up to whole tiles
    D: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Scale 64 rows of the sum and round them to dQ."""
    head, start = tl.program_id(0) // (rows // 64), tl.program_id(0) % (rows // 64) * 64
    at = tl.program_id(0).to(tl.int64) * 64 * BLOCK_D + tl.arange(0, 64 * BLOCK_D)
    split = tl.load(sum_ptr + at).reshape(BLOCK_D // 64, 8, 4, 8, 4, 2, 2)
    total = split.permute(2, 5, 3, 0, 1, 4, 6).reshape(64, BLOCK_D)
    store_tile(dq, total * scale, head // H, head % H, start, N_Q, D, 64, BLOCK_D, False)


# --8<-- [end:finish]
