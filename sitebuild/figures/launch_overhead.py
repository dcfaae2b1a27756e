"""Time of one attention call against N, with and without a CUDA graph, as captured."""

from pathlib import Path

from sitebuild.kernel_results import (
    ABSENT,
    RESULTS,
    Result,
    anchor,
    device,
    label,
    mark,
    moment,
    results,
)
from sitebuild.svg import figure, line, log_scale, polyline, text

LEFT, RIGHT, TOP, BOTTOM = 44.0, 330.0, 34.0, 260.0
LINES = (("ours", "stroke-ink"), ("eager", "stroke-soft"))


def chart(folder: Path = RESULTS) -> str:
    """Return one figure for each device, or a sentence where nothing is captured."""
    drawn = [draw(found) for found in results("flash_attention", folder)]
    return "\n\n".join(each for each in drawn if each) or ABSENT


def draw(result: Result) -> str:
    """Return the figure of one result, empty where no launch was timed."""
    rows = [row for row in result["launches"] if "us" in row]
    drawn = [row for row in rows if row["implementation"] in dict(LINES)]
    if not drawn:
        return ""
    lengths = sorted({row["shape"]["N_Q"] for row in drawn})
    values = [us for row in drawn for us in (row["us"][1], row["graph_us"][1])]
    low, high = min(values) / 1.5, max(values) * 1.5
    body = [text(6, 16, "us a call", classes="soft"), line(LEFT, BOTTOM, RIGHT, BOTTOM)]

    def at(N: int, us: float) -> tuple[float, float]:
        last = max(lengths[-1], 2 * lengths[0])
        return log_scale(lengths[0], last, LEFT, RIGHT, N), log_scale(low, high, BOTTOM, TOP, us)

    for tick in (1, 10, 100, 1000, 10_000):
        if low <= tick <= high:
            y = at(lengths[0], tick)[1]
            body += [line(LEFT, y, RIGHT, y, "line thin faint")]
            body += [text(LEFT - 6, y + 4, f"{tick:,}", "end", "soft")]
    for N in lengths[:: max(1, len(lengths) // 4)]:
        body.append(text(at(N, low)[0], BOTTOM + 17, f"{N}", "middle", "soft"))
    body.append(text(RIGHT, BOTTOM + 34, "sequence length N", "end", "soft"))
    for name, classes in LINES:
        for field, style, how in (("us", "", "stream"), ("graph_us", " dashed", "graph")):
            mine = sorted(
                (r["shape"]["N_Q"], r[field][1]) for r in rows if r["implementation"] == name
            )
            if mine:
                body.append(polyline([at(*pair) for pair in mine], classes + style))
                # replays lie far below single launches at the start and meet them at the end
                place = -1 if how == "stream" else 0 if name == "eager" else len(mine) // 2
                x, y = at(*mine[place])
                dx, dy = {"stream": (6, 4), "graph": (2, -18) if name == "eager" else (12, 14)}[how]
                body.append(text(x + dx, y + dy, f"{name}, {how}"))
    data = [
        (
            f"{r['implementation']} {label(r['shape'])}",
            *(f"{r[x][1]:.1f}" for x in ("us", "graph_us")),
        )
        for r in rows
    ]
    return figure(
        f"launch-overhead-{anchor(result)}",
        f"Time of one attention call against N on {device(result)}",
        "Both axes are logarithmic. Solid lines launch each call by itself, dashed lines replay "
        "the same calls as one graph; where two of a colour part, the gap is the host's.",
        BOTTOM + 44,
        body,
        ("Case", "us, stream", "us, CUDA graph"),
        data,
        f"{device(result)}, {moment(result)}. One call among equal calls, launched one by one "
        "(solid) or replayed as a CUDA graph (dashed).",
        mark([result]),
    )


def main() -> None:
    print(chart())


if __name__ == "__main__":
    main()
