"""Every timed case of one kernel as a dot: its share of the roof, its rate over the best peer's.

A page calls `chart(stem)`. Run as a module it draws all kernels that have results.
"""

from collections.abc import Callable, Sequence
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
ROW, DOT = 26.0, 3.2
BESIDE = (0.0, -6.0, 6.0, -10.0, 10.0)  # places of dots that would cover one another
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
    most = max(1.1, *(one.share for one in every))
    body, y = panel(
        TOP, f"share of the {over}", groups, lambda one: one.share,
        lambda share: LEFT + (RIGHT - LEFT) * share / most,
        [(tick, f"{tick:.0%}") for tick in (0.0, 0.25, 0.5, 0.75, 1.0)],
    )  # fmt: skip
    leads = [one.lead for one in every if one.lead is not None]
    if leads:
        low, high = min(0.7, *leads) / 1.1, max(1.5, *leads) * 1.1
        ticks = [t for t in (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0) if low < t < high]
        more, y = panel(
            y + 22, "rate over the best peer's", groups, lambda one: one.lead,
            lambda lead: log_scale(low, high, LEFT, RIGHT, lead),
            [(tick, f"{tick:g}") for tick in ticks],
        )  # fmt: skip
        body += more
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
        f"ours is faster. Hollow: under {LAUNCH_BOUND_US:.0f} us, mostly launch.",
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
    bottom = top + ROW * len(groups)
    body = [text(LEFT, top - 8, title, classes="soft"), line(LEFT, bottom, RIGHT, bottom)]
    for tick, name in ticks:
        style = "line" if tick == 1 else "line thin faint"
        body.append(line(at(tick), top, at(tick), bottom + 4, style))
        body.append(text(at(tick), bottom + 17, name, "middle", "soft"))
    for index, ((direction, dtype), found) in enumerate(groups.items()):
        middle = top + ROW * (index + 0.5)
        body.append(text(LEFT - 8, middle + 4, f"{direction}, {dtype}", "end"))
        taken: dict[int, int] = {}
        for one in sorted(found, key=lambda one: value_of(one) or 0.0):
            value = value_of(one)
            if value is None:
                continue
            place = round(at(value) / (2 * DOT))
            beside = BESIDE[taken.get(place, 0) % len(BESIDE)]
            taken[place] = taken.get(place, 0) + 1
            kind = "dot-hollow" if one.mostly_launch else "dot"
            tip = f"{label(one.row['shape'])}: {value:.2f}"
            body.append(circle(at(value), middle + beside, DOT, kind, tip))
    return body, bottom + 28


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
