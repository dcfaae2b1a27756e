"""The row softmax, streamed in tiles."""

import random
from typing import Any

import pytest
import torch

from snippets import tile_loop
from snippets.model_memory import Tensor
from snippets.tile_loop import run, streamed_softmax_kernel
from snippets.triton_kernels import softmax_kernel

NAN = float("nan")
INF = float("inf")


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    tile_loop.main()
    return capsys.readouterr().out.splitlines()


def streamed(rows: Any, stride_xm: int, columns: int, BLOCK: int) -> Any:
    """The streamed softmax of rows of scores that lie `stride_xm` apart, over NaN."""
    size = (len(rows) - 1) * stride_xm + columns
    memory = [1e9] * size + [NAN] * (len(rows) * columns)
    for i, row in enumerate(rows):
        memory[i * stride_xm : i * stride_xm + columns] = row
    x, y = Tensor(memory, 0, size), Tensor(memory, size, len(rows) * columns)
    for pid in range(len(rows)):
        streamed_softmax_kernel(pid, x, y, stride_xm, columns, columns, BLOCK)
    return x, y, torch.tensor(memory[size:], dtype=torch.float64).view(len(rows), columns)


def scores(
    rows: Any, columns: int, seed: int, low: float = -9.0, high: float = 9.0
) -> list[list[float]]:
    rng = random.Random(seed)
    return [[rng.uniform(low, high) for _ in range(columns)] for _ in range(rows)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("columns", "stride", "BLOCK"),
    [(1, 1, 1), (5, 5, 8), (8, 8, 8), (9, 12, 8), (17, 17, 4), (100, 101, 1), (7, 7, 3)],
)
def test_equals_a_float64_softmax_for_any_tile(
    columns: int, stride: int, BLOCK: int, seed: int
) -> None:
    rows = scores(3, columns, seed)
    found = streamed(rows, stride, columns, BLOCK)[2]
    expected = torch.tensor(rows, dtype=torch.float64).softmax(1)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("columns", "BLOCK"), [(5, 8), (8, 8), (9, 8), (100, 7)])
def test_reads_each_element_twice_and_writes_it_once(columns: int, BLOCK: int) -> None:
    x, y, _ = streamed(scores(2, columns, 0), columns, columns, BLOCK)
    assert sorted(x.loaded) == sorted([*range(2 * columns), *range(2 * columns)])
    assert y.stored == list(range(2 * columns))


@pytest.mark.parametrize("shift", [-10000.0, 10000.0])
def test_survives_scores_far_from_zero(shift: float) -> None:
    rows = scores(1, 10, 1, shift - 1, shift + 1)
    expected = torch.tensor(rows, dtype=torch.float64).softmax(1)
    torch.testing.assert_close(streamed(rows, 10, 10, 4)[2], expected, rtol=1e-11, atol=0)


def test_a_masked_tile_gets_no_weight_and_a_masked_row_is_zero() -> None:
    rows = [[-INF] * 4 + [0.0, 0.0], [-INF] * 6]
    found = streamed(rows, 6, 6, 4)[2].tolist()
    assert found == [[0.0] * 4 + [0.5, 0.5], [0.0] * 6]


def test_a_held_row_reads_once_and_a_streamed_row_twice() -> None:
    whole, streams = run(softmax_kernel, 2, 10, 16), run(streamed_softmax_kernel, 2, 10, 4)
    assert (len(whole[0].loaded), len(streams[0].loaded)) == (20, 40)


def test_prints_loads_and_agreement(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in lines(capsys)[1:]]
    assert rows == [
        ["whole", "1000", "1024", "1", "1000", "1000", "yes"],
        ["streamed", "1000", "128", "8", "2000", "1000", "yes"],
        ["whole", "4096", "4096", "1", "4096", "4096", "yes"],
        ["streamed", "4096", "128", "32", "8192", "4096", "yes"],
    ]


def test_prints_lines_of_at_most_72_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(len(line) for line in lines(capsys)) <= 72


@pytest.mark.parametrize("bad", [0, -1, True, 4.0])
def test_refuses_sizes_that_are_not_positive_integers(bad: Any) -> None:
    x, y = Tensor([1.0], 0, 1), Tensor([1.0], 0, 1)
    with pytest.raises(ValueError, match="BLOCK must be an integer of at least 1, got"):
        streamed_softmax_kernel(0, x, y, 1, 1, 1, bad)
    with pytest.raises(ValueError, match="columns must be an integer of at least 1, got"):
        streamed_softmax_kernel(0, x, y, 1, 1, bad, 1)
    with pytest.raises(ValueError, match="rows must be an integer of at least 1, got"):
        run(streamed_softmax_kernel, bad, 1, 1)


def test_refuses_a_score_that_is_not_a_number() -> None:
    with pytest.raises(ValueError, match="scores must be finite or -inf, got"):
        streamed([[1.0, NAN]], 2, 2, 2)
