"""The measured part of a kernel page, as Markdown from the result files of all devices.

Every rate and ratio is computed here from stored times and counts. Without a file a page says
that nothing is captured; with a file of other code it says that its tables are stale.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernels.bench.rates import data_sheet, gb_per_s, peak_flops, tflop_per_s
from kernels.bench.schema import read
from kernels.bench.stale import is_stale

RESULTS = Path(__file__).resolve().parent.parent / "kernels" / "results"
ABSENT = "Not captured yet."
STALE = "**Stale.** The kernel's code has changed since this was measured."
STEMS = ("softmax", "rms_norm", "matmul", "flash_attention", "flash_decode")
BY_FLOP = ("matmul", "flash_attention")  # their rate is TFLOP/s, that of the others GB/s
LAUNCH_BOUND_US = 10.0
Result = dict[str, Any]
Row = dict[str, Any]


def results(stem: str, folder: Path = RESULTS) -> list[Result]:
    """Return the results of a kernel, by device. Raises InvalidError for a damaged file."""
    return [read(path) for path in sorted(folder.glob(f"{stem}.*.json"))]


def page(stem: str, folder: Path = RESULTS) -> str:
    """Return all tables of a kernel page under one heading each."""
    sections = {
        "Exactness": exactness,
        "Traffic": traffic,
        "Speed": speed,
    }
    parts = [f"## {title}\n\n{render(stem, folder)}" for title, render in sections.items()]
    if any(result["launches"] for result in results(stem, folder)):
        parts.append(f"## Launch overhead\n\n{launches(stem, folder)}")
    return "\n\n".join(parts)


def exactness(stem: str, folder: Path = RESULTS) -> str:
    """Return the largest errors against float64, ours beside the ordinary computation's."""
    return _each(stem, folder, _exactness)


def traffic(stem: str, folder: Path = RESULTS) -> str:
    """Return compulsory, issued and counted bytes of each counted case."""
    return _each(stem, folder, _traffic)


def speed(stem: str, folder: Path = RESULTS) -> str:
    """Return the rate of each implementation, with its spread and our share of the ceilings."""
    return _each(stem, folder, _speed)


def launches(stem: str, folder: Path = RESULTS) -> str:
    """Return the time of one call among equal calls, with and without a CUDA graph."""
    return _each(stem, folder, _launches)


def overview(folder: Path = RESULTS) -> str:
    """Return one table of all kernels: our best rate on each device, and the best peer there."""
    rows = []
    for stem in STEMS:
        for result in results(stem, folder):
            if (best := best_case(result)) is not None:
                rows.append(_overview_row(stem, result, best))
    if not rows:
        return ABSENT
    head = ("Kernel", "Device", "Case", "Ours", "Share of ceiling", "Best peer", "Ours / peer")
    return table(head, rows)


def caption(result: Result) -> str:
    """Return device, date, commit, versions and the command to reproduce."""
    run, device = result["run"], result["device"]
    named = ("torch", "triton", "cuda", "ptxas", "python")
    versions = ", ".join(f"{name} {run[name]}" for name in named if run[name])
    changed = {True: ", with changes that are not in it", False: "", None: ""}[run["dirty"]]
    clocks = [
        s["clocks"]["sm_mhz"] for s in result["sessions"] if (s["clocks"] or {}).get("sm_mhz")
    ]
    clock = f", SM clock {min(c['min'] for c in clocks):.0f} to {max(c['max'] for c in clocks):.0f} MHz" if clocks else ""  # fmt: skip  # noqa: E501
    driver = f", driver {device['driver']}" if device["driver"] else ""
    watts = f", limit {device['power_limit_w']:.0f} W" if device["power_limit_w"] else ""
    left = (
        f" {run['left']} steps of the job were left when this was written." if run["left"] else ""
    )
    return (
        f"Captured on {device['name']}{driver}{watts}{clock}; {run['date'][:10]}, commit "
        f"{run['commit'][:10]}{changed}; {versions}. L2 {result['method']['l2']}; "
        f"reproduce with `{run['command']}`.{left}"
    )


