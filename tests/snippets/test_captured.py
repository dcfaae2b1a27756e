"""Captured counters: read as written, absent as absent, damaged as an error naming the file."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from snippets import captured
from snippets.captured import counters, main

SHAPE = {"B": 4, "H": 16, "N": 4096, "D": 64}
RESULT: dict[str, Any] = {
    "kernel": "flash_attention",
    "run": {"date": "2031-02-03T04:05:06Z", "commit": "0123456789abcdef"},
    "device": {"name": "Some GPU"},
    "counters": [
        {
            "implementation": name,
            "pass": "forward",
            "dtype": "bf16",
            "shape": SHAPE,
            "model_bytes": 100,
            "dram_read": read,
            "dram_write": 20,
            "l2_bytes": 500,
            "issued_bytes": issued,
        }
        for name, read, issued in (("ours", 81, 700), ("eager", 6000, None))
    ],
}


def write(folder: Path, text: object, name: str = "flash_attention.some_gpu.json") -> None:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), "utf-8")


def changed(*path: Any, **replacement: object) -> dict[str, Any]:
    """A copy of RESULT in which the object at `path` has other values."""
    result = copy.deepcopy(RESULT)
    place: Any = result
    for step in path:
        place = place[step]
    place.update(replacement)
    return result


def without(field: str, *path: Any) -> dict[str, Any]:
    result = copy.deepcopy(RESULT)
    place: Any = result
    for step in path:
        place = place[step]
    del place[field]
    return result


def test_reads_every_counted_row_in_order(tmp_path: Path) -> None:
    write(tmp_path, RESULT)
    ours, eager = counters("flash_attention", tmp_path)
    assert ours[:4] == ("ours", "forward", "bf16", SHAPE)
    assert (ours.model_bytes, ours.read, ours.written, ours.l2) == (100, 81, 20, 500)
    assert (eager.implementation, eager.read, eager.written) == ("eager", 6000, 20)


def test_issued_bytes_are_those_of_the_counted_row_or_unknown(tmp_path: Path) -> None:
    write(tmp_path, RESULT)
    ours, eager = counters("flash_attention", tmp_path)
    assert ours.issued_bytes == 700
    assert eager.issued_bytes is None
    write(tmp_path, without("issued_bytes", "counters", 0))
    assert counters("flash_attention", tmp_path)[0].issued_bytes is None


def test_names_device_day_and_commit(tmp_path: Path) -> None:
    write(tmp_path, RESULT)
    origin = counters("flash_attention", tmp_path)[0].origin
    assert origin == "Some GPU, 2031-02-03, commit 0123456789"


def test_no_file_gives_an_empty_list(tmp_path: Path) -> None:
    assert counters("flash_attention", tmp_path) == []
    assert counters("flash_attention", tmp_path / "missing") == []


def test_a_reason_in_place_of_the_counters_gives_an_empty_list(tmp_path: Path) -> None:
    write(tmp_path, RESULT | {"counters": "the profiler is not permitted here"})
    assert counters("flash_attention", tmp_path) == []


def test_joins_devices_in_order_and_leaves_other_stems_alone(tmp_path: Path) -> None:
    write(tmp_path, changed("device", name="B"), "flash_attention.b.json")
    write(tmp_path, changed("device", name="A"), "flash_attention.a.json")
    write(tmp_path, changed("device", name="C"), "flash_attention_backward.a.json")
    names = [row.origin[0] for row in counters("flash_attention", tmp_path)]
    assert names == ["A", "A", "B", "B"]


@pytest.mark.parametrize(
    ("shape", "label"),
    [
        (SHAPE, "B4 H16 N4096 D64"),
        (SHAPE | {"causal": True}, "B4 H16 N4096 D64 causal"),
        (SHAPE | {"causal": False}, "B4 H16 N4096 D64"),
        ({"H": 8, "H_KV": 8, "N_Q": 5, "N_K": 5}, "H8 N5"),
        ({"H": 8, "H_KV": 2, "N_Q": 1, "N_K": 5}, "H8 H_KV2 N_Q1 N_K5"),
    ],
)
def test_names_a_case_by_its_shape(tmp_path: Path, shape: dict[str, int], label: str) -> None:
    write(tmp_path, changed("counters", 0, shape=shape))
    assert counters("flash_attention", tmp_path)[0].case() == label


@pytest.mark.parametrize(
    ("damaged", "fault"),
    [
        ("", "Expecting value"),
        ('{"counters": [', "Expecting value"),
        ('{"counters": NaN}', "NaN is not JSON"),
        ("[1, 2]", "TypeError"),
        ("null", "TypeError"),
        (without("counters"), "KeyError: 'counters'"),
        (without("run"), "KeyError: 'run'"),
        (without("commit", "run"), "KeyError: 'commit'"),
        (without("dram_write", "counters", 1), "KeyError: 'dram_write'"),
        (
            changed("counters", 0, dram_read=-1),
            "dram_read must be an integer of at least 0, got",
        ),
        (changed("counters", 0, dram_read=1.5), "dram_read must be an integer.*got 1.5"),
        (changed("counters", 0, dram_write=True), "dram_write must be an integer.*got True"),
        (changed("counters", 0, model_bytes=None), "model_bytes must be an integer.*got None"),
        (changed("counters", 0, issued_bytes="7"), "issued_bytes must be an integer.*got '7'"),
        (RESULT | {"counters": ["text"]}, "TypeError"),
    ],
)
def test_a_damaged_file_is_named_with_its_fault(
    tmp_path: Path, damaged: object, fault: str
) -> None:
    write(tmp_path, damaged)
    with pytest.raises(ValueError, match=rf"flash_attention\.some_gpu\.json: .*{fault}"):
        counters("flash_attention", tmp_path)


def test_bytes_that_are_not_text_are_named_too(tmp_path: Path) -> None:
    (tmp_path / "flash_attention.some_gpu.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(ValueError, match=r"some_gpu\.json: UnicodeDecodeError"):
        counters("flash_attention", tmp_path)


@pytest.mark.parametrize("stem", ["", "*", "../secrets", "flash-attention", "a.b"])
def test_refuses_a_stem_that_is_no_name(tmp_path: Path, stem: str) -> None:
    with pytest.raises(ValueError, match="a stem is a name such as 'flash_attention', got "):
        counters(stem, tmp_path)


def test_prints_the_rows_or_that_there_are_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(tmp_path, RESULT)
    rows = counters("flash_attention", tmp_path)
    monkeypatch.setattr(captured, "counters", lambda _stem: rows)
    main()
    assert capsys.readouterr().out.endswith("2 counted rows\n")
    monkeypatch.setattr(captured, "counters", lambda _stem: [])
    main()
    assert capsys.readouterr().out == "not captured yet\n"
