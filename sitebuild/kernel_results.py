"""The captured results of all devices: which there are, their rates, marks and provenance.

Every rate and ratio on a page is computed here from stored times and counts. Where no file is, a
page says that nothing is captured; where the code has changed since, all that it shows is marked.
"""

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from kernels.bench import cases
from kernels.bench.rates import data_sheet, gb_per_s, peak_flops, tflop_per_s
from kernels.bench.schema import read
from kernels.bench.stale import is_stale
from kernels.bench.store import slug

RESULTS = Path(__file__).resolve().parent.parent / "kernels" / "results"
ABSENT = "Not captured yet."
STALE = "Stale: the kernel's code has changed since this was measured."
# the ladder has a page of another kind
STEMS = tuple(stem for stem in cases.STEMS if stem != "attention_ladder")
# their rate is TFLOP/s, that of the others GB/s
BY_FLOP = ("matmul", "flash_attention", "attention_ladder")
LAUNCH_BOUND_US = 10.0
# bits of NVML's clocks throttle reasons that name a cause
THROTTLE = {0x4: "the power cap", 0x8: "the hardware", 0x20: "heat", 0x40: "heat"}
Result = dict[str, Any]
Row = dict[str, Any]


def results(stem: str, folder: Path = RESULTS) -> list[Result]:
    """Return the results of a kernel, by device. Raises InvalidError for a damaged file."""
    return [read(path) for path in sorted(folder.glob(f"{stem}.*.json"))]


def each(stem: str, render: Callable[[Result], str], folder: Path = RESULTS, page: str = "") -> str:
    """Return what `render` makes of each result, under its mark and above where it comes from.

    Parameters
    ----------
    page : the page that holds the circumstances, where it is another.
    """
    found = results(stem, folder)
    blocks = []
    for result in found:
        head = [f"**{escape(device(result))}**"] if len(found) > 1 else []
        warning = [f"{STALE}\n{{ .stale }}"] if is_stale(result) else []
        parts = [*head, *warning, render(result), origin(result, page)]
        blocks.append(framed("\n\n".join(parts)))
    return "\n\n".join(blocks) or ABSENT


def framed(content: str) -> str:
    """Return Markdown in the frame that its tables take their look from."""
    return f'<div class="measured" data-search-exclude markdown="1">\n\n{content}\n\n</div>'


def mark(found: Sequence[Result]) -> str:
    """Return the warning that a figure of these results carries, empty for fresh ones."""
    return STALE if any(is_stale(result) for result in found) else ""


def device(result: Result) -> str:
    return str(result["device"]["name"])


def anchor(result: Result) -> str:
    """Return the device as it stands in an id of a page."""
    return slug(device(result)).replace("_", "-")


def moment(result: Result) -> str:
    """Return the day of a result and the commit that was measured."""
    run = result["run"]
    changed = ", with changes that are not in it" if run["dirty"] else ""
    return f"{run['date'][:10]}, commit {run['commit'][:10]}{changed}"


def origin(result: Result, page: str = "") -> str:
    """Return the line under a part of a page: device, day, commit and where the rest is."""
    # HTML, because markdown-exec gives the anchors of each block a prefix of its own
    where = f'<a href="{page}#captured-on-{anchor(result)}">circumstances</a>'
    return f"{escape(device(result))}, {moment(result)}; {where}.\n{{ .origin }}"


def provenance(stem: str, folder: Path = RESULTS) -> str:
    """Return for each device all that a result says about how it came about."""
    return "\n\n".join(_provenance(found) for found in results(stem, folder)) or ABSENT


def label(shape: dict[str, Any]) -> str:
    """Return a shape as in `B4 H16 N8192 D128 causal`: equal query and key sizes named once."""
    sizes = dict(shape)
    for one, other, joint in (("H", "H_KV", "H"), ("N_Q", "N_K", "N")):
        if one in sizes and sizes[one] == sizes.get(other):
            del sizes[other]
            sizes = {joint if name == one else name: size for name, size in sizes.items()}
    parts = (n if s is True else f"{n}{s}" for n, s in sizes.items() if s is not False)
    return " ".join(parts)


def reading_order(row: Row) -> tuple[int, ...]:
    """Sort attention by its options, then by keys; other cases from large to small, then by N."""
    shape = row["shape"]
    if "D" in shape:
        group = shape["H"] // max(1, shape["H_KV"])
        options = int(shape["causal"]), shape["D"], group, shape["H"]
        return *options, shape["N_K"], shape["B"]
    return -row["model_bytes"].bit_length(), *(shape.get(size, 0) for size in ("N", "M", "K"))


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
        if other["implementation"] == "copy" and "us" in other and case_of(other) == case_of(row):
            return rates(other, False)[0]
    return float(result["sessions"][row["session"]]["ceilings"]["copy_gb_s"])


