"""What stands at the head of a kernel page: roof, peers, bytes and errors in a few lines."""

from pathlib import Path
from typing import Any

import pytest

from kernels.bench import stale
from kernels.bench.store import result_path, write
from sitebuild.kernel_answer import answer, mean_ratio, missing_peers, overview, standings
from sitebuild.kernel_results import ABSENT

STEM = "flash_attention"


def slower(row: dict[str, Any], factor: float, **shape: object) -> dict[str, Any]:
    return row | {"us": [factor * us for us in row["us"]], "shape": row["shape"] | shape}


@pytest.fixture
def two_cases(result: dict[str, Any]) -> dict[str, Any]:
    """A second case on which ours takes twice as long and the peer as long as before."""
    ours, theirs, _ = result["rows"]
    result["rows"] += [slower(ours, 2, causal=True), slower(theirs, 1, causal=True)]
    return result


def test_says_so_when_nothing_is_captured(tmp_path: Path) -> None:
    assert answer(STEM, tmp_path) == ABSENT
    assert overview(tmp_path) == ABSENT


def test_every_case_stands_beside_its_ceiling_and_its_best_peer(two_cases: dict[str, Any]) -> None:
    # 500 and 250 of 800 TFLOP/s; 20000 us over 16000 and over 32000
    found = standings(two_cases)["forward", "bf16"]
    assert [(one.share, one.lead, one.peer) for one in found] == [
        (0.625, 1.25, "sdpa-cudnn"),
        (0.3125, 0.625, "sdpa-cudnn"),
    ]


def test_the_answer_holds_middle_range_and_the_weakest_cases(
    folder: Path, two_cases: dict[str, Any]
) -> None:
    write(result_path(folder, STEM, "NVIDIA H200"), two_cases)
    lines = answer(STEM, folder).splitlines()
    share = "47% <small>31% – 62%</small>"
    lead = "0.88 <small>0.62 – 1.25</small>"  # the root of 1.25 x 0.625
    weak = "B8 H32 N8192 D128 causal, forward, bf16"
    assert f"| forward, bf16 | 2 | {share} | {lead} | 1 of 2 |" in lines
    assert f"- Furthest from the roof: {weak}, at 31% of the matrix product." in lines
    assert f"- Weakest beside a peer: {weak}, at 0.62 of sdpa-cudnn." in lines
    assert "- Counted in DRAM at B8 H32 N8192 D128: 0.990 of the model's bytes." in lines
    assert "- Exact enough: 1 of 2 outputs checked." in lines


def test_a_case_that_is_mostly_launch_counts_for_nothing(
    folder: Path, two_cases: dict[str, Any]
) -> None:
    two_cases["rows"][3] |= {"us": [8.0, 9.0, 9.5]}
    write(result_path(folder, STEM, "NVIDIA H200"), two_cases)
    text = answer(STEM, folder)
    assert "| forward, bf16 | 1 of 2 | 62% <small>62% – 62%</small> |" in text
    assert "causal" not in text
    left = "1 case takes under 10 us, mostly launch: left out of medians, means and counts."
    assert f"- {left}" in text.splitlines()
    assert left in overview(folder).splitlines()


def test_without_such_a_case_nothing_is_said_of_it(folder: Path) -> None:
    assert "mostly launch" not in answer(STEM, folder)
    assert "mostly launch" not in overview(folder)


def test_peers_that_one_data_type_lacks_are_named(folder: Path, two_cases: dict[str, Any]) -> None:
    ours, theirs = two_cases["rows"][:2]
    assert missing_peers(two_cases) == {}
    more = [theirs | {"implementation": name} for name in ("flex", "copy", "ours-triton")]
    failed = {k: v for k, v in theirs.items() if k not in ("us", "repetitions", "graph")}
    failed |= {"implementation": "flex", "dtype": "fp16", "error": "out of memory"}
    halves = [ours | {"dtype": "fp16"}, theirs | {"dtype": "fp16"}, failed]
    backward = [ours | {"pass": "backward"}]  # with no peer at all, and in one data type
    two_cases["rows"] += [*more, *halves, *backward]
    assert missing_peers(two_cases) == {("forward", "fp16"): ["flex"]}
    write(result_path(folder, STEM, "NVIDIA H200"), two_cases)
    assert "- Fewer peers in forward, fp16: without flex." in answer(STEM, folder).splitlines()


def test_without_peers_counters_and_times_the_answer_is_short(
    folder: Path, result: dict[str, Any]
) -> None:
    failed = {"implementation": "ours", "error": "out of memory"}
    row = {k: v for k, v in result["rows"][0].items() if k not in ("us", "repetitions", "graph")}
    nothing = {"rows": [row | failed], "counters": "ncu is not installed", "exactness": []}
    write(result_path(folder, STEM, "NVIDIA H200"), result | nothing)
    assert "No case was timed." in answer(STEM, folder)
    assert overview(folder) == ABSENT
    alone = {"rows": result["rows"][:1]} | nothing
    write(result_path(folder, STEM, "NVIDIA H200"), result | alone | {"rows": result["rows"][:1]})
    assert "| forward, bf16 | 1 | 62% <small>62% – 62%</small> | – | – |" in answer(STEM, folder)


def test_all_kernels_stand_in_one_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    share, lead = "62% <small>62% – 62%</small>", "1.25 <small>1.25 – 1.25</small>"
    row = f"NVIDIA H200 | 1 | {share} | {lead} | B8 H32 N8192 D128: 500 TFLOP/s |"
    assert f"| [flash_attention](flash_attention.md) | {row}" in overview(folder)
    monkeypatch.setattr(stale, "source_digest", lambda _module: "b" * 64)
    assert f"| [flash_attention](flash_attention.md) (stale) | {row}" in overview(folder)


def test_the_mean_of_ratios_favours_no_side() -> None:
    assert mean_ratio([4.0, 0.25]) == pytest.approx(1.0)
