"""What a reader of a kernel page wants first: how far from the roof, and how far from the peers.

Every timed case counts, the unfavourable ones too; only times that are mostly launch are left out,
since they say nothing about a kernel.
"""

from html import escape
from math import exp, log
from pathlib import Path
from statistics import median
from typing import NamedTuple

from kernels.bench.stale import is_stale
from sitebuild.kernel_results import (
    ABSENT,
    BY_FLOP,
    LAUNCH_BOUND_US,
    RESULTS,
    STEMS,
    Result,
    Row,
    best_case,
    best_peer,
    ceiling,
    ceiling_name,
    device,
    each,
    framed,
    is_peer,
    label,
    rates,
    results,
    table,
    unit_of,
)


class Standing(NamedTuple):
    """Where one case of ours stands."""

    row: Row
    share: float  # of the ceiling measured beside it
    lead: float | None  # our rate over the best peer's
    peer: str  # its name, empty where there is none

    @property
    def mostly_launch(self) -> bool:
        return bool(self.row["us"][1] < LAUNCH_BOUND_US)


def standings(result: Result) -> dict[tuple[str, str], list[Standing]]:
    """Return every timed case of ours, by direction and data type."""
    groups: dict[tuple[str, str], list[Standing]] = {}
    by_flop = result["kernel"] in BY_FLOP
    for row in result["rows"]:
        if row["implementation"] != "ours" or "us" not in row:
            continue
        rival = best_peer(result, row)
        share = rates(row, by_flop)[0] / ceiling(result, row)
        lead = rival["us"][1] / row["us"][1] if rival else None
        standing = Standing(row, share, lead, rival["implementation"] if rival else "")
        groups.setdefault((row["pass"], row["dtype"]), []).append(standing)
    return groups


def answer(stem: str, folder: Path = RESULTS) -> str:
    """Return share of the roof, lead over the peers, bytes and errors in a few lines."""
    return each(stem, _answer, folder)


def overview(folder: Path = RESULTS) -> str:
    """Return one table of all kernels and devices: forward in the first data type."""
    rows, left = [], 0
    for stem in STEMS:
        for result in results(stem, folder):
            if (best := best_case(result)) is not None:
                rows.append(_overview_row(stem, result, best))
                left += sum(one.mostly_launch for one in standings(result)["forward", "bf16"])
    if not rows:
        return ABSENT
    head = ("Kernel", "Device", "Cases", "Of the ceiling", "Over the best peer", "Largest case")
    text = table(head, rows).replace(" --: |\n", " :-- |\n")  # a case is text
    return framed(f"{text}\n\n{left_out(left)}" if left else text)


def _answer(result: Result) -> str:
    rows, counted, timed = [], [], 0
    for (direction, dtype), every in standings(result).items():
        found = [one for one in every if not one.mostly_launch]
        rows.append([f"{direction}, {dtype}", *_summary(every)])
        counted += found
        timed += len(every)
    head = (
        "Pass, dtype",
        "Cases",
        f"Of the {ceiling_name(result)}",
        "Over the best peer",
        "Ahead in",
    )
    summary = table(head, rows) if rows else "No case was timed."
    facts = [*_weakest(result, counted), *_counted(result), *_checked(result)]
    facts += _fewer(result)
    facts += [left_out(timed - len(counted))] if timed > len(counted) else []
    return "\n\n".join([summary, "\n".join(f"- {fact}" for fact in facts)])


def missing_peers(result: Result) -> dict[tuple[str, str], list[str]]:
    """Return by pass and data type the peers that were timed in another data type alone."""
    timed: dict[tuple[str, str], dict[str, None]] = {}  # names in order
    for row in result["rows"]:
        if "us" in row:
            found = timed.setdefault((row["pass"], row["dtype"]), {})
            found |= {row["implementation"]: None} if is_peer(row["implementation"]) else {}
    missing = {}
    for (direction, dtype), found in timed.items():
        alike = [names for (of, _), names in timed.items() if of == direction]
        every = dict.fromkeys(name for names in alike for name in names)
        missing[direction, dtype] = [name for name in every if name not in found]
    return {group: names for group, names in missing.items() if names}


