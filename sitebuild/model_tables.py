"""The measured parts of the model-path page as Markdown: worth, speed, launches, memory."""

from pathlib import Path

from sitebuild.kernel_results import ABSENT, RESULTS, Result, Row, each, table
from sitebuild.kernel_tables import folded
from sitebuild.model_rows import (
    STEM,
    Steps,
    best_rival,
    by_step,
    clock_of,
    model,
    no_slower,
    rate,
    title,
    worth,
)

LONG = 4096  # tokens from which on attention weighs enough for a kernel to show
IMPLEMENTATIONS = ("ours", "sdpa-cudnn", "sdpa-flash", "eager", "none")


def answer(folder: Path = RESULTS) -> str:
    """Return what ours is worth to each step, from the shortest to the longest sequence."""
    return each(STEM, _answer, folder)


def amdahl(folder: Path = RESULTS) -> str:
    """Return prediction and measurement of every step, side by side."""
    return each(STEM, _amdahl, folder)


def speed(folder: Path = RESULTS) -> str:
    """Return tokens a second of every implementation, with their spread."""
    return each(STEM, _speed, folder)


def launches(folder: Path = RESULTS) -> str:
    """Return kernels and copies of one step, and which kernels were attention's."""
    return each(STEM, _launches, folder)


def memory(folder: Path = RESULTS) -> str:
    """Return the peak of every implementation, and where one ran out of memory."""
    return each(STEM, _memory, folder)


def _answer(result: Result) -> str:
    rows = []
    for key, steps in by_step(result).items():
        found = [one for rows_ in steps.values() if (one := worth(rows_))]
        if found:
            first, last = found[0], found[-1]
            cells = [_both(first.share, last.share, ".0%")]
            cells += [_both(first.measured, last.measured, ".2f")]
            rows.append([title(*key), *cells, _both(first.most, last.most, ".2f")])
    head = ("Step", "Attention's share", "With ours", "At most")
    summary = table(head, rows) if rows else "No step was timed."
    facts = "\n".join(f"- {fact}" for fact in _facts(result))
    return f"{summary}\n\n{facts}"


def _both(first: float, last: float, form: str) -> str:
    """A cell from the shortest to the longest sequence."""
    return f"{first:{form}} → {last:{form}}"


def _facts(result: Result) -> list[str]:
    facts = []
    for phase, least in (("prefill", LONG), ("train", 0)):
        pairs = [
            (rows["ours"], rival)
            for (_, kind), steps in by_step(result).items()
            for N, rows in steps.items()
            if kind == phase and least <= N and "us" in rows.get("ours", {})
            if (rival := best_rival(rows))
        ]
        ahead = sum(ours["us"][1] <= rival["us"][1] for ours, rival in pairs)
        level = sum(no_slower(ours, rival) for ours, rival in pairs)
        where = f"Prefill of {LONG:,} tokens and more" if least else "Training steps"
        facts.append(
            f"{where}: by the medians ours is at least as fast as the best SDPA in {ahead} of "
            f"{len(pairs)} cases, within the spread in {level}."
        )
    ended = "; ".join(_ended(result, "eager")) or "nowhere"
    checked = [row for row in result["exactness"] if row["implementation"] == "ours"]
    passed = sum(row["passed"] for row in checked)
    return [
        *facts,
        f"Separate calls (`eager`) ran out of memory: {ended}.",
        f"Exact enough: {passed} of {len(checked)} outputs checked.",
    ]


def _ended(result: Result, name: str) -> list[str]:
    """Return where an implementation ran out of memory, the shortest length of each step."""
    found = []
    for key, steps in by_step(result).items():
        short = [N for N, rows in steps.items() if rows[name].get("error") == "out of memory"]
        if short:
            found.append(f"{title(*key)}, N = {short[0]:,}")
    return found


