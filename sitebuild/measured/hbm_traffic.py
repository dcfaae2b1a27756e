"""What the counters and the clock saw of attention: fewer bytes, and how much less time.

A speed-up is a ratio of two times, and each time is that of a roof over a share of it. So the page
shows both shares; a ratio of bytes alone explains nothing.
"""

from pathlib import Path
from typing import Any, NamedTuple

from kernels.bench.rates import gb_per_s, tflop_per_s
from sitebuild.kernel_results import RESULTS, Result, Row, case_of, each, label, table

STEM, PAGE = "flash_attention", "../kernels/flash_attention.md"
FAR_ABOVE_L2 = 5  # every tensor is this many times the L2, so that hardly a byte can hide in it
NAMES = {"eager": "three kernels", "ours": "one kernel"}


class Side(NamedTuple):
    """One implementation of a case that was timed and counted."""

    byte_count: int  # counted in DRAM, read and written
    us: float
    for_bytes: float  # us that its bytes take at the rate of the run's copy
    for_flops: float  # us that its FLOP take at the rate of the run's matrix product

    @property
    def least(self) -> float:
        return max(self.for_bytes, self.for_flops)

    @property
    def share(self) -> float:
        return self.least / self.us

    @property
    def limit(self) -> str:
        return "bytes" if self.for_bytes > self.for_flops else "FLOP"


def story(folder: Path = RESULTS) -> str:
    """Return bytes, times and shares of the roofs of the largest case, for each device."""
    return each(STEM, _story, folder, PAGE)


def apart(folder: Path = RESULTS) -> str:
    """Return reads and writes beside their own models, where every tensor is far above L2."""
    return each(STEM, _apart, folder, PAGE)


def _story(result: Result) -> str:
    found = _largest(result)
    if found is None:
        return "No case was both timed and counted for three kernels and for one."
    timed, naive, ours = found
    ratio = naive.least / ours.least
    roofs, of_ours, of_naive = _factors(ratio, ours.share, naive.share)
    rows = [
        ("Bytes in DRAM, GB", *(f"{s.byte_count / 1e9:,.2f}" for s in (naive, ours)),
         f"{naive.byte_count / ours.byte_count:.1f}"),
        ("Time, ms", *(_ms(s.us) for s in (naive, ours)), f"{naive.us / ours.us:.1f}"),
        ("The copy would take for these bytes, ms", *(_ms(s.for_bytes) for s in (naive, ours)),
         f"{naive.for_bytes / ours.for_bytes:.1f}"),
        ("The matrix product would take for these FLOP, ms",
         *(_ms(s.for_flops) for s in (naive, ours)), f"{naive.for_flops / ours.for_flops:.1f}"),
        ("So its roof is that of", naive.limit, ours.limit, ""),
        ("Share of its own roof", of_naive, of_ours,
         f"{naive.share / ours.share:.2f}"),
    ]  # fmt: skip
    head = (label(timed["shape"]), "Three kernels", "One kernel", "Ratio")
    fewer, faster = naive.byte_count / ours.byte_count, naive.us / ours.us
    told = (
        f"**{fewer:.0f} times fewer bytes, {faster:.1f} times less time.** At their roofs three "
        f"kernels need {_ms(naive.least)} ms for their {naive.limit}, one kernel "
        f"{_ms(ours.least)} ms for its {ours.limit}: {roofs} times. Three kernels run at "
        f"{of_naive} of their roof and one at {of_ours} of its own, and {roofs} "
        f"× {of_ours} / {of_naive} is the {faster:.1f} that was measured."
    )
    return f"{table(head, rows)}\n\n{told}"


def _factors(ratio: float, ours: float, naive: float) -> tuple[str, str, str]:
    """Return the factors of a speed-up with as many digits as it takes to check the product."""
    exact = f"{ratio * ours / naive:.1f}"
    for digits in range(4):
        factors = f"{ratio:.{digits + 1}f}", f"{ours:.{digits}%}", f"{naive:.{digits}%}"
        first, second, third = (float(factor.rstrip("%")) for factor in factors)
        if third and f"{first * second / third:.1f}" == exact:
            break
    return factors


def _largest(result: Result) -> tuple[Row, Side, Side] | None:
    """Return the case with the most work of those that both implementations have whole."""
    counted = {
        (row["implementation"], case_of(row)): row["dram_read"] + row["dram_write"]
        for row in (result["counters"] if isinstance(result["counters"], list) else [])
    }
    found: dict[Any, dict[str, Row]] = {}
    for row in result["rows"]:
        if "us" in row and (row["implementation"], case_of(row)) in counted:
            found.setdefault(case_of(row), {})[row["implementation"]] = row
    whole = [rows for rows in found.values() if rows.keys() >= NAMES.keys()]
    if not whole:
        return None
    rows = max(whole, key=lambda rows: int(rows["ours"]["flops"]))
    naive, ours = (
        _side(result, rows[name], counted[name, case_of(rows[name])]) for name in ("eager", "ours")
    )
    return rows["ours"], naive, ours


def _side(result: Result, row: Row, byte_count: int) -> Side:
    ceilings = result["sessions"][row["session"]]["ceilings"]
    return Side(
        byte_count,
        row["us"][1],
        row["us"][1] * gb_per_s(byte_count, row["us"][1]) / ceilings["copy_gb_s"],
        row["us"][1] * tflop_per_s(row["flops"], row["us"][1]) / ceilings["matmul_tflop_s"],
    )


def _apart(result: Result) -> str:
    if isinstance(result["counters"], str):
        return f"Not counted: {result['counters']}."
    l2 = result["device"]["l2_bytes"]
    rows = []
    for row in result["counters"]:
        if row["implementation"] in NAMES and _tensor(row) > FAR_ABOVE_L2 * l2:
            reads, writes, tensors = _model(row)
            rows.append([
                f"{NAMES[row['implementation']]}, {label(row['shape'])}",
                f"{row['dram_read'] / reads:.3f}",
                f"{(writes - row['dram_write']) / 1e6:,.0f}",
                f"{tensors} × {l2 / 1e6:,.0f}",
            ])  # fmt: skip
    if not rows:
        return f"No counted case has tensors that are all larger than {FAR_ABOVE_L2} L2."
    return table(
        ("Case", "Read / model", "Written short of the model, MB", "L2 may hold, MB"), rows
    )


def _tensor(row: Row) -> int:
    """Bytes of the smallest tensor of an unmasked case with equal heads, else 0."""
    shape = row["shape"]
    if shape["causal"] or shape["H"] != shape["H_KV"]:
        return 0
    return int(2 * shape["B"] * shape["H"] * min(shape["N_Q"], shape["N_K"]) * shape["D"])


def _model(row: Row) -> tuple[int, int, int]:
    """Bytes that must be read, bytes that must be written, and how many tensors are written."""
    shape = row["shape"]
    heads, N_Q, N_K = shape["B"] * shape["H"], shape["N_Q"], shape["N_K"]
    queries, keys, scores = (2 * heads * n for n in (N_Q * shape["D"], N_K * shape["D"], N_Q * N_K))
    if row["implementation"] == "eager":  # S and P out and in again
        return queries + 2 * keys + 2 * scores, queries + 2 * scores, 3
    return queries + 2 * keys, queries + 4 * heads * N_Q, 2  # O and the fp32 logsumexp


def _ms(us: float) -> str:
    return f"{us / 1e3:.2f}"
