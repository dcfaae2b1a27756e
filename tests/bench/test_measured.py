"""What lessons show of captured results, computed by hand from made-up ones."""

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernels.bench import stale
from kernels.bench.store import result_path, write
from sitebuild.kernel_results import ABSENT, STALE
from sitebuild.measured import hbm_traffic, online_softmax, roofline, triton_kernels

BLOCKS = [
    (hbm_traffic.story, "attention"),
    (hbm_traffic.apart, "attention"),
    (online_softmax.paths, "softmax"),
    (triton_kernels.rows, "softmax"),
    (roofline.placed, "attention"),
]
Block = Callable[[Path], str]


@pytest.fixture
def attention(result: dict[str, Any]) -> dict[str, Any]:
    """Three kernels beside one, both timed and counted: 1000 times the bytes, 4 times the time."""
    ours = result["rows"][0]
    eager = ours | {"implementation": "eager", "model_bytes": 90_000_000_000, "issued_bytes": None}
    eager |= {"us": [60000.0, 64000.0, 70000.0]}
    result["rows"] = [ours, eager]
    counted = result["counters"][0] | {"dram_read": 100_000_000, "dram_write": 20_000_000}
    much = {"implementation": "eager", "dram_read": 70_000_000_000, "dram_write": 50_000_000_000}
    result["counters"] = [counted, counted | much]
    return result


@pytest.fixture
def softmax(result: dict[str, Any]) -> dict[str, Any]:
    """Rows of 8 held and of 64 streamed, a copy beside each; ours is faster only when held."""
    result["kernel"] = "softmax"
    row = {"pass": "forward", "dtype": "bf16", "model_bytes": 1_000_000_000, "flops": 1,
           "repetitions": 1, "graph": False, "session": 0}  # fmt: skip
    held, streamed = {"M": 80, "N": 8}, {"M": 10, "N": 64}
    result["rows"] = [
        row | {"implementation": name, "shape": shape, "issued_bytes": issued, "us": [us] * 3}
        for name, shape, issued, us in (
            ("ours", held, 1_000_000_000, 250.0),
            ("eager", held, None, 500.0),
            ("copy", held, None, 250.0),
            ("ours", streamed, 1_500_000_000, 500.0),
            ("eager", streamed, None, 400.0),
            ("copy", streamed, None, 250.0),
        )
    ]
    result["exactness"] = [
        {"implementation": "ours", "pass": "forward", "dtype": "bf16", "shape": shape,
         "output": "out", "error": error, "eager_error": eager, "tolerance": 0.01, "passed": True}
        for shape, error, eager in ((held, 0.001, 0.002), (streamed, 0.003, None))
    ]  # fmt: skip
    return result


def put(folder: Path, result: dict[str, Any]) -> Path:
    write(result_path(folder, result["kernel"], result["device"]["name"]), result)
    return folder


