"""Bars of one kernel's captured speed: every implementation on the largest cases, with spread.

A page calls `chart(stem)`. Run as a module it draws all kernels that have results.
"""

from pathlib import Path
from typing import Any

from sitebuild.kernel_results import (
    ABSENT,
    BY_FLOP,
    RESULTS,
    STEMS,
    Result,
    Row,
    anchor,
    device,
    is_ours,
    label,
    mark,
    moment,
    peak,
    rates,
    results,
    unit_of,
)
from sitebuild.svg import WIDTH, figure, line, rect, text

LEFT, RIGHT, TOP = 92.0, WIDTH - 46.0, 14.0
BAR, GAP = 13.0, 26.0  # a bar with its margin; space above a case for its name
CASES = 8  # at most, or the drawing grows past a page
# the sizes that tell cases apart; of each combination the largest case is drawn
APART = {"D", "causal", "H_KV", "N", "K"}


def chart(
    stem: str, direction: str = "forward", dtype: str = "bf16", folder: Path = RESULTS
) -> str:
    """Return one figure for each device, or a sentence where nothing is captured."""
    drawn = [draw(result, direction, dtype) for result in results(stem, folder)]
    return "\n\n".join(each for each in drawn if each) or ABSENT


def picked(rows: list[Row]) -> list[dict[str, Any]]:
    """Return the shapes to draw: for each combination of options the one with the most work."""
    best: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        shape = row["shape"]
        key = tuple((name, shape[name]) for name in sorted(APART & shape.keys()))
        if "us" in row and row["flops"] >= best.get(key, row)["flops"]:
            best[key] = row
    ordered = sorted(best.values(), key=lambda row: (row["flops"], row["shape"].get("N", 0)))
    shapes = [row["shape"] for row in ordered]
    return list(reversed(shapes[-CASES:]))


def draw(result: Result, direction: str, dtype: str) -> str:
    """Return the figure of one result, empty where no such case was timed."""
    stem, unit, by_flop = result["kernel"], unit_of(result), result["kernel"] in BY_FLOP
    rows = [r for r in result["rows"] if (r["pass"], r["dtype"]) == (direction, dtype)]
    timed = [row for row in rows if "us" in row]
    shapes = picked([row for row in timed if row["implementation"] == "ours"])
    shown = [row for shape in shapes for row in timed if row["shape"] == shape]
    if not shown:
        return ""
    known = peak(result, shown[0])
    top = max(known or 0.0, *(rates(row, by_flop)[2] for row in shown))
    y, body, data = TOP, [], []

    def at(rate: float) -> float:
        return LEFT + (RIGHT - LEFT) * rate / top

    for shape in shapes:
        body.append(text(6, y + GAP - 12, label(shape), classes="ink strong"))
        y += GAP - 6
        start = y
        for row in [row for row in shown if row["shape"] == shape]:
            middle, low, high = rates(row, by_flop)
            body += _bar(row["implementation"], y, at, (middle, low, high), unit)
            values = (f"{rate:,.0f}" for rate in (middle, low, high))
            data.append((label(shape), row["implementation"], *values))
            y += BAR
        body.append(line(LEFT, start, LEFT, y, "line"))
        if known:
            body.append(line(at(known), start, at(known), y, "line thin dashed"))
        y += 6
    dashed = f"; dashed: the data sheet's {known:,.0f}" if known else ""
    return figure(
        f"speed-{stem.replace('_', '-')}-{direction}-{dtype}-{anchor(result)}",
        f"Speed of {stem}, {direction}, {dtype}, on {device(result)}",
        f"For each case one bar an implementation, in {unit}, longer is faster; a thin line over "
        "its end spans the 20 and 80 % quantiles. The table below holds every value.",
        y + 4,
        body,
        ("Case", "Implementation", f"{unit}, median", "20 %", "80 %"),
        data,
        f"{stem}, {direction}, {dtype}, {unit}, on {device(result)}, {moment(result)}. The largest "
        f"case of each kind; ours is the first bar{dashed}.",
        mark([result]),
    )


def _bar(name: str, y: float, at: Any, rate: tuple[float, float, float], unit: str) -> list[str]:
    middle, low, high = rate
    tip = f"{name}: {middle:,.0f} {unit}, 20 to 80 %: {low:,.0f} to {high:,.0f}"
    level = "bar-ours" if is_ours(name) else "bar"
    return [
        text(LEFT - 6, y + BAR - 3, name, "end"),
        rect(LEFT, y + 1, at(middle) - LEFT, BAR - 2, level, tip),
        line(at(low), y + BAR / 2, at(high), y + BAR / 2, "spread"),
        text(at(high) + 5, y + BAR - 3, f"{middle:,.0f}"),
    ]


def main() -> None:
    drawn = [each for stem in STEMS if (each := chart(stem)) != ABSENT]
    print("\n\n".join(drawn) or ABSENT)


if __name__ == "__main__":
    main()
