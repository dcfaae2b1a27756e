"""Softmax against float64: every path, rows of -inf, strides, ranks, refusals and byte counts."""

import math
import re
from typing import Any

import pytest
import torch

from kernels.softmax import (
    CONFIGS,
    ONE_PASS,
    SHAPES,
    WIDE,
    inputs,
    path,
    reference,
    softmax,
    work,
)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA GPU")
# Triton's interpreter rounds to bfloat16 by cutting off.
DTYPES = [torch.float16, torch.float32, pytest.param(torch.bfloat16, marks=needs_gpu)]
WIDTHS = [3, 1024, 1025, 40000, 70000]  # each kernel, and both sides of a border


def normal(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(1)).to(DEVICE, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES["test"], ids=lambda s: f"{s['M']}x{s['N']}")
def test_is_as_exact_as_eager(
    shape: dict[str, int], dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs(shape, dtype, DEVICE)
    found = softmax(**arguments)
    assert found.dtype == dtype
    assert_as_exact_as_eager(found, torch.softmax(arguments["x"], -1), reference(**arguments))


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (1, "several rows"),
        (1024, "several rows"),
        (1025, "one pass"),
        (32768, "one pass"),
        (65536, "one pass"),
        (65537, "streamed"),
        (10**6, "streamed"),
    ],
)
def test_the_width_alone_chooses_the_path(n: int, expected: str) -> None:
    assert path(n) == expected


def test_every_width_that_is_held_has_a_configuration() -> None:
    assert max(WIDE) == ONE_PASS
    widths = [2**i for i in range(17) if 2**i > max(CONFIGS)]
    assert list(WIDE) == widths
    assert all(width % WIDE[width][0] == 0 for width in widths)


@pytest.mark.parametrize("n", [46336, 65536, 65537, 100000])
def test_no_width_is_too_wide(n: int, assert_as_exact_as_eager: Any) -> None:
    x = normal(1, n)
    assert_as_exact_as_eager(softmax(x), torch.softmax(x, -1), reference(x))


@pytest.mark.parametrize("n", WIDTHS)
@pytest.mark.parametrize("place", [0.0, 0.15, 0.5, 0.9, 1.0])
def test_one_finite_score_takes_all_the_weight_wherever_it_stands(n: int, place: float) -> None:
    x = torch.full((1, n), -math.inf, device=DEVICE)
    at = int(place * (n - 1))
    x[0, at] = 1000.0  # whose exponential is infinite
    expected = torch.zeros_like(x)
    expected[0, at] = 1.0
    assert torch.equal(softmax(x), expected)


@pytest.mark.parametrize("n", WIDTHS)
def test_a_row_of_minus_infinity_gives_zero_and_leaves_its_neighbours_alone(n: int) -> None:
    x = normal(3, n)
    alone = softmax(x)
    x[1] = -math.inf
    found = softmax(x)
    assert torch.equal(found[1], torch.zeros_like(found[1]))
    assert torch.equal(found[[0, 2]], alone[[0, 2]])
    assert torch.equal(reference(x)[1], torch.zeros_like(found[1]).double())


