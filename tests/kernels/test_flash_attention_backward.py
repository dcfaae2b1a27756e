"""Gradients of attention against float64 autograd, their layouts, edges and determinism."""

from functools import partial
from typing import Any

import pytest
import torch

from kernels import attention_reference
from kernels import flash_attention as launcher
from kernels.flash_attention import SHAPES, flash_attention, inputs, reference
from kernels.flash_attention_backward import flash_attention_backward

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA GPU")
# Triton's interpreter multiplies bfloat16 wrongly.
DTYPES = [torch.float16, torch.float32, pytest.param(torch.bfloat16, marks=needs_gpu)]
# The kernels for every GPU, also on Hopper, whose faster one has tests of its own.
repeating = partial(flash_attention, deterministic=True)


def tensors(*sizes: int, dtype: torch.dtype = torch.float16, **options: Any) -> dict[str, Any]:
    """Arguments for sizes B, H, H_KV, N_Q, N_K, D, gradients asked for."""
    return with_gradients(inputs(attention_reference.sizes(*sizes, **options), dtype, DEVICE))


def with_gradients(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments | {name: arguments[name].requires_grad_() for name in "qkv"}


def normal(*sizes: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(9)).to(DEVICE, dtype)


def gradients(
    call: Any, arguments: dict[str, Any], dout: torch.Tensor | None, dlse: torch.Tensor | None
) -> tuple[torch.Tensor, ...]:
    """Gradients of q, k and v; None leaves an output out of the loss."""
    pairs = [(x, g) for x, g in zip(call(**arguments), (dout, dlse), strict=True) if g is not None]
    outputs = [x for x, _ in pairs]
    upstream = [g.to(x.dtype) for x, g in pairs]
    leaves = [arguments[name] for name in "qkv"]
    return torch.autograd.grad(outputs, leaves, upstream, materialize_grads=True)


def assert_gradients_as_exact_as_eager(
    check: Any, arguments: dict[str, Any], dout: torch.Tensor | None, dlse: torch.Tensor | None
) -> None:
    found, ordinary, exact = (
        gradients(call, arguments, dout, dlse)
        for call in (repeating, attention_reference.eager, reference)
    )
    for ours, theirs, true in zip(found, ordinary, exact, strict=True):
        check(ours, theirs, true, arguments)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES["test"][1:], ids=lambda s: "-".join(map(str, s.values())))
