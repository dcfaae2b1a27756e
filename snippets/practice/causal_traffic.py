"""Keys and values that a causal loop reads

With a causal mask, query i sees the keys 0 to i. A query-outer loop takes `query_tile` queries at
a time and walks the tiles of `key_tile` keys, each read whole, the last one as far as there are
keys. It skips a tile of which none of its queries sees a key. Return the bytes of K and V that one
head of N queries and N keys of d bf16 numbers reads in all.

Hint: Draw N = 5 with tiles of 2 on squared paper, shade what the mask lets through, and mark the
tiles that hold any shading. For each tile of queries, how many keys do they hold?

Hint: The last query of a tile sees the most keys. Their number, rounded up to whole tiles, is
what the tile of queries reads.

Hint: Neither the last query nor the last tile may pass N. Each key has a row of K and a row of V.

Check it: `python -m snippets.practice.causal_traffic answer.py`
"""


def kv_bytes(N: int, d: int, query_tile: int, key_tile: int) -> int:
    """Return the bytes of K and V that the loop reads for one head."""
    # solution
    keys = 0
    for start in range(0, N, query_tile):
        seen = min(start + query_tile, N)  # by the last query of this tile
        keys += min(-(-seen // key_tile) * key_tile, N)
    return keys * 2 * d * 2  # K and V, of two bytes a number
    # end


# check
from collections.abc import Iterator

from snippets.practice.grading import Case, call, main

SIGNATURE = "kv_bytes(N, d, query_tile, key_tile)"


def by_walking(N: int, d: int, query_tile: int, key_tile: int) -> int:
    """Walk all pairs of tiles, look for a pair that the mask lets through, and count number by
    number what is read."""
    read = 0
    for first_query in range(0, N, query_tile):
        queries = range(N)[first_query : first_query + query_tile]
        for first_key in range(0, N, key_tile):
            keys = range(N)[first_key : first_key + key_tile]
            if any(key <= query for query in queries for key in keys[:1]):
                read += sum(2 * d * 2 for _ in keys)  # a row of K and a row of V each
    return read


def cases() -> Iterator[Case]:
    """Small enough to draw, then ragged, then one head of a real size."""
    inputs = [
        ((4, 1, 2, 2), "The queries 0 and 1 need one tile of keys, 2 and 3 need both."),
        ((4, 1, 1, 2), "A tile on the diagonal is read whole, though half of it is masked."),
        ((4, 1, 4, 1), "The last of these queries sees all keys."),
        ((5, 3, 2, 2), "The last tile of queries and the last tile of keys are not full."),
        ((5, 1, 2, 4), "The second tile of keys holds one key, not four."),
        ((7, 2, 3, 2), "The tiles of queries and keys need not be of one size."),
        ((7, 2, 2, 3), "The tiles of queries and keys need not be of one size."),
        ((1, 64, 128, 128), "One query sees one key, whatever the tiles."),
        ((16384, 64, 128, 128), "A little more than half of what the loop reads without a mask."),
    ]
    for arguments, why in inputs:
        yield call(SIGNATURE, arguments, by_walking(*arguments), why)


if __name__ == "__main__":
    main(cases())
