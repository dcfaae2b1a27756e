"""Which cases are measured, and the FLOP that they count."""

import importlib
from types import ModuleType
from typing import Any

import pytest

from kernels.bench.cases import COUNTED_NAMES, STEMS, Case, counted, timed

SHAPES = [{"M": m, "N": 2} for m in (7, 1, 5, 3, 9, 11, 2)]


@pytest.fixture
def kernel() -> ModuleType:
    made = ModuleType("made_up")
    made.SHAPES = {"bench": SHAPES}  # type: ignore[attr-defined]
    made.work = lambda shape, _: type("W", (), {"model_bytes": shape["M"]})  # type: ignore[attr-defined]
    return made


def test_every_shape_is_timed_in_every_data_type(kernel: ModuleType) -> None:
    found = timed("softmax", kernel)
    assert [(case.dtype, case.shape) for case in found] == [
        (dtype, shape) for dtype in ("bf16", "fp16") for shape in SHAPES
    ]


def test_the_ladder_is_measured_in_one_data_type(kernel: ModuleType) -> None:
    assert {case.dtype for case in timed("attention_ladder", kernel)} == {"bf16"}


def test_backward_comes_after_forward(kernel: ModuleType) -> None:
    directions = [case.direction for case in timed("rms_norm", kernel)]
    assert directions == (["forward"] * 7 + ["backward"] * 7) * 2


def test_a_quick_run_is_small(kernel: ModuleType) -> None:
    assert [case.shape for case in timed("softmax", kernel, quick=True)] == SHAPES[:3]
    assert len(counted("softmax", kernel, quick=True)) == 1


def test_traffic_is_counted_from_the_smallest_to_the_largest(kernel: ModuleType) -> None:
    assert [case.shape["M"] for case in counted("softmax", kernel)] == [1, 3, 7, 11]


def test_attention_is_counted_where_every_tensor_is_far_larger_than_l2(kernel: ModuleType) -> None:
    l2 = 63e6  # of an H200, as its driver reports it
    large = [
        shape
        for shape in (case.shape for case in counted("flash_attention", kernel))
        if shape["B"] * shape["H"] * shape["N_Q"] * shape["D"] * 2 > 5 * l2 and not shape["causal"]
    ]
    assert [(s["B"], s["H"], s["N_Q"], s["D"]) for s in large] == [
        (8, 32, 8192, 128),
        (4, 64, 8192, 128),
    ]


def test_a_label_says_what_runs() -> None:
    case = Case("flash_attention", "forward", "bf16", {"B": 1, "causal": True, "x": False})
    assert case.label() == "flash_attention forward bf16 B1 causal"


def test_a_key_does_not_depend_on_the_order_of_sizes() -> None:
    one = Case("softmax", "forward", "bf16", {"M": 1, "N": 2})
    assert one.key == Case("softmax", "forward", "bf16", {"N": 2, "M": 1}).key


def test_traffic_is_counted_of_kernels_that_are_measured() -> None:
    assert set(COUNTED_NAMES) <= set(STEMS)  # of one that is not named, ours alone


@pytest.fixture
def attention_work() -> Any:
    pytest.importorskip("triton", reason="needs triton")
    return importlib.import_module("kernels.flash_attention").work


def attention(N: int, causal: bool) -> dict[str, Any]:
    return {"B": 64, "H": 16, "H_KV": 16, "N_Q": N, "N_K": N, "D": 64, "causal": causal}


def test_the_published_flop_of_attention_can_be_reproduced(attention_work: Any) -> None:
    forward = attention_work(attention(1024, False), 2).flops
    backward = attention_work(attention(1024, False), 2, "backward").flops
    assert round(forward / 1e9, 1) == 274.9
    assert round((forward + backward) / 1e9, 1) == 962.1
    assert backward == 2.5 * forward


def test_a_causal_mask_halves_the_flop(attention_work: Any) -> None:
    full, causal = (attention_work(attention(16384, mask), 2).flops for mask in (False, True))
    assert causal * 2 == full
