"""The tables of a kernel page from a made-up result, every value computed by hand."""

from pathlib import Path
from typing import Any

import pytest

from kernels.bench import stale
from kernels.bench.store import result_path, write
from sitebuild.kernel_paths import paths
from sitebuild.kernel_results import ABSENT, STALE
from sitebuild.kernel_tables import exactness, launches, speed, traffic

STEM = "flash_attention"
TABLES = [exactness, traffic, speed, launches, paths]


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


@pytest.mark.parametrize("render", TABLES)
def test_says_so_when_nothing_is_captured(tmp_path: Path, render: Any) -> None:
    assert render(STEM, tmp_path) == ABSENT


@pytest.mark.parametrize("render", TABLES)
def test_every_table_is_marked_when_stale_and_says_where_it_comes_from(
    folder: Path, monkeypatch: pytest.MonkeyPatch, render: Any
) -> None:
    assert STALE not in render(STEM, folder)
    assert "{ .origin }" in render(STEM, folder)
    monkeypatch.setattr(stale, "source_digest", lambda _module: "b" * 64)
    assert f"{STALE}\n{{ .stale }}" in render(STEM, folder)


def test_shows_the_largest_errors_beside_eager_s(folder: Path) -> None:
    lines = exactness(STEM, folder).splitlines()
    case = "B8 H32 N8192 D128"
    assert f"| out, forward, bf16 | 2.0e-03 | 3.0e-03 | 8.0e-03 | {case} | 1 of 1 |" in lines
    assert "| lse, forward, bf16 | not finite | – | – | – | 0 of 1 |" in lines


def test_root_mean_square_errors_are_told_beside_those_of_cudnn(
    folder: Path, result: dict[str, Any]
) -> None:
    assert "Root mean square" not in exactness(STEM, folder)  # older captures have none
    first = result["exactness"][0]
    result["exactness"] = [
        first | {"implementation": name, "output": output, "relative_rms": value}
        for output, ours, theirs in (("out", 0.003, 0.002), ("lse", 0.002, 0.004))
        for name, value in (("ours", ours), ("sdpa-cudnn", theirs))
    ]
    write(result_path(folder, STEM, "NVIDIA H200"), result)
    told = exactness(STEM, folder)
    assert "are 0.50 to 1.50 times those of sdpa-cudnn, over 2 outputs." in told


def test_shows_counted_bytes_beside_the_model_under_their_case(folder: Path) -> None:
    text = traffic(STEM, folder)
    cells = "2,000 | 9,000 | 1,500 | 480 | 7,000 | 0.990"
    assert f"| **B8 H32 N8192 D128** |  |  |  |  |  |  |\n| ours | {cells} |" in text
    assert "- eager B8 H32 N8192 D128: not counted, out of memory" in text
    assert "A dash" not in text


def test_says_why_some_issued_bytes_are_not_known(folder: Path, result: dict[str, Any]) -> None:
    result["counters"].append(
        result["counters"][0] | {"implementation": "eager", "issued_bytes": None}
    )
    result["counters"][0] |= {"dram_read": 1_234_567, "dram_write": 0}
    write(result_path(folder, STEM, "NVIDIA H200"), result)
    text = traffic(STEM, folder)
    assert "| ours | 2,000 | 9,000 | 1.23 | 0.00 | 7,000 | 0.001 |\n| eager | 2,000 | – |" in text
    assert text.count("**B8 H32 N8192 D128**") == 1
    assert "A dash: a library does not say which tiles its kernels use" in text


def test_shows_why_nothing_is_counted(folder: Path, result: dict[str, Any]) -> None:
    write(result_path(folder, STEM, "NVIDIA H200"), result | {"counters": "ncu is not installed"})
    assert "Not counted: ncu is not installed." in traffic(STEM, folder)


def test_shows_rates_with_their_spread_and_shares_in_a_fold(folder: Path) -> None:
    # 8e12 FLOP: 500 (400-640) TFLOP/s ours, 400 (320-500) cuDNN; 500/400, 500/800 and 500/989.4
    text = speed(STEM, folder)
    ours, cudnn = (
        "**500**<br><small>400–640</small>",
        "400<br><small>320–500</small>",
    )
    assert '??? note "forward, bf16: all 1 cases, TFLOP/s"\n' in text
    assert "| Case | ours | sdpa-cudnn | over best peer |" in text  # eager was not timed
    assert "| **H32 D128** |  |  |  |  |  |" in lines_of(text)
    assert f"| B8 N8192 | {ours} | {cudnn} | 1.25 | 62% | 51% |" in lines_of(text)
    assert "- eager, bf16 B8 H32 N8192 D128: `out of memory`" in lines_of(text)


def test_a_row_kernel_is_shown_against_the_copy_of_its_own_size(
    folder: Path, result: dict[str, Any]
) -> None:
    # 2e9 bytes: 800 us are 2500 GB/s, the copy's 500 us 4000, 62.5 % of it and 52 % of 4800
    result["kernel"] = "softmax"
    result["rows"][0]["us"] = [640.0, 800.0, 1000.0]
    result["rows"][1] |= {"implementation": "copy", "us": [400.0, 500.0, 625.0]}
    write(result_path(folder, "softmax", "NVIDIA H200"), result)
    ours = "**2,500**<br><small>2,000–3,125</small>"
    copy = "4,000<br><small>3,200–5,000</small>"
    expected = f"| B8 N8192 | {ours} | {copy} | – | 62% | 52% |"
    assert expected in lines_of(speed("softmax", folder))


def test_a_time_near_a_launch_claims_nothing(folder: Path, result: dict[str, Any]) -> None:
    result["rows"][0] |= {"us": [7.0, 8.0, 9.0], "flops": 8_000_000}
    write(result_path(folder, STEM, "NVIDIA H200"), result)
    text = speed(STEM, folder)
    assert "**1** †<br>" in text
    assert "† under 10 us, mostly launch: no speed-up is claimed." in text


def test_a_device_that_no_data_sheet_names_has_no_share_of_it(
    folder: Path, result: dict[str, Any]
) -> None:
    result["device"]["name"] = "A card"
    write(result_path(folder, STEM, "A card"), result)
    assert "| 1.25 | 62% | – |" in speed(STEM, folder)


def test_shows_launches_with_and_without_a_graph(folder: Path) -> None:
    lines = lines_of(launches(STEM, folder))
    assert "| ours B8 H32 N8192 D128 | 40.0 | 8.0 | 5.0 |" in lines


def test_shows_which_kernel_ran_in_how_many_cases_and_why_none_faster(
    folder: Path, result: dict[str, Any]
) -> None:
    assert "This capture did not record which kernel ran." in paths(STEM, folder)
    ours, theirs, _ = result["rows"]
    fast, slow = (
        {"path": {"kernel": kernel, "reason": reason}}
        for kernel, reason in (("fast_kernel", ""), ("slow_kernel", "a window"))
    )
    backward = ours | slow | {"pass": "backward"}
    result["rows"] = [ours | fast, ours | slow, theirs, ours | fast, backward]
    write(result_path(folder, STEM, "NVIDIA H200"), result)
    lines = lines_of(paths(STEM, folder))
    assert "| forward | `fast_kernel` | – | 2 |" in lines
    assert "| forward | `slow_kernel` | a window | 1 |" in lines
    assert "| backward | `slow_kernel` | a window | 1 |" in lines
