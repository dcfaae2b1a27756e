"""The four steps of the 4 x 4 example: which tiles are on the chip, and the state after each."""

from sitebuild.svg import figure, rect, text
from snippets.flash_attention import Step, walk
from snippets.full_attention import K, Q, V

CELL = 24.0
PANEL_W, PANEL_H = 222.0, 168.0


def panel(number: int, step: Step, x0: float, y0: float) -> list[str]:
    """Draw one step: K, V above, Q on the left, the live scores, m and l on the right."""
    left, top = x0 + 30, y0 + 46
    title = f"Step {number}: Q {span(step.queries)}, K and V {span(step.keys)}"
    body = [text(x0, y0 + 12, title, classes="ink strong")]
    for j in range(len(K)):
        on_chip = j in step.keys
        kind = "lvl-shared" if on_chip else "lvl-hbm faint"
        body.append(rect(left + CELL * j + 1, top - 22, CELL - 2, 18, kind))
        label = "on-level" if on_chip else "ink"
        body.append(text(left + CELL * (j + 0.5), top - 9, f"k{j}", "middle", label))
    for i in range(len(Q)):
        on_chip = i in step.queries
        kind = "lvl-shared" if on_chip else "lvl-hbm faint"
        y = top + CELL * i
        body.append(rect(left - 27, y + 1, 23, CELL - 2, kind))
        label = "on-level" if on_chip else "ink"
        body.append(text(left - 15.5, y + 16, f"q{i}", "middle", label))
        for j in range(len(K)):
            live = on_chip and j in step.keys
            box = (left + CELL * j + 1, y + 1, CELL - 2, CELL - 2)
            body.append(rect(*box, "lvl-registers" if live else "wash"))
            if live:
                value = step.scores[i - step.queries.start][j - step.keys.start]
                x = left + CELL * (j + 0.5)
                body.append(text(x, y + 16, f"{value:.0f}", "middle", "on-level strong"))
        if on_chip:
            state = step.states[i - step.queries.start]
            x = left + CELL * len(K) + 6
            body.append(text(x, y + 16, f"m = {state.m:.0f}"))
            body.append(text(x + 36, y + 16, f"l = {state.l:.2f}"))
    return body


def span(rows: range) -> str:
    return f"{rows[0]}–{rows[-1]}"


def main() -> None:
    body, rows = [], []
    for index, step in enumerate(walk(Q, K, V, 2, 2)):
        x0, y0 = PANEL_W * (index % 2), PANEL_H * (index // 2)
        body += panel(index + 1, step, x0, y0)
        for i, scores, state in zip(step.queries, step.scores, step.states, strict=True):
            live = " ".join(f"{score:.0f}" for score in scores)
            acc = " ".join(f"{a:.3f}" for a in state.acc)
            where = f"{span(step.queries)} × {span(step.keys)}"
            rows.append(
                (str(index + 1), where, str(i), live, f"{state.m:.0f}", f"{state.l:.3f}", acc)
            )
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
    print(
        figure(
            "tile-walk",
            "Four steps of tiled attention on four queries and four keys",
            "Each step shows a grid of four by four scores. Only the two by two block where the "
            "current queries meet the current keys holds numbers. Beside its rows stand the "
            "running maximum m and the running sum l after the step.",
            legend + 36,
            body,
            ("Step", "Queries × keys", "Query", "Scores", "m", "l", "acc"),
            rows,
            "The loop with tiles of two queries and two keys. The queries stay while the keys "
            "change; m and l are those after the step, and a block of scores is gone when the next "
            "one comes.",
        )
    )


if __name__ == "__main__":
    main()
