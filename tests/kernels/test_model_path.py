"""Whole models with our attention: logits, gradients, decoding, kernels that run, refusals."""

import copy
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    PreTrainedModel,
    StaticCache,
)

from kernels import model_path_attention, model_path_models
from kernels.attention_path import HOPPER, HOPPER_SHORT, PORTABLE, PORTABLE_GRADIENTS
from kernels.bench.launched import launched, peak_bytes
from kernels.bench.timing import FLUSH_BYTES, CudaTimer
from kernels.model_path import (
    CASES,
    COUNTED,
    IMPLEMENTATIONS,
    STEPS,
    TIMED,
    attention,
    attention_alone,
    build,
    seen_by_attention,
    step_of,
)
from kernels.model_path_attention import FEW, course_attention, course_mask, kernel_of
from kernels.model_path_stand_ins import absent_attention

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA GPU")
# Triton's interpreter multiplies bfloat16 wrongly.
DTYPES = [torch.float16, torch.float32, pytest.param(torch.bfloat16, marks=needs_gpu)]
MODELS = ("gpt2", "llama")
WORDS = 64
SMALL: dict[str, dict[str, Any]] = {
    "gpt2": {
        "n_layer": 2, "n_head": 2, "n_embd": 64, "vocab_size": WORDS, "n_positions": 300,
        "bos_token_id": None, "eos_token_id": None,
    },
    "llama": {
        "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2,
        "hidden_size": 192, "intermediate_size": 96, "vocab_size": WORDS,
        "max_position_embeddings": 300,
    },
}  # fmt: skip
LLAMA_SIZES: dict[str, Any] = {
    "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 128,
    "intermediate_size": 96, "vocab_size": WORDS, "head_dim": 32,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_path_models, "SIZES", SMALL)


def made(name: str, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    return build(name, dtype, DEVICE)


def words(B: int, N: int) -> torch.Tensor:
    source = torch.Generator().manual_seed(7)
    return torch.randint(WORDS, (B, N), generator=source).to(DEVICE)


def ask(model: PreTrainedModel, name: str, tokens: torch.Tensor, **options: Any) -> Any:
    with attention(model, name):
        return model(tokens, **options)


def scores(model: PreTrainedModel, step: Callable[[], Any]) -> dict[str, Any]:
    """What `assert_as_exact_as_eager` needs to allow for the interpreter's rounding."""
    return dict(zip("qkv", seen_by_attention(model, step), strict=True))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("N", [1, 17, 70, 150])
def test_logits_of_a_prompt_are_as_exact_as_eager(
    name: str, dtype: torch.dtype, N: int, assert_as_exact_as_eager: Any
) -> None:
    model, tokens = made(name, dtype).eval(), words(2, N)
    found, ordinary = (ask(model, way, tokens).logits.detach() for way in ("ours", "eager"))
    seen = scores(model, lambda: model(tokens))
    exact = ask(model.double(), "eager", tokens).logits.detach()
    assert_as_exact_as_eager(found, ordinary, exact, seen)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.bfloat16, marks=needs_gpu)])
