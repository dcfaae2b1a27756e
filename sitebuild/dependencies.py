"""The dependencies page's table, from pyproject.toml, the locks and the licences beside them."""

import json
import re
import tomllib
from pathlib import Path

from sitebuild.labs import ROOT

LOCKS = ROOT / "requirements"
LICENCES = LOCKS / "licences.json"
PINNED = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)", re.M)
OUTSIDE = re.compile(r"^(?P<name>TORCH|TRITON)_VERSION = (?P<version>\S+)$", re.M)


def direct(pyproject: Path = ROOT / "pyproject.toml") -> dict[str, list[str]]:
    """Return group -> names of the packages that pyproject.toml asks for itself."""
    groups = tomllib.loads(pyproject.read_text("utf-8"))["dependency-groups"]
    return {
        group: [normal(entry) for entry in entries if isinstance(entry, str)]
        for group, entries in groups.items()
    }


def normal(requirement: str) -> str:
    """Return the name in a requirement as locks write it: `types-pyyaml` for `types-PyYAML>=6`."""
    name = re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(folder: Path = LOCKS) -> dict[str, list[str]]:
    """Return package -> its versions in the locks, for older Pythons first."""
    found: dict[str, list[str]] = {}
    for lock in sorted(folder.glob("*.txt")):
        for match in PINNED.finditer(lock.read_text("utf-8")):
            versions = found.setdefault(match["name"], [])
            if match["version"] not in versions:
                versions.append(match["version"])
    return found


def outside_the_lock(makefile: Path = ROOT / "Makefile") -> dict[str, str]:
    """Return package -> version of what the Makefile pins itself, as the build of torch varies."""
    found = OUTSIDE.finditer(makefile.read_text("utf-8"))
    return {match["name"].lower(): match["version"] for match in found}


def table() -> str:
    """Return the locked packages as a Markdown table, those we ask for ourselves first."""
    asked = {name for names in direct().values() for name in names}
    licences = json.loads(LICENCES.read_text("utf-8"))
    rows = [
        (name, " or ".join(versions), licences[name]["licence"])
        for name, versions in sorted(
            locked().items(), key=lambda item: (item[0] not in asked, item)
        )
    ]
    ours = [f"| {name} | {versions} | {licence} |" for name, versions, licence in rows]
    head = ["| Package | Version | Licence |", "| --- | --- | --- |"]
    first, rest = ours[: len(asked)], ours[len(asked) :]
    brought = [f"    {line}" for line in [*head, *rest]]
    title = f'??? note "The {len(rest)} packages that these bring along"'
    return "\n".join([*head, *first, "", title, "", *brought])
