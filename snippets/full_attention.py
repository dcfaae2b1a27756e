"""Attention with all its scores at once, four queries on four keys: what tiles must reproduce.

What to notice: the scaled scores are whole numbers, small enough to check by hand; the last query
scores every key alike, so its output is the mean of the values.

Run it: `python -m snippets.full_attention`
"""

from collections.abc import Sequence
from math import inf, sqrt

from snippets.batch_softmax import Rows, batch, is_number

Q = [[2.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0], [1.0, 1.0, 1.0, 1.0]]
K = [[1.0, 3.0, 0.0, 0.0], [0.0, 1.0, 1.0, 2.0], [3.0, 0.0, 1.0, 0.0], [2.0, 0.0, 2.0, 0.0]]
V = [[4.0, 0.0], [0.0, 4.0], [8.0, 0.0], [0.0, 8.0]]


def check_shapes(q: Rows, k: Rows, v: Rows) -> None:
    """Raise ValueError unless q is (N, d), k (M, d), v (M, columns) of numbers, none empty."""
    lengths = [sorted({len(row) for row in rows}) for rows in (q, k, v)]
    if any(len(found) != 1 or found[0] == 0 for found in lengths):
        raise ValueError(f"q, k and v need rows of one length each, got lengths {lengths}")
    if lengths[0] != lengths[1]:
        raise ValueError(f"q and k must have rows alike, got {lengths[0][0]} and {lengths[1][0]}")
    if len(k) != len(v):
        raise ValueError(f"one value a key: got {len(k)} keys, {len(v)} values")
    for x in (x for rows in (q, k, v) for row in rows for x in row):
        if not is_number(x):
            raise ValueError(f"q, k and v must hold numbers, got {x!r}")


# --8<-- [start:full]
def score(q: Sequence[float], k: Sequence[float]) -> float:
    """Return q . k / sqrt(d) of one query and one key."""
    total = 0.0
    for x, y in zip(q, k, strict=True):
        total += x * y
    return total / sqrt(len(q))


def scores_of(q: Rows, k: Rows, queries: range, keys: range, causal: bool) -> list[list[float]]:
    """Return a block of scores, -inf where masked. The last query sees every key."""
    offset = len(k) - len(q)
    return [
        [-inf if causal and j > i + offset else score(q[i], k[j]) for j in keys] for i in queries
    ]


def full(q: Rows, k: Rows, v: Rows, causal: bool = False) -> list[tuple[float, ...]]:
    """Return the output (N, columns of v) by way of all N x M scores."""
    check_shapes(q, k, v)
    scores = scores_of(q, k, range(len(q)), range(len(k)), causal)
    return [batch(row, v) for row in scores]


# --8<-- [end:full]


def main() -> None:
    everything = range(len(Q))
    print("          scores, key      output, column")
    print("query     0   1   2   3        0       1")
    rows = zip(scores_of(Q, K, everything, everything, False), full(Q, K, V), strict=True)
    for i, (scores, out) in enumerate(rows):
        print(f"{i:5}  {''.join(f'{s:4.0f}' for s in scores)}  {out[0]:7.3f} {out[1]:7.3f}")


if __name__ == "__main__":
    main()
