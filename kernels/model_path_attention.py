"""Our attention in Hugging Face `transformers`: a function for attention, and one for its mask.

A model asks the library for both by one name. The mask function hears what the model wants hidden,
and refuses all but the causal mask, which the kernels make themselves: whatever a model asks for
is computed or refused, and never left out in silence.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import causal_mask_function

from kernels.attention_path import Path
from kernels.differentiation import wants_gradient
from kernels.flash_attention import chosen, flash_attention
from kernels.flash_decode import flash_decode

NAME = "course"
FEW = 16  # queries that `flash_decode` stacks into one tile with those of their group
# what other attention functions of the library take and these kernels cannot compute
REFUSED = ("sliding_window", "softcap", "s_aux", "position_bias", "output_attentions")


# --8<-- [start:mask]
def course_mask(
    batch_size: int,  # noqa: ARG001, the library names it
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = causal_mask_function,
    attention_mask: Tensor | None = None,
    **_: Any,
) -> None:
    """Refuse every mask but the plain causal one; return None, since no kernel reads a mask.

    Parameters
    ----------
    q_length, kv_length : queries and keys of this step
    q_offset, kv_offset : position of the first query and of the first key
    mask_function : what the model hides, as a function of positions
    attention_mask : (B, kv_length) bool, False where a token is padding; None for no padding

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.
    """
    if mask_function is not causal_mask_function:
        name = getattr(mask_function, "__qualname__", mask_function)
        raise ValueError(
            f"mask_function is {name}; allowed: the causal one, without window, packed sequences, "
            "chunks or keys after the query"
        )
    if isinstance(q_offset, Tensor) or kv_offset or kv_length != q_offset + q_length:
        raise ValueError(
            f"{q_length} queries from position {q_offset} meet {kv_length} keys from position "
            f"{kv_offset}; allowed: a DynamicCache, whose last key is the last query's own"
        )
    if attention_mask is not None and not attention_mask.all():
        raise ValueError(
            f"attention_mask hides {int((~attention_mask.bool()).sum())} tokens; allowed: none, "
            "sequences of equal length without padding"
        )


# --8<-- [end:mask]


# --8<-- [start:attention]
def course_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Return causal attention in the library's layout, and no weights.

    Parameters
    ----------
    module : the layer that asks; its `is_causal` counts where the argument is None
    query : (B, H, N_Q, D) float16, bfloat16 or float32, any strides the launchers take
    key, value : (B, H_KV, N_K, D), the cached ones included; H is a multiple of H_KV
    attention_mask : None, as `course_mask` returns it
    scaling : factor of the scores; 1/sqrt(D) if None

    Returns
    -------
    out : (B, N_Q, H, D), a view: the kernels write in the order of the query's memory

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.
    """
    if attention_mask is not None:
        raise ValueError(f"attention_mask is {tuple(attention_mask.shape)}; allowed: None")
    if dropout:
        raise ValueError(f"dropout is {dropout}; allowed: 0, set it in the model's configuration")
    if not (getattr(module, "is_causal", True) if is_causal is None else is_causal):
        raise ValueError("is_causal is False; allowed: True")
    for name in REFUSED:
        if options.get(name) is not None and options[name] is not False:
            raise ValueError(f"{name} is given; allowed: a model without it")
    if few_queries(query, key, value):
        out, _ = flash_decode(query, key, value, causal=True, scale=scaling)
    else:
        out, _ = flash_attention(query, key, value, causal=True, scale=scaling)
    return out.transpose(1, 2), None


def few_queries(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether to split the keys instead of the queries; that kernel has no gradient."""
    return query.shape[2] <= FEW and not any(map(wants_gradient, (query, key, value)))


def kernel_of(query: Tensor, key: Tensor, value: Tensor, gradients: bool = False) -> Path:
    """Return which kernel `course_attention` or its backward runs, and why not a faster one."""
    if not gradients and few_queries(query, key, value):
        return Path("flash_decode_kernel")
    return chosen(query, key, value, causal=True, gradients=gradients)


# --8<-- [end:attention]


# --8<-- [start:register]
def register() -> None:
    """Make `model.set_attn_implementation("course")` known to every model of the library."""
    AttentionInterface.register(NAME, course_attention)
    AttentionMaskInterface.register(NAME, course_mask)


# --8<-- [end:register]
