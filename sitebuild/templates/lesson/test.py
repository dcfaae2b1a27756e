"""TO FILL one sentence: the mean of a few numbers against exact fractions, and its refusal."""

from fractions import Fraction

import pytest

from snippets.new_stem import main, mean


def exact(values: list[float]) -> Fraction:
    """The same by fractions, which do not round."""
    return sum((Fraction(value) for value in values), Fraction(0)) / len(values)


@pytest.mark.parametrize("values", [[2.0], [1.0, 4.0], [0.5, 1.5, 4.0], [-3.0, 3.0]])
def test_agrees_with_exact_fractions(values: list[float]) -> None:
    assert mean(values) == pytest.approx(float(exact(values)))


def test_refuses_to_take_the_mean_of_nothing() -> None:
    with pytest.raises(ValueError, match=r"values must hold at least one number, got \[\]"):
        mean([])


def test_prints_a_line_for_each_list(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "2.00",
        "2.50",
        "2.00",
    ]
