"""Attention backward on Hopper, in Gluon: every score is made once, for all three gradients.

A program holds 128 keys, half in each of two warpgroups, while one warp fetches tile after tile of
queries. dK and dV stay in registers; the parts of dQ leave through TMA, which adds them up in
float32 in the L2, in whatever order they come: the last bits of dQ can differ between runs.
"""

import math
from functools import cache
from typing import Any

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernels.attention_launch import L2_SHARE, operand, tma_fits
from kernels.attention_schedule import makespan, schedule
from kernels.device import sm_count
from kernels.flash_attention_hopper import described, descriptor, on_hopper
from kernels.flash_attention_hopper_gradients_consumer import gradients_consumer
from kernels.flash_attention_hopper_gradients_producer import KEYS, ROWS, gradients_producer
from kernels.flash_attention_hopper_gradients_rows import finish_kernel, prepare_kernel
from kernels.quick_launch import launch, starts_fit


# --8<-- [start:kernel]
@gluon.jit(do_not_specialize=["width", "tiles", "H", "groups", "parts", "N_Q", "N_K"])
def flash_attention_hopper_gradients_kernel(
    q_desc, k_desc, v_desc, dout_desc, dk_desc, dv_desc,  # (B, H, H_KV or groups, N, D)
    lse_desc, delta_desc, dq_desc,          # float32 (B H, rows) and what `by_thread` makes of dQ
    table, width, tiles,                    # (programs, width) of tile numbers; tiles a head
    H, groups, parts, N_Q, N_K,             # sizes; each KV head is that of `parts` groups
    qk_scale, scale,                        # log2(e) * scale
    BLOCK_M: gl.constexpr, STAGES: gl.constexpr, REGISTERS: gl.constexpr,
    IS_CAUSAL: gl.constexpr, HAS_TAIL: gl.constexpr,
):  # fmt: skip
    """One program an SM: allocate the tiles with their barriers, then split into roles."""
    D: gl.constexpr = q_desc.block_type.shape[3]
    dtype: gl.constexpr = q_desc.dtype
    B: gl.constexpr = mbarrier.MBarrierLayout()
    DS: gl.constexpr = gl.NVMMASharedLayout.get_default_for([ROWS, BLOCK_M], dtype)
    k_tiles = gl.allocate_shared_memory(dtype, [2, 1, 1, ROWS, D], k_desc.layout)
    v_tiles = gl.allocate_shared_memory(dtype, [2, 1, 1, ROWS, D], v_desc.layout)
    q_tiles = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, BLOCK_M, D], q_desc.layout)
    dout_tiles = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, BLOCK_M, D], dout_desc.layout)
    lse_rows = gl.allocate_shared_memory(gl.float32, [STAGES, 1, BLOCK_M], lse_desc.layout)
    delta_rows = gl.allocate_shared_memory(gl.float32, [STAGES, 1, BLOCK_M], delta_desc.layout)
    ds_tiles = gl.allocate_shared_memory(dtype, [4, ROWS, BLOCK_M], DS)
    dq_tiles = gl.allocate_shared_memory(gl.float32, [2, 16, 256], dq_desc.layout)
    out_tiles = gl.allocate_shared_memory(dtype, [2, 1, 1, ROWS, D], dk_desc.layout)
    kv_full = gl.allocate_shared_memory(gl.int64, [1, 1], B)
    kv_empty = gl.allocate_shared_memory(gl.int64, [1, 1], B)
    q_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], B)
    dout_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], B)
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], B)
    ds_full = gl.allocate_shared_memory(gl.int64, [2, 1], B)
    mbarrier.init(kv_full.index(0), count=1)
    mbarrier.init(kv_empty.index(0), count=2)
    for slot in gl.static_range(STAGES):
        mbarrier.init(q_full.index(slot), count=1)
        mbarrier.init(dout_full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=2)
    for slot in gl.static_range(2):
        mbarrier.init(ds_full.index(slot), count=2)
    bars = (kv_full, kv_empty, q_full, dout_full, empty, ds_full)
    mine = table + gl.program_id(0) * width
    # Each role is written out: a tuple in a variable would make tensors of its constants.
    gl.warp_specialize([
        (gradients_consumer, (0, dk_desc, dv_desc, dq_desc, k_tiles, v_tiles, q_tiles, dout_tiles,
                              lse_rows, delta_rows, ds_tiles, dq_tiles, out_tiles, bars, mine,
                              tiles, H, groups, N_Q, N_K, qk_scale, scale, BLOCK_M, STAGES,
                              IS_CAUSAL, HAS_TAIL)),
        (gradients_consumer, (1, dk_desc, dv_desc, dq_desc, k_tiles, v_tiles, q_tiles, dout_tiles,
                              lse_rows, delta_rows, ds_tiles, dq_tiles, out_tiles, bars, mine,
                              tiles, H, groups, N_Q, N_K, qk_scale, scale, BLOCK_M, STAGES,
                              IS_CAUSAL, HAS_TAIL)),
        (gradients_producer, (q_desc, k_desc, v_desc, dout_desc, lse_desc, delta_desc, k_tiles,
                              v_tiles, q_tiles, dout_tiles, lse_rows, delta_rows, bars, mine,
                              tiles, H, groups, parts, N_Q, N_K, BLOCK_M, STAGES, IS_CAUSAL)),
    ], [4, 1], [REGISTERS, 24])  # fmt: skip


