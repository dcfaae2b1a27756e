"""What the pages say in words of the captured results is so in the results.

Numbers on a page are computed from a result, and change with it. A sentence does not: where a new
capture says otherwise, the test that is named after the sentence fails, and the sentence has to go.
"""

from collections.abc import Iterable
from math import exp, log
from typing import Any

import pytest

from kernels.bench.cases import LADDER, TRIAL
from kernels.bench.schema import read
from kernels.bench.stale import RESULTS

DEVICE = "h200"
FAR_ABOVE_L2 = 8192  # keys of the cases whose tensors are far beyond the L2


def rows_of(stem: str, part: str = "rows") -> list[dict[str, Any]]:
    return list(read(RESULTS / f"{stem}.{DEVICE}.json")[part])


def times(stem: str, key: str = "us", **wanted: Any) -> dict[tuple[Any, ...], dict[str, float]]:
    """Medians by (B, N, D, causal), and by implementation, of the rows that are as wanted."""
    found: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in rows_of(stem):
        facts = row | row["shape"]
        if key in row and all(facts.get(name) == value for name, value in wanted.items()):
            length = facts.get("N_K", facts.get("N"))
            case = facts["B"], length, facts.get("D"), facts.get("causal")
            found.setdefault(case, {})[row["implementation"]] = row[key][1]
    return found


def most(verdicts: Iterable[bool]) -> bool:
    counted = list(verdicts)
    return sum(counted) > len(counted) / 2


def gains(before: str, after: str, D: int) -> dict[tuple[int, bool], float]:
    """How many times as fast, by length and mask."""
    return {
        (N, causal): each[before] / each[after]
        for (_, N, _, causal), each in times("attention_ladder", D=D).items()
    }


def test_the_ring_gains_at_the_smaller_head_dimension_most_where_short_and_causal() -> None:
    found = gains("longest-first", "ring", 64)
    assert most(gain > 1.0 for gain in found.values())
    assert max(found, key=found.__getitem__) == (1024, True)


def test_the_copying_warp_loses_at_the_smaller_head_dimension_most_where_short_and_causal() -> None:
    found = gains("ring", "warpgroups", 64)
    assert most(gain < 1.0 for gain in found.values())
    assert min(found, key=found.__getitem__) == (1024, True)
    assert found[1024, True] < 1.0
    assert min(gains("ring", "warpgroups", 128).values()) > 1.0


def test_without_a_mask_the_whole_kernel_is_ahead_of_the_last_step() -> None:
    for D in (64, 128):
        found = gains(LADDER[-1], "flash_attention", D)
        assert all(gain > 1.0 for (_, causal), gain in found.items() if not causal)


@pytest.mark.parametrize(("D", "end"), [(64, min), (128, max)])
def test_with_a_mask_it_is_ahead_only_on_the_shortest_or_on_the_longest(D: int, end: Any) -> None:
    found = gains(LADDER[-1], "flash_attention", D)
    ahead = [N for (N, causal), gain in found.items() if causal and gain > 1.0]
    assert ahead == [end(N for N, _ in found)]


def test_where_the_wait_stays_most_shapes_lose_and_most_at_the_smaller_head_dimension() -> None:
    small, large = (list(gains(LADDER[-1], TRIAL, D).values()) for D in (64, 128))
    assert most(gain < 1.0 for gain in (*small, *large))
    means = [exp(sum(map(log, found)) / len(found)) for found in (small, large)]
    assert means[0] < means[1] < 1.0


def test_step_3_is_further_behind_than_the_plain_kernel_on_long_sequences_of_large_heads() -> None:
    steps = times("attention_ladder", D=128)
    plain = times("flash_attention", D=128, dtype="bf16", **{"pass": "forward"})
    gains = {
        case[1:]: plain[case]["sdpa-cudnn"] / plain[case]["ours-triton"]
        - steps[case]["sdpa-cudnn"] / steps[case]["longest-first"]
        for case in steps.keys() & plain.keys()
    }  # fmt: skip
    assert gains.pop((1024, 128, True)) < 0  # short and causal
    assert all(gain > 0 for gain in gains.values())
    assert len(gains) > 4


