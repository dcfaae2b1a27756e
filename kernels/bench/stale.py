"""`python -m kernels.bench.stale`: which results were measured with other code than this."""

import sys
from pathlib import Path

from kernels.bench.digest import source_digest
from kernels.bench.schema import InvalidError, read

RESULTS = Path(__file__).resolve().parents[1] / "results"


def is_stale(result: dict[str, object]) -> bool:
    """Return whether the kernel's code is another now than when it was measured."""
    run = result["run"]
    assert isinstance(run, dict)
    return bool(run["source_digest"] != source_digest(f"kernels.{result['kernel']}"))


def main(folder: Path = RESULTS) -> int:
    """Print a line for each result file. Returns 1 if one is invalid, else 0."""
    worst = 0
    for path in sorted(folder.glob("*.json")):
        try:
            stale = is_stale(read(path))
            verdict = "stale: its code has changed since" if stale else "fresh"
        except InvalidError as fault:
            worst, verdict = 1, f"invalid: {fault}"
        print(f"{path.name:40} {verdict}")
    if not any(folder.glob("*.json")):
        print("no result has been captured yet")
    return worst


if __name__ == "__main__":
    sys.exit(main())