def test_gradients_of_all_weights_are_as_exact_as_eager(
    name: str, dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    model, tokens = made(name, dtype).train(), words(2, 70)
    seen = scores(model, lambda: model(tokens, use_cache=False))
    found, ordinary = (gradients(model, way, tokens) for way in ("ours", "eager"))
    exact = gradients(model.double(), "eager", tokens)
    check = partial(is_refused, assert_as_exact_as_eager, seen)
    assert [w for w in exact if check(found[w], ordinary[w], exact[w])] == []
    assert len(exact) > 15


def is_refused(check: Any, seen: dict[str, Any], *three: torch.Tensor) -> bool:
    try:
        check(*three, seen)
    except AssertionError:
        return True
    return False


def gradients(model: PreTrainedModel, name: str, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
    model.zero_grad(set_to_none=True)
    ask(model, name, tokens, labels=tokens, use_cache=False).loss.backward()
    return {name: w.grad.clone() for name, w in model.named_parameters() if w.grad is not None}


@pytest.mark.parametrize("name", MODELS)
def test_prompt_and_steps_over_a_cache_give_what_the_whole_text_gives(name: str) -> None:
    model, tokens = made(name).eval(), words(2, 60)
    whole = ask(copy.deepcopy(model).double(), "eager", tokens).logits
    cache, parts = None, []
    for start, stop in ((0, 20), (20, 21), (21, 22), (22, 25), (25, 59), (59, 60)):
        with torch.no_grad():
            answer = ask(model, "ours", tokens[:, start:stop], past_key_values=cache)
        cache = answer.past_key_values
        parts.append(answer.logits)
    assert torch.allclose(torch.cat(parts, 1).double(), whole, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_generating_picks_the_words_that_eager_picks(name: str) -> None:
    model, tokens = made(name).eval(), words(2, 9)
    options: dict[str, Any] = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    found = []
    for way in ("ours", "eager"):
        with attention(model, way):
            found.append(model.generate(tokens, attention_mask=torch.ones_like(tokens), **options))
    assert found[0].shape == (2, 15)
    assert torch.equal(*found)


def test_a_scale_that_differs_by_layer_is_passed_on(assert_as_exact_as_eager: Any) -> None:
    config = GPT2Config(scale_attn_by_inverse_layer_idx=True, **SMALL["gpt2"])
    model, tokens = AutoModelForCausalLM.from_config(config).to(DEVICE).eval(), words(1, 40)
    found, ordinary = (ask(model, way, tokens).logits.detach() for way in ("ours", "eager"))
    seen = scores(model, lambda: model(tokens))
    exact = ask(model.double(), "eager", tokens).logits.detach()
    assert_as_exact_as_eager(found, ordinary, exact, seen)


@pytest.mark.parametrize(("N", "kernel"), [(FEW, "flash_decode"), (FEW + 1, "flash_attention")])
def test_the_heads_of_a_group_reach_one_kernel_without_a_copy_of_keys(
    N: int, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: dict[str, list[Any]] = {"flash_decode": [], "flash_attention": []}
    for each in met:
        real = getattr(model_path_attention, each)
        monkeypatch.setattr(model_path_attention, each, noting(real, met[each]))
    with torch.no_grad():
        ask(made("llama").eval(), "ours", words(1, N))
    heads = [(q.shape[1], k.shape[1], v.shape[1]) for q, k, v in met.pop(kernel)]
    assert heads == [(6, 2, 2)] * 2  # once a layer
    assert [each for calls in met.values() for each in calls] == []


def noting(real: Callable[..., Any], calls: list[Any]) -> Callable[..., Any]:
    def wrapper(*tensors: torch.Tensor, **options: Any) -> Any:
        calls.append(tensors)
        assert options["causal"]
        return real(*tensors, **options)

    return wrapper


def heads(N_Q: int, N_K: int, **options: Any) -> tuple[torch.Tensor, ...]:
    """q, k and v, with two query heads to a KV head."""
    sizes = ((1, 4, N_Q, 32), (1, 2, N_K, 32), (1, 2, N_K, 32))
    return tuple(torch.randn(size, device=DEVICE, **options) for size in sizes)


def test_which_kernel_runs_is_told_as_it_is_chosen() -> None:
    assert kernel_of(*heads(1, 99)).kernel == "flash_decode_kernel"
    assert kernel_of(*heads(FEW, FEW)).kernel == "flash_decode_kernel"
    assert kernel_of(*heads(FEW + 1, 99)) == (PORTABLE, kernel_of(*heads(FEW + 1, 99)).reason)
    assert kernel_of(*heads(FEW + 1, 99)).reason != ""
    assert kernel_of(*heads(1, 1), gradients=True).kernel == PORTABLE_GRADIENTS


def test_a_few_queries_with_a_gradient_go_where_there_is_a_backward() -> None:
    tensors = heads(3, 3, requires_grad=True)
    assert kernel_of(*tensors).kernel == PORTABLE
    with torch.no_grad():
        assert kernel_of(*tensors).kernel == "flash_decode_kernel"


@pytest.mark.parametrize(("N", "phase"), [(40, "prefill"), (40, "train"), (1, "decode")])
@pytest.mark.parametrize("name", MODELS)
def test_what_leaves_lies_as_the_next_layer_reads_it(name: str, phase: str, N: int) -> None:
    model = made(name)
    q, k, v = seen_by_attention(model, step_of(model, phase, 2, 40))
    out, weights = course_attention(torch.nn.Module(), q, k, v, None)
    assert out.shape == (2, N, q.shape[1], 32)
    assert out.is_contiguous()
    assert weights is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention_mask": torch.zeros(1, 1, 2, 2)}, "attention_mask is (1, 1, 2, 2); allowed: N"),
        ({"dropout": 0.1}, "dropout is 0.1; allowed: 0"),
        ({"is_causal": False}, "is_causal is False; allowed: True"),
        ({"sliding_window": 4}, "sliding_window is given; allowed: a model without it"),
        ({"softcap": 30.0}, "softcap is given"),
        ({"s_aux": torch.zeros(2)}, "s_aux is given"),
        ({"position_bias": torch.zeros(1)}, "position_bias is given"),
        ({"output_attentions": True}, "output_attentions is given"),
        ({"scaling": 0.0}, "scale is 0.0; allowed: finite and above 0"),
    ],
)
@pytest.mark.parametrize("N", [1, 2 * FEW])
def test_what_attention_cannot_compute_is_refused(
    options: dict[str, Any], message: str, N: int
) -> None:
    arguments = {"attention_mask": None} | options
    with pytest.raises(ValueError, match=re.escape(message)):
        course_attention(torch.nn.Module(), *heads(N, 2 * FEW), **arguments)


def test_a_layer_that_is_not_causal_is_refused() -> None:
    layer = torch.nn.Module()
    layer.is_causal = False
    with pytest.raises(ValueError, match="is_causal is False; allowed: True"):
        course_attention(layer, *heads(3, 3), None)


PADDED = torch.tensor([[0] + [1] * 8, [1] * 9])
PACKED = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]])
OTHER = "mask_function is .*; allowed: the causal one"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention_mask": PADDED}, "attention_mask hides 1 tokens; allowed: none"),
        ({"attention_mask": torch.zeros(2, 1, 9, 9)}, r"attention_mask is \(2, 1, 9, 9\)"),
        ({"position_ids": PACKED, "use_cache": False}, OTHER),
        ({"output_attentions": True}, "output_attentions is given"),
        ({"past_key_values": 20}, "9 queries from position 0 meet 20 keys .* a DynamicCache"),
    ],
)
def test_what_a_model_asks_for_and_we_cannot_do_is_refused(
    options: dict[str, Any], message: str
) -> None:
    model = made("llama").eval()
    given = {name: on_device(value, model) for name, value in options.items()}
    with pytest.raises(ValueError, match=message):
        ask(model, "ours", words(2, 9), **given)


