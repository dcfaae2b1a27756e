"""TO FILL one sentence: the kernel against float64, its strides, refusals and byte counts."""

import re
from typing import Any

import pytest
import torch

from kernels.new_stem import SHAPES, eager, inputs, new_stem, reference, work

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA GPU")
# Triton's interpreter rounds to bfloat16 by cutting off.
DTYPES = [torch.float16, torch.float32, pytest.param(torch.bfloat16, marks=needs_gpu)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES["test"], ids=lambda s: f"{s['M']}x{s['N']}")
def test_is_as_exact_as_eager(
    shape: dict[str, int], dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs(shape, dtype, DEVICE)
    found = new_stem(**arguments)
    assert found.dtype == dtype
    assert_as_exact_as_eager(found, eager(**arguments), reference(**arguments))


def test_strides_change_where_the_numbers_lie_and_not_the_result() -> None:
    x = inputs({"M": 6, "N": 10}, torch.float32, DEVICE)["x"].T[::2, 1:]
    found = new_stem(x)
    assert found.is_contiguous()
    assert torch.equal(found.double(), reference(x))


@pytest.mark.parametrize("size", [(0,), (0, 5), (5, 0)])
def test_empty_inputs_give_empty_outputs(size: tuple[int, ...]) -> None:
    assert new_stem(torch.zeros(size, device=DEVICE)).shape == size


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(2, dtype=torch.float64), "x is torch.float64; allowed: torch.float16, "),
        (torch.zeros(2).requires_grad_(), "x requires a gradient; allowed: none, or under "),
    ],
)
def test_what_it_cannot_do_is_refused(x: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        new_stem(x)


def test_work_counts_each_number_once_in_each_direction() -> None:
    assert work({"M": 3, "N": 1000}, 2) == (12000, 12000, 3000)
    with pytest.raises(ValueError, match="passes is 'backward'; allowed: 'forward'"):
        work({"M": 1, "N": 1}, 2, "backward")
