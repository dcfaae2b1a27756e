"""Attention as three kernels: the scores and the probabilities go to memory and come back.

This is what the pages call naive: every step in the input dtype, the scale multiplied into Q
beforehand, so that S and P are each written once and read once: four passes over N_Q * N_K numbers.
"""

import math
from typing import Any

import torch

from kernels import attention_reference
from kernels.attention_reference import sizes
from kernels.work import Work


# --8<-- [start:naive]
def naive_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return softmax(q k^T) v for a q that carries its scale: matmul, softmax, matmul.

    Parameters
    ----------
    q : (B, H, N_Q, D) float16, bfloat16 or float32, already multiplied by 1/sqrt(D)
    k, v : (B, H_KV, N_K, D), dtype of q; H is a multiple of H_KV

    Returns
    -------
    out : (B, H, N_Q, D), dtype of q

    Raises
    ------
    ValueError
        When the heads of q are no multiple of those of k.
    """
    (B, H, N_Q, D), H_KV = q.shape, k.shape[1]
    if H % H_KV if H_KV else H:
        raise ValueError(f"q has {H} heads and k has {H_KV}; allowed: a multiple in q")
    rows = q.reshape(B, H_KV, -1, D) if q.numel() else q  # the heads of a group, one below another
    scores = rows @ k.mT
    p = torch.softmax(scores, dim=3)
    return (p @ v).reshape(B, H, N_Q, D)


# --8<-- [end:naive]


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return the same (B, H, N_Q, D) in float64."""
    return attention_reference.reference(q, k, v, scale=1.0)[0]


def inputs(shape: dict[str, Any], dtype: torch.dtype, device: str, seed: int = 0) -> dict[str, Any]:
    """Random normal q, k and v, the scale multiplied into q."""
    tensors = attention_reference.inputs(shape, dtype, device, seed)
    return {"q": tensors["q"] * (1 / math.sqrt(shape["D"])), "k": tensors["k"], "v": tensors["v"]}


def work(shape: dict[str, Any], itemsize: int, passes: str = "forward") -> Work:
    """Bytes and FLOPs: S written and read, P written and read, beside q, k, v and out."""
    if passes != "forward":
        raise ValueError(f"passes is {passes!r}; allowed: 'forward'")
    B, H, H_KV, N_Q, N_K, D = (shape[x] for x in ("B", "H", "H_KV", "N_Q", "N_K", "D"))
    numbers = 4 * B * H * N_Q * N_K + 2 * B * H * N_Q * D + 2 * B * H_KV * N_K * D
    return Work(numbers * itemsize, numbers * itemsize, 4 * B * H * N_Q * N_K * D)


SHAPES = {
    "test": [sizes(2, 4, 2, 5, 9, 16), sizes(1, 1, 1, 1, 1, 64), sizes(1, 3, 3, 33, 70, 40)],
    "bench": [
        sizes(4, 2048 // D, 2048 // D, N, N, D) for D in (64, 128) for N in (1024, 4096, 8192)
    ]
    + [sizes(8, 32, 32, 8192, 8192, 128), sizes(4, 64, 64, 8192, 8192, 128)],
}