def on_device(value: Any, model: PreTrainedModel) -> Any:
    """A tensor where the model is; a number as the length of a static cache."""
    if isinstance(value, torch.Tensor):
        return value.to(DEVICE)
    return value if isinstance(value, bool) else StaticCache(model.config, max_cache_len=value)


def test_a_static_cache_that_fits_the_prompt_is_refused_at_its_next_token() -> None:
    model = made("llama").eval()
    cache = StaticCache(model.config, max_cache_len=9)
    ask(model, "ours", words(2, 9), past_key_values=cache)
    with pytest.raises(ValueError, match="allowed: a DynamicCache"):
        ask(model, "ours", words(2, 1), past_key_values=cache)


WINDOW = MistralConfig(sliding_window=4, **LLAMA_SIZES)
CAPPED = Gemma2Config(layer_types=["full_attention"], pad_token_id=0, **LLAMA_SIZES)
BOTH_WAYS = LlamaConfig(is_causal=False, **LLAMA_SIZES)
DROPPING = GPT2Config(**SMALL["gpt2"])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (WINDOW, OTHER),
        (CAPPED, "mask_function is .*; allowed|softcap is given"),
        (BOTH_WAYS, "mask_function is bidirectional_mask_function; allowed: the causal one"),
        (DROPPING, "dropout is 0.1; allowed: 0, set it in the model's configuration"),
    ],
    ids=["window", "soft cap", "both ways", "dropout"],
)
def test_a_model_that_wants_more_is_refused(config: Any, message: str) -> None:
    model = AutoModelForCausalLM.from_config(config).to(DEVICE).train()
    with pytest.raises(ValueError, match=message):
        ask(model, "ours", words(2, 9))


def test_a_window_of_none_is_no_window() -> None:
    config = MistralConfig(sliding_window=None, **LLAMA_SIZES)
    model = AutoModelForCausalLM.from_config(config).to(DEVICE).eval()
    assert ask(model, "ours", words(2, 9)).logits.isfinite().all()