@pytest.fixture
def made(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The made-up result of which a block tells."""
    found: dict[str, Any] = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("block", [block for block, _ in BLOCKS])
def test_says_so_when_nothing_is_captured(tmp_path: Path, block: Block) -> None:
    assert block(tmp_path) == ABSENT


@pytest.mark.parametrize(("block", "made"), BLOCKS, indirect=["made"])
def test_a_block_of_other_code_is_marked_as_stale(
    folder: Path, made: dict[str, Any], monkeypatch: pytest.MonkeyPatch, block: Block
) -> None:
    assert "stale" not in block(put(folder, made))
    monkeypatch.setattr(stale, "source_digest", lambda _module: "b" * 64)
    assert STALE.split("'")[0] in block(folder)


@pytest.mark.parametrize(("block", "made"), BLOCKS, indirect=["made"])
def test_a_result_without_times_and_counts_does_not_crash(
    folder: Path, made: dict[str, Any], block: Block
) -> None:
    dropped = ("us", "repetitions", "graph")
    made["rows"] = [
        {k: v for k, v in row.items() if k not in dropped} | {"error": "out of memory"}
        for row in made["rows"]
    ]
    nothing = {"counters": "ncu is not installed", "exactness": [], "launches": []}
    assert "NVIDIA H200" in block(put(folder, made | nothing))


@pytest.mark.parametrize(("block", "made"), BLOCKS, indirect=["made"])
def test_two_devices_stand_one_below_the_other(
    folder: Path, made: dict[str, Any], block: Block
) -> None:
    put(folder, made)
    made["device"]["name"] = "A card"
    told = block(put(folder, made))
    assert told.index("A card") < told.rindex("NVIDIA H200")


def test_the_story_explains_the_ratio_of_times_by_both_shares(
    folder: Path, attention: dict[str, Any]
) -> None:
    # 120 GB at the copy's 4000 GB/s are 30 ms of 64; 8 TFLOP at 800 TFLOP/s are 10 ms of 16
    told = hbm_traffic.story(put(folder, attention))
    lines = told.splitlines()
    assert "| B8 H32 N8192 D128 | Three kernels | One kernel | Ratio |" in lines
    assert "| Bytes in DRAM, GB | 120.00 | 0.12 | 1000.0 |" in lines
    assert "| Time, ms | 64.00 | 16.00 | 4.0 |" in lines
    assert "| The copy would take for these bytes, ms | 30.00 | 0.03 | 1000.0 |" in lines
    assert "| The matrix product would take for these FLOP, ms | 10.00 | 10.00 | 1.0 |" in lines
    assert "| So its roof is that of | bytes | FLOP |  |" in lines
    assert "| Share of its own roof | 47% | 62% | 0.75 |" in lines
    assert "**1000 times fewer bytes, 4.0 times less time.**" in told
    assert "30.00 ms for their bytes, one kernel 10.00 ms for its FLOP: 3.0 times." in told
    assert "3.0 × 62% / 47% is the 4.0 that was measured." in told


@pytest.mark.parametrize("us", [60_000.0, 61_000.0, 66_000.0, 84_930.0, 159_000.0])
def test_the_printed_factors_give_the_printed_speed_up(
    folder: Path, attention: dict[str, Any], us: float
) -> None:
    attention["rows"][1]["us"] = [us] * 3
    told = hbm_traffic.story(put(folder, attention))
    found = re.search(r"([\d.]+) × ([\d.]+)% / ([\d.]+)% is the ([\d.]+) that", told)
    assert found is not None
    roofs, ours, naive, faster = map(float, found.groups())
    assert f"{roofs * ours / naive:.1f}" == f"{faster:.1f}" == f"{us / 16_000:.1f}"
    assert f"at {found[3]}% of their roof and one at {found[2]}% of its own" in told


def test_the_story_needs_a_case_that_both_ran_and_were_counted_on(
    folder: Path, attention: dict[str, Any]
) -> None:
    attention["counters"] = attention["counters"][:1]
    told = hbm_traffic.story(put(folder, attention))
    assert "No case was both timed and counted for three kernels and for one." in told


def test_reads_and_writes_are_judged_apart(folder: Path, attention: dict[str, Any]) -> None:
    # a tensor: 8 x 32 x 8192 x 128 x 2 = 536,870,912 bytes; S and P: 64 times that; LSE: 8,388,608
    tensor = 536_870_912
    attention["counters"][0] |= {"dram_read": 3 * tensor, "dram_write": tensor + 8_388_608}
    attention["counters"][1] |= {"dram_read": 131 * tensor * 2, "dram_write": 129 * tensor - 10**7}
    lines = hbm_traffic.apart(put(folder, attention)).splitlines()
    assert "| one kernel, B8 H32 N8192 D128 | 1.000 | 0 | 2 × 63 |" in lines
    assert "| three kernels, B8 H32 N8192 D128 | 2.000 | 10 | 3 × 63 |" in lines


@pytest.mark.parametrize("changed", [{"causal": True}, {"H_KV": 4}, {"B": 1}])
def test_cases_whose_bytes_may_hide_in_l2_or_have_no_simple_model_are_left_out(
    folder: Path, attention: dict[str, Any], changed: dict[str, Any]
) -> None:
    shape = attention["counters"][0]["shape"] | changed
    attention["counters"] = [row | {"shape": shape} for row in attention["counters"]]
    told = hbm_traffic.apart(put(folder, attention))
    assert "No counted case has tensors that are all larger than 5 L2." in told


def test_softmax_stands_by_path_with_errors_and_rates(
    folder: Path, softmax: dict[str, Any]
) -> None:
    lines = online_softmax.paths(put(folder, softmax)).splitlines()
    alone = "<small>{0} – {0}</small>"
    held = f"100% {alone.format('100%')} | 2.00 {alone.format('2.00')}"
    streamed = f"50% {alone.format('50%')} | 0.80 {alone.format('0.80')}"
    assert f"| held, bf16 | 8 | 1.0e-03 | 2.0e-03 | 1.0e-02 | {held} |" in lines
    assert f"| streamed, bf16 | 64 | 3.0e-03 | – | 1.0e-02 | {streamed} |" in lines


def test_several_widths_of_one_path_are_one_row(folder: Path, softmax: dict[str, Any]) -> None:
    softmax["rows"][3]["issued_bytes"] = softmax["rows"][3]["model_bytes"]
    told = online_softmax.paths(put(folder, softmax))
    assert "| held, bf16 | 8 – 64 | 3.0e-03 |" in told
    assert "streamed" not in told


def test_the_real_kernel_stands_beside_its_peers_from_narrow_to_wide(
    folder: Path, softmax: dict[str, Any]
) -> None:
    lines = triton_kernels.rows(put(folder, softmax)).splitlines()
    assert "| bf16, GB/s of model bytes | ours | eager | copy | of the copy |" in lines
    assert "| M80 N8 | 4,000 | 2,000 | 4,000 | 100% |" in lines
    assert "| M10 N64 | 2,000 | 2,500 | 4,000 | 50% |" in lines


def test_smaller_sizes_are_left_to_the_kernel_page(folder: Path, softmax: dict[str, Any]) -> None:
    held = [row | {"model_bytes": 1_000_000} for row in softmax["rows"][:3]]
    softmax["rows"] = held + softmax["rows"][3:]
    assert "M80 N8" not in triton_kernels.rows(put(folder, softmax))


def test_points_stand_on_their_side_of_the_measured_ridge(
    folder: Path, attention: dict[str, Any]
) -> None:
    # 800 TFLOP/s over 4000 GB/s: 200 FLOP/B. Three kernels: 8e12 / 90e9 = 89 FLOP/B, 125 of 356
    told = roofline.placed(put(folder, attention))
    assert "On this NVIDIA H200 the measured roofs meet at 200 FLOP/B." in told
    assert "Left of it, shares of the copy: flash_attention as three kernels 35%." in told
    assert "Right of it, shares of the matrix product: flash_attention 62%." in told
    assert "A share is of the ceiling in the case's own run. A share may pass 100%:" in told
    case = "flash_attention B8 H32 N8192 D128"
    rows = [f'<th scope="row">{name}</th>' for name in (case, f"{case} as three kernels")]
    assert [told.count(row) for row in rows] == [1, 1]
    assert told.startswith('<figure class="figure" id="measured-roofline-lesson-h200">')


def test_every_block_has_the_stem_of_its_lesson() -> None:
    folder = Path(importlib.import_module("sitebuild.measured").__file__ or "").parent
    stems = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    lessons = folder.parents[1] / "docs" / "lessons"
    using = [f"from sitebuild.measured.{stem} import " for stem in stems]
    shown = [(lessons / f"{stem}.md").read_text("utf-8") for stem in stems]
    assert [line for line, text in zip(using, shown, strict=True) if line not in text] == []
