"""Shared memory has 32 banks: how many turns a warp's access takes, by what its threads ask for.

What to notice: threads wait for one another only when they want different words of one bank. A
column of a square tile is the worst case, and moving words about within each row cures it.

Run it: `python -m snippets.banks`
"""

from collections.abc import Callable, Iterable

from snippets.naive_attention import check_sizes

BANKS = 32  # each four bytes wide; word w lies in bank w % 32 (CUDA programming guide)
THREADS = 32  # of a warp


# --8<-- [start:banks]
def turns(words: Iterable[int]) -> int:
    """Turns of one access: the most different words any bank must serve."""
    wanted: dict[int, set[int]] = {}
    for word in words:
        if type(word) is not int or word < 0:
            raise ValueError(f"a word must be an integer of at least 0, got {word!r}")
        wanted.setdefault(word % BANKS, set()).add(word)
    if not wanted:
        raise ValueError("an access needs at least one thread, got no addresses")
    return max(len(of_one_bank) for of_one_bank in wanted.values())


def plain(row: int, column: int) -> int:
    """Word of an element of a tile 32 words wide."""
    check_sizes(0, row=row, column=column)
    return row * BANKS + column


def padded(row: int, column: int) -> int:
    """The same with one unused word at the end of each row."""
    check_sizes(0, row=row, column=column)
    return row * (BANKS + 1) + column


def swizzled(row: int, column: int) -> int:
    """The same with each row's columns in another order, no word unused."""
    check_sizes(0, row=row, column=column)
    return row * BANKS + (column ^ row) % BANKS


# --8<-- [end:banks]


def main() -> None:
    print("thread i reads word i x stride\nstride  " + "turns".rjust(5))
    for stride in (0, 1, 2, 3, 8, 16, 32, 33):
        print(f"{stride:6} {turns(i * stride for i in range(THREADS)):6}")
    layouts: dict[str, Callable[[int, int], int]] = {
        "plain": plain,
        "padded": padded,
        "swizzled": swizzled,
    }
    print("\na tile of 32 x 32 words: turns for a row, a column, words of memory")
    for name, word in layouts.items():
        row = turns(word(5, i) for i in range(THREADS))
        column = turns(word(i, 5) for i in range(THREADS))
        size = 1 + max(word(r, c) for r in range(THREADS) for c in range(THREADS))
        print(f"{name:9} {row:4} {column:4} {size:6}")


if __name__ == "__main__":
    main()
