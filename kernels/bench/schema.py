"""Holds a result file against its schema."""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from kernels.bench.store import loads

SCHEMA = Path(__file__).with_name("schema.json")


class InvalidError(ValueError):
    """A result file that no page may show. The message names file and fault."""


def faults(result: Any) -> list[str]:
    """Return what is wrong with a result, place first; [] for a good one.

    Where jsonschema is not installed nothing is checked: the machine that measures may lack it,
    and the tests check every committed file.
    """
    try:
        import jsonschema
    except ImportError:
        return []
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))
    found = sorted(validator.iter_errors(result), key=lambda fault: list(map(str, fault.path)))
    return [f"{'/'.join(map(str, f.absolute_path)) or 'the file'}: {f.message}" for f in found]


def read(path: Path) -> dict[str, Any]:
    """Return a result. Raises InvalidError if it is no strict JSON or not of the schema."""
    text = path.read_text("utf-8")
    try:
        result: dict[str, Any] = loads(text)
    except ValueError as fault:
        raise InvalidError(f"{path.name}: {fault}") from fault
    if found := _faults_of(text):
        raise InvalidError(f"{path.name}: {found[0]}")
    return result


@lru_cache  # one build shows the same file many times, and a check takes half a second
def _faults_of(text: str) -> list[str]:
    return faults(loads(text))
