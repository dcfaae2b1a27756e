"""The model-path page from a made-up result, every value computed by hand."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernels.bench import stale
from kernels.bench.schema import faults
from kernels.bench.store import result_path, write
from sitebuild.figures.model_speed import LINES, chart, curves, highest
from sitebuild.kernel_paths import paths
from sitebuild.kernel_results import ABSENT, STALE
from sitebuild.kernel_tables import exactness
from sitebuild.labs import ROOT
from sitebuild.model_rows import by_step, clock_of, no_slower, rate, tokens, worth
from sitebuild.model_tables import amdahl, answer, launches, memory, speed

SITE_CSS = ROOT / "docs" / "assets" / "site.css"
TABLES = [answer, amdahl, speed, launches, memory]
MS = 1000.0


def spread(us: float) -> list[float]:
    return [us * 0.8, us, us * 1.25]


def step(name: str, phase: str, model: str, B: int, N: int, **more: Any) -> dict[str, Any]:
    shape = {model: True, "B": B, "N": N}
    facts = {"implementation": name, "pass": phase, "dtype": "bf16", "shape": shape, "session": 0}
    return facts | more


def timed(
    name: str, phase: str, model: str, B: int, N: int, us: float, **more: Any
) -> dict[str, Any]:
    peak = {"us": spread(us), "repetitions": 12, "peak_bytes": 2_500_000_000}
    return step(name, phase, model, B, N, **peak, **more)


FAST = {"kernel": "fast_kernel", "reason": ""}
SLOW = {"kernel": "slow_kernel", "reason": "not a Hopper GPU"}
PREFILL = ("prefill", "gpt2", 4, 4096)
DECODE = ("decode", "llama", 8, 1024)
TRAIN = ("train", "llama", 1, 16384)
ROWS = [
    # attention is 4 of 10 ms; ours takes 3 of its 4 alone: 10 / (6 + 3) = 1.111
    timed("ours", *PREFILL, 9 * MS, alone_us=spread(300.0), path=FAST),
    timed("sdpa-cudnn", *PREFILL, 10 * MS, alone_us=spread(400.0)),
    timed("sdpa-flash", *PREFILL, 12 * MS, alone_us=spread(500.0)),
    step("eager", *PREFILL, error="out of memory"),
    timed("none", *PREFILL, 6 * MS),
    # launched one by one ours is slower; as graphs attention is half, and ours twice as fast
    timed("ours", *DECODE, 12 * MS, alone_us=spread(10.0), graph_us=spread(3 * MS), path=FAST),
    timed("sdpa-cudnn", *DECODE, 8 * MS, alone_us=spread(20.0), graph_us=spread(4 * MS)),
    timed("sdpa-flash", *DECODE, 7 * MS, alone_us=spread(30.0), graph_us=spread(5 * MS)),
    timed("eager", *DECODE, 16 * MS),
    timed("none", *DECODE, 6 * MS, graph_us=spread(2 * MS)),
    # behind by the median, and within the spread
    timed("ours", *TRAIN, 110 * MS, alone_us=spread(5 * MS), path=FAST, gradients_path=SLOW),
    timed("sdpa-cudnn", *TRAIN, 100 * MS, alone_us=spread(4 * MS)),
    step("sdpa-flash", *TRAIN, error="RuntimeError: No available kernel."),
    step("eager", *TRAIN, error="out of memory"),
    timed("none", *TRAIN, 60 * MS),
]
COUNTED = {"pass": "prefill", "dtype": "bf16", "shape": {"gpt2": True, "B": 4, "N": 4096}}
LAUNCHES = [
    {"implementation": "none", **COUNTED, "kernels": 300, "copies": 50, "attention": {}},
    {"implementation": "ours", **COUNTED, "kernels": 324, "copies": 50,
     "attention": {"fast_kernel": 24}},
    {"implementation": "eager", **COUNTED, "kernels": 420, "copies": 74,
     "attention": {"gemm": 48, "softmax": 24, "copy": 48}},
    {"implementation": "sdpa-flash", **COUNTED, "error": "RuntimeError: No available kernel."},
]  # fmt: skip


@pytest.fixture
def model_result(result: dict[str, Any]) -> dict[str, Any]:
    exact = {"implementation": "ours", **COUNTED, "output": "logits", "error": 0.01,
             "eager_error": 0.02, "tolerance": 0.05, "passed": True}  # fmt: skip
    result["run"] |= {"transformers": "5.17.0", "command": "python -m kernels.bench model_path"}
    return result | {
        "kernel": "model_path", "rows": ROWS, "launches": LAUNCHES, "exactness": [exact],
        "counters": "not counted", "uncounted": [],
    }  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, model_result: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one fresh result of the model path."""
    monkeypatch.setattr(stale, "source_digest", lambda _module: "a" * 64)
    write(result_path(tmp_path, "model_path", "NVIDIA H200"), model_result)
    return tmp_path


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def test_the_made_up_result_is_one_by_the_schema(model_result: dict[str, Any]) -> None:
    assert faults(model_result) == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"rows": [ROWS[0] | {"pass": "forward"}]}, "rows/0/pass"),
        ({"rows": [ROWS[0] | {"model_bytes": 1}]}, "rows/0"),
        ({"rows": [ROWS[3] | {"us": [1.0] * 3, "repetitions": 1}]}, "rows/0"),
        ({"launches": [LAUNCHES[0] | {"kernels": 0}]}, "launches/0/kernels"),
        ({"launches": [LAUNCHES[1] | {"attention": {"x": 0}}]}, "launches/0/attention/x"),
    ],
)
def test_a_broken_step_is_named(
    model_result: dict[str, Any], change: dict[str, Any], where: str
) -> None:
    assert [fault for fault in faults(model_result | change) if fault.startswith(where)]


