"""The complete model path: prefill, decoding and a training step, with attention exchanged.

One model, with one set of weights, serves all implementations of attention, so that nothing else
differs between them.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers import AttentionInterface, DynamicCache, PreTrainedModel

from kernels import model_path_attention, model_path_stand_ins
from kernels.model_path_attention import kernel_of as kernel_of
from kernels.model_path_models import GPT2, LLAMA
from kernels.model_path_models import build as build

Outputs = dict[str, Tensor]
Step = Callable[[], Outputs]

model_path_attention.register()
model_path_stand_ins.register()
# names as results hold them: what the library calls it, and the one backend it may use
IMPLEMENTATIONS: dict[str, tuple[str, SDPBackend | None]] = {
    "ours": (model_path_attention.NAME, None),
    "sdpa-cudnn": (model_path_stand_ins.SDPA, SDPBackend.CUDNN_ATTENTION),
    "sdpa-flash": (model_path_stand_ins.SDPA, SDPBackend.FLASH_ATTENTION),
    "eager": ("eager", None),
    "none": ("none", None),
    "exact": ("exact", None),
}
TIMED = ("ours", "sdpa-cudnn", "sdpa-flash", "eager", "none")


def backend(name: str) -> AbstractContextManager[Any]:
    """Allow scaled_dot_product_attention only the backend that an implementation stands for."""
    only = IMPLEMENTATIONS[name][1]
    return nullcontext() if only is None else sdpa_kernel(only)


@contextmanager
def attention(model: PreTrainedModel, name: str) -> Iterator[None]:
    """Within the block the model attends by this implementation."""
    wanted = IMPLEMENTATIONS[name][0]
    if model.config._attn_implementation != wanted:  # setting it walks over all modules
        model.set_attn_implementation(wanted)
    with backend(name):
        yield


# --8<-- [start:steps]
def step_of(model: PreTrainedModel, phase: str, B: int, N: int, seed: int = 0) -> Step:
    """Return a step of a model that can be repeated, and gives the same each time.

    Parameters
    ----------
    phase : `prefill`, a prompt of N tokens into a new cache; `decode`, one token after N cached
        ones; `train`, forward, backward and AdamW on N tokens
    B : sequences

    Returns
    -------
    A function without arguments. It returns the logits (B, 1, vocabulary) of the last token, or
    the gradients of the first layer's attention, which have passed through all other layers.

    Raises
    ------
    ValueError
        For an unknown phase.
    """
    if phase not in STEPS:
        raise ValueError(f"phase is {phase!r}; allowed: {', '.join(STEPS)}")
    model.train(phase == "train")
    return STEPS[phase](model, B, N, torch.Generator(model.device).manual_seed(seed))


def prefill(model: PreTrainedModel, B: int, N: int, source: torch.Generator) -> Step:
    tokens = random_tokens(model, B, N, source)

    def step() -> Outputs:
        with torch.no_grad():
            return {"logits": model(tokens, use_cache=True, logits_to_keep=1).logits}

    return step


def decode(model: PreTrainedModel, B: int, N: int, source: torch.Generator) -> Step:
    token = random_tokens(model, B, 1, source)
    config, cache = model.config, DynamicCache(config=model.config)
    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    size = (B, heads, N, first_attention(model).head_dim)
    for layer in range(config.num_hidden_layers):
        pair = (torch.randn(size, generator=source, device=model.device) for _ in range(2))
        # rounded first: a copy of the model in another dtype is to meet the same numbers
        cache.update(*(x.to(torch.bfloat16).to(model.dtype) for x in pair), layer)
    kept = [(layer.keys, layer.values) for layer in cache.layers]

    def step() -> Outputs:
        for layer, (keys, values) in zip(cache.layers, kept, strict=True):
            layer.keys, layer.values = keys, values  # without the last step's token
        with torch.no_grad():
            return {"logits": model(token, past_key_values=cache, use_cache=True).logits}

    return step


def train(model: PreTrainedModel, B: int, N: int, source: torch.Generator) -> Step:
    tokens = random_tokens(model, B, N, source)
    # Steps of length 0 do all the work, and leave every implementation the same weights.
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, fused=True)

    def step() -> Outputs:
        optimizer.zero_grad(set_to_none=True)
        model(tokens, labels=tokens, use_cache=False).loss.backward()
        optimizer.step()
        weights = first_attention(model).named_parameters()
        return {f"d{name}": w.grad for name, w in weights if w.dim() == 2 and w.grad is not None}

    return step


STEPS = {"prefill": prefill, "decode": decode, "train": train}
# --8<-- [end:steps]


def random_tokens(model: PreTrainedModel, B: int, N: int, source: torch.Generator) -> Tensor:
    size, device = model.config.vocab_size, model.device
    return torch.randint(size, (B, N), generator=source, device=device)


def first_attention(model: PreTrainedModel) -> Any:
    """Return the first module that calls an attention function."""
    return next(module for module in model.modules() if hasattr(module, "scaling"))


def seen_by_attention(model: PreTrainedModel, step: Step) -> tuple[Tensor, ...]:
    """Return q, k and v as the first layer hands them over in this step, strides included."""
    seen: list[Tensor] = []

    def look(module: Any, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> Any:
        seen.extend([] if seen else [x.detach() for x in (query, key, value)])
        return model_path_stand_ins.absent_attention(module, query, key, value)

    AttentionInterface.register("none", look)
    try:
        with attention(model, "none"):
            step()
    finally:
        model_path_stand_ins.register()
    return tuple(seen)


def attention_alone(
    model: PreTrainedModel, name: str, seen: tuple[Tensor, ...], backward: bool
) -> Callable[[], object]:
    """Return one layer's attention on these q, k and v, with backward if asked for."""
    function, layer = AttentionInterface()[IMPLEMENTATIONS[name][0]], first_attention(model)
    leaves = [x.detach().requires_grad_(backward) for x in seen]
    gradient = torch.randn_like(seen[0].transpose(1, 2).contiguous())

    def alone() -> object:
        with backend(name), torch.set_grad_enabled(backward):
            out, _ = function(layer, *leaves, None, scaling=layer.scaling)
            return torch.autograd.grad(out, leaves, gradient) if backward else out

    return alone


# Tokens of a prompt or a training step, at least: enough for the GPU to take longer than the host.
TOKENS = 16384
DECODED = 8  # sequences that are decoded together
LENGTHS: dict[str, dict[str, tuple[int, ...]]] = {
    GPT2: {
        "prefill": (1024, 4096, 8192, 16384),
        "train": (1024, 4096, 16384),
        "decode": (1024, 4096, 16384),
    },
    LLAMA: {
        "prefill": (1024, 4096, 8192, 16384, 32768),
        "train": (1024, 4096, 16384),
        "decode": (1024, 4096, 16384, 32768),
    },
}
CASES: list[tuple[str, dict[str, Any]]] = [
    (phase, {model: True, "B": DECODED if phase == "decode" else max(1, TOKENS // N), "N": N})
    for model, phases in LENGTHS.items()
    for phase, lengths in phases.items()
    for N in lengths
]
COUNTED = 4096  # the length at which launches are counted; they hardly depend on it
