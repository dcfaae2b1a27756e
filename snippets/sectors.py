"""How many bytes one warp's load fetches: memory answers in sectors of 32 bytes, not in elements.

What to notice: 32 threads that read neighbouring bf16 numbers need 2 sectors. With a stride of
16 elements each thread needs a sector of its own, and 15 of 16 bytes are fetched in vain.

Run it: `python -m snippets.sectors`
"""

from snippets.naive_attention import check_sizes

SECTOR = 32  # bytes
WARP = 32  # threads


# --8<-- [start:sectors]
def sectors_touched(stride: int, itemsize: int = 2, offset: int = 0) -> int:
    """Sectors that one warp touches: thread t loads element offset + t * stride."""
    check_sizes(0, stride=stride, offset=offset)
    check_sizes(itemsize=itemsize)
    touched: set[int] = set()
    for thread in range(WARP):
        first = (offset + thread * stride) * itemsize  # byte
        last = first + itemsize - 1
        touched.update(range(first // SECTOR, last // SECTOR + 1))
    return len(touched)


def share_used(stride: int, itemsize: int = 2, offset: int = 0) -> float:
    """Bytes the warp asked for, each once, over the bytes of its sectors."""
    fetched = SECTOR * sectors_touched(stride, itemsize, offset)
    asked = itemsize * (WARP if stride else 1)
    return asked / fetched


# --8<-- [end:sectors]


def main() -> None:
    print("one warp            bf16                         fp32")
    print("stride, elements  sectors  bytes   used       sectors  bytes   used")
    for stride in (1, 2, 4, 8, 16, 64):
        cells = [
            f"{sectors_touched(stride, size):7} {SECTOR * sectors_touched(stride, size):6}"
            f" {share_used(stride, size):6.1%}"
            for size in (2, 4)
        ]
        print(f"{stride:16}  {cells[0]}       {cells[1]}")
    print(f"\nstride 1 from element 1: {sectors_touched(1, 2, 1)} sectors in bf16,", end=" ")
    print(f"{sectors_touched(1, 4, 1)} in fp32")


if __name__ == "__main__":
    main()