def _amdahl(result: Result) -> str:
    blocks = []
    for key, steps in by_step(result).items():
        rows = [[f"{N:,}", *_cells(found)] for N, found in steps.items()]
        graph = any(clock_of(found) == "graph_us" for found in steps.values())
        how = ", replayed as CUDA graphs" if graph else ""
        head = ("N", "Share", "Kernel", "Law", "Measured", "Most")
        blocks.append(f"**{title(*key)}**{how}\n\n{table(head, rows)}")
    return "\n\n".join(blocks)


def _cells(rows: dict[str, Row]) -> list[str]:
    found = worth(rows)
    if found is None:
        return ["–"] * 5
    law, measured = f"{found.predicted:.3f}", f"{found.measured:.3f}"
    return [f"{found.share:.0%}", f"{found.kernel:.2f}", law, measured, f"{found.most:.2f}"]


def _speed(result: Result) -> str:
    blocks = []
    for key, steps in by_step(result).items():
        blocks.append(_speed_table(title(*key), steps, "us"))
        if key[1] == "decode":
            name = f"{title(*key)}, replayed as CUDA graphs"
            blocks.append(_speed_table(name, steps, "graph_us"))
    return "\n\n".join(blocks)


def _speed_table(name: str, steps: Steps, clock: str) -> str:
    lines = []
    for N, rows in steps.items():
        lines.append([_size(N, rows), *(_rate(rows.get(i), clock) for i in IMPLEMENTATIONS)])
    notes = "Tokens a second: the median, below it the 20 and 80 % quantiles."
    content = f"{table(('Step', *IMPLEMENTATIONS), lines)}\n\n{notes}"
    return folded(f"{name}: tokens a second", content)


def _rate(row: Row | None, clock: str) -> str:
    if row is None or clock not in row:
        return row["error"] if row and "error" in row and clock == "us" else "–"
    fast, middle, slow = (rate(row, us) for us in row[clock])
    return f"{middle:,.0f}<br><small>{slow:,.0f}–{fast:,.0f}</small>"


def _launches(result: Result) -> str:
    if not result["launches"]:
        return ABSENT
    steps: dict[tuple[str, str], dict[str, Row]] = {}
    for row in result["launches"]:
        steps.setdefault((model(row), row["pass"]), {})[row["implementation"]] = row
    head = ("Step", *IMPLEMENTATIONS)
    blocks = []
    for kind, what in (("kernels", "Kernels"), ("copies", "Copies")):
        lines = [[title(*key), *_counts(rows, kind)] for key, rows in steps.items()]
        blocks.append(f"**{what} in one step**\n\n{table(head, lines)}")
    names = [
        [f"{title(*key)}, {name}", _names(rows[name])]
        for key, rows in steps.items()
        for name in IMPLEMENTATIONS
        if "attention" in rows.get(name, {})
    ]
    listed = table(("Step", "Beyond those of `none`"), names).replace("--: ", ":-- ")
    return "\n\n".join([*blocks, folded("Attention's kernels by name", listed)])


def _counts(rows: dict[str, Row], kind: str) -> list[str]:
    return [f"{rows[name][kind]}" if kind in rows.get(name, {}) else "–"
            for name in IMPLEMENTATIONS]  # fmt: skip


def _names(row: Row) -> str:
    return "<br>".join(f"`{name}` × {n}" for name, n in row["attention"].items()) or "–"


def _memory(result: Result) -> str:
    lines = []
    for key, steps in by_step(result).items():
        lines.append([f"**{title(*key)}**", *[""] * len(IMPLEMENTATIONS)])
        for N, rows in steps.items():
            lines.append([_size(N, rows), *(_peak(rows.get(name)) for name in IMPLEMENTATIONS)])
    return folded("Peak of every step, GB", table(("GB", *IMPLEMENTATIONS), lines))


def _size(N: int, rows: dict[str, Row]) -> str:
    return f"N {N:,} B {next(iter(rows.values()))['shape']['B']}"


def _peak(row: Row | None) -> str:
    if row is None:
        return "–"
    return f"{row['peak_bytes'] / 1e9:,.1f}" if "peak_bytes" in row else row.get("error", "–")