def peak(result: Result, row: Row) -> float | None:
    """Return the data sheet's rate in the unit of this kernel, or None for an unknown device."""
    if result["kernel"] in BY_FLOP:
        flops = peak_flops(device(result), row["dtype"])
        return flops / 1e12 if flops else None
    rate = data_sheet(device(result), "hbm_rate")
    return rate / 1e9 if rate else None


def unit_of(result: Result) -> str:
    return "TFLOP/s" if result["kernel"] in BY_FLOP else "GB/s"


def ceiling_name(result: Result) -> str:
    return "matrix product" if result["kernel"] in BY_FLOP else "copy"


def is_ours(name: str) -> bool:
    """Return whether an implementation is this project's, in whichever language."""
    return name.split("-")[0] == "ours"


def is_peer(name: str) -> bool:
    """Return whether an implementation is somebody else's; a copy computes nothing."""
    return not is_ours(name) and name != "copy"


def best_peer(result: Result, row: Row) -> Row | None:
    """Return the fastest timed row of somebody else on the same case."""
    others = [r for r in same_case(result, row) if is_peer(r["implementation"])]
    return min(others, key=lambda r: float(r["us"][1]), default=None)


def best_case(result: Result) -> Row | None:
    """Return our row of the largest timed case, forward, in the first data type."""
    ours = [r for r in result["rows"] if r["implementation"] == "ours" and "us" in r]
    ours = [r for r in ours if (r["pass"], r["dtype"]) == ("forward", "bf16")]
    return max(ours, key=lambda row: (row["flops"], row["model_bytes"]), default=None)


def same_case(result: Result, row: Row) -> list[Row]:
    """Return the timed rows of all implementations on the case of `row`."""
    return [r for r in result["rows"] if "us" in r and case_of(r) == case_of(row)]


def case_of(row: Row) -> tuple[str, str, tuple[tuple[str, Any], ...]]:
    """Return what tells one case from another: direction, data type and shape."""
    return row["pass"], row["dtype"], tuple(sorted(row["shape"].items()))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, numbers to the right of the first column."""
    lines = [f"| {' | '.join(head)} |", f"| --- |{' --: |' * (len(head) - 1)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def _provenance(result: Result) -> str:
    run, found, name = result["run"], result["device"], escape(device(result))
    named = ("torch", "triton", "cuda", "ptxas", "liger", "transformers", "python")
    l2 = f"L2 {found['l2_bytes'] / 1e6:.0f} MB" if found["l2_bytes"] else ""
    watts = f"power limit {found['power_limit_w']:.0f} W" if found["power_limit_w"] else ""
    driver = f"driver {found['driver']}" if found["driver"] else ""
    method = result["method"]
    left = f"; {run['left']} steps of the job were left then" if run["left"] else ""
    rows = [
        ("Device", ", ".join(part for part in (name, driver, l2, watts) if part)),
        ("Measured", f"{moment(result)}{left}"),
        ("Software", ", ".join(f"{key} {run[key]}" for key in named if run.get(key))),
        ("Clocks", _clocks(result)),
        ("Ceilings", _ceilings(result)),
        ("Timing", f"{method['timer']}; L2 {method['l2']}; {method['order']}; {method['inputs']}"),
        ("Command", f"`{run['command']}`"),
    ]
    head = f'<strong id="captured-on-{anchor(result)}">Captured on {name}</strong>'
    return f"{head}\n\n{table(('Circumstance', 'Value'), rows).replace('--: ', ':-- ')}"


def _clocks(result: Result) -> str:
    seen = [session["clocks"] for session in result["sessions"] if session["clocks"]]
    spans = [clocks["sm_mhz"] for clocks in seen if clocks.get("sm_mhz")]
    if not spans:
        return "not recorded"
    bits = [int(x, 16) for clocks in seen for x in clocks.get("throttle_reasons") or []]
    causes = {name: None for bit, name in THROTTLE.items() if any(bits_ & bit for bits_ in bits)}
    held = f"; held back at times by {' and '.join(causes)}" if causes else ""
    low, high = min(s["min"] for s in spans), max(s["max"] for s in spans)
    return f"SM {low:.0f} to {high:.0f} MHz{held}"


def _ceilings(result: Result) -> str:
    found = [session["ceilings"] for session in result["sessions"]]
    copy, read_, product = (
        max(ceilings[name] for ceilings in found)
        for name in ("copy_gb_s", "read_gb_s", "matmul_tflop_s")
    )
    return f"copy {copy:,.0f} GB/s, read {read_:,.0f} GB/s, bf16 product {product:,.0f} TFLOP/s"