@pytest.mark.parametrize("mask", [None, torch.ones(2, 9)])
def test_a_mask_that_hides_nothing_is_none(mask: torch.Tensor | None) -> None:
    assert course_mask(2, 4, 9, q_offset=5, attention_mask=mask) is None


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("phase", STEPS)
def test_a_step_gives_the_same_when_it_is_repeated(name: str, phase: str) -> None:
    model = made(name)
    before = [w.clone() for w in model.parameters()]
    step = step_of(model, phase, 2, 40)
    with attention(model, "eager"):
        first, second = ({k: x.clone() for k, x in step().items()} for _ in range(2))
    assert first.keys() == second.keys() != set()
    assert all(torch.equal(first[key], second[key]) for key in first)
    assert all(torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("phase", STEPS)
@pytest.mark.parametrize("name", MODELS)
def test_the_reference_is_the_step_that_eager_takes_in_float64(name: str, phase: str) -> None:
    model = made(name).double()
    step = step_of(model, phase, 2, 40)
    with attention(model, "eager"):
        expected = {key: x.clone() for key, x in step().items()}
    with attention(model, "exact"):
        found = step()
    assert found.keys() == expected.keys()
    # some layers of the library compute in float32, whatever the model's dtype
    assert all(torch.allclose(found[key], expected[key], rtol=0, atol=1e-6) for key in found)


def test_a_phase_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="phase is 'dream'; allowed: prefill, decode, train"):
        step_of(made("gpt2"), "dream", 1, 4)


def test_without_attention_every_layer_still_works_on_the_way_back() -> None:
    model = made("llama")
    step = step_of(model, "train", 2, 20)
    with attention(model, "none"):
        found = step()
    assert set(found) == {f"d{x}_proj.weight" for x in "qkvo"}
    assert all(gradient.abs().sum() > 0 for gradient in found.values())


@pytest.mark.parametrize("name", MODELS)
def test_without_attention_nothing_has_to_be_copied_before_or_after(name: str) -> None:
    model = made(name)
    q, k, v = (x.requires_grad_() for x in seen_by_attention(model, step_of(model, "train", 2, 9)))
    out, _ = absent_attention(torch.nn.Module(), q, k, v)
    gradient = torch.randn_like(out)
    dq, dk, dv = torch.autograd.grad(out, (q, k, v), gradient)
    assert out.is_contiguous()
    assert out.shape == q.transpose(1, 2).shape
    assert out.std() > 0.8
    assert torch.equal(dq, gradient.transpose(1, 2))
    assert torch.equal(dk, dq[:, : k.shape[1]])
    assert torch.equal(dv, dk)
    assert {x.untyped_storage().data_ptr() for x in (dq, dk, dv)} == {gradient.data_ptr()}


@pytest.mark.parametrize(
    ("phase", "queries", "keys"), [("prefill", 40, 40), ("decode", 1, 41), ("train", 40, 40)]
)
@pytest.mark.parametrize("name", MODELS)
def test_the_tensors_to_time_alone_are_those_of_the_model(
    name: str, phase: str, queries: int, keys: int
) -> None:
    model = made(name)
    step = step_of(model, phase, 2, 40)
    q, k, v = seen_by_attention(model, step)
    assert (q.shape[2], q.shape[3]) == (queries, 32)
    assert k.shape == v.shape == (2, 2, keys, 32)
    with attention(model, "none"):  # nothing looks on any more
        assert step().keys() != set()


@pytest.mark.parametrize("backward", [False, True])
def test_attention_alone_is_what_the_layer_computes(backward: bool) -> None:
    model, found = made("llama"), {}
    seen = seen_by_attention(model, step_of(model, "train", 2, 40))
    for way in ("ours", "exact"):
        torch.manual_seed(0)  # of the gradient that comes in
        found[way] = attention_alone(model, way, seen, backward)()
    assert len(found["ours"]) == (3 if backward else 2)  # of q, k and v, or a batch of outputs
    pairs = zip(found["ours"], found["exact"], strict=True)
    assert all(torch.allclose(*pair, rtol=0, atol=1e-5) for pair in pairs)


def test_the_library_knows_the_name_of_function_and_mask() -> None:
    model = made("gpt2")
    model.set_attn_implementation("course")
    assert model.config._attn_implementation == "course"
    assert model(words(1, 4)).logits.isfinite().all()


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ValueError, match="name is 'bert'; allowed: gpt2, llama"):
        build("bert", torch.float32, DEVICE)


def test_every_timed_implementation_has_its_way_into_the_library() -> None:
    assert set(TIMED) == IMPLEMENTATIONS.keys() - {"exact"}
    assert TIMED[0] == "ours"


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, dict[str, Any]]]:
    monkeypatch.undo()
    return model_path_models.SIZES


