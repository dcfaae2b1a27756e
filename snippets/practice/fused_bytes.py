"""Bytes of a fused sequence

Each of the `kernels`, in their order, is a pair (reads, writes) of lists of names of tensors. A
kernel may write a tensor that it also reads, in place, or one that an earlier kernel wrote. Fused
into one kernel, the sequence keeps on the chip what it makes. Return the bytes that the fused
kernel moves; `sizes` has the bytes of each tensor, `wanted` names the tensors that are needed
afterwards.

Hint: Walk the sequence in order. A tensor must come from memory if it is read before any kernel
of the sequence has made it; how often it is read does not matter.

Hint: "What no kernel writes" is not the same: a tensor updated in place is written, and yet its
old content must be read first.

Hint: Keep two sets, what has been made and what had to be read. Look at a kernel's reads before
you add its writes. What is written out at the end is what is wanted, each tensor once.

Check it: `python -m snippets.practice.fused_bytes answer.py`
"""


def fused_bytes(
    kernels: list[tuple[list[str], list[str]]],
    sizes: dict[str, int],
    wanted: list[str],
) -> int:
    """Return the bytes that one kernel moves in place of the sequence."""
    # solution
    made: set[str] = set()
    fetched: set[str] = set()
    for reads, writes in kernels:
        fetched |= set(reads) - made
        made |= set(writes)
    return sum(sizes[name] for name in [*fetched, *wanted])
    # end


# check
from collections.abc import Iterator

from snippets.practice.grading import Case, call, main

SIGNATURE = "fused_bytes(kernels, sizes, wanted)"
Kernels = list[tuple[list[str], list[str]]]


def by_running(kernels: Kernels, sizes: dict[str, int], wanted: list[str]) -> int:
    """Run the fused kernel byte by byte: fetch what the chip lacks, store what is wanted."""
    moved, chip = 0, {name: [False] * size for name, size in sizes.items()}
    for reads, writes in kernels:
        for name in reads:
            for i, held in enumerate(chip[name]):
                moved += not held
                chip[name][i] = True
        for name in writes:
            chip[name] = [True] * sizes[name]
    for name in wanted:
        for _ in range(sizes[name]):
            moved += 1
    return moved


def cases() -> Iterator[Case]:
    """Chains, shared inputs, results wanted on the way, and tensors updated in place."""
    # each size is a power of two, so that a sum tells which tensors were counted
    sizes = {name: 2**i for i, name in enumerate("xrwthuy")}
    chain: Kernels = [(["x"], ["t"]), (["t"], ["u"]), (["u"], ["y"])]
    norm: Kernels = [(["x", "r"], ["h"]), (["h"], ["t"]), (["h", "t", "w"], ["y"])]
    inputs: list[tuple[Kernels, str, str]] = [
        (chain[:1], "t", "One kernel reads x and writes t."),
        (chain, "y", "t and u lie between the kernels and never leave the chip."),
        (chain, "ty", "t is wanted afterwards: it is written out, but not read again."),
        ([(["x"], ["t"]), (["x", "t"], ["y"])], "y", "x is read by two kernels, fetched once."),
        (norm, "hy", "Read x, r and w; write h and y."),
        ([(["x"], ["x"]), (["x"], ["x"])], "x", "In place: old content read, new written."),
        ([(["x"], ["t"]), (["t", "y"], ["y"])], "y", "y is added to: its old content is read."),
        ([(["t"], ["y"]), (["x"], ["t"])], "ty", "t is read before it is made."),
        ([(["x"], ["y"]), (["w"], ["y"])], "y", "y is made twice on the chip, and stored once."),
        ([(["x"], ["t", "u"]), (["t"], ["y"])], "y", "u is made, and nobody wants it."),
        ([([], ["y"])], "y", "Filling a tensor reads nothing."),
    ]
    for kernels, wanted, why in inputs:
        gives = by_running(kernels, sizes, [*wanted])
        yield call(SIGNATURE, (kernels, sizes, [*wanted]), gives, why)


if __name__ == "__main__":
    main(cases())
