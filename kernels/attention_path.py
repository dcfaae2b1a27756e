"""Which kernel takes a case of attention, forward and backward, and why not the fastest one.

The launchers ask the same functions as tests, benchmark and pages, so that what is said about a
case and what runs cannot drift apart.
"""

from typing import NamedTuple

import torch

from kernels.attention_launch import tma_fits
from kernels.flash_attention_hopper import on_hopper, shape_refusal
from kernels.flash_attention_hopper_gradients import gradients_fit
from kernels.flash_attention_hopper_short import is_short

HOPPER, PORTABLE = "flash_attention_hopper_kernel", "flash_attention_kernel"
HOPPER_SHORT = "flash_attention_hopper_short_kernel"
HOPPER_GRADIENTS = "flash_attention_hopper_gradients_kernel"
PORTABLE_GRADIENTS = "key_gradients_kernel"  # and that of the queries


class Path(NamedTuple):
    """A kernel by its name, and why a faster one does not take the case; empty if there is none."""

    kernel: str
    reason: str = ""


def repeats(deterministic: bool | None) -> bool:
    """Return what was asked for; None asks PyTorch's own switch."""
    return torch.are_deterministic_algorithms_enabled() if deterministic is None else deterministic


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
    return Path(HOPPER_SHORT if is_short(k.shape[2], k.shape[3], causal) else HOPPER)


def gradients_path(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor, window: int,
    deterministic: bool,
) -> Path:  # fmt: skip
    """Return the kernel that computes gradients from what forward saved and dout."""
    if not on_hopper(q.device):
        return Path(PORTABLE_GRADIENTS, "not a Hopper GPU")
    if not gradients_fit(q, k, v, dout, window):
        reason = "float32, a window, a head dim other than 40, 48, ... 128, or a tensor not for TMA"
        return Path(PORTABLE_GRADIENTS, reason)
    if deterministic:
        return Path(PORTABLE_GRADIENTS, "asked to repeat bit for bit")
    return Path(HOPPER_GRADIENTS)


def chosen(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,  # noqa: ARG001, takes what the launcher takes
    deterministic: bool | None = None,
    gradients: bool = False,
) -> Path:
    """Return which kernel `flash_attention` runs for its arguments, and why none faster.

    With `gradients`, which one its backward runs, for a gradient that lies as the output does.
    """
    out = torch.empty_like(q, device="meta")  # strides alone
    if gradients:
        return gradients_path(q, k, v, out, window or 0, repeats(deterministic))
    return forward_path(q, k, v, out, causal, window or 0)


# --8<-- [end:path]
