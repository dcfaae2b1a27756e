"""A timeline of one SM's two busy units, with matrix products and softmax in turn or overlapped.

What to notice: in turn, each unit waits for the other. Issued one tile ahead, the next scores are
computed during this tile's exponentials, and the slower unit alone sets the time.

Run it: `python -m snippets.overlap`
"""

from typing import NamedTuple

from snippets.bytes_in_flight import check_positive
from snippets.hardware import fact
from snippets.naive_attention import check_sizes


# --8<-- [start:overlap]
class Task(NamedTuple):
    kind: str  # S, exp or PV
    tile: int
    start: float  # clocks
    end: float


WAITS_FOR = {"S": "", "exp": "S", "PV": "exp"}  # of the same tile


def clocks(device: str, d: int, br: int = 128, bc: int = 128) -> tuple[float, float]:
    """An SM's clocks for a product of a (br, bc) bf16 tile, and for its exp."""
    check_sizes(d=d, br=br, bc=bc)
    product = 2 * br * bc * d / fact(device, "tensor_per_clock").value
    return product, br * bc / fact(device, "exp_per_clock").value


def timeline(tiles: int, product: float, softmax: float, ahead: bool) -> list[Task]:
    """The tasks of both units. `ahead` issues the next S before this PV."""
    check_sizes(tiles=tiles)
    check_positive(product=product, softmax=softmax)
    order = [("S", 0)]
    for tile in range(tiles):
        following = [("S", tile + 1)] if tile + 1 < tiles else []
        order.append(("exp", tile))
        order += [*following, ("PV", tile)] if ahead else [("PV", tile), *following]
    tensor = exp = 0.0  # when each unit is free again
    done: dict[tuple[str, int], float] = {}
    for kind, tile in order:
        ready = done.get((WAITS_FOR[kind], tile), 0.0)
        if kind == "exp":
            end = exp = max(exp, ready) + softmax
        else:
            end = tensor = max(tensor, ready) + product
        done[kind, tile] = end
    length = {"S": product, "PV": product, "exp": softmax}
    return [Task(kind, j, end - length[kind], end) for (kind, j), end in done.items()]


# --8<-- [end:overlap]


def main() -> None:
    device, tiles = "H200", 32
    print(f"{device}, one SM, {tiles} tiles of 128 x 128, bf16; clocks, bounds not speeds")
    print("  d  product   exp   in turn  tensor busy   ahead  tensor busy  gain")
    for d in (64, 128, 256):
        product, softmax = clocks(device, d)
        in_turn, ahead = (timeline(tiles, product, softmax, flag)[-1].end for flag in (False, True))
        work = 2 * tiles * product
        print(
            f"{d:3} {product:8.0f} {softmax:5.0f} {in_turn:9.0f} {work / in_turn:12.0%}"
            f" {ahead:7.0f} {work / ahead:12.0%} {in_turn / ahead:5.2f}"
        )


if __name__ == "__main__":
    main()
