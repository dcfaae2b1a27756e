"""A multiplying warpgroup of the Hopper backward: the gradients of 64 keys and their part of dQ.

Scores are made transposed, K Q^T, so that P^T and dS^T enter the next products from registers.
"""

from typing import Any

from triton._C.libtriton import ir
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import builtin
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from kernels.flash_attention_hopper_gradients_producer import ROWS, keys_at
from kernels.flash_attention_hopper_producer import async_store, matrix


# Triton 3.6 has the instruction, and no function for it yet.
@builtin
def _add_tile(desc: Any, coord: Any, src: Any, _semantic: Any = None) -> None:
    coord = _semantic._convert_to_ir_values(coord, require_i64=False)
    kind = ir.DESCRIPTOR_REDUCE_KIND.ADD
    _semantic.builder.create_async_tma_reduce(kind, desc.handle, coord, src.handle)


async_add = getattr(tma, "async_atomic_add", _add_tile)


# --8<-- [start:by_thread]
@gluon.jit
def by_thread(tile):
    """(64, 64) as (16, 256), so that four numbers of a thread lie side by side in shared memory.

    Rows and columns are split as the threads of a warpgroup hold them: row is warp, half, lane / 4,
    and column is part, lane % 4, pair. `finish_kernel` puts them back.
    """
    split = tile.reshape([4, 2, 8, 8, 4, 2])
    return split.permute([3, 0, 2, 4, 1, 5]).reshape([16, 256])


# --8<-- [end:by_thread]


