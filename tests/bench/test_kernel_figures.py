"""Figures of captured results: every value in their tables, stale marks, two devices, no crash."""

import re
from itertools import combinations, pairwise, product
from math import hypot
from pathlib import Path
from typing import Any

import pytest

from kernels.bench import stale
from kernels.bench.store import result_path, write
from sitebuild.figures import kernel_shares, kernel_speed, launch_overhead, measured_roofline
from sitebuild.figures.measured_roofline import point_of, roofs
from sitebuild.kernel_results import ABSENT, STALE
from sitebuild.labs import ROOT

STEM = "flash_attention"
SITE_CSS = ROOT / "docs" / "assets" / "site.css"


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
    assert "Hollow" not in shares(folder)
    write(result_path(folder, STEM, "NVIDIA H200"), result)
    assert shares(folder).count('class="dot-hollow"') == 2
    assert "Hollow: under 10 us, mostly launch." in shares(folder)


def test_no_dot_reaches_beyond_its_axis_or_covers_another(
    folder: Path, result: dict[str, Any]
) -> None:
    ours, theirs = result["rows"][:2]
    times = [1_600.0, 10_000.0, *[15_990.0 + i for i in range(20)], 1_600_000.0]
    result["rows"] = []
    for index, us in enumerate(times):  # the fastest at 625% of the product
        of = {"shape": ours["shape"] | {"B": index + 1}}
        result["rows"] += [ours | of | {"us": [us] * 3}, theirs | of | {"us": [16_000.0] * 3}]
    write(result_path(folder, STEM, "NVIDIA H200"), result)
    drawn = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"', shares(folder))
    dots = [tuple(map(float, found)) for found in drawn]
    assert len(dots) == 2 * len(times)
    assert min(x - r for x, _, r in dots) >= kernel_shares.LEFT
    assert max(x + r for x, _, r in dots) <= kernel_shares.RIGHT
    near = [hypot(a[0] - b[0], a[1] - b[1]) for a, b in combinations(dots, 2)]
    assert min(near) >= 2 * kernel_shares.DOT - 0.15  # places have one decimal


