"""The weighted sum of a whole row, against fractions, and its refusals."""

import math
import random
from decimal import Decimal, localcontext

import pytest

from snippets.batch_softmax import batch, check, main


def by_decimals(scores: list[float], values: list[float]) -> float:
    with localcontext(prec=60):
        weights = [Decimal(s).exp() for s in scores]
        return float(
            sum(w * Decimal(v) for w, v in zip(weights, values, strict=True)) / sum(weights)
        )


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_sixty_digits_without_a_subtracted_maximum(seed: int) -> None:
    draw = random.Random(seed).uniform
    scores, values = [draw(-30, 30) for _ in range(17)], [draw(-1, 1) for _ in range(17)]
    (out,) = batch(scores, [[v] for v in values])
    assert out == pytest.approx(by_decimals(scores, values), abs=1e-14)


@pytest.mark.parametrize("shift", [1e4, -1e4, 0.0])
def test_a_shift_of_all_scores_changes_nothing(shift: float) -> None:
    (out,) = batch([1 + shift, 2 + shift, 3 + shift], [[1.0], [2.0], [3.0]])
    assert f"{out:.10f}" == "2.5752103826"


def test_each_column_is_summed_by_itself() -> None:
    assert batch([0.0, 0.0], [[1.0, 10.0], [3.0, 30.0]]) == (2.0, 20.0)


def test_a_masked_score_has_no_weight_and_an_empty_row_gives_zeros() -> None:
    assert batch([-math.inf, 2.0], [[5.0], [7.0]]) == (7.0,)
    assert batch([-math.inf] * 3, [[5.0, 1.0]] * 3) == (0.0, 0.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_scores_that_are_no_numbers_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="scores must be finite or -inf, got"):
        batch([1.0, bad], [[1.0], [2.0]])


def test_a_score_without_a_value_is_refused() -> None:
    with pytest.raises(ValueError, match="got 2 scores, 1 values"):
        batch([1.0, 2.0], [[1.0]])


@pytest.mark.parametrize("bad", [0, -1, True, 2.0, "4"])
def test_a_size_that_is_no_positive_integer_is_refused(bad: int) -> None:
    with pytest.raises(ValueError, match="tile must be an integer of at least 1, got"):
        check([1.0], [[1.0]], tile=bad)


def test_an_empty_row_without_a_column_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one score"):
        batch([], [])


def test_page_shows_the_overflow_that_the_maximum_prevents(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main()
    out = capsys.readouterr().out
    assert "overflow" in out
    assert out.count("2.5752103826") == 3
