"""Lines of what a lab prints, for an answer that a page gives before the lab."""

from sitebuild.labs import run


def excerpt(module: str, *starts: str) -> str:
    """Return the lines of a lab's output that begin with `starts`, however their words are spaced.

    Raises
    ------
    ValueError
        If a start begins no line or several: an answer must not change unnoticed.
    """
    lines = run(module).splitlines()
    found = []
    for start in starts:
        matching = [line for line in lines if f"{' '.join(line.split())} ".startswith(start)]
        if len(matching) != 1:
            raise ValueError(f"{len(matching)} lines of {module} begin with {start!r}, not one")
        found += matching
    return "\n".join(found)
