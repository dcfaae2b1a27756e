"""The library's SDPA at its best, and two functions that are no rivals of any kernel.

`sdpa-causal` is the library's function without the mask that it makes while a graph is captured;
with a mask it repeats keys and values for the query heads that share them. `none` leaves attention
out and all else of the model in: its time is what no attention kernel can go below. `exact` serves
a copy of the model in float32 or better, as the reference.
"""

from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812, the field's own name
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from kernels.model_path_attention import course_mask

SDPA = "sdpa-causal"


# --8<-- [start:none]
@lru_cache(maxsize=1)
def numbers(size: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return numbers that lie ready in the place of attention's output; made once."""
    source = torch.Generator(device).manual_seed(0)
    return torch.randn(size, dtype=dtype, device=device, generator=source)


class Absent(torch.autograd.Function):
    """Attention in no time. On the way back all that comes from above goes on."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:  # noqa: ARG004
        ctx.kv_heads = key.shape[1]
        size = query.transpose(1, 2).shape
        return numbers(size, query.dtype, query.device).detach()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        dout = gradients[0].transpose(1, 2)
        part = dout[:, : ctx.kv_heads]  # so that the layers of keys and values have work too
        return dout, part, part


def absent_attention(
    _layer: nn.Module, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any
) -> tuple[Tensor, None]:
    """Launch no kernel, and leave an output in the layout that attention leaves."""
    out: Any = Absent.apply(query, key, value)
    return out, None


# --8<-- [end:none]


# --8<-- [start:exact]
def exact_attention(
    _layer: nn.Module, query: Tensor, key: Tensor, value: Tensor, *_: Any, **options: Any
) -> tuple[Tensor, None]:
    """Return PyTorch's attention in the inputs' dtype; its float32 kernel holds no scores.

    So there is a reference where separate calls would run out of memory.
    """
    group = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(group, 1) for x in (key, value))
    out = F.scaled_dot_product_attention(
        query, key, value, scale=options["scaling"],
        is_causal=query.shape[2] > 1,  # as many keys as queries; a query alone sees them all
    )  # fmt: skip
    return out.transpose(1, 2), None


# --8<-- [end:exact]


def register() -> None:
    """Make them known to every model of the library; what they are asked to hide is refused."""
    functions = {SDPA: sdpa_attention_forward, "none": absent_attention, "exact": exact_attention}
    for name, function in functions.items():
        AttentionInterface.register(name, function)
        AttentionMaskInterface.register(name, course_mask)