@pytest.mark.parametrize("render", [*TABLES, chart])
def test_says_so_when_nothing_is_captured(tmp_path: Path, render: Callable[[Path], str]) -> None:
    assert render(tmp_path) == ABSENT


@pytest.mark.parametrize("render", TABLES)
def test_every_table_is_marked_when_stale_and_says_where_it_comes_from(
    place: Path, monkeypatch: pytest.MonkeyPatch, render: Callable[[Path], str]
) -> None:
    assert STALE not in render(place)
    assert "{ .origin }" in render(place)
    monkeypatch.setattr(stale, "source_digest", lambda _module: "b" * 64)
    assert f"{STALE}\n{{ .stale }}" in render(place)
    assert '<p class="stale">' in chart(place)


def test_the_law_predicts_from_the_share_and_from_attention_alone(place: Path) -> None:
    lines = lines_of(amdahl(place))
    assert "| 4,096 | 40% | 1.33 | 1.111 | 1.111 | 1.67 |" in lines  # 1 / (0.6 + 0.4 / 1.333)
    assert "| 1,024 | 50% | 2.00 | 1.333 | 1.333 | 2.00 |" in lines  # by the graphs
    assert "| 16,384 | 40% | 0.80 | 0.909 | 0.909 | 1.67 |" in lines
    assert "**GPT-2-like, prefill**" in lines
    assert "**Llama-like, decoding**, replayed as CUDA graphs" in lines


def test_the_answer_goes_from_the_shortest_to_the_longest(
    place: Path, model_result: dict[str, Any]
) -> None:
    shorter = [
        row | {"shape": {"gpt2": True, "B": 16, "N": 1024}} | (
            {"us": spread(8 * MS)} if row["implementation"] == "none" else {}
        )
        for row in ROWS[:5]
    ]  # fmt: skip
    model_result["rows"] = [*ROWS, *shorter]
    write(result_path(place, "model_path", "NVIDIA H200"), model_result)
    lines = lines_of(answer(place))
    assert "| GPT-2-like, prefill | 20% → 40% | 1.11 → 1.11 | 1.25 → 1.67 |" in lines
    assert "- Exact enough: 1 of 1 outputs checked." in lines


