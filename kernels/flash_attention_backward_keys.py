"""Gradients of keys and values: a program holds a tile of keys and sums over the queries.

Scores are made transposed, K Q^T, so that P^T and dS^T enter the next product as they are.
"""

import triton
import triton.language as tl

from kernels.attention_tiles import (
    LOG2_E,
    add_product,
    load_tile,
    query_range,
    store_tile,
    visible,
)


# --8<-- [start:keys]
@triton.jit
def sum_over_queries(
    dk_acc, dv_acc, k_tile, v_tile, keys,                       # the sums, and what they belong to
    q, dout, lse_ptr, delta_ptr, b, h, H, start, stop,          # queries [start, stop) of one head
    N_Q, N_K, window, qk_scale,                                 # sizes; log2(e) * scale
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr,
    IS_CAUSAL: tl.constexpr, HAS_WINDOW: tl.constexpr, MASKED: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Add what queries [start, stop) give; all tiles are transposed, (BLOCK_N, BLOCK_M)."""
    rows = (b * H + h).to(tl.int64) * N_Q
    for start_m in tl.range(start, stop, BLOCK_M):
        start_m = tl.multiple_of(start_m, BLOCK_M)
        queries = start_m + tl.arange(0, BLOCK_M)
        q_tile = load_tile(q, b, h, start_m, N_Q, D, BLOCK_M, BLOCK_D, TMA)
        # +inf makes p 0: beyond the last query, and where a query sees no key (lse is -inf).
        lse = tl.load(lse_ptr + rows + queries, mask=queries < N_Q, other=float("inf"))
        lse = tl.where(lse == -float("inf"), float("inf"), lse * LOG2_E)
        scores = tl.dot(k_tile, q_tile.T, input_precision="ieee")
        if MASKED:
            positions = queries + (N_K - N_Q)
            seen = visible(positions[None, :], keys[:, None], N_K, window, IS_CAUSAL, HAS_WINDOW)
            scores = tl.where(seen, scores, -float("inf"))
        p = tl.exp2(scores * qk_scale - lse[None, :])
        dout_tile = load_tile(dout, b, h, start_m, N_Q, D, BLOCK_M, BLOCK_D, TMA)
        dv_acc = add_product(dv_acc, p, dout_tile)
        delta = tl.load(delta_ptr + rows + queries, mask=queries < N_Q, other=0.0)
        dp = tl.dot(v_tile, dout_tile.T, input_precision="ieee")
        dk_acc = add_product(dk_acc, p * (dp - delta[None, :]), q_tile)
    return dk_acc, dv_acc


@triton.jit
def key_gradients_kernel(
    q, k, v, dout, dk, dv,                  # operands (B, H or H_KV, N, D)
    lse_ptr, delta_ptr,                     # (B, H, N_Q)
    H, H_KV, N_Q, N_K,                      # sizes
    window, scale, qk_scale,                # keys a query sees at most; log2(e) * scale
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    IS_CAUSAL: tl.constexpr, HAS_WINDOW: tl.constexpr, HAS_TAIL: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """dk and dv of one tile of keys, from all the queries of its group of heads that see it."""
    tiles = tl.cdiv(N_K, BLOCK_N)
    head, start_n = tl.program_id(0) // tiles, tl.program_id(0) % tiles * BLOCK_N
    b, h_kv, group = head // H_KV, head % H_KV, H // H_KV
    keys = start_n + tl.arange(0, BLOCK_N)
    k_tile = load_tile(k, b, h_kv, start_n, N_K, D, BLOCK_N, BLOCK_D, TMA)
    v_tile = load_tile(v, b, h_kv, start_n, N_K, D, BLOCK_N, BLOCK_D, TMA)
    dk_acc = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    dv_acc = tl.zeros((BLOCK_N, BLOCK_D), tl.float32)
    first, clear, edge, stop = query_range(
        start_n, N_Q, N_K, window, BLOCK_M, BLOCK_N, IS_CAUSAL, HAS_WINDOW
    )
    for member in range(group):
        h = h_kv * group + member
        if HAS_TAIL:  # tiles that the diagonal cuts, or all where the keys end
            dk_acc, dv_acc = sum_over_queries(
                dk_acc, dv_acc, k_tile, v_tile, keys, q, dout, lse_ptr, delta_ptr, b, h, H,
                first, tl.minimum(clear, stop), N_Q, N_K, window, qk_scale,
                D, BLOCK_M, BLOCK_D, IS_CAUSAL, HAS_WINDOW, True, TMA,
            )  # fmt: skip
        dk_acc, dv_acc = sum_over_queries(
            dk_acc, dv_acc, k_tile, v_tile, keys, q, dout, lse_ptr, delta_ptr, b, h, H,
            clear, edge, N_Q, N_K, window, qk_scale,
            D, BLOCK_M, BLOCK_D, IS_CAUSAL, HAS_WINDOW, False, TMA,
        )  # fmt: skip
        if HAS_WINDOW:  # tiles that the window's end cuts
            dk_acc, dv_acc = sum_over_queries(
                dk_acc, dv_acc, k_tile, v_tile, keys, q, dout, lse_ptr, delta_ptr, b, h, H,
                edge, stop, N_Q, N_K, window, qk_scale,
                D, BLOCK_M, BLOCK_D, IS_CAUSAL, HAS_WINDOW, True, TMA,
            )  # fmt: skip
    store_tile(dk, dk_acc * scale, b, h_kv, start_n, N_K, D, BLOCK_N, BLOCK_D, TMA)
    store_tile(dv, dv_acc, b, h_kv, start_n, N_K, D, BLOCK_N, BLOCK_D, TMA)


# --8<-- [end:keys]
