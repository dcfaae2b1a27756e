"""The sawtooth: share of an H200 that works, against the number of programs launched."""

from sitebuild.svg import circle, figure, line, polyline, text
from snippets.hardware import fact
from snippets.waves import attention_programs, efficiency, waves

DEVICE, QUERIES = "H200", 4096
LEFT, RIGHT, TOP, BOTTOM = 44.0, 424.0, 34.0, 214.0


def main() -> None:
    places = int(fact(DEVICE, "sms").value)
    most = 6 * places

    def at(programs: float, share: float) -> tuple[float, float]:
        return LEFT + (RIGHT - LEFT) * programs / most, BOTTOM - (BOTTOM - TOP) * share

    body = [
        text(6, 16, "Share of the SMs at work", classes="ink strong"),
        line(LEFT, BOTTOM, RIGHT, BOTTOM),
        line(LEFT, BOTTOM, LEFT, TOP),
    ]
    for share in (0.25, 0.5, 0.75, 1.0):
        _, y = at(0, share)
        body += [line(LEFT, y, RIGHT, y, "line thin dashed faint")]
        body += [text(LEFT - 6, y + 4, f"{share:.0%}", "end", "soft")]
    for wave in range(7):
        x, _ = at(wave * places, 0)
        body += [line(x, BOTTOM, x, BOTTOM + 4)]
        body += [text(x, BOTTOM + 17, f"{wave * places}", "middle", "soft")]
    body.append(text(RIGHT, BOTTOM + 34, "programs", "end", "soft"))
    # within a wave the share grows in a straight line, so its ends are enough
    ends = [n for wave in range(6) for n in (wave * places + 1, (wave + 1) * places)]
    body.append(polyline([at(n, efficiency(n, places)) for n in ends], "line"))
    rows = []
    for heads, dx, dy, anchor in (
        (1, 8.0, 14.0, "start"),
        (4, 0.0, -8.0, "middle"),
        (5, 6.0, 14.0, "start"),
        (9, 6.0, 14.0, "start"),
    ):
        programs = attention_programs(heads, QUERIES)
        share = efficiency(programs, places)
        x, y = at(programs, share)
        label = f"{heads} head{'s' if heads > 1 else ''}"
        body += [circle(x, y, 4, "ink", f"{programs} programs, {share:.0%}")]
        body += [text(x + dx, y + dy, label, anchor, "ink strong")]
        rows.append((label, f"{programs}", f"{waves(programs, places)}", f"{share:.0%}"))
    print(
        figure(
            "waves-h200",
            f"Efficiency against number of programs on {places} SMs",
            f"A sawtooth: it climbs in a straight line to 100 % at each multiple of {places} "
            "programs and falls at the next program, first to half, then less and less deep.",
            BOTTOM + 40,
            body,
            ("Launch", "Programs", "Waves", "Share"),
            rows,
            f"Equal programs, one on each of the {places} SMs of an {DEVICE}. Points: attention "
            f"with N={QUERIES} and query tiles of 128, by the number of heads.",
        )
    )


if __name__ == "__main__":
    main()