# --8<-- [start:step]
@gluon.jit
def step(PART: gl.constexpr, scores, dk, dv, it, more, dq_desc, place, row, first_key, offset, N_K,
         k_tiles, v_tiles, q_tiles, dout_tiles, lse_rows, delta_rows, ds_tiles, dq_tiles, bars,
         qk_scale, STAGES: gl.constexpr, IS_CAUSAL: gl.constexpr,
         HAS_TAIL: gl.constexpr):  # fmt: skip
    """Take one tile of queries, whose scores are there; start the scores of the next."""
    _kv_full, _kv_empty, q_full, dout_full, empty, ds_full = bars
    BLOCK_M: gl.constexpr = scores.shape[1]
    SCORES: gl.constexpr = scores.type.layout
    P: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=dk.type.layout, k_width=2)
    DQ: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    zeros = gl.zeros([ROWS, BLOCK_M], gl.float32, SCORES)
    slot, phase, both = it % STAGES, it // STAGES & 1, it & 1
    k_tile, dout_tile = matrix(k_tiles, PART), matrix(dout_tiles, slot)
    if IS_CAUSAL or HAS_TAIL:
        last = row + offset if IS_CAUSAL else N_K - 1  # the last key that all these queries see
        if first_key + ROWS - 1 > last:
            keys = first_key + gl.arange(0, ROWS, gl.SliceLayout(1, SCORES))
            ends = N_K - 1
            if IS_CAUSAL:
                ends = last + gl.arange(0, BLOCK_M, gl.SliceLayout(0, SCORES))[None, :]
            scores = gl.where(keys[:, None] <= ends, scores, -float("inf"))
    mbarrier.wait(dout_full.index(slot), phase)
    dp_token = warpgroup_mma(
        matrix(v_tiles, PART), dout_tile.permute((1, 0)), zeros, use_acc=False, is_async=True
    )
    p = gl.exp2(scores * qk_scale - lse_rows.index(slot).load(SCORES))
    p_operand = gl.convert_layout(p.to(q_tiles.dtype), P)
    delta = delta_rows.index(slot).load(SCORES)
    dp = warpgroup_mma_wait(0, deps=(dp_token,))
    dv_token = warpgroup_mma(p_operand, dout_tile, dv, is_async=True)
    ds = (p * (dp - delta)).to(q_tiles.dtype)
    ds_tiles.index(both * 2 + PART).store(ds)
    fence_async_shared()
    mbarrier.arrive(ds_full.index(both), count=1)
    ds_operand = gl.convert_layout(ds, P)
    dk_token = warpgroup_mma(ds_operand, matrix(q_tiles, slot), dk, is_async=True)
    # dQ needs the dS of both warpgroups; each of them makes half of it
    mbarrier.wait(ds_full.index(both), it // 2 & 1)
    if BLOCK_M == 128:  # half of the queries
        ds_0 = ds_tiles.index(both * 2).slice(PART * 64, 64, dim=1)
        ds_1 = ds_tiles.index(both * 2 + 1).slice(PART * 64, 64, dim=1)
        k_0, k_1 = matrix(k_tiles, 0), matrix(k_tiles, 1)
        dq_place = place + PART
    else:  # half of the head dim
        ds_0, ds_1 = ds_tiles.index(both * 2), ds_tiles.index(both * 2 + 1)
        k_0 = matrix(k_tiles, 0).slice(PART * 64, 64, dim=1)
        k_1 = matrix(k_tiles, 1).slice(PART * 64, 64, dim=1)
        dq_place = place * 2 + PART
    dq_zeros = gl.zeros([64, 64], gl.float32, DQ)
    dq_token = warpgroup_mma(ds_0.permute((1, 0)), k_0, dq_zeros, use_acc=False, is_async=True)
    dq_token = warpgroup_mma(ds_1.permute((1, 0)), k_1, dq_token, is_async=True)
    dv, dk, p_operand, ds_operand = warpgroup_mma_wait(
        2, deps=(dv_token, dk_token, p_operand, ds_operand)
    )
    mbarrier.arrive(empty.index(slot), count=1)
    after = (it + 1) % STAGES
    mbarrier.wait(q_full.index(after), (it + 1) // STAGES & 1, pred=more)
    scores_token = warpgroup_mma(
        k_tile, matrix(q_tiles, after).permute((1, 0)), zeros, use_acc=False, is_async=True
    )
    dq = warpgroup_mma_wait(1, deps=(dq_token,))
    tma.store_wait(0)  # the part before this one has left dq_tiles
    dq_tile = dq_tiles.index(PART)
    dq_tile.store(by_thread(dq))
    fence_async_shared()
    async_add(dq_desc, [dq_place * 16, 0], dq_tile)
    scores = warpgroup_mma_wait(0, deps=(scores_token,))
    return scores, dk, dv


# --8<-- [end:step]


@gluon.jit
def store(desc, tile, x, b, h, row):
    """Write 64 rows through shared memory and TMA."""
    tma.store_wait(0)
    tile.reshape([tile.shape[2], tile.shape[3]]).store(x.to(desc.dtype))
    fence_async_shared()
    async_store(desc, [b, h, row, 0], tile)


# --8<-- [start:consumer]
@gluon.jit
def gradients_consumer(PART: gl.constexpr, dk_desc, dv_desc, dq_desc, k_tiles, v_tiles, q_tiles,
                       dout_tiles, lse_rows, delta_rows, ds_tiles, dq_tiles, out_tiles, bars,
                       table, tiles, H, groups, N_Q, N_K, qk_scale, scale, BLOCK_M: gl.constexpr,
                       STAGES: gl.constexpr, IS_CAUSAL: gl.constexpr,
                       HAS_TAIL: gl.constexpr):  # fmt: skip
    """64 keys of every tile that the table names."""
    kv_full, kv_empty, q_full, _dout_full, _empty, _ds_full = bars
    D: gl.constexpr = k_tiles.shape[4]
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_M, 16])
    SUM: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    heads_of_group, query_tiles = H // groups, gl.cdiv(N_Q, BLOCK_M)
    it, done = 0, 0
    number = gl.load(table)
    while number >= 0:
        head, start, first, count = keys_at(number, tiles, N_Q, N_K, BLOCK_M, IS_CAUSAL)
        b, group, first_key = head // groups, head % groups, start + PART * ROWS
        dk = gl.zeros([ROWS, D], gl.float32, SUM)
        dv = gl.zeros([ROWS, D], gl.float32, SUM)
        mbarrier.wait(kv_full.index(0), done & 1)
        mbarrier.wait(q_full.index(it % STAGES), it // STAGES & 1)
        q_tile = matrix(q_tiles, it % STAGES)
        scores = warpgroup_mma(
            matrix(k_tiles, PART), q_tile.permute((1, 0)),
            gl.zeros([ROWS, BLOCK_M], gl.float32, SCORES), use_acc=False,
        )  # fmt: skip
        steps = heads_of_group * count
        for i in range(steps):
            h, tile = group * heads_of_group + i // count, first + i % count
            place = ((b * H + h) * query_tiles + tile) * (BLOCK_M // 64)
            scores, dk, dv = step(
                PART, scores, dk, dv, it, i + 1 < steps, dq_desc, place, tile * BLOCK_M, first_key,
                N_K - N_Q, N_K, k_tiles, v_tiles, q_tiles, dout_tiles, lse_rows, delta_rows,
                ds_tiles, dq_tiles, bars, qk_scale, STAGES, IS_CAUSAL, HAS_TAIL,
            )  # fmt: skip
            it += 1
        mbarrier.arrive(kv_empty.index(0), count=1)
        out_tile = out_tiles.index(PART)
        store(dk_desc, out_tile, dk * scale, b, group, first_key)
        store(dv_desc, out_tile, dv, b, group, first_key)
        done += 1
        number = gl.load(table + done)
    tma.store_wait(0)


# --8<-- [end:consumer]
