"""TO FILL a title, here: The mean of two lists

TO FILL what to do, naming each argument. Here: of two lists of numbers only the means, `mean_a` and
`mean_b`, and the lengths, `len_a` and `len_b`, are known. Return the mean of all their numbers.

Hint: TO FILL a first hint. Here: a mean times its length is a sum.

Hint: TO FILL one that gives away more. Here: the longer list counts for more.

Check it: `python -m snippets.practice.new_stem_exercise answer.py`
"""


def joined(mean_a: float, len_a: int, mean_b: float, len_b: int) -> float:
    """Return the mean of both lists; one of them may be empty."""
    # solution
    return (mean_a * len_a + mean_b * len_b) / (len_a + len_b)
    # end


# check
from collections.abc import Iterator

from snippets.practice.grading import Case, call, main

SIGNATURE = "joined(mean_a, len_a, mean_b, len_b)"


def by_counting(a: list[float], b: list[float]) -> float:
    """Add up one number after another."""
    total = 0.0
    for value in [*a, *b]:
        total += value
    return total / len([*a, *b])


def cases() -> Iterator[Case]:
    """TO FILL which inputs: one that fits in the head first, the nasty ones last."""
    inputs: list[tuple[list[float], list[float], str]] = [
        ([2.0], [4.0], "Both are equally long."),
        ([2.0, 2.0, 2.0], [6.0], "The longer list counts for more."),
        ([1.0, 2.0], [], "The second is empty, so its mean is of no consequence."),
    ]
    for a, b, why in inputs:
        arguments = (mean_of(a), len(a), mean_of(b), len(b))
        yield call(SIGNATURE, arguments, by_counting(a, b), why)


def mean_of(values: list[float]) -> float:
    return by_counting(values, []) if values else 100.0


if __name__ == "__main__":
    main(cases())