def test_rows_of_dots_keep_apart(result: dict[str, Any]) -> None:
    ours, theirs = result["rows"][:2]
    result["rows"] = []
    for dtype, index in product(("bf16", "fp16"), range(30)):
        of = {"dtype": dtype, "shape": ours["shape"] | {"B": index + 1}}
        result["rows"] += [ours | of, theirs | of]
    drawn = kernel_shares.draw(result)
    heights = [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', drawn)]
    rows = [heights[start : start + 30] for start in range(0, 120, 30)]
    gaps = [min(below) - max(above) for above, below in pairwise(rows)]
    assert min(gaps) > 2 * kernel_shares.DOT


@pytest.mark.parametrize(
    ("leads", "ticks"),
    [
        ([0.88, 1.2], [0.75, 1.0, 1.5]),
        ([0.52, 1.03], [0.5, 0.75, 1.0, 1.5]),
        ([0.10296, 1.21], [0.1, 0.25, 0.5, 1.0, 1.5]),
        ([0.38, 7.18], [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]),
        ([1.2, 1.9], [0.75, 1.0, 1.5, 2.0]),
    ],
)
def test_the_ticks_of_a_ratio_cover_every_dot(leads: list[float], ticks: list[float]) -> None:
    assert kernel_shares.ratio_ticks(leads) == ticks


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
    wide = row | {"shape": row["shape"] | {"H_KV": 4}}  # other groups of heads
    again = row | {"shape": row["shape"] | {"B": 4, "H": 64, "H_KV": 64}}  # as much work
    assert kernel_speed.picked([row, again, wide]) == [row["shape"], wide["shape"]]


def test_every_product_is_a_kind_of_its_own_and_rows_go_by_their_length() -> None:
    def case(flops: int, **shape: int) -> dict[str, Any]:
        return {"shape": shape, "flops": flops, "us": [1.0] * 3}

    products = [case(64, M=8, N=8, K=1), case(8, M=1, N=8, K=1)]
    assert len(kernel_speed.picked(products)) == 2
    rows = [case(64, M=8, N=8), case(8, M=1, N=8), case(64, M=1, N=64)]
    assert kernel_speed.picked(rows) == [{"M": 1, "N": 64}, {"M": 8, "N": 8}]


def test_the_caption_says_which_cases_the_bars_leave_out(
    folder: Path, result: dict[str, Any]
) -> None:
    assert "Every case; ours is the first bar" in bars(folder)
    row = result["rows"][0]
    result["rows"].append(row | {"shape": row["shape"] | {"B": 1}, "flops": 10})
    write(result_path(folder, STEM, "NVIDIA H200"), result)
    assert "The largest case of each kind; ours" in bars(folder)
    result["rows"] += [row | {"shape": row["shape"] | {"D": D}} for D in range(1, 12)]
    write(result_path(folder, STEM, "NVIDIA H200"), result)
    assert "The largest case of 9 of 12 kinds; ours" in bars(folder)


def test_a_bar_that_is_mostly_launch_is_marked(folder: Path, result: dict[str, Any]) -> None:
    assert "†" not in bars(folder)
    result["rows"][0] |= {"us": [7.0, 8.0, 9.0], "flops": 8_000_000}
    write(result_path(folder, STEM, "NVIDIA H200"), result)
    drawn = bars(folder)
    assert drawn.count("†") == 3  # beside the bar, in the table, in the caption
    assert ">1 †</text>" in drawn
    assert "† under 10 us, mostly launch." in drawn


def test_no_line_strikes_a_value_of_a_bar(folder: Path) -> None:
    drawn = bars(folder)
    dashed = [found.start() for found in re.finditer('class="line thin dashed"', drawn)]
    values = [found.start() for found in re.finditer('class="ink halo"', drawn)]
    assert len(dashed) == 1
    assert len(values) == 2
    assert max(dashed) < min(values)  # drawn later, over the line
    style = re.search(r"\.figure \.halo \{(.*?)\}", SITE_CSS.read_text("utf-8"))
    assert style is not None
    assert {"paint-order: stroke", "stroke: var(--paper)"} <= set(style[1].strip(" ;").split("; "))


def test_the_roofline_places_a_case_by_its_compulsory_bytes(folder: Path) -> None:
    drawn = roofline(folder)  # 8e12 FLOP over 2e9 bytes, 500 of 800 TFLOP/s
    assert "flash_attention B8 H32 N8192 D128: 4,000.0 FLOP/B, 500.0 TFLOP/s" in drawn
    assert "<td>4,000.0</td><td>500.0</td><td>62%</td>" in drawn
    assert "ridge 206" in drawn  # of the data sheet
    assert drawn.count(">1,000</text>") == 2  # a tick on either axis
    assert "below the roofs" not in drawn
    assert "of the ceiling in the case&#x27;s own run. A share may pass 100%" in drawn


def test_the_roofs_are_the_fastest_copy_and_product_of_the_runs(result: dict[str, Any]) -> None:
    assert roofs([result]) == (4000.0, 800.0)
    row = result["rows"][0]  # 2 GB and 8 TFLOP
    copied = row | {"implementation": "copy", "us": [400.0] * 3}
    other = result | {"kernel": "softmax", "rows": [copied]}
    assert roofs([result, other]) == (5000.0, 800.0)
    products = [
        row | {"implementation": name, "dtype": dtype, "us": [us] * 3}
        for name, dtype, us in (
            ("cublas", "bf16", 8000.0), ("cublas", "fp16", 4000.0), ("ours", "bf16", 2000.0)
        )
    ]  # fmt: skip
    assert roofs([result, result | {"kernel": "matmul", "rows": products}]) == (4000.0, 1000.0)
    session = {"ceilings": {"copy_gb_s": 4100.0, "read_gb_s": 1.0, "matmul_tflop_s": 1.0}}
    assert roofs([result, result | {"sessions": [session]}]) == (4100.0, 800.0)


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
