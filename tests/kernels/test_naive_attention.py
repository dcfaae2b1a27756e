"""The three-kernel sequence against float64, its bytes and its refusal."""

from typing import Any

import pytest
import torch

from kernels.attention_reference import sizes
from kernels.naive_attention import SHAPES, inputs, naive_attention, reference, work

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("shape", SHAPES["test"])
@pytest.mark.parametrize(("dtype", "limit"), [(torch.float16, 4e-3), (torch.float32, 2e-6)])
def test_three_steps_give_attention(
    shape: dict[str, Any], dtype: torch.dtype, limit: float
) -> None:
    arguments = inputs(shape, dtype, DEVICE)
    out = naive_attention(**arguments)
    assert out.dtype == dtype
    assert (out - reference(**arguments)).abs().max() < limit


def test_scores_and_probabilities_stay_in_the_input_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    softmax = torch.softmax
    monkeypatch.setattr(torch, "softmax", lambda x, **k: (seen.append(x), softmax(x, **k))[1])
    naive_attention(**inputs(sizes(1, 4, 2, 5, 7, 16), torch.float16, DEVICE))
    assert [(tuple(x.shape), x.dtype) for x in seen] == [((1, 2, 10, 7), torch.float16)]


def test_work_is_eight_bytes_a_score_and_eight_a_number_of_one_tensor() -> None:
    counted = work(sizes(1, 1, 1, 4096, 4096, 64), 2)
    assert counted.model_bytes == 8 * 4096**2 + 8 * 4096 * 64
    assert counted.flops == 4 * 4096**2 * 64


@pytest.mark.parametrize(("N_Q", "N_K"), [(0, 3), (3, 0)])
def test_empty_inputs_give_empty_or_zero_outputs(N_Q: int, N_K: int) -> None:
    out = naive_attention(**inputs(sizes(1, 2, 1, N_Q, N_K, 16), torch.float32, DEVICE))
    assert out.shape == (1, 2, N_Q, 16)
    assert not out.any()


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="q has 3 heads and k has 2; allowed: a multiple"):
        naive_attention(*(torch.zeros(1, h, 4, 16) for h in (3, 2, 2)))
