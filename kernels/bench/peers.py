"""Everything that is timed on one operation: our launcher and the libraries' best calls.

Each implementation is a function of the launcher's own keyword arguments that returns its outputs
as a tuple. What a library cannot do it refuses, and the refusal becomes a row of the result.
"""

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812, the field's own name
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from kernels.bench.cases import LADDER_OURS
from kernels.bench.timing import Run

Outputs = tuple[Tensor, ...]
Implementation = Callable[..., Outputs]


class AbsentError(RuntimeError):
    """A library that is not installed here. Its rows say so."""


OUTPUTS = {
    "softmax": ("out",),
    "rms_norm": ("out", "residual_out"),
    "matmul": ("out",),
    "flash_attention": ("out", "lse"),
    "flash_decode": ("out", "lse"),
    "attention_ladder": ("out", "lse"),
}
ATTENTION = ("flash_attention", "flash_decode", "attention_ladder")
INPUTS = {"rms_norm": ("x", "residual", "weight")}  # those with a gradient
ATTENTION_INPUTS = ("q", "k", "v")
BY_LIGER = ("softmax", "rms_norm")
# outputs that a gradient comes in through; the LSE has none
WITH_GRADIENT = {"rms_norm": ("out", "residual_out")}
BACKENDS = {
    "sdpa-cudnn": SDPBackend.CUDNN_ATTENTION,
    "sdpa-flash": SDPBackend.FLASH_ATTENTION,
    "sdpa-efficient": SDPBackend.EFFICIENT_ATTENTION,
    "sdpa-math": SDPBackend.MATH,
}


def names(stem: str, direction: str = "forward", dtype: str = "bf16") -> tuple[str, ...]:
    """Return the implementations of an operation that are timed, ours first.

    The slow ones, and those that compile for each shape, are not timed in every data type.
    """
    if stem == "attention_ladder":
        return (*LADDER_OURS, "sdpa-cudnn")
    if stem in ("flash_attention", "flash_decode"):
        ours: tuple[str, ...] = ("ours",)
        if stem == "flash_attention":
            ours += ("ours-triton" if direction == "forward" else "ours-deterministic",)
        if (direction, dtype) == ("forward", "bf16"):
            return (*ours, *BACKENDS, "flex", "eager")
        return (*ours, *(name for name in BACKENDS if name != "sdpa-math"))
    if stem == "matmul":
        return ("ours", "cublas")
    compiled = ("compile",) if dtype == "bf16" else ()
    return ("ours", *compiled, "eager", *(("liger",) if stem in BY_LIGER else ()))


def implementation(name: str, stem: str, module: ModuleType) -> Implementation:
    """Return one implementation by its name. Raises ValueError for a name the stem has not."""
    if name == "ours-deterministic" and stem == "flash_attention":
        return partial(module.flash_attention, deterministic=True)
    if name == "ours":
        launcher: Callable[..., Any] = getattr(module, stem)
        return lambda **inputs: as_tuple(launcher(**inputs))
    if name == "ours-triton" and stem == "flash_attention":
        return partial(portable, module)
    if stem == "attention_ladder" and name in LADDER_OURS:
        step: Callable[..., Any] = module.IMPLEMENTATIONS[name]
        return lambda **inputs: as_tuple(step(**inputs))
    attention = stem in ATTENTION
    if attention and name in BACKENDS:
        return sdpa(BACKENDS[name])
    if attention and name == "flex":
        return flex()
    if attention and name == "eager":
        return eager_attention
    eager = ordinary(stem, module)
    if eager and name in ("eager", "cublas"):
        return eager
    if eager and name == "compile":
        torch._dynamo.reset()
        compiled: Implementation = torch.compile(eager, dynamic=False)
        return compiled
    if name == "liger" and stem in BY_LIGER:
        return liger(stem)
    if name in names(stem):
        raise ValueError(f"{name!r} needs a function eager in kernels/{stem}.py: ordinary PyTorch")
    raise ValueError(f"{stem} has no implementation {name!r}; it has {', '.join(names(stem))}")


def ordinary(stem: str, module: ModuleType) -> Implementation | None:
    """Return the operation in ordinary PyTorch: `eager` of the kernel's module, or one of ours."""
    if own := getattr(module, "eager", None):
        return lambda **inputs: as_tuple(own(**inputs))
    return EAGER.get(stem)


def prepared(
    name: str,
    stem: str,
    module: ModuleType,
    inputs: dict[str, Any],
    direction: str,
    gradients: Outputs | None = None,
) -> Callable[[], Outputs]:
    """Return a call without arguments that does the work to measure and returns its outputs.

    Parameters
    ----------
    inputs : keyword arguments of the launcher.
    direction : `forward`, or `backward`, which runs forward once here and then only backward.
    gradients : those of the outputs, backward only.
    """
    call = implementation(name, stem, module)
    if direction == "forward":
        if name == "eager" and call is eager_attention and not inputs.get("causal"):
            call, inputs = naive(), scaled(inputs)
        # SDPA writes the LSE only when backward may follow; ours always does
        if stem in ("flash_attention", "attention_ladder") and name in (*BACKENDS, "flex"):
            inputs = with_leaves(stem, inputs)
            return lambda: call(**inputs)
        with torch.no_grad():
            call(**inputs)

        def forward() -> Outputs:
            with torch.no_grad():
                return call(**inputs)

        return forward
    inputs = with_leaves(stem, inputs)
    outputs = call(**inputs)[: len(gradients or ())]
    leaves = [inputs[name] for name in input_names(stem)]
    return lambda: torch.autograd.grad(outputs, leaves, gradients, retain_graph=True)


