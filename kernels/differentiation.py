"""Whether somebody differentiates an argument: backward, or forward by dual numbers."""

from typing import Any

import torch
from torch.autograd import forward_ad

_forward_ad: Any = forward_ad


def wants_gradient(x: torch.Tensor) -> bool:
    """Whether x requires a gradient that is recorded."""
    return x.requires_grad and torch.is_grad_enabled()


def has_tangent(x: torch.Tensor) -> bool:
    """Whether x is a dual number; outside of any level, which PyTorch tells privately, none is."""
    return _forward_ad._current_level >= 0 and forward_ad.unpack_dual(x).tangent is not None


def refuse_gradients(**arguments: torch.Tensor) -> None:
    """Refuse to drop a gradient in silence.

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.
    """
    for name, x in arguments.items():
        if wants_gradient(x):
            raise ValueError(f"{name} requires a gradient; allowed: none, or under torch.no_grad()")
        if has_tangent(x):
            raise ValueError(f"{name} has a forward-mode tangent; allowed: none")
