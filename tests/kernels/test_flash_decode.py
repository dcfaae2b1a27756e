"""Few queries over a long cache: every split, the merge, groups of heads, strides, refusals."""

import math
import re
from typing import Any

import pytest
import torch

from kernels import attention_reference
from kernels.flash_decode import SHAPES, choose_splits, flash_decode, inputs, reference, work

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA GPU")
# Triton's interpreter multiplies bfloat16 wrongly.
DTYPES = [torch.float16, torch.float32, pytest.param(torch.bfloat16, marks=needs_gpu)]


def tensors(*sizes: int, dtype: torch.dtype = torch.float16, **options: Any) -> dict[str, Any]:
    """Arguments for sizes B, H, H_KV, N_Q, N_K, D."""
    return inputs(attention_reference.sizes(*sizes, **options), dtype, DEVICE)


@pytest.mark.parametrize("splits", [None, 1, 3, 40])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES["test"], ids=lambda s: "-".join(map(str, s.values())))
def test_out_and_lse_are_as_exact_as_eager(
    shape: dict[str, Any], dtype: torch.dtype, splits: int | None, assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs(shape, dtype, DEVICE)
    found, exact = flash_decode(**arguments, splits=splits), reference(**arguments)
    ordinary = attention_reference.eager(**arguments)
    assert_as_exact_as_eager(found[0], ordinary[0], exact[0], arguments)
    assert_as_exact_as_eager(found[1], ordinary[1], exact[1], arguments)


def test_one_split_and_two_agree_to_rounding() -> None:
    arguments = tensors(2, 4, 4, 1, 1024, 64)
    one, two = (flash_decode(**arguments, splits=n) for n in (1, 2))
    assert two[0].isfinite().all()
    assert (one[0] - two[0]).abs().max() <= 2**-12  # an ulp of fp16 below 1/2
    assert torch.allclose(one[1], two[1], rtol=1e-6)


@pytest.mark.parametrize("splits", [1, 2, 3])
def test_a_split_that_a_row_does_not_see_adds_nothing(splits: int) -> None:
    arguments = tensors(1, 1, 1, 100, 130, 32, causal=True)
    arguments["q"].zero_()
    _, lse = flash_decode(**arguments, splits=splits)
    seen = torch.arange(31, 131, device=DEVICE).double()
    assert torch.allclose(lse[0, 0].double(), seen.log(), rtol=0, atol=1e-6)


def test_queries_before_the_first_key_give_exactly_zero_and_lse_minus_infinity() -> None:
    out, lse = flash_decode(**tensors(1, 1, 1, 210, 200, 16, causal=True), splits=2)
    assert not out[:, :, :10].any()
    assert (lse[:, :, :10] == -math.inf).all()
    assert lse[:, :, 10:].isfinite().all()


@pytest.mark.parametrize("far", [300.0, -300.0])
def test_splits_whose_scores_lie_far_apart_merge_without_overflow(far: float) -> None:
    arguments = tensors(1, 2, 1, 1, 1024, 64, dtype=torch.float32)
    arguments["q"].fill_(1.0)
    arguments["k"][:, :, :512].fill_(far / 8)
    arguments["k"][:, :, 512:].fill_(-far / 8)
    out, lse = flash_decode(**arguments, splits=2)
    exact = reference(**arguments)
    assert torch.allclose(out.double(), exact[0], rtol=0, atol=1e-6)
    assert torch.allclose(lse.double(), exact[1], rtol=1e-6)


@pytest.mark.parametrize(("H", "H_KV"), [(8, 1), (8, 2), (6, 2), (3, 3)])
@pytest.mark.parametrize("N_Q", [1, 3])
def test_each_head_reads_the_cache_of_its_group(H: int, H_KV: int, N_Q: int) -> None:
    arguments = tensors(2, H, H_KV, N_Q, 100, 16, causal=True)
    repeated = {x: arguments[x].repeat_interleave(H // H_KV, 1) for x in ("k", "v")}
    grouped, alone = (flash_decode(**x) for x in (arguments, arguments | repeated))
    assert torch.allclose(grouped[0], alone[0], rtol=0, atol=1e-3)
    assert torch.allclose(grouped[1], alone[1], rtol=1e-5)


STRIDES = {
    "the filled part of a longer cache": lambda x: torch.cat((x, x * math.nan), 2)[
        :, :, : x.shape[2]
    ],
    "tokens before heads": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "odd row": lambda x: torch.nn.functional.pad(x, (0, 1))[..., :-1],
    "expanded batch": lambda x: x[:1].expand(2, -1, -1, -1),
}


@pytest.mark.parametrize("name", ["q", "k", "v"])
@pytest.mark.parametrize("layout", STRIDES)
def test_strides_change_where_the_numbers_lie_and_not_the_result(layout: str, name: str) -> None:
    arguments = tensors(2, 4, 2, 2, 150, 32, causal=True)
    arguments[name] = STRIDES[layout](arguments[name])
    dense = arguments | {name: arguments[name].contiguous()}
    found, expected = (flash_decode(**x, splits=2) for x in (arguments, dense))
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


@pytest.mark.parametrize(("B", "N_Q", "N_K"), [(0, 1, 5), (2, 0, 5), (2, 1, 0)])
def test_empty_inputs_give_empty_or_zero_outputs(B: int, N_Q: int, N_K: int) -> None:
    out, lse = flash_decode(**tensors(B, 2, 2, N_Q, N_K, 16))
    assert out.shape == (B, 2, N_Q, 16)
    assert not out.any()
    assert (lse == -math.inf).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"splits": 0}, "splits is 0; allowed: >= 1"),
        ({"scale": math.inf}, "scale is inf; allowed: finite and above 0"),
        ({"q": torch.zeros(1, 3, 1, 16, dtype=torch.float16)}, "q has 3 heads and k has 2"),
        ({"q": torch.zeros(1, 2, 1, 16, dtype=torch.int8)}, "q is torch.int8; allowed: "),
    ],
)
def test_what_cannot_be_computed_is_refused(changes: dict[str, Any], message: str) -> None:
    arguments = {n: torch.zeros(1, 2, 4, 16, dtype=torch.float16) for n in ("q", "k", "v")}
    with pytest.raises(ValueError, match=re.escape(message)):
        flash_decode(**(arguments | changes))


