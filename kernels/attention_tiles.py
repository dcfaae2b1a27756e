"""Tiles of (B, H, N, D) tensors: how the attention kernels load, store, bound and fold them.

An operand is a host tensor descriptor where Hopper's tensor memory accelerator (TMA) can fetch
the tile, else the tuple (pointer, stride_b, stride_h, stride_n). Every kernel body is written
once, against `load_tile` and `store_tile`; `TMA` says which of the two came.
"""

import math

import triton
import triton.language as tl

# exp2 is the instruction the chip has; the log-sum-exp that leaves a kernel is natural.
LN_2 = tl.constexpr(math.log(2))
LOG2_E = tl.constexpr(math.log2(math.e))


# --8<-- [start:tiles]
@triton.jit
def tile_pointers(
    x, b, h, start, N, D: tl.constexpr, ROWS: tl.constexpr, BLOCK_D: tl.constexpr
):  # fmt: skip
    """Addresses of rows start, start + 1, ... of one head, and which of them exist."""
    x_ptr, stride_b, stride_h, stride_n = x[0], x[1], x[2], x[3]
    rows = start + tl.arange(0, ROWS)
    offs_d = tl.arange(0, BLOCK_D)
    # 64 bits: b * stride_b passes 2**31 elements on tensors that fit one GPU.
    base = x_ptr + b.to(tl.int64) * stride_b + h.to(tl.int64) * stride_h
    pointers = base + rows.to(tl.int64)[:, None] * stride_n + offs_d[None, :]
    return pointers, (rows < N)[:, None] & (offs_d < D)[None, :]  # both (ROWS, BLOCK_D)


@triton.jit
def load_tile(
    x, b, h, start, N, D: tl.constexpr, ROWS: tl.constexpr, BLOCK_D: tl.constexpr,
    TMA: tl.constexpr,
):  # fmt: skip
    """Rows start, start + 1, ... of one head as (ROWS, BLOCK_D), zero outside (N, D)."""
    if TMA:
        tile = x.load([b, h, start, 0]).reshape(ROWS, BLOCK_D)
    else:
        pointers, mask = tile_pointers(x, b, h, start, N, D, ROWS, BLOCK_D)
        tile = tl.load(pointers, mask=mask, other=0.0)
    return tile


@triton.jit
def store_tile(
    x, tile, b, h, start, N, D: tl.constexpr, ROWS: tl.constexpr, BLOCK_D: tl.constexpr,
    TMA: tl.constexpr,
):  # fmt: skip
    """Write (ROWS, BLOCK_D) in the dtype of x, clipped to (N, D)."""
    if TMA:
        x.store([b, h, start, 0], tile.to(x.dtype).reshape(1, 1, ROWS, BLOCK_D))
    else:
        pointers, mask = tile_pointers(x, b, h, start, N, D, ROWS, BLOCK_D)
        tl.store(pointers, tile.to(x[0].dtype.element_ty), mask=mask)


