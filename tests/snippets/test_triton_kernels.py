"""A row softmax as a launch of programs."""

import random
from typing import Any

import pytest
import torch

from snippets import triton_kernels
from snippets.model_memory import Tensor
from snippets.triton_kernels import launch, result, softmax_kernel

NAN = float("nan")


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    triton_kernels.main()
    return capsys.readouterr().out.splitlines()


def run(rows: Any, columns: int, stride: int, BLOCK: int, seed: int = 0) -> Any:
    """Scores in rows `stride` apart, the result of all programs over NaN, and what they touched."""
    rng = random.Random(seed)
    scores = [rng.uniform(-9, 9) for _ in range(rows * stride)]
    memory = scores + [NAN] * (rows * columns) + [5.0] * BLOCK
    x = Tensor(memory, 0, len(scores))
    y = Tensor(memory, len(scores), rows * columns)
    for pid in range(rows):
        softmax_kernel(pid, x, y, stride, columns, columns, BLOCK)
    return torch.tensor(scores, dtype=torch.float64).view(rows, stride)[:, :columns], x, y


def touched(rows: Any, columns: int, stride: int) -> list[int]:
    """Offsets of all elements of a matrix, by a walk over its rows and columns."""
    return [row * stride + column for row in range(rows) for column in range(columns)]


SHAPES = [(1, 1, 1, 1), (3, 5, 5, 8), (3, 5, 6, 8), (2, 8, 8, 8), (4, 7, 20, 16), (5, 1, 3, 4)]


@pytest.mark.parametrize(("rows", "columns", "stride", "BLOCK"), SHAPES)
def test_equals_a_float64_softmax_on_strided_and_ragged_rows(
    rows: Any, columns: int, stride: int, BLOCK: int
) -> None:
    scores, _, y = run(rows, columns, stride, BLOCK)
    found = torch.tensor(result(y), dtype=torch.float64).view(rows, columns)
    torch.testing.assert_close(found, scores.softmax(1), rtol=1e-13, atol=0)


@pytest.mark.parametrize(("rows", "columns", "stride", "BLOCK"), SHAPES)
def test_touches_each_element_of_the_rows_once_and_nothing_else(
    rows: Any, columns: int, stride: int, BLOCK: int
) -> None:
    _, x, y = run(rows, columns, stride, BLOCK)
    assert x.loaded == touched(rows, columns, stride)
    assert y.stored == touched(rows, columns, columns)
    assert y.memory[y.start + y.size :] == [5.0] * BLOCK


def test_the_order_of_the_programs_does_not_matter_to_a_right_kernel() -> None:
    assert result(launch([2, 0, 1])[1]) == result(launch([0, 1, 2])[1])


def test_a_large_score_does_not_overflow() -> None:
    memory = [1000.0, 1000.0, NAN, NAN]
    softmax_kernel(0, Tensor(memory, 0, 2), Tensor(memory, 2, 2), 2, 2, 2, 2)
    assert memory[2:] == [0.5, 0.5]


def test_a_load_without_mask_adds_the_neighbours_to_each_sum() -> None:
    x, y = launch(range(3), mask_loads=False)
    assert x.outside(x.loaded) == [18, 19]
    sums = [sum(result(y)[5 * row : 5 * row + 5]) for row in range(3)]
    assert max(sums) < 0.99


def test_a_store_without_mask_hurts_the_neighbour_and_hides_in_order() -> None:
    _, y = launch(range(3), mask_stores=False)
    assert y.outside(y.stored) == [15, 16, 17]
    assert result(y) == result(launch(range(3))[1])
    assert y.memory[y.start + 15 : y.start + 18] == [0.0, 0.0, 0.0]
    assert result(launch([2, 1, 0], mask_stores=False)[1]) != result(y)


def test_a_wrong_stride_stays_inside_and_is_wrong() -> None:
    x, y = launch(range(3), stride_xm=5)
    assert x.outside(x.loaded) == []
    assert result(y)[:5] == result(launch(range(3))[1])[:5]
    assert result(y)[5:] != result(launch(range(3))[1])[5:]


def test_prints_what_each_program_touches(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in lines(capsys)[3:6]]
    assert rows == [
        ["0", "0", "to", "4", "0", "to", "4"],
        ["1", "6", "to", "10", "5", "to", "9"],
        ["2", "12", "to", "16", "10", "to", "14"],
    ]


def test_prints_outside_and_wrong_elements_of_each_slip(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split()[-3:] for line in lines(capsys)[9:]]
    assert rows == [
        ["0", "0", "0"],
        ["2", "0", "15"],
        ["0", "3", "0"],
        ["0", "3", "6"],
        ["0", "0", "10"],
    ]


def test_prints_lines_of_at_most_72_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(len(line) for line in lines(capsys)) <= 72


def test_the_exercise_loads_three_elements_outside_and_weighs_eight() -> None:
    x, y = Tensor([1.0] * 40, 0, 15), Tensor([0.0] * 40, 0, 15)
    softmax_kernel(2, x, y, 5, 5, 5, 8, mask_loads=False)
    assert x.outside(x.loaded) == [15, 16, 17]
    assert result(y)[10:] == [1 / 8] * 5


def test_refuses_a_block_smaller_than_the_row() -> None:
    with pytest.raises(ValueError, match="BLOCK must be at least 5, got 4"):
        launch(range(3), BLOCK=4)


@pytest.mark.parametrize("bad", [0, -1, True, 8.0])
def test_refuses_a_stride_or_block_that_is_not_a_positive_integer(bad: Any) -> None:
    with pytest.raises(ValueError, match="stride_xm must be an integer of at least 1, got"):
        launch(range(3), stride_xm=bad)
    with pytest.raises(ValueError, match="BLOCK must be an integer of at least 1, got"):
        launch(range(3), BLOCK=bad)
