"""Attention in one pass over tiles of keys: the scores never leave the chip.

Forward here, for every GPU; a faster one for Hopper is in `kernels/flash_attention_hopper.py`,
backward in `kernels/flash_attention_backward.py`. Causal: the last query stands at the last key.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch.autograd.function import once_differentiable

from kernels.attention_ahead import attend_ahead
from kernels.attention_launch import (
    check_attention,
    config,
    heads_in_l2,
    operand,
    queries_kept,
    tma_fits,
)
from kernels.attention_path import HOPPER, HOPPER_SHORT, forward_path, repeats
from kernels.attention_path import chosen as chosen
from kernels.attention_reference import inputs as inputs
from kernels.attention_reference import reference as reference
from kernels.attention_reference import sizes
from kernels.attention_tiles import (
    LN_2,
    attend_keys,
    in_registers,
    key_range,
    load_tile,
    scheduled_tile,
    store_tile,
)
from kernels.device import on_its_device
from kernels.differentiation import has_tangent, wants_gradient
from kernels.flash_attention_backward import flash_attention_backward
from kernels.flash_attention_hopper import forward_hopper
from kernels.flash_attention_hopper_short import forward_hopper_short
from kernels.flash_attention_work import work as work


# --8<-- [start:kernel]
@triton.jit
def flash_attention_kernel(
    q, k, v, out, lse_ptr,                  # operands (B, H, N, D); lse (B, H, N_Q)
    B, H, group, N_Q, N_K,                  # sizes; group: heads that share keys
    window, qk_scale,                       # keys a query sees at most; log2(e) * scale
    heads_together,                         # heads whose keys and values share the L2
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    IS_CAUSAL: tl.constexpr, HAS_WINDOW: tl.constexpr, HAS_TAIL: tl.constexpr, TMA: tl.constexpr,
    KEPT: tl.constexpr, AHEAD: tl.constexpr,  # queries in registers; scores a tile ahead
):  # fmt: skip
    """One tile of BLOCK_M queries of one head, against all the keys they see."""
    tiles = tl.cdiv(N_Q, BLOCK_M)
    head, tile = scheduled_tile(tl.program_id(0), B * H, tiles, heads_together, IS_CAUSAL)
    b, h, start_m = head // H, head % H, tile * BLOCK_M
    h_kv = h // group
    queries = start_m + tl.arange(0, BLOCK_M)
    positions = queries + (N_K - N_Q)  # of each query, among the keys
    q_tile = load_tile(q, b, h, start_m, N_Q, D, BLOCK_M, BLOCK_D, TMA)
    if KEPT:
        q_tile = in_registers(q_tile, BLOCK_M, BLOCK_D)
    running_max = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    running_sum = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    first, clear, edge, stop = key_range(
        start_m, N_Q, N_K, window, BLOCK_M, BLOCK_N, IS_CAUSAL, HAS_WINDOW
    )
    if HAS_WINDOW:  # tiles that the window's start cuts
        acc, running_max, running_sum = attend_keys(
            acc, running_max, running_sum, q_tile, positions, k, v, b, h_kv, first,
            tl.minimum(clear, stop), N_K, window, qk_scale, D, BLOCK_N, BLOCK_D,
            IS_CAUSAL, HAS_WINDOW, True, TMA,
        )  # fmt: skip
    if AHEAD:  # with the first of the tiles that the diagonal or the last key cuts
        edge = tl.cdiv(tl.minimum(edge + BLOCK_N, stop), BLOCK_N) * BLOCK_N
        acc, running_max, running_sum = attend_ahead(
            acc, running_max, running_sum, q_tile, positions, k, v, b, h_kv, clear,
            edge, N_K, window, qk_scale, D, BLOCK_N, BLOCK_D,
            IS_CAUSAL, HAS_WINDOW, HAS_TAIL,
        )  # fmt: skip
    else:
        acc, running_max, running_sum = attend_keys(
            acc, running_max, running_sum, q_tile, positions, k, v, b, h_kv, clear,
            edge, N_K, window, qk_scale, D, BLOCK_N, BLOCK_D,
            IS_CAUSAL, HAS_WINDOW, False, TMA,
        )  # fmt: skip
    if HAS_TAIL:  # tiles that the diagonal or the last key cuts
        acc, running_max, running_sum = attend_keys(
            acc, running_max, running_sum, q_tile, positions, k, v, b, h_kv, edge,
            stop, N_K, window, qk_scale, D, BLOCK_N, BLOCK_D,
            IS_CAUSAL, HAS_WINDOW, True, TMA,
        )  # fmt: skip
    total = tl.where(running_sum == 0.0, 1.0, running_sum)  # a row with no key: 0, and -inf
    store_tile(out, acc * (1.0 / total)[:, None], b, h, start_m, N_Q, D, BLOCK_M, BLOCK_D, TMA)
    lse = (running_max + tl.log2(total)) * LN_2
    tl.store(lse_ptr + head.to(tl.int64) * N_Q + queries, lse, mask=queries < N_Q)


# --8<-- [end:kernel]


# --8<-- [start:launch]
def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, window: int, scale: float,
    portable: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Launch the fastest kernel that takes the checked arguments, or this file's if `portable`."""
    (B, H, N_Q, D), (H_KV, N_K) = q.shape, k.shape[1:3]
    out = torch.empty_like(q)
    lse = torch.empty((B, H, N_Q), dtype=torch.float32, device=q.device)
    if q.numel() == 0 or N_K == 0:
        return out.zero_(), lse.fill_(-math.inf)
    kernel = "" if portable else forward_path(q, k, v, out, causal, window).kernel
    if kernel == HOPPER:
        return forward_hopper(q, k, v, out, lse, causal, scale)
    if kernel == HOPPER_SHORT:
        return forward_hopper_short(q, k, v, out, lse, causal, scale)
    BLOCK_M, BLOCK_N, warps, stages = config("forward", q.itemsize, D, q.device)
    tma = tma_fits(q, k, v, out)
    kept = queries_kept(q, tma)
    # Scores ahead take registers: up to D = 64 fewer programs would share an SM, and programs hide
    # each other's exponentials there.
    # One axis: the second and third of a grid end at 65535, batch times heads does not.
    flash_attention_kernel[(B * H * triton.cdiv(N_Q, BLOCK_M),)](
        *(operand(x, rows, tma) for x, rows in ((q, BLOCK_M), (k, BLOCK_N), (v, BLOCK_N))),
        operand(out, BLOCK_M, tma), lse,
        B, H, H // H_KV, N_Q, N_K, window, scale / math.log(2),
        heads_in_l2(q, k), D, BLOCK_M, BLOCK_N, triton.next_power_of_2(D),
        causal, window > 0, causal or N_K % BLOCK_N > 0, tma, kept, kept and D > 64,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out, lse


class FlashAttention(torch.autograd.Function):
    """Connects the two files; the scores are recomputed from q, k and lse."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v, ctx.causal, ctx.window, ctx.scale, ctx.deterministic = args
        ctx.set_materialize_grads(False)
        out, lse = forward(q, k, v, ctx.causal, ctx.window, ctx.scale)
        ctx.save_for_backward(q, k, v, out, lse)
        return out, lse

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Any) -> tuple[torch.Tensor | None, ...]:
        options = ctx.causal, ctx.window, ctx.scale, ctx.deterministic
        found = flash_attention_backward(*gradients, *ctx.saved_tensors, *options)
        return *found, None, None, None, None


@on_its_device
def flash_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    deterministic: bool | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return softmax(scale * q k^T) v and its log-sum-exp, differentiable in q, k and v.

    Matrix products take the input dtype and add in float32; float32 inputs are multiplied in full
    (IEEE) precision, never TF32. A query that sees no key gives out 0, lse -inf, gradients 0.

    Parameters
    ----------
    q : (B, H, N_Q, D) float16, bfloat16 or float32; any strides with 1 in the last dimension
    k, v : (B, H_KV, N_K, D), dtype and device of q; H is a multiple of H_KV; D is 16 to 256
    causal : query i sees keys up to i + N_K - N_Q (bottom right; `torch.nn.functional
        .scaled_dot_product_attention(is_causal=True)` aligns top left)
    window : keys each query sees at most, its own included; needs causal
    scale : above 0; 1/sqrt(D) if None
    deterministic : True for gradients that are the same bit for bit in every run. False lets the
        last bits of dq differ, for a backward on Hopper that makes each score once. None does as
        `torch.use_deterministic_algorithms` says

    Returns
    -------
    out : (B, H, N_Q, D), dtype of q
    lse : (B, H, N_Q) float32, natural logarithm

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.

    References
    ----------
    Dao, "FlashAttention-2", 2023, arXiv:2307.08691, algorithm 1.
    """
    scale = check_attention(q, k, v, scale, causal, window)
    window = min(window or 0, max(1, k.shape[2]))  # a longer one hides nothing
    if not any(wants_gradient(x) or has_tangent(x) for x in (q, k, v)):
        return forward(q, k, v, bool(causal), window, scale)  # nothing to keep for a backward
    apply: Any = FlashAttention.apply
    out, lse = apply(q, k, v, bool(causal), window, scale, repeats(deterministic))
    return out, lse


# --8<-- [end:launch]


SHAPES: dict[str, list[dict[str, Any]]] = {
    "test": [
        sizes(1, 1, 1, 1, 1, 16),
        sizes(2, 2, 1, 70, 150, 40),  # ragged, both lengths
        sizes(8, 4, 2, 1, 20, 128),  # one query, fewer keys than a tile
        sizes(1, 3, 3, 130, 65, 80, causal=True),  # 65 rows see no key
        sizes(1, 2, 1, 100, 200, 96, causal=True),
        sizes(1, 6, 2, 129, 129, 64, causal=True),
        sizes(1, 1, 1, 65, 64, 256, causal=True),
        sizes(1, 2, 2, 150, 300, 32, causal=True, window=37),
        sizes(1, 2, 1, 200, 400, 80, causal=True, window=150),
        sizes(1, 1, 1, 257, 257, 128, causal=True, window=2),
        sizes(1, 1, 1, 140, 70, 64, causal=True, window=100),
        sizes(1, 4, 2, 333, 333, 64, causal=True),  # these three fit the kernel of Hopper
        sizes(2, 2, 1, 200, 264, 128, causal=True),
        sizes(1, 2, 2, 130, 300, 96),
    ],
    "bench": [
        sizes(32768 // N, 2048 // D, 2048 // D, N, N, D, causal=causal)
        for D in (64, 128)
        for N in (512, 1024, 2048, 4096, 8192, 16384)
        for causal in (False, True)
    ]
    + [sizes(4, 32, H_KV, 4096, 4096, 128, causal=True) for H_KV in (8, 4, 1)]
    + [sizes(1, 8, 8, N, N, 128, causal=True) for N in (1024, 16384)]  # few heads
    # Every tensor far beyond the L2, for the counters.
    + [sizes(8, 32, 32, 8192, 8192, 128), sizes(4, 64, 64, 8192, 8192, 128)],
}