@pytest.mark.parametrize(
    ("heads", "N_K", "sm_count", "splits"),
    [(1, 131072, 132, 132), (8, 131072, 132, 16), (128, 32768, 132, 1), (2048, 4096, 132, 1),
     (4, 100, 132, 1), (1, 1300, 132, 8), (8, 500, 132, 3), (64, 1300, 132, 2), (0, 0, 132, 1)],
)  # fmt: skip
def test_each_sm_gets_one_split_and_only_the_first_few_are_short(
    heads: int, N_K: int, sm_count: int, splits: int
) -> None:
    assert choose_splits(heads, N_K, sm_count) == splits


def test_work_reads_the_cache_once_for_all_heads_of_a_group() -> None:
    counted = work(attention_reference.sizes(2, 32, 4, 1, 8192, 128), 2)
    assert counted.model_bytes == 2 * (2 * 2 * 4 * 8192 * 128) + 2 * 32 * (2 * 128 * 2 + 4)
    assert counted.flops == 4 * 2 * 32 * 8192 * 128


@needs_gpu
def test_a_long_cache_is_as_exact_as_eager(assert_as_exact_as_eager: Any) -> None:
    arguments = tensors(2, 32, 4, 1, 32768, 128, dtype=torch.bfloat16)
    exact, ordinary = reference(**arguments), attention_reference.eager(**arguments)
    assert_as_exact_as_eager(flash_decode(**arguments)[0], ordinary[0], exact[0])
