"""Attention forward on Hopper, in Gluon: copies, products and softmax run side by side.

Gluon is Triton's lower dialect: layouts, shared memory and barriers are written out. One warp only
fetches tiles by TMA, two or three warpgroups multiply and exponentiate, and each program takes tile
after tile, so that one is fetched while the one before it is finished.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernels.attention_launch import heads_in_l2
from kernels.device import generation, sm_count
from kernels.flash_attention_hopper_consumer import consumer
from kernels.flash_attention_hopper_producer import ROWS, producer
from kernels.quick_launch import launch


# --8<-- [start:kernel]
# One kernel for all lengths: their divisors would only make it compile again.
@gluon.jit(do_not_specialize=["heads", "tiles", "together", "H", "group", "N_Q", "N_K"])
def flash_attention_hopper_kernel(
    q_desc, k_desc, v_desc, out_desc, lse_ptr,  # (B, H, N, D); lse (B, H, N_Q)
    counter,                                    # tiles taken, programs done; 0 before and after
    heads, tiles, together,                     # B H; tiles a head; heads that take turns
    H, group, N_Q, N_K, qk_scale,               # group: heads that share keys; log2(e) * scale
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, CONSUMERS: gl.constexpr, STAGES: gl.constexpr,
    REGISTERS: gl.constexpr, IS_CAUSAL: gl.constexpr, HAS_TAIL: gl.constexpr,
):  # fmt: skip
    """One program an SM: allocate rings of tiles with their barriers, then split into roles."""
    D: gl.constexpr = q_desc.block_type.shape[3]
    dtype: gl.constexpr = q_desc.dtype
    SLOTS: gl.constexpr = 2 * CONSUMERS
    B: gl.constexpr = mbarrier.MBarrierLayout()
    q_tiles = gl.allocate_shared_memory(dtype, [SLOTS, 1, 1, ROWS, D], q_desc.layout)
    k_tiles = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, BLOCK_N, D], k_desc.layout)
    v_tiles = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, BLOCK_N, D], v_desc.layout)
    out_tiles = gl.allocate_shared_memory(dtype, [CONSUMERS, 1, 1, ROWS, D], out_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], B)
    q_empty = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], B)
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], B)
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], B)
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], B)
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], B)
    for slot in gl.static_range(SLOTS):
        mbarrier.init(q_full.index(slot), count=1)
        mbarrier.init(q_empty.index(slot), count=1)
    for slot in gl.static_range(STAGES):
        mbarrier.init(k_full.index(slot), count=1)
        mbarrier.init(v_full.index(slot), count=1)
        mbarrier.init(k_empty.index(slot), count=CONSUMERS)
        mbarrier.init(v_empty.index(slot), count=CONSUMERS)
    notes = gl.allocate_shared_memory(gl.int32, [6, 1], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    told = gl.allocate_shared_memory(gl.int64, [2, 1], B)
    heard = gl.allocate_shared_memory(gl.int64, [2, 1], B)
    for slot in gl.static_range(2):
        mbarrier.init(told.index(slot), count=1)
        mbarrier.init(heard.index(slot), count=CONSUMERS)
    bars = (q_full, q_empty, k_full, k_empty, v_full, v_empty, told, heard)
    order = (heads, tiles, together)
    # Each role is written out: a tuple in a variable would make tensors of its constants.
    if CONSUMERS == 2:
        gl.warp_specialize([
            (consumer, (0, q_desc, out_desc, lse_ptr, q_tiles, k_tiles, v_tiles, out_tiles, bars,
                        notes, H, N_Q, N_K, qk_scale, BLOCK_N, CONSUMERS, STAGES, IS_CAUSAL,
                        HAS_TAIL)),
            (consumer, (1, q_desc, out_desc, lse_ptr, q_tiles, k_tiles, v_tiles, out_tiles, bars,
                        notes, H, N_Q, N_K, qk_scale, BLOCK_N, CONSUMERS, STAGES, IS_CAUSAL,
                        HAS_TAIL)),
            (producer, (q_desc, k_desc, v_desc, q_tiles, k_tiles, v_tiles, bars, counter, notes,
                        order, H, group, N_Q, N_K, BLOCK_M, BLOCK_N, CONSUMERS, STAGES,
                        IS_CAUSAL)),
        ], [4, 1], [REGISTERS, 24])  # fmt: skip
    else:
        gl.warp_specialize([
            (consumer, (0, q_desc, out_desc, lse_ptr, q_tiles, k_tiles, v_tiles, out_tiles, bars,
                        notes, H, N_Q, N_K, qk_scale, BLOCK_N, CONSUMERS, STAGES, IS_CAUSAL,
                        HAS_TAIL)),
            (consumer, (1, q_desc, out_desc, lse_ptr, q_tiles, k_tiles, v_tiles, out_tiles, bars,
                        notes, H, N_Q, N_K, qk_scale, BLOCK_N, CONSUMERS, STAGES, IS_CAUSAL,
                        HAS_TAIL)),
            (consumer, (2, q_desc, out_desc, lse_ptr, q_tiles, k_tiles, v_tiles, out_tiles, bars,
                        notes, H, N_Q, N_K, qk_scale, BLOCK_N, CONSUMERS, STAGES, IS_CAUSAL,
                        HAS_TAIL)),
            (producer, (q_desc, k_desc, v_desc, q_tiles, k_tiles, v_tiles, bars, counter, notes,
                        order, H, group, N_Q, N_K, BLOCK_M, BLOCK_N, CONSUMERS, STAGES,
                        IS_CAUSAL)),
        ], [4, 4, 1], [REGISTERS, REGISTERS, 24])  # fmt: skip


# --8<-- [end:kernel]


# BLOCK_D: BLOCK_M, BLOCK_N, consumers, stages, registers of a consumer's thread.
CONFIGS = {64: (192, 128, 3, 2, 160), 128: (128, 128, 2, 2, 240)}


def hopper_blocks(D: int) -> tuple[int, int]:
    """Return BLOCK_M and BLOCK_N for a head dim."""
    return CONFIGS[64 if D <= 64 else 128][:2]


# --8<-- [start:fits]
def on_hopper(device: torch.device) -> bool:
    """Whether the device has the warpgroup instructions and the TMA that this kernel is made of."""
    return generation(device) == 9


def shape_refusal(N_Q: int, N_K: int, D: int, causal: bool, window: int) -> str:
    """Return why this kernel does not take the shape, "" if it does.

    If causal, the keys must outnumber the queries by a multiple of 64, 0 included: then each
    warpgroup meets its diagonal in one tile, and every query sees a key.
    """
    beyond = N_K - N_Q
    if not 32 < D <= 128:
        return "a head dim outside 33 to 128"
    if N_Q < 64:
        return "fewer than 64 queries"
    if window:
        return "a window"
    if causal and (beyond < 0 or beyond % 64):
        return "causal, and the keys do not outnumber the queries by a multiple of 64"
    return ""


# --8<-- [end:fits]


# --8<-- [start:launch]
# What depends on sizes alone is made once: a short kernel is over before its launch is prepared.
def tile_layout(rows: int, columns: int, dtype: torch.dtype) -> gl.NVMMASharedLayout:
    """How tiles of (rows, columns) lie in shared memory for the matrix instruction."""
    element = gl.float16 if dtype == torch.float16 else gl.bfloat16
    return gl.NVMMASharedLayout.get_default_for([1, 1, rows, columns], element)


_described: dict[Any, dict[str, Any]] = {}  # the fields of a descriptor, without the tensor


def described(
    x: torch.Tensor, block: tuple[int, ...], layout: Callable[[], gl.NVMMASharedLayout]
) -> TensorDescriptor:
    """Return what TMA needs to move blocks of x; Triton checks it once for these sizes.

    `tma_fits` has checked where x starts. The other checks take longer than all else of a launch.
    """
    key = x.shape, x.stride(), x.dtype, block
    fields = _described.get(key)
    if fields is None:
        checked = TensorDescriptor(x, list(x.shape), list(x.stride()), list(block), layout())
        fields = _described[key] = vars(checked) | {"base": None}
    made = object.__new__(TensorDescriptor)
    vars(made).update(fields, base=x)
    return made


def descriptor(x: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    """Return what TMA needs to fetch tiles of (rows, columns) of x (B, H, N, D)."""
    return described(x, (1, 1, rows, columns), partial(tile_layout, rows, columns, x.dtype))


@lru_cache(maxsize=64)
def kept_counter(device: torch.device, _stream: int) -> torch.Tensor:
    return torch.zeros(2, dtype=torch.int32, device=device)


def counter_on(device: torch.device) -> torch.Tensor:
    """Return two zeros for one launch, which leaves them zero, so that they serve the next one.

    The launches of a stream follow each other. Graphs may run side by side, so each has its own.
    """
    if torch.cuda.is_current_stream_capturing():
        return torch.zeros(2, dtype=torch.int32, device=device)
    return kept_counter(device, torch.cuda.current_stream(device).cuda_stream)


def forward_hopper(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    causal: bool, scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Fill out and lse and return them; the arguments are checked, `forward_path` chose this."""
    (B, H, N_Q, D), (H_KV, N_K) = q.shape, k.shape[1:3]
    BLOCK_D = 64 if D <= 64 else 128
    BLOCK_M, BLOCK_N, consumers, stages, registers = tiling = CONFIGS[BLOCK_D]
    tiles = triton.cdiv(N_Q, BLOCK_M)
    tail = N_K % BLOCK_N > 0
    launch(
        flash_attention_hopper_kernel, min(sm_count(q.device), B * H * tiles),
        (q.device, q.dtype, BLOCK_D, tiling, causal, tail),  # it specializes on no integer
        descriptor(q, 64, BLOCK_D), descriptor(k, BLOCK_N, BLOCK_D),
        descriptor(v, BLOCK_N, BLOCK_D), descriptor(out, 64, BLOCK_D), lse,
        counter_on(q.device), B * H, tiles, heads_in_l2(q, k),
        H, H // H_KV, N_Q, N_K, scale / math.log(2),
        BLOCK_M, BLOCK_N, consumers, stages, registers, causal, tail, num_warps=4,
    )  # fmt: skip
    return out, lse


# --8<-- [end:launch]
