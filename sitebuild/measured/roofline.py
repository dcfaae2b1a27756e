"""The captured kernels on the measured roofline of their device, attention as three kernels too."""

from html import escape
from pathlib import Path

from sitebuild.figures.measured_roofline import PASSING, Point, by_device, draw, point_of, roofs
from sitebuild.kernel_results import (
    ABSENT,
    BY_FLOP,
    RESULTS,
    Result,
    best_case,
    device,
    same_case,
)

PAGE = "../kernels/index.md"


def placed(folder: Path = RESULTS) -> str:
    """Return a figure and a sentence on each side of the ridge, for each device."""
    return "\n\n".join(_placed(found) for found in by_device(folder)) or ABSENT


def _placed(found: list[Result]) -> str:
    points = [point for result in found for point in _points(result)]
    copy, product = roofs(found)
    ridge = product * 1e3 / copy
    left = [point for point in points if point.intensity < ridge]
    right = [point for point in points if point.intensity >= ridge]
    told = f"On this {escape(device(found[0]))} the measured roofs meet at {ridge:.0f} FLOP/B."
    if left:
        told += f" Left of it, shares of the copy: {_shares(left)}."
    if right:
        told += f" Right of it, shares of the matrix product: {_shares(right)}."
    own = f"A share is of the ceiling in the case's own run. {PASSING}"
    return f"{draw(found, points, 'lesson')}\n\n{told} {own} [All cases]({PAGE})."


def _points(result: Result) -> list[Point]:
    """Our largest case, and for attention the same case as three kernels with their own bytes."""
    row, stem = best_case(result), result["kernel"]
    if row is None:
        return []
    points = [point_of(result, row, stem)]
    if stem in BY_FLOP:
        eager = [r for r in same_case(result, row) if r["implementation"] == "eager"]
        apart = [point_of(result, r, f"{stem} as three kernels") for r in eager]
        points += [p._replace(case=f"{p.case} as three kernels") for p in apart]
    return points


def _shares(points: list[Point]) -> str:
    ordered = sorted(points, key=lambda point: point.intensity)
    return ", ".join(f"{point.name} {point.share:.0%}" for point in ordered)
