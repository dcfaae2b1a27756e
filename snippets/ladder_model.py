"""What a ladder of attention kernels can expect of each step, from the machine alone.

What to notice: 128 queries and keys are more than a warpgroup's threads can hold, so a larger tile
needs more warpgroups and not larger ones; and to start each head with its longest tiles is not
enough, since the last head to start still begins with long ones.

Run it: `python -m snippets.ladder_model`
"""

import heapq
from collections.abc import Iterable

from snippets.hardware import fact
from snippets.naive_attention import check_sizes

THREADS = 128  # of a warpgroup
POSITIONS = 32768  # batch times length, in every case of the ladder
WIDTH = 2048  # heads times head dim
L2_SHARE = 16 * 2**20  # bytes of keys and values at work at a time


# --8<-- [start:model]
def registers(queries: int, keys: int, d: int) -> float:
    """Registers of 4 bytes in each thread of a warpgroup, for scores, weights and output alone."""
    check_sizes(queries=queries, keys=keys, d=d)
    scores, weights, output = 4 * queries * keys, 2 * queries * keys, 4 * queries * d
    return (scores + weights + output) / 4 / THREADS


def flop_per_byte(queries: int, keys: int, d: int) -> float:
    """FLOP of both products over the bytes of one tile of keys and values, which all rows share."""
    check_sizes(queries=queries, keys=keys, d=d)
    return 4 * queries * keys * d / (2 * keys * d * 2)


def last_end(lengths: Iterable[int], places: int) -> int:
    """When the last tile ends, if each starts in its turn at the first place that is free."""
    check_sizes(places=places)
    free = [0] * places
    for length in lengths:
        heapq.heapreplace(free, free[0] + length)
    return max(free)


def longest_first(heads: int, tiles: int, together: int) -> list[int]:
    """Causal tiles as they start, in tiles of keys: the longest of `together` heads first."""
    check_sizes(heads=heads, tiles=tiles, together=together)
    groups = [min(together, heads - first) for first in range(0, heads, together)]
    return [length for group in groups for length in range(tiles, 0, -1) for _ in range(group)]


# --8<-- [end:model]


def main() -> None:
    device = "H200"
    limit = int(fact(device, "max_registers").value)
    print(f"queries and keys of one warpgroup: registers a thread, of {limit}")
    print("queries  keys    d  registers")
    for queries, keys, d in ((64, 128, 64), (64, 128, 128), (128, 64, 128), (128, 128, 128)):
        print(f"{queries:7} {keys:5} {d:4} {registers(queries, keys, d):10.0f}")
    print("\nqueries that share a tile of keys: FLOP for each byte of it")
    for queries in (64, 128, 192):
        print(f"{queries:7} {flop_per_byte(queries, 128, 128):5.0f}")
    places = 2 * int(fact(device, "sms").value)
    print(f"\ncausal, d = 128, tiles of 128, {places} places: time over an even share")
    print("     N  as numbered  longest first: of a head  of heads in 16 MiB")
    for n in (1024, 4096, 16384):
        heads, tiles = WIDTH // 128 * (POSITIONS // n), n // 128
        orders = (
            list(range(1, tiles + 1)) * heads,
            longest_first(heads, tiles, 1),
            longest_first(heads, tiles, L2_SHARE // (2 * n * 128 * 2)),
        )
        even = sum(orders[0]) / places
        number, one, group = (last_end(order, places) / even for order in orders)
        print(f"{n:6} {number:12.2f} {one:24.2f} {group:19.2f}")


if __name__ == "__main__":
    main()
