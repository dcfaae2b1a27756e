"""Hold every locked version against the database of known vulnerabilities (OSV).

Run it: `make audit`. A database that cannot be reached is no clean result: it is said aloud, and
`make audit UNREACHABLE=fail`, which CI runs, then fails.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from sitebuild.dependencies import outside_the_lock
from sitebuild.labs import ROOT

LOCKS = ("test.txt", "npm.txt", "upkeep.txt")  # test.txt holds what docs.txt holds
COMMAND = (
    "-m pip_audit --disable-pip --no-deps --progress-spinner off --format json "
    "--vulnerability-service osv --timeout 20 --requirement"
)


class NotAuditedError(RuntimeError):
    """The database was not asked, or did not answer. The message says why."""


def vulnerabilities(answer: str, complaint: str) -> list[str]:
    """Return one line a vulnerability, from what pip-audit printed to both of its outputs.

    Raises
    ------
    NotAuditedError
        If there is no answer, or none on one of the packages.
    """
    try:
        packages = json.loads(answer)["dependencies"]
    except (ValueError, KeyError):
        last = complaint.strip().splitlines()[-1] if complaint.strip() else "no answer"
        raise NotAuditedError(last) from None
    if skipped := [f"{p['name']}: {p['skip_reason']}" for p in packages if "skip_reason" in p]:
        raise NotAuditedError(skipped[0])
    return [
        f"{package['name']} {package['version']}: {found['id']}, "
        f"mended in {', '.join(found['fix_versions']) or 'no version yet'}"
        for package in packages
        for found in package["vulns"]
    ]


def main() -> int:
    """Print what is known of each lock. Returns 1 for a vulnerability, or as asked for none."""
    pinned = "".join(f"{name}=={version}\n" for name, version in outside_the_lock().items())
    found: list[str] = []
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(pinned)
        file.flush()
        for lock in (*(ROOT / "requirements" / name for name in LOCKS), Path(file.name)):
            command = [sys.executable, *COMMAND.split(), str(lock)]
            done = subprocess.run(command, capture_output=True, text=True)
            try:
                found += vulnerabilities(done.stdout, done.stderr)
            except NotAuditedError as fault:
                print(f"NOT AUDITED: the database of vulnerabilities did not answer: {fault}")
                return int("fail" in sys.argv[1:])
    print("\n".join(sorted(set(found))) or "No known vulnerability in any locked version.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
