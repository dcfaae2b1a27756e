"""Write `requirements/licences.json`: the licence of every locked package, by its own metadata.

`make lock` runs this once the locked versions are installed. What is locked for other systems
only is downloaded to be read.
"""

import json
import subprocess
import sys
import tempfile
from email.message import Message
from email.parser import Parser
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

from sitebuild.dependencies import LICENCES, locked


def licence(of: Message, text: str = "") -> str:
    """Return the licence that a package's metadata names, or else the first line of its text."""
    if expression := of.get("License-Expression"):
        return str(expression)
    classifiers = [c.split(" :: ")[-1] for c in of.get_all("Classifier", []) if "License ::" in c]
    if classifiers:
        return " and ".join(classifiers)
    first, *_ = [*str(of.get("License") or text).strip().splitlines(), ""]
    if not first:
        raise ValueError(f"{of['Name']} {of['Version']} names no licence in its metadata")
    return first


def metadata_of(name: str, versions: list[str]) -> tuple[Message, str]:
    """Return metadata and licence text of a package as installed, or else fetched to be read."""
    try:
        installed = metadata.distribution(name)
        if installed.version in versions:
            found = Parser().parsestr(installed.read_text("METADATA") or "")
            return found, installed.read_text(f"licenses/{found.get('License-File')}") or ""
    except metadata.PackageNotFoundError:
        pass
    with tempfile.TemporaryDirectory() as folder:
        command = f"-m pip --quiet download --no-deps --only-binary :all: --dest {folder}"
        subprocess.run([sys.executable, *command.split(), f"{name}=={versions[-1]}"], check=True)
        with ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            file = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
            return Parser().parsestr(wheel.read(file).decode()), ""


def main() -> None:
    """Write one line a package, so that a change of licence shows as one line."""
    lines = []
    for name, versions in sorted(locked().items()):
        found, text = metadata_of(name, versions)
        entry = {"version": found["Version"], "licence": licence(found, text)}
        lines.append(f"  {json.dumps(name)}: {json.dumps(entry)}")
    LICENCES.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
