"""A multiplying warpgroup of the Hopper kernel: products and softmax of 64 queries overlap.

The tensor cores work on their own. While they add P V of one key tile, the warps compute the
softmax of the next, whose Q K^T was issued just before.
"""

import math

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from kernels.flash_attention_hopper_producer import ROWS, async_store, hear, matrix

LN_2 = gl.constexpr(math.log(2))


# --8<-- [start:softmax]
@gluon.jit
def softmax(scores, running_max, qk_scale, position, key, N_K, MASKED: gl.constexpr,
            IS_CAUSAL: gl.constexpr):  # fmt: skip
    """exp2 of one tile of scores, measured from the new maximum of its rows."""
    layout: gl.constexpr = scores.type.layout
    if MASKED:
        positions = position + gl.arange(0, scores.shape[0], gl.SliceLayout(1, layout))
        keys = key + gl.arange(0, scores.shape[1], gl.SliceLayout(0, layout))
        seen = keys[None, :] <= positions[:, None] if IS_CAUSAL else keys[None, :] < N_K
        scores = gl.where(seen, scores, -float("inf"))
    new_max = gl.maximum(running_max, gl.max(scores, 1) * qk_scale)
    shift = new_max
    if MASKED:  # a row may have seen no key yet: subtract 0, not -inf, from its -inf
        shift = gl.where(new_max == -float("inf"), 0.0, new_max)
    p = gl.exp2(scores * qk_scale - shift[:, None])
    return p, gl.exp2(running_max - shift), new_max


