"""Kernels run in Triton's interpreter where there is no GPU, and into outputs full of NaN."""

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _device

# `with torch.device(...)` collects once what it reaches: torch.empty, not what stands in for it.
_device._device_constructors()

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before any kernel is imported


@pytest.fixture(autouse=True)
def outputs_start_as_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill every new floating-point buffer with NaN, so that an element left unwritten shows."""

    def poisoned(allocate: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def wrapper(*args: Any, **options: Any) -> torch.Tensor:
            buffer = allocate(*args, **options)
            return buffer.fill_(float("nan")) if buffer.is_floating_point() else buffer

        return wrapper

    monkeypatch.setattr(torch, "empty", poisoned(torch.empty))
    monkeypatch.setattr(torch, "empty_like", poisoned(torch.empty_like))


def rounding_of_scores(arguments: dict[str, Any] | None) -> float:
    """Relative error of a weight from the rounding of its score, eps of float32 |q| |k| scale.

    Every order of summation may round by as much, and eager's is another one: that of cuBLAS on a
    GPU; in the interpreter NumPy's differs from PyTorch's, on each CPU, and for K Q^T from Q K^T.
    On a GPU it is of no account beside the rounding of 16-bit inputs, and 0 for them.
    """
    if arguments is None or (torch.cuda.is_available() and arguments["q"].itemsize == 2):
        return 0.0
    norms = (arguments[name].detach().double().norm(dim=3).flatten() for name in "qk")
    q, k = (torch.nn.functional.pad(norm, (0, 1)).max().item() for norm in norms)  # 0 if empty
    scale = arguments.get("scale") or arguments["q"].shape[3] ** -0.5
    return float(torch.finfo(torch.float32).eps * q * k * scale)


@pytest.fixture
def assert_as_exact_as_eager() -> Callable[..., None]:
    """Allow at most twice the error of the same-dtype eager computation plus one ulp.

    Called with what was found, what eager computation in the same dtype gives, and float64; for
    attention also with the arguments of the launcher. Infinities must stand in the same places;
    NaN is never right.
    """

    def check(
        found: torch.Tensor,
        eager: torch.Tensor,
        exact: torch.Tensor,
        attention: dict[str, Any] | None = None,
    ) -> None:
        assert found.shape == exact.shape
        assert not found.isnan().any()
        infinite = exact.isinf()
        assert torch.equal(found[infinite].double(), exact[infinite])
        if infinite.all():
            return
        right = exact[~infinite]
        allowed = 2 * (eager[~infinite].double() - right).abs().max()
        allowed += torch.finfo(found.dtype).eps * right.abs().max()
        allowed += rounding_of_scores(attention) * right.abs().max()
        error = (found[~infinite].double() - right).abs().max()
        assert error <= allowed, f"error {error:.3e}, allowed {allowed:.3e}"

    return check
