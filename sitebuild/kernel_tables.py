"""The measured parts of a kernel page as Markdown: exactness, traffic, speed, launches.

Long tables are folded; what a reader needs first is on the page's head (`kernel_answer`).
"""

from pathlib import Path
from textwrap import indent
from typing import Any

from kernels.bench.cases import MODEL
from sitebuild.kernel_results import (
    ABSENT,
    BY_FLOP,
    LAUNCH_BOUND_US,
    RESULTS,
    Result,
    Row,
    best_peer,
    case_of,
    ceiling,
    ceiling_name,
    each,
    label,
    peak,
    rates,
    reading_order,
    table,
    unit_of,
)

VARYING = ("B", "M", "N", "K", "N_Q", "N_K")  # sizes that a sweep changes


def exactness(stem: str, folder: Path = RESULTS) -> str:
    """Return the largest errors against float64, ours beside the ordinary computation's."""
    return each(stem, _exactness, folder)


def traffic(stem: str, folder: Path = RESULTS) -> str:
    """Return compulsory, issued and counted bytes of each counted case."""
    return each(stem, _traffic, folder)


def speed(stem: str, folder: Path = RESULTS) -> str:
    """Return the rate of each implementation, with its spread and our share of the ceilings."""
    return each(stem, _speed, folder)


def launches(stem: str, folder: Path = RESULTS) -> str:
    """Return the time of one call among equal calls, with and without a CUDA graph."""
    return each(stem, _launches, folder)


def folded(title: str, content: str) -> str:
    """Return a part of a page that opens at a click."""
    return f'??? note "{title}"\n\n{indent(content, "    ")}'


def _exactness(result: Result) -> str:
    rows = []
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in result["exactness"]:
        groups.setdefault((row["pass"], row["dtype"], row["output"]), []).append(row)
    for (direction, dtype, output), members in groups.items():
        ours = [row for row in members if row["implementation"] == "ours"]
        if not ours:
            continue
        known = [row for row in ours if row["error"] is not None]
        worst = max(known, key=lambda row: row["error"] / (row["tolerance"] or 1), default=None)
        eager = worst["eager_error"] if worst else None
        cells = [f"{worst['error']:.1e}" if worst else "not finite"]
        cells += ["–" if eager is None else f"{eager:.1e}"]
        cells += [f"{worst['tolerance']:.1e}" if worst else "–"]
        cells += [label(worst["shape"]) if worst else "–"]
        passed = f"{sum(row['passed'] for row in ours)} of {len(ours)}"
        rows.append([f"{output}, {direction}, {dtype}", *cells, passed])
    head = ("Output", "Ours", "Eager", "Allowed", "Case nearest to the limit", "Passed")
    text = table(head, rows) if rows else "No case was checked."
    reference = "float32" if result["kernel"] == MODEL else "float64"
    told = f"{text}\n\nErrors are the largest absolute differences from {reference}."
    return told + _beside_cudnn(result["exactness"])


def _beside_cudnn(rows: list[Row]) -> str:
    """Return how the root mean square errors of ours compare with those of cuDNN, if captured."""
    found: dict[Any, dict[str, float]] = {}
    for row in rows:
        if "relative_rms" in row:
            key = row["pass"], row["dtype"], case_of(row), row["output"]
            found.setdefault(key, {})[row["implementation"]] = row["relative_rms"]
    pairs = [each for each in found.values() if each.get("sdpa-cudnn") and "ours" in each]
    if not pairs:
        return ""
    ratios = sorted(each["ours"] / each["sdpa-cudnn"] for each in pairs)
    return (
        f" Root mean square errors are {ratios[0]:.2f} to {ratios[-1]:.2f} times those of "
        f"sdpa-cudnn, over {len(ratios)} outputs."
    )


def _traffic(result: Result) -> str:
    if isinstance(result["counters"], str):
        return f"Not counted: {result['counters']}."
    rows, case = [], ""
    for row in result["counters"]:
        if label(row["shape"]) != case:
            case = label(row["shape"])
            rows.append([f"**{case}**", *[""] * 6])
        counted = row["dram_read"] + row["dram_write"]
        sizes = ("model_bytes", "issued_bytes", "dram_read", "dram_write", "l2_bytes")
        ratio = f"{counted / row['model_bytes']:.3f}" if row["model_bytes"] else "–"
        rows.append([row["implementation"], *(_mb(row[name]) for name in sizes), ratio])
    head = ("MB", "Model", "Issued", "DRAM read", "DRAM written", "L2", "DRAM / model")
    parts = [table(head, rows)]
    if any(row["issued_bytes"] is None for row in result["counters"]):
        parts.append(
            "Issued bytes follow from the tiles of our own loops. A dash: a library does not say "
            "which tiles its kernels use, so there is no model of what they ask for."
        )
    parts += [
        f"- {row['implementation']} {label(row['shape'])}: not counted, {row['reason']}"
        for row in result["uncounted"]
    ]
    return "\n\n".join(parts)