def _fewer(result: Result) -> list[str]:
    groups: dict[str, list[str]] = {}
    for (direction, dtype), names in missing_peers(result).items():
        groups.setdefault(", ".join(names), []).append(f"{direction}, {dtype}")
    return [f"Fewer peers in {' and '.join(of)}: without {names}." for names, of in groups.items()]


def left_out(count: int) -> str:
    cases = "1 case takes" if count == 1 else f"{count} cases take"
    return (
        f"{cases} under {LAUNCH_BOUND_US:.0f} us, mostly launch: left out of medians, means and "
        "counts."
    )


def _summary(every: list[Standing]) -> list[str]:
    """Number of cases, median share, mean lead and how often ours is the fastest, with ranges."""
    found = [one for one in every if not one.mostly_launch]
    shares = [one.share for one in found]
    leads = [one.lead for one in found if one.lead is not None]
    cells = [f"{len(found)} of {len(every)}" if len(found) < len(every) else str(len(every))]
    cells += [spread(median(shares), shares, ".0%") if shares else "–"]
    cells += [spread(mean_ratio(leads), leads, ".2f") if leads else "–"]
    return [*cells, f"{sum(lead > 1 for lead in leads)} of {len(leads)}" if leads else "–"]


def spread(middle: float, every: list[float], form: str) -> str:
    """Return a middle with the least and the most beside it, as a cell of a table."""
    return f"{middle:{form}} <small>{min(every):{form}} – {max(every):{form}}</small>"


def _weakest(result: Result, found: list[Standing]) -> list[str]:
    facts = []
    if found:
        low = min(found, key=lambda one: one.share)
        text = f"{_case(low.row)}, at {low.share:.0%} of the {ceiling_name(result)}."
        facts.append(f"Furthest from the roof: {text}")
    if beside := [(one.lead, one) for one in found if one.lead is not None]:
        lead, least = min(beside, key=lambda pair: pair[0])
        facts.append(f"Weakest beside a peer: {_case(least.row)}, at {lead:.2f} of {least.peer}.")
    return facts


def _counted(result: Result) -> list[str]:
    rows = result["counters"] if isinstance(result["counters"], list) else []
    ours = [row for row in rows if row["implementation"] == "ours" and row["model_bytes"]]
    largest = max(ours, key=lambda row: int(row["model_bytes"]), default=None)
    if largest is None:
        return []
    ratio = (largest["dram_read"] + largest["dram_write"]) / largest["model_bytes"]
    return [f"Counted in DRAM at {label(largest['shape'])}: {ratio:.3f} of the model's bytes."]


def _checked(result: Result) -> list[str]:
    ours = [row for row in result["exactness"] if row["implementation"] == "ours"]
    passed = sum(row["passed"] for row in ours)
    return [f"Exact enough: {passed} of {len(ours)} outputs checked."] if ours else []


def _case(row: Row) -> str:
    return f"{label(row['shape'])}, {row['pass']}, {row['dtype']}"


def mean_ratio(ratios: list[float]) -> float:
    """Return the geometric mean, the only mean of ratios that does not favour one side."""
    return exp(sum(map(log, ratios)) / len(ratios))


def _overview_row(stem: str, result: Result, largest: Row) -> list[str]:
    mine = rates(largest, stem in BY_FLOP)[0]
    cases, share, lead, _ = _summary(standings(result)["forward", "bf16"])
    return [
        f"[{stem}]({stem}.md){' (stale)' if is_stale(result) else ''}",
        escape(device(result)),
        cases,
        share,
        lead,
        f"{label(largest['shape'])}: {mine:,.0f} {unit_of(result)}",
    ]
