"""Causal traffic: the solution by single pairs, and answers that must be refused."""

import pytest

from snippets.loop_order import causal_bytes
from snippets.practice.causal_traffic import kv_bytes


def by_pairs(N: int, d: int, query_tile: int, key_tile: int) -> int:
    """Each pair of query and key that the mask lets through wants the whole tile of the key."""
    wanted = {
        (query // query_tile, key)
        for query in range(N)
        for seen in range(query + 1)
        for key in range(seen // key_tile * key_tile, min((seen // key_tile + 1) * key_tile, N))
    }
    return len(wanted) * 2 * d * 2


@pytest.mark.parametrize("N", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("query_tile", [1, 2, 3, 16])
@pytest.mark.parametrize("key_tile", [1, 2, 5])
def test_the_solution_reads_what_the_pairs_want(N: int, query_tile: int, key_tile: int) -> None:
    assert kv_bytes(N, 3, query_tile, key_tile) == by_pairs(N, 3, query_tile, key_tile)


def test_the_solution_agrees_with_the_lab_of_the_lesson() -> None:
    N, d = 16384, 64
    assert kv_bytes(N, d, 128, 128) == causal_bytes(N, d) - 4 * N * d - 4 * N  # less Q, O and LSE


@pytest.mark.parametrize(
    ("edits", "says"),
    [
        pytest.param(
            [
                ("    return keys * 2 * d * 2", "    return N * -(-N // query_tile) * d * 2"),
            ],
            ["kv_bytes(N=4, d=1, query_tile=2, key_tile=2)", "gave      16\nexpected  24"],
            id="half-by-convention",
        ),
        pytest.param(
            [
                ("min(start + query_tile, N)", "N"),
            ],
            ["gave      32\nexpected  24", "0 and 1 need one tile"],
            id="no-tile-is-skipped",
        ),
        pytest.param(
            [
                ("min(-(-seen // key_tile) * key_tile, N)", "seen"),
            ],
            ["query_tile=1, key_tile=2", "gave      40\nexpected  48", "read whole"],
            id="masked-keys-are-not-read",
        ),
        pytest.param(
            [
                ("min(-(-seen // key_tile) * key_tile, N)", "-(-seen // key_tile) * key_tile"),
            ],
            ["N=5, d=3", "gave      144\nexpected  132", "not full"],
            id="keys-beyond-the-last",
        ),
        pytest.param(
            [
                ("keys * 2 * d * 2", "keys * d * 2"),
            ],
            ["gave      12\nexpected  24"],
            id="K-without-V",
        ),
        pytest.param(
            [
                ("min(start + query_tile, N)", "start + 1"),
            ],
            ["query_tile=4, key_tile=1", "gave      4\nexpected  16", "The last of these queries"],
            id="the-first-query-decides",
        ),
    ],
)
def test_a_wrong_answer_is_told_what_came_and_what_was_expected(refuse, edits, says) -> None:
    found = refuse("causal_traffic", edits)
    assert [part for part in says if part not in found] == []


def test_a_walk_over_single_pairs_is_accepted(judge) -> None:
    answer = """
def kv_bytes(N, d, query_tile, key_tile):
    tiles = {(i // query_tile, min(i, N - 1) // key_tile) for i in range(N)}
    last = {}
    for queries, keys in tiles:
        last[queries] = max(keys, last.get(queries, 0))
    return sum(min((keys + 1) * key_tile, N) for keys in last.values()) * d * 4
"""
    assert judge("causal_traffic", answer) == ""
