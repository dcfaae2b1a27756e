"""Bytes and FLOPs of attention, counted from sizes; the conventions are on the method page."""

from math import ceil
from typing import Any

from kernels.work import Work


def visible_pairs(N_Q: int, N_K: int, causal: bool, window: int | None = None) -> float:
    """Area of the visible part of the (N_Q, N_K) score matrix: half a square when causal."""
    if not causal:
        return N_Q * N_K
    n = min(N_Q, N_K)
    hidden, short = (max(0, N_K - (window or N_K) - x) for x in (0, n))
    return n * N_K - n * n / 2 - (hidden**2 - short**2) / 2


def visited(start: int, stop: int, length: int, block: int) -> int:
    """Rows that whole tiles of `block` read to cover [start, stop), none beyond `length`."""
    start, stop = max(0, start), min(stop, length)
    return max(0, min(length, ceil(stop / block) * block) - start // block * block)


def keys_visited(shape: dict[str, Any], BLOCK_M: int, BLOCK_N: int) -> int:
    """Keys that the query tiles of one head load, all tiles together."""
    N_Q, N_K = shape["N_Q"], shape["N_K"]
    window = shape.get("window") or N_K
    total = 0
    for start in range(0, N_Q, BLOCK_M):
        position = start + N_K - N_Q
        first, stop = (position - window + 1, position + BLOCK_M) if shape["causal"] else (0, N_K)
        total += visited(first, stop, N_K, BLOCK_N)
    return total


def forward_work(shape: dict[str, Any], itemsize: int, BLOCK_M: int, BLOCK_N: int) -> Work:
    """Forward: q, k, v read, out and the float32 lse written; keys and values once a query tile."""
    B, H, H_KV, N_Q, N_K, D = (shape[x] for x in ("B", "H", "H_KV", "N_Q", "N_K", "D"))
    rows = B * H * (2 * N_Q * D * itemsize + 4 * N_Q)
    keys = 2 * B * H_KV * N_K * D * itemsize
    issued = 2 * B * H * keys_visited(shape, BLOCK_M, BLOCK_N) * D * itemsize
    pairs = visible_pairs(N_Q, N_K, shape["causal"], shape.get("window"))
    return Work(rows + keys, rows + issued, int(4 * B * H * pairs * D))
