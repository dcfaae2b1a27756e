"""Step 6 of the attention ladder: the next scores are under way before the softmax of these.

The tensor cores work on their own. While they add P V of one tile of keys, the warps compute the
softmax of the next, whose Q K^T was issued just before.
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

from kernels.attention_ladder.arguments import check
from kernels.attention_ladder.gluon_tiles import (
    async_load,
    barriers,
    descriptor,
    softmax,
    store,
    tile_of,
)
from kernels.attention_launch import heads_in_l2

ROWS = gl.constexpr(64)  # queries of a warpgroup: the M of its matrix instruction
# Head dim: BLOCK_M, BLOCK_N, multiplying warpgroups, stages, registers of their threads.
CONFIGS = {64: (192, 128, 3, 2, 160), 128: (128, 128, 2, 2, 240)}


# --8<-- [start:fetch]
@gluon.jit
def fetch(desc, row, tiles, full, empty, it):
    """Ask for tile number `it` of a ring once all who read its slot before have let go of it."""
    slot = it % tiles.shape[0]
    mbarrier.wait(empty.index(slot), it // tiles.shape[0] & 1 ^ 1)
    mbarrier.expect(full.index(slot), desc.block_type.nbytes)
    async_load(desc, [row, 0], full.index(slot), tiles.index(slot))


@gluon.jit
def producer(q_desc, k_desc, v_desc, rings, base, start, count):
    """Ask for the queries, then for keys and values, the last tile first."""
    q_tiles, q_full, k_tiles, k_full, k_empty, v_tiles, v_full, v_empty = rings
    PARTS: gl.constexpr = q_tiles.shape[0]
    for part in gl.static_range(PARTS):
        mbarrier.expect(q_full.index(part), q_desc.block_type.nbytes)
        async_load(q_desc, [base + start + part * ROWS, 0], q_full.index(part), q_tiles.index(part))
    for it in range(count):
        row = base + (count - 1 - it) * k_tiles.shape[1]
        fetch(k_desc, row, k_tiles, k_full, k_empty, it)
        fetch(v_desc, row, v_tiles, v_full, v_empty, it)


# --8<-- [end:fetch]


# --8<-- [start:attend]
@gluon.jit
def attend_tile(
    acc, running_max, running_sum, p, correction, q_tile,  # the state, and what it belongs to
    rings, it, qk_scale, zeros,
):  # fmt: skip
    """Add P V of tile number `it`; behind its back, the scores and softmax of the next one."""
    _q_tiles, _q_full, k_tiles, k_full, k_empty, v_tiles, v_full, v_empty = rings
    slot, phase = it % k_tiles.shape[0], it // k_tiles.shape[0] & 1
    after, phase_after = (it + 1) % k_tiles.shape[0], (it + 1) // k_tiles.shape[0] & 1
    mbarrier.wait(k_full.index(after), phase_after)
    k_tile = k_tiles.index(after).permute((1, 0))
    scores_to_come = warpgroup_mma(q_tile, k_tile, zeros, use_acc=False, is_async=True)
    acc = acc * gl.convert_layout(correction, gl.SliceLayout(1, acc.type.layout))[:, None]
    mbarrier.wait(v_full.index(slot), phase)
    acc_to_come = warpgroup_mma(p, v_tiles.index(slot), acc, is_async=True)
    scores = warpgroup_mma_wait(1, deps=(scores_to_come,))
    mbarrier.arrive(k_empty.index(after), count=1)
    p_after, correction, running_max = softmax(scores, running_max, qk_scale, 0, 0, False)
    running_sum = running_sum * correction + gl.sum(p_after, 1)
    p_after = gl.convert_layout(p_after.to(q_tile.dtype), p.type.layout)
    acc, p, p_after = warpgroup_mma_wait(0, deps=(acc_to_come, p, p_after))
    mbarrier.arrive(v_empty.index(slot), count=1)
    return acc, running_max, running_sum, p_after, correction


# --8<-- [end:attend]


# --8<-- [start:consumer]
@gluon.jit
def consumer(PART: gl.constexpr, place, rings, IS_CAUSAL: gl.constexpr):
    """64 queries of the tile, against all the keys they see."""
    out_desc, lse_ptr, base, start, count, qk_scale = place
    q_tiles, q_full, k_tiles, k_full, k_empty, v_tiles, v_full, v_empty = rings
    BLOCK_N: gl.constexpr = k_tiles.shape[1]
    D: gl.constexpr = q_tiles.shape[2]
    WARPS: gl.constexpr = [ROWS // 16, 1]  # 16 rows each
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], WARPS, [16, BLOCK_N, 16])
    OUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], WARPS, [16, D, 16])
    P: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=OUT, k_width=2)
    zeros = gl.zeros([ROWS, BLOCK_N], gl.float32, SCORES)
    acc = gl.zeros([ROWS, D], gl.float32, OUT)
    nothing = gl.full([ROWS], -float("inf"), gl.float32, gl.SliceLayout(1, SCORES))
    row = start + PART * ROWS
    first = 0
    if IS_CAUSAL:  # let tiles of keys beyond these queries pass
        first = count - gl.cdiv(row + ROWS, BLOCK_N)
        for it in range(first):
            mbarrier.wait(k_full.index(it % k_tiles.shape[0]), it // k_tiles.shape[0] & 1)
            mbarrier.arrive(k_empty.index(it % k_tiles.shape[0]), count=1)
            mbarrier.wait(v_full.index(it % v_tiles.shape[0]), it // v_tiles.shape[0] & 1)
            mbarrier.arrive(v_empty.index(it % v_tiles.shape[0]), count=1)
    q_tile = q_tiles.index(PART)
    mbarrier.wait(q_full.index(PART), 0)
    slot, phase = first % k_tiles.shape[0], first // k_tiles.shape[0] & 1
    mbarrier.wait(k_full.index(slot), phase)
    scores = warpgroup_mma(q_tile, k_tiles.index(slot).permute((1, 0)), zeros, use_acc=False)
    mbarrier.arrive(k_empty.index(slot), count=1)
    p, correction, running_max = softmax(  # the only tile that the diagonal cuts
        scores, nothing, qk_scale, row, (count - 1 - first) * BLOCK_N, IS_CAUSAL
    )
    running_sum = gl.sum(p, 1)
    p = gl.convert_layout(p.to(q_tile.dtype), P)
    for it in range(first, count - 1):
        acc, running_max, running_sum, p, correction = attend_tile(
            acc, running_max, running_sum, p, correction, q_tile, rings, it, qk_scale, zeros
        )
    slot, phase = (count - 1) % k_tiles.shape[0], (count - 1) // k_tiles.shape[0] & 1
    acc = acc * gl.convert_layout(correction, gl.SliceLayout(1, OUT))[:, None]
    mbarrier.wait(v_full.index(slot), phase)
    acc = warpgroup_mma(p, v_tiles.index(slot), acc)
    store(out_desc, q_tile, lse_ptr, acc, running_max, running_sum, base + row)
    tma.store_wait(0)


# --8<-- [end:consumer]


# --8<-- [start:kernel]
@gluon.jit(do_not_specialize=["N", "together"])
def attention_kernel(
    q_desc, k_desc, v_desc, out_desc, lse_ptr,  # (heads * N, D); lse (heads * N)
    N, together, qk_scale,                      # heads that take turns; log2(e) * scale
    D: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr, REGISTERS: gl.constexpr, IS_CAUSAL: gl.constexpr,
):  # fmt: skip
    """One tile of BLOCK_M queries of one head, against all the keys they see."""
    q_tiles = gl.allocate_shared_memory(q_desc.dtype, [CONSUMERS, ROWS, D], q_desc.layout)
    k_tiles = gl.allocate_shared_memory(k_desc.dtype, [STAGES, BLOCK_N, D], k_desc.layout)
    v_tiles = gl.allocate_shared_memory(v_desc.dtype, [STAGES, BLOCK_N, D], v_desc.layout)
    q_full, k_full, v_full = barriers(CONSUMERS, 1), barriers(STAGES, 1), barriers(STAGES, 1)
    k_empty, v_empty = barriers(STAGES, CONSUMERS), barriers(STAGES, CONSUMERS)
    rings = (q_tiles, q_full, k_tiles, k_full, k_empty, v_tiles, v_full, v_empty)
    tiles = gl.cdiv(N, BLOCK_M)
    head, tile = tile_of(gl.program_id(0), tiles, together, IS_CAUSAL)
    # A ragged last tile overlaps the one before it, and writes the same values again.
    base, start = head * N, gl.minimum(tile * BLOCK_M, N - BLOCK_M)
    count = gl.cdiv(start + BLOCK_M, BLOCK_N) if IS_CAUSAL else N // BLOCK_N
    place = (out_desc, lse_ptr, base, start, count, qk_scale)
    if CONSUMERS == 2:
        gl.warp_specialize([
            (consumer, (0, place, rings, IS_CAUSAL)),
            (consumer, (1, place, rings, IS_CAUSAL)),
            (producer, (q_desc, k_desc, v_desc, rings, base, start, count)),
        ], [4, 1], [REGISTERS, 24])  # fmt: skip
    else:
        gl.warp_specialize([
            (consumer, (0, place, rings, IS_CAUSAL)),
            (consumer, (1, place, rings, IS_CAUSAL)),
            (consumer, (2, place, rings, IS_CAUSAL)),
            (producer, (q_desc, k_desc, v_desc, rings, base, start, count)),
        ], [4, 4, 1], [REGISTERS, REGISTERS, 24])  # fmt: skip


# --8<-- [end:kernel]


# --8<-- [start:launch]
def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return out (B, H, N, D) and the natural LSE (B, H, N); `arguments.check` says of what."""
    scale = check(q, k, v, scale)
    B, H, N, D = q.shape
    BLOCK_M, BLOCK_N, consumers, stages, registers = CONFIGS[D]
    out, lse = torch.empty_like(q), torch.empty((B, H, N), dtype=torch.float32, device=q.device)
    attention_kernel[(B * H * triton.cdiv(N, BLOCK_M),)](
        descriptor(q, 64), descriptor(k, BLOCK_N),
        descriptor(v, BLOCK_N), descriptor(out, 64), lse,
        N, heads_in_l2(q, k), scale / math.log(2), D, BLOCK_M, BLOCK_N, consumers, stages,
        registers, bool(causal), num_warps=4,
    )  # fmt: skip
    return out, lse


# --8<-- [end:launch]
