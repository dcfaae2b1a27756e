"""Step 3 of the attention ladder: with a causal mask the longest tiles start first.

Programs start in the order of their number, and what starts last should be short. Only as many
heads take turns as keep their keys and values in the L2.
"""

import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.attention_ladder.arguments import check
from kernels.attention_launch import heads_in_l2

LN_2 = tl.constexpr(math.log(2))
# Head dim: BLOCK_M, BLOCK_N, warps, stages.
CONFIGS = {64: (64, 128, 4, 2), 128: (128, 64, 4, 2)}


# --8<-- [start:order]
@triton.jit
def tile_of(pid, tiles, together, IS_CAUSAL: tl.constexpr):
    """Head and tile of a program; causal: the longest tiles of `together` heads first."""
    head, tile = pid // tiles, pid % tiles
    if IS_CAUSAL:
        first = head // together * together
        heads = tl.minimum(tl.num_programs(0) // tiles - first, together)
        nth = pid - first * tiles
        head, tile = first + nth % heads, tiles - 1 - nth // heads
    return head, tile


# --8<-- [end:order]


# --8<-- [start:attend]
@triton.jit
def attend_keys(
    acc, running_max, running_sum, q_tile, queries,  # the state, and what it belongs to
    k_desc, v_desc, base, start, stop, qk_scale,     # keys [start, stop) of the head at row base
    BLOCK_N: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Fold keys [start, stop) into the running state of a tile of queries."""
    for start_n in tl.range(start, stop, BLOCK_N):
        k_tile = k_desc.load([base + start_n, 0])
        scores = tl.dot(q_tile, k_tile.T)  # (BLOCK_M, BLOCK_N)
        if MASKED:
            keys = start_n + tl.arange(0, BLOCK_N)
            scores = tl.where(keys[None, :] <= queries[:, None], scores, -float("inf"))
        new_max = tl.maximum(running_max, tl.max(scores, 1) * qk_scale)
        p = tl.exp2(scores * qk_scale - new_max[:, None])
        correction = tl.exp2(running_max - new_max)
        running_sum = running_sum * correction + tl.sum(p, 1)
        acc = acc * correction[:, None]
        v_tile = v_desc.load([base + start_n, 0])
        acc = tl.dot(p.to(v_tile.dtype), v_tile, acc)
        running_max = new_max
    return acc, running_max, running_sum


# --8<-- [end:attend]


# --8<-- [start:kernel]
@triton.jit
def attention_kernel(
    q_desc, k_desc, v_desc, out_desc, lse_ptr,  # (heads * N, D); lse (heads * N)
    N, together, qk_scale,                      # heads that take turns; log2(e) * scale
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, IS_CAUSAL: tl.constexpr,
):  # fmt: skip
    """One tile of BLOCK_M queries of one head, against all the keys they see."""
    tiles = tl.cdiv(N, BLOCK_M)
    head, tile = tile_of(tl.program_id(0), tiles, together, IS_CAUSAL)
    base, start = head * N, tile * BLOCK_M
    queries = start + tl.arange(0, BLOCK_M)
    q_tile = q_desc.load([base + start, 0])
    running_max = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    running_sum = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    # A multiple of BLOCK_N: a loop without a mask that overran it would see later keys.
    edge = start // BLOCK_N * BLOCK_N if IS_CAUSAL else N
    acc, running_max, running_sum = attend_keys(
        acc, running_max, running_sum, q_tile, queries,
        k_desc, v_desc, base, 0, edge, qk_scale, BLOCK_N, False,
    )  # fmt: skip
    if IS_CAUSAL:
        acc, running_max, running_sum = attend_keys(
            acc, running_max, running_sum, q_tile, queries,
            k_desc, v_desc, base, edge, start + BLOCK_M, qk_scale, BLOCK_N, True,
        )  # fmt: skip
    out = (acc * (1.0 / running_sum)[:, None]).to(q_tile.dtype)
    out_desc.store([base + start, 0], out)
    lse = (running_max + tl.log2(running_sum)) * LN_2
    tl.store(lse_ptr + base + queries, lse)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def descriptor(x: torch.Tensor, rows: int) -> TensorDescriptor:
    """Return what TMA needs to move tiles of (rows, D) of x, taken as one matrix."""
    return TensorDescriptor.from_tensor(x.view(-1, x.shape[3]), [rows, x.shape[3]])


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
        N, heads_in_l2(q, k), scale / math.log(2), D, BLOCK_M, BLOCK_N, bool(causal),
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out, lse


# --8<-- [end:launch]
