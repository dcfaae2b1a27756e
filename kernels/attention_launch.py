"""What the attention launchers share: refusals, operands, and the sizes of tiles."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.device import generation, shared_memory

Key, Config = TypeVar("Key"), TypeVar("Config")
DTYPES = (torch.float16, torch.bfloat16, torch.float32)
HEAD_DIMS = range(16, 257)
LENGTH_LIMIT = 2**31 - 256  # positions are 32-bit, and a tile may reach beyond the last one
L2_SHARE = 16 * 2**20  # bytes of keys and values at work at a time; a Hopper L2 holds 50 MB


# --8<-- [start:refusals]
def check_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale: float | None,
    causal: bool = False,
    window: int | None = None,
) -> float:
    """Refuse what the attention kernels cannot compute; return the scale, 1/sqrt(D) if None.

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.
    """
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dim() != 4:
            raise ValueError(f"{name} has {x.dim()} dimensions; allowed: 4, (B, H, N, D)")
        if x.dtype not in DTYPES:
            raise ValueError(f"{name} is {x.dtype}; allowed: {', '.join(map(str, DTYPES))}")
        if (x.dtype, x.device) != (q.dtype, q.device):
            raise ValueError(
                f"{name} is {x.dtype} on {x.device}; allowed: as q, {q.dtype} on {q.device}"
            )
        if x.shape[3] not in HEAD_DIMS:
            raise ValueError(f"{name} has head dim {x.shape[3]}; allowed: 16 to 256")
        if x.shape[2] > LENGTH_LIMIT:
            raise ValueError(f"{name} has length {x.shape[2]}; allowed: up to {LENGTH_LIMIT}")
        if x.stride(3) != 1:
            raise ValueError(f"{name} has stride {x.stride(3)} in its last dimension; allowed: 1")
    (B, H, _, D), H_KV = q.shape, k.shape[1]
    if H % H_KV if H_KV else H:
        raise ValueError(
            f"q has {H} heads and k has {H_KV}; allowed: a number of heads in q that is a "
            "multiple of that in k"
        )
    if (k.shape[0], k.shape[3]) != (B, D) or v.shape != k.shape:
        raise ValueError(
            f"k is {tuple(k.shape)} and v is {tuple(v.shape)}; allowed: both (B={B}, H_KV, N_K, "
            f"D={D}), to fit q"
        )
    # A float: Triton compiles an integer 1 into the kernel, and other kernels for other integers.
    scale = 1 / math.sqrt(D) if scale is None else float(scale)
    if not 0 < scale < math.inf:
        raise ValueError(f"scale is {scale}; allowed: finite and above 0")
    if window is not None and (window < 1 or not causal):
        raise ValueError(f"window is {window} with causal={causal}; allowed: >= 1 with causal=True")
    return scale


# --8<-- [end:refusals]


def tma_fits(*tensors: torch.Tensor) -> bool:
    """Whether TMA can fetch tiles of all: 16-byte starts and strides, none of them 0 (expanded)."""
    if tensors[0].itemsize == 4:  # no tensor core takes float32 exactly; pointers spill less there
        return False
    if tensors[0].is_cuda and generation(tensors[0].device) < 9:
        return False
    return all(x.data_ptr() % 16 == 0 and strides_fit(x.stride(), x.itemsize) for x in tensors)


@lru_cache(maxsize=256)
def strides_fit(strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether all but the last are what TMA can step by."""
    return all(stride > 0 and stride * itemsize % 16 == 0 for stride in strides[:-1])


def operand(x: torch.Tensor, rows: int, tma: bool) -> Any:
    """What a kernel takes for x: a descriptor of (rows, BLOCK_D) tiles, or pointer and strides."""
    if not tma:
        return (x, *x.stride()[:3])
    block = [1, 1, rows, triton.next_power_of_2(x.shape[3])]
    return TensorDescriptor(x, list(x.shape), list(x.stride()), block)


# Kernel, bytes an element, BLOCK_D (64 and below alike): BLOCK_M, BLOCK_N, warps, stages.
CONFIGS = {
    ("forward", 2, 64): (64, 64, 4, 3),
    ("forward", 2, 128): (64, 64, 4, 3),
    ("forward", 2, 256): (128, 64, 8, 2),
    ("forward", 4, 64): (32, 32, 4, 2),
    ("forward", 4, 128): (32, 32, 4, 2),
    ("forward", 4, 256): (16, 32, 4, 2),
    ("keys", 2, 64): (64, 64, 4, 3),
    ("keys", 2, 128): (64, 64, 4, 2),
    ("keys", 2, 256): (32, 64, 8, 2),
    ("keys", 4, 64): (32, 32, 4, 1),
    ("keys", 4, 128): (16, 32, 4, 1),
    ("keys", 4, 256): (16, 16, 4, 1),
    ("queries", 2, 64): (128, 64, 8, 2),
    ("queries", 2, 128): (128, 64, 8, 2),
    ("queries", 2, 256): (64, 32, 8, 2),
    ("queries", 4, 64): (32, 32, 4, 1),
    ("queries", 4, 128): (32, 16, 4, 1),
    ("queries", 4, 256): (16, 16, 4, 1),
}
LARGE = 160 * 2**10  # bytes of shared memory: data centre GPUs have them, from the A100 on
# What takes the place of the above where a block has less: 99 KB, on a GeForce.
SMALL_CONFIGS = {
    ("forward", 2, 256): (64, 32, 4, 2),
    ("keys", 2, 256): (32, 32, 8, 2),
    ("queries", 2, 256): (32, 32, 8, 2),
}


def config(kernel: str, itemsize: int, D: int, device: torch.device) -> tuple[int, int, int, int]:
    """BLOCK_M, BLOCK_N, warps and stages of a kernel for a dtype, a head dim and a device."""
    key = kernel, itemsize, max(64, triton.next_power_of_2(D))
    return fitting(key, CONFIGS, SMALL_CONFIGS, device)


def queries_kept(q: torch.Tensor, tma: bool) -> bool:
    """Whether forward keeps its queries in registers: on Hopper, and where the interpreter runs.

    The addresses that take the place of TMA leave no room for them, nor do larger heads.
    """
    return tma and q.itemsize == 2 and q.shape[3] <= 128 and generation(q.device) in (0, 9)


def fitting(
    key: Key, configs: Mapping[Key, Config], small: Mapping[Key, Config], device: torch.device
) -> Config:
    """Return the entry of configs, or of small if it has one and a block has less than LARGE."""
    tight = shared_memory(device) < LARGE
    return small[key] if tight and key in small else configs[key]


def heads_in_l2(q: torch.Tensor, k: torch.Tensor) -> int:
    """Heads of q that take turns, so that their keys and values stay in the L2; at least one."""
    one_head = 2 * k.shape[2] * k.shape[3] * k.itemsize
    return max(1, L2_SHARE // one_head) * (q.shape[1] // k.shape[1])
