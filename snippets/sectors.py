"""How many bytes one warp's load fetches: memory answers in sectors of 32 bytes, not in elements.

What to notice: 32 threads that read neighbouring bf16 numbers need 2 sectors. With a stride of
16 elements each thread needs a sector of its own, and 15 of 16 bytes are fetched in vain.

Run it: `python -m snippets.sectors`
"""

SECTOR = 32  # bytes
WARP = 32  # threads


# --8<-- [start:sectors]
def sectors_touched(stride: int, itemsize: int = 2, offset: int = 0) -> int:
    """Sectors that one warp touches: thread t loads element offset + t * stride."""
    _check(stride=(stride, 0), itemsize=(itemsize, 1), offset=(offset, 0))
    touched: set[int] = set()
    for thread in range(WARP):
        first = (offset + thread * stride) * itemsize  # byte
        last = first + itemsize - 1
        touched.update(range(first // SECTOR, last // SECTOR + 1))
    return len(touched)


def share_used(stride: int, itemsize: int = 2, offset: int = 0) -> float:
    """Bytes the warp asked for, each once, over the bytes of its sectors."""
    asked = itemsize * (WARP if stride else 1)
    return asked / (SECTOR * sectors_touched(stride, itemsize, offset))


# --8<-- [end:sectors]


def _check(**sizes: tuple[int, int]) -> None:
    for name, (size, least) in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < least:
            raise ValueError(f"{name} must be an integer of at least {least}, got {size!r}")


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
