"""The player's trace against the lab's own walk, and its bytes against the lab's formulas."""

import json
import math
import re
from html import unescape
from itertools import pairwise

import pytest

from sitebuild import run, tile_trace
from sitebuild.figures.tile_walk import WALKS, number
from sitebuild.tile_trace import Frame, frames, naive_kernels
from snippets.flash_attention import attend, walk
from snippets.full_attention import K, Q, V
from snippets.hbm_traffic import issued_bytes, naive_bytes
from snippets.online_softmax import State

TILINGS = [(rows, keys, causal) for rows in (1, 2, 3, 4) for keys in (1, 2, 3, 4, 5) for causal in (False, True)]  # fmt: skip  # noqa: E501


def trace(*how: int) -> list[Frame]:
    return list(frames(Q, K, V, *how))


def before_of(frame: Frame) -> list[State]:
    return [row.before for row in frame.rows]


def after_of(frame: Frame) -> list[State]:
    return [row.after for row in frame.rows]


@pytest.mark.parametrize("how", TILINGS, ids=str)
def test_every_frame_is_a_step_of_the_lab(how) -> None:
    found = [(f.queries, f.keys, [r.scores for r in f.rows], after_of(f)) for f in trace(*how)]
    assert found == [tuple(step) for step in walk(Q, K, V, *how)]


@pytest.mark.parametrize("how", TILINGS, ids=str)
def test_a_state_before_is_the_state_after_the_tile_before(how) -> None:
    found = trace(*how)
    starts = [f for f in found if f.keys.start == 0]
    follows = [(a, b) for a, b in pairwise(found) if b.keys.start > 0]
    empty = State(-math.inf, 0.0, (0.0, 0.0))
    assert all(state == empty for frame in starts for state in before_of(frame))
    assert all(before_of(b) == after_of(a) for a, b in follows)


@pytest.mark.parametrize("how", TILINGS, ids=str)
def test_the_factor_is_the_power_of_the_maxima_and_1_where_none_grew(how) -> None:
    rows = [row for frame in trace(*how) for row in frame.rows]
    live = [row for row in rows if row.after.m > -math.inf]
    assert [row.factor for row in live] == [math.exp(row.before.m - row.after.m) for row in live]
    assert all(row.factor is None for row in rows if row not in live)


@pytest.mark.parametrize("how", TILINGS, ids=str)
def test_the_last_tile_of_a_query_gives_its_output_and_lse(how) -> None:
    outputs, lses, _ = attend(Q, K, V, *how)
    done = [row.done for frame in trace(*how) for row in frame.rows if row.done]
    assert done == list(zip(outputs, lses, strict=True))


@pytest.mark.parametrize("how", TILINGS, ids=str)
def test_the_bytes_are_those_of_the_traffic_lab_at_the_mean_number_of_columns(how) -> None:
    # queries and keys have 4 columns, values and output 2; the formula is linear in d
    assert trace(*how)[-1].moved == issued_bytes(4, 3, how[0])
    assert sum(count for _, count in naive_kernels(Q, K, V)) == naive_bytes(4, 3)


def test_a_tile_masked_before_any_live_score_has_no_factor() -> None:
    rows = next(frames(Q[:3], K[:1], V[:1], 1, 1, True)).rows
    assert rows[0].factor is None
    assert rows[0].before == rows[0].after


def test_a_step_that_update_does_not_return_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = (step._replace(states=step.states[::-1]) for step in walk(Q, K, V, 2, 2))
    monkeypatch.setattr(tile_trace, "walk", lambda *_: wrong)
    with pytest.raises(ValueError, match="query 0: the lab's step is not what its update returns"):
        trace(2, 2)


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.0, "3"), (-2.0, "−2"), (-math.inf, "−∞"), (3.4401, "3.440"), (-0.25, "−0.250")],
)
def test_a_number_is_short_where_it_is_whole(value: float, text: str) -> None:
    assert number(value) == text


def test_the_table_and_the_data_of_the_player_say_the_same() -> None:
    html = run("sitebuild.figures.tile_walk")
    played = json.loads(unescape(re.search(r'data-walks="([^"]*)"', html)[1]))
    tables = re.findall(r"<table>(.*?)</table>", html)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", table) for table in tables]
    expected = [
        text
        for one in played
        for index, step in enumerate(one["steps"], 1)
        for row in step["rows"]
        for text in (str(index), row["scores"], row["factor"], row["LSE"], str(step["moved"]))
    ]
    width = 11
    found = [
        row[column]
        for table in cells
        for row in (table[i : i + width] for i in range(width, len(table), width))
        for column in (0, 3, 5, 9, 10)
    ]
    assert [one["name"] for one in played] == list(WALKS)
    assert found == expected
