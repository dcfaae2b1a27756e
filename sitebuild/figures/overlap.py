"""Two timelines of one SM, tensor cores and exp unit: in turn, and one tile ahead."""

from sitebuild.svg import figure, line, rect, text
from snippets.overlap import clocks, timeline

DEVICE, D, TILES = "H200", 64, 4
LEFT, RIGHT, LANE, GAP = 58.0, 424.0, 22.0, 4.0
LOOK = {"S": ("ink", "on-level"), "PV": ("soft", "on-level"), "exp": ("soft faint", "ink")}


def main() -> None:
    product, softmax = clocks(DEVICE, D)
    cases = [
        (label, timeline(TILES, product, softmax, ahead))
        for label, ahead in (("In turn", False), ("One tile ahead", True))
    ]
    longest = max(task.end for _, tasks in cases for task in tasks)

    def at(clock: float) -> float:
        return LEFT + (RIGHT - LEFT) * clock / longest

    body, rows, y = [], [], 6.0
    for label, tasks in cases:
        total = max(task.end for task in tasks)
        body.append(text(6, y + 12, f"{label}: {total:.0f} clocks", classes="ink strong"))
        y += 20
        lanes = {"exp": y + LANE + GAP}
        for name, top in (("tensor", y), ("exp", y + LANE + GAP)):
            body += [text(6, top + 15, name), rect(LEFT, top, at(total) - LEFT, LANE, "wash")]
        for task in tasks:
            x, width = at(task.start), at(task.end) - at(task.start)
            top = lanes.get(task.kind, y)
            tip = f"{task.kind} of tile {task.tile}: {task.start:.0f} to {task.end:.0f}"
            box, ink = LOOK[task.kind]
            body.append(rect(x + 0.5, top, width - 1, LANE, box, tip))
            short = {"S": "S", "PV": "P", "exp": "e"}[task.kind] + str(task.tile)
            body.append(text(x + width / 2, top + 15, short, "middle", f"{ink} strong"))
            rows.append((label, task.kind, f"{task.tile}", f"{task.start:.0f}", f"{task.end:.0f}"))
        y += 2 * LANE + GAP + 14
    body.append(line(LEFT, y, RIGHT, y, "line thin"))
    for share in range(5):
        clock = longest * share / 4
        body += [line(at(clock), y, at(clock), y + 4, "line thin")]
        body += [text(at(clock), y + 16, f"{clock:.0f}", "middle", "soft")]
    print(
        figure(
            "overlap-timeline",
            f"Matrix products and exponentials of {TILES} tiles on one SM of an {DEVICE}",
            "In turn, the tensor cores stand still during each tile's exponentials and the other "
            "way round. One tile ahead, both units work almost without a gap.",
            y + 24,
            body,
            ("Order", "Task", "Tile", "Start", "End"),
            rows,
            f"Tiles of 128 x 128, d = {D}, bf16. S: scores. e: exponentials. P: the product P V. "
            "Clocks from data-sheet rates; loads, maxima and sums are left out.",
        )
    )


if __name__ == "__main__":
    main()
