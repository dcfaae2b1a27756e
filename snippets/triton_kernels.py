"""A row softmax as a launch of programs: the elements each one touches, and what a slip does.

What to notice: a missing mask and a wrong stride return numbers, not errors. Most of them lie
inside the tensor, so that only a comparison with a reference finds them.

Run it: `python -m snippets.triton_kernels`
"""

import math
from collections.abc import Sequence

from snippets.model_memory import Tensor
from snippets.naive_attention import check_sizes

ROWS, COLUMNS, WIDTH = 3, 5, 6  # x is the first 5 columns of a tensor 6 wide


# --8<-- [start:kernel]
def softmax_kernel(
    pid: int,
    x: Tensor, y: Tensor,
    stride_xm: int, stride_ym: int,  # elements from one row to the next
    columns: int,
    BLOCK: int,
    mask_loads: bool = True, mask_stores: bool = True,  # False is the slip
) -> None:  # fmt: skip
    """Program `pid` takes row `pid` and holds it whole."""
    if columns > BLOCK:
        raise ValueError(f"BLOCK must be at least {columns}, got {BLOCK}")
    offs = range(BLOCK)
    mask = [off < columns for off in offs]
    x_offs = [pid * stride_xm + off for off in offs]
    row = x.load(x_offs, mask if mask_loads else None, other=-math.inf)
    row_max = max(row)
    numerator = [math.exp(score - row_max) for score in row]
    denominator = math.fsum(numerator)
    block = [e / denominator for e in numerator]
    y_offs = [pid * stride_ym + off for off in offs]
    y.store(y_offs, block, mask if mask_stores else None)


def launch(
    order: Sequence[int], stride_xm: int = WIDTH, BLOCK: int = 8, **slip: bool
) -> tuple[Tensor, Tensor]:
    """Run the programs in this order on memory that holds x, y and a neighbour."""
    check_sizes(stride_xm=stride_xm, BLOCK=BLOCK)
    scores = [((7 * i) % 11) / 2 for i in range(ROWS * WIDTH)]
    memory = scores + [0.0] * (ROWS * COLUMNS + BLOCK)
    x = Tensor(memory, 0, len(scores))
    y = Tensor(memory, len(scores), ROWS * COLUMNS)
    for pid in order:
        softmax_kernel(pid, x, y, stride_xm, COLUMNS, COLUMNS, BLOCK, **slip)
    return x, y


# --8<-- [end:kernel]


def result(y: Tensor) -> list[float]:
    return y.memory[y.start : y.start + y.size]


def main() -> None:
    print(f"x {ROWS} x {COLUMNS} in rows of {WIDTH}, y {ROWS} x {COLUMNS}, blocks of 8\n")
    print("program  loads offsets  stores offsets")
    for pid in range(ROWS):
        x, y = launch([pid])
        print(f"{pid:7}  {x.loaded[0]:5} to {x.loaded[-1]:<4} {y.stored[0]:7} to {y.stored[-1]}")
    right = result(launch(range(ROWS))[1])
    slips = [
        ("none", launch(range(ROWS))),
        ("load without mask", launch(range(ROWS), mask_loads=False)),
        ("store without mask", launch(range(ROWS), mask_stores=False)),
        ("the same, last program first", launch([2, 1, 0], mask_stores=False)),
        ("the stride of y for x", launch(range(ROWS), stride_xm=COLUMNS)),
    ]
    print("\n                                  outside the tensor     wrong")
    print(f"slip                                loads     stores     of {len(right)}")
    for name, (x, y) in slips:
        wrong = sum(abs(a - b) > 1e-9 for a, b in zip(result(y), right, strict=True))
        loads, stores = len(x.outside(x.loaded)), len(y.outside(y.stored))
        print(f"{name:34} {loads:6} {stores:10} {wrong:9}")


if __name__ == "__main__":
    main()
