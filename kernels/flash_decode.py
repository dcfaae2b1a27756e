"""Attention of few queries over a long cache of keys and values, split over the keys.

A query alone fills one program; the cache is what has to be read. So the keys are cut into splits,
one program each, and the partial results are merged by the online-softmax rule. The query heads
that share a KV head share a tile: the cache is read once for all of them.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl

from kernels.attention_launch import check_attention, fitting, operand, tma_fits
from kernels.attention_reference import inputs as inputs
from kernels.attention_reference import reference as reference
from kernels.attention_reference import sizes
from kernels.attention_tiles import LN_2, attend_keys
from kernels.attention_work import forward_work
from kernels.device import on_its_device, sm_count
from kernels.differentiation import refuse_gradients
from kernels.flash_decode_merge import merge_splits_kernel
from kernels.quick_launch import launch, starts_fit
from kernels.work import Work


# --8<-- [start:kernel]
@triton.jit(do_not_specialize=["B", "H", "H_KV", "N_Q", "N_K", "split_keys", "splits"])
def flash_decode_kernel(
    q_ptr, k, v, out_ptr, lse_ptr,  # k, v operands; out (splits, B, H, N_Q, D), lse without D
    stride_qb, stride_qh, stride_qn,                               # elements
    B, H, H_KV, N_Q, N_K, split_keys, splits, qk_scale,            # sizes; log2(e) * scale
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr,
    IS_CAUSAL: tl.constexpr, HAS_TAIL: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """All query rows of one KV head (or BLOCK_M of them) against one split of its keys."""
    split, rest = tl.program_id(0) % splits, tl.program_id(0) // splits
    head, start_m = rest % (B * H_KV), rest // (B * H_KV) * BLOCK_M
    b, h_kv, rows_of_head = head // H_KV, head % H_KV, H // H_KV * N_Q
    rows = start_m + tl.arange(0, BLOCK_M)  # row r is query r % N_Q of the group's head r // N_Q
    offs_d = tl.arange(0, BLOCK_D)
    h = h_kv * (H // H_KV) + rows // N_Q
    offsets = b.to(tl.int64) * stride_qb + h.to(tl.int64) * stride_qh
    offsets += (rows % N_Q).to(tl.int64) * stride_qn
    mask_m, mask_d = rows < rows_of_head, offs_d < D
    mask = mask_m[:, None] & mask_d[None, :]
    q_tile = tl.load(q_ptr + offsets[:, None] + offs_d[None, :], mask=mask, other=0.0)
    running_max = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    running_sum = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    positions = rows % N_Q + (N_K - N_Q)
    start = split * split_keys
    stop = tl.minimum(start + split_keys, N_K)
    # No query stands before key N_K - N_Q: only tiles beyond it, or beyond the end, need a mask.
    clear = tl.maximum(N_K - N_Q + 1, 0) if IS_CAUSAL else N_K
    edge = tl.maximum(tl.minimum(clear // BLOCK_N * BLOCK_N, start + split_keys), start)
    acc, running_max, running_sum = attend_keys(
        acc, running_max, running_sum, q_tile, positions, k, v, b, h_kv, start, edge, N_K, 0,
        qk_scale, D, BLOCK_N, BLOCK_D, IS_CAUSAL, False, False, TMA,
    )  # fmt: skip
    if HAS_TAIL:
        acc, running_max, running_sum = attend_keys(
            acc, running_max, running_sum, q_tile, positions, k, v, b, h_kv, edge, stop, N_K, 0,
            qk_scale, D, BLOCK_N, BLOCK_D, IS_CAUSAL, False, True, TMA,
        )  # fmt: skip
    total = tl.where(running_sum == 0.0, 1.0, running_sum)
    out_rows = (split * B * H_KV + head).to(tl.int64) * rows_of_head + rows
    out = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + out_rows[:, None] * D + offs_d[None, :], out, mask=mask)
    tl.store(lse_ptr + out_rows, (running_max + tl.log2(total)) * LN_2, mask=mask_m)


# --8<-- [end:kernel]


# --8<-- [start:splits]
# Bytes an element, BLOCK_D (64 and below alike): BLOCK_N, warps, stages.
CONFIGS = {
    (2, 64): (128, 4, 3),
    (2, 128): (128, 8, 3),
    (2, 256): (64, 4, 2),
    (4, 64): (32, 4, 2),
    (4, 128): (32, 4, 2),
    (4, 256): (16, 4, 2),
}
# What takes their place where a block has less shared memory.
SMALL_CONFIGS = {(2, 128): (64, 4, 3), (2, 256): (32, 4, 2), (4, 256): (16, 4, 1)}
MIN_SPLIT = 512  # keys; below it the partial results weigh as much as the cache
FEW_SPLITS, SHORT_SPLIT = 8, 128  # so few are merged so fast that shorter ones pay


def config(itemsize: int, D: int, device: torch.device) -> tuple[int, int, int]:
    """BLOCK_N, warps and stages for a dtype, a head dim and a device."""
    key = itemsize, max(64, triton.next_power_of_2(D))
    return fitting(key, CONFIGS, SMALL_CONFIGS, device)


def choose_splits(heads: int, N_K: int, sms: int) -> int:
    """Splits that give each SM one of `heads` KV heads' parts, none too short to pay.

    All programs then run side by side from first to last; more would end in a ragged wave.
    """
    worth = max(N_K // MIN_SPLIT, min(FEW_SPLITS, N_K // SHORT_SPLIT))
    return max(1, min(sms // max(1, heads), worth))


# --8<-- [end:splits]


# --8<-- [start:launch]
@on_its_device
def flash_decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    scale: float | None = None,
    splits: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention of few queries over many keys, and its log-sum-exp. No gradients.

    Parameters
    ----------
    q : (B, H, N_Q, D) float16, bfloat16 or float32; any strides with 1 in the last dimension
    k, v : (B, H_KV, N_K, D), dtype and device of q; H is a multiple of H_KV; D is 16 to 256
    causal : the queries are the newest tokens: query i sees keys up to i + N_K - N_Q
    scale : above 0; 1/sqrt(D) if None
    splits : parts the keys are cut into; chosen to fill the chip if None

    Returns
    -------
    out : (B, H, N_Q, D), dtype of q, contiguous; 0 for a query that sees no key
    lse : (B, H, N_Q) float32, natural logarithm; -inf there

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.

    References
    ----------
    Dao, Haziza, Massa, Sizov, "Flash-Decoding for long-context inference", 2023,
    https://pytorch.org/blog/flash-decoding/
    """
    scale = check_attention(q, k, v, scale)
    refuse_gradients(q=q, k=k, v=v)
    if splits is not None and splits < 1:
        raise ValueError(f"splits is {splits}; allowed: >= 1")
    (B, H, N_Q, D), (H_KV, N_K) = q.shape, k.shape[1:3]
    out = torch.empty((B, H, N_Q, D), dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, N_Q), dtype=torch.float32, device=q.device)
    if q.numel() == 0 or N_K == 0:
        return out.zero_(), lse.fill_(-math.inf)
    BLOCK_D = triton.next_power_of_2(D)
    BLOCK_N, warps, stages = config(q.itemsize, D, q.device)
    rows = H // H_KV * N_Q
    BLOCK_M = min(64, max(16, triton.next_power_of_2(rows)))
    splits = splits or choose_splits(B * H_KV, N_K, sm_count(q.device))
    split_keys = triton.cdiv(triton.cdiv(N_K, splits), BLOCK_N) * BLOCK_N
    splits = triton.cdiv(N_K, split_keys)
    part, part_lse = out, lse  # one split is the result
    if splits > 1:
        part = torch.empty((splits, B, H, N_Q, D), dtype=torch.float32, device=q.device)
        part_lse = torch.empty((splits, B, H, N_Q), dtype=torch.float32, device=q.device)
    tma, tail = tma_fits(k, v), causal or N_K % BLOCK_N > 0
    by_pointer = () if tma else (k.stride(), v.stride(), *starts_fit(k, v))
    kind = q.device, q.dtype, D
    launch(
        flash_decode_kernel, splits * B * H_KV * triton.cdiv(rows, BLOCK_M),
        (*kind, part.dtype, BLOCK_M, causal, tail, tma, q.stride(), *starts_fit(q), by_pointer),
        q, operand(k, BLOCK_N, tma), operand(v, BLOCK_N, tma), part, part_lse, *q.stride()[:3],
        B, H, H_KV, N_Q, N_K, split_keys, splits, scale / math.log(2),
        D, BLOCK_M, BLOCK_N, BLOCK_D, causal, tail, tma, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    if splits > 1:
        launch(
            merge_splits_kernel, B * H * N_Q, kind,
            part, part_lse, out, lse, B * H * N_Q, splits, D, 16, BLOCK_D,
        )  # fmt: skip
    return out, lse


# --8<-- [end:launch]


def work(shape: dict[str, Any], itemsize: int, passes: str = "forward") -> Work:
    """Bytes and FLOPs of one call, without the partial results (a few percent of a long cache)."""
    if passes != "forward":
        raise ValueError(f"passes is {passes!r}; allowed: 'forward'")
    whole = forward_work({"causal": False} | shape, itemsize, 128, 128)
    return Work(whole.model_bytes, whole.model_bytes, whole.flops)


SHAPES: dict[str, list[dict[str, Any]]] = {
    "test": [
        sizes(1, 1, 1, 1, 1, 16),
        sizes(2, 8, 1, 1, 1300, 64),  # ragged last split
        sizes(1, 8, 2, 3, 200, 40, causal=True),
        sizes(1, 20, 1, 4, 130, 80),  # 80 rows: more than one tile
        sizes(2, 2, 2, 1, 1024, 128),
        sizes(1, 2, 1, 5, 3, 32, causal=True),  # two rows see no key
        sizes(1, 2, 2, 1, 700, 256),
    ],
    "bench": [
        sizes(B, 32, H_KV, 1, N_K, 128)
        for H_KV in (32, 8, 4)
        for B, N_K in ((1, 1024), (1, 8192), (1, 131072), (16, 4096), (16, 32768), (64, 1024))
    ]
    + [sizes(64, 32, H_KV, 1, N_K, 128) for H_KV, N_K in ((32, 4096), (8, 8192), (4, 16384))]
    + [sizes(4, 32, 8, 1, 131072, 128), sizes(16, 64, 8, 4, 16384, 64)],
}
