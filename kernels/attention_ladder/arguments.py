"""What every step of the ladder refuses, so that the steps themselves show only their idea."""

import torch

from kernels.attention_launch import check_attention

MULTIPLE, LEAST = 128, 256  # of the length: no tile of keys is ragged, and any tile of queries fits


# --8<-- [start:refusals]
def check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float | None) -> float:
    """Refuse what the steps do not compute; return the scale, 1/sqrt(D) if None.

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.
    """
    scale = check_attention(q, k, v, scale)
    N, D = q.shape[2:]
    if q.dtype == torch.float32:
        raise ValueError("q is torch.float32; allowed: torch.float16, torch.bfloat16")
    if D not in (64, 128):
        raise ValueError(f"q has head dim {D}; allowed: 64, 128")
    if N < LEAST or N % MULTIPLE:
        raise ValueError(
            f"q has length {N}; allowed: multiples of {MULTIPLE}, {LEAST} or more, "
            "for the steps leave ragged tiles to flash_attention"
        )
    if k.shape != q.shape:
        raise ValueError(
            f"k and v are {tuple(k.shape)}; allowed: the shape of q, {tuple(q.shape)}, "
            "for the steps leave shared heads and other lengths to flash_attention"
        )
    if q.is_cuda and q.device.index != torch.cuda.current_device():
        raise ValueError(f"q is on {q.device}; allowed: the current device, where Triton launches")
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not x.numel() or not x.is_contiguous() or x.data_ptr() % 16:
            raise ValueError(
                f"{name} is {tuple(x.shape)} with strides {x.stride()} at byte {x.data_ptr() % 16} "
                "of 16; allowed: contiguous, not empty, at byte 0 of 16, as TMA demands"
            )
    return scale


# --8<-- [end:refusals]
