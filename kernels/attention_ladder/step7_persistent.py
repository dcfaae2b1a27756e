"""Step 7 of the attention ladder: one program an SM takes tile after tile from a table.

The copying warp runs on into the next tile while the others finish this one, and the table gives
the longest tiles to the programs that are least busy.
"""

import heapq
import math
from functools import cache

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
from kernels.attention_ladder.gluon_tiles import async_load, barriers, descriptor, softmax, store
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
def tile_at(number, N, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, IS_CAUSAL: gl.constexpr):
    """First row of its head, first query and number of key tiles of one tile of queries."""
    tiles = gl.cdiv(N, BLOCK_M)
    # A ragged last tile overlaps the one before it, and writes the same values again.
    base, start = number // tiles * N, gl.minimum(number % tiles * BLOCK_M, N - BLOCK_M)
    count = gl.cdiv(start + BLOCK_M, BLOCK_N) if IS_CAUSAL else N // BLOCK_N
    return base, start, count


@gluon.jit
def producer(q_desc, k_desc, v_desc, rings, table, N, BLOCK_M: gl.constexpr,
             IS_CAUSAL: gl.constexpr):  # fmt: skip
    """Tile after tile ask for the queries, then for keys and values, the last tile first."""
    q_tiles, q_full, q_empty, k_tiles, k_full, k_empty, v_tiles, v_full, v_empty = rings
    PARTS: gl.constexpr = BLOCK_M // ROWS
    it, done = 0, 0  # tiles of keys and of queries so far
    number = gl.load(table)
    while number >= 0:
        base, start, count = tile_at(number, N, BLOCK_M, k_tiles.shape[1], IS_CAUSAL)
        for part in gl.static_range(PARTS):
            fetch(q_desc, base + start + part * ROWS, q_tiles, q_full, q_empty, done * PARTS + part)
        for back in range(count):
            row = base + (count - 1 - back) * k_tiles.shape[1]
            fetch(k_desc, row, k_tiles, k_full, k_empty, it)
            fetch(v_desc, row, v_tiles, v_full, v_empty, it)
            it += 1
        done += 1
        number = gl.load(table + done)


# --8<-- [end:fetch]