@gluon.jit
def own_sum(p):
    """What each thread adds of its rows by itself; the threads of a row meet at the end."""
    return gl.sum(p.reshape([p.shape[0], p.shape[1] // 8, 8]), 1)


# --8<-- [end:softmax]


# --8<-- [start:step]
@gluon.jit
def step(acc, running_max, running_sum, p, correction, q, k_tiles, v_tiles, bars, it, qk_scale,
         zeros, STAGES: gl.constexpr):  # fmt: skip
    """Add P V of this key tile; behind its back, Q K^T and softmax of the next."""
    _q_full, _q_empty, k_full, k_empty, v_full, v_empty, _told, _heard = bars
    out_rows: gl.constexpr = gl.SliceLayout(1, acc.type.layout)
    now, after = it % STAGES, (it + 1) % STAGES
    mbarrier.wait(k_full.index(after), (it + 1) // STAGES & 1)
    k_tile = matrix(k_tiles, after)
    scores_token = warpgroup_mma(q, k_tile.permute((1, 0)), zeros, use_acc=False, is_async=True)
    acc = acc * gl.convert_layout(correction, out_rows)[:, None]
    mbarrier.wait(v_full.index(now), it // STAGES & 1)
    v_tile = matrix(v_tiles, now)
    acc_token = warpgroup_mma(p, v_tile, acc, is_async=True)
    scores = warpgroup_mma_wait(1, deps=(scores_token,))
    mbarrier.arrive(k_empty.index(after), count=1)
    p_next, correction, running_max = softmax(scores, running_max, qk_scale, 0, 0, 0, False, False)
    sum_rows: gl.constexpr = gl.SliceLayout(1, running_sum.type.layout)
    scaled = running_sum * gl.convert_layout(correction, sum_rows, assert_trivial=True)[:, None]
    running_sum = scaled + own_sum(p_next)
    p_next = gl.convert_layout(p_next.to(q.dtype), p.type.layout)
    acc, p, p_next = warpgroup_mma_wait(0, deps=(acc_token, p, p_next))
    mbarrier.arrive(v_empty.index(now), count=1)
    return acc, running_max, running_sum, p_next, correction


# --8<-- [end:step]


@gluon.jit
def store(out_desc, out_tile, lse_ptr, acc, running_max, running_sum, head, H, row, N_Q):
    """Divide, and write 64 rows of the output through shared memory and TMA, and their LSE."""
    total = gl.sum(running_sum, 1)
    out_rows: gl.constexpr = gl.SliceLayout(1, acc.type.layout)
    out = acc * gl.convert_layout(1.0 / total, out_rows)[:, None]
    tma.store_wait(0)  # the store before this one has left out_tile
    flat = out_tile.reshape([out_tile.shape[2], out_tile.shape[3]])
    flat.store(out.to(out_desc.dtype))
    fence_async_shared()
    async_store(out_desc, [head // H, head % H, row, 0], out_tile)
    rows = row + gl.arange(0, ROWS, running_max.type.layout)
    lse = (running_max + gl.log2(gl.convert_layout(total, running_max.type.layout))) * LN_2
    gl.store(lse_ptr + head.to(gl.int64) * N_Q + rows, lse, mask=rows < N_Q)


# --8<-- [start:consumer]
@gluon.jit
def first_scores(q_tiles, k_tiles, bars, it, done, start, count, offset, zeros,
                 PART: gl.constexpr, CONSUMERS: gl.constexpr, STAGES: gl.constexpr,
                 IS_CAUSAL: gl.constexpr):  # fmt: skip
    """Let key tiles beyond this warpgroup's diagonal pass; return Q K^T of its last one."""
    q_full, _q_empty, k_full, k_empty, v_full, v_empty, _told, _heard = bars
    row = start + PART * ROWS
    if IS_CAUSAL:
        own = gl.minimum(count, gl.cdiv(row + ROWS + offset, k_tiles.shape[3]))
        while count > own:
            mbarrier.wait(k_full.index(it % STAGES), it // STAGES & 1)
            mbarrier.arrive(k_empty.index(it % STAGES), count=1)
            mbarrier.wait(v_full.index(it % STAGES), it // STAGES & 1)
            mbarrier.arrive(v_empty.index(it % STAGES), count=1)
            it += 1
            count -= 1
    slot = done % 2 * CONSUMERS + PART
    mbarrier.wait(q_full.index(slot), done // 2 & 1)
    q = matrix(q_tiles, slot)
    mbarrier.wait(k_full.index(it % STAGES), it // STAGES & 1)
    k_tile = matrix(k_tiles, it % STAGES)
    scores = warpgroup_mma(q, k_tile.permute((1, 0)), zeros, use_acc=False)
    mbarrier.arrive(k_empty.index(it % STAGES), count=1)
    return q, scores, row, count, it


@gluon.jit
def consumer(PART: gl.constexpr, q_desc, out_desc, lse_ptr, q_tiles, k_tiles, v_tiles, out_tiles,
             bars, notes, H, N_Q, N_K, qk_scale, BLOCK_N: gl.constexpr, CONSUMERS: gl.constexpr,
             STAGES: gl.constexpr, IS_CAUSAL: gl.constexpr,
             HAS_TAIL: gl.constexpr):  # fmt: skip
    """64 queries of every tile that the copying warp takes."""
    _q_full, q_empty, _k_full, _k_empty, v_full, v_empty, told, heard = bars
    BLOCK_D: gl.constexpr = q_desc.block_type.shape[3]
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    OUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_D, 16])
    P: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=OUT, k_width=2)
    EDGE: gl.constexpr = IS_CAUSAL or HAS_TAIL
    zeros = gl.zeros([ROWS, BLOCK_N], gl.float32, SCORES)
    nothing = gl.full([ROWS], -float("inf"), gl.float32, gl.SliceLayout(1, SCORES))
    out_tile = out_tiles.index(PART)
    offset = N_K - N_Q
    it, done = 0, 0
    head, start, count = hear(done, notes, told, heard)
    while head >= 0:
        q, scores, row, count, it = first_scores(
            q_tiles, k_tiles, bars, it, done, start, count, offset, zeros,
            PART, CONSUMERS, STAGES, IS_CAUSAL,
        )  # fmt: skip
        p, correction, running_max = softmax(
            scores, nothing, qk_scale, row + offset, (count - 1) * BLOCK_N, N_K, EDGE, IS_CAUSAL
        )
        running_sum = own_sum(p)
        p = gl.convert_layout(p.to(q_desc.dtype), P)
        acc = gl.zeros([ROWS, BLOCK_D], gl.float32, OUT)
        for _earlier in range(count - 1):
            acc, running_max, running_sum, p, correction = step(
                acc, running_max, running_sum, p, correction, q, k_tiles, v_tiles, bars, it,
                qk_scale, zeros, STAGES,
            )  # fmt: skip
            it += 1
        mbarrier.arrive(q_empty.index(done % 2 * CONSUMERS + PART), count=1)
        acc = acc * gl.convert_layout(correction, gl.SliceLayout(1, OUT))[:, None]
        mbarrier.wait(v_full.index(it % STAGES), it // STAGES & 1)
        acc = warpgroup_mma(p, matrix(v_tiles, it % STAGES), acc)
        mbarrier.arrive(v_empty.index(it % STAGES), count=1)
        it += 1
        store(out_desc, out_tile, lse_ptr, acc, running_max, running_sum, head, H, row, N_Q)
        done += 1
        head, start, count = hear(done, notes, told, heard)
    tma.store_wait(0)


# --8<-- [end:consumer]
