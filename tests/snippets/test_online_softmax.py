"""Online softmax against the whole row, with masks, extremes, merges and refusals."""

import math
import random
from decimal import Decimal, localcontext

import pytest
import torch

from snippets.online_softmax import State, empty, finish, main, merge, online, update

INF = math.inf
TEN = [3.0, 1.0, 2.5, 0.2, 4.1, -1.0, 2.2, 0.7, 3.3, 1.9]
SIX = [3.1, -1.0, 2.2, 0.5, 4.0, -2.0]


def by_decimals(scores: list[float], values: list[float]) -> tuple[float, float]:
    """Weighted sum and LSE with sixty digits and no subtracted maximum; -inf counts nothing."""
    with localcontext(prec=60):
        live = [
            (Decimal(s).exp(), Decimal(v)) for s, v in zip(scores, values, strict=True) if s > -INF
        ]
        total = sum((w for w, _ in live), Decimal(0))
        return float(sum(w * v for w, v in live) / total), float(total.ln())


def column(values: list[float]) -> list[list[float]]:
    return [[v] for v in values]


def results(scores: list[float], values: list[float], tile: int) -> list[float]:
    """Output and LSE, walked left to right."""
    (out,), lse = finish(online(scores, column(values), tile))
    return [out, lse]


def right_to_left(scores: list[float], values: list[float], tile: int) -> list[float]:
    state = empty(1)
    for i in reversed(range(0, len(scores), tile)):
        state = update(state, scores[i : i + tile], column(values[i : i + tile]))
    (out,), lse = finish(state)
    return [out, lse]


def row(seed: int, n: int, low: float = -5, high: float = 5) -> tuple[list[float], list[float]]:
    draw = random.Random(seed).uniform
    return [draw(low, high) for _ in range(n)], [draw(-1, 1) for _ in range(n)]