# --8<-- [start:attend]
@gluon.jit
def attend_tile(
    acc, running_max, running_sum, p, correction, q_tile,  # the state, and what it belongs to
    rings, it, qk_scale, zeros,
):  # fmt: skip
    """Add P V of tile number `it`; behind its back, the scores and softmax of the next one."""
    _q_tiles, _q_full, _q_empty, k_tiles, k_full, k_empty, v_tiles, v_full, v_empty = rings
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
def consumer(PART: gl.constexpr, place, rings, BLOCK_M: gl.constexpr, IS_CAUSAL: gl.constexpr):
    """64 queries of every tile that the table names, against all the keys they see."""
    out_desc, out_tiles, lse_ptr, table, N, qk_scale = place
    q_tiles, q_full, q_empty, k_tiles, k_full, k_empty, v_tiles, v_full, v_empty = rings
    BLOCK_N: gl.constexpr = k_tiles.shape[1]
    D: gl.constexpr = q_tiles.shape[2]
    WARPS: gl.constexpr = [ROWS // 16, 1]  # 16 rows each
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], WARPS, [16, BLOCK_N, 16])
    OUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], WARPS, [16, D, 16])
    P: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=OUT, k_width=2)
    zeros = gl.zeros([ROWS, BLOCK_N], gl.float32, SCORES)
    nothing = gl.full([ROWS], -float("inf"), gl.float32, gl.SliceLayout(1, SCORES))
    it, done = 0, 0  # tiles of keys and of queries so far
    number = gl.load(table)
    while number >= 0:
        base, start, count = tile_at(number, N, BLOCK_M, BLOCK_N, IS_CAUSAL)
        row = start + PART * ROWS
        end = it + count
        if IS_CAUSAL:  # let tiles of keys beyond these queries pass
            for _later in range(count - gl.cdiv(row + ROWS, BLOCK_N)):
                mbarrier.wait(k_full.index(it % k_tiles.shape[0]), it // k_tiles.shape[0] & 1)
                mbarrier.arrive(k_empty.index(it % k_tiles.shape[0]), count=1)
                mbarrier.wait(v_full.index(it % v_tiles.shape[0]), it // v_tiles.shape[0] & 1)
                mbarrier.arrive(v_empty.index(it % v_tiles.shape[0]), count=1)
                it += 1
        turn = done * (BLOCK_M // ROWS) + PART
        q_slot, q_phase = turn % q_tiles.shape[0], turn // q_tiles.shape[0] & 1
        q_tile = q_tiles.index(q_slot)
        mbarrier.wait(q_full.index(q_slot), q_phase)
        acc = gl.zeros([ROWS, D], gl.float32, OUT)
        slot, phase = it % k_tiles.shape[0], it // k_tiles.shape[0] & 1
        mbarrier.wait(k_full.index(slot), phase)
        scores = warpgroup_mma(q_tile, k_tiles.index(slot).permute((1, 0)), zeros, use_acc=False)
        mbarrier.arrive(k_empty.index(slot), count=1)
        p, correction, running_max = softmax(  # the only tile that the diagonal cuts
            scores, nothing, qk_scale, row, (end - 1 - it) * BLOCK_N, IS_CAUSAL
        )
        running_sum = gl.sum(p, 1)
        p = gl.convert_layout(p.to(q_tile.dtype), P)
        for now in range(it, end - 1):
            acc, running_max, running_sum, p, correction = attend_tile(
                acc, running_max, running_sum, p, correction, q_tile, rings, now, qk_scale, zeros
            )
        mbarrier.arrive(q_empty.index(q_slot), count=1)
        slot, phase = (end - 1) % k_tiles.shape[0], (end - 1) // k_tiles.shape[0] & 1
        acc = acc * gl.convert_layout(correction, gl.SliceLayout(1, OUT))[:, None]
        mbarrier.wait(v_full.index(slot), phase)
        acc = warpgroup_mma(p, v_tiles.index(slot), acc)
        mbarrier.arrive(v_empty.index(slot), count=1)
        tma.store_wait(0)  # the output before this one has left its tile
        store(out_desc, out_tiles.index(PART), lse_ptr, acc, running_max, running_sum, base + row)
        it = end
        done += 1
        number = gl.load(table + done)
    tma.store_wait(0)


# --8<-- [end:consumer]


# --8<-- [start:kernel]
@gluon.jit(do_not_specialize=["N", "width"])
def attention_kernel(
    q_desc, k_desc, v_desc, out_desc, lse_ptr,  # (heads * N, D); lse (heads * N)
    table, width, N, qk_scale,                  # (programs, width) tile numbers; log2(e) * scale
    D: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, CONSUMERS: gl.constexpr,
    STAGES: gl.constexpr, REGISTERS: gl.constexpr, IS_CAUSAL: gl.constexpr,
):  # fmt: skip
    """All tiles of BLOCK_M queries that the table gives to this program."""
    q_tiles = gl.allocate_shared_memory(q_desc.dtype, [2 * CONSUMERS, ROWS, D], q_desc.layout)
    k_tiles = gl.allocate_shared_memory(k_desc.dtype, [STAGES, BLOCK_N, D], k_desc.layout)
    v_tiles = gl.allocate_shared_memory(v_desc.dtype, [STAGES, BLOCK_N, D], v_desc.layout)
    out_tiles = gl.allocate_shared_memory(out_desc.dtype, [CONSUMERS, ROWS, D], out_desc.layout)
    q_full, k_full, v_full = barriers(2 * CONSUMERS, 1), barriers(STAGES, 1), barriers(STAGES, 1)
    q_empty = barriers(2 * CONSUMERS, 1)
    k_empty, v_empty = barriers(STAGES, CONSUMERS), barriers(STAGES, CONSUMERS)
    rings = (q_tiles, q_full, q_empty, k_tiles, k_full, k_empty, v_tiles, v_full, v_empty)
    mine = table + gl.program_id(0) * width
    place = (out_desc, out_tiles, lse_ptr, mine, N, qk_scale)
    if CONSUMERS == 2:
        gl.warp_specialize([
            (consumer, (0, place, rings, BLOCK_M, IS_CAUSAL)),
            (consumer, (1, place, rings, BLOCK_M, IS_CAUSAL)),
            (producer, (q_desc, k_desc, v_desc, rings, mine, N, BLOCK_M, IS_CAUSAL)),
        ], [4, 1], [REGISTERS, 24])  # fmt: skip
    else:
        gl.warp_specialize([
            (consumer, (0, place, rings, BLOCK_M, IS_CAUSAL)),
            (consumer, (1, place, rings, BLOCK_M, IS_CAUSAL)),
            (consumer, (2, place, rings, BLOCK_M, IS_CAUSAL)),
            (producer, (q_desc, k_desc, v_desc, rings, mine, N, BLOCK_M, IS_CAUSAL)),
        ], [4, 4, 1], [REGISTERS, REGISTERS, 24])  # fmt: skip


# --8<-- [end:kernel]


# --8<-- [start:schedule]
def schedule(heads: int, costs: tuple[int, ...], together: int, programs: int) -> list[list[int]]:
    """Return the tiles of each program, -1 at the end: the longest first, each to the least busy.

    Only `together` heads are at work at a time, so that their keys and values stay in the L2.
    """
    rows: list[list[int]] = [[] for _ in range(programs)]
    least_busy = [(0, program) for program in range(programs)]
    for first in range(0, heads, together):
        for tile in sorted(range(len(costs)), key=lambda tile: -costs[tile]):
            for head in range(first, min(first + together, heads)):
                busy, program = heapq.heappop(least_busy)
                rows[program].append(head * len(costs) + tile)
                heapq.heappush(least_busy, (busy + costs[tile], program))
    width = max(map(len, rows)) + 1
    return [row + [-1] * (width - len(row)) for row in rows]


@cache  # kept for good: a CUDA graph or another stream may still read it
def table_on(device: torch.device, *arguments: object) -> torch.Tensor:
    """Return the schedule as int32 (programs, width); made once for each kind of launch."""
    return torch.tensor(schedule(*arguments), dtype=torch.int32, device=device)


# --8<-- [end:schedule]


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
    ends = [min(start + BLOCK_M, N) if causal else N for start in range(0, N, BLOCK_M)]
    costs = tuple(2 + triton.cdiv(end, BLOCK_N) for end in ends)  # in tiles of keys; 2 to begin
    sms = torch.cuda.get_device_properties(q.device).multi_processor_count
    # Equal tiles go head after head: then all programs read the same keys at about the same time.
    together = heads_in_l2(q, k) if causal else 1
    table = table_on(q.device, B * H, costs, together, min(sms, B * H * len(costs)))
    attention_kernel[(table.shape[0],)](
        descriptor(q, 64), descriptor(k, BLOCK_N),
        descriptor(v, BLOCK_N), descriptor(out, 64), lse,
        table, table.shape[1], N, scale / math.log(2), D, BLOCK_M, BLOCK_N, consumers, stages,
        registers, bool(causal), num_warps=4,
    )  # fmt: skip
    return out, lse


# --8<-- [end:launch]