@pytest.mark.parametrize("n", WIDTHS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # inf - inf, interpreted
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_and_infinity_make_their_row_nan_as_in_torch(n: int, value: float) -> None:
    x = normal(2, n)
    x[1, n // 2] = value
    found = softmax(x)
    assert found[1].isnan().all() == torch.softmax(x, -1)[1].isnan().all()
    assert found[1].isnan().any()
    assert not found[0].isnan().any()


@pytest.mark.parametrize("n", WIDTHS)
@pytest.mark.parametrize(("scale", "shift"), [(1e4, 0.0), (1.0, -1e4), (1e-6, 1e4), (1e37, 0.0)])
def test_huge_and_tiny_scores_stay_exact(
    n: int, scale: float, shift: float, assert_as_exact_as_eager: Any
) -> None:
    x = normal(2, n) * scale + shift
    assert_as_exact_as_eager(softmax(x), torch.softmax(x, -1), reference(x))


@pytest.mark.parametrize("n", [9000, 40000])
@pytest.mark.parametrize("descending", [False, True])
def test_a_maximum_that_keeps_rising_rescales_the_sum(
    n: int, descending: bool, assert_as_exact_as_eager: Any
) -> None:
    x = normal(1, n).sort(descending=descending).values * 8
    assert_as_exact_as_eager(softmax(x), torch.softmax(x, -1), reference(x))


def test_rows_do_not_mix() -> None:
    found = softmax(torch.tensor([[0.0, 2.0], [3.0, 1.0]], device=DEVICE))
    expected = torch.tensor([[0.1192, 0.8808], [0.8808, 0.1192]], device=DEVICE)
    assert torch.allclose(found, expected, atol=5e-5)


@pytest.mark.parametrize("size", [(5,), (1, 5), (2, 3, 5), (2, 1, 3, 1030), (2, 2, 2, 2, 7)])
def test_any_rank_is_rows_along_the_last_dimension(
    size: tuple[int, ...], assert_as_exact_as_eager: Any
) -> None:
    x = normal(*size)
    assert_as_exact_as_eager(softmax(x), torch.softmax(x, -1), reference(x))


@pytest.mark.parametrize("n", WIDTHS)
@pytest.mark.parametrize(
    "layout",
    [
        lambda n: normal(n, 3).T,
        lambda n: normal(3, 2 * n)[:, ::2],
        lambda n: normal(6, n + 5)[::2, 2:-3],
        lambda n: normal(1, n).expand(3, n),
        lambda n: normal(3, 1).expand(3, n),
        lambda n: normal(2, n, 3).transpose(1, 2),
        lambda n: normal(3, 2, n).transpose(0, 1),
    ],
    ids=["transposed", "every-second", "sliced", "one-row", "one-column", "inner", "outer"],
)
def test_strides_change_where_the_numbers_lie_and_not_the_result(n: int, layout: Any) -> None:
    x = layout(n)
    found = softmax(x)
    assert found.is_contiguous()
    assert (found.double() - reference(x)).abs().max() < 1e-6


@pytest.mark.parametrize("size", [(0,), (0, 5), (5, 0), (2, 0, 3)])
def test_empty_inputs_give_empty_outputs(size: tuple[int, ...]) -> None:
    assert softmax(normal(*size)).shape == size


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.tensor(1.0), "x has 0 dimensions; allowed: 1 or more, (..., N)"),
        (torch.zeros(2, 2, dtype=torch.float64), "x is torch.float64; allowed: torch.float16, "),
        (torch.zeros(2, 2).requires_grad_(), "x requires a gradient; allowed: none, or under "),
        (torch.zeros(2, 2, dtype=torch.int64), "x is torch.int64; allowed: torch.float16, "),
        (torch.zeros(1).expand(2**31), "x has 2147483648 columns; allowed: up to 2147450880"),
    ],
)
def test_what_it_cannot_do_is_refused(x: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        softmax(x)


def test_work_counts_a_second_read_only_where_rows_are_streamed() -> None:
    assert work({"M": 3, "N": 1000}, 2) == (12000, 12000, 15000)
    assert work({"M": 1, "N": 50000}, 4) == (400000, 400000, 250000)
    assert work({"M": 1, "N": 100000}, 4) == (800000, 1200000, 500000)
    with pytest.raises(ValueError, match="passes is 'backward'; allowed: 'forward'"):
        work({"M": 1, "N": 1}, 2, "backward")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [256, 1024, 4096, 8192, 16384, 32768, 65536])
@needs_gpu
def test_more_tiles_than_programs_are_all_done(
    n: int, dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    x = inputs({"M": 2**24 // n + 1, "N": n}, dtype, DEVICE)["x"]
    assert_as_exact_as_eager(softmax(x), torch.softmax(x, -1), reference(x))


@pytest.mark.parametrize("n", [1024, 32768, 65536])
@needs_gpu
def test_offsets_beyond_32_bits_reach_the_right_row(n: int) -> None:
    x = torch.empty(2**31 // n + 1, n, dtype=torch.float16, device=DEVICE)
    x[-2:] = normal(2, n, dtype=torch.float16)
    assert torch.equal(softmax(x)[-2:], softmax(x[-2:]))
