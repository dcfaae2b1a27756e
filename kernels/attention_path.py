"""Which forward kernel takes a case of attention, and why not the fastest one.

The launcher asks the same function as tests, benchmark and pages, so that what is said about a
case and what runs cannot drift apart.
"""

from typing import NamedTuple

import torch

from kernels.attention_launch import tma_fits
from kernels.flash_attention_hopper import on_hopper, shape_refusal

HOPPER, PORTABLE = "flash_attention_hopper_kernel", "flash_attention_kernel"


class Path(NamedTuple):
    """A kernel by its name, and why a faster one does not take the case; empty if there is none."""

    kernel: str
    reason: str = ""


# --8<-- [start:path]
def forward_path(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, causal: bool, window: int
) -> Path:
    """Return the kernel that computes out from checked arguments; window is 0 for none."""
    if not on_hopper(q.device):
        return Path(PORTABLE, "not a Hopper GPU")
    if q.itemsize == 4:  # no tensor core multiplies float32 in full precision
        return Path(PORTABLE, "float32")
    if reason := shape_refusal(q.shape[2], k.shape[2], q.shape[3], causal, window):
        return Path(PORTABLE, reason)
    if not tma_fits(q, k, v, out):
        return Path(PORTABLE, "a start or a stride that TMA cannot take")
    return Path(HOPPER)


def chosen(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,  # noqa: ARG001, takes what the launcher takes
) -> Path:
    """Return which kernel `flash_attention` runs for its own arguments, and why none faster."""
    out = torch.empty_like(q, device="meta")  # strides alone
    return forward_path(q, k, v, out, causal, window or 0)


# --8<-- [end:path]
