"""Attention forward on Hopper for short sequences of small heads, in Gluon: five programs an SM.

At both ends of a tile of queries the tensor cores wait, and where keys are few the ends are near.
So a program here is one warpgroup with one tile, and the four beside it multiply in the meantime.
"""

import math

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from kernels.attention_launch import heads_in_l2
from kernels.flash_attention_hopper import descriptor
from kernels.flash_attention_hopper_consumer import own_sum, softmax, store
from kernels.flash_attention_hopper_producer import ROWS, async_load, matrix
from kernels.quick_launch import launch

BLOCK_D = 64
BLOCK_N, STAGES = 64, 2  # of keys; small enough for five programs an SM
# Keys, causal or not; with more of them the ends weigh little, and the persistent kernel is faster.
SHORT = {True: 4096, False: 512}


# --8<-- [start:attend]
@gluon.jit
def fetch(desc, b, h, row, tiles, full, it):
    """Ask for tile number `it` of a ring."""
    slot = it % tiles.shape[0]
    mbarrier.expect(full.index(slot), desc.block_type.nbytes)
    async_load(desc, [b, h, row, 0], full.index(slot), tiles.index(slot))


@gluon.jit
def attend(acc, running_max, running_sum, q, rings, it, position, key, N_K, qk_scale, zeros,
           MASKED: gl.constexpr, IS_CAUSAL: gl.constexpr):  # fmt: skip
    """Fold tile number `it` of the keys into the state: scores, softmax and product in turn."""
    k_tiles, k_full, v_tiles, v_full = rings
    P: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=acc.type.layout, k_width=2)
    out_rows: gl.constexpr = gl.SliceLayout(1, acc.type.layout)
    sum_rows: gl.constexpr = gl.SliceLayout(1, running_sum.type.layout)
    slot, phase = it % k_tiles.shape[0], it // k_tiles.shape[0] & 1
    mbarrier.wait(k_full.index(slot), phase)
    k_tile = matrix(k_tiles, slot)
    token = warpgroup_mma(q, k_tile.permute((1, 0)), zeros, use_acc=False, is_async=True)
    scores = warpgroup_mma_wait(0, deps=(token,))
    p, correction, running_max = softmax(
        scores, running_max, qk_scale, position, key, N_K, MASKED, IS_CAUSAL
    )
    scaled = running_sum * gl.convert_layout(correction, sum_rows, assert_trivial=True)[:, None]
    running_sum = scaled + own_sum(p)
    p = gl.convert_layout(p.to(q.dtype), P)
    acc = acc * gl.convert_layout(correction, out_rows)[:, None]
    mbarrier.wait(v_full.index(slot), phase)
    token = warpgroup_mma(p, matrix(v_tiles, slot), acc, is_async=True)
    acc, p = warpgroup_mma_wait(0, deps=(token, p))
    return acc, running_max, running_sum


# --8<-- [end:attend]


