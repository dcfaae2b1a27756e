"""Which kernel the launcher picked in the captured cases: a slower one is never silent about it."""

from pathlib import Path

from sitebuild.kernel_results import RESULTS, Result, each, table


def paths(stem: str, folder: Path = RESULTS) -> str:
    """Return which kernel ran in how many forward cases of ours, and why not a faster one."""
    return each(stem, _paths, folder)


def _paths(result: Result) -> str:
    counts: dict[tuple[str, str], int] = {}
    for row in result["rows"]:
        if "path" in row:
            ran = row["path"]["kernel"], row["path"]["reason"]
            counts[ran] = counts.get(ran, 0) + 1
    if not counts:
        return "This capture did not record which kernel ran."
    rows = [[f"`{kernel}`", why or "–", f"{n}"] for (kernel, why), n in counts.items()]
    return table(("What ours ran", "Why none faster", "Cases"), rows)
