"""Rate against step for every shape of the ladder, a panel for each head dim and mask."""

from pathlib import Path

from kernels.bench.cases import LADDER
from sitebuild.kernel_results import ABSENT, RESULTS, Result, anchor, device, mark, moment, results
from sitebuild.ladder import KINDS, STEM, kind, numbered, timed
from sitebuild.svg import WIDTH, circle, figure, line, polyline, text

LEFT, TOP, HEIGHT, GAP = 34.0, 34.0, 120.0, 56.0
PANEL = (WIDTH - 2 * LEFT - 14) / 2
STEP = PANEL / (len(LADDER) + 1)
STYLES = ("stroke-soft dashed", "stroke-soft", "stroke-ink")


def chart(folder: Path = RESULTS) -> str:
    """Return one figure for each device, or a sentence where nothing is captured."""
    drawn = [draw(found) for found in results(STEM, folder)]
    return "\n\n".join(each for each in drawn if each) or ABSENT


def draw(result: Result) -> str:
    """Return the figure of one result, empty where no step was timed."""
    found = {
        place: {key: rate for key, rate in timed(result, *place).items() if key[0] in LADDER}
        for place in KINDS
    }
    rates = [rate for of_kind in found.values() for rate in of_kind.values()]
    if not rates:
        return ""
    top = 100 * (1 + int(max(rates)) // 100)
    body, data = [text(6, 14, "TFLOP/s", classes="soft")], []
    for index, (place, of_kind) in enumerate(found.items()):
        left = LEFT + index % 2 * (PANEL + LEFT + 14)
        base = TOP + HEIGHT + index // 2 * (HEIGHT + GAP)
        body.append(text(left + PANEL / 2, base - HEIGHT - 8, kind(*place), "middle", "ink strong"))
        for tick in range(0, top + 1, 200):
            y = base - HEIGHT * tick / top
            body.append(line(left, y, left + PANEL, y, "line thin faint" if tick else "line"))
            body.append(text(left - 6, y + 4, f"{tick}", "end", "soft"))
        for number in range(1, len(LADDER) + 1):
            body.append(text(left + STEP * number, base + 16, f"{number}", "middle", "soft"))
        lengths = sorted({N for _, N in of_kind})
        for N, style in zip(lengths, STYLES[-len(lengths) :], strict=False):
            points = [
                (left + STEP * number, base - HEIGHT * of_kind[name, N] / top)
                for number, name in enumerate(LADDER, 1)
                if (name, N) in of_kind
            ]
            body.append(polyline(points, style))
            for (x, y), (name, rate) in zip(
                points, ((n, of_kind[n, N]) for n in LADDER if (n, N) in of_kind), strict=True
            ):
                tip = f"{name}, {kind(*place)}, N = {N}: {rate:,.0f} TFLOP/s"
                body.append(circle(x, y, 2.4, "ink", tip))
                data.append((kind(*place), numbered(name), f"{N}", f"{rate:,.0f}"))
    bottom = TOP + 2 * HEIGHT + GAP + 24
    every = sorted({N for of_kind in found.values() for _, N in of_kind})
    looks = ("dashed", "soft", "strong")[-len(every) :]
    told = "; ".join(f"{look}: N = {N}" for look, N in zip(looks, every, strict=False))
    told = told[:1].upper() + told[1:]
    body.append(text(WIDTH - 6, bottom + 12, "number of the step", "end", "soft"))
    return figure(
        f"ladder-shapes-{anchor(result)}",
        f"Rate against step for every shape on {device(result)}",
        "Four panels, one for each head dim and mask. Each line is one length and goes from the "
        "first step to the last; the strongest line is the longest sequence.",
        bottom + 18,
        body,
        ("Kind", "Step", "N", "TFLOP/s"),
        data,
        f"Attention forward, bf16, on {device(result)}, {moment(result)}. {told}.",
        mark([result]),
    )


def main() -> None:
    print(chart())


if __name__ == "__main__":
    main()
