"""The gate before every time: errors against float64 on the very tensors that are then timed.

An error may be at most twice the error of the ordinary computation in the same data type, plus
one unit in the last place at the largest reference value. The reference of a large case does not
fit in memory, so parts of it are checked, the first and the last, where a wrong offset would show.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kernels.bench.cases import Case
from kernels.bench.peers import (
    ATTENTION,
    WITH_GRADIENT,
    Outputs,
    as_tuple,
    implementation,
    input_names,
    output_names,
    with_leaves,
)

ROWS = 64  # rows of a row kernel or of a product that a part has
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


class Part(NamedTuple):
    inputs: dict[str, Any]
    take: Callable[[str, Tensor], Tensor]  # name and whole tensor to the part of it


class Expected(NamedTuple):
    part: Part
    values: dict[str, Tensor]  # float64
    tolerance: dict[str, float]
    eager: dict[str, float]  # error of the ordinary computation


def parts(stem: str, inputs: dict[str, Any], direction: str) -> list[Part]:
    """Cut a case into the parts that are checked: one when it cannot be cut."""
    if stem in ATTENTION:
        ends = {(0, 0), (inputs["q"].shape[0] - 1, inputs["k"].shape[1] - 1)}
        return [_heads(inputs, b, h) for b, h in sorted(ends)]
    leading = {"softmax": ("x",), "matmul": ("a",), "rms_norm": ("x", "residual")}.get(stem)
    if leading is None or direction == "backward":  # dweight is a sum over all the rows
        return [Part(inputs, lambda _name, tensor: tensor)]
    count = inputs[leading[0]].shape[0]
    starts = sorted({0, max(0, count - ROWS)})
    return [_rows(inputs, leading, slice(start, start + ROWS)) for start in starts]


def _heads(inputs: dict[str, Any], b: int, h: int) -> Part:
    group = inputs["q"].shape[1] // inputs["k"].shape[1]
    of_keys, of_queries = slice(h, h + 1), slice(h * group, (h + 1) * group)

    def take(name: str, tensor: Tensor) -> Tensor:
        heads = of_keys if name in ("k", "v", "dk", "dv") else of_queries
        return tensor[b : b + 1, heads]

    cut = {n: take(n, x) if isinstance(x, Tensor) else x for n, x in inputs.items()}
    return Part(cut, take)


def _rows(inputs: dict[str, Any], leading: tuple[str, ...], rows: slice) -> Part:
    cut = {name: x[rows] if name in leading else x for name, x in inputs.items()}
    return Part(cut, lambda _name, tensor: tensor[rows])


def expectations(
    case: Case, module: ModuleType, inputs: dict[str, Any], gradients: Outputs | None
) -> list[Expected]:
    """Return what every implementation of a case must give, with the error it may have."""
    found = []
    wanted = output_names(case.stem, case.direction)
    with_gradient = WITH_GRADIENT.get(case.stem, ("out",))
    eager_name = "cublas" if case.stem == "matmul" else "eager"
    for part in parts(case.stem, inputs, case.direction):
        cut = tuple(part.take(n, g) for n, g in zip(with_gradient, gradients or (), strict=False))
        values = _evaluate(module.reference, case, part.inputs, cut, torch.float64)
        eager = implementation(eager_name, case.stem, module)
        ordinary = _evaluate(eager, case, part.inputs, cut, None)
        tolerance, errors = {}, {}
        for name, value in zip(wanted, values, strict=False):
            scale = _largest(value)
            ulp = torch.finfo(DTYPES[case.dtype]).eps * scale
            tolerance[name] = ulp
        for name, value, seen in zip(wanted, values, ordinary, strict=False):
            errors[name] = error(seen, value) or 0.0
            tolerance[name] += 2 * errors[name]
        found.append(Expected(part, dict(zip(wanted, values, strict=False)), tolerance, errors))
    return found


def check(
    case: Case, name: str, outputs: Outputs, expected: list[Expected]
) -> list[dict[str, Any]]:
    """Return one row for each output of an implementation: error, tolerance, passed.

    An error is the largest absolute difference from float64; null, with the reason, where the
    output is not finite and the reference is.
    """
    rows = []
    for output, tensor in zip(output_names(case.stem, case.direction), outputs, strict=False):
        seen = [(error(e.part.take(output, tensor), e.values[output]), e) for e in expected]
        broken = any(difference is None for difference, _ in seen)
        # the part that comes nearest to its tolerance, or goes furthest past it, speaks for all
        worst, at = max(
            ((d or 0.0, e) for d, e in seen),
            key=lambda pair: pair[0] - pair[1].tolerance[output],
        )
        row = {"implementation": name, **case.fields(), "output": output}
        row |= {"error": None if broken else worst, "eager_error": at.eager.get(output)}
        row |= {"tolerance": at.tolerance[output]}
        row["relative_rms"] = max(
            relative_rms(e.part.take(output, tensor), e.values[output]) for e in expected
        )
        row |= {"passed": not broken and worst <= at.tolerance[output]}
        rows.append(row | ({"reason": "not finite where the reference is"} if broken else {}))
    return rows


def error(seen: Tensor, expected: Tensor) -> float | None:
    """Return the largest absolute difference, or None where only one of the two is finite."""
    seen, expected = seen.detach().double(), expected.detach().double()
    if seen.shape != expected.shape:
        raise ValueError(f"an output has shape {tuple(seen.shape)}, not {tuple(expected.shape)}")
    finite = torch.isfinite(expected)
    if not torch.equal(finite, torch.isfinite(seen)):
        return None
    difference = torch.where(finite, seen - expected, 0.0).abs()
    return float(difference.max()) if difference.numel() else 0.0


def relative_rms(seen: Tensor, expected: Tensor) -> float:
    """Return the root mean square error over that of the reference, where both are finite.

    The largest error of millions says more of one number than of a kernel; this compares kernels.
    """
    seen, expected = seen.detach().double(), expected.detach().double()
    finite = torch.isfinite(expected) & torch.isfinite(seen)
    scale = torch.where(finite, expected, 0.0).norm()
    return float(torch.where(finite, seen - expected, 0.0).norm() / scale) if scale > 0 else 0.0


def _largest(value: Tensor) -> float:
    finite = torch.where(torch.isfinite(value), value, 0.0).abs()
    return float(finite.max()) if finite.numel() else 0.0


def _evaluate(
    call: Callable[..., Any],
    case: Case,
    inputs: dict[str, Any],
    gradients: Outputs,
    dtype: torch.dtype | None,
) -> Outputs:
    if case.direction == "forward":
        with torch.no_grad():
            return as_tuple(call(**inputs))
    leaves = with_leaves(case.stem, inputs, dtype)
    outputs = as_tuple(call(**leaves))[: len(gradients)]
    cut = tuple(g.to(out.dtype) for g, out in zip(gradients, outputs, strict=True))
    return torch.autograd.grad(outputs, [leaves[n] for n in input_names(case.stem)], cut)
