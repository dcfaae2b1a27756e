"""How many rows differ in their last bits between online and batch softmax, and by how much.

What to notice: most rows differ in some bit, and more of them the longer the row; the difference
is a few 1e-16 of sum p|v|, and both methods lie about equally far from the exact result.

Run it: `python -m snippets.exactness`
"""

import math
import random
from collections.abc import Sequence
from decimal import Context, Decimal
from functools import lru_cache
from statistics import median

from snippets.batch_softmax import batch, check
from snippets.naive_attention import check_sizes
from snippets.online_softmax import finish, online

DIGITS = Context(prec=30)
Comparison = tuple[float, float, float, float]


@lru_cache(1 << 16)
def exp(x: float) -> float:
    """Return e to the x with the same bits everywhere; `math.exp` leaves them to the system."""
    return float(Decimal(x).exp())


# --8<-- [start:exactness]
def exact(scores: Sequence[float], values: Sequence[float]) -> Decimal:
    """Return the softmax-weighted sum of these floats to some thirty digits."""
    check(scores, [[value] for value in values])
    if max(scores, default=-math.inf) == -math.inf:
        raise ValueError(f"exact needs at least one live score, got {list(scores)}")
    largest, total, weighted = Decimal(max(scores)), Decimal(0), Decimal(0)
    for score, value in zip(scores, values, strict=True):
        p = DIGITS.subtract(Decimal(score), largest).exp(DIGITS)
        total = DIGITS.add(total, p)
        weighted = DIGITS.fma(p, Decimal(value), weighted)
    return DIGITS.divide(weighted, total)


def compare(scores: Sequence[float], values: Sequence[float], tile: int) -> Comparison:
    """Return |online - batch| over sum p|v| and over |batch|, then each one's error.

    The errors are against the exact result and over sum p|v|. A divisor of 0 counts as 1.
    """
    column = [[value] for value in values]
    (a,), (b,) = finish(online(scores, column, tile, exp))[0], batch(scores, column, exp)
    size = batch(scores, [[abs(value)] for value in values], exp)[0] or 1.0
    true = exact(scores, values)
    error_a, error_b = (float(abs(Decimal(x) - true)) / size for x in (a, b))
    return abs(a - b) / size, abs(a - b) / (abs(b) or 1.0), error_a, error_b


def random_rows(n: int, rows: int, tile: int = 16) -> list[Comparison]:
    """Compare `rows` rows of n scores from -4 to 4 and n values from -1 to 1."""
    check_sizes(n=n, rows=rows, tile=tile)
    draw = random.Random(n).uniform
    pairs = [[[draw(-b, b) for _ in range(n)] for b in (4, 1)] for _ in range(rows)]
    return [compare(scores, values, tile) for scores, values in pairs]


# --8<-- [end:exactness]


def main() -> None:
    print("         rows that   difference / sum p|v|   / result   error / sum p|v|")
    print("   n        differ     median        max          max   online    batch")
    for n, rows in ((10, 300), (256, 100), (1024, 25)):
        gaps, to_result, *errors = zip(*random_rows(n, rows), strict=True)
        print(f"{n:4} {sum(gap > 0 for gap in gaps):6} of {rows:3}", end="")
        print(f"    {median(gaps):.1e}    {max(gaps):.1e}      {max(to_result):.1e}", end="")
        print("".join(f"  {median(error):.1e}" for error in errors))
    scores, values = [3.0, 1.0, 2.5, 0.2, 4.1, -1.0, 2.2, 0.7, 3.3, 1.9], range(10, 101, 10)
    column, weights = [[float(v)] for v in values], [exp(s - max(scores)) for s in scores]
    a, b = finish(online(scores, column, 4, exp))[0], batch(scores, column, exp)
    total = math.fsum(weights)
    c = math.fsum(w / total * v for w, v in zip(weights, values, strict=True))
    print("\nten scores, |online - batch| when batch sums")
    print(f"  in order, rounding each time   {abs(a[0] - b[0]):.2e}")
    print(f"  with math.fsum, rounding once  {abs(a[0] - c):.2e}")


if __name__ == "__main__":
    main()
