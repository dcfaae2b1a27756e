"""Every timed case of one kernel as a dot: its share of the roof, its rate over the best peer's.

A page calls `chart(stem)`. Run as a module it draws all kernels that have results.
"""

from collections.abc import Callable, Sequence
from math import hypot
from pathlib import Path

from sitebuild.kernel_answer import Standing, standings
from sitebuild.kernel_results import (
    ABSENT,
    LAUNCH_BOUND_US,
    RESULTS,
    STEMS,
    Result,
    anchor,
    ceiling_name,
    device,
    label,
    mark,
    moment,
    results,
)
from sitebuild.svg import WIDTH, circle, figure, line, log_scale, text

LEFT, RIGHT, TOP = 104.0, WIDTH - 12.0, 22.0
ROW, DOT = 26.0, 2.6  # the least height of a row, and the radius of a dot
START, END = LEFT + DOT + 2, RIGHT - DOT - 2  # so that no dot reaches beyond its axis
# ticks for a ratio; the fine ones only where there is room
RATIOS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
FINE, WIDE = (0.75, 1.5), 4.0
Scale = Callable[[float], float]
Groups = dict[tuple[str, str], list[Standing]]


def chart(stem: str, folder: Path = RESULTS) -> str:
    """Return one figure for each device, or a sentence where nothing is captured."""
    drawn = [draw(result) for result in results(stem, folder)]
    return "\n\n".join(one for one in drawn if one) or ABSENT


def draw(result: Result) -> str:
    """Return the figure of one result, empty where no case was timed."""
    groups = standings(result)
    every = [one for found in groups.values() for one in found]
    if not every:
        return ""
    over, name = ceiling_name(result), result["kernel"]
    most = max(1.0, *(one.share for one in every))
    body, y = panel(
        TOP, f"share of the {over}", groups, lambda one: one.share,
        lambda share: START + (END - START) * share / most,
        [(tick, f"{tick:.0%}") for tick in (0.0, 0.25, 0.5, 0.75, 1.0)],
    )  # fmt: skip
    leads = [one.lead for one in every if one.lead is not None]
    if leads:
        ticks = ratio_ticks(leads)
        low, high = min(*leads, ticks[0]), max(*leads, ticks[-1])
        more, y = panel(
            y + 22, "rate over the best peer's", groups, lambda one: one.lead,
            lambda lead: log_scale(low, high, START, END, lead),
            [(tick, f"{tick:g}") for tick in ticks],
        )  # fmt: skip
        body += more
    hollow = f" Hollow: under {LAUNCH_BOUND_US:.0f} us, mostly launch."
    return figure(
        f"shares-{name.replace('_', '-')}-{anchor(result)}",
        f"How far {name} is from the roof and from its peers on {device(result)}",
        f"Two rows of dots for each direction and data type, one dot a case: its share of a {over} "
        "in the same run, and its rate over that of the fastest peer. The table holds every value.",
        y,
        body,
        ("Case", f"Of the {over}", "Over the best peer", "Best peer"),
        [_cells(one) for one in every],
        f"{name} on {device(result)}, {moment(result)}. One dot a case; right of the line at 1 "
        f"ours is faster.{hollow if any(one.mostly_launch for one in every) else ''}",
        mark([result]),
    )


def panel(
    top: float,
    title: str,
    groups: Groups,
    value_of: Callable[[Standing], float | None],
    at: Scale,
    ticks: Sequence[tuple[float, str]],
) -> tuple[list[str], float]:
    """Return a row of dots for each group over one axis, and where the panel ends."""
    dots, bottom = [], top
    for (direction, dtype), found in groups.items():
        known = [(value, one) for one in found if (value := value_of(one)) is not None]
        places = swarm([at(value) for value, _ in known])
        height = max(ROW, 2 * max(map(abs, places), default=0.0) + 2 * DOT + 6)
        middle = bottom + height / 2
        bottom += height
        dots.append(text(LEFT - 8, middle + 4, f"{direction}, {dtype}", "end"))
        for (value, one), beside in zip(known, places, strict=True):
            kind = "dot-hollow" if one.mostly_launch else "dot"
            tip = f"{label(one.row['shape'])}: {value:.2f}"
            dots.append(circle(at(value), middle + beside, DOT, kind, tip))
    body = [text(LEFT, top - 8, title, classes="soft"), line(LEFT, bottom, RIGHT, bottom)]
    for tick, name in ticks:
        style = "line" if tick == 1 else "line thin faint"
        body.append(line(at(tick), top, at(tick), bottom + 4, style))
        body.append(text(at(tick), bottom + 17, name, "middle", "soft"))
    return body + dots, bottom + 28


def ratio_ticks(leads: Sequence[float]) -> list[float]:
    """Return ticks from at or below the least ratio to at or above the largest, 1 among them."""
    low = max((t for t in RATIOS if t <= min(1.0, *leads)), default=RATIOS[0])
    high = min((t for t in RATIOS if t >= max(1.0, *leads)), default=RATIOS[-1])
    low, high = min(low, 0.75), max(high, 1.5)
    skipped = FINE if high / low > WIDE else ()
    return [t for t in RATIOS if low <= t <= high and (t in (low, high) or t not in skipped)]


def swarm(xs: Sequence[float]) -> list[float]:
    """Return how far above or below its row each dot stands, so that none covers another."""
    steps = [0.0] + [side * n * DOT for n in range(1, 2 * len(xs) + 1) for side in (-1, 1)]
    placed: list[tuple[float, float]] = []
    found = [0.0] * len(xs)
    for index in sorted(range(len(xs)), key=lambda index: xs[index]):
        x = xs[index]
        found[index] = next(
            y for y in steps if all(hypot(x - px, y - py) >= 2 * DOT for px, py in placed)
        )
        placed.append((x, found[index]))
    return found


def _cells(one: Standing) -> tuple[str, str, str, str]:
    row = one.row
    lead = "–" if one.lead is None else f"{one.lead:.2f}"
    name = f"{row['pass']}, {row['dtype']}, {label(row['shape'])}"
    return name, f"{one.share:.0%}", lead, one.peer or "–"


def main() -> None:
    drawn = [each for stem in STEMS if (each := chart(stem)) != ABSENT]
    print("\n\n".join(drawn) or ABSENT)


if __name__ == "__main__":
    main()
