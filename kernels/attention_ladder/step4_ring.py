"""Step 4 of the attention ladder: the same in Gluon, with the ring of tiles written out.

Gluon is Triton's lower dialect: what the compiler did with loads and products is now in the file.
"""

import math

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma

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

# Head dim: BLOCK_M, BLOCK_N, warps, stages.
CONFIGS = {64: (64, 128, 4, 2), 128: (128, 128, 8, 2)}


# --8<-- [start:fetch]
@gluon.jit
def fetch(desc, row, tiles, full, it):
    """Ask for tile number `it` of a ring: rows row, row + 1, ... of a matrix."""
    slot = it % tiles.shape[0]
    mbarrier.expect(full.index(slot), desc.block_type.nbytes)
    async_load(desc, [row, 0], full.index(slot), tiles.index(slot))


@gluon.jit
def fetch_keys(k_desc, v_desc, rings, base, count, it):
    """Ask for keys and values number `it`, the last tile first, if there are so many."""
    _q_tiles, _q_full, k_tiles, k_full, v_tiles, v_full = rings
    if it < count:
        row = base + (count - 1 - it) * k_tiles.shape[1]
        fetch(k_desc, row, k_tiles, k_full, it)
        fetch(v_desc, row, v_tiles, v_full, it)


# --8<-- [end:fetch]


# --8<-- [start:attend]
@gluon.jit
def attend_tile(
    acc, running_max, running_sum, q_tile,  # the state, and what it belongs to
    rings, it, row, key, qk_scale, zeros,   # tile number `it` holds keys key, key + 1, ...
    MASKED: gl.constexpr,
):  # fmt: skip
    """Fold one tile of keys into the running state: scores, softmax and product in turn."""
    _q_tiles, _q_full, k_tiles, k_full, v_tiles, v_full = rings
    OUT: gl.constexpr = acc.type.layout
    P: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=OUT, k_width=2)
    slot, phase = it % k_tiles.shape[0], it // k_tiles.shape[0] & 1
    mbarrier.wait(k_full.index(slot), phase)
    scores = warpgroup_mma(q_tile, k_tiles.index(slot).permute((1, 0)), zeros, use_acc=False)
    p, correction, running_max = softmax(scores, running_max, qk_scale, row, key, MASKED)
    running_sum = running_sum * correction + gl.sum(p, 1)
    p = gl.convert_layout(p.to(q_tile.dtype), P)
    acc = acc * gl.convert_layout(correction, gl.SliceLayout(1, OUT))[:, None]
    mbarrier.wait(v_full.index(slot), phase)
    acc = warpgroup_mma(p, v_tiles.index(slot), acc)
    return acc, running_max, running_sum


# --8<-- [end:attend]


# --8<-- [start:consumer]
@gluon.jit
def consumer(k_desc, v_desc, place, rings, IS_CAUSAL: gl.constexpr):
    """All queries of the tile, against all the keys they see."""
    out_desc, lse_ptr, base, start, count, qk_scale = place
    q_tiles, q_full, k_tiles, _k_full, _v_tiles, _v_full = rings
    BLOCK_M: gl.constexpr = q_tiles.shape[1]
    BLOCK_N: gl.constexpr = k_tiles.shape[1]
    D: gl.constexpr = q_tiles.shape[2]
    WARPS: gl.constexpr = [BLOCK_M // 16, 1]  # 16 rows each
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], WARPS, [16, BLOCK_N, 16])
    OUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], WARPS, [16, D, 16])
    zeros = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, SCORES)
    acc = gl.zeros([BLOCK_M, D], gl.float32, OUT)
    running_max = gl.full([BLOCK_M], -float("inf"), gl.float32, gl.SliceLayout(1, SCORES))
    running_sum = gl.zeros([BLOCK_M], gl.float32, gl.SliceLayout(1, SCORES))
    STAGES: gl.constexpr = k_tiles.shape[0]
    for it in gl.static_range(STAGES):
        fetch_keys(k_desc, v_desc, rings, base, count, it)
    q_tile = q_tiles.index(0)
    mbarrier.wait(q_full.index(0), 0)
    acc, running_max, running_sum = attend_tile(  # the only tile that the diagonal cuts
        acc, running_max, running_sum, q_tile,
        rings, 0, start, (count - 1) * BLOCK_N, qk_scale, zeros, IS_CAUSAL,
    )  # fmt: skip
    for it in range(1, count):
        # Its slot is that of the tile before this one, which all warps have multiplied.
        fetch_keys(k_desc, v_desc, rings, base, count, it + STAGES - 1)
        acc, running_max, running_sum = attend_tile(
            acc, running_max, running_sum, q_tile, rings, it, start, 0, qk_scale, zeros, False
        )
    store(out_desc, q_tile, lse_ptr, acc, running_max, running_sum, base + start)
    tma.store_wait(0)


# --8<-- [end:consumer]


# --8<-- [start:kernel]
@gluon.jit(do_not_specialize=["N", "together"])
def attention_kernel(
    q_desc, k_desc, v_desc, out_desc, lse_ptr,  # (heads * N, D); lse (heads * N)
    N, together, qk_scale,                      # heads that take turns; log2(e) * scale
    D: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr,
    IS_CAUSAL: gl.constexpr,
):  # fmt: skip
    """One tile of BLOCK_M queries of one head, against all the keys they see."""
    q_tiles = gl.allocate_shared_memory(q_desc.dtype, [1, BLOCK_M, D], q_desc.layout)
    k_tiles = gl.allocate_shared_memory(k_desc.dtype, [STAGES, BLOCK_N, D], k_desc.layout)
    v_tiles = gl.allocate_shared_memory(v_desc.dtype, [STAGES, BLOCK_N, D], v_desc.layout)
    q_full, k_full, v_full = barriers(1, 1), barriers(STAGES, 1), barriers(STAGES, 1)
    rings = (q_tiles, q_full, k_tiles, k_full, v_tiles, v_full)
    tiles = gl.cdiv(N, BLOCK_M)
    head, tile = tile_of(gl.program_id(0), tiles, together, IS_CAUSAL)
    base, start = head * N, tile * BLOCK_M
    count = gl.cdiv(start + BLOCK_M, BLOCK_N) if IS_CAUSAL else N // BLOCK_N
    place = (out_desc, lse_ptr, base, start, count, qk_scale)
    fetch(q_desc, base + start, q_tiles, q_full, 0)
    consumer(k_desc, v_desc, place, rings, IS_CAUSAL)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return out (B, H, N, D) and the natural LSE (B, H, N); `arguments.check` says of what."""
    scale = check(q, k, v, scale)
    B, H, N, D = q.shape
    BLOCK_M, BLOCK_N, warps, stages = CONFIGS[D]
    out, lse = torch.empty_like(q), torch.empty((B, H, N), dtype=torch.float32, device=q.device)
    attention_kernel[(B * H * triton.cdiv(N, BLOCK_M),)](
        descriptor(q, BLOCK_M), descriptor(k, BLOCK_N),
        descriptor(v, BLOCK_N), descriptor(out, BLOCK_M), lse,
        N, heads_in_l2(q, k), scale / math.log(2), D, BLOCK_M, BLOCK_N, stages, bool(causal),
        num_warps=warps,
    )  # fmt: skip
    return out, lse


# --8<-- [end:launch]
