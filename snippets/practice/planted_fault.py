"""A kernel with planted faults

Program `pid` takes row `pid` of `x` and writes to row `pid` of `y` how far each number lies below
the largest of its row. Rows have `columns` numbers, and lie `stride_xm` and `stride_ym` elements
apart. A row may be longer than a `BLOCK`, so the program walks it twice: once for the largest
number, once to write. Three faults were planted. None of them raises an error, and on positive
numbers in contiguous rows of whole blocks none of them shows. Find them with the messages of the
check, or before it.

Hint: Which offsets does a block touch when `columns` is 5 and `BLOCK` is 4? Go through start = 4
on paper, for the load and for the store.

Hint: What does a lane that is masked bring into a maximum? Think of a row of negative numbers.

Hint: Two tensors of one shape need not lie in memory alike. Which stride belongs to which?

Check it: `python -m snippets.practice.planted_fault answer.py`
"""

import math


def below_largest_kernel(
    pid: int,
    x: "Tensor",
    y: "Tensor",
    stride_xm: int,
    stride_ym: int,
    columns: int,
    BLOCK: int,
) -> None:
    """Write x - max(x) of row `pid` to y, BLOCK numbers at a time."""
    largest = -math.inf
    for start in range(0, columns, BLOCK):
        offs = range(start, start + BLOCK)
        mask = [off < columns for off in offs]
        x_offs = [pid * stride_xm + off for off in offs]
        # solution
        block = x.load(x_offs, mask, other=-math.inf)
        # instead
        # block = x.load(x_offs, mask, other=0.0)
        # end
        largest = max(largest, *block)
    for start in range(0, columns, BLOCK):
        offs = range(start, start + BLOCK)
        # solution
        mask = [off < columns for off in offs]
        # instead
        # mask = [off <= columns for off in offs]
        # end
        x_offs = [pid * stride_xm + off for off in offs]
        # solution
        y_offs = [pid * stride_ym + off for off in offs]
        # instead
        # y_offs = [pid * stride_xm + off for off in offs]
        # end
        below = [number - largest for number in x.load(x_offs, mask)]
        y.store(y_offs, below, mask)


# check
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from snippets.model_memory import Tensor
from snippets.practice.grading import Case, main, show

NEIGHBOUR = 777.0  # what lies in memory beyond x and y


class Launch(NamedTuple):
    """Rows of x, what lies between the rows of x and y in memory, and the order of programs."""

    rows: list[list[float]]
    gap_x: int
    gap_y: int
    order: list[int]
    BLOCK: int = 4

    def text(self) -> str:
        """The launch as a reader would describe it."""
        columns = len(self.rows[0])
        strides = f"stride_xm = {columns + self.gap_x}, stride_ym = {columns + self.gap_y}"
        return (
            f"x = {show(self.rows)},\n{strides}, BLOCK = {self.BLOCK}, program order {self.order}"
        )


def launched(launch: Launch, answer: Any) -> tuple[Tensor, Tensor]:
    """Run the kernel on one memory that holds x, then y, then a neighbour."""
    rows, columns = launch.rows, len(launch.rows[0])
    stride_x, stride_y = columns + launch.gap_x, columns + launch.gap_y
    x_size, y_size = len(rows) * stride_x, len(rows) * stride_y
    lines = [row + [NEIGHBOUR] * launch.gap_x for row in rows]
    memory = [number for line in lines for number in line] + [NEIGHBOUR] * (y_size + 64)
    x, y = Tensor(memory, 0, x_size), Tensor(memory, x_size, y_size)
    for pid in launch.order:
        answer.below_largest_kernel(pid, x, y, stride_x, stride_y, columns, launch.BLOCK)
    return x, y


def results(launch: Launch, answer: Any) -> object:
    """Return the rows of y."""
    _, y = launched(launch, answer)
    columns, stride = len(launch.rows[0]), len(launch.rows[0]) + launch.gap_y
    starts = range(y.start, y.start + y.size, stride)
    return [y.memory[start : start + columns] for start in starts]


def strangers(launch: Launch, answer: Any) -> object:
    """Return the offsets that were loaded or stored and belong to no element of x or y."""
    x, y = launched(launch, answer)
    columns = len(launch.rows[0])
    touched = ((x, x.loaded, columns + launch.gap_x), (y, y.stored, columns + launch.gap_y))
    return [
        sorted({off for off in offs if off >= tensor.size or off % stride >= columns})
        for tensor, offs, stride in touched
    ]


def cases() -> Iterator[Case]:
    """Whole blocks, ragged rows, negative numbers, and tensors that are not contiguous."""
    whole, five = [[1.0, 4.0, 2.0, 3.0], [8.0, 5.0, 7.0, 6.0]], [3.0, 1.0, 4.0, 1.0, 5.0]
    six, low = [9.0, 2.0, 6.0, 5.0, 3.0], [-3.0, -1.0, -4.0, -1.0, -5.0]
    stride = "x and y have strides of their own."
    launches = [
        (Launch(whole, 0, 0, [0, 1]), "Each row has its own largest number."),
        (Launch([low], 0, 0, [0]), "No number of x is 0: a masked lane must lose every maximum."),
        (Launch([five, six], 0, 0, [0, 1]), "The last block of a row is not full."),
        (Launch([five, six], 0, 0, [1, 0]), "A program must not write into the row of another."),
        (Launch([five, six], 3, 0, [0, 1]), stride),
        (Launch([five, six, low], 0, 2, [2, 0, 1]), stride),
        (Launch([[2.0], [-7.0]], 1, 1, [1, 0]), "A row may have one column."),
        (Launch([[-1e30, -1e30, -1e30]], 0, 0, [0], 2), "Numbers may be far below 0."),
        (Launch([five, six, low], 1, 4, [1, 2, 0], 8), "A block may be longer than the row."),
    ]
    for launch, why in launches:
        expected = [[number - sorted(row)[-1] for number in row] for row in launch.rows]
        yield Case(f"y for\n{launch.text()}", partial(results, launch), expected, why)
        shown = f"offsets touched outside the rows, [loads of x, stores to y], for\n{launch.text()}"
        outside = "An offset at or beyond `columns` belongs to someone else."
        yield Case(shown, partial(strangers, launch), [[], []], outside)


if __name__ == "__main__":
    main(cases())
