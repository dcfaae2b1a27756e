"""The loop over keys with the scores a tile ahead, so that products run beside exponentials."""

import triton
import triton.language as tl

from kernels.attention_tiles import add_product, fold_scores, load_tile, masked_scores


# --8<-- [start:ahead]
@triton.jit
def attend_ahead(
    acc, running_max, running_sum, q_tile, positions,  # the state, and what it belongs to
    k, v, b, h_kv, start, stop,                        # keys [start, stop) of one head, tiles
    N_K, window, qk_scale,                             # sizes, log2(e) * scale
    D: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    IS_CAUSAL: tl.constexpr, HAS_WINDOW: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Fold keys [start, stop) into the running state, last tile first; MASKED: it needs a mask.

    The compiler waits for scores as soon as it has asked for them, and for acc only then. So
    while a turn makes its weights, the product of the turn before runs on. They are rounded after
    that wait: until then the product under way reads its own from these registers.
    """
    last = stop - BLOCK_N
    scores = tl.zeros((q_tile.shape[0], BLOCK_N), tl.float32)
    # A loop of one turn, or none: its tile of keys gives its shared memory back.
    for _ in tl.range(start, tl.minimum(start + 1, stop), num_stages=1):
        k_tile = load_tile(k, b, h_kv, last, N_K, D, BLOCK_N, BLOCK_D, True)
        scores = tl.dot(q_tile, k_tile.T)
    if MASKED:
        scores = masked_scores(scores, last, positions, N_K, window, BLOCK_N, IS_CAUSAL, HAS_WINDOW)
    for done in tl.range(0, stop - start, BLOCK_N):
        start_n = tl.multiple_of(last - done, BLOCK_N)
        p, correction, running_max, running_sum = fold_scores(
            scores, running_max, running_sum, qk_scale, MASKED
        )
        # Waited for here, and not before the exponentials. TMA reads zeros before key 0.
        k_tile = load_tile(k, b, h_kv, start_n - BLOCK_N, N_K, D, BLOCK_N, BLOCK_D, True)
        v_tile = load_tile(v, b, h_kv, start_n, N_K, D, BLOCK_N, BLOCK_D, True)
        scores = tl.dot(q_tile, k_tile.T)
        acc = acc * correction[:, None]
        acc = add_product(acc, p, v_tile)
    return acc, running_max, running_sum


# --8<-- [end:ahead]