def close(expected: tuple[float, float]) -> object:
    return pytest.approx(list(expected), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(
    ("scores", "step", "tile", "shown"),
    [(TEN, 10, 4, "53.6863940430"), (SIX, 1, 2, "3.7557683242")],
)
def test_the_two_worked_rows_come_out_to_ten_decimals(
    scores: list[float], step: int, tile: int, shown: str
) -> None:
    values = [float(step * (i + 1)) for i in range(len(scores))]
    assert f"{results(scores, values, tile)[0]:.10f}" == shown
    assert f"{by_decimals(scores, values)[0]:.10f}" == shown


@pytest.mark.parametrize("n", [1, 2, 7, 16])
@pytest.mark.parametrize("seed", range(4))
def test_every_tile_size_from_one_to_beyond_the_row_gives_the_exact_result(
    n: int, seed: int
) -> None:
    scores, values = row(seed, n)
    expected = close(by_decimals(scores, values))
    assert all(results(scores, values, tile) == expected for tile in range(1, n + 2))
    assert all(right_to_left(scores, values, tile) == expected for tile in range(1, n + 2))


@pytest.mark.parametrize("start", [0, 4, 8])
@pytest.mark.parametrize("tile", [1, 2, 3, 4, 5])
def test_a_fully_masked_tile_anywhere_changes_nothing(start: int, tile: int) -> None:
    scores, values = row(start, 12)
    scores[start : start + 4] = [-INF] * 4
    assert results(scores, values, tile) == close(by_decimals(scores, values))


@pytest.mark.parametrize("tile", [1, 4, 7])
def test_a_masked_tile_met_first_leaves_strongly_negative_scores_their_weights(tile: int) -> None:
    scores, values = row(3, 20, -9010, -8990)
    scores[-8:] = [-INF] * 8
    expected = close(by_decimals(scores, values))
    assert right_to_left(scores, values, tile) == expected
    assert results(scores, values, tile) == expected
    weights = finish(online(scores, [[1.0]] * 20, tile))[0]
    assert weights == pytest.approx([1.0])


@pytest.mark.parametrize("center", [1e4, -1e4])
@pytest.mark.parametrize("tile", [1, 3, 9])
def test_scores_of_ten_thousand_neither_overflow_nor_vanish(center: float, tile: int) -> None:
    scores, values = row(5, 8, center - 3, center + 3)
    assert results(scores, values, tile) == close(by_decimals(scores, values))


def test_both_extremes_in_one_row_leave_the_larger() -> None:
    assert results([-1e4, 1e4, -1e4], [1.0, 2.0, 3.0], 1) == [2.0, 1e4]


@pytest.mark.parametrize("tile", [1, 2, 3, 5])
def test_a_row_without_a_live_score_gives_zero_and_lse_minus_infinity(tile: int) -> None:
    assert finish(online([-INF] * 4, [[1.0, 2.0]] * 4, tile)) == ((0.0, 0.0), -INF)


def test_a_row_without_scores_gives_nothing_and_lse_minus_infinity() -> None:
    assert finish(online([], [], 2)) == ((), -INF)
    assert finish(update(empty(2), [], [])) == ((0.0, 0.0), -INF)


def test_one_finite_score_far_inside_a_masked_row_takes_all_the_weight() -> None:
    scores, values = [-INF] * 1000, [float(i) for i in range(1000)]
    scores[500] = 10.0
    assert results(scores, values, 64) == [500.0, 10.0]


def test_the_state_holds_maximum_sum_and_weighted_sum() -> None:
    state = update(update(empty(1), [2.0, 2.0], [[1.0], [3.0]]), [4.0], [[8.0]])
    assert state.m == 4.0
    assert state.l == pytest.approx(2 * math.exp(-2) + 1)
    assert state.acc == pytest.approx((4 * math.exp(-2) + 8,))


@pytest.mark.parametrize("cut", range(13))
def test_two_parts_merge_to_the_whole_in_either_order(cut: int) -> None:
    scores, values = row(cut, 12)
    left = update(empty(1), scores[:cut], column(values[:cut]))
    right = update(empty(1), scores[cut:], column(values[cut:]))
    expected = close(by_decimals(scores, values))
    merged = [finish(merge(left, right)), finish(merge(right, left))]
    assert all([out[0], lse] == expected for out, lse in merged)


@pytest.mark.parametrize("seed", range(10))
def test_merging_is_associative_up_to_rounding(seed: int) -> None:
    parts = [online(*(row(10 * seed + i, 6)[0], column(row(seed, 6)[1])), 2) for i in range(3)]
    a, b, c = parts
    one, other = merge(merge(a, b), c), merge(a, merge(b, c))
    assert one.m == other.m
    assert one.l == pytest.approx(other.l, rel=1e-14)
    assert one.acc == pytest.approx(other.acc, rel=1e-13, abs=1e-14)


def test_merging_with_the_empty_state_changes_nothing() -> None:
    state = online(TEN, column(TEN), 4)
    assert merge(state, empty(1)) == merge(empty(1), state) == state
    assert merge(empty(1), empty(1)) == empty(1)


def test_output_and_lse_alone_are_a_state_that_merges() -> None:
    values = [10.0 * (i + 1) for i in range(10)]
    stored = [
        finish(online(TEN[:4], column(values[:4]), 4)),
        finish(online(TEN[4:], column(values[4:]), 4)),
    ]
    states = [State(lse, 1.0, out) for out, lse in stored]
    assert f"{finish(merge(*states))[0][0]:.10f}" == "53.6863940430"


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_torch_in_float64_on_vectors(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = 4 * torch.randn(33, dtype=torch.float64, generator=generator)
    values = torch.randn(33, 5, dtype=torch.float64, generator=generator)
    out, lse = finish(online(scores.tolist(), values.tolist(), 8))
    assert list(out) == pytest.approx((scores.softmax(0) @ values).tolist(), abs=1e-14)
    assert lse == pytest.approx(scores.logsumexp(0).item(), abs=1e-14)


@pytest.mark.parametrize("bad", [math.nan, INF])
@pytest.mark.parametrize("where", [0, 5])
def test_scores_that_are_no_numbers_are_refused_wherever_they_stand(bad: float, where: int) -> None:
    scores = list(SIX)
    scores[where] = bad
    with pytest.raises(ValueError, match="scores must be finite or -inf, got"):
        online(scores, column(SIX), 2)
    with pytest.raises(ValueError, match="scores must be finite or -inf, got"):
        update(empty(1), scores, column(SIX))


@pytest.mark.parametrize("count", [5, 7])
def test_lengths_that_do_not_match_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"got 6 scores, {count} values"):
        online(SIX, [[1.0]] * count, 2)
    with pytest.raises(ValueError, match=f"got 6 scores, {count} values"):
        update(empty(1), SIX, [[1.0]] * count)


@pytest.mark.parametrize("tile", [0, -1, True, 2.0])
def test_a_tile_that_is_no_positive_integer_is_refused(tile: int) -> None:
    with pytest.raises(ValueError, match="tile must be an integer of at least 1, got"):
        online(SIX, column(SIX), tile)


def test_page_shows_both_rows_the_masked_ones_and_the_merge(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main()
    out = capsys.readouterr().out
    assert out.count("53.6863940430") == 5
    assert out.count("3.7557683242") == 2
    assert "-inf" in out
    assert "nan" not in out


def test_parts_of_different_width_are_not_merged() -> None:
    with pytest.raises(ValueError, match="both parts need as many columns, got 1 and 2"):
        merge(empty(1), empty(2))
