"""Result files and the journals of unfinished runs.

A result is replaced whole or not at all. Until a run is complete its measurements go to a journal
beside the result, one line each, so that a run killed at any moment loses at most the measurement
it was taking. A journal is continued only by the same code on the same device and versions.
"""

import hashlib
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def slug(device: str) -> str:
    """Return a device name as it stands in a file name: `NVIDIA H200` is `h200`."""
    name = re.sub(r"[^a-z0-9]+", "_", device.lower().replace("nvidia", "")).strip("_")
    if not name:
        raise ValueError(f"a device name needs a letter or a digit, got {device!r}")
    return name


def result_path(folder: Path, stem: str, device: str) -> Path:
    return folder / f"{stem}.{slug(device)}.json"


def dumps(value: object, indent: int | None = None) -> str:
    """Return strict JSON. Raises ValueError for NaN and infinity, which are no JSON."""
    return json.dumps(value, allow_nan=False, indent=indent)


def loads(text: str) -> Any:
    """Read strict JSON. Raises ValueError for NaN and infinity."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def write(path: Path, result: Record) -> None:
    """Write a result so that at every moment the file is the old one or the new one."""
    _replace(path, _layout(result))


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _layout(result: Record) -> str:
    """Strict JSON with one line for each row of a list, so that a change reads well in git."""
    parts = []
    for key, value in result.items():
        if isinstance(value, list) and value:
            rows = ",\n".join(f"    {dumps(row)}" for row in value)
            text = f"[\n{rows}\n  ]"
        else:
            text = dumps(value, indent=2).replace("\n", "\n  ")
        parts.append(f"  {dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


class Journal:
    """Finished measurements of one unfinished run.

    Parameters
    ----------
    path : the result's path; the journal is `<name>.<key>.partial` beside it.
    key : what must be equal for two sessions to join: source digest, versions, device, method.
    also : further folders where a journal to continue may lie; the longest one is taken.
    """

    def __init__(self, path: Path, key: Record, also: tuple[Path, ...] = ()) -> None:
        self.key: Record = loads(dumps(key))
        mark = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:8]
        self.path = path.with_suffix(f".{mark}.partial")
        self.records: list[Record] = []
        for folder in (self.path.parent, *also):
            found = _read(folder / self.path.name)
            if found and found[0] == {"key": self.key} and len(found) - 1 > len(self.records):
                self.records = found[1:]
        self._whole = False  # whether the file is known to end with a whole line of ours

    def add(self, record: Record) -> None:
        """Append one finished measurement and make sure that it is on the disk."""
        record = loads(dumps(record))
        if self._whole:
            with self.path.open("a", encoding="utf-8") as out:
                out.write(f"{dumps(record)}\n")
                out.flush()
                os.fsync(out.fileno())
        else:  # what an interruption cut off must not stand before the new line
            lines = [{"key": self.key}, *self.records, record]
            _replace(self.path, "".join(f"{dumps(line)}\n" for line in lines))
            self._whole = True
        self.records.append(record)

    def of(self, kind: str) -> list[Any]:
        """Return what the records of one kind hold, in order."""
        return [record[kind] for record in self.records if kind in record]

    def close(self) -> None:
        """Remove the journal; its run is complete."""
        self.path.unlink(missing_ok=True)


def _read(path: Path) -> list[Record]:
    """Return the whole lines of a journal; a line cut off by an interruption ends it."""
    records: list[Record] = []
    if not path.exists():
        return records
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            records.append(loads(line.decode("utf-8")))
        except ValueError:
            break
    return records