def test_gradients_are_as_exact_as_eager(
    shape: dict[str, Any], dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    arguments = with_gradients(inputs(shape, dtype, DEVICE))
    dout = normal(*arguments["q"].shape, dtype=dtype)
    assert_gradients_as_exact_as_eager(assert_as_exact_as_eager, arguments, dout, None)


@pytest.mark.parametrize(("N", "window"), [(70, 1), (1, None)])
def test_a_query_with_one_key_has_gradient_zero_to_rounding(N: int, window: int | None) -> None:
    arguments = tensors(1, 2, 2, N, N, 64, causal=True, window=window)
    dout = normal(1, 2, N, 64)
    dq, dk, dv = gradients(repeating, arguments, dout, None)
    assert max(dq.abs().max(), dk.abs().max()) < 1e-5  # of a difference of numbers near 10
    assert torch.equal(dv, dout)


def test_float32_gradients_have_full_precision_and_not_that_of_tf32() -> None:
    arguments = tensors(1, 1, 1, 128, 128, 32, dtype=torch.float32, causal=True)
    dout = normal(1, 1, 128, 32, dtype=torch.float32)
    found = gradients(repeating, arguments, dout, None)
    exact = gradients(reference, arguments, dout, None)
    worst = max((a - b).abs().max().item() for a, b in zip(found, exact, strict=True))
    assert worst < 1e-5  # TF32 keeps 10 bits: about 1e-3


@pytest.mark.parametrize("dout", [None, normal(2, 4, 60, 16, dtype=torch.float32)])
def test_the_log_sum_exp_has_a_gradient_too(
    dout: torch.Tensor | None, assert_as_exact_as_eager: Any
) -> None:
    arguments = tensors(2, 4, 2, 60, 70, 16, dtype=torch.float32, causal=True)
    dlse = normal(2, 4, 60, dtype=torch.float32)
    assert_gradients_as_exact_as_eager(assert_as_exact_as_eager, arguments, dout, dlse)


def test_rows_without_a_key_have_gradient_zero_and_give_none() -> None:
    arguments = tensors(1, 2, 1, 150, 70, 32, causal=True)
    dout = normal(1, 2, 150, 32)
    dq, dk, dv = gradients(repeating, arguments, dout, None)
    dout[:, :, :80] = 1e4  # the 80 rows that see nothing
    again = gradients(repeating, arguments, dout, None)
    assert not dq[:, :, :80].any()
    assert all(x.isfinite().all() for x in (dq, dk, dv))
    assert all(torch.equal(a, b) for a, b in zip((dq, dk, dv), again, strict=True))


def test_keys_that_no_query_sees_have_gradient_zero() -> None:
    arguments = tensors(1, 1, 1, 3, 300, 32, causal=True, window=5)
    _, dk, dv = gradients(repeating, arguments, normal(1, 1, 3, 32), None)
    assert not dk[:, :, :293].any()
    assert not dv[:, :, :293].any()
    assert dv[:, :, 293:].any(3).all()


@pytest.mark.parametrize("N", [1024, 1025])
def test_one_token_beyond_whole_tiles_is_exact_too(N: int, assert_as_exact_as_eager: Any) -> None:
    arguments = tensors(1, 1, 1, N, N, 64, causal=True)
    dout = normal(1, 1, N, 64)
    assert_gradients_as_exact_as_eager(assert_as_exact_as_eager, arguments, dout, None)


LAYOUTS = {
    "every second column": lambda x: x.repeat_interleave(2, 3)[..., ::2],
    "every second row": lambda x: x.repeat_interleave(2, 2)[:, :, ::2],
    "odd row": lambda x: torch.nn.functional.pad(x, (0, 1))[..., :-1],
    "expanded": lambda x: x[:, :, :1, :1].expand_as(x),
    "expanded rows": lambda x: x[:, :, :1].expand_as(x),
    "transposed": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_of_the_incoming_gradient_does_not_matter(layout: str) -> None:
    arguments = tensors(2, 2, 1, 70, 90, 32)
    dout = LAYOUTS[layout](normal(2, 2, 70, 32))
    found = gradients(repeating, arguments, dout, None)
    dense = gradients(repeating, arguments, dout.contiguous(), None)
    assert all(torch.equal(a, b) for a, b in zip(found, dense, strict=True))


def test_inputs_of_any_strides_have_the_same_gradients() -> None:
    arguments = tensors(2, 4, 4, 70, 90, 32, causal=True)
    strided = {name: arguments[name].detach().transpose(1, 2).contiguous() for name in "qkv"}
    strided = with_gradients(arguments | {name: x.transpose(1, 2) for name, x in strided.items()})
    dout = normal(2, 4, 70, 32)
    found = gradients(repeating, strided, dout, None)
    dense = gradients(repeating, arguments, dout, None)
    assert all(torch.equal(a, b) for a, b in zip(found, dense, strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_are_the_same_bit_for_bit_every_time(dtype: torch.dtype) -> None:
    arguments = tensors(1, 4, 2, 100, 150, 32, dtype=dtype, causal=True)
    dout = normal(1, 4, 100, 32, dtype=dtype)
    first, second = (gradients(repeating, arguments, dout, None) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@needs_gpu
def test_long_rows_are_the_same_bit_for_bit_every_time() -> None:
    arguments = tensors(32, 32, 32, 1024, 1024, 128, dtype=torch.bfloat16, causal=True)
    dout = normal(32, 32, 1024, 128, dtype=torch.bfloat16)
    first, second = (gradients(repeating, arguments, dout, None) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("scale", [0.02, 3.0])
def test_gradients_follow_the_scale(scale: float, assert_as_exact_as_eager: Any) -> None:
    arguments = tensors(1, 2, 2, 50, 60, 32) | {"scale": scale}
    dout = normal(1, 2, 50, 32)
    assert_gradients_as_exact_as_eager(assert_as_exact_as_eager, arguments, dout, None)


@pytest.mark.parametrize("factor", [50.0, -50.0])
def test_scores_far_from_zero_leave_gradients_exact(
    factor: float, assert_as_exact_as_eager: Any
) -> None:
    arguments = tensors(1, 1, 1, 90, 70, 64)
    arguments["q"] = (arguments["q"].detach().abs() * factor).requires_grad_()
    arguments["k"] = arguments["k"].detach().abs().requires_grad_()
    dout = normal(1, 1, 90, 64)
    assert_gradients_as_exact_as_eager(assert_as_exact_as_eager, arguments, dout, None)


@pytest.mark.parametrize(("N_Q", "N_K"), [(0, 4), (4, 0), (0, 0)])
def test_empty_inputs_have_gradients_of_zero(N_Q: int, N_K: int) -> None:
    arguments = tensors(2, 2, 2, N_Q, N_K, 16)
    found = gradients(repeating, arguments, normal(2, 2, N_Q, 16), None)
    assert [x.shape for x in found] == [arguments[n].shape for n in "qkv"]
    assert not any(x.any() for x in found)


@pytest.mark.parametrize("asked", [False, True])
def test_torch_is_asked_whether_gradients_must_repeat_unless_the_caller_says(
    asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[bool] = []

    def note(*arguments: Any) -> Any:
        met.append(arguments[-1])
        return flash_attention_backward(*arguments)

    monkeypatch.setattr(launcher, "flash_attention_backward", note)
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: asked)
    for deterministic in (None, False, True):
        out, _ = flash_attention(**tensors(1, 1, 1, 3, 4, 16), deterministic=deterministic)
        out.sum().backward()
    assert met == [asked, False, True]
