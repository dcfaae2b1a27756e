"""Which bank each word of a tile lies in, in three layouts, with one column marked."""

from sitebuild.svg import WIDTH, figure, rect, text
from snippets.banks import BANKS, padded, plain, swizzled, turns

LAYOUTS = {"plain": plain, "padded": padded, "swizzled": swizzled}
SHOWN, COLUMN = 8, 5  # rows and columns of the tile's corner; the column that a warp reads
LEFT, TOP, CELL = 6.0, 24.0, 16.0
APART = (WIDTH - 2 * LEFT - len(LAYOUTS) * SHOWN * CELL) / (len(LAYOUTS) - 1)


def main() -> None:
    body, rows = [], []
    for index, (name, word) in enumerate(LAYOUTS.items()):
        left = LEFT + index * (SHOWN * CELL + APART)
        needed = turns(word(row, COLUMN) for row in range(BANKS))
        waits = f"{name}: {needed} turn{'s' * (needed > 1)}"
        body.append(text(left, TOP - 8, waits, classes="ink strong"))
        for row in range(SHOWN):
            for column in range(SHOWN):
                x, y, bank = left + column * CELL, TOP + row * CELL, word(row, column) % BANKS
                read = column == COLUMN
                look = "lvl-shared" if read else "wash"
                body.append(rect(x + 0.5, y + 0.5, CELL - 1, CELL - 1, look))
                ink = "on-level" if read else "soft"
                body.append(text(x + CELL / 2, y + CELL - 4, f"{bank}", "middle", ink))
        banks = ", ".join(f"{word(row, COLUMN) % BANKS}" for row in range(SHOWN))
        rows.append((name, banks, f"{needed}"))
    print(
        figure(
            "banks-of-a-column",
            "The banks of a tile's corner in three layouts",
            "Three squares of numbers, each the bank of a word. In the plain one all words of the "
            "marked column have the same number; in the others no two have.",
            TOP + SHOWN * CELL + 4,
            body,
            ("Layout", f"Banks of column {COLUMN}, rows 0 to {SHOWN - 1}", "Turns of all 32 rows"),
            rows,
            f"A corner of a tile of {BANKS} x {BANKS} words: the number is the bank. A warp that "
            "reads the marked column waits where a number repeats.",
        )
    )


if __name__ == "__main__":
    main()
