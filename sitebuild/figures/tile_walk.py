"""The player of tiled attention: its trace as data and as tables, and its first walk as a drawing.

All text is made here from the trace, so that the page only shows it. Without JavaScript and in
print the drawing and the tables stand for the player.
"""

import json
from html import escape
from math import inf
from typing import Any

from sitebuild.svg import drawing, rect, table, text
from sitebuild.tile_trace import Frame, Row, frames, naive_kernels
from snippets.full_attention import K, Q, V

CELL = 24.0
PANEL_W, PANEL_H = 222.0, 168.0
WALKS = {
    "2 queries × 2 keys": (2, 2, False),
    "2 queries × 2 keys, causal": (2, 2, True),
    "3 queries × 3 keys, the last tiles ragged": (3, 3, False),
    "1 query × 4 keys": (1, 4, False),
}


def number(value: float) -> str:
    """Return a score, a maximum or an LSE, short where it is whole."""
    if value == -inf:
        return "−∞"
    return f"{value:.{0 if value == int(value) else 3}f}".replace("-", "−")


def columns(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.3f}" for value in values)


def factor(row: Row) -> str:
    """Return the factor, or a dash where nothing was summed before."""
    return "–" if row.factor is None or row.before.m == -inf else f"{row.factor:.3f}"


def cells(row: Row) -> dict[str, str]:
    """Return all that is shown of one query in one step."""
    output, lse = row.done or ((), inf)
    return {
        "scores": " ".join(map(number, row.scores)),
        "m before": number(row.before.m),
        "m after": number(row.after.m),
        "factor": factor(row),
        "l before": f"{row.before.l:.3f}",
        "l after": f"{row.after.l:.3f}",
        "acc before": columns(row.before.acc),
        "acc after": columns(row.after.acc),
        "O = acc / l": columns(output) or "–",
        "LSE": number(lse) if row.done else "–",
    }


def says(frame: Frame) -> str:
    """Return what happens in one step, in sentences."""
    queries = named("query", "queries", frame.queries)
    keys = named("key and value", "keys and values", frame.keys)
    few = len(frame.queries) == 1
    if frame.keys.start == 0:
        come = "comes" if few else "come"
        parts = [f"{queries.capitalize()} {come} on the chip, with {keys}."]
    else:
        stay = "stays" if few else "stay"
        parts = [f"{keys.capitalize()} replace the last tile; {queries} {stay}."]
    grown = [row for row in frame.rows if row.before.m not in (-inf, row.after.m)]
    parts += [
        f"Query {row.query} finds a larger score, {number(row.after.m)} after "
        f"{number(row.before.m)}, so its sums shrink to {row.factor:.3f} of what they were."
        for row in grown
    ]
    if all(score == -inf for row in frame.rows for score in row.scores):
        parts.append("Every score is masked and no state changes; a kernel skips such a tile.")
    elif frame.keys.start > 0 and not grown:
        parts.append("No query finds a larger score, so nothing shrinks.")
    if frame.rows[0].done:
        parts.append("These were the last keys: output and LSE go out to HBM.")
    return " ".join(parts)


def span(rows: range) -> str:
    return f"{rows[0]}–{rows[-1]}" if len(rows) > 1 else f"{rows[0]}"


def named(one: str, many: str, rows: range) -> str:
    return f"{one if len(rows) == 1 else many} {span(rows)}"


def data(name: str, walk: list[Frame]) -> dict[str, Any]:
    """Return one walk as the player reads it."""
    naive = sum(count for _, count in naive_kernels(Q, K, V))
    return {
        "name": name,
        "naive": naive,
        "total": walk[-1].moved,
        "most": max(naive, walk[-1].moved),
        "steps": [
            {
                "queries": list(frame.queries),
                "keys": list(frame.keys),
                "done": frame.rows[0].done is not None,
                "says": says(frame),
                "moved": frame.moved,
                "scores": [[number(score) for score in row.scores] for row in frame.rows],
                "rows": [cells(row) for row in frame.rows],
            }
            for frame in walk
        ],
    }


def steps_table(name: str, walk: list[Frame]) -> str:
    """Return one walk as a table, a row for each query in each step."""
    head = ["Step", "Q × K, V", "Query", "Scores", "m", "Factor", "l", "acc"]
    head += ["O = acc / l", "LSE", "Bytes so far"]
    rows = []
    for number_, frame in enumerate(walk, 1):
        for row in frame.rows:
            shown = cells(row)
            changes = [f"{shown[f'{x} before']} → {shown[f'{x} after']}" for x in ("m", "l", "acc")]
            where = f"{span(frame.queries)} × {span(frame.keys)}"
            start = [str(number_), where, str(row.query), shown["scores"]]
            middle = [changes[0], shown["factor"], *changes[1:]]
            end = [shown["O = acc / l"], shown["LSE"], str(frame.moved)]
            rows.append(start + middle + end)
    return table(head, rows, f"Tiles of {name}")


