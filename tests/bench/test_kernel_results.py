"""What a page shows of a made-up result, every value computed by hand."""

from pathlib import Path
from typing import Any

import pytest

from kernels.bench import stale
from kernels.bench.schema import InvalidError
from kernels.bench.store import result_path, write
from sitebuild import kernel_results
from sitebuild.figures import kernel_speed, launch_overhead, measured_roofline
from sitebuild.kernel_results import (
    ABSENT,
    STALE,
    caption,
    exactness,
    label,
    launches,
    overview,
    page,
    speed,
    traffic,
)

STEM = "flash_attention"


@pytest.fixture
def folder(tmp_path: Path, result: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one fresh result."""
    monkeypatch.setattr(stale, "source_digest", lambda _module: "a" * 64)
    write(result_path(tmp_path, STEM, "NVIDIA H200"), result)
    return tmp_path


@pytest.mark.parametrize("render", [exactness, traffic, speed, launches])
def test_says_so_when_nothing_is_captured(tmp_path: Path, render: Any) -> None:
    assert render(STEM, tmp_path) == ABSENT
    assert overview(tmp_path) == ABSENT
    assert kernel_speed.chart(STEM, folder=tmp_path) == ABSENT
    assert measured_roofline.chart(STEM, tmp_path) == ABSENT
    assert launch_overhead.chart(tmp_path) == ABSENT


def test_shows_the_largest_errors_beside_eager_s(folder: Path) -> None:
    lines = exactness(STEM, folder).splitlines()
    case = "B8 H32 N8192 D128"
    assert f"| out, forward | bf16 | 2.0e-03 | 3.0e-03 | 8.0e-03 | {case} | 1 of 1 |" in lines
    assert "| lse, forward | bf16 | not finite | – | – | – | 0 of 1 |" in lines


def test_shows_counted_bytes_beside_the_model(folder: Path) -> None:
    text = traffic(STEM, folder)
    cells = "2,000.00 | 9,000.00 | 1,500.00 | 480.00 | 7,000.00 | 0.990"
    assert f"| ours B8 H32 N8192 D128 | {cells} |" in text
    assert "- eager B8 H32 N8192 D128: not counted, out of memory" in text


def test_shows_why_nothing_is_counted(folder: Path, result: dict[str, Any]) -> None:
    write(result_path(folder, STEM, "NVIDIA H200"), result | {"counters": "ncu is not installed"})
    assert "Not counted: ncu is not installed." in traffic(STEM, folder)


def test_shows_rates_with_their_spread_and_shares(folder: Path) -> None:
    # 8e12 FLOP: 500 (400-640) TFLOP/s ours, 400 (320-500) cuDNN; 500/800 and 500/989.4
    lines = speed(STEM, folder).splitlines()
    rates = "500 (400–640) | 400 (320–500) | –"
    assert f"| B8 H32 N8192 D128 | {rates} | 62% | 51% |" in lines
    assert "- eager, bf16 B8 H32 N8192 D128: `out of memory`" in lines


def test_a_row_kernel_is_shown_against_the_copy_of_its_own_size(
    folder: Path, result: dict[str, Any]
) -> None:
    # 2e9 bytes: 800 us are 2500 GB/s, the copy's 500 us 4000, 62.5 % of it and 52 % of 4800
    result["kernel"] = "softmax"
    result["rows"][0]["us"] = [640.0, 800.0, 1000.0]
    result["rows"][1] |= {"implementation": "copy", "us": [400.0, 500.0, 625.0]}
    write(result_path(folder, "softmax", "NVIDIA H200"), result)
    cells = "2,500 (2,000–3,125) | 4,000 (3,200–5,000) | – | 62% | 52%"
    assert f"| B8 H32 N8192 D128 | {cells} |" in speed("softmax", folder)


def test_a_time_near_a_launch_claims_nothing(folder: Path, result: dict[str, Any]) -> None:
    result["rows"][0] |= {"us": [7.0, 8.0, 9.0], "flops": 8_000_000}
    write(result_path(folder, STEM, "NVIDIA H200"), result)
    text = speed(STEM, folder)
    assert "1 (1–1) †" in text
    assert "† under 10 us, mostly launch: no speed-up is claimed." in text


def test_shows_launches_with_and_without_a_graph(folder: Path) -> None:
    assert "| ours B8 H32 N8192 D128 | 40.0 | 8.0 | 5.0 |" in launches(STEM, folder)


def test_compares_all_kernels(folder: Path) -> None:
    row = "| [flash_attention](flash_attention.md) | NVIDIA H200 | B8 H32 N8192 D128 |"
    assert f"{row} 500 TFLOP/s | 62% | 400 TFLOP/s, sdpa-cudnn | 1.25 |" in overview(folder)


def test_the_caption_holds_the_provenance(result: dict[str, Any]) -> None:
    assert caption(result) == (
        "Captured on NVIDIA H200, driver 580.1, limit 700 W, SM clock 1500 to 1980 MHz; "
        "2031-02-03, commit 0123456789; torch 2.11.0, triton 3.6.0, cuda 13.0, python 3.12.3. "
        "L2 cold; reproduce with `python -m kernels.bench flash_attention`."
    )


def test_the_caption_owns_up_to_changes_and_gaps(result: dict[str, Any]) -> None:
    result["run"] |= {"dirty": True, "left": 3}
    assert "commit 0123456789, with changes that are not in it;" in caption(result)
    assert caption(result).endswith("3 steps of the job were left when this was written.")


@pytest.mark.parametrize("render", [exactness, traffic, speed, launches])
def test_marks_every_table_of_other_code_as_stale(
    folder: Path, monkeypatch: pytest.MonkeyPatch, render: Any
) -> None:
    assert STALE not in render(STEM, folder)
    monkeypatch.setattr(stale, "source_digest", lambda _module: "b" * 64)
    assert render(STEM, folder).startswith(STALE)
    assert "[flash_attention](flash_attention.md) (stale)" in overview(folder)


def test_a_second_device_stands_beside_the_first(folder: Path, result: dict[str, Any]) -> None:
    result["device"]["name"] = "A card"
    write(result_path(folder, STEM, "A card"), result)
    text = speed(STEM, folder)
    assert text.index("Captured on A card") < text.index("Captured on NVIDIA H200")
    assert "| 62% | – |" in text  # no data sheet for it


def test_an_invalid_file_stops_the_page(folder: Path) -> None:
    (folder / f"{STEM}.other.json").write_text("{}")
    with pytest.raises(InvalidError, match=r"flash_attention\.other\.json: the file: 'format'"):
        page(STEM, folder)


def test_a_page_has_its_sections(folder: Path) -> None:
    headings = [line for line in page(STEM, folder).splitlines() if line.startswith("#")]
    assert headings == ["## Exactness", "## Traffic", "## Speed", "## Launch overhead"]


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


def test_the_bars_hold_every_value(folder: Path) -> None:
    drawn = kernel_speed.chart(STEM, folder=folder)
    assert drawn.count("<figure") == 1
    assert '<th scope="row">B8 H32 N8192 D128</th><td>ours</td><td>500</td><td>400</td>' in drawn
    assert "sdpa-cudnn: 400 TFLOP/s, 20 to 80 %: 320 to 500" in drawn


def test_the_bars_pick_the_largest_case_of_each_kind(result: dict[str, Any]) -> None:
    row = result["rows"][0]
    small = row | {"shape": row["shape"] | {"N_Q": 512}, "flops": 10}
    causal = row | {"shape": row["shape"] | {"causal": True}, "flops": 20}
    assert kernel_speed.picked([small, row, causal]) == [row["shape"], causal["shape"]]


def test_the_roofline_places_a_case_by_its_compulsory_bytes(folder: Path) -> None:
    drawn = measured_roofline.chart(STEM, folder)  # 8e12 FLOP over 2e9 bytes
    assert "flash_attention B8 H32 N8192 D128: 4,000.0 FLOP/B, 500.0 TFLOP/s" in drawn


def test_the_launches_are_drawn_from_their_rows(folder: Path) -> None:
    drawn = launch_overhead.chart(folder)
    assert "<td>40.0</td><td>8.0</td>" in drawn


def test_modules_print_something_whatever_is_captured(capsys: pytest.CaptureFixture[str]) -> None:
    kernel_speed.main()
    measured_roofline.main()
    launch_overhead.main()
    assert len(capsys.readouterr().out.splitlines()) >= 3
    assert kernel_results.STEMS[-1] == "flash_decode"
