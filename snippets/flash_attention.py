"""Attention by tiles, four queries on four keys, with every value of the running state shown.

What to notice: four scores exist at a time, never sixteen. Where a maximum grows, the sums made
before shrink; where every score is equal, l counts the keys.

Run it: `python -m snippets.flash_attention`
"""

from collections.abc import Iterator
from typing import NamedTuple

from snippets.batch_softmax import Rows
from snippets.full_attention import K, Q, V, check_shapes, full, scores_of
from snippets.naive_attention import check_sizes
from snippets.online_softmax import State, empty, finish, update


# --8<-- [start:walk]
class Step(NamedTuple):
    """What is on the chip when one tile of queries has met one tile of keys."""

    queries: range
    keys: range
    scores: list[list[float]]  # (queries, keys), all the scores that exist at this moment
    states: list[State]  # one a query, this tile included


def tiles(n: int, size: int) -> list[range]:
    """Cut n rows into ranges of `size`; the last may be shorter."""
    check_sizes(n=n, size=size)
    return [range(n)[i : i + size] for i in range(0, n, size)]


def walk(
    q: Rows, k: Rows, v: Rows, query_tile: int, key_tile: int, causal: bool = False
) -> Iterator[Step]:
    """Yield each step for q (N, d), k (M, d), v (M, columns); `list` of it is the whole trace."""
    check_shapes(q, k, v)
    check_sizes(query_tile=query_tile, key_tile=key_tile)
    for queries in tiles(len(q), query_tile):
        states = [empty(len(v[0]))] * len(queries)
        for keys in tiles(len(k), key_tile):
            scores, values = scores_of(q, k, queries, keys, causal), [v[j] for j in keys]
            states = [update(s, row, values) for s, row in zip(states, scores, strict=True)]
            yield Step(queries, keys, scores, states)


def attend(
    q: Rows, k: Rows, v: Rows, query_tile: int, key_tile: int, causal: bool = False
) -> tuple[list[tuple[float, ...]], list[float], int]:
    """Return output (N, columns), LSE (N) and the most scores that existed at one moment."""
    outputs, lses, peak = [], [], 0
    for step in walk(q, k, v, query_tile, key_tile, causal):
        peak = max(peak, sum(len(row) for row in step.scores))
        if step.keys.stop == len(k):  # the last keys for these queries
            for out, lse in map(finish, step.states):
                outputs.append(out)
                lses.append(lse)
    return outputs, lses, peak


# --8<-- [end:walk]


def main() -> None:
    print("step  queries  keys  query    scores   m      l     acc, column")
    print("                              of tile               0       1")
    for number, step in enumerate(walk(Q, K, V, 2, 2), 1):
        queries, keys = (f"{r[0]}-{r[-1]}" for r in (step.queries, step.keys))
        for i, row, (m, total, acc) in zip(step.queries, step.scores, step.states, strict=True):
            print(f"{number:4} {queries:>8} {keys:>5} {i:6}  ", *(f"{s:3.0f}" for s in row), end="")
            print(f"{m:5.0f} {total:6.3f}", *(f"{a:7.3f}" for a in acc))
    print("\ntiles  scores alive at most  same output as with all 16, to 1e-12")
    for query_tile, key_tile in ((2, 2), (1, 4), (3, 3)):
        outputs, _, peak = attend(Q, K, V, query_tile, key_tile)
        pairs = zip(sum(outputs, ()), sum(full(Q, K, V), ()), strict=True)
        same = all(abs(a - b) < 1e-12 for a, b in pairs)
        print(f"{query_tile} x {key_tile} {peak:21}  {'yes' if same else 'no'}")


if __name__ == "__main__":
    main()
