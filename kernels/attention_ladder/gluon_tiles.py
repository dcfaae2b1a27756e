"""What steps 4 to 8 have in common: order, barriers, softmax, output and descriptors of tiles."""

import math

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

# Triton 3.6 has the long names, newer versions the short ones.
NEW = hasattr(tma, "async_load")
async_load = tma.async_load if NEW else tma.async_copy_global_to_shared
async_store = tma.async_store if NEW else tma.async_copy_shared_to_global
LN_2 = gl.constexpr(math.log(2))


def descriptor(x: torch.Tensor, rows: int) -> TensorDescriptor:
    """Return what TMA needs to move tiles of (rows, D) of x (B, H, N, D), taken as one matrix."""
    block = [rows, x.shape[3]]
    dtype = gl.float16 if x.dtype == torch.float16 else gl.bfloat16
    layout = gl.NVMMASharedLayout.get_default_for(block, dtype)
    return TensorDescriptor.from_tensor(x.view(-1, x.shape[3]), block, layout)


@gluon.jit
def tile_of(pid, tiles, together, IS_CAUSAL: gl.constexpr):
    """Head and tile of a program; causal: the longest tiles of `together` heads first."""
    head, tile = pid // tiles, pid % tiles
    if IS_CAUSAL:
        first = head // together * together
        heads = gl.minimum(gl.num_programs(0) // tiles - first, together)
        nth = pid - first * tiles
        head, tile = first + nth % heads, tiles - 1 - nth // heads
    return head, tile


# --8<-- [start:barriers]
@gluon.jit
def barriers(SLOTS: gl.constexpr, COUNT: gl.constexpr):
    """Return a barrier for each slot of a ring, which completes when COUNT have arrived."""
    made = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(SLOTS):
        mbarrier.init(made.index(slot), count=COUNT)
    return made


# --8<-- [end:barriers]


# --8<-- [start:softmax]
@gluon.jit
def softmax(scores, running_max, qk_scale, row, key, MASKED: gl.constexpr):
    """exp2 of one tile of scores, measured from the new maximum of its rows."""
    layout: gl.constexpr = scores.type.layout
    if MASKED:
        queries = row + gl.arange(0, scores.shape[0], gl.SliceLayout(1, layout))
        keys = key + gl.arange(0, scores.shape[1], gl.SliceLayout(0, layout))
        scores = gl.where(keys[None, :] <= queries[:, None], scores, -float("inf"))
    new_max = gl.maximum(running_max, gl.max(scores, 1) * qk_scale)
    p = gl.exp2(scores * qk_scale - new_max[:, None])
    return p, gl.exp2(running_max - new_max), new_max


# --8<-- [end:softmax]


@gluon.jit
def store(out_desc, out_tile, lse_ptr, acc, running_max, running_sum, row):
    """Divide, and write the output through shared memory and TMA, and the LSE."""
    total = gl.convert_layout(running_sum, gl.SliceLayout(1, acc.type.layout))
    out_tile.store((acc * (1.0 / total)[:, None]).to(out_desc.dtype))
    fence_async_shared()
    async_store(out_desc, [row, 0], out_tile)
    rows = row + gl.arange(0, acc.shape[0], running_max.type.layout)
    gl.store(lse_ptr + rows, (running_max + gl.log2(running_sum)) * LN_2)
