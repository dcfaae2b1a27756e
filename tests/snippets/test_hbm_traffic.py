"""The traffic formulas against loops that touch every element and count its bytes."""

from collections.abc import Callable
from typing import Any

import pytest

from snippets import hbm_traffic
from snippets.captured import Counted
from snippets.hbm_traffic import (
    attention_flops,
    comparison,
    compulsory_bytes,
    issued_bytes,
    main,
    naive_bytes,
)

# tiles that divide N, that do not, that are larger than N, that are one row
RAGGED = [(1, 1, 1), (8, 2, 4), (7, 3, 4), (9, 2, 4), (5, 4, 8), (6, 1, 1), (13, 3, 5)]
SEED_ROWS = [
    # d, N, naive MB, compulsory MB, ratio, issued MB, ratio
    (64, 1024, "8.91", "0.52", "17.0", "2.36", "3.77"),
    (64, 4096, "136.31", "2.10", "65.0", "34.62", "3.94"),
    (64, 16384, "2155.87", "8.39", "257.0", "541.13", "3.98"),
    (128, 1024, "9.44", "1.05", "9.0", "4.72", "2.00"),
    (128, 4096, "138.41", "4.19", "33.0", "69.22", "2.00"),
    (128, 16384, "2164.26", "16.78", "129.0", "1082.20", "2.00"),
]


def count_query_outer(N: int, d: int, tile: int, itemsize: int) -> int:
    """Walk the loop of a tiled kernel and add up the bytes of each load and store."""
    moved = 0
    rows = list(range(N))
    while rows:
        mine, rows = rows[:tile], rows[tile:]
        for _query in mine:
            moved += d * itemsize  # load a row of Q
        for _key in range(N):
            moved += d * itemsize  # load a row of K
            moved += d * itemsize  # load a row of V
        for _query in mine:
            moved += d * itemsize  # store a row of O
            moved += 4  # store its logsumexp
    return moved


def count_naive(N: int, d: int, itemsize: int) -> int:
    """Three kernels; each loads each element of its inputs once and stores its output once."""
    moved = 0
    kernels = [
        ([(N, d), (N, d)], (N, N)),
        ([(N, N)], (N, N)),
        ([(N, N), (N, d)], (N, d)),
    ]
    for inputs, output in kernels:
        for rows, columns in [*inputs, output]:
            for _row in range(rows):
                moved += sum(itemsize for _column in range(columns))
    return moved


def captured_row(**changes: Any) -> Counted:
    sizes = (2_000_000, 1, 2, 3, 9_000_000)  # model, read, written, through L2, issued
    row = Counted("ours", "forward", "bf16", {"B": 4, "N": 64}, *sizes, "X")
    return row._replace(**changes)


@pytest.mark.parametrize("itemsize", [2, 4])
@pytest.mark.parametrize(("N", "d", "tile"), RAGGED)
def test_issued_bytes_are_those_a_walk_through_the_loop_counts(
    N: int, d: int, tile: int, itemsize: int
) -> None:
    assert issued_bytes(N, d, tile, itemsize) == count_query_outer(N, d, tile, itemsize)


@pytest.mark.parametrize("itemsize", [1, 2, 4])
@pytest.mark.parametrize(("N", "d"), [(1, 1), (4, 2), (7, 3), (13, 5)])
def test_naive_bytes_are_those_three_kernels_count(N: int, d: int, itemsize: int) -> None:
    assert naive_bytes(N, d, itemsize) == count_naive(N, d, itemsize)


@pytest.mark.parametrize(("N", "d"), [(1, 1), (7, 3), (1024, 64)])
def test_one_tile_for_all_queries_issues_the_compulsory_bytes(N: int, d: int) -> None:
    assert issued_bytes(N, d, tile=N) == compulsory_bytes(N, d, lse=True)
    assert compulsory_bytes(N, d, lse=True) - compulsory_bytes(N, d) == 4 * N


@pytest.mark.parametrize(("d", "N", "naive", "floor", "to_floor", "issued", "to_issued"), SEED_ROWS)
def test_reproduces_the_reference_table(
    d: int, N: int, naive: str, floor: str, to_floor: str, issued: str, to_issued: str
) -> None:
    assert f"{naive_bytes(N, d) / 1e6:.2f}" == naive
    assert f"{compulsory_bytes(N, d) / 1e6:.2f}" == floor
    assert f"{naive_bytes(N, d) / compulsory_bytes(N, d):.1f}" == to_floor
    assert f"{issued_bytes(N, d) / 1e6:.2f}" == issued
    assert f"{naive_bytes(N, d) / issued_bytes(N, d):.2f}" == to_issued


