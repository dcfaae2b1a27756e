"""Which results there are, what marks them as old, and where each number of a page comes from."""

from pathlib import Path
from typing import Any

import pytest

from kernels.bench import stale
from kernels.bench.schema import InvalidError
from kernels.bench.store import result_path, write
from sitebuild.kernel_results import (
    ABSENT,
    STALE,
    best_case,
    best_peer,
    each,
    is_ours,
    label,
    mark,
    origin,
    provenance,
    reading_order,
)

STEM = "flash_attention"


def shown(result: dict[str, Any]) -> str:
    return f"shown {result['device']['name']}"


def test_says_so_when_nothing_is_captured(tmp_path: Path) -> None:
    assert each(STEM, shown, tmp_path) == ABSENT
    assert provenance(STEM, tmp_path) == ABSENT


def test_what_is_shown_stands_above_where_it_comes_from(folder: Path) -> None:
    text = each(STEM, shown, folder)
    place = '<a href="#captured-on-h200">circumstances</a>'
    line = f"NVIDIA H200, 2031-02-03, commit 0123456789; {place}.\n{{ .origin }}"
    assert text.index("shown NVIDIA H200") < text.index(line)
    assert STALE not in text
    assert "**NVIDIA H200**" not in text  # one device needs no heading of its own


def test_another_page_links_to_the_page_that_holds_the_circumstances(folder: Path) -> None:
    text = each(STEM, shown, folder, "../kernels/flash_attention.md")
    assert '<a href="../kernels/flash_attention.md#captured-on-h200">' in text


def test_what_other_code_gave_is_marked_as_stale(
    folder: Path, result: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mark([result]) == ""
    monkeypatch.setattr(stale, "source_digest", lambda _module: "b" * 64)
    text = each(STEM, shown, folder)
    assert text.index(STALE) < text.index("shown NVIDIA H200")
    assert mark([result]) == STALE


def test_a_second_device_stands_beside_the_first_under_its_name(
    folder: Path, result: dict[str, Any]
) -> None:
    result["device"]["name"] = "A card"
    write(result_path(folder, STEM, "A card"), result)
    text = each(STEM, shown, folder)
    parts = ["**A card**", "shown A card", "**NVIDIA H200**", "shown NVIDIA H200"]
    assert sorted(parts, key=text.index) == parts
    assert provenance(STEM, folder).count(" id=") == 2
    assert origin(result).startswith("A card, 2031-02-03")


def test_an_invalid_file_stops_the_page(folder: Path) -> None:
    (folder / f"{STEM}.other.json").write_text("{}")
    with pytest.raises(InvalidError, match=r"flash_attention\.other\.json: the file: 'format'"):
        each(STEM, shown, folder)


def test_the_provenance_is_whole(folder: Path) -> None:
    lines = provenance(STEM, folder).splitlines()
    assert lines[0] == '<strong id="captured-on-h200">Captured on NVIDIA H200</strong>'
    assert lines[4:] == [
        "| Device | NVIDIA H200, driver 580.1, L2 63 MB, power limit 700 W |",
        "| Measured | 2031-02-03, commit 0123456789 |",
        "| Software | torch 2.11.0, triton 3.6.0, cuda 13.0, python 3.12.3 |",
        "| Clocks | SM 1500 to 1980 MHz; held back at times by the power cap |",
        "| Ceilings | copy 4,000 GB/s, read 4,400 GB/s, bf16 product 800 TFLOP/s |",
        "| Timing | CUDA events; L2 cold; A B C C B A; normal distribution |",
        "| Command | `python -m kernels.bench flash_attention` |",
    ]


def test_the_provenance_owns_up_to_changes_gaps_and_unknown_clocks(
    folder: Path, result: dict[str, Any]
) -> None:
    result["run"] |= {"dirty": True, "left": 3}
    result["sessions"][0]["clocks"] = None
    write(result_path(folder, STEM, "NVIDIA H200"), result)
    text = provenance(STEM, folder)
    assert "commit 0123456789, with changes that are not in it; 3 steps of the job were" in text
    assert "| Clocks | not recorded |" in text


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({"M": 8, "N": 4}, "M8 N4"),
        ({"B": 1, "H": 8, "H_KV": 2, "N_Q": 1, "N_K": 9, "D": 64}, "B1 H8 H_KV2 N_Q1 N_K9 D64"),
        ({"H": 2, "H_KV": 2, "N_Q": 5, "N_K": 5, "causal": True}, "H2 N5 causal"),
    ],
)
def test_a_shape_names_equal_sizes_once(shape: dict[str, Any], expected: str) -> None:
    assert label(shape) == expected


def test_attention_is_ordered_by_its_options_then_by_its_keys(result: dict[str, Any]) -> None:
    row = result["rows"][0]
    causal, short, narrow = (
        row | {"shape": row["shape"] | changed}
        for changed in ({"causal": True}, {"N_Q": 64, "N_K": 64}, {"D": 64})
    )
    assert sorted([causal, row, short, narrow], key=reading_order) == [narrow, short, row, causal]


def test_rows_of_a_matrix_are_ordered_from_large_to_small_then_by_width() -> None:
    cases = [(4, 4096, 2**20), (16, 1024, 2**20), (64, 4096, 2**24)]
    rows = [{"shape": {"M": m, "N": n}, "model_bytes": size} for m, n, size in cases]
    assert [row["shape"]["M"] for row in sorted(rows, key=reading_order)] == [64, 16, 4]


def test_a_peer_is_somebody_else_s_and_no_copy(result: dict[str, Any]) -> None:
    ours, theirs, _ = result["rows"]
    fast = {"us": [1.0, 1.0, 1.0]}
    result["rows"] += [ours | {"implementation": name} | fast for name in ("ours-gluon", "copy")]
    assert best_peer(result, ours) == theirs
    assert [is_ours(name) for name in ("ours", "ours-triton", "eager")] == [True, True, False]


def test_the_largest_case_is_forward_in_bf16_and_timed(result: dict[str, Any]) -> None:
    row = result["rows"][0]
    larger = row | {"flops": 9 * row["flops"]}
    failed = {name: value for name, value in larger.items() if name != "us"} | {"error": "x"}
    result["rows"] += [larger | {"pass": "backward"}, larger | {"dtype": "fp16"}, failed]
    assert best_case(result) == row
