"""Residual add and RMSNorm against float64: outputs, gradients, strides, refusals, byte counts."""

import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812, the field's own name

from kernels import rms_norm_backward
from kernels.rms_norm import SHAPES, inputs, reference, rms_norm, work

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA GPU")
# Triton's interpreter rounds to bfloat16 by cutting off.
DTYPES = [torch.float16, torch.float32, pytest.param(torch.bfloat16, marks=needs_gpu)]
WIDTHS = [5, 1000, 9000, 33000]  # held, and streamed backward or both ways


def normal(*size: int, dtype: torch.dtype = torch.float32, seed: int = 1) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


def eager(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    h = x + residual
    return F.rms_norm(h, h.shape[-1:], weight, eps), h


def gradients(
    call: Any, arguments: dict[str, Any], upstream: tuple[torch.Tensor | None, ...]
) -> tuple[torch.Tensor, ...]:
    """Gradients of x, residual and weight; an upstream gradient of None leaves its output out."""
    tensors = {n: arguments[n].detach().requires_grad_() for n in ("x", "residual", "weight")}
    outputs = call(**(arguments | tensors))
    used = [(o, g.to(o.dtype)) for o, g in zip(outputs, upstream, strict=True) if g is not None]
    used_outputs, given = zip(*used, strict=True)
    return torch.autograd.grad(used_outputs, tuple(tensors.values()), given)


@pytest.fixture
def assert_gradients_as_exact_as_eager(assert_as_exact_as_eager: Any) -> Any:
    def check(arguments: dict[str, Any], upstream: tuple[torch.Tensor | None, ...]) -> None:
        found, ordinary, exact = (
            gradients(call, arguments, upstream) for call in (rms_norm, eager, reference)
        )
        for one, two, three in zip(found, ordinary, exact, strict=True):
            assert_as_exact_as_eager(one, two, three.double())

    return check


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES["test"], ids=lambda s: f"{s['M']}x{s['N']}")
def test_both_outputs_are_as_exact_as_eager(
    shape: dict[str, int], dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs(shape, dtype, DEVICE)
    found, ordinary, exact = rms_norm(**arguments), eager(**arguments), reference(**arguments)
    assert found[0].dtype == found[1].dtype == dtype
    assert_as_exact_as_eager(found[0], ordinary[0], exact[0])
    assert torch.equal(found[1], ordinary[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES["test"], ids=lambda s: f"{s['M']}x{s['N']}")
def test_gradients_are_as_exact_as_eager(
    shape: dict[str, int], dtype: torch.dtype, assert_gradients_as_exact_as_eager: Any
) -> None:
    upstream = tuple(normal(shape["M"], shape["N"], dtype=dtype, seed=seed) for seed in (2, 3))
    assert_gradients_as_exact_as_eager(inputs(shape, dtype, DEVICE), upstream)


@pytest.mark.parametrize("n", WIDTHS)
@pytest.mark.parametrize("missing", [0, 1])
def test_an_output_that_is_not_used_sends_no_gradient(
    n: int, missing: int, assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs({"M": 3, "N": n}, torch.float32, DEVICE)
    arguments["weight"].requires_grad_()
    x = arguments["x"].requires_grad_()
    upstream = normal(3, n)
    found, ordinary, exact = (
        torch.autograd.grad(call(**arguments)[1 - missing], x, upstream.to(kind))[0]
        for call, kind in ((rms_norm, x.dtype), (eager, x.dtype), (reference, torch.float64))
    )
    assert_as_exact_as_eager(found, ordinary, exact.double())


@pytest.mark.parametrize("n", WIDTHS)
@pytest.mark.parametrize(
    "layout",
    [
        lambda n: normal(6, 2 * n)[:, ::2],
        lambda n: normal(12, n)[::2],
        lambda n: normal(1, 1).expand(6, n),
        lambda n: normal(n, 6).T,
    ],
    ids=["every-second", "row-strided", "expanded", "transposed"],
)
def test_upstream_gradients_may_have_any_strides(
    n: int, layout: Any, assert_gradients_as_exact_as_eager: Any
) -> None:
    arguments = inputs({"M": 6, "N": n}, torch.float32, DEVICE)
    assert_gradients_as_exact_as_eager(arguments, (layout(n), layout(n)))


@pytest.mark.parametrize("n", WIDTHS)
@pytest.mark.parametrize(
    "layout",
    [
        lambda n, seed: normal(n, 6, seed=seed).T,
        lambda n, seed: normal(6, 2 * n, seed=seed)[:, ::2],
        lambda n, seed: normal(6, n + 5, seed=seed)[:, 2:-3],
        lambda n, seed: normal(1, n, seed=seed).expand(6, n),
        lambda n, seed: normal(2, n, 3, seed=seed).transpose(1, 2),
    ],
    ids=["transposed", "every-second", "sliced", "expanded", "inner"],
)
def test_strides_change_where_the_numbers_lie_and_not_the_result(n: int, layout: Any) -> None:
    tensors = [layout(n, 1), layout(n, 2), normal(3 * n)[::3]]
    dense = [x.clone(memory_format=torch.contiguous_format) for x in tensors]
    found, expected = rms_norm(*tensors), rms_norm(*dense)
    assert torch.allclose(found[0], expected[0], rtol=1e-5, atol=1e-6)  # sums in another order
    assert torch.equal(found[1], expected[1])


@pytest.mark.parametrize("size", [(8,), (3, 8), (2, 3, 8), (2, 3, 2, 9000)])
def test_rows_are_all_dimensions_but_the_last(
    size: tuple[int, ...], assert_gradients_as_exact_as_eager: Any
) -> None:
    arguments = {"x": normal(*size), "residual": normal(*size), "weight": normal(size[-1])}
    assert_gradients_as_exact_as_eager(arguments, (normal(*size), normal(*size)))


@pytest.mark.parametrize("n", WIDTHS)
@pytest.mark.parametrize(("scale", "eps"), [(1e-4, 1e-6), (1e15, 1e-6), (1.0, 0.5)])
def test_small_and_large_rows_and_eps_stay_exact(
    n: int,
    scale: float,
    eps: float,
    assert_as_exact_as_eager: Any,
    assert_gradients_as_exact_as_eager: Any,
) -> None:
    arguments = inputs({"M": 2, "N": n}, torch.float32, DEVICE) | {"eps": eps}
    arguments["x"] *= scale
    arguments["residual"] *= scale
    found, ordinary, exact = rms_norm(**arguments), eager(**arguments), reference(**arguments)
    assert_as_exact_as_eager(found[0], ordinary[0], exact[0])
    assert_gradients_as_exact_as_eager(arguments, (normal(2, n), None))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of rows beyond the last, interpreted
@pytest.mark.parametrize("n", WIDTHS)
def test_eps_may_be_zero(n: int, assert_as_exact_as_eager: Any) -> None:
    arguments = inputs({"M": 3, "N": n}, torch.float32, DEVICE) | {"eps": 0.0}
    found, ordinary, exact = rms_norm(**arguments), eager(**arguments), reference(**arguments)
    assert_as_exact_as_eager(found[0], ordinary[0], exact[0])


@pytest.mark.parametrize("n", WIDTHS)
def test_a_row_of_zeros_gives_zeros(n: int) -> None:
    zeros = torch.zeros(2, n, device=DEVICE)
    out, residual_out = rms_norm(zeros, zeros, normal(n))
    assert not out.any()
    assert not residual_out.any()


@pytest.mark.parametrize("n", WIDTHS)
def test_a_float32_weight_keeps_its_dtype_and_its_gradient(n: int) -> None:
    x = normal(4, n, dtype=torch.float16)
    weight = normal(n).requires_grad_()
    out, _ = rms_norm(x, x, weight)
    out.float().sum().backward()
    exact = (2 * x.double() / (2 * x.double()).square().mean(1, keepdim=True).sqrt()).sum(0)
    assert out.dtype == torch.float16
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32
    assert (weight.grad.double() - exact).abs().max() < 2e-3  # residual_out is rounded to fp16


@pytest.mark.parametrize("size", [(0,), (0, 8), (3, 0), (2, 0, 8)])
def test_empty_inputs_give_empty_outputs_and_zero_gradients(size: tuple[int, ...]) -> None:
    arguments = {"x": normal(*size), "residual": normal(*size), "weight": normal(size[-1])}
    found = gradients(rms_norm, arguments, (normal(*size), normal(*size)))
    assert [g.shape for g in found] == [size, size, size[-1:]]
    assert not any(g.any() for g in found)


def test_two_runs_give_the_same_gradients_bit_for_bit() -> None:
    arguments = inputs({"M": 700, "N": 40}, torch.float16, DEVICE)
    upstream = normal(700, 40), normal(700, 40)
    first, second = (gradients(rms_norm, arguments, upstream) for _ in range(2))
    assert all(map(torch.equal, first, second))


@pytest.mark.parametrize("strip", [8, 16, 40])
def test_strips_of_rows_of_any_height_cover_every_row_once(
    strip: int, monkeypatch: pytest.MonkeyPatch, assert_gradients_as_exact_as_eager: Any
) -> None:
    monkeypatch.setattr(rms_norm_backward, "ONE_PASS", 0)
    monkeypatch.setattr(rms_norm_backward, "STRIP", strip)
    arguments = inputs({"M": 37, "N": 300}, torch.float32, DEVICE)
    assert_gradients_as_exact_as_eager(arguments, (normal(37, 300), None))


HALF = torch.zeros(2, 8, dtype=torch.float16)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": HALF.double()}, "x is torch.float64; allowed: torch.float16, "),
        ({"x": HALF[0, 0]}, "x has 0 dimensions; allowed: 1 or more"),
        ({"x": HALF[0, :1].expand(2**31)}, "x has 2147483648 columns; allowed: up to 2147450880"),
        ({"residual": HALF[:1]}, "residual is (1, 8) torch.float16 on cpu; allowed: as x, (2, 8)"),
        ({"residual": HALF.float()}, "residual is (2, 8) torch.float32 on cpu; allowed: as x"),
        ({"weight": HALF[0, :7]}, "weight is (7,) torch.float16 on cpu; allowed: (8,)"),
        ({"weight": HALF[0].bfloat16()}, "weight is (8,) torch.bfloat16 on cpu; allowed: (8,)"),
        ({"eps": -1.0}, "eps is -1.0; allowed: finite and at least 0"),
        ({"eps": float("nan")}, "eps is nan; allowed: finite and at least 0"),
    ],
)
def test_what_it_cannot_do_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        rms_norm(**({"x": HALF, "residual": HALF, "weight": HALF[0]} | change))


def test_work_counts_four_passes_over_the_rows_in_either_direction() -> None:
    assert work({"M": 10, "N": 100}, 2) == (8200, 8200, 5000)
    assert work({"M": 10, "N": 100}, 2, "backward") == (8440, 8440, 10000)
    assert work({"M": 1, "N": 40000}, 2).issued_bytes == 2 * (6 * 40000 + 40000)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [256, 1024, 4096, 8192, 16384, 32768, 65536])
@needs_gpu
def test_more_tiles_than_programs_are_all_done(
    n: int, dtype: torch.dtype, assert_gradients_as_exact_as_eager: Any
) -> None:
    M = 2**23 // n + 1
    upstream = normal(M, n, dtype=dtype), normal(M, n, dtype=dtype, seed=2)
    assert_gradients_as_exact_as_eager(inputs({"M": M, "N": n}, dtype, DEVICE), upstream)


@pytest.mark.parametrize("n", [1024, 32768, 65536])
@needs_gpu
def test_offsets_beyond_32_bits_reach_the_right_row(n: int) -> None:
    x = torch.zeros(2**31 // n + 1, n, dtype=torch.float16, device=DEVICE)
    x[-2:] = normal(2, n, dtype=torch.float16)
    weight = normal(n, dtype=torch.float16)
    found, expected = rms_norm(x, x, weight), rms_norm(x[-2:], x[-2:], weight)
    assert torch.equal(found[0][-2:], expected[0])
    assert torch.equal(found[1][-2:], expected[1])
