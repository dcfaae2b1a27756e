"""Which kernel the launcher picked in the captured cases: a slower one is never silent about it."""

from pathlib import Path

from sitebuild.kernel_results import RESULTS, Result, each, table


def paths(stem: str, folder: Path = RESULTS) -> str:
    """Return which kernel ran in how many cases of ours, and why not a faster one."""
    return each(stem, _paths, folder)


def _paths(result: Result) -> str:
    counts: dict[tuple[str, str, str], int] = {}
    for row in result["rows"]:
        for name, beside in (("path", ""), ("gradients_path", ", backward")):
            if name in row:
                ran = row[name]
                key = f"{row['pass']}{beside}", ran["kernel"], ran["reason"]
                counts[key] = counts.get(key, 0) + 1
    if not counts:
        return "This capture did not record which kernel ran."
    rows = [[which, f"`{kernel}`", why or "–", f"{n}"]
            for (which, kernel, why), n in counts.items()]  # fmt: skip
    head = ("Pass", "What ours ran", "Why none faster", "Cases")
    return table(head, rows)