@pytest.mark.parametrize(
    ("d", "N", "naive", "issued", "floor", "floor_with_lse"),
    [
        (64, 1024, "30.1", "113.6", 512, 508),
        (64, 4096, "31.5", "124.1", 2048, 2032),
        (64, 16384, "31.9", "127.0", 8192, 8128),
        (128, 1024, "56.9", "113.7", 512, 510),
        (128, 4096, "62.1", "124.1", 2048, 2040),
        (128, 16384, "63.5", "127.0", 8192, 8160),
    ],
)
def test_reproduces_the_three_intensities(
    d: int, N: int, naive: str, issued: str, floor: int, floor_with_lse: int
) -> None:
    flops = attention_flops(N, d)
    assert f"{flops / naive_bytes(N, d):.1f}" == naive
    assert f"{flops / issued_bytes(N, d):.1f}" == issued
    assert flops / compulsory_bytes(N, d) == floor
    assert round(flops / compulsory_bytes(N, d, lse=True)) == floor_with_lse


@pytest.mark.parametrize(("d", "tile"), [(64, 64), (64, 128), (128, 128), (128, 256)])
def test_naive_over_issued_stays_below_its_limit_and_comes_near_it(d: int, tile: int) -> None:
    limit = 2 * tile / d
    assert 0.99 * limit < naive_bytes(2**17, d) / issued_bytes(2**17, d, tile) < limit


def test_the_exercise_has_the_solution_of_the_page() -> None:
    ratios = [naive_bytes(16384, 128) / issued_bytes(16384, 128, tile) for tile in (256, 512)]
    assert [f"{ratio:.2f}" for ratio in ratios] == ["3.97", "7.82"]


def test_says_not_captured_yet_when_there_is_no_result() -> None:
    first, *models = comparison([])
    assert first == "not captured yet; the models alone, one head"
    assert models[-1].split() == ["N=16384", "8.39", "541.13"]


def test_shows_what_the_counters_saw_beside_both_models() -> None:
    row = captured_row(read=1_500_000, written=250_000, l2=7_000_000)
    case, line = comparison([row])
    assert case == "B4 N64"
    assert line.split() == ["ours", "2.00", "9.00", "1.75", "7.00", "0.875"]


def test_shows_a_dash_for_an_implementation_whose_tiles_are_not_known() -> None:
    assert list(comparison([captured_row(issued_bytes=None)]))[1].split()[2] == "-"


def test_names_a_case_once_for_all_that_ran_on_it() -> None:
    rows = [captured_row(), captured_row(implementation="eager"), captured_row(shape={"B": 5})]
    names = [line.split()[0] for line in comparison(rows)]
    assert names == ["B4", "ours", "eager", "B5", "ours"]


def test_prints_captured_forward_rows_and_where_they_come_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [captured_row(), captured_row(direction="backward", implementation="other")]
    asked: list[str] = []

    def recorded(stem: str) -> list[Counted]:
        asked.append(stem)
        return rows

    monkeypatch.setattr(hbm_traffic, "counters", recorded)
    main()
    printed = capsys.readouterr().out
    assert asked == ["flash_attention"]
    assert "B4 N64\n  ours " in printed
    assert "other" not in printed
    assert printed.count("captured on X\n") == 1
    assert "not captured yet" not in printed


def test_prints_the_seven_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hbm_traffic, "counters", lambda _stem: [])
    main()
    printed = capsys.readouterr().out
    assert "  64  16384   2155.87        8.39  257.0       541.13   3.98" in printed
    assert "  N=16384           8.39    541.13\n" in printed
    assert max(len(line) for line in printed.splitlines()) <= 72


@pytest.mark.parametrize("wrong", [0, -128, True, 2.5, "x"])
@pytest.mark.parametrize("name", ["N", "d", "tile", "itemsize"])
def test_refuses_a_size_that_is_no_positive_integer(name: str, wrong: object) -> None:
    sizes: dict[str, Any] = {"N": 4, "d": 2, "tile": 2, "itemsize": 2} | {name: wrong}
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, got {wrong!r}"):
        issued_bytes(**sizes)


@pytest.mark.parametrize("count", [naive_bytes, compulsory_bytes, attention_flops])
def test_every_formula_refuses_an_empty_sequence_or_head(count: Callable[[int, int], int]) -> None:
    with pytest.raises(ValueError, match="N must be an integer of at least 1, got 0"):
        count(0, 64)
    with pytest.raises(ValueError, match="d must be an integer of at least 1, got 0"):
        count(64, 0)
