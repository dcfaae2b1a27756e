"""Bars of one kernel's captured speed: every implementation on the largest cases, with spread.

A page calls `chart(stem)`. Run as a module it draws all kernels that have results.
"""

from pathlib import Path
from typing import Any

from sitebuild.kernel_results import (
    ABSENT,
    BY_FLOP,
    LAUNCH_BOUND_US,
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
CASES = 9  # at most, or the drawing grows past a page


def chart(
    stem: str, direction: str = "forward", dtype: str = "bf16", folder: Path = RESULTS
) -> str:
    """Return one figure for each device, or a sentence where nothing is captured."""
    drawn = [draw(result, direction, dtype) for result in results(stem, folder)]
    return "\n\n".join(each for each in drawn if each) or ABSENT


def picked(rows: list[Row]) -> list[dict[str, Any]]:
    """Return the shapes to draw: of each kind the one with the most work, the largest first."""
    return [row["shape"] for row in largest(rows)[:CASES]]


def largest(rows: list[Row]) -> list[Row]:
    """Return of each kind the case with the most work, its first where several have as much."""
    best: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if "us" in row and row["flops"] > best.get(kind(row["shape"]), {"flops": -1})["flops"]:
            best[kind(row["shape"])] = row
    return sorted(best.values(), key=lambda row: (-row["flops"], -row["shape"].get("N", 0)))


def kind(shape: dict[str, Any]) -> tuple[Any, ...]:
    """Return what cases have in common that differ only in how much there is to do.

    Head dim, mask and grouping for attention, the length of a row for kernels of rows. A product
    is of a kind of its own: its three sizes decide together whether its tiles fill the device.
    """
    if "H" in shape:
        return shape["D"], shape["causal"], shape["H"] // max(1, shape["H_KV"])
    return tuple(shape.values()) if "K" in shape else (shape.get("N"),)


def draw(result: Result, direction: str, dtype: str) -> str:
    """Return the figure of one result, empty where no such case was timed."""
    stem, unit, by_flop = result["kernel"], unit_of(result), result["kernel"] in BY_FLOP
    rows = [r for r in result["rows"] if (r["pass"], r["dtype"]) == (direction, dtype)]
    timed = [row for row in rows if "us" in row]
    ours = [row for row in timed if row["implementation"] == "ours"]
    shapes = picked(ours)
    shown = [row for shape in shapes for row in timed if row["shape"] == shape]
    if not shown:
        return ""
    known = peak(result, shown[0])
    top = max(known or 0.0, *(rates(row, by_flop)[2] for row in shown))
    y, body, data, values = TOP, [], [], []

    def at(rate: float) -> float:
        return LEFT + (RIGHT - LEFT) * rate / top

    for shape in shapes:
        body.append(text(6, y + GAP - 12, label(shape), classes="ink strong"))
        y += GAP - 6
        start = y
        for row in [row for row in shown if row["shape"] == shape]:
            middle, low, high = rates(row, by_flop)
            value = f"{middle:,.0f}{launch_mark(row)}"
            body += _bar(row["implementation"], y, at, (middle, low, high), unit)
            values.append(text(at(high) + 5, y + BAR - 3, value, classes="ink halo"))
            data.append((label(shape), row["implementation"], value, f"{low:,.0f}", f"{high:,.0f}"))
            y += BAR
        body.append(line(LEFT, start, LEFT, y, "line"))
        if known:
            body.append(line(at(known), start, at(known), y, "line thin dashed"))
        y += 6
    body += values  # over the dashed lines, which their halos interrupt
    short = f" † under {LAUNCH_BOUND_US:.0f} us, mostly launch."
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
        f"{stem}, {direction}, {dtype}, {unit}, on {device(result)}, {moment(result)}. "
        f"{_choice(ours, len(shapes))}; ours is the first bar{dashed}."
        f"{short if any(map(launch_mark, shown)) else ''}",
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
    ]


def _choice(ours: list[Row], drawn: int) -> str:
    """Return which of our timed cases are drawn, so that none is left out in silence."""
    kinds = len(largest(ours))
    if drawn == len(ours):
        return "Every case"
    return f"The largest case of {'each kind' if drawn == kinds else f'{drawn} of {kinds} kinds'}"


def launch_mark(row: Row) -> str:
    """Return the mark that tables give a time that is mostly launch, empty for others."""
    return " †" if row["us"][1] < LAUNCH_BOUND_US else ""


def main() -> None:
    drawn = [each for stem in STEMS if (each := chart(stem)) != ABSENT]
    print("\n\n".join(drawn) or ABSENT)


if __name__ == "__main__":
    main()