def label(shape: dict[str, Any]) -> str:
    """Return a shape as in `B4 H16 N8192 D128 causal`: equal query and key sizes named once."""
    sizes = dict(shape)
    for one, other, joint in (("H", "H_KV", "H"), ("N_Q", "N_K", "N")):
        if one in sizes and sizes[one] == sizes.get(other):
            del sizes[other]
            sizes = {joint if name == one else name: size for name, size in sizes.items()}
    parts = (n if s is True else f"{n}{s}" for n, s in sizes.items() if s is not False)
    return " ".join(parts)


def rates(row: Row, by_flop: bool) -> tuple[float, float, float]:
    """Return the median rate and its 20 and 80 % quantiles, in TFLOP/s or GB/s of model bytes."""
    rate: Callable[[float, float], float] = tflop_per_s if by_flop else gb_per_s
    amount = row["flops"] if by_flop else row["model_bytes"]
    fast, middle, slow = row["us"]
    return rate(amount, middle), rate(amount, slow), rate(amount, fast)


def ceiling(result: Result, row: Row) -> float:
    """Return what a plain program reached beside this row: a copy or a product, in its unit."""
    if result["kernel"] in BY_FLOP:
        return float(result["sessions"][row["session"]]["ceilings"]["matmul_tflop_s"])
    for other in result["rows"]:
        if other["implementation"] == "copy" and "us" in other and _case(other) == _case(row):
            return rates(other, False)[0]
    return float(result["sessions"][row["session"]]["ceilings"]["copy_gb_s"])


def peak(result: Result, row: Row) -> float | None:
    """Return the data sheet's rate in the unit of this kernel, or None for an unknown device."""
    if result["kernel"] in BY_FLOP:
        flops = peak_flops(result["device"]["name"], row["dtype"])
        return flops / 1e12 if flops else None
    rate = data_sheet(result["device"]["name"], "hbm_rate")
    return rate / 1e9 if rate else None


def best_case(result: Result) -> Row | None:
    """Return our row of the largest timed case, forward, in the first data type."""
    ours = [r for r in result["rows"] if r["implementation"] == "ours" and "us" in r]
    ours = [r for r in ours if (r["pass"], r["dtype"]) == ("forward", "bf16")]
    return max(ours, key=lambda row: (row["flops"], row["model_bytes"]), default=None)


