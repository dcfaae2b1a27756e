"""A ledger of fusion: the launches and bytes of a row of kernels, and of the same work in one.

What to notice: fusion saves the tensors that lie between the kernels and nothing else; inputs and
wanted outputs are moved either way. The FLOP stay as they were.

Run it: `python -m snippets.fusion`
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from snippets.hardware import fact
from snippets.naive_attention import check_sizes


# --8<-- [start:ledger]
class Kernel(NamedTuple):
    reads: tuple[str, ...]  # names of tensors
    writes: tuple[str, ...]


def traffic(kernels: Sequence[Kernel], sizes: Mapping[str, int]) -> int:
    """Bytes read and written; `sizes` has the bytes of each tensor."""
    names = [name for step in kernels for name in step.reads + step.writes]
    if unknown := sorted(set(names) - set(sizes)):
        raise ValueError(f"no size for {unknown}; sizes has {list(sizes)}")
    check_sizes(**sizes)
    return sum(sizes[name] for name in names)


def fuse(kernels: Sequence[Kernel], wanted: Sequence[str]) -> Kernel:
    """One kernel for all: reads what none writes, writes what is `wanted`."""
    made = [name for step in kernels for name in step.writes]
    if len(set(made)) < len(made):
        raise ValueError(f"each tensor may be written once, got {made}")
    if not wanted or [name for name in dict.fromkeys(wanted) if name in made] != list(wanted):
        raise ValueError(f"wanted must be some of {made}, each once, got {list(wanted)}")
    inputs: list[str] = []
    for number, step in enumerate(kernels):
        late = [name for after in kernels[number:] for name in after.writes if name in step.reads]
        if late:
            raise ValueError(f"kernel {number} reads {late} before it is written")
        inputs += [name for name in step.reads if name not in made]
    return Kernel(tuple(dict.fromkeys(inputs)), tuple(wanted))


# --8<-- [end:ledger]
# --8<-- [start:cases]
def chain(operations: int) -> list[Kernel]:
    """Elementwise kernels in a row: t0 to t1, t1 to t2 and so on."""
    check_sizes(operations=operations)
    return [Kernel((f"t{i}",), (f"t{i + 1}",)) for i in range(operations)]


RMSNORM = [  # h = x + residual, y = h / sqrt(mean(h^2) + eps) * weight, one kernel a step
    Kernel(("x", "residual"), ("h",)),
    Kernel(("h",), ("squares",)),
    Kernel(("squares",), ("mean",)),
    Kernel(("mean",), ("scale",)),
    Kernel(("h", "scale"), ("normed",)),
    Kernel(("normed", "weight"), ("y",)),
]
# --8<-- [end:cases]


def main() -> None:
    rows, columns, itemsize, rate = 8192, 8192, 2, fact("H200", "hbm_rate").value
    matrix = rows * columns * itemsize
    sizes = {name: matrix for kernel in RMSNORM for name in kernel.reads + kernel.writes}
    sizes |= {"mean": rows * itemsize, "scale": rows * itemsize, "weight": columns * itemsize}
    five = chain(5)
    cases: list[tuple[str, list[Kernel], dict[str, int], list[str]]] = [
        ("5 elementwise", five, {f"t{i}": matrix for i in range(6)}, ["t5"]),
        ("residual + RMSNorm", RMSNORM, sizes, ["h", "y"]),
    ]
    print(f"{rows} x {columns}, bf16       launches       MB   us at {rate / 1e12:.1f} TB/s")
    for name, kernels, tensors, wanted in cases:
        for how, steps in (("unfused", kernels), ("fused", [fuse(kernels, wanted)])):
            moved = traffic(steps, tensors)
            print(
                f"{name:18} {how:8} {len(steps):4} {moved / 1e6:11.2f} {moved / rate * 1e6:12.1f}"
            )


if __name__ == "__main__":
    main()
