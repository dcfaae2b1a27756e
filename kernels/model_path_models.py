"""Two small language models with random weights, of the sizes that known ones have."""

from typing import Any

import torch
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, PreTrainedModel

GPT2, LLAMA = "gpt2", "llama"

# --8<-- [start:models]
SIZES: dict[str, dict[str, Any]] = {
    # GPT-2 medium; its vocabulary padded to a multiple of 64, more positions
    GPT2: {
        "n_layer": 24, "n_head": 16, "n_embd": 1024, "vocab_size": 50304, "n_positions": 16_385,
    },
    # a layer is that of Llama 3.2 3B, three query heads to a KV head of 128; four layers, a
    # smaller vocabulary
    LLAMA: {
        "num_hidden_layers": 4, "num_attention_heads": 24, "num_key_value_heads": 8,
        "hidden_size": 3072, "intermediate_size": 8192, "vocab_size": 32768,
        "max_position_embeddings": 32_769, "tie_word_embeddings": True,
    },
}  # fmt: skip


def build(name: str, dtype: torch.dtype, device: str, seed: int = 0) -> PreTrainedModel:
    """Return a model with random weights, without dropout; its attention is to be chosen.

    Raises
    ------
    ValueError
        For a name that `SIZES` has not.
    """
    if name not in SIZES:
        raise ValueError(f"name is {name!r}; allowed: {', '.join(SIZES)}")
    if name == GPT2:
        # the activation of GPT-2, in one kernel instead of eight
        dropouts = dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0)
        config = GPT2Config(activation_function="gelu_pytorch_tanh", **dropouts, **SIZES[name])
    else:
        config = LlamaConfig(**SIZES[name])
    torch.manual_seed(seed)
    with torch.device(device):
        model: PreTrainedModel = AutoModelForCausalLM.from_config(
            config, dtype=dtype, attn_implementation="eager"
        )
    return model


# --8<-- [end:models]