def same_case(result: Result, row: Row) -> list[Row]:
    """Return the timed rows of all implementations on the case of `row`."""
    return [r for r in result["rows"] if "us" in r and _case(r) == _case(row)]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, numbers to the right of the first column."""
    lines = [f"| {' | '.join(head)} |", f"| --- |{' --: |' * (len(head) - 1)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _each(stem: str, folder: Path, render: Callable[[Result], str]) -> str:
    blocks = []
    for result in results(stem, folder):
        mark = [STALE] if is_stale(result) else []
        blocks.append("\n\n".join([*mark, render(result), f"*{caption(result)}*"]))
    return "\n\n".join(blocks) or ABSENT


def _case(row: Row) -> tuple[str, str, tuple[tuple[str, Any], ...]]:
    return row["pass"], row["dtype"], tuple(sorted(row["shape"].items()))


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
        rows.append([f"{output}, {direction}", dtype, *cells, passed])
    head = ("Output", "dtype", "Ours", "Eager", "Allowed", "Case nearest to the limit", "Passed")
    text = table(head, rows) if rows else "No case was checked."
    return f"{text}\n\nErrors are the largest absolute differences from float64."


def _traffic(result: Result) -> str:
    if isinstance(result["counters"], str):
        return f"Not counted: {result['counters']}."
    rows = []
    for row in result["counters"]:
        counted = row["dram_read"] + row["dram_write"]
        sizes = ("model_bytes", "issued_bytes", "dram_read", "dram_write", "l2_bytes")
        cells = ["–" if row[name] is None else f"{row[name] / 1e6:,.2f}" for name in sizes]
        ratio = f"{counted / row['model_bytes']:.3f}" if row["model_bytes"] else "–"
        rows.append([f"{row['implementation']} {label(row['shape'])}", *cells, ratio])
    head = ("MB", "Model", "Issued", "DRAM read", "DRAM written", "L2", "DRAM / model")
    reasons = [
        f"- {row['implementation']} {label(row['shape'])}: not counted, {row['reason']}"
        for row in result["uncounted"]
    ]
    return "\n\n".join([table(head, rows), *(["\n".join(reasons)] if reasons else [])])


def _speed(result: Result) -> str:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in result["rows"]:
        groups.setdefault((row["pass"], row["dtype"]), []).append(row)
    blocks = [_speed_table(result, *key, rows) for key, rows in groups.items()]
    if faults := _faults(result["rows"]):
        blocks.append("Not timed:\n\n" + "\n".join(f"- {fault}" for fault in faults))
    return "\n\n".join(blocks)


def _speed_table(result: Result, direction: str, dtype: str, rows: list[Row]) -> str:
    by_flop = result["kernel"] in BY_FLOP
    names = list(dict.fromkeys(row["implementation"] for row in rows))
    shapes: dict[str, dict[str, Row]] = {}
    for row in rows:
        shapes.setdefault(label(row["shape"]), {})[row["implementation"]] = row
    lines = []
    for case, found in shapes.items():
        cells = [_rate_cell(found.get(name), by_flop) for name in names]
        ours = found.get("ours", {})
        shares = ["–", "–"]
        if "us" in ours:
            mine, top = rates(ours, by_flop)[0], peak(result, ours)
            shares = [f"{mine / ceiling(result, ours):.0%}", f"{mine / top:.0%}" if top else "–"]
        lines.append([case, *cells, *shares])
    unit = "TFLOP/s" if by_flop else "GB/s"
    over = "matrix product" if by_flop else "copy"
    head = (f"{direction}, {dtype}, {unit}", *names, f"ours / {over}", "ours / data sheet")
    notes = "Median, and in brackets the 20 and 80 % quantiles."
    if any("†" in cell for line in lines for cell in line):
        notes += f" † under {LAUNCH_BOUND_US:.0f} us, mostly launch: no speed-up is claimed."
    return f"{table(head, lines)}\n\n{notes}"


def _rate_cell(row: Row | None, by_flop: bool) -> str:
    if row is None or "us" not in row:
        return "–"
    middle, low, high = rates(row, by_flop)
    mark = " †" if row["us"][1] < LAUNCH_BOUND_US else ""
    return f"{middle:,.0f} ({low:,.0f}–{high:,.0f}){mark}"


def _faults(rows: list[Row]) -> list[str]:
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
    return table(("us a call", "Stream", "CUDA graph", "Ratio"), rows) if rows else ABSENT


def _overview_row(stem: str, result: Result, ours: Row) -> list[str]:
    by_flop = stem in BY_FLOP
    unit = "TFLOP/s" if by_flop else "GB/s"
    mine = rates(ours, by_flop)[0]
    peers = [
        (rates(row, by_flop)[0], row["implementation"])
        for row in same_case(result, ours)
        if row["implementation"] not in ("ours", "copy")
    ]
    rival, name = max(peers, default=(None, None))
    beside = [f"{rival:,.0f} {unit}, {name}", f"{mine / rival:.2f}"] if rival else ["–", "–"]
    stale = " (stale)" if is_stale(result) else ""
    link = f"[{stem}]({stem}.md){stale}"
    share = f"{mine / ceiling(result, ours):.0%}"
    return [
        link,
        result["device"]["name"],
        label(ours["shape"]),
        f"{mine:,.0f} {unit}",
        share,
        *beside,
    ]