@triton.jit
def in_registers(tile, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The same tile as the left side of products that reads no shared memory.

    Hopper's tensor cores take that side from registers or from shared memory, and Triton leaves
    in registers what comes out of a product: here one of zeros, added to the tile.
    """
    left = tl.zeros((ROWS, 16), tile.dtype)
    right = tl.zeros((16, COLUMNS), tile.dtype)
    return tl.dot(left, right, tile.to(tl.float32)).to(tile.dtype)


@triton.jit
def add_product(acc, a, b):
    """Return acc + a b, multiplied in the dtype of b.

    In float32 a tile is summed by itself before it joins acc: one chain of additions over all
    tiles would round several times as much. The compiler makes one chain of a sum, so it is
    written as a difference.
    """
    if b.dtype == tl.float32:
        acc -= tl.dot(-a, b, input_precision="ieee")
    else:
        acc = tl.dot(a.to(b.dtype), b, acc)
    return acc


# --8<-- [end:tiles]


# --8<-- [start:bounds]
@triton.jit
def visible(positions, keys, N_K, window, IS_CAUSAL: tl.constexpr, HAS_WINDOW: tl.constexpr):
    """Whether a query that stands at key `position` sees a key; (M, 1), (1, N) or the reverse."""
    # The last query stands at the last key, so the diagonal also hides keys that do not exist.
    seen = keys <= positions if IS_CAUSAL else keys < N_K
    if HAS_WINDOW:
        seen = seen & (keys > positions - window)
    return seen


@triton.jit
def key_range(
    start, N_Q, N_K, window, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    IS_CAUSAL: tl.constexpr, HAS_WINDOW: tl.constexpr,
):  # fmt: skip
    """Return first <= clear <= edge: [first, clear) and [edge, stop) need a mask, between not.

    All but stop are multiples of BLOCK_N: a mask-free loop that overran `edge` would read keys
    beyond the diagonal.
    """
    position = start + N_K - N_Q  # of the first query, among the keys
    first, clear, edge, stop = 0, 0, N_K // BLOCK_N * BLOCK_N, N_K
    if IS_CAUSAL:
        stop = tl.minimum(tl.maximum(position + BLOCK_M, 0), N_K)
        edge = tl.minimum(tl.maximum(position + 1, 0), N_K) // BLOCK_N * BLOCK_N
    if HAS_WINDOW:
        first = tl.maximum(position - window + 1, 0) // BLOCK_N * BLOCK_N
        clear = tl.cdiv(tl.maximum(position + BLOCK_M - window, 0), BLOCK_N) * BLOCK_N
    return first, clear, tl.maximum(edge, clear), stop


@triton.jit
def query_range(
    start, N_Q, N_K, window, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    IS_CAUSAL: tl.constexpr, HAS_WINDOW: tl.constexpr,
):  # fmt: skip
    """Return the same four bounds for the queries that see keys start .. start + BLOCK_N - 1."""
    position = start + N_Q - N_K  # of the query that stands at the first key
    first, clear, edge, stop = 0, 0, tl.cdiv(N_Q, BLOCK_M) * BLOCK_M, N_Q
    if IS_CAUSAL:
        first = tl.maximum(position, 0) // BLOCK_M * BLOCK_M
        clear = tl.cdiv(tl.maximum(position + BLOCK_N - 1, 0), BLOCK_M) * BLOCK_M
    if HAS_WINDOW:
        stop = tl.minimum(tl.maximum(position + BLOCK_N - 1 + window, 0), N_Q)
        edge = tl.minimum(tl.maximum(position + window, 0), N_Q) // BLOCK_M * BLOCK_M
    # Keys that do not exist: mask the whole column of tiles.
    clear = tl.where(start + BLOCK_N > N_K, tl.cdiv(N_Q, BLOCK_M) * BLOCK_M, clear)
    return first, clear, tl.maximum(edge, clear), stop


@triton.jit
def scheduled_tile(pid, heads, tiles, heads_together, IS_CAUSAL: tl.constexpr):
    """Return (head, query tile) of program `pid`.

    Programs start in the order of their number. Causal: longest tiles first, so that short ones
    fill the end, among as many heads as share the L2; else head after head.
    """
    if IS_CAUSAL:
        first_head = pid // (heads_together * tiles) * heads_together
        together = tl.minimum(heads - first_head, heads_together)
        rest = pid - first_head * tiles
        head, tile = first_head + rest % together, tiles - 1 - rest // together
    else:
        head, tile = pid // tiles, pid % tiles
    return head, tile


# --8<-- [end:bounds]


# --8<-- [start:inner]
@triton.jit
def fold_scores(scores, running_max, running_sum, qk_scale, MASKED: tl.constexpr):
    """Return the weights of a tile, what the sums so far are times, and the new maximum and sum."""
    new_max = tl.maximum(running_max, tl.max(scores, 1) * qk_scale)
    # A row that has seen no key yet keeps its maximum of -inf; subtract 0, not -inf, from it.
    shift = tl.where(new_max == -float("inf"), 0.0, new_max) if MASKED else new_max
    p = tl.exp2(scores * qk_scale - shift[:, None])
    correction = tl.exp2(running_max - shift)
    return p, correction, new_max, running_sum * correction + tl.sum(p, 1)


@triton.jit
def masked_scores(
    scores, start_n, positions, N_K, window,
    BLOCK_N: tl.constexpr, IS_CAUSAL: tl.constexpr, HAS_WINDOW: tl.constexpr,
):  # fmt: skip
    """Put -inf where a query does not see a key."""
    keys = start_n + tl.arange(0, BLOCK_N)
    seen = visible(positions[:, None], keys[None, :], N_K, window, IS_CAUSAL, HAS_WINDOW)
    return tl.where(seen, scores, -float("inf"))


@triton.jit
def attend_keys(
    acc, running_max, running_sum, q_tile, positions,  # the state, and what it belongs to
    k, v, b, h_kv, start, stop,                        # keys [start, stop) of one head
    N_K, window, qk_scale,                             # sizes, log2(e) * scale
    D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    IS_CAUSAL: tl.constexpr, HAS_WINDOW: tl.constexpr, MASKED: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Fold keys [start, stop) into the running state of a tile of queries."""
    for start_n in tl.range(start, stop, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        k_tile = load_tile(k, b, h_kv, start_n, N_K, D, BLOCK_N, BLOCK_D, TMA)
        v_tile = load_tile(v, b, h_kv, start_n, N_K, D, BLOCK_N, BLOCK_D, TMA)
        scores = tl.dot(q_tile, k_tile.T, input_precision="ieee")  # (BLOCK_M, BLOCK_N)
        if MASKED:
            scores = masked_scores(
                scores, start_n, positions, N_K, window, BLOCK_N, IS_CAUSAL, HAS_WINDOW
            )
        p, correction, running_max, running_sum = fold_scores(
            scores, running_max, running_sum, qk_scale, MASKED
        )
        acc = acc * correction[:, None]
        acc = add_product(acc, p, v_tile)
    return acc, running_max, running_sum


# --8<-- [end:inner]
