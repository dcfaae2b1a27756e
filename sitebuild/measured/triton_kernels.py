"""Where the real softmax kernel stands: a narrow, a middle and a wide row beside its peers."""

from pathlib import Path

from sitebuild.kernel_answer import Standing, standings
from sitebuild.kernel_results import RESULTS, Result, each, label, rates, same_case, table

STEM, PAGE = "softmax", "../kernels/softmax.md"


def rows(folder: Path = RESULTS) -> str:
    """Return three widths of the largest size in GB/s, for each device."""
    return each(STEM, _rows, folder, PAGE)


def _rows(result: Result) -> str:
    found = standings(result).get(("forward", "bf16"), [])
    if not found:
        return "No case was timed."
    largest = max(one.row["model_bytes"].bit_length() for one in found)
    sized = [one for one in found if one.row["model_bytes"].bit_length() == largest]
    by_width = sorted(sized, key=lambda one: int(one.row["shape"]["N"]))
    picked = [by_width[i] for i in sorted({0, len(by_width) // 2, len(by_width) - 1})]
    every = [r for one in picked for r in same_case(result, one.row)]
    peers = list(dict.fromkeys(r["implementation"] for r in every))
    lines = [_line(result, one, peers) for one in picked]
    return table(("bf16, GB/s of model bytes", *peers, "of the copy"), lines)


def _line(result: Result, one: Standing, peers: list[str]) -> list[str]:
    timed = {r["implementation"]: rates(r, False)[0] for r in same_case(result, one.row)}
    cells = [f"{timed[name]:,.0f}" if name in timed else "–" for name in peers]
    return [label(one.row["shape"]), *cells, f"{one.share:.0%}"]
