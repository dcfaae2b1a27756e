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
    label,
    peak,
    rates,
    results,
)
from sitebuild.svg import WIDTH, figure, line, rect, text

LEFT, RIGHT, TOP = 92.0, WIDTH - 46.0, 26.0
BAR, GAP = 13.0, 24.0  # a bar with its margin; space above a case for its name
CASES = 8  # at most, or the drawing grows past a page
# the sizes that tell cases apart; of each combination the largest case is drawn
APART = {"D", "causal", "H_KV", "N", "K"}


def chart(
    stem: str, direction: str = "forward", dtype: str = "bf16", folder: Path = RESULTS
) -> str:
    """Return one figure for each device, or a sentence where nothing is captured."""
    drawn = [_figure(result, direction, dtype) for result in results(stem, folder)]
    return "\n\n".join(each for each in drawn if each) or ABSENT


def picked(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the shapes to draw: for each combination of options the one with the most work."""
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        shape = row["shape"]
        key = tuple((name, shape[name]) for name in sorted(APART & shape.keys()))
        if "us" in row and row["flops"] >= best.get(key, row)["flops"]:
            best[key] = row
    ordered = sorted(best.values(), key=lambda row: (row["flops"], row["shape"].get("N", 0)))
    shapes = [row["shape"] for row in ordered]
    return list(reversed(shapes[-CASES:]))


def _figure(result: dict[str, Any], direction: str, dtype: str) -> str:
    stem, device = result["kernel"], result["device"]["name"]
    by_flop, unit = stem in BY_FLOP, "TFLOP/s" if stem in BY_FLOP else "GB/s"
    rows = [r for r in result["rows"] if (r["pass"], r["dtype"]) == (direction, dtype)]
    timed = [row for row in rows if "us" in row]
    if not timed:
        return ""
    shapes = picked([row for row in timed if row["implementation"] == "ours"])
    shown = [[row for row in timed if row["shape"] == shape] for shape in shapes]
    most = max((rates(row, by_flop)[2] for case in shown for row in case), default=1.0)
    top = max(most, peak(result, timed[0]) or 0.0)
    y, body, data = TOP, [text(6, 14, unit, classes="soft")], []

    def at(rate: float) -> float:
        return LEFT + (RIGHT - LEFT) * rate / top

    for shape, case in zip(shapes, shown, strict=True):
        body.append(text(6, y + GAP - 10, label(shape), classes="ink strong"))
        y += GAP
        for row in case:
            name = row["implementation"]
            middle, low, high = rates(row, by_flop)
            level = "wash-strong" if name == "ours" else "wash"
            tip = f"{name}: {middle:,.0f} {unit}, 20 to 80 %: {low:,.0f} to {high:,.0f}"
            middle_y = y + BAR / 2
            body.append(text(LEFT - 6, y + BAR - 3, name, "end"))
            body.append(rect(LEFT, y + 1, at(middle) - LEFT, BAR - 2, level, tip))
            body.append(line(at(low), middle_y, at(high), middle_y, "line"))
            body.append(text(at(high) + 5, y + BAR - 3, f"{middle:,.0f}"))
            data.append((label(shape), name, f"{middle:,.0f}", f"{low:,.0f}", f"{high:,.0f}"))
            y += BAR
    body.append(line(LEFT, TOP, LEFT, y, "line"))
    if known := peak(result, timed[0]):
        body.append(line(at(known), TOP, at(known), y, "line thin dashed"))
    run = result["run"]
    return figure(
        f"speed-{stem.replace('_', '-')}-{direction}-{dtype}-{_anchor(device)}",
        f"Speed of {stem}, {direction}, {dtype}, on {device}",
        f"For each case one bar an implementation, in {unit}, longer is faster; a thin line over "
        "its end spans the 20 and 80 % quantiles. The table below holds every value.",
        y + 10,
        body,
        ("Case", "Implementation", f"{unit}, median", "20 %", "80 %"),
        data,
        f"{stem}, {direction}, {dtype}, on {device}, captured {run['date'][:10]} at commit "
        f"{run['commit'][:10]}. The largest case of each kind; dashed: the data sheet's rate.",
    )


def _anchor(device: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in device.lower())


def main() -> None:
    drawn = [each for stem in STEMS if (each := chart(stem)) != ABSENT]
    print("\n\n".join(drawn) or ABSENT)


if __name__ == "__main__":
    main()
