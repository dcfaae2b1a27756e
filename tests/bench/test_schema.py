"""The schema takes a good result and refuses it when any one field is broken."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernels.bench.schema import InvalidError, faults, read
from kernels.bench.stale import RESULTS

Result = dict[str, Any]
US = [1.0, 2.0, 3.0]


def put(*path: Any, value: Any) -> Callable[[Result], None]:
    def change(result: Result) -> None:
        place: Any = result
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


def drop(*path: Any) -> Callable[[Result], None]:
    def change(result: Result) -> None:
        place: Any = result
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


def test_a_good_result_passes(result: Result) -> None:
    assert faults(result) == []


def test_the_reason_for_no_counters_passes(result: Result) -> None:
    assert faults(result | {"counters": "ncu is not installed"}) == []


@pytest.mark.parametrize(
    "field",
    ["format", "kernel", "run", "device", "method", "sessions", "exactness", "rows", "counters",
     "uncounted", "launches"],
)  # fmt: skip
def test_no_part_may_be_missing(result: Result, field: str) -> None:
    del result[field]
    assert faults(result) == [f"the file: '{field}' is a required property"]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (put("format", value=2), "format"),
        (put("kernel", value="Soft Max"), "kernel"),
        (put("more", value=1), "the file"),
        (put("run", "date", value="yesterday"), "run/date"),
        (put("run", "commit", value=None), "run/commit"),
        (put("run", "commit", value=""), "run/commit"),
        (put("run", "dirty", value="no"), "run/dirty"),
        (put("run", "source_digest", value="abc"), "run/source_digest"),
        (put("run", "left", value=-1), "run/left"),
        (drop("run", "torch"), "run"),
        (put("device", "sm_count", value=0), "device/sm_count"),
        (put("device", "l2_bytes", value=1.5), "device/l2_bytes"),
        (put("device", "power_limit_w", value=-1), "device/power_limit_w"),
        (put("method", "quantiles", value=[0.5]), "method/quantiles"),
        (put("method", "l2", value="tepid"), "method/l2"),
        (put("sessions", value=[]), "sessions"),
        (put("sessions", 0, "ceilings", "copy_gb_s", value=0), "sessions/0/ceilings/copy_gb_s"),
        (put("sessions", 0, "clocks", "sm_mhz", value={"min": 1}), "sessions/0/clocks"),
        (put("exactness", 0, "error", value=-0.1), "exactness/0/error"),
        (put("exactness", 0, "error", value=None), "exactness/0"),
        (put("exactness", 1, "passed", value=True), "exactness/1/passed"),
        (put("rows", value=[]), "rows"),
        (put("rows", 0, "implementation", value="theirs"), "rows/0/implementation"),
        (put("rows", 0, "pass", value="sideways"), "rows/0/pass"),
        (put("rows", 0, "dtype", value="fp7"), "rows/0/dtype"),
        (put("rows", 0, "shape", value={}), "rows/0/shape"),
        (put("rows", 0, "shape", "N_Q", value=-1), "rows/0/shape/N_Q"),
        (put("rows", 0, "us", value=[1.0, 2.0]), "rows/0/us"),
        (put("rows", 0, "us", value=[0.0, 1.0, 2.0]), "rows/0/us/0"),
        (put("rows", 0, "us", value=[1.0, None, 2.0]), "rows/0/us/1"),
        (put("rows", 0, "model_bytes", value=1.5), "rows/0/model_bytes"),
        (put("rows", 0, "error", value="both"), "rows/0"),
        (put("rows", 2, "us", value=US), "rows/2"),
        (drop("rows", 0, "us"), "rows/0"),
        (drop("rows", 2, "error"), "rows/2"),
        (put("rows", 2, "error", value=""), "rows/2/error"),
        (put("counters", value=""), "counters"),
        (put("counters", value=[]), "counters"),
        (put("counters", 0, "dram_read", value=1.5), "counters"),
        (put("counters", 0, "dram_write", value=-1), "counters"),
        (drop("uncounted", 0, "reason"), "uncounted/0"),
        (drop("launches", 0, "graph_us"), "launches/0"),
    ],
)
def test_a_broken_field_is_named(
    result: Result, change: Callable[[Result], None], where: str
) -> None:
    change(result)
    assert [fault for fault in faults(result) if fault.startswith(f"{where}")]


def test_a_damaged_file_is_named_with_its_fault(tmp_path: Path, result: Result) -> None:
    path = tmp_path / "softmax.a.json"
    path.write_text(json.dumps(result).replace("16000.0", "NaN"))
    with pytest.raises(InvalidError, match=r"softmax\.a\.json: NaN is not JSON"):
        read(path)
    path.write_text(json.dumps(result)[:-5])
    with pytest.raises(InvalidError, match=r"softmax\.a\.json: Expecting"):
        read(path)
    path.write_text(json.dumps(copy.deepcopy(result) | {"format": 7}))
    with pytest.raises(InvalidError, match=r"softmax\.a\.json: format: 1 was expected"):
        read(path)


def test_every_captured_result_is_valid() -> None:
    assert [read(path)["format"] for path in RESULTS.glob("*.json")] == [1] * len(
        list(RESULTS.glob("*.json"))
    )
