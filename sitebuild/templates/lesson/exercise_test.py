"""TO FILL one sentence: the solution against fractions, and answers that must be refused."""

from fractions import Fraction

import pytest

from snippets.practice.new_stem_exercise import joined


@pytest.mark.parametrize(("a", "b"), [([1, 2, 3], [4]), ([5], [7, 7, 7]), ([-1, 1], [3])])
def test_the_solution_agrees_with_fractions(a: list[int], b: list[int]) -> None:
    means = [float(Fraction(sum(values), len(values))) for values in (a, b)]
    exact = Fraction(sum(a) + sum(b), len(a) + len(b))
    assert joined(means[0], len(a), means[1], len(b)) == pytest.approx(float(exact))


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        pytest.param(
            [("(mean_a * len_a + mean_b * len_b) / (len_a + len_b)", "(mean_a + mean_b) / 2")],
            ["len_a=3", "gave      4.0\nexpected  3.0", "counts for more"],
            id="mean-of-the-means",
        ),
        pytest.param(
            [(" / (len_a + len_b)", "")],
            ["gave      6.0\nexpected  3.0", "equally long"],
            id="sum-and-not-mean",
        ),
        pytest.param(
            [("mean_b * len_b", "mean_b * max(len_b, 1)")],
            ["len_b=0", "is empty"],
            id="an-empty-list-counts",
        ),
    ],
)
def test_a_wrong_answer_is_told_what_came_and_what_was_expected(refuse, edits, says) -> None:
    found = refuse("new_stem_exercise", edits)
    assert [part for part in says if part not in found] == []


def test_weights_are_accepted(judge) -> None:
    answer = """
def joined(mean_a, len_a, mean_b, len_b):
    share = len_a / (len_a + len_b)
    return mean_a * share + mean_b * (1 - share)
"""
    assert judge("new_stem_exercise", answer) == ""
