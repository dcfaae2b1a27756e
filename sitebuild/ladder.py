"""The parts of the ladder's page: what each step changes, what it gained, and the evidence.

The trial is no step: it stands last and without a number, and is compared with the last step.
Differences come from the files, everything measured from the captured results.
"""

import ast
import difflib
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from kernels.bench.cases import LADDER, TRIAL
from sitebuild.kernel_answer import mean_ratio
from sitebuild.kernel_results import RESULTS, Result, Row, each, label, rates, table
from sitebuild.kernel_tables import faults, folded
from sitebuild.labs import ROOT

STEM = "attention_ladder"
FOLDER = ROOT / "kernels" / STEM
FILES = {name: f"step{n}_{name.replace('-', '_')}.py" for n, name in enumerate(LADDER, 1)}
FILES[TRIAL] = f"trial_{TRIAL.replace('-', '_')}.py"
# what each goes beyond
BEFORE = {after: before for before, after in pairwise(LADDER)}
BEFORE |= dict.fromkeys((TRIAL, "flash_attention"), LADDER[-1])
CONTEXT = 2  # lines around a change
MARKER = re.compile(r"^# --8<-- .*\n\n*", re.M)
DEFINITION = re.compile(r"^def (\w+)")
KINDS = [(D, causal) for D in (64, 128) for causal in (False, True)]
HEADS = [f"{D}{', causal' if causal else ''}" for D, causal in KINDS]


def difference(name: str) -> str:
    """Return what a step or the trial changes in the file before it, as a fence of Markdown.

    A line that was only moved in or out counts as the same.
    """
    files = FILES[BEFORE[name]], FILES[name]
    before, after = (code_of(FOLDER / file) for file in files)
    old, new = ([line.strip() for line in lines] for lines in (before, after))
    matched = difflib.SequenceMatcher(None, old, new, autojunk=False)
    shown = []
    for hunk in matched.get_grouped_opcodes(CONTEXT):
        shown.append(f"@@ {_within(after, hunk[0][3])} @@")
        for kind, i, j, k, m in hunk:
            removed, added = ([], after[k:m]) if kind == "equal" else (before[i:j], after[k:m])
            shown += [f"-{line}" for line in removed]
            shown += [f"{' ' if kind == 'equal' else '+'}{line}" for line in added]
    return "\n".join([f'```diff title="{" → ".join(files)}"', *shown, "```"])


def code_of(path: Path) -> list[str]:
    """Return the lines of a step without its docstring and the marks of its sections."""
    text = path.read_text("utf-8")
    docstring = ast.parse(text).body[0]
    body = "\n".join(text.splitlines()[docstring.end_lineno or 0 :])
    return MARKER.sub("", body).strip().splitlines()


def _within(code: list[str], line: int) -> str:
    """Return the function in whose lines, or right above which, a hunk begins."""
    names = [found[1] for text in code[: line + CONTEXT + 1] if (found := DEFINITION.match(text))]
    return names[-1] if names else "imports"


def short(folder: Path = RESULTS) -> str:
    """Return the rate of every step on the longest sequence, in TFLOP/s."""
    return each(STEM, _short, folder)


def speed(folder: Path = RESULTS) -> str:
    """Return the rate of every step on every shape, and its gain over the step before."""
    return each(STEM, _speed, folder)


def trial(folder: Path = RESULTS) -> str:
    """Return what the trial gains or loses over the last step, on every shape."""
    return each(STEM, _trial, folder)


def evidence(folder: Path = RESULTS) -> str:
    """Return how busy the units were and what L2 and DRAM moved, as the profiler counted."""
    return each(STEM, _evidence, folder)


def exactness(folder: Path = RESULTS) -> str:
    """Return the largest error of every step, as a share of what is allowed."""
    return each(STEM, _exactness, folder)


def numbered(name: str) -> str:
    """Return a name with the number of its step; what is no step has none."""
    if name == TRIAL:
        return f"trial: {name}"
    return f"{LADDER.index(name) + 1} {name}" if name in LADDER else name


def names_of(rows: Iterable[Row]) -> list[str]:
    """Return the implementations in the order of their rows, the trial last."""
    return list(dict.fromkeys(row["implementation"] for row in trial_last(rows)))


def trial_last(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: bool(row["implementation"] == TRIAL))


def timed(result: Result, D: int, causal: bool) -> dict[tuple[str, int], float]:
    """Return TFLOP/s by implementation and length."""
    return {
        (row["implementation"], row["shape"]["N_K"]): rates(row, True)[0]
        for row in result["rows"]
        if "us" in row and (row["shape"]["D"], row["shape"]["causal"]) == (D, causal)
    }


def kind(D: int, causal: bool) -> str:
    return f"D = {D}{', causal' if causal else ''}"


def longest(result: Result) -> int:
    return max(int(row["shape"]["N_K"]) for row in result["rows"])


def _short(result: Result) -> str:
    N = longest(result)
    found = {place: timed(result, *place) for place in KINDS}
    lines = [
        [numbered(name), *(_rate(found[place].get((name, N))) for place in KINDS)]
        for name in names_of(result["rows"])
    ]
    return table((f"N = {N}, TFLOP/s", *HEADS), lines)


