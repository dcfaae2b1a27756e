"""How exact and how fast the softmax kernel was on its two paths, rows held and rows streamed.

A streamed row is read twice, so the bytes that a case issues tell which path it took.
"""

from pathlib import Path
from statistics import median

from sitebuild.kernel_answer import Standing, mean_ratio, spread, standings
from sitebuild.kernel_results import RESULTS, Result, Row, case_of, each, table

STEM, PAGE = "softmax", "../kernels/softmax.md"
PATHS = ("held", "streamed")


def paths(folder: Path = RESULTS) -> str:
    """Return errors and rates of the softmax kernel by path and data type, for each device."""
    return each(STEM, _paths, folder, PAGE)


def path_of(row: Row) -> str:
    """Return which path a timed row of ours took."""
    return "streamed" if row["issued_bytes"] > row["model_bytes"] else "held"


def _paths(result: Result) -> str:
    errors = {case_of(e): e for e in result["exactness"] if e["implementation"] == "ours"}
    groups: dict[tuple[str, str], list[Standing]] = {}
    for (_, dtype), found in standings(result).items():
        for one in found:
            groups.setdefault((path_of(one.row), dtype), []).append(one)
    rows = []
    for (path, dtype), found in sorted(groups.items(), key=lambda item: PATHS.index(item[0][0])):
        checked = [errors[case_of(one.row)] for one in found if case_of(one.row) in errors]
        rows.append([f"{path}, {dtype}", *_widths(found), *_errors(checked), *_speed(found)])
    if not rows:
        return "No case was timed."
    head = ("Rows", "Widths", "Error", "Eager's", "Allowed", "Of the copy", "Over the best peer")
    return table(head, rows)


def _widths(found: list[Standing]) -> list[str]:
    widths = sorted({one.row["shape"]["N"] for one in found})
    return [f"{widths[0]:,} – {widths[-1]:,}" if len(widths) > 1 else f"{widths[0]:,}"]


def _errors(checked: list[Row]) -> list[str]:
    """Of the output that came nearest to its limit: error, eager's error, what was allowed."""
    known = [row for row in checked if row["error"] is not None]
    if not known:
        return ["–"] * 3
    worst = max(known, key=lambda row: float(row["error"] / (row["tolerance"] or 1)))
    return [f"{worst[name]:.1e}" if worst[name] is not None else "–"
            for name in ("error", "eager_error", "tolerance")]  # fmt: skip


def _speed(found: list[Standing]) -> list[str]:
    shares, leads = [one.share for one in found], [one.lead for one in found if one.lead]
    beside = spread(mean_ratio(leads), leads, ".2f") if leads else "–"
    return [spread(median(shares), shares, ".0%"), beside]