def input_names(stem: str) -> tuple[str, ...]:
    return INPUTS.get(stem, ATTENTION_INPUTS)


def output_names(stem: str, direction: str) -> tuple[str, ...]:
    """Return what is compared with the reference: the outputs, or the inputs' gradients."""
    if direction == "backward":
        return tuple(f"d{name}" for name in input_names(stem))
    return OUTPUTS.get(stem, ("out",))


def with_leaves(
    stem: str, inputs: dict[str, Any], dtype: torch.dtype | None = None
) -> dict[str, Any]:
    """Return the same inputs as leaves of a new graph, in another data type if one is given."""
    wanted = input_names(stem)
    return {
        name: value.detach().to(dtype or value.dtype).requires_grad_() if name in wanted else value
        for name, value in inputs.items()
    }


def as_tuple(value: Any) -> Outputs:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def portable(
    module: ModuleType,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> Outputs:
    """Run our attention kernel for every GPU, also where a faster one would take the case."""
    scale = scale or q.shape[3] ** -0.5
    return as_tuple(module.forward(q, k, v, causal, window or 0, scale, portable=True))


def eager_softmax(x: Tensor, **_: Any) -> Outputs:
    return (torch.softmax(x, -1),)


def eager_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float = 1e-6) -> Outputs:
    total = x + residual
    return F.rms_norm(total, (total.shape[-1],), weight, eps), total


def eager_matmul(a: Tensor, b: Tensor, **_: Any) -> Outputs:
    return (torch.matmul(a, b),)


def eager_attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, scale: float | None = None
) -> Outputs:
    """Product, softmax, product in the inputs' data type, the mask aligned bottom right."""
    if not causal:
        return naive()(**scaled({"q": q, "k": k, "v": v, "scale": scale}))
    group, (N_Q, N_K) = q.shape[1] // k.shape[1], (q.shape[2], k.shape[2])
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    seen = torch.ones(N_Q, N_K, dtype=torch.bool, device=q.device).tril(N_K - N_Q)
    scores = scaled({"q": q, "scale": scale})["q"] @ k.mT
    p = torch.softmax(scores.masked_fill(~seen, float("-inf")), 3)
    return (p.nan_to_num() @ v,)


EAGER: dict[str, Implementation] = {
    "softmax": eager_softmax,
    "rms_norm": eager_rms_norm,
    "matmul": eager_matmul,
}


def naive() -> Implementation:
    """Return the three kernels of the lesson; their q carries its scale already."""
    from kernels.naive_attention import naive_attention

    return lambda **inputs: as_tuple(naive_attention(**inputs))


def scaled(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the same inputs with the scale multiplied into q, and no options."""
    scale = inputs.get("scale") or inputs["q"].shape[3] ** -0.5
    tensors = {name: x for name, x in inputs.items() if isinstance(x, Tensor)}
    return tensors | {"q": inputs["q"] * scale}


def fused(attention: Callable[..., Tensor]) -> Implementation:
    """Return a library's attention as a function of the launcher's own keyword arguments.

    Parameters
    ----------
    attention : called with q, k, v and causal, scale and enable_gqa by name.
    """

    def call(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        causal: bool = False,
        window: int | None = None,
        scale: float | None = None,
    ) -> Outputs:
        if window is not None:
            raise ValueError("scaled_dot_product_attention has no window")
        if causal and q.shape[2] != k.shape[2]:
            raise ValueError("is_causal aligns the mask at the first key, not at the last")
        grouped = q.shape[1] != k.shape[1]
        return (attention(q, k, v, causal=causal, scale=scale, enable_gqa=grouped),)

    return call


def sdpa(backend: SDPBackend) -> Implementation:
    """Return scaled_dot_product_attention with exactly one backend."""

    def attention(q: Tensor, k: Tensor, v: Tensor, causal: bool, **options: Any) -> Tensor:
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, **options)

    return fused(attention)


def flex() -> Implementation:
    """Return compiled FlexAttention, compiled anew for each case so that no shape is dynamic."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._dynamo.reset()
    compiled = torch.compile(flex_attention, dynamic=False)
    masks: dict[int, Any] = {}

    def attention(q: Tensor, k: Tensor, v: Tensor, causal: bool, **options: Any) -> Tensor:
        N = q.shape[2]
        if causal and N not in masks:
            masks[N] = create_block_mask(
                lambda _b, _h, i, j: i >= j, None, None, N, N, device=q.device.type
            )
        out: Tensor = compiled(q, k, v, block_mask=masks.get(N) if causal else None, **options)
        return out

    return fused(attention)


def liger(stem: str) -> Implementation:
    """Return liger-kernel's call. Raises AbsentError where the package is not installed."""
    if importlib.util.find_spec("liger_kernel") is None:
        raise AbsentError("liger-kernel is not installed")
    functional = importlib.import_module("liger_kernel.transformers.functional")
    if stem == "softmax":
        return lambda x, **_: (functional.liger_softmax(x),)
    # by default its backward writes dx over the gradient that came in, which all peers share
    return lambda x, residual, weight, eps=1e-6: as_tuple(
        functional.liger_fused_add_rms_norm(x, residual, weight, eps, in_place=False)
    )


def ready(run: Callable[[], Outputs]) -> Run:
    """Return the run without its outputs, whose memory the allocator then has back at once."""

    def quiet() -> None:
        run()

    return quiet
