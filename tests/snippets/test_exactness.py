"""The measurement of last bits, against fractions and by its own invariants."""

import math
import random
from decimal import Decimal
from fractions import Fraction

import pytest

from snippets.batch_softmax import batch
from snippets.exactness import compare, exact, exp, main, random_rows
from snippets.online_softmax import finish, online


def e_to(x: Fraction) -> Fraction:
    """e to x by its series, to far more than thirty digits for |x| <= 10."""
    term, total = Fraction(1), Fraction(1)
    for k in range(1, 90):
        term = term * x / k
        total += term
    return total


def by_fractions(scores: list[float], values: list[float]) -> Fraction:
    weights = [e_to(Fraction(s)) for s in scores]
    total = sum(w * Fraction(v) for w, v in zip(weights, values, strict=True))
    return Fraction(total / sum(weights))


def row(seed: int, n: int) -> tuple[list[float], list[float]]:
    draw = random.Random(seed).uniform
    return [draw(-4, 4) for _ in range(n)], [draw(-1, 1) for _ in range(n)]


@pytest.mark.parametrize("seed", range(5))
def test_the_exact_result_has_its_digits(seed: int) -> None:
    scores, values = row(seed, 6)
    true = by_fractions(scores, values)
    assert abs(Fraction(exact(scores, values)) - true) < Fraction(1, 10**26)


@pytest.mark.parametrize("x", [0.0, -0.5, -3.7, -20.0, 1.25])
def test_the_exponential_is_correctly_rounded(x: float) -> None:
    assert exp(x) == float(e_to(Fraction(x) / 8) ** 8)


def test_the_exponential_of_a_masked_score_is_zero() -> None:
    assert exp(-math.inf) == 0.0


@pytest.mark.parametrize("seed", range(8))
def test_a_comparison_divides_by_the_sum_of_absolute_terms(seed: int) -> None:
    scores, values = row(seed, 40)
    online_result = finish(online(scores, [[v] for v in values], 16, exp))[0][0]
    batch_result = batch(scores, [[v] for v in values], exp)[0]
    size = by_fractions(scores, [abs(v) for v in values])
    true = by_fractions(scores, values)
    gap, to_result, online_error, batch_error = compare(scores, values, 16)
    assert gap == pytest.approx(abs(online_result - batch_result) / float(size), rel=1e-12, abs=0)
    assert to_result == pytest.approx(
        abs(online_result - batch_result) / abs(batch_result), rel=1e-12, abs=0
    )
    errors = [float(abs(Fraction(x) - true) / size) for x in (online_result, batch_result)]
    assert [online_error, batch_error] == pytest.approx(errors, rel=1e-6, abs=0)


def test_values_of_zero_have_no_error() -> None:
    assert compare([1.0, 2.0], [0.0, 0.0], 1) == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(("n", "rows", "low", "high"), [(10, 300, 180, 240), (256, 60, 50, 60)])
def test_most_rows_differ_in_a_bit(n: int, rows: int, low: int, high: int) -> None:
    assert low <= sum(found[0] > 0 for found in random_rows(n, rows)) <= high


@pytest.mark.parametrize("n", [10, 256])
def test_no_difference_exceeds_a_few_roundings_of_the_sum(n: int) -> None:
    found = random_rows(n, 40)
    assert max(max(gap, a, b) for gap, _, a, b in found) < 1e-14
    assert max(gap for gap, *_ in found) > 1e-17


@pytest.mark.parametrize("seed", range(20))
def test_with_positive_values_the_relative_difference_is_small(seed: int) -> None:
    scores, values = row(seed, 100)
    gap, to_result, _, _ = compare(scores, [abs(v) for v in values], 16)
    assert to_result == pytest.approx(gap, rel=1e-12, abs=0)
    assert to_result < 1e-14


def test_the_same_rows_come_again() -> None:
    assert random_rows(10, 5) == random_rows(10, 5)


@pytest.mark.parametrize("bad", [0, -3, True, 1.5])
def test_counts_that_are_no_positive_integers_are_refused(bad: int) -> None:
    with pytest.raises(ValueError, match="n must be an integer of at least 1"):
        random_rows(bad, 3)
    with pytest.raises(ValueError, match="rows must be an integer of at least 1"):
        random_rows(3, bad)
    with pytest.raises(ValueError, match="tile must be an integer of at least 1"):
        random_rows(3, 3, bad)


def test_rows_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ValueError, match="scores must be finite or -inf"):
        exact([math.nan], [1.0])
    with pytest.raises(ValueError, match="got 2 scores, 1 values"):
        compare([1.0, 2.0], [1.0], 2)
    with pytest.raises(ValueError, match="at least one live score"):
        exact([-math.inf], [1.0])


def test_page_shows_that_the_zero_depends_on_how_the_whole_row_is_summed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main()
    last = capsys.readouterr().out.splitlines()
    assert last[-2].split()[-1] == "7.11e-15"
    assert last[-1].split()[-1] == "0.00e+00"
    assert [line.split()[1] for line in last[2:5]] == ["207", "96", "22"]


def test_thirty_digits_are_kept() -> None:
    assert len(exact([0.0, 1.0], [0.0, 1.0]).as_tuple().digits) == 30
    assert isinstance(exact([0.0], [1.0]), Decimal)