def test_the_answer_says_where_ours_is_ahead_level_and_where_memory_ended(place: Path) -> None:
    text = answer(place)
    ahead = "by the medians ours is at least as fast as the best SDPA in"
    assert f"- Prefill of 4,096 tokens and more: {ahead} 1 of 1 cases, within the spread in 1." in (
        lines_of(text)
    )
    assert f"- Training steps: {ahead} 0 of 1 cases, within the spread in 1." in lines_of(text)
    ended = "GPT-2-like, prefill, N = 4,096; Llama-like, training step, N = 16,384"
    assert f"- Separate calls (`eager`) ran out of memory: {ended}." in lines_of(text)


def test_tokens_a_second_stand_with_their_spread_and_errors(place: Path) -> None:
    lines = lines_of(speed(place))
    ours = "1,820,444<br><small>1,456,356–2,275,556</small>"  # 16384 / 9 ms
    assert any(line.startswith(f"| N 4,096 B 4 | {ours} | 1,638,400<br>") for line in lines)
    assert any("| out of memory |" in line for line in lines)
    replayed = lines.index('??? note "Llama-like, decoding, replayed as CUDA graphs: tokens a '
                           'second"')  # fmt: skip
    assert "| 2,667<br><small>2,133–3,333</small> |" in lines[replayed + 4]  # 8 / 3 ms
    assert lines[replayed + 4].count("| – |") == 1  # eager was not replayed


def test_launches_and_copies_stand_side_by_side_and_names_in_a_fold(place: Path) -> None:
    lines = lines_of(launches(place))
    kernels, copies = (lines.index(f"**{x} in one step**") for x in ("Kernels", "Copies"))
    assert lines[kernels + 4] == "| GPT-2-like, prefill | 324 | – | – | 420 | 300 |"
    assert lines[copies + 4] == "| GPT-2-like, prefill | 50 | – | – | 74 | 50 |"
    assert "| GPT-2-like, prefill, ours | `fast_kernel` × 24 |" in lines
    names = "`gemm` × 48<br>`softmax` × 24<br>`copy` × 48"
    assert f"| GPT-2-like, prefill, eager | {names} |" in lines
    assert "| GPT-2-like, prefill, none | – |" in lines


def test_without_counts_there_are_none(place: Path, model_result: dict[str, Any]) -> None:
    write(result_path(place, "model_path", "NVIDIA H200"), model_result | {"launches": []})
    assert ABSENT in launches(place)


def test_peaks_are_in_gb_and_say_who_ran_out(place: Path) -> None:
    lines = lines_of(memory(place))
    start = lines.index("| **GPT-2-like, prefill** |  |  |  |  |  |")
    assert lines[start + 1] == "| N 4,096 B 4 | 2.5 | 2.5 | 2.5 | out of memory | 2.5 |"


def test_other_parts_of_kernel_pages_take_the_result_too(place: Path) -> None:
    ran = paths("model_path", place)
    assert "| prefill | `fast_kernel` | – | 1 |" in ran
    assert "| train, backward | `slow_kernel` | not a Hopper GPU | 1 |" in ran
    case = "| logits, prefill, bf16 | 1.0e-02 | 2.0e-02 | 5.0e-02 | gpt2 B4 N4096 | 1 of 1 |"
    assert case in exactness("model_path", place)
    assert exactness("model_path", place).count("from float32.") == 1


def test_a_step_without_a_rival_or_without_the_rest_is_worth_nothing_known() -> None:
    rows = {row["implementation"]: row for row in ROWS[:5]}
    assert worth(rows) is not None
    assert worth({name: rows[name] for name in ("ours", "none")}) is None
    assert worth({name: row for name, row in rows.items() if name != "none"}) is None
    assert worth({name: row for name, row in rows.items() if name != "ours"}) is None
    alone = {name: value for name, value in rows["ours"].items() if name != "alone_us"}
    assert worth(rows | {"ours": alone}) is None


def test_a_step_that_is_faster_with_attention_than_without_has_no_negative_share() -> None:
    rows = {row["implementation"]: row for row in ROWS[:5]}
    found = worth(rows | {"none": timed("none", *PREFILL, 11 * MS)})
    assert found is not None
    assert (found.share, found.predicted) == (0.0, 1.0)