def test_every_case_fits_the_positions_of_its_model_and_every_phase_is_counted(real: Any) -> None:
    longest = {"gpt2": real["gpt2"]["n_positions"],
               "llama": real["llama"]["max_position_embeddings"]}  # fmt: skip
    named = [(next(iter(shape)), phase, shape["N"]) for phase, shape in CASES]
    assert [each for each in named if each[2] >= longest[each[0]]] == []
    assert len(set(named)) == len(CASES)
    counted = {(model, phase) for model, phase, N in named if N == COUNTED}
    assert counted == {(model, phase) for model in MODELS for phase in STEPS}


def test_the_head_dims_are_those_of_the_hopper_kernel(real: Any) -> None:
    gpt2, llama = real["gpt2"], real["llama"]
    assert gpt2["n_embd"] == 64 * gpt2["n_head"]
    assert llama["hidden_size"] == 128 * llama["num_attention_heads"]
    assert llama["num_attention_heads"] % llama["num_key_value_heads"] == 0


# With the data type, head dims and lengths that are timed; two layers of the real widths' heads.
LARGER: dict[str, dict[str, Any]] = {
    "gpt2": SMALL["gpt2"] | {"n_head": 4, "n_embd": 256, "n_positions": 1200},
    "llama": SMALL["llama"] | {"hidden_size": 768, "max_position_embeddings": 1200},
}


@pytest.fixture
def larger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_path_models, "SIZES", LARGER)


@needs_gpu
@pytest.mark.usefixtures("larger")
@pytest.mark.parametrize("phase", STEPS)
@pytest.mark.parametrize("name", MODELS)
def test_on_a_gpu_every_step_is_as_exact_as_eager(
    name: str, phase: str, assert_as_exact_as_eager: Any
) -> None:
    model = made(name, torch.bfloat16)
    step = step_of(model, phase, 2, 1024)
    found = {}
    for way in ("ours", "eager"):
        with attention(model, way):
            found[way] = {key: x.clone() for key, x in step().items()}
    exact = copy.deepcopy(model).double()
    with attention(exact, "eager"):
        expected = step_of(exact, phase, 2, 1024)()
    for key, value in expected.items():
        assert_as_exact_as_eager(found["ours"][key], found["eager"][key], value)


@needs_gpu
@pytest.mark.usefixtures("larger")
@pytest.mark.parametrize("name", MODELS)
def test_on_a_gpu_the_profiler_sees_the_kernel_that_was_chosen(name: str) -> None:
    model = made(name, torch.bfloat16)
    step = step_of(model, "prefill", 2, 1024)
    with attention(model, "ours"):
        step()
        seen = launched(step)
    picked = kernel_of(*seen_by_attention(model, step))
    on_hopper = torch.cuda.get_device_capability()[0] == 9
    assert (picked.kernel in (HOPPER, HOPPER_SHORT)) == on_hopper
    assert seen["names"][picked.kernel] == 2  # once a layer
    with attention(model, "none"):
        without = launched(step)
    assert seen["copies"] == without["copies"]  # none between layouts


@needs_gpu
@pytest.mark.usefixtures("larger")
@pytest.mark.parametrize("way", ["ours", "sdpa-cudnn", "sdpa-flash", "none"])
@pytest.mark.parametrize("name", MODELS)
def test_on_a_gpu_a_decoding_step_replays_as_a_graph(name: str, way: str) -> None:
    model = made(name, torch.bfloat16)
    step = step_of(model, "decode", 2, 1000)
    logits: list[torch.Tensor] = []

    def run() -> None:
        with attention(model, way):
            logits[:] = [step()["logits"]]

    run()
    once = logits[0].clone()
    replay = CudaTimer(2**20).graph(run)
    logits[0].zero_()
    replay()
    assert torch.equal(logits[0], once)
    weights = sum(w.numel() * w.itemsize for w in model.parameters())
    assert peak_bytes(run) + FLUSH_BYTES > weights  # no buffer of the timer is there to leave out


@needs_gpu
@pytest.mark.usefixtures("larger")
@pytest.mark.parametrize("way", ["ours", "sdpa-cudnn", "sdpa-flash"])
@pytest.mark.parametrize("name", MODELS)
def test_on_a_gpu_attention_alone_replays_as_a_graph_with_its_backward(name: str, way: str) -> None:
    model = made(name, torch.bfloat16)
    seen = seen_by_attention(model, step_of(model, "train", 2, 1024))
    alone = attention_alone(model, way, seen, True)
    alone()
    found: list[Any] = []
    replay = CudaTimer(2**20).graph(lambda: found.append(alone()))
    replay()
    torch.cuda.synchronize()
    assert all(gradient.isfinite().all() and gradient.any() for gradient in found[0])