def _mb(count: int | None) -> str:
    """Bytes in MB of 1e6, hundredths only where they say something."""
    if count is None:
        return "–"
    return f"{count / 1e6:,.0f}" if count >= 1e8 else f"{count / 1e6:.2f}"


def _speed(result: Result) -> str:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in result["rows"]:
        groups.setdefault((row["pass"], row["dtype"]), []).append(row)
    blocks = [_speed_table(result, *key, rows) for key, rows in groups.items()]
    if found := faults(result["rows"]):
        text = "\n".join(f"- {fault}" for fault in found)
        blocks.append(folded("What was not timed, and why", text))
    return "\n\n".join(blocks)


def _speed_table(result: Result, direction: str, dtype: str, rows: list[Row]) -> str:
    by_flop = result["kernel"] in BY_FLOP
    timed = sorted((row for row in rows if "us" in row), key=reading_order)
    names = list(dict.fromkeys(r["implementation"] for r in rows if "us" in r))
    shapes: dict[tuple[str, str], dict[str, Row]] = {}
    for row in timed:
        shapes.setdefault(_group_and_case(row["shape"]), {})[row["implementation"]] = row
    lines, group = [], ""
    for (options, case), found in shapes.items():
        if options != group:
            group = options
            lines.append([f"**{group}**", *[""] * (len(names) + 3)])
        fastest = min((r["us"][1] for n, r in found.items() if n != "copy"), default=0.0)
        cells = [_rate_cell(found.get(name), by_flop, fastest) for name in names]
        ours = found.get("ours")
        lines.append([case, *cells, *(_shares(result, ours) if ours else ("–", "–", "–"))])
    over = ceiling_name(result)
    head = ("Case", *names, "over best peer", f"of {over}", "of data sheet")
    notes = f"{unit_of(result)}: the median, below it the 20 and 80 % quantiles; bold is fastest."
    if any("†" in cell for line in lines for cell in line):
        notes += f" † under {LAUNCH_BOUND_US:.0f} us, mostly launch: no speed-up is claimed."
    title = f"{direction}, {dtype}: all {len(shapes)} cases, {unit_of(result)}"
    return folded(title, f"{table(head, lines)}\n\n{notes}")


def _group_and_case(shape: dict[str, Any]) -> tuple[str, str]:
    """Return a shape in two parts: the options that many cases share, and the sizes that vary."""
    sizes = {name: size for name, size in shape.items() if name in VARYING}
    return label({n: s for n, s in shape.items() if n not in VARYING}), label(sizes)


def _shares(result: Result, ours: Row) -> tuple[str, str, str]:
    mine, top = rates(ours, result["kernel"] in BY_FLOP)[0], peak(result, ours)
    rival = best_peer(result, ours)
    return (
        f"{rival['us'][1] / ours['us'][1]:.2f}" if rival else "–",
        f"{mine / ceiling(result, ours):.0%}",
        f"{mine / top:.0%}" if top else "–",
    )


def _rate_cell(row: Row | None, by_flop: bool, fastest: float) -> str:
    if row is None:
        return "–"
    middle, low, high = rates(row, by_flop)
    mark = " †" if row["us"][1] < LAUNCH_BOUND_US else ""
    value = f"{middle:,.0f}"
    if row["us"][1] == fastest:
        value = f"**{value}**"
    return f"{value}{mark}<br><small>{low:,.0f}–{high:,.0f}</small>"


def faults(rows: list[Row]) -> list[str]:
    """Return each implementation's errors, equal ones counted."""
    counts: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if "error" in row:
            key = row["implementation"], row["error"]
            counts.setdefault(key, []).append(f"{row['dtype']} {label(row['shape'])}")
    return [
        f"{name}, {where[0]}{f' and {len(where) - 1} more' if len(where) > 1 else ''}: `{error}`"
        for (name, error), where in counts.items()
    ]


def _launches(result: Result) -> str:
    rows = []
    for row in result["launches"]:
        name = f"{row['implementation']} {label(row['shape'])}"
        if "us" in row:
            stream, graph = row["us"][1], row["graph_us"][1]
            rows.append([name, f"{stream:.1f}", f"{graph:.1f}", f"{stream / graph:.1f}"])
        else:
            rows.append([name, "–", "–", "–"])
    if not rows:
        return ABSENT
    content = table(("us a call", "Stream", "CUDA graph", "Ratio"), rows)
    return folded(f"One call among equal calls, {len(rows)} cases, us", content)
