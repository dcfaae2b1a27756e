"""A model of a GPU's memory: loads and stores by offset, and nothing that stops at a tensor's end.

What to notice: a tensor is a start and a size inside one large memory. An offset past its end is
an element of its neighbour, and a store there damages it.

Run it: `python -m snippets.model_memory`
"""

from collections.abc import Sequence

from snippets.naive_attention import check_sizes


# --8<-- [start:tensor]
class Tensor:
    """`size` elements of `memory` from `start` on. It records what is touched; it forbids nothing
    but an address outside the whole memory, where a GPU reports an illegal access."""

    def __init__(self, memory: list[float], start: int, size: int) -> None:
        check_sizes(size=size)
        if type(start) is not int or not 0 <= start <= len(memory) - size:
            raise ValueError(f"start must be in 0..{len(memory) - size}, got {start!r}")
        self.memory, self.start, self.size = memory, start, size
        self.loaded: list[int] = []
        self.stored: list[int] = []

    def load(
        self, offsets: Sequence[int], mask: Sequence[bool] | None = None, other: float = 0.0
    ) -> list[float]:
        """The block at these offsets; `other` where the mask is False, and nothing is read."""
        mask = [True] * len(offsets) if mask is None else mask
        live = [off for off, real in zip(offsets, mask, strict=True) if real]
        numbers = iter([self.memory[self._address(off)] for off in live])
        self.loaded += live
        return [next(numbers) if real else other for real in mask]

    def store(
        self, offsets: Sequence[int], block: Sequence[float], mask: Sequence[bool] | None = None
    ) -> None:
        """Write the block to these offsets; nothing where the mask is False."""
        mask = [True] * len(offsets) if mask is None else mask
        for off, number, real in zip(offsets, block, mask, strict=True):
            if real:
                self.memory[self._address(off)] = number
                self.stored.append(off)

    def outside(self, offsets: Sequence[int]) -> list[int]:
        """Those of the offsets that are not this tensor's."""
        return [off for off in offsets if not 0 <= off < self.size]

    def _address(self, offset: int) -> int:
        if type(offset) is not int:
            raise ValueError(f"an offset must be an integer, got {offset!r}")
        if not 0 <= self.start + offset < len(self.memory):
            raise ValueError(
                f"illegal address {self.start + offset}, memory has {len(self.memory)} elements"
            )
        return self.start + offset


# --8<-- [end:tensor]


def whole(block: list[float]) -> str:
    return " ".join(f"{number:2.0f}" for number in block)


def main() -> None:
    memory = [1.0, 2.0, 3.0, 4.0, 5.0, 60.0, 70.0, 80.0]
    x, neighbour = Tensor(memory, 0, 5), Tensor(memory, 5, 3)
    offsets = range(8)
    mask = [off < x.size for off in offsets]
    print("a block of 8 from a tensor of 5")
    print(f"with mask     {whole(x.load(offsets, mask))}  outside {x.outside(x.loaded)}")
    x.loaded.clear()
    print(f"without mask  {whole(x.load(offsets))}  outside {x.outside(x.loaded)}")
    x.store(offsets, [0.0] * 8)
    print(f"the neighbour after a store without mask: {whole(neighbour.load(range(3)))}")


if __name__ == "__main__":
    main()
