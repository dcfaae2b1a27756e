"""Step 1 of the attention ladder: one pass over the keys, in two loops of plain Triton.

Tiles before the diagonal need no mask and have a loop of their own; the other loop masks.
"""

import math

import torch
import triton
import triton.language as tl

from kernels.attention_ladder.arguments import check

LN_2 = tl.constexpr(math.log(2))
# Head dim: BLOCK_M, BLOCK_N, warps, stages.
CONFIGS = {64: (64, 128, 4, 2), 128: (128, 64, 4, 2)}


# --8<-- [start:tiles]
@triton.jit
def tile_pointers(x_ptr, row, ROWS: tl.constexpr, D: tl.constexpr):
    """Addresses of rows row, row + 1, ... of a (rows, D) matrix."""
    # 64 bits: row * D passes 2**31 elements on tensors that fit one GPU.
    rows = row.to(tl.int64) + tl.arange(0, ROWS)
    return x_ptr + rows[:, None] * D + tl.arange(0, D)[None, :]  # (ROWS, D)


# --8<-- [end:tiles]


# --8<-- [start:attend]
@triton.jit
def attend_keys(
    acc, running_max, running_sum, q_tile, queries,  # the state, and what it belongs to
    k_ptr, v_ptr, base, start, stop, qk_scale,       # keys [start, stop) of the head at row base
    D: tl.constexpr, BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Fold keys [start, stop) into the running state of a tile of queries."""
    for start_n in tl.range(start, stop, BLOCK_N):
        k_tile = tl.load(tile_pointers(k_ptr, base + start_n, BLOCK_N, D))
        scores = tl.dot(q_tile, k_tile.T)  # (BLOCK_M, BLOCK_N)
        if MASKED:
            keys = start_n + tl.arange(0, BLOCK_N)
            scores = tl.where(keys[None, :] <= queries[:, None], scores, -float("inf"))
        new_max = tl.maximum(running_max, tl.max(scores, 1) * qk_scale)
        p = tl.exp2(scores * qk_scale - new_max[:, None])
        correction = tl.exp2(running_max - new_max)
        running_sum = running_sum * correction + tl.sum(p, 1)
        acc = acc * correction[:, None]
        v_tile = tl.load(tile_pointers(v_ptr, base + start_n, BLOCK_N, D))
        acc = tl.dot(p.to(v_tile.dtype), v_tile, acc)
        running_max = new_max
    return acc, running_max, running_sum


# --8<-- [end:attend]


# --8<-- [start:kernel]
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr,  # (heads * N, D); lse (heads * N)
    N, qk_scale,                            # log2(e) * scale
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, IS_CAUSAL: tl.constexpr,
):  # fmt: skip
    """One tile of BLOCK_M queries of one head, against all the keys they see."""
    tiles = tl.cdiv(N, BLOCK_M)
    head, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    base, start = head * N, tile * BLOCK_M
    queries = start + tl.arange(0, BLOCK_M)
    q_tile = tl.load(tile_pointers(q_ptr, base + start, BLOCK_M, D))
    running_max = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    running_sum = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    # A multiple of BLOCK_N: a loop without a mask that overran it would see later keys.
    edge = start // BLOCK_N * BLOCK_N if IS_CAUSAL else N
    acc, running_max, running_sum = attend_keys(
        acc, running_max, running_sum, q_tile, queries,
        k_ptr, v_ptr, base, 0, edge, qk_scale, D, BLOCK_N, False,
    )  # fmt: skip
    if IS_CAUSAL:
        acc, running_max, running_sum = attend_keys(
            acc, running_max, running_sum, q_tile, queries,
            k_ptr, v_ptr, base, edge, start + BLOCK_M, qk_scale, D, BLOCK_N, True,
        )  # fmt: skip
    out = (acc * (1.0 / running_sum)[:, None]).to(q_tile.dtype)
    tl.store(tile_pointers(out_ptr, base + start, BLOCK_M, D), out)
    lse = (running_max + tl.log2(running_sum)) * LN_2
    tl.store(lse_ptr + base + queries, lse)


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
        q, k, v, out, lse,
        N, scale / math.log(2), D, BLOCK_M, BLOCK_N, bool(causal),
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out, lse


# --8<-- [end:launch]