# --8<-- [end:kernel]


# BLOCK_D: BLOCK_M, stages, registers of a consumer's thread.
GRADIENT_CONFIGS = {64: (128, 2, 240), 128: (64, 2, 240)}


# --8<-- [start:fits]
def gradients_fit(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor, window: int
) -> bool:
    """Whether this kernel takes the case: no window, tensors for TMA, and gradients too.

    These are dense: head dims from 40 to 128 that 8 divides have rows of a multiple of 16 bytes.
    """
    shape_fits = 32 < q.shape[3] <= 128 and q.shape[3] % 8 == 0 and window == 0
    return shape_fits and on_hopper(q.device) and tma_fits(q, k, v, dout)


ROWS_LAYOUT = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=2)


def rows_descriptor(x: torch.Tensor, block: tuple[int, int]) -> TensorDescriptor:
    """Return what TMA needs to move blocks of x, float32 with two dimensions, as they lie."""
    return described(x, block, lambda: ROWS_LAYOUT)


# --8<-- [end:fits]


# --8<-- [start:parts]
Order = tuple[int, int, tuple[float, ...], int, int]  # what `schedule` takes


def order_of(
    B: int, H: int, groups: int, N_Q: int, N_K: int, BLOCK_M: int, row_bytes: int, causal: bool,
    ends: float, sms: int,
) -> Order:  # fmt: skip
    """Return what `schedule` takes: a tile of keys costs its tiles of queries, and its two ends.

    Causal: only as many groups of query heads are at work as have room in the L2, where a query
    takes up row_bytes.
    """
    starts = range(0, N_K, KEYS.value)
    firsts = [max(0, start - (N_K - N_Q)) // BLOCK_M if causal else 0 for start in starts]
    costs = tuple((triton.cdiv(N_Q, BLOCK_M) - first) * (H // groups) + ends for first in firsts)
    together = max(1, L2_SHARE // (H // groups * N_Q * row_bytes)) if causal else 1
    return B * groups, len(costs), costs, together, min(sms, B * groups * len(costs))


def parts_of(
    B: int, H: int, H_KV: int, N_Q: int, N_K: int, BLOCK_M: int, row_bytes: int, causal: bool,
    sms: int,
) -> tuple[int, Order]:  # fmt: skip
    """Return into how many parts the query heads that share keys are cut, and the order of tiles.

    Causal tiles differ in length: with about one an SM the longest sets the time. The gradients of
    parts are written, read again and summed, which is as much as both ends of a tile once more.
    """
    group = H // H_KV
    numbers = [n for n in range(1, group + 1) if causal and group % n == 0] or [1]
    orders = {
        n: order_of(B, H, H_KV * n, N_Q, N_K, BLOCK_M, row_bytes, causal, 2.0 if n == 1 else 4.0,
                    sms)
        for n in numbers
    }  # fmt: skip
    best = min(numbers, key=lambda n: makespan(*orders[n])) if len(numbers) > 1 else 1
    return best, orders[best]


@cache  # kept for good: a CUDA graph or another stream may still read the table
def shares_of(device: torch.device, *sizes: Any) -> tuple[int, int, int, torch.Tensor]:
    """Return parts, programs, tiles of keys and the table of tiles; made once for these sizes."""
    parts, order = parts_of(*sizes, sm_count(device))
    return parts, order[4], order[1], torch.tensor(schedule(*order), dtype=torch.int32).to(device)


# --8<-- [end:parts]


# --8<-- [start:launch]
def backward_hopper(
    dout: torch.Tensor, dlse: torch.Tensor | None, q: torch.Tensor, k: torch.Tensor,
    v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, causal: bool, scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return dq, dk and dv; the arguments are checked, `gradients_path` chose this."""
    (B, H, N_Q, D), (H_KV, N_K) = q.shape, k.shape[1:3]
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    BLOCK_D = 64 if D <= 64 else 128
    BLOCK_M, stages, registers = tiling = GRADIENT_CONFIGS[BLOCK_D]
    rows = triton.cdiv(N_Q, BLOCK_M) * BLOCK_M
    lse_2, delta = torch.empty((2, B * H, rows), dtype=torch.float32, device=q.device)
    dq_sum = torch.empty((B * H * rows * BLOCK_D // 256, 256), dtype=torch.float32, device=q.device)
    kind = q.device, q.dtype, D, H, N_Q
    if dlse is not None:  # copied, for it may start anywhere
        dlse = dlse.clone(memory_format=torch.contiguous_format)
    launch(
        prepare_kernel, B * H * (rows // 64),
        # hooks may have moved what was saved
        (*kind, out.stride(), dout.stride(), dlse is None, starts_fit(out, lse)),
        operand(out, 64, False), operand(dout, 64, False), lse, dlse, lse_2, delta, dq_sum,
        H, N_Q, rows, D, BLOCK_D, dlse is not None,
    )  # fmt: skip
    row_bytes = BLOCK_D * (2 * q.itemsize + 4)  # q, dout and dq
    parts, programs, tiles, table = shares_of(
        q.device, B, H, H_KV, N_Q, N_K, BLOCK_M, row_bytes, causal
    )
    groups = H_KV * parts
    dk_parts, dv_parts = dk, dv
    if parts > 1:
        dk_parts, dv_parts = torch.empty((2, B, groups, N_K, D), dtype=k.dtype, device=k.device)
    tail = N_K % KEYS.value > 0
    launch(
        flash_attention_hopper_gradients_kernel, programs,
        (q.device, q.dtype, BLOCK_D, tiling, causal, tail),  # it specializes on no integer
        descriptor(q, BLOCK_M, BLOCK_D), descriptor(k, 64, BLOCK_D), descriptor(v, 64, BLOCK_D),
        descriptor(dout, BLOCK_M, BLOCK_D), descriptor(dk_parts, 64, BLOCK_D),
        descriptor(dv_parts, 64, BLOCK_D), rows_descriptor(lse_2, (1, BLOCK_M)),
        rows_descriptor(delta, (1, BLOCK_M)), rows_descriptor(dq_sum, (16, 256)),
        table, table.shape[1], tiles, H, groups, parts, N_Q, N_K, scale / math.log(2), scale,
        BLOCK_M, stages, registers, causal, tail, num_warps=4,
    )  # fmt: skip
    if parts > 1:
        torch.sum(dk_parts.view(B, H_KV, parts, N_K, D), 2, out=dk)
        torch.sum(dv_parts.view(B, H_KV, parts, N_K, D), 2, out=dv)
    launch(
        finish_kernel, B * H * (rows // 64), (*kind, dq.stride()),
        dq_sum, operand(dq, 64, False), scale, H, N_Q, rows, D, BLOCK_D,
    )  # fmt: skip
    return dq, dk, dv


# --8<-- [end:launch]