def panel(index: int, frame: Frame, x0: float, y0: float) -> list[str]:
    """Draw one step: K, V above, Q on the left, the live scores, m and l on the right."""
    left, top = x0 + 30, y0 + 46
    title = f"Step {index}: Q {span(frame.queries)}, K and V {span(frame.keys)}"
    body = [text(x0, y0 + 12, title, classes="ink strong")]
    for j in range(len(K)):
        on_chip = j in frame.keys
        kind = "lvl-shared" if on_chip else "lvl-hbm faint"
        body.append(rect(left + CELL * j + 1, top - 22, CELL - 2, 18, kind))
        label = "on-level" if on_chip else "ink"
        body.append(text(left + CELL * (j + 0.5), top - 9, f"k{j}", "middle", label))
    for i in range(len(Q)):
        on_chip = i in frame.queries
        kind = "lvl-shared" if on_chip else "lvl-hbm faint"
        y = top + CELL * i
        body.append(rect(left - 27, y + 1, 23, CELL - 2, kind))
        label = "on-level" if on_chip else "ink"
        body.append(text(left - 15.5, y + 16, f"q{i}", "middle", label))
        for j in range(len(K)):
            live = on_chip and j in frame.keys
            box = (left + CELL * j + 1, y + 1, CELL - 2, CELL - 2)
            body.append(rect(*box, "lvl-registers" if live else "wash"))
            if live:
                value = frame.rows[i - frame.queries.start].scores[j - frame.keys.start]
                x = left + CELL * (j + 0.5)
                body.append(text(x, y + 16, number(value), "middle", "on-level strong"))
        if on_chip:
            state = frame.rows[i - frame.queries.start].after
            x = left + CELL * len(K) + 6
            body.append(text(x, y + 16, f"m = {number(state.m)}"))
            body.append(text(x + 36, y + 16, f"l = {state.l:.2f}"))
    return body


def still(walk: list[Frame]) -> str:
    """Draw every step of one walk side by side."""
    body = []
    for index, frame in enumerate(walk):
        body += panel(index + 1, frame, PANEL_W * (index % 2), PANEL_H * (index // 2))
    legend = 2 * PANEL_H + 4
    for index, (kind, label) in enumerate(
        (
            ("lvl-shared", "on the chip, in shared memory"),
            ("lvl-registers", "a live score, in registers"),
            ("lvl-hbm faint", "left in HBM"),
            ("wash", "no score here now"),
        )
    ):
        x, y = PANEL_W * (index % 2), legend + 20 * (index // 2)
        body += [rect(x, y, 12, 12, kind), text(x + 18, y + 10, label)]
    return drawing(
        "tile-walk",
        "Four steps of tiled attention on four queries and four keys",
        "Each step shows a grid of four by four scores. Only the two by two block where the "
        "current queries meet the current keys holds numbers. Beside its rows stand the "
        "running maximum m and the running sum l after the step.",
        legend + 36,
        body,
    )


def main() -> None:
    walks = {name: list(frames(Q, K, V, *how)) for name, how in WALKS.items()}
    played = json.dumps([data(*item) for item in walks.items()], ensure_ascii=False)
    kernels = naive_kernels(Q, K, V)
    naive = " + ".join(f"{count} for {name}" for name, count in kernels)
    caption = (
        "The loop of the lab, step by step. The queries stay while the keys change; a block of "
        "scores is gone when the next one comes. A larger maximum m shrinks the sums l and acc "
        "by the factor e^(m before − m after). Bytes are those that the loop asks for, at two "
        f"bytes an element and four for an LSE. Naive attention: {naive}, together "
        f"{sum(count for _, count in kernels)}."
    )
    tables = "".join(steps_table(*item) for item in walks.items())
    print(
        f'<figure class="figure" id="tile-walk" data-feature="player" data-walks="{escape(played)}"'
        f">{still(next(iter(walks.values())))}<figcaption>{escape(caption)}</figcaption>"
        '<details class="player-steps" data-search-exclude open>'
        f"<summary>Every step as a table</summary>{tables}</details></figure>"
    )


if __name__ == "__main__":
    main()
