"""The other loop orders against walks that count the bytes of each load and store."""

from typing import Any

import pytest

from snippets.hbm_traffic import issued_bytes
from snippets.loop_order import causal_bytes, key_outer_bytes, main

# N, d, query tile, key tile: equal, unequal either way, ragged, larger than N
RAGGED = [
    (1, 1, 1, 1),
    (8, 2, 4, 4),
    (7, 3, 4, 2),
    (9, 2, 2, 4),
    (13, 3, 5, 3),
    (5, 4, 8, 8),
    (10, 1, 3, 16),
    (11, 2, 16, 3),
]


def count_causal(N: int, d: int, tile: int, key_tile: int, itemsize: int) -> int:
    """Walk the tiles; a tile of keys is read if any of its keys is visible to any query."""
    moved = 0
    for start in range(0, N, tile):
        queries = range(start, min(start + tile, N))
        moved += len(queries) * (2 * d * itemsize + 4)  # Q in, O and the logsumexp out
        for first in range(0, N, key_tile):
            keys = range(first, min(first + key_tile, N))
            visible = any(key <= query for query in queries for key in keys)
            moved += visible * len(keys) * 2 * d * itemsize
    return moved


def count_key_outer(
    N: int, d: int, key_tile: int, itemsize: int, o_itemsize: int, first_read: bool
) -> int:
    """Walk algorithm 1 row by row: O, m and l are read, updated and written on each pass."""
    moved = 0
    for start in range(0, N, key_tile):
        for _key in range(start, min(start + key_tile, N)):
            moved += 2 * d * itemsize
        for _query in range(N):
            state = d * o_itemsize + 4 + 4
            moved += d * itemsize
            moved += state if start or first_read else 0
            moved += state
    return moved


@pytest.mark.parametrize("itemsize", [2, 4])
@pytest.mark.parametrize(("N", "d", "tile", "key_tile"), RAGGED)
def test_causal_bytes_are_those_a_walk_through_the_tiles_counts(
    N: int, d: int, tile: int, key_tile: int, itemsize: int
) -> None:
    expected = count_causal(N, d, tile, key_tile, itemsize)
    assert causal_bytes(N, d, tile, key_tile, itemsize) == expected


@pytest.mark.parametrize("first_read", [True, False])
@pytest.mark.parametrize(("itemsize", "o_itemsize"), [(2, 2), (2, 4), (4, 4)])
@pytest.mark.parametrize(("N", "d", "_tile", "key_tile"), RAGGED)
def test_key_outer_bytes_are_those_a_walk_counts(
    N: int, d: int, _tile: int, key_tile: int, itemsize: int, o_itemsize: int, first_read: bool
) -> None:
    expected = count_key_outer(N, d, key_tile, itemsize, o_itemsize, first_read)
    assert key_outer_bytes(N, d, key_tile, itemsize, o_itemsize, first_read) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (causal_bytes(16384, 64), "274.79"),
        (key_outer_bytes(16384, 64, o_itemsize=2), "843.06"),
        (key_outer_bytes(16384, 64, o_itemsize=4), "1379.93"),
    ],
)
def test_reproduces_the_reference_values(count: int, expected: str) -> None:
    assert f"{count / 1e6:.2f}" == expected


@pytest.mark.parametrize("tiles", [1, 2, 5, 128])
def test_equal_tiles_leave_t_plus_one_over_two_t_of_the_key_reads(tiles: int) -> None:
    N, d, once = 16 * tiles, 8, 16 * tiles * (2 * 8 * 2 + 4)
    full, causal = issued_bytes(N, d, tile=16) - once, causal_bytes(N, d, 16, 16) - once
    assert causal * 2 * tiles == full * (tiles + 1)


def test_skipping_the_first_read_saves_one_read_of_o_and_its_two_sums() -> None:
    saved = key_outer_bytes(100, 8) - key_outer_bytes(100, 8, first_read=False)
    assert saved == 100 * 8 * 4 + 8 * 100


def test_prints_each_loop_with_its_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    printed = capsys.readouterr().out
    assert "query-outer                                 541.13        3.98" in printed
    assert "query-outer, causal                         274.79        7.85" in printed
    assert "key-outer, O in 16 bits                     843.06        2.56" in printed
    assert "key-outer, O in fp32                       1379.93        1.56" in printed
    assert "first read of O skipped                  1375.60        1.57" in printed
    assert max(len(line) for line in printed.splitlines()) <= 72


@pytest.mark.parametrize("wrong", [0, -1, True, 1.0])
@pytest.mark.parametrize("name", ["N", "d", "tile", "key_tile", "itemsize"])
def test_causal_refuses_a_size_that_is_no_positive_integer(name: str, wrong: object) -> None:
    sizes: dict[str, Any] = {"N": 4, "d": 2, "tile": 2, "key_tile": 2, "itemsize": 2} | {
        name: wrong
    }
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, got {wrong}"):
        causal_bytes(**sizes)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.0])
@pytest.mark.parametrize("name", ["N", "d", "key_tile", "itemsize", "o_itemsize"])
def test_key_outer_refuses_a_size_that_is_no_positive_integer(name: str, wrong: object) -> None:
    sizes: dict[str, Any] = {"N": 4, "d": 2, "key_tile": 2, "itemsize": 2, "o_itemsize": 4} | {
        name: wrong
    }
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, got {wrong}"):
        key_outer_bytes(**sizes)