# --8<-- [start:kernel]
@gluon.jit(do_not_specialize=["tiles", "together", "H", "group", "N_Q", "N_K"])
def flash_attention_hopper_short_kernel(
    q_desc, k_desc, v_desc, out_desc, lse_ptr,  # (B, H, N, D); lse (B, H, N_Q)
    tiles, together,                            # tiles of queries a head; heads that take turns
    H, group, N_Q, N_K, qk_scale,               # group: heads that share keys; log2(e) * scale
    BLOCK_N: gl.constexpr, STAGES: gl.constexpr, IS_CAUSAL: gl.constexpr, HAS_TAIL: gl.constexpr,
):  # fmt: skip
    """One tile of 64 queries of one head, against all the keys they see, the last ones first."""
    D: gl.constexpr = q_desc.block_type.shape[3]
    dtype: gl.constexpr = q_desc.dtype
    B: gl.constexpr = mbarrier.MBarrierLayout()
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    OUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    q_tiles = gl.allocate_shared_memory(dtype, [1, 1, 1, ROWS, D], q_desc.layout)
    k_tiles = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, BLOCK_N, D], k_desc.layout)
    v_tiles = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, BLOCK_N, D], v_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [1, 1], B)
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], B)
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], B)
    mbarrier.init(q_full.index(0), count=1)
    for slot in gl.static_range(STAGES):
        mbarrier.init(k_full.index(slot), count=1)
        mbarrier.init(v_full.index(slot), count=1)
    rings = (k_tiles, k_full, v_tiles, v_full)
    head, tile = gl.program_id(0) // tiles, gl.program_id(0) % tiles
    if IS_CAUSAL:  # the longest tiles of `together` heads first
        first = head // together * together
        heads = gl.minimum(gl.num_programs(0) // tiles - first, together)
        nth = gl.program_id(0) - first * tiles
        head, tile = first + nth % heads, tiles - 1 - nth // heads
    b, h, start, offset = head // H, head % H, tile * ROWS, N_K - N_Q
    count = gl.cdiv(N_K, BLOCK_N)
    if IS_CAUSAL:
        count = gl.minimum(count, gl.cdiv(start + ROWS + offset, BLOCK_N))
    fetch(q_desc, b, h, start, q_tiles, q_full, 0)
    for it in gl.static_range(STAGES):
        if it < count:
            row = (count - 1 - it) * BLOCK_N
            fetch(k_desc, b, h // group, row, k_tiles, k_full, it)
            fetch(v_desc, b, h // group, row, v_tiles, v_full, it)
    zeros = gl.zeros([ROWS, BLOCK_N], gl.float32, SCORES)
    acc = gl.zeros([ROWS, D], gl.float32, OUT)
    running_max = gl.full([ROWS], -float("inf"), gl.float32, gl.SliceLayout(1, SCORES))
    running_sum = own_sum(zeros)
    mbarrier.wait(q_full.index(0), 0)
    q = matrix(q_tiles, 0)
    acc, running_max, running_sum = attend(  # the only tile that the diagonal or the end cuts
        acc, running_max, running_sum, q, rings, 0, start + offset, (count - 1) * BLOCK_N, N_K,
        qk_scale, zeros, IS_CAUSAL or HAS_TAIL, IS_CAUSAL,
    )  # fmt: skip
    for it in range(1, count):
        after = it + STAGES - 1
        if after < count:  # into the slots of the tile before this one, which is done with
            row = (count - 1 - after) * BLOCK_N
            fetch(k_desc, b, h // group, row, k_tiles, k_full, after)
            fetch(v_desc, b, h // group, row, v_tiles, v_full, after)
        acc, running_max, running_sum = attend(
            acc, running_max, running_sum, q, rings, it, 0, 0, N_K, qk_scale, zeros, False, False
        )
    # Nobody reads the queries any more: the output leaves through their tile.
    store(out_desc, q_tiles.index(0), lse_ptr, acc, running_max, running_sum, head, H, start, N_Q)
    tma.store_wait(0)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def is_short(N_K: int, D: int, causal: bool) -> bool:
    """Whether this kernel is the faster one of the two for Hopper."""
    return D <= BLOCK_D and SHORT[causal] >= N_K


def forward_hopper_short(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    causal: bool, scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Fill out and lse and return them; the arguments are checked, `forward_path` chose this."""
    (B, H, N_Q, _), (H_KV, N_K) = q.shape, k.shape[1:3]
    tiles = triton.cdiv(N_Q, ROWS.value)
    tail = N_K % BLOCK_N > 0
    launch(
        flash_attention_hopper_short_kernel, B * H * tiles,
        (q.device, q.dtype, BLOCK_N, STAGES, causal, tail),  # it specializes on no integer
        descriptor(q, ROWS.value, BLOCK_D), descriptor(k, BLOCK_N, BLOCK_D),
        descriptor(v, BLOCK_N, BLOCK_D), descriptor(out, ROWS.value, BLOCK_D), lse,
        tiles, heads_in_l2(q, k), H, H // H_KV, N_Q, N_K, scale / math.log(2),
        BLOCK_N, STAGES, causal, tail, num_warps=4,
    )  # fmt: skip
    return out, lse


# --8<-- [end:launch]
