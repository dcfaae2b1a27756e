"""Time of one attention call against N, with and without a CUDA graph, as captured."""

from pathlib import Path
from typing import Any

from sitebuild.kernel_results import ABSENT, RESULTS, label, results
from sitebuild.svg import figure, line, log_scale, polyline, text

LEFT, RIGHT, TOP, BOTTOM = 44.0, 330.0, 34.0, 260.0
LINES = (("ours", "stroke-shared"), ("eager", "stroke-hbm"))


def chart(folder: Path = RESULTS) -> str:
    """Return one figure for each device, or a sentence where nothing is captured."""
    captured = [found for found in results("flash_attention", folder) if found["launches"]]
    return "\n\n".join(draw(found) for found in captured) or ABSENT


def draw(result: dict[str, Any]) -> str:
    rows = [row for row in result["launches"] if "us" in row]
    drawn = [row for row in rows if row["implementation"] in dict(LINES)]
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
                x, y = at(*mine[0]) if how == "graph" else at(*mine[-1])
                shift = (4.0, 14.0) if how == "graph" else (6.0, 4.0)
                body.append(text(x + shift[0], y + shift[1], f"{name}, {how}"))
    device, run = result["device"]["name"], result["run"]
    data = [
        (
            f"{r['implementation']} {label(r['shape'])}",
            *(f"{r[x][1]:.1f}" for x in ("us", "graph_us")),
        )
        for r in rows
    ]
    return figure(
        f"launch-overhead-{device.lower().replace(' ', '-')}",
        f"Time of one attention call against N on {device}",
        "Both axes are logarithmic. Solid lines launch each call by itself, dashed lines replay "
        "the same calls as one graph; where two of a colour part, the gap is the host's.",
        BOTTOM + 44,
        body,
        ("Case", "us, stream", "us, CUDA graph"),
        data,
        f"{device}, captured {run['date'][:10]} at commit {run['commit'][:10]}: one call among "
        "equal calls, launched one by one (solid) or replayed as a CUDA graph (dashed).",
    )


def main() -> None:
    print(chart())


if __name__ == "__main__":
    main()
