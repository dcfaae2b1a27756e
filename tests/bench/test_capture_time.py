"""How long a capture took, computed by hand from two made-up results of one device."""

from pathlib import Path
from typing import Any

from kernels.bench.store import result_path, write
from sitebuild.capture_time import duration
from sitebuild.kernel_results import ABSENT

CELLS = "1 | 24 | 0.4"  # one case; 12 calls of 16 ms and 12 of 20 ms


def put(folder: Path, result: dict[str, Any], kernel: str, date: str, device: str) -> None:
    result["sessions"][0]["date"] = date
    result["device"]["name"] = device
    write(result_path(folder, kernel, device), result | {"kernel": kernel})


def test_says_so_when_nothing_is_captured(tmp_path: Path) -> None:
    assert duration(tmp_path) == ABSENT


def test_a_kernel_takes_until_the_next_begins(tmp_path: Path, result: dict[str, Any]) -> None:
    put(tmp_path, result, "matmul", "2031-02-03T04:05:06Z", "A card")
    put(tmp_path, result, "softmax", "2031-02-03T04:02:36Z", "A card")
    lines = duration(tmp_path).splitlines()
    first = lines.index(f"| softmax | A card | {CELLS} | 2.5 |")
    assert lines[first + 1] == f"| matmul | A card | {CELLS} | – |"


def test_a_long_pause_and_another_device_are_no_work(
    tmp_path: Path, result: dict[str, Any]
) -> None:
    put(tmp_path, result, "softmax", "2031-02-03T04:00:00Z", "A card")
    put(tmp_path, result, "matmul", "2031-02-05T04:00:00Z", "A card")
    put(tmp_path, result, "softmax", "2031-02-03T04:01:00Z", "B <card>")
    text = duration(tmp_path)
    assert f"| softmax | A card | {CELLS} | – |" in text
    assert f"| softmax | B &lt;card&gt; | {CELLS} | – |" in text
