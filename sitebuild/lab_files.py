"""Write what labs need to run in the page: the repository's own files, and a list for each lab."""

import json
import shutil
from pathlib import Path

from sitebuild.labs import ROOT, source_files

RESULTS = ROOT / "kernels" / "results"
READS_RESULTS = ROOT / "snippets" / "captured.py"


def labs() -> list[str]:
    """Return the stems of all labs in the order of their names."""
    return sorted(p.stem for p in (ROOT / "snippets").glob("*.py") if p.stem != "__init__")


def needs(stem: str) -> list[str]:
    """Return the paths of the files that one lab runs and reads, its own first."""
    files = source_files(f"snippets.{stem}")
    if READS_RESULTS in files:
        files += sorted(RESULTS.glob("*.json"))
    paths = [path.relative_to(ROOT).as_posix() for path in files]
    return sorted(paths, key=lambda path: path != f"snippets/{stem}.py")


def write_lab_files(site: Path) -> None:
    """Write `assets/labs/<stem>.json`, the list, and the files under their own paths beside it."""
    folder = site / "assets" / "labs"
    for stem in labs():
        paths = needs(stem)
        for path in paths:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, target)
        (folder / f"{stem}.json").write_text(json.dumps(paths) + "\n", "utf-8")
