"""Tokens a second of whole models against the length of the sequence, one panel a step."""

from itertools import pairwise
from pathlib import Path

from sitebuild.kernel_results import (
    ABSENT,
    RESULTS,
    Result,
    Row,
    anchor,
    device,
    mark,
    moment,
    results,
)
from sitebuild.model_rows import PHASES, STEM, Steps, best_rival, by_step, clock_of, rate, title
from sitebuild.svg import WIDTH, figure, line, log_scale, polyline, text

LEFT, RIGHT, GAP = 40.0, 14.0, 4.0  # beside the drawing area of a panel
TOP, HEIGHT, BELOW = 22.0, 120.0, 26.0  # its title, its area, its lengths
LEGEND = 22.0
# what is drawn, from the lowest line up
LINES = (
    ("eager", "stroke-soft dotted"),
    ("best SDPA", "stroke-soft"),
    ("ours", "stroke-ink"),
    ("no attention", "stroke-ink long-dashed"),
)
NAMED = {"eager": 34.0, "no attention": 72.0}  # in the panels too; about the width of the name
ROOM = 14.0  # over the highest line, for its name
Point = tuple[int, float]  # length, tokens a second


def chart(folder: Path = RESULTS) -> str:
    """Return one figure for each device, or a sentence where nothing is captured."""
    return "\n\n".join(draw(found) for found in results(STEM, folder)) or ABSENT


def curves(steps: Steps) -> dict[str, list[Point]]:
    """Return the points of each line, lengths without a time by the step's clock left out."""
    found: dict[str, list[Point]] = {name: [] for name, _ in LINES}
    for N, rows in steps.items():
        clock = clock_of(rows)
        shown: dict[str, Row | None] = {
            "ours": rows.get("ours"),
            "eager": rows.get("eager"),
            "no attention": rows.get("none"),
            "best SDPA": best_rival(rows, clock),
        }
        for name, row in shown.items():
            if row and clock in row:  # beside replayed graphs no step that was launched one by one
                found[name].append((N, rate(row, row[clock][1])))
    return found


def draw(result: Result) -> str:
    """Return the figure of one result: two panels a row, models beside one another."""
    body = _legend()
    data = []
    wide = (WIDTH - GAP) / 2
    columns = sorted({name for name, _ in by_step(result)})
    bottoms = dict.fromkeys(columns, LEGEND)
    for (name, phase), steps in by_step(result).items():
        found = curves(steps)
        x, y = columns.index(name) * (wide + GAP), bottoms[name]
        body += _panel(title(name, phase), found, x, y, wide)
        bottoms[name] = y + TOP + HEIGHT + BELOW
        data += [
            (title(name, phase), which, f"{N:,}", f"{value:,.0f}")
            for which, points in found.items()
            for N, value in points
        ]
    return figure(
        f"model-speed-{anchor(result)}",
        f"Tokens a second of whole models against sequence length on {device(result)}",
        "A panel for each model and step, both axes logarithmic: ours, the faster of two kernels "
        "of scaled_dot_product_attention, separate calls, and the model without attention, which "
        "no kernel can pass. The table below holds every value.",
        max(bottoms.values()),
        body,
        ("Step", "Attention", "N", "Tokens a second"),
        data,
        f"{device(result)}, {moment(result)}. Tokens a second against N. Long dashes: the model "
        f"without attention; dots: separate calls (eager).{_replayed(result)}",
        mark([result]),
    )


def _replayed(result: Result) -> str:
    """Return which steps were replayed, and that `eager`, which cannot be, is not among them."""
    replayed = {
        PHASES[phase]
        for (_, phase), steps in by_step(result).items()
        if any(clock_of(rows) == "graph_us" for rows in steps.values())
    }
    if not replayed:
        return ""
    which = " and ".join(sorted(replayed)).capitalize()
    return f" {which} is replayed as a CUDA graph; eager cannot be, and is left out there."


def _legend() -> list[str]:
    body, x = [], 0.0
    for name, classes in LINES:
        body += [line(x, 9, x + 22, 9, classes), text(x + 27, 13, name)]
        x += 44 + 7 * len(name)
    return body


def _panel(
    heading: str, found: dict[str, list[Point]], x: float, y: float, wide: float
) -> list[str]:
    points = [point for line_ in found.values() for point in line_]
    body = [text(x, y + 14, heading, classes="ink strong")]
    if not points:
        return [*body, text(x, y + 40, "not timed", classes="soft")]
    lengths = sorted({N for N, _ in points})
    low, high = min(r for _, r in points) / 1.3, max(r for _, r in points) * 1.1
    start, end, top = x + LEFT, x + wide - RIGHT, y + TOP
    bottom = top + HEIGHT

    def at(N: float, value: float) -> tuple[float, float]:
        last = max(lengths[-1], 2 * lengths[0])
        x = log_scale(lengths[0], last, start, end, N)
        return x, log_scale(low, high, bottom, top + ROOM, value)

    names = []
    body.append(line(start, bottom, end, bottom))
    for power in range(10):
        for tick in (10**power, 3 * 10**power):
            if low <= tick <= high:
                height = at(lengths[0], tick)[1]
                body.append(line(start, height, end, height, "line thin faint"))
                body.append(text(start - 4, height + 4, _short(tick), "end", "soft"))
    for N in lengths[:: max(1, len(lengths) // 3)]:
        body.append(text(at(N, low)[0], bottom + 16, _short(N), "middle", "soft"))
    for name, classes in LINES:
        if found[name]:
            places = [at(*point) for point in found[name]]
            body.append(polyline(places, classes))
            if name in NAMED:
                height = highest(places, places[-1][0] - NAMED[name]) - 6
                names.append(text(places[-1][0], height, name, "end", "ink halo"))
    return body + names


def highest(places: list[tuple[float, float]], start: float) -> float:
    """Return the y of the highest place of a line from x = `start` on."""
    inside = [y for x, y in places if x >= start]
    for (x, y), (later, below) in pairwise(places):
        if x < start < later:
            inside.append(y + (below - y) * (start - x) / (later - x))
    return min(inside)


def _short(number: int) -> str:
    """Return 16384 as 16k and 3000000 as 3M."""
    for size, unit in ((10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number // size}{unit}"
    return f"{number}"


def main() -> None:
    print(chart())


if __name__ == "__main__":
    main()
