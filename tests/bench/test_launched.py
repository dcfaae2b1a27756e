"""What a trace of the profiler says: kernels, copies, and names short enough to read."""

import json
from typing import Any

import pytest

from kernels.bench.launched import UnseenError, read, short

COPY = (
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::"
    "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const>>(int)"
)
CAT = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::Opaque<2u>, 3>(char)"
FLASH = (
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, cutlass::bfloat16_t>, "
    "true>(pytorch_flash::Flash_fwd_params)"
)


def event(category: str, name: str, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "ts": 1, "dur": 2} | more


def trace(*events: dict[str, Any]) -> str:
    return json.dumps({"schemaVersion": 1, "traceEvents": [{"ph": "M", "name": "x"}, *events]})


def test_kernels_are_counted_and_nothing_else() -> None:
    text = trace(
        event("kernel", FLASH), event("kernel", FLASH), event("cuda_runtime", "cudaLaunchKernel"),
        event("gpu_user_annotation", "Optimizer.step#AdamW.step"), event("gpu_memset", "Memset"),
        event("kernel", "flash_attention_hopper_kernel"), event("kernel", FLASH, ph="i"),
    )  # fmt: skip
    assert read(text) == {
        "kernels": 3,
        "copies": 0,
        "names": {"flash_attention_hopper_kernel": 1, "pytorch_flash::flash_fwd_kernel": 2},
    }


def test_copies_are_those_of_layouts_of_concatenations_and_of_the_driver() -> None:
    text = trace(
        event("kernel", COPY), event("kernel", CAT), event("kernel", FLASH),
        event("gpu_memcpy", "Memcpy DtoD (Device -> Device)"),
        event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"),
    )  # fmt: skip
    found = read(text)
    assert (found["kernels"], found["copies"]) == (3, 3)


def test_a_trace_without_a_kernel_is_no_count_of_zero() -> None:
    with pytest.raises(UnseenError, match="the profiler saw no kernel"):
        read(trace(event("cpu_op", "aten::mm")))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("flash_decode_kernel", "flash_decode_kernel"),
        (FLASH, "pytorch_flash::flash_fwd_kernel"),
        (COPY, "at::native::elementwise_kernel"),
        ("void cask::gemm<(int)3, a::b<c<d>>>(long, e<f>)", "cask::gemm"),
    ],
)
def test_a_short_name_leaves_out_types_and_arguments(name: str, expected: str) -> None:
    assert short(name) == expected
