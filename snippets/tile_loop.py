"""The row softmax with its row held whole, and with its row streamed in tiles.

What to notice: the streamed kernel holds one tile however long the row is, and pays with a second
read of the row. Only the last tile of a row needs its mask.

Run it: `python -m snippets.tile_loop`
"""

import math
from collections.abc import Callable

from snippets.model_memory import Tensor
from snippets.naive_attention import check_sizes
from snippets.online_softmax import empty, update
from snippets.triton_kernels import softmax_kernel


# --8<-- [start:kernel]
def streamed_softmax_kernel(
    pid: int,
    x: Tensor, y: Tensor,
    stride_xm: int, stride_ym: int,  # elements from one row to the next
    columns: int,
    BLOCK: int,
) -> None:  # fmt: skip
    """Program `pid` takes row `pid`, a tile at a time: x twice, y once."""
    check_sizes(columns=columns, BLOCK=BLOCK)
    state = empty(0)  # running maximum m and sum l, with no values to weigh
    for start in range(0, columns, BLOCK):
        offs = range(start, start + BLOCK)
        mask = [off < columns for off in offs]
        x_offs = [pid * stride_xm + off for off in offs]
        tile = x.load(x_offs, mask, other=-math.inf)
        state = update(state, tile, [()] * BLOCK)
    for start in range(0, columns, BLOCK):
        offs = range(start, start + BLOCK)
        mask = [off < columns for off in offs]
        x_offs = [pid * stride_xm + off for off in offs]
        tile = x.load(x_offs, mask, other=-math.inf)
        # a row masked throughout has no largest score, and its weights are 0
        block = [math.exp(s - state.m) / state.l if state.l else 0.0 for s in tile]
        y.store([pid * stride_ym + off for off in offs], block, mask)


# --8<-- [end:kernel]


def run(kernel: Callable[..., None], rows: int, columns: int, BLOCK: int) -> tuple[Tensor, Tensor]:
    """Launch `rows` programs on x, some scores, and y, which starts as NaN."""
    check_sizes(rows=rows, columns=columns, BLOCK=BLOCK)
    size = rows * columns
    memory = [((37 * i) % 101) / 10 for i in range(size)] + [math.nan] * size
    x, y = Tensor(memory, 0, size), Tensor(memory, size, size)
    for pid in range(rows):
        kernel(pid, x, y, columns, columns, columns, BLOCK)
    return x, y


def main() -> None:
    print("kernel    columns  BLOCK  tiles  loads  stores  gap below 1e-12")
    kernels = (("whole", softmax_kernel), ("streamed", streamed_softmax_kernel))
    for columns, blocks in ((1000, (1024, 128)), (4096, (4096, 128))):
        reference = run(softmax_kernel, 1, columns, blocks[0])[1]
        for (name, kernel), BLOCK in zip(kernels, blocks, strict=True):
            x, y = run(kernel, 1, columns, BLOCK)
            pairs = zip(y.load(range(y.size)), reference.load(range(y.size)), strict=True)
            close = all(abs(a - b) < 1e-12 for a, b in pairs)
            print(
                f"{name:8} {columns:8} {BLOCK:6} {-(-columns // BLOCK):6} {len(x.loaded):6}"
                f" {len(y.stored):7}  {'yes' if close else 'NO'}"
            )


if __name__ == "__main__":
    main()
