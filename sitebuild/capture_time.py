"""How long a capture took: cases, timed work and starts of sessions, from the result files."""

from datetime import datetime
from html import escape
from itertools import pairwise
from pathlib import Path

from kernels.bench.cases import JOBS
from sitebuild.kernel_results import (
    ABSENT,
    RESULTS,
    Result,
    case_of,
    device,
    framed,
    results,
    table,
)

PAUSE_MIN = 120.0  # a longer gap between two sessions is no work


def duration(folder: Path = RESULTS) -> str:
    """Return a row for each kernel and device, in the order in which they were measured."""
    found = [result for stem in JOBS for result in results(stem, folder)]
    if not found:
        return ABSENT
    found.sort(key=lambda result: (device(result), _began(result)))
    ends = {id(a): _minutes(a, b) for a, b in pairwise(found) if device(a) == device(b)}
    rows = [_row(result, ends.get(id(result))) for result in found]
    head = ("Kernel", "Device", "Cases", "Timed calls", "Seconds in them", "Minutes in all")
    return framed(table(head, rows))


def _row(result: Result, minutes: float | None) -> list[str]:
    timed = [row for row in result["rows"] if "us" in row]
    return [
        result["kernel"],
        escape(device(result)),
        f"{len({case_of(row) for row in result['rows']})}",
        f"{sum(row['repetitions'] for row in timed):,}",
        f"{sum(row['repetitions'] * row['us'][1] for row in timed) / 1e6:.1f}",
        "–" if minutes is None or minutes > PAUSE_MIN else f"{minutes:.1f}",
    ]


def _began(result: Result) -> datetime:
    return datetime.fromisoformat(result["sessions"][0]["date"])


def _minutes(one: Result, next_one: Result) -> float:
    return (_began(next_one) - _began(one)).total_seconds() / 60