@pytest.mark.parametrize("name", ["ours", "ours-triton"])
def test_far_beyond_the_l2_dram_supplies_every_key_once(name: str) -> None:
    ratios = [
        (row["dram_read"] + row["dram_write"]) / row["model_bytes"]
        for row in rows_of("flash_attention", "counters")
        if (row["implementation"], row["shape"]["N_K"]) == (name, FAR_ABOVE_L2)
        and not row["shape"]["causal"]
    ]
    assert ratios == pytest.approx([1.0] * len(ratios), abs=0.02)
    assert len(ratios) > 1


def test_the_l2_handles_less_than_is_issued_where_all_ask_for_the_same_keys() -> None:
    handled: dict[bool, list[float]] = {False: [], True: []}
    for row in rows_of("flash_attention", "counters"):
        if (row["implementation"], row["shape"]["N_K"]) == ("ours", FAR_ABOVE_L2):
            handled[row["shape"]["causal"]].append(row["l2_bytes"] / row["issued_bytes"])
    assert all(0.7 < ratio < 0.9 for ratio in handled[False])
    assert all(0.95 < ratio < 1.05 for ratio in handled[True])
    assert all(handled.values())


def test_gradients_that_repeat_cost_more() -> None:
    pairs = times("flash_attention", **{"pass": "backward", "dtype": "bf16", "N_K": 8192}).values()
    assert all(each["ours-deterministic"] > each["ours"] for each in pairs)
    assert len(pairs) > 1


def test_a_launch_takes_longer_than_a_short_kernel() -> None:
    rows = rows_of("flash_attention", "launches")
    ours = [row for row in rows if row["implementation"] == "ours"]
    shortest = min(ours, key=lambda row: row["shape"]["N_K"])
    assert shortest["us"][0] > 2 * shortest["graph_us"][2]


@pytest.mark.parametrize("model", ["gpt2", "llama"])
def test_a_short_decoding_step_waits_for_the_host(model: str) -> None:
    of = {"pass": "decode", model: True, "implementation": "ours"}
    stream, graphs = times("model_path", **of), times("model_path", "graph_us", **of)
    shortest = min(stream, key=lambda case: case[1])
    assert stream[shortest]["ours"] > 2 * graphs[shortest]["ours"]


@pytest.mark.parametrize("model", ["gpt2", "llama"])
def test_a_step_that_waits_for_the_host_is_slower_with_ours(model: str) -> None:
    of = {"pass": "decode", model: True}
    stream, graphs = times("model_path", **of), times("model_path", "graph_us", **of)
    shortest = min(stream, key=lambda case: case[1])
    assert stream[shortest]["ours"] > stream[shortest]["sdpa-cudnn"]
    assert graphs[shortest]["ours"] < 1.01 * graphs[shortest]["sdpa-cudnn"]


def test_one_training_step_is_slower_though_its_kernels_are_faster() -> None:
    slower: dict[str, list[tuple[str, int]]] = {"us": [], "alone_us": []}
    for key, found in slower.items():
        for model in ("gpt2", "llama"):
            steps = times("model_path", key, **{"pass": "train", model: True})
            behind = (case[1] for case, x in steps.items() if x["ours"] > 1.01 * x["sdpa-cudnn"])
            found += [(model, N) for N in behind]
    assert slower == {"us": [("gpt2", 1024)], "alone_us": []}


@pytest.mark.parametrize("model", ["gpt2", "llama"])
def test_training_steps_wait_for_the_gpu_what_attention_takes_is_what_its_kernels_take(
    model: str,
) -> None:
    of = {"pass": "train", model: True}
    layers = {"gpt2": 24, "llama": 4}[model]
    steps, alone = times("model_path", **of), times("model_path", "alone_us", **of)
    for case, each in steps.items():
        for name in ("ours", "sdpa-cudnn"):
            takes = each[name] - each["none"]
            assert takes == pytest.approx(layers * alone[case][name], rel=0.5), (case, name)
