"""Bytes of attention against the sequence length: naive, tile-issued and compulsory, log-log."""

from sitebuild.svg import figure, line, log_scale, polyline, text
from snippets.hbm_traffic import compulsory_bytes, issued_bytes, naive_bytes
from snippets.score_matrix import largest_in_l2

D, TILE, DEVICE = 64, 128, "H200"
LENGTHS = [2**power for power in range(9, 18)]
LEFT, RIGHT, TOP, BOTTOM = 60.0, 350.0, 34.0, 300.0
LOW, HIGH = 1e-1, 1e6  # MB
LINES = (
    ("naive", "stroke-hbm", naive_bytes),
    ("tile-issued", "stroke-ink", lambda N, d: issued_bytes(N, d, TILE)),
    ("compulsory", "stroke-hbm dashed", compulsory_bytes),
)


def x_of(N: float) -> float:
    return log_scale(LENGTHS[0], LENGTHS[-1], LEFT, RIGHT, N)


def y_of(mb: float) -> float:
    return log_scale(LOW, HIGH, BOTTOM, TOP, mb)


def main() -> None:
    body = [text(6, 16, "MB, one head", classes="soft")]
    for mb in (0.1, 1, 10, 100, 1000, 10_000, 100_000):
        body.append(line(LEFT, y_of(mb), RIGHT, y_of(mb), "line thin faint"))
        body.append(text(LEFT - 6, y_of(mb) + 4, f"{mb:,.0f}" if mb >= 1 else f"{mb}", "end"))
    for N in LENGTHS[1::2]:
        body.append(text(x_of(N), BOTTOM + 18, f"{N // 1024}k", "middle"))
    body.append(text(RIGHT, BOTTOM + 36, "sequence length N", "end", "soft"))
    edge = x_of(largest_in_l2(DEVICE))
    body.append(line(edge, TOP - 6, edge, BOTTOM, "line thin dashed"))
    body.append(text(edge - 6, TOP + 2, f"S fits in the L2 of an {DEVICE}", "end", "soft"))
    for label, classes, count in LINES:
        points = [(x_of(N), y_of(count(N, D) / 1e6)) for N in LENGTHS]
        body.append(polyline(points, classes))
        body.append(text(RIGHT + 6, points[-1][1] + 4, label, classes="ink strong"))
    rows = [(f"{N:,}", *(f"{count(N, D) / 1e6:,.2f}" for _, _, count in LINES)) for N in LENGTHS]
    print(
        figure(
            "traffic",
            "Bytes of attention against the sequence length",
            "Three lines on logarithmic axes. Naive and tile-issued bytes rise with the square of "
            "the length and stay a constant factor apart; compulsory bytes rise with the length "
            "alone, so their distance from both grows.",
            BOTTOM + 44,
            body,
            ("N", *(f"{label}, MB" for label, _, _ in LINES)),
            rows,
            f"One head, d={D}, bf16, tiles of {TILE} queries, by the lab's functions. Right of the "
            "vertical line S is larger than the L2 and naive bytes go out to HBM; how many of "
            "the tile-issued bytes do is not in the model.",
        )
    )


if __name__ == "__main__":
    main()
