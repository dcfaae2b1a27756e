"""Attention in float64, written without tiles, and random arguments for every attention kernel."""

import math
from typing import Any

import torch


def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return out (B, H, N_Q, D) and lse (B, H, N_Q), both float64, on the device of q.

    Query i stands at key p = i + N_K - N_Q; causal it sees keys 0 to p, in a window of W only the
    last W of these. Rows that see none are 0 and -inf. Holds all N_Q * N_K scores of a head.
    """
    group = q.shape[1] // max(1, k.shape[1])
    q, k, v = q.double(), *(x.double().repeat_interleave(group, 1) for x in (k, v))
    N_Q, N_K = q.shape[2], k.shape[2]
    scores = q @ k.mT * (1 / math.sqrt(q.shape[3]) if scale is None else scale)
    seen = torch.ones(N_Q, N_K, dtype=torch.bool, device=q.device)
    seen = seen.tril(N_K - N_Q) if causal else seen
    seen = seen if window is None else seen.triu(N_K - N_Q - window + 1)
    scores = scores.masked_fill(~seen, -math.inf)
    highest = torch.nn.functional.pad(scores.detach(), (0, 1), value=-math.inf).amax(3, True)
    highest = highest.masked_fill(highest == -math.inf, 0.0)  # -inf - 0, not -inf + inf
    p = (scores - highest).exp()
    total = p.sum(3, keepdim=True)
    empty = total == 0
    total = total.masked_fill(empty, 1.0)
    lse = (total.log() + highest).masked_fill(empty, -math.inf)
    return p / total @ v, lse.squeeze(3)


def eager(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same in the input dtype, one torch call after the other: the error to beat."""
    group, N_Q, N_K = q.shape[1] // max(1, k.shape[1]), q.shape[2], k.shape[2]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = q @ k.mT * (1 / math.sqrt(q.shape[3]) if scale is None else scale)
    position = torch.arange(N_Q, device=q.device)[:, None] + N_K - N_Q
    key = torch.arange(N_K, device=q.device)
    hidden = (key > (position if causal else N_K)) | (key <= position - (window or N_K + N_Q))
    scores = scores.masked_fill(hidden, -math.inf)
    # Softmax of a row without a key is NaN.
    return scores.softmax(3).masked_fill(hidden, 0.0) @ v, scores.float().logsumexp(3)


def inputs(shape: dict[str, Any], dtype: torch.dtype, device: str, seed: int = 0) -> dict[str, Any]:
    """Random normal q, k, v and the options of `shape`: arguments of a launcher and `reference`."""
    generator = torch.Generator(device).manual_seed(seed)
    B, D = shape["B"], shape["D"]
    sizes = {
        "q": (B, shape["H"], shape["N_Q"], D),
        "k": (B, shape["H_KV"], shape["N_K"], D),
        "v": (B, shape["H_KV"], shape["N_K"], D),
    }
    tensors = {
        name: torch.randn(size, dtype=torch.float32, device=device, generator=generator).to(dtype)
        for name, size in sizes.items()
    }
    options = {name: shape[name] for name in ("causal", "window", "scale") if name in shape}
    return tensors | options


def sizes(B: int, H: int, H_KV: int, N_Q: int, N_K: int, D: int, **options: Any) -> dict[str, Any]:
    """A shape as the tables `SHAPES` hold it; not causal unless told."""
    shape = {"B": B, "H": H, "H_KV": H_KV, "N_Q": N_Q, "N_K": N_K, "D": D}
    return shape | {"causal": False} | options
