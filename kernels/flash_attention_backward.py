"""Gradients of attention from q, k, v, out and lse: the scores are made again, tile by tile.

Two kernels, no atomic additions: one sums over queries, one over keys, each in a fixed order, so
every gradient is the same bit for bit in every run. The price is making the scores twice: 7 matrix
products where a kernel with atomics needs 5. For Hopper there is one with atomics,
`kernels/flash_attention_hopper_gradients.py`.
"""

import math

import torch
import triton
import triton.language as tl

from kernels.attention_launch import config, heads_in_l2, operand, tma_fits
from kernels.attention_path import HOPPER_GRADIENTS, gradients_path
from kernels.attention_tiles import load_tile
from kernels.flash_attention_backward_keys import key_gradients_kernel
from kernels.flash_attention_backward_queries import query_gradients_kernel
from kernels.flash_attention_hopper_gradients import backward_hopper


# --8<-- [start:delta]
@triton.jit
def delta_kernel(
    out, dout, dlse_ptr, delta_ptr,  # out and dout (B, H, N_Q, D); dlse and delta (B, H, N_Q)
    H, N_Q,                          # sizes
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr, HAS_DLSE: tl.constexpr,
    TMA: tl.constexpr,
):  # fmt: skip
    """delta = sum(out * dout) - dlse: what the softmax subtracts from every dP of a row."""
    tiles = tl.cdiv(N_Q, BLOCK_M)
    head, start = tl.program_id(0) // tiles, tl.program_id(0) % tiles * BLOCK_M
    b, h = head // H, head % H
    out_tile = load_tile(out, b, h, start, N_Q, D, BLOCK_M, BLOCK_D, TMA).to(tl.float32)
    dout_tile = load_tile(dout, b, h, start, N_Q, D, BLOCK_M, BLOCK_D, TMA).to(tl.float32)
    delta = tl.sum(out_tile * dout_tile, 1)
    queries = start + tl.arange(0, BLOCK_M)
    rows = head.to(tl.int64) * N_Q + queries
    if HAS_DLSE:
        delta -= tl.load(dlse_ptr + rows, mask=queries < N_Q, other=0.0)
    tl.store(delta_ptr + rows, delta, mask=queries < N_Q)


# --8<-- [end:delta]


# --8<-- [start:launch]
def flash_attention_backward(
    dout: torch.Tensor | None,
    dlse: torch.Tensor | None,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
    window: int,
    scale: float,
    deterministic: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return dq, dk and dv for what `flash_attention` checked, computed and saved.

    Parameters
    ----------
    dout, dlse : gradients of out and lse, any strides (copied where a kernel cannot read them);
        None for zeros
    q, k, v, out, lse, causal, scale : as in the forward pass
    window : keys a query sees at most; 0 for all
    deterministic : run this file's kernels also where the faster one takes the case

    References
    ----------
    Dao, "FlashAttention-2", 2023, arXiv:2307.08691, algorithm 2 (there with atomic dQ).
    """
    (B, H, N_Q, D), (H_KV, N_K) = q.shape, k.shape[1:3]
    if q.numel() == 0 or N_K == 0:
        return torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    dout = torch.zeros_like(out) if dout is None else dout
    dout = dout if dout.stride(3) == 1 and tma_fits(dout) else dout.contiguous()
    if gradients_path(q, k, v, dout, window, deterministic).kernel == HOPPER_GRADIENTS:
        return backward_hopper(dout, dlse, q, k, v, out, lse, causal, scale)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    delta = torch.empty_like(lse)
    tma = tma_fits(q, k, v, dout, out, dq, dk, dv)
    sizes = H, H_KV, N_Q, N_K, window, scale, scale / math.log(2)
    block_d = triton.next_power_of_2(D)
    delta_kernel[(B * H * triton.cdiv(N_Q, 64),)](
        operand(out, 64, tma), operand(dout, 64, tma), None if dlse is None else dlse.contiguous(),
        delta, H, N_Q, D, 64, block_d, dlse is not None, tma,
    )  # fmt: skip
    BLOCK_M, BLOCK_N, warps, stages = config("keys", q.itemsize, D, q.device)
    key_gradients_kernel[(B * H_KV * triton.cdiv(N_K, BLOCK_N),)](
        *(operand(x, rows, tma) for x, rows in ((q, BLOCK_M), (k, BLOCK_N), (v, BLOCK_N))),
        *(operand(x, rows, tma) for x, rows in ((dout, BLOCK_M), (dk, BLOCK_N), (dv, BLOCK_N))),
        lse, delta, *sizes, D, BLOCK_M, BLOCK_N, block_d,
        causal, window > 0, causal or N_K % BLOCK_N > 0, tma, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    BLOCK_M, BLOCK_N, warps, stages = config("queries", q.itemsize, D, q.device)
    query_gradients_kernel[(B * H * triton.cdiv(N_Q, BLOCK_M),)](
        *(operand(x, rows, tma) for x, rows in ((q, BLOCK_M), (k, BLOCK_N), (v, BLOCK_N))),
        operand(dout, BLOCK_M, tma), operand(dq, BLOCK_M, tma),
        lse, delta, B, *sizes, heads_in_l2(q, k), D, BLOCK_M, BLOCK_N, block_d,
        causal, window > 0, causal or N_K % BLOCK_N > 0, tma, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return dq, dk, dv


# --8<-- [end:launch]
