"""Figures of captured results: every value in their tables, stale marks, two devices, no crash."""

import re
from pathlib import Path
from typing import Any

import pytest

from kernels.bench import stale
from kernels.bench.store import result_path, write
from sitebuild.figures import kernel_shares, kernel_speed, launch_overhead, measured_roofline
from sitebuild.figures.measured_roofline import point_of
from sitebuild.kernel_results import ABSENT, STALE

STEM = "flash_attention"


def shares(folder: Path) -> str:
    return kernel_shares.chart(STEM, folder)


def bars(folder: Path) -> str:
    return kernel_speed.chart(STEM, folder=folder)


def roofline(folder: Path) -> str:
    return measured_roofline.chart(STEM, folder)


CHARTS = [shares, bars, roofline, launch_overhead.chart]


@pytest.mark.parametrize("chart", CHARTS)
def test_says_so_when_nothing_is_captured(tmp_path: Path, chart: Any) -> None:
    assert chart(tmp_path) == ABSENT


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_of_other_code_is_marked_as_stale(
    folder: Path, monkeypatch: pytest.MonkeyPatch, chart: Any
) -> None:
    assert "stale" not in chart(folder)
    monkeypatch.setattr(stale, "source_digest", lambda _module: "b" * 64)
    assert f'<p class="stale">{STALE.replace(chr(39), "&#x27;")}</p><svg' in chart(folder)


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_says_on_what_and_when_it_was_measured(folder: Path, chart: Any) -> None:
    caption = re.search("<figcaption>(.*)</figcaption>", chart(folder))
    assert caption is not None
    assert "NVIDIA H200" in caption[1]
    assert "2031-02-03, commit 0123456789" in caption[1]


@pytest.mark.parametrize("chart", CHARTS)
def test_two_devices_give_two_charts_with_ids_of_their_own(
    folder: Path, result: dict[str, Any], chart: Any
) -> None:
    result["device"]["name"] = "A card (no data sheet)"
    write(result_path(folder, STEM, result["device"]["name"]), result)
    ids = re.findall(r'\bid="([^"]+)"', chart(folder))
    assert chart(folder).count("<figure") == 2
    assert len(ids) == len(set(ids)) == 6


@pytest.mark.parametrize("chart", CHARTS)
def test_a_result_in_which_everything_failed_draws_no_bar_and_does_not_crash(
    folder: Path, result: dict[str, Any], chart: Any
) -> None:
    dropped = ("us", "graph_us", "repetitions", "graph")
    failed = {
        name: [
            {k: v for k, v in row.items() if k not in dropped} | {"error": "out of memory"}
            for row in result[name]
        ]
        for name in ("rows", "launches")
    }
    write(result_path(folder, STEM, "NVIDIA H200"), result | failed)
    assert "<rect" not in chart(folder)


def test_a_dot_stands_for_each_case_and_the_table_holds_them_all(folder: Path) -> None:
    drawn = shares(folder)  # 500 of 800 TFLOP/s, and 500 over 400
    assert drawn.count('class="dot"') == 2
    case = "forward, bf16, B8 H32 N8192 D128"
    assert f'"row">{case}</th><td>62%</td><td>1.25</td><td>sdpa-cudnn</td>' in drawn


def test_a_case_that_is_mostly_launch_is_hollow(folder: Path, result: dict[str, Any]) -> None:
    result["rows"][0] |= {"us": [7.0, 8.0, 9.0], "flops": 8_000_000}
    write(result_path(folder, STEM, "NVIDIA H200"), result)
    assert shares(folder).count('class="dot-hollow"') == 2


def test_without_a_peer_only_the_roof_is_drawn(folder: Path, result: dict[str, Any]) -> None:
    write(result_path(folder, STEM, "NVIDIA H200"), result | {"rows": result["rows"][:1]})
    assert shares(folder).count('class="dot"') == 1
    assert "rate over the best peer" not in shares(folder)


def test_the_bars_hold_every_value(folder: Path) -> None:
    drawn = bars(folder)
    assert drawn.count("<figure") == 1
    assert '<th scope="row">B8 H32 N8192 D128</th><td>ours</td><td>500</td><td>400</td>' in drawn
    assert "sdpa-cudnn: 400 TFLOP/s, 20 to 80 %: 320 to 500" in drawn


def test_the_bars_pick_the_largest_case_of_each_kind(result: dict[str, Any]) -> None:
    row = result["rows"][0]
    small = row | {"shape": row["shape"] | {"N_Q": 512}, "flops": 10}
    causal = row | {"shape": row["shape"] | {"causal": True}, "flops": 20}
    assert kernel_speed.picked([small, row, causal]) == [row["shape"], causal["shape"]]


def test_the_roofline_places_a_case_by_its_compulsory_bytes(folder: Path) -> None:
    drawn = roofline(folder)  # 8e12 FLOP over 2e9 bytes, 500 of 800 TFLOP/s
    assert "flash_attention B8 H32 N8192 D128: 4,000.0 FLOP/B, 500.0 TFLOP/s" in drawn
    assert "<td>4,000.0</td><td>500.0</td><td>62%</td>" in drawn
    assert "ridge 206" in drawn  # of the data sheet


def test_left_of_the_ridge_the_roof_is_the_copy(result: dict[str, Any]) -> None:
    row = result["rows"][0] | {"flops": 2_000_000_000, "us": [400.0, 500.0, 600.0]}
    point = point_of(result, row)  # 1 FLOP/B: the copy allows 4 TFLOP/s, and 4 ran
    assert (point.intensity, point.tflop_s, point.share) == (1.0, 4.0, 1.0)


def test_an_unknown_device_has_the_roofs_of_its_run_alone(
    folder: Path, result: dict[str, Any]
) -> None:
    result["device"]["name"] = "A card"
    alone = folder / "alone"
    write(result_path(alone, STEM, "A card"), result)
    assert "ridge" not in roofline(alone).split("<figcaption>")[0]
    assert "bf16 product 800" in roofline(alone)


def test_the_launches_are_drawn_from_their_rows(folder: Path) -> None:
    drawn = launch_overhead.chart(folder)
    assert "<td>40.0</td><td>8.0</td>" in drawn


def test_modules_print_something_whatever_is_captured(capsys: pytest.CaptureFixture[str]) -> None:
    kernel_shares.main()
    kernel_speed.main()
    measured_roofline.main()
    launch_overhead.main()
    assert len(capsys.readouterr().out.splitlines()) >= 4
