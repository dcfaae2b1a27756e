"""The softmax-weighted sum of a whole row: the result that every tiled method must reproduce.

What to notice: the largest score is subtracted first, so no exponential can overflow. That takes
the whole row before the first weight is known, and a tile does not have the whole row.

Run it: `python -m snippets.batch_softmax`
"""

import math
from collections.abc import Callable, Sequence

from snippets.naive_attention import check_sizes

Exp = Callable[[float], float]
Rows = Sequence[Sequence[float]]


def check(scores: Sequence[float], values: Rows, **sizes: int) -> None:
    """Raise ValueError unless scores are numbers or -inf, values are numbers, sizes are >= 1."""
    check_sizes(**sizes)
    if len(scores) != len(values):
        raise ValueError(f"one value a score: got {len(scores)} scores, {len(values)} values")
    if not all(is_number(score) and score < math.inf for score in scores):
        raise ValueError(f"scores must be finite or -inf, got {list(scores)}")
    if not all(is_number(x) for row in values for x in row):
        raise ValueError(f"values must be rows of numbers, got {[list(row) for row in values]}")


def is_number(x: object) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)


# --8<-- [start:batch]
def batch(scores: Sequence[float], values: Rows, exp: Exp = math.exp) -> tuple[float, ...]:
    """Return softmax(scores) @ values: n scores, -inf where masked, values (n, d), n >= 1."""
    check(scores, values)
    if not scores:
        raise ValueError("batch needs at least one score, got none")
    m, total, out = max(scores), 0.0, [0.0] * len(values[0])
    if m == -math.inf:
        return tuple(out)  # nothing to attend to
    weights = [exp(score - m) for score in scores]
    for weight in weights:
        total += weight
    for weight, value in zip(weights, values, strict=True):
        out = [o + weight / total * v for o, v in zip(out, value, strict=True)]
    return tuple(out)


# --8<-- [end:batch]


def main() -> None:
    print("scores                     exp(largest)  weighted sum of 1, 2, 3")
    for scores in ([1.0, 2.0, 3.0], [10001.0, 10002.0, 10003.0], [-10003.0, -10002.0, -10001.0]):
        try:
            plain = f"{math.exp(max(scores)):.4f}"
        except OverflowError:
            plain = "overflow"
        out = batch(scores, [[1.0], [2.0], [3.0]])
        print(f"{', '.join(f'{score:.0f}' for score in scores):26} {plain:>12}  {out[0]:.10f}")


if __name__ == "__main__":
    main()