def test_graphs_count_only_where_all_that_are_compared_have_one() -> None:
    rows = {row["implementation"]: row for row in ROWS[5:10]}
    assert clock_of(rows) == "graph_us"
    without = {name: value for name, value in rows["ours"].items() if name != "graph_us"}
    assert clock_of(rows | {"ours": without}) == "us"


def test_no_slower_is_a_matter_of_the_quantiles() -> None:
    ours, best = ({"us": us} for us in ([99.0, 110.0, 120.0], [90.0, 95.0, 99.0]))
    assert no_slower(ours, best)
    assert not no_slower(ours | {"us": [99.1, 110.0, 120.0]}, best)


def test_a_decoding_step_makes_one_token_a_sequence() -> None:
    assert [tokens(row) for row in (ROWS[0], ROWS[5], ROWS[10])] == [16384, 8, 16384]
    assert rate(ROWS[5], 4 * MS) == 2000.0


def test_steps_are_in_the_order_of_models_phases_and_lengths(model_result: dict[str, Any]) -> None:
    model_result["rows"] = list(reversed(ROWS))
    assert list(by_step(model_result)) == [
        ("gpt2", "prefill"), ("llama", "decode"), ("llama", "train")
    ]  # fmt: skip


def test_the_chart_draws_the_best_rival_and_a_table_of_all_values(
    place: Path, model_result: dict[str, Any]
) -> None:
    steps = by_step(model_result)["llama", "decode"]
    assert curves(steps) == {
        "eager": [],  # launched one by one, beside replayed graphs
        "best SDPA": [(1024, 2000.0)],
        "ours": [(1024, 8 / 3e-3)],
        "no attention": [(1024, 4000.0)],
    }
    drawn = chart(place)
    assert drawn.count("<polyline") == 3 + 3 + 3  # eager ran out of memory twice
    assert drawn.count(">no attention</text>") == 1 + 3  # in the legend and at each line
    assert drawn.count(">eager</text>") == 1
    assert "Decoding is replayed as a CUDA graph; eager cannot be, and is left out there." in drawn
    assert '<tr><th scope="row">GPT-2-like, prefill</th><td>ours</td><td>4,096</td>' in drawn
    ids = re.findall(r'\bid="([^"]+)"', drawn)
    assert len(ids) == len(set(ids)) > 0


def test_without_replays_eager_is_drawn_beside_the_rest_and_the_caption_says_nothing(
    place: Path, model_result: dict[str, Any]
) -> None:
    rows = [{k: v for k, v in row.items() if k != "graph_us"} for row in ROWS]
    write(result_path(place, "model_path", "NVIDIA H200"), model_result | {"rows": rows})
    assert curves(by_step({"rows": rows})["llama", "decode"])["eager"] == [(1024, 500.0)]
    assert chart(place).count(">eager</text>") == 2
    assert "replayed" not in chart(place)


def test_no_two_lines_of_the_chart_look_alike() -> None:
    looks = [classes for _, classes in LINES]
    assert len(looks) == len(set(looks)) == 4
    css = SITE_CSS.read_text("utf-8")
    dashes = [re.search(rf"\.figure \.{name} {{[^}}]*stroke-dasharray: ([^;]+);", css)
              for name in ("dotted", "long-dashed")]  # fmt: skip
    assert None not in dashes
    assert len({found[1] for found in dashes if found}) == 2
    assert css.index(".figure .stroke-ink") < css.index(".figure .long-dashed")  # its width wins


def test_a_name_stands_over_the_highest_part_of_the_line_below_it() -> None:
    falling = [(0.0, 0.0), (10.0, 10.0), (20.0, 30.0)]
    assert [highest(falling, start) for start in (20.0, 15.0, 5.0, -5.0)] == [30.0, 20.0, 5.0, 0.0]


def test_a_step_that_nobody_could_do_is_drawn_as_such(
    place: Path, model_result: dict[str, Any]
) -> None:
    failed = [step(row["implementation"], *TRAIN, error="out of memory") for row in ROWS[10:]]
    write(result_path(place, "model_path", "NVIDIA H200"), model_result | {"rows": failed})
    assert ">not timed</text>" in chart(place)
    assert "| 16,384 | – | – | – | – | – |" in lines_of(amdahl(place))
    assert "No step was timed." in answer(place)
