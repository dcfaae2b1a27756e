"""A gradient that a kernel does not compute is refused and never dropped."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad

from kernels.flash_attention import flash_attention
from kernels.flash_decode import flash_decode
from kernels.matmul import matmul
from kernels.rms_norm import rms_norm
from kernels.softmax import softmax

# PyTorch's own, at the first dual number of a process.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script.:DeprecationWarning")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def ones(*size: int) -> torch.Tensor:
    return torch.ones(size, dtype=torch.float16, device=DEVICE)


CALLS: dict[str, Callable[[torch.Tensor], Any]] = {
    "x": softmax,
    "a": lambda x: matmul(x, ones(4, 4)),
    "b": lambda x: matmul(ones(4, 4), x),
    "q": lambda x: flash_decode(x.view(1, 1, 1, 16), ones(1, 1, 3, 16), ones(1, 1, 3, 16)),
    "k": lambda x: flash_decode(ones(1, 1, 1, 16), x.view(1, 1, 1, 16), ones(1, 1, 1, 16)),
    "v": lambda x: flash_decode(ones(1, 1, 1, 16), ones(1, 1, 1, 16), x.view(1, 1, 1, 16)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_gradient_is_refused_where_none_is_computed(name: str) -> None:
    x = ones(4, 4).requires_grad_()
    with pytest.raises(ValueError, match=f"^{name} requires a gradient; allowed: none, or under"):
        CALLS[name](x)
    with torch.no_grad():
        CALLS[name](x)


@pytest.mark.parametrize("name", CALLS)
def test_a_tangent_is_refused(name: str) -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(ones(4, 4), ones(4, 4))
        with pytest.raises(ValueError, match=f"^{name} has a forward-mode tangent; allowed: none"):
            CALLS[name](dual)
        CALLS[name](ones(4, 4))


@pytest.mark.parametrize("which", range(3))
def test_where_backward_is_computed_a_tangent_is_refused_too(which: int) -> None:
    with forward_ad.dual_level():
        tensors = [ones(1, 1, 2, 16) for _ in range(3)]
        tensors[which] = forward_ad.make_dual(tensors[which], ones(1, 1, 2, 16))
        with pytest.raises(NotImplementedError, match="jvp"):
            flash_attention(*tensors)
        rows = [tensors[0].view(2, 16), tensors[1].view(2, 16), tensors[2].view(2, 16)[0]]
        with pytest.raises(NotImplementedError, match="jvp"):
            rms_norm(*rows)
