"""Bytes that hardware counters saw, read from the captured results of one kernel.

What to notice: nothing is filled in. Where no result exists the answer is an empty list, and a
damaged file is an error that names the file, not a number that looks like a measurement.

Run it: `python -m snippets.captured`
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).resolve().parent.parent / "kernels" / "results"
FIELDS = ("model_bytes", "dram_read", "dram_write", "l2_bytes")


class Counted(NamedTuple):
    implementation: str
    direction: str  # forward or backward
    dtype: str
    shape: dict[str, int]
    model_bytes: int  # by the model in the kernel's own file
    read: int  # bytes from HBM
    written: int  # bytes to HBM
    l2: int  # bytes through the L2, its own traffic with HBM included
    issued_bytes: int | None  # by the tiles that ran; a library's are not known
    origin: str  # device, date and commit

    def case(self) -> str:  # as in `B4 H16 N4096 D64 causal`
        same = {"H_KV": "H", "N_K": "N_Q"}  # shown where the two differ
        shape = {n: s for n, s in self.shape.items() if s != self.shape.get(same.get(n, ""))}
        text = " ".join(n if s is True else f"{n}{s}" for n, s in shape.items() if s is not False)
        return text if "N_K" in shape else text.replace("N_Q", "N")


# --8<-- [start:counters]
def counters(stem: str, folder: Path = RESULTS) -> list[Counted]:
    """Every counted row of `<stem>.<device>.json`, in order; [] if there is no such file."""
    if not stem.isidentifier():
        raise ValueError(f"a stem is a name such as 'flash_attention', got {stem!r}")
    found = []
    for path in sorted(folder.glob(f"{stem}.*.json")):
        try:
            found += _rows(json.loads(path.read_text("utf-8"), parse_constant=_refuse))
        except (ValueError, KeyError, TypeError, AttributeError) as fault:
            raise ValueError(f"{path.name}: {type(fault).__name__}: {fault}") from fault
    return found


# --8<-- [end:counters]


def _rows(result: Any) -> list[Counted]:
    if isinstance(result["counters"], str):  # the reason why nothing was counted
        return []
    run, device = result["run"], result["device"]
    origin = f"{device['name']}, {run['date'][:10]}, commit {run['commit'][:10]}"
    return [_counted(row, origin) for row in result["counters"]]


def _counted(row: Any, origin: str) -> Counted:
    model, read, written, l2 = (_count(row, field) for field in FIELDS)
    issued = None if row.get("issued_bytes") is None else _count(row, "issued_bytes")
    case = (row["implementation"], row["pass"], row["dtype"], dict(row["shape"]))
    return Counted(*case, model, read, written, l2, issued, origin)


def _count(row: Any, name: str) -> int:
    if type(row[name]) is not int or row[name] < 0:
        raise ValueError(f"{name} must be an integer of at least 0, got {row[name]!r}")
    return int(row[name])


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def main() -> None:
    for row in (rows := counters("flash_attention")):
        name = f"{row.implementation} {row.case()}"
        print(f"{name:36} {row.read / 1e6:12.2f} {row.written / 1e6:12.2f} MB")
    print(f"{len(rows)} counted rows" if rows else "not captured yet")


if __name__ == "__main__":
    main()