def _rate(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:,.0f}"


def _speed(result: Result) -> str:
    blocks = []
    for place in KINDS:
        found = timed(result, *place)
        lengths = sorted({N for _, N in found})
        lines = []
        for name in names_of(result["rows"]):
            earlier = BEFORE.get(name, "")
            cells = [_gain(found.get((name, N)), found.get((earlier, N))) for N in lengths]
            lines.append([numbered(name), *cells])
        blocks.append(table((f"{kind(*place)}, TFLOP/s", *(f"N = {N}" for N in lengths)), lines))
    if found_faults := faults(result["rows"]):
        text = "\n".join(f"- {fault}" for fault in found_faults)
        blocks.append(folded("What was not timed, and why", text))
    return "\n\n".join(blocks)


def _gain(rate: float | None, earlier: float | None) -> str:
    if rate is None or earlier is None:
        return _rate(rate)
    return f"{rate:,.0f} <small>{percent(rate / earlier - 1)}</small>"


def percent(gain: float) -> str:
    """Return a gain with its sign, and one that rounds to nothing without."""
    return "0%" if f"{gain:.0%}" in ("0%", "-0%") else f"{gain:+.0%}".replace("-", "−")


def _trial(result: Result) -> str:
    gains: dict[tuple[str, int], float] = {}
    for place in KINDS:
        found = timed(result, *place)
        for (name, N), rate in found.items():
            if name == TRIAL and (before := found.get((BEFORE[TRIAL], N))) is not None:
                gains[kind(*place), N] = rate / before - 1
    if not gains:
        return "No shape was timed with it and with the last step."
    every, lengths = gains.values(), sorted({N for _, N in gains})
    lines = [
        [of, *(percent(gains[of, N]) if (of, N) in gains else "–" for N in lengths)]
        for of in dict.fromkeys(of for of, _ in gains)
    ]
    faster, slower = sum(gain > 0 for gain in every), sum(gain < 0 for gain in every)
    mean = mean_ratio([1 + gain for gain in every]) - 1
    told = (
        f"Shapes on which it is faster than step {numbered(BEFORE[TRIAL])}: {faster} of "
        f"{len(gains)}; slower: {slower}. Its rate changes by {percent(min(every))} "
        f"to {percent(max(every))}, by their geometric mean {percent(mean)}."
    )
    head = (f"{TRIAL} over {BEFORE[TRIAL]}", *(f"N = {N}" for N in lengths))
    return f"{told}\n\n{table(head, lines)}"


def _evidence(result: Result) -> str:
    if isinstance(result["counters"], str):
        return f"Not counted: {result['counters']}."
    cases: dict[str, list[Row]] = {}
    for row in trial_last(result["counters"]):
        cases.setdefault(label(row["shape"]), []).append(row)
    head = ("Step", "Tensor cores", "Exponentials", "L2, GB", "DRAM / model")
    blocks = [_busy(result["counters"])]
    blocks += [
        folded(f"Counted at {case}", table(head, [_counted(row) for row in rows]))
        for case, rows in cases.items()
    ]
    left = [
        f"- {row['implementation']} {label(row['shape'])}: not counted, {row['reason']}"
        for row in result["uncounted"]
    ]
    return "\n\n".join([*blocks, *(["\n".join(left)] if left else [])])


def _busy(rows: list[Row]) -> str:
    """Return how busy the tensor cores were, a row a step."""
    found = {
        (row["implementation"], row["shape"]["D"], row["shape"]["causal"]): row for row in rows
    }
    lines = []
    for name in names_of(rows):
        shares = (_percent(found.get((name, *place)), "tensor_percent") for place in KINDS)
        lines.append([numbered(name), *shares])
    return table(("Tensor cores busy", *HEADS), lines)


def _percent(row: Row | None, name: str) -> str:
    percent = row.get(name) if row else None
    return "–" if percent is None else f"{percent:.0f} %"


def _counted(row: Row) -> list[str]:
    moved = row["dram_read"] + row["dram_write"]
    return [
        numbered(row["implementation"]),
        *(_percent(row, name) for name in ("tensor_percent", "xu_percent")),
        f"{row['l2_bytes'] / 1e9:.2f}",
        f"{moved / row['model_bytes']:.2f}",
    ]


def _exactness(result: Result) -> str:
    lines = []
    for name in names_of(result["exactness"]):
        mine: list[dict[str, Any]] = [r for r in result["exactness"] if r["implementation"] == name]
        outputs = {output: [r for r in mine if r["output"] == output] for output in ("out", "lse")}
        cells = [_worst(rows) for rows in outputs.values()]
        lines.append([numbered(name), *cells, f"{sum(r['passed'] for r in mine)} of {len(mine)}"])
    return table(("Step", "out, of what is allowed", "lse", "Passed"), lines)


def _worst(rows: list[Row]) -> str:
    if not rows:
        return "–"
    if any(row["error"] is None for row in rows):
        return "not finite"
    share = max(row["error"] / row["tolerance"] for row in rows)
    return "&lt;1%" if share and f"{share:.0%}" == "0%" else f"{share:.0%}"
