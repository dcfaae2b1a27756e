"""Tokens a second of whole models against the length of the sequence, one panel a step."""

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
from sitebuild.model_rows import STEM, Steps, best_rival, by_step, clock_of, rate, title
from sitebuild.svg import WIDTH, figure, line, log_scale, polyline, text

LEFT, RIGHT, GAP = 40.0, 14.0, 4.0  # beside the drawing area of a panel
TOP, HEIGHT, BELOW = 22.0, 112.0, 26.0  # its title, its area, its lengths
LEGEND = 22.0
# what is drawn, from the lowest line up
LINES = (
    ("eager", "line dashed"),
    ("best SDPA", "stroke-soft"),
    ("ours", "stroke-ink"),
    ("no attention", "line thin dashed"),
)
Point = tuple[int, float]  # length, tokens a second


def chart(folder: Path = RESULTS) -> str:
    """Return one figure for each device, or a sentence where nothing is captured."""
    return "\n\n".join(draw(found) for found in results(STEM, folder)) or ABSENT


def curves(steps: Steps) -> dict[str, list[Point]]:
    """Return the points of each line, lengths without a time left out."""
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
            times = row and (row.get(clock) or row.get("us"))  # `eager` cannot be replayed
            if row and times:
                found[name].append((N, rate(row, times[1])))
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
        f"{device(result)}, {moment(result)}. Tokens a second against N. The thin dashed line is "
        "the model without attention. Decoding is replayed as a CUDA graph; eager cannot be.",
        mark([result]),
    )


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
    low, high = min(r for _, r in points) / 1.3, max(r for _, r in points) * 1.3
    start, end, top = x + LEFT, x + wide - RIGHT, y + TOP
    bottom = top + HEIGHT

    def at(N: float, value: float) -> tuple[float, float]:
        last = max(lengths[-1], 2 * lengths[0])
        return log_scale(lengths[0], last, start, end, N), log_scale(low, high, bottom, top, value)

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
            body.append(polyline([at(*point) for point in found[name]], classes))
    return body


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
