"""A result is the old one or the new one; a finished measurement is never lost."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kernels.bench import store
from kernels.bench.store import Journal, dumps, loads, result_path, slug, write

KEY = {"digest": "d", "versions": {"torch": "2"}, "device": {"name": "A"}}


def fail(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("place", ["fsync", "fdopen", "replace", "chmod"])
def test_a_result_interrupted_at_any_write_stays_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, result: dict[str, Any]
) -> None:
    path = tmp_path / "softmax.a.json"
    write(path, result)
    old = path.read_bytes()
    monkeypatch.setattr(os if hasattr(os, place) and place[0] == "f" else Path, place, fail)
    with pytest.raises(KeyboardInterrupt):
        write(path, result | {"kernel": "other"})
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_result_reads_back_as_it_was_with_a_line_for_each_row(
    tmp_path: Path, result: dict[str, Any]
) -> None:
    write(tmp_path / "new" / "x.json", result)
    text = (tmp_path / "new" / "x.json").read_text()
    assert loads(text) == result
    assert sum(line.startswith('    {"implementation": ') for line in text.splitlines()) == 8


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_has_not_are_refused(tmp_path: Path, number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write(tmp_path / "x.json", {"rows": [{"us": number}]})
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="is not JSON"):
        loads(json.dumps({"us": number}))


def test_a_journal_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "softmax.a.json"
    Journal(path, KEY).add({"rows": [1]})
    again = Journal(path, KEY)
    again.add({"rows": [2]})
    again.add({"session": {"date": "x"}})
    last = Journal(path, KEY)
    assert last.of("rows") == [[1], [2]]
    assert last.of("session") == [{"date": "x"}]


@pytest.mark.parametrize(
    "other",
    [
        KEY | {"digest": "e"},
        KEY | {"versions": {"torch": "3"}},
        KEY | {"device": {"name": "B"}},
    ],
)
def test_only_the_same_code_versions_and_device_join(tmp_path: Path, other: dict[str, Any]) -> None:
    path = tmp_path / "softmax.a.json"
    Journal(path, KEY).add({"rows": [1]})
    stranger = Journal(path, other)
    assert stranger.records == []
    stranger.add({"rows": [9]})
    assert Journal(path, KEY).of("rows") == [[1]]


@pytest.mark.parametrize("kept", range(1, 14))
def test_a_line_cut_off_anywhere_costs_only_that_line(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "softmax.a.json"
    journal = Journal(path, KEY)
    journal.add({"rows": [1]})
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole + b'{"rows": [2]}\n'[:kept])
    again = Journal(path, KEY)
    assert again.of("rows") == [[1]]
    again.add({"rows": [3]})
    assert Journal(path, KEY).of("rows") == [[1], [3]]


def test_a_journal_interrupted_while_it_is_mended_keeps_its_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "softmax.a.json"
    Journal(path, KEY).add({"rows": [1]})
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail)
        with pytest.raises(KeyboardInterrupt):
            Journal(path, KEY).add({"rows": [2]})
    assert Journal(path, KEY).of("rows")[0] == [1]


def test_the_longest_journal_of_several_folders_is_continued(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    Journal(here / "softmax.a.json", KEY).add({"rows": [1]})
    other = Journal(there / "softmax.a.json", KEY)
    other.add({"rows": [2]})
    other.add({"rows": [3]})
    joined = Journal(here / "softmax.a.json", KEY, (there,))
    assert joined.of("rows") == [[2], [3]]
    joined.add({"rows": [4]})
    assert Journal(here / "softmax.a.json", KEY).of("rows") == [[2], [3], [4]]


def test_a_closed_journal_is_gone(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "softmax.a.json", KEY)
    journal.add({"rows": [1]})
    journal.close()
    assert list(tmp_path.iterdir()) == []


def test_records_with_no_json_are_refused_before_they_are_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "softmax.a.json", KEY)
    with pytest.raises(ValueError, match="not JSON compliant"):
        journal.add({"us": float("nan")})
    assert journal.records == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("device", "name"),
    [("NVIDIA H200", "h200"), ("NVIDIA GeForce RTX 4090", "geforce_rtx_4090"), ("A-100", "a_100")],
)
def test_a_device_names_its_file(device: str, name: str) -> None:
    assert slug(device) == name
    assert result_path(Path("r"), "softmax", device) == Path(f"r/softmax.{name}.json")


def test_a_device_without_a_letter_is_refused() -> None:
    with pytest.raises(ValueError, match="a device name needs a letter or a digit, got '/'"):
        slug("/")


def test_strict_json_has_no_surprise() -> None:
    assert dumps({"a": None}) == '{"a": null}'
    assert store.loads("[1]") == [1]
