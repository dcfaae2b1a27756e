"""Which program takes which tiles, settled before a launch: even work, and keys that stay near."""

import heapq


# --8<-- [start:schedule]
def schedule(
    heads: int, tiles: int, costs: tuple[float, ...], together: int, programs: int
) -> list[list[int]]:
    """Return the tiles of each program, -1 at the end: the longest first, each to the least busy.

    Only `together` heads are at work at a time, so that their keys and values stay in the L2.
    """
    rows: list[list[int]] = [[] for _ in range(programs)]
    queue = [(0.0, program) for program in range(programs)]
    for first in range(0, heads, together):
        for tile in sorted(range(tiles), key=lambda t: -costs[t]):
            for head in range(first, min(first + together, heads)):
                busy, program = heapq.heappop(queue)
                rows[program].append(head * tiles + tile)
                heapq.heappush(queue, (busy + costs[tile], program))
    width = max(map(len, rows)) + 1
    return [row + [-1] * (width - len(row)) for row in rows]


def makespan(
    heads: int, tiles: int, costs: tuple[float, ...], together: int, programs: int
) -> float:
    """Return when the last program of this schedule ends, in the unit of the costs."""
    rows = schedule(heads, tiles, costs, together, programs)
    return max(sum(costs[number % tiles] for number in row if number >= 0) for row in rows)


# --8<-- [end:schedule]
