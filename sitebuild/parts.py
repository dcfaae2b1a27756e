"""What belongs to a stem: `make show STEM=roofline` lists its files.

A lesson has, beside its own stem, those of the labs that it runs and of its exercises.
"""

import re
import subprocess
import sys
from pathlib import Path

from sitebuild.labs import ROOT

USED = re.compile(r'^print\((?:run\("snippets\.|exercise\(")(\w+)"\)\)$', re.M)


def parts(stem: str, root: Path = ROOT) -> list[str]:
    """Return the stem and, where a lesson has it, those of its labs and exercises."""
    page = root / "docs" / "lessons" / f"{stem}.md"
    used = USED.findall(page.read_text("utf-8")) if page.is_file() else []
    return list(dict.fromkeys([stem, *used]))


def files(stem: str, tracked: list[str]) -> list[str]:
    """Return the files that are named for the stem, or for a part of it among labs and exercises.

    A folder's name counts too.
    """
    own, *others = parts(stem)

    def is_named(file: str) -> bool:
        steps = {step.split(".")[0].removeprefix("test_") for step in file.split("/")}
        of_labs = bool(steps & {"snippets", "practice"})
        return own in steps or (of_labs and bool(steps & set(others)))

    return [file for file in tracked if is_named(file)]


def main() -> int:
    (stem,) = sys.argv[1:]
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = files(stem, tracked.stdout.splitlines())
    print("\n".join(found) or f"no file is named {stem}")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
