"""Gradient of queries: a program holds a tile of queries and sums over the keys, as forward."""

import triton
import triton.language as tl

from kernels.attention_tiles import (
    LOG2_E,
    add_product,
    key_range,
    load_tile,
    scheduled_tile,
    store_tile,
    visible,
)


# --8<-- [start:queries]
@triton.jit
def sum_over_keys(
    dq_acc, q_tile, dout_tile, lse, delta, positions,           # the sum, and what it belongs to
    k, v, b, h_kv, start, stop,                                 # keys [start, stop) of one head
    N_K, window, qk_scale,                                      # sizes; log2(e) * scale
    D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    IS_CAUSAL: tl.constexpr, HAS_WINDOW: tl.constexpr, MASKED: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Add what keys [start, stop) give; tiles are (BLOCK_M, BLOCK_N)."""
    for start_n in tl.range(start, stop, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        k_tile = load_tile(k, b, h_kv, start_n, N_K, D, BLOCK_N, BLOCK_D, TMA)
        scores = tl.dot(q_tile, k_tile.T, input_precision="ieee")
        if MASKED:
            keys = start_n + tl.arange(0, BLOCK_N)
            seen = visible(positions[:, None], keys[None, :], N_K, window, IS_CAUSAL, HAS_WINDOW)
            scores = tl.where(seen, scores, -float("inf"))
        p = tl.exp2(scores * qk_scale - lse[:, None])
        v_tile = load_tile(v, b, h_kv, start_n, N_K, D, BLOCK_N, BLOCK_D, TMA)
        dp = tl.dot(dout_tile, v_tile.T, input_precision="ieee")
        dq_acc = add_product(dq_acc, p * (dp - delta[:, None]), k_tile)
    return dq_acc


@triton.jit
def query_gradients_kernel(
    q, k, v, dout, dq,                      # operands (B, H or H_KV, N, D)
    lse_ptr, delta_ptr,                     # (B, H, N_Q)
    B, H, H_KV, N_Q, N_K,                   # sizes
    window, scale, qk_scale,                # keys a query sees at most; log2(e) * scale
    heads_together,                         # heads whose keys and values share the L2
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    IS_CAUSAL: tl.constexpr, HAS_WINDOW: tl.constexpr, HAS_TAIL: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """dq of one tile of queries, from all the keys it sees: the loops of the forward kernel."""
    tiles = tl.cdiv(N_Q, BLOCK_M)
    head, tile = scheduled_tile(tl.program_id(0), B * H, tiles, heads_together, IS_CAUSAL)
    b, h, start_m = head // H, head % H, tile * BLOCK_M
    h_kv = h // (H // H_KV)
    queries = start_m + tl.arange(0, BLOCK_M)
    positions = queries + (N_K - N_Q)
    rows = head.to(tl.int64) * N_Q + queries
    q_tile = load_tile(q, b, h, start_m, N_Q, D, BLOCK_M, BLOCK_D, TMA)
    dout_tile = load_tile(dout, b, h, start_m, N_Q, D, BLOCK_M, BLOCK_D, TMA)
    lse = tl.load(lse_ptr + rows, mask=queries < N_Q, other=float("inf"))
    lse = tl.where(lse == -float("inf"), float("inf"), lse * LOG2_E)  # p is 0 where no key is seen
    delta = tl.load(delta_ptr + rows, mask=queries < N_Q, other=0.0)
    dq_acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    first, clear, edge, stop = key_range(
        start_m, N_Q, N_K, window, BLOCK_M, BLOCK_N, IS_CAUSAL, HAS_WINDOW
    )
    if HAS_WINDOW:
        dq_acc = sum_over_keys(
            dq_acc, q_tile, dout_tile, lse, delta, positions, k, v, b, h_kv,
            first, tl.minimum(clear, stop), N_K, window, qk_scale,
            D, BLOCK_N, BLOCK_D, IS_CAUSAL, HAS_WINDOW, True, TMA,
        )  # fmt: skip
    dq_acc = sum_over_keys(
        dq_acc, q_tile, dout_tile, lse, delta, positions, k, v, b, h_kv,
        clear, edge, N_K, window, qk_scale,
        D, BLOCK_N, BLOCK_D, IS_CAUSAL, HAS_WINDOW, False, TMA,
    )  # fmt: skip
    if HAS_TAIL:
        dq_acc = sum_over_keys(
            dq_acc, q_tile, dout_tile, lse, delta, positions, k, v, b, h_kv,
            edge, stop, N_K, window, qk_scale,
            D, BLOCK_N, BLOCK_D, IS_CAUSAL, HAS_WINDOW, True, TMA,
        )  # fmt: skip
    store_tile(dq, dq_acc * scale, b, h, start_m, N_Q, D, BLOCK_M, BLOCK_D, TMA)


# --8<-- [end:queries]
