"""The ladder's page from its files and from a made-up result, every value computed by hand."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kernels.bench import stale
from kernels.bench.cases import LADDER, LADDER_OURS, TRIAL
from kernels.bench.store import result_path, write
from sitebuild import ladder
from sitebuild.figures import ladder_shapes, ladder_story
from sitebuild.kernel_results import ABSENT, STALE

PARTS = [ladder.short, ladder.speed, ladder.trial, ladder.evidence, ladder.exactness]
CHARTS = [ladder_story.chart, ladder_shapes.chart]
NAMES = [*LADDER_OURS, "sdpa-cudnn"]
TIME = dict(zip(NAMES, range(100, 0, -10), strict=True))  # us, each faster than the one before
FLOPS = 10_000_000_000  # at 100 us 100 TFLOP/s


def shape(N: int, D: int = 64, causal: bool = False) -> dict[str, Any]:
    return {"B": 1, "H": 2, "H_KV": 2, "N_Q": N, "N_K": N, "D": D, "causal": causal}


def row(name: str, of: dict[str, Any]) -> dict[str, Any]:
    return {"implementation": name, "pass": "forward", "dtype": "bf16", "shape": of,
            "model_bytes": 1000, "issued_bytes": None, "flops": FLOPS, "session": 0,
            "us": [float(TIME[name])] * 3, "repetitions": 4, "graph": False}  # fmt: skip


@pytest.fixture
def climbed(folder: Path, result: dict[str, Any]) -> Path:
    """Two lengths without a mask and one causal, of which the ring failed."""
    shapes = (shape(1024), shape(4096), shape(4096, causal=True))
    rows = [row(name, of) for of in shapes for name in NAMES]
    del rows[2 * len(NAMES) + 3]["us"]
    failed = rows[2 * len(NAMES) + 3]
    del failed["repetitions"], failed["graph"]
    failed["error"] = "not exact enough: out"
    checked = [
        {"implementation": name, "pass": "forward", "dtype": "bf16", "shape": shape(1024),
         "output": output, "error": error, "eager_error": 0.004, "tolerance": 0.008,
         "passed": error is not None} | ({} if error else {"reason": "not finite"})
        for name, output, error in (("two-loops", "out", 0.002), ("two-loops", "lse", 0.004),
                                    ("ring", "out", None))
    ]  # fmt: skip
    counted = {"implementation": "overlap", "pass": "forward", "dtype": "bf16",
               "shape": shape(4096), "model_bytes": 1_000_000, "issued_bytes": None,
               "dram_read": 800_000, "dram_write": 250_000, "l2_bytes": 4_320_000_000,
               "kernels": 1, "tensor_percent": 61.25, "xu_percent": None}  # fmt: skip
    result |= {"kernel": "attention_ladder", "rows": rows, "exactness": checked, "launches": []}
    result |= {"counters": [counted], "uncounted": [
        {"implementation": "ring", "pass": "forward", "dtype": "bf16", "shape": shape(4096),
         "reason": "out of memory"}]}  # fmt: skip
    write(result_path(folder, "attention_ladder", "NVIDIA H200"), result)
    return folder


@pytest.mark.parametrize("render", [*PARTS, *CHARTS])
def test_says_so_when_nothing_is_captured(tmp_path: Path, render: Any) -> None:
    assert render(tmp_path) == ABSENT


@pytest.mark.parametrize("render", [*PARTS, *CHARTS])
def test_what_other_code_measured_is_marked(
    climbed: Path, monkeypatch: pytest.MonkeyPatch, render: Any
) -> None:
    assert "stale" not in render(climbed)
    monkeypatch.setattr(stale, "source_digest", lambda _module: "b" * 64)
    assert STALE.replace("'", "&#x27;") in render(climbed).replace("'", "&#x27;")


def test_in_short_every_step_stands_on_the_longest_sequence(climbed: Path) -> None:
    lines = ladder.short(climbed).splitlines()
    assert "| N = 4096, TFLOP/s | 64 | 64, causal | 128 | 128, causal |" in lines
    assert "| 1 two-loops | 100 | 100 | – | – |" in lines
    assert "| 4 ring | 143 | – | – | – |" in lines
    assert "| sdpa-cudnn | 1,000 | 1,000 | – | – |" in lines


def test_every_shape_has_its_rate_and_the_gain_over_the_step_before(climbed: Path) -> None:
    text = ladder.speed(climbed)
    assert "| D = 64, TFLOP/s | N = 1024 | N = 4096 |" in text
    assert "| 2 descriptors | 111 <small>+11%</small> | 111 <small>+11%</small> |" in text
    assert "| 1 two-loops | 100 | 100 |" in text
    assert "| flash_attention | 500 <small>+100%</small> |" in text  # over step 7, as the trial
    assert "| trial: late-wait | 333 <small>+33%</small> | 333 <small>+33%</small> |" in text
    assert "| sdpa-cudnn | 1,000 | 1,000 |" in text
    assert "| 5 warpgroups | 167 |" in text  # causal, where the ring has no time
    assert "- ring, bf16 B1 H2 N4096 D64 causal: `not exact enough: out`" in text


def times(result: dict[str, Any], us: dict[int, float]) -> dict[str, Any]:
    """Return the result with a time of the trial for each length, and none for other lengths."""
    kept = []
    for one in result["rows"]:
        if one["implementation"] == TRIAL and one["shape"]["N_K"] in us:
            kept.append(one | {"us": [us[one["shape"]["N_K"]]] * 3})
        elif one["implementation"] != TRIAL:
            kept.append(one)
    return result | {"rows": kept}


@pytest.mark.parametrize(
    ("us", "told", "line"),
    [
        (
            {1024: 32.0, 4096: 20.0},
            "3 of 3; slower: 0. Its rate changes by +25% to +100%, by their geometric mean +71%.",
            "| D = 64 | +25% | +100% |",
        ),
        (
            {1024: 50.0, 4096: 80.0},
            "0 of 3; slower: 3. Its rate changes by −50% to −20%, by their geometric mean −42%.",
            "| D = 64 | −20% | −50% |",
        ),
        (
            {1024: 32.0, 4096: 50.0},
            "1 of 3; slower: 2. Its rate changes by −20% to +25%, by their geometric mean −7%.",
            "| D = 64 | +25% | −20% |",
        ),
        (
            {1024: 40.0, 4096: 50.0},
            "0 of 3; slower: 2. Its rate changes by −20% to 0%, by their geometric mean −14%.",
            "| D = 64, causal | – | −20% |",
        ),
    ],
)
def test_the_trial_says_whether_it_is_faster_than_the_last_step(
    climbed: Path, result: dict[str, Any], us: dict[int, float], told: str, line: str
) -> None:
    write(result_path(climbed, "attention_ladder", "NVIDIA H200"), times(result, us))
    text = ladder.trial(climbed)
    assert f"Shapes on which it is faster than step 7 persistent: {told}" in text
    assert "| late-wait over persistent | N = 1024 | N = 4096 |" in text
    assert line in text


@pytest.mark.parametrize(
    ("gain", "told"),
    [(-0.004, "0%"), (0.0, "0%"), (0.004, "0%"), (-0.006, "−1%"), (0.006, "+1%"), (1.5, "+150%")],
)
def test_a_gain_that_rounds_to_nothing_has_no_sign(gain: float, told: str) -> None:
    assert ladder.percent(gain) == told


def test_a_trial_without_a_time_is_compared_with_nothing(
    climbed: Path, result: dict[str, Any]
) -> None:
    path = result_path(climbed, "attention_ladder", "NVIDIA H200")
    write(path, times(result, {1024: 50.0}))
    assert "persistent: 0 of 1; slower: 1." in ladder.trial(climbed)
    write(path, times(result, {}))
    assert "No shape was timed with it and with the last step." in ladder.trial(climbed)


@pytest.mark.parametrize("render", [ladder.short, ladder.speed])
def test_the_trial_stands_last_and_without_a_number(climbed: Path, render: Any) -> None:
    names = [line.split(" | ")[0] for line in render(climbed).splitlines() if line[:2] == "| "]
    apart = ["| 7 persistent", "| flash_attention", "| sdpa-cudnn", "| trial: late-wait"]
    assert names[names.index("| 7 persistent") :][:4] == apart
    assert "| 8 late-wait" not in names


def test_the_trial_is_counted_and_checked_after_all_others(
    climbed: Path, result: dict[str, Any]
) -> None:
    counted, checked = result["counters"][0], result["exactness"][0]
    result["counters"].insert(0, counted | {"implementation": TRIAL})
    result["exactness"].insert(0, checked | {"implementation": TRIAL})
    write(result_path(climbed, "attention_ladder", "NVIDIA H200"), result)
    lines = ladder.evidence(climbed).splitlines()
    of_trial = [n for n, text in enumerate(lines) if "| trial: late-wait |" in text]
    of_overlap = [n for n, text in enumerate(lines) if "| 6 overlap |" in text]
    assert of_trial == [n + 1 for n in of_overlap]
    assert ladder.exactness(climbed).index("trial: late") > ladder.exactness(climbed).index("ring")


def test_the_evidence_holds_busy_units_and_moved_bytes(climbed: Path) -> None:
    text = ladder.evidence(climbed)
    assert "Counted at B1 H2 N4096 D64" in text
    assert "| 6 overlap | 61 % | – | 4.32 | 1.05 |" in text
    assert "| Tensor cores busy | 64 | 64, causal | 128 | 128, causal |" in text
    assert "| 6 overlap | 61 % | – | – | – |" in text
    assert "- ring B1 H2 N4096 D64: not counted, out of memory" in text


def test_without_counters_the_evidence_says_why(climbed: Path, result: dict[str, Any]) -> None:
    result["counters"] = "ncu is not installed"
    write(result_path(climbed, "attention_ladder", "NVIDIA H200"), result)
    assert "Not counted: ncu is not installed." in ladder.evidence(climbed)


def test_errors_are_shares_of_what_is_allowed(climbed: Path) -> None:
    lines = ladder.exactness(climbed).splitlines()
    assert "| 1 two-loops | 25% | 50% | 2 of 2 |" in lines
    assert "| 4 ring | not finite | – | 0 of 1 |" in lines


def test_a_small_error_is_not_none(climbed: Path, result: dict[str, Any]) -> None:
    for row, error in zip(result["exactness"], (0.0, 0.00003), strict=False):
        row["error"] = error
    write(result_path(climbed, "attention_ladder", "NVIDIA H200"), result)
    assert "| 1 two-loops | 0% | &lt;1% | 2 of 2 |" in ladder.exactness(climbed).splitlines()


def test_the_story_has_a_bar_for_each_rate_on_the_longest_sequence(climbed: Path) -> None:
    drawn = ladder_story.chart(climbed)
    assert drawn.count("<rect") == 2 * (len(NAMES) - 1) - 1  # but no bar for the trial
    assert TRIAL not in drawn
    assert '<th scope="row">7 persistent</th><td>64</td><td>causal</td><td>250</td>' in drawn
    assert "sdpa-cudnn, D = 64, no mask: 1,000 TFLOP/s" in drawn


def test_the_shapes_have_a_line_for_each_length_and_a_dot_for_each_step(climbed: Path) -> None:
    drawn = ladder_shapes.chart(climbed)
    assert drawn.count("<polyline") == 3
    assert drawn.count("<circle") == 3 * len(LADDER) - 1
    assert TRIAL not in drawn
    assert ". Soft: N = 1024; strong: N = 4096.</figcaption>" in drawn


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("left", [(), (TRIAL,)], ids=["none", "trial"])
def test_a_result_in_which_all_failed_but_the_trial_is_not_drawn(
    climbed: Path, result: dict[str, Any], chart: Any, left: tuple[str, ...]
) -> None:
    kept = ("us", "repetitions", "graph")
    result["rows"] = [
        {k: v for k, v in row.items() if k not in kept} | {"error": "out of memory"}
        for row in result["rows"]
        if row["implementation"] not in left
    ] + [row for row in result["rows"] if row["implementation"] in left]
    write(result_path(climbed, "attention_ladder", "NVIDIA H200"), result)
    assert chart(climbed) == ABSENT


@pytest.mark.parametrize(
    ("earlier", "later"), [*pairwise(LADDER), (LADDER[-1], TRIAL)], ids=lambda name: name
)
def test_a_difference_leads_from_one_file_to_the_next(earlier: str, later: str) -> None:
    lines = ladder.difference(later).splitlines()
    before, after = ladder.FILES[earlier], ladder.FILES[later]
    counts = [len(ladder.code_of(ladder.FOLDER / name)) for name in (before, after)]
    assert lines[0] == f'```diff title="{before} → {after}"'
    assert (
        sum(x[0] == "+" for x in lines) - sum(x[0] == "-" for x in lines) == counts[1] - counts[0]
    )
    assert all(re.fullmatch(r"@@ \w+ @@", x) for x in lines if x.startswith("@"))


def test_a_line_that_was_only_moved_in_is_no_difference() -> None:
    lines = ladder.difference("persistent").splitlines()
    kept = "        p = gl.convert_layout(p.to(q_tile.dtype), P)"
    assert f" {kept}" in lines
    assert f"+{kept}" not in lines


def test_a_difference_shows_no_docstring_of_the_file_and_no_mark_of_a_section() -> None:
    text = "\n".join(ladder.difference(name) for name in [*LADDER[1:], TRIAL])
    assert "8<" not in text
    assert "of the attention ladder" not in text


@pytest.mark.parametrize("name", ladder.FILES)
def test_a_step_is_short(name: str) -> None:
    limit = dict.fromkeys((LADDER[-1], TRIAL), 300).get(name, 200)
    assert len((ladder.FOLDER / ladder.FILES[name]).read_text("utf-8").splitlines()) <= limit


def test_every_file_of_a_step_is_on_the_ladder_and_the_trial_beside_it() -> None:
    parts = {"__init__.py", "arguments.py", "gluon_tiles.py"}
    assert {path.name for path in ladder.FOLDER.glob("*.py")} - parts == set(ladder.FILES.values())
