"""Bytes and FLOPs of attention, counted from sizes; the conventions are on the method page."""

from math import ceil
from typing import Any

from kernels.attention_launch import config
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


def queries_visited(shape: dict[str, Any], BLOCK_M: int, BLOCK_N: int) -> int:
    """Queries that the key tiles load for one head of queries, all tiles together."""
    N_Q, N_K = shape["N_Q"], shape["N_K"]
    window = shape.get("window") or N_K
    total = 0
    for start in range(0, N_K, BLOCK_N):
        position = start + N_Q - N_K
        first, stop = (position, position + BLOCK_N - 1 + window) if shape["causal"] else (0, N_Q)
        total += visited(first, stop, N_Q, BLOCK_M)
    return total


def forward_work(shape: dict[str, Any], itemsize: int) -> Work:
    """Forward: q, k, v read, out and the float32 lse written; keys and values once a query tile."""
    B, H, H_KV, N_Q, N_K, D = (shape[x] for x in ("B", "H", "H_KV", "N_Q", "N_K", "D"))
    BLOCK_M, BLOCK_N, *_ = config("forward", itemsize, D)
    rows = B * H * (2 * N_Q * D * itemsize + 4 * N_Q)
    keys = 2 * B * H_KV * N_K * D * itemsize
    issued = 2 * B * H * keys_visited(shape, BLOCK_M, BLOCK_N) * D * itemsize
    pairs = visible_pairs(N_Q, N_K, shape["causal"], shape.get("window"))
    return Work(rows + keys, rows + issued, int(4 * B * H * pairs * D))


def backward_work(shape: dict[str, Any], itemsize: int) -> Work:
    """Backward: q, k, v, out, dout and lse read, dq, dk and dv written; delta is issued only."""
    B, H, H_KV, N_Q, N_K, D = (shape[x] for x in ("B", "H", "H_KV", "N_Q", "N_K", "D"))
    row, query_rows, key_rows = D * itemsize, B * H * N_Q, B * H_KV * N_K
    blocks = (config(name, itemsize, D)[:2] for name in ("keys", "queries"))
    queries = B * H * queries_visited(shape, *next(blocks))
    keys = B * H * keys_visited(shape, *next(blocks))
    issued = (
        query_rows * (2 * row + 4)  # out and dout into delta
        + key_rows * 4 * row + queries * (2 * row + 8)  # k, v, dk, dv; q, dout, lse and delta
        + query_rows * (3 * row + 8) + keys * 2 * row  # q, dout, dq, lse and delta; k and v
    )  # fmt: skip
    flops = forward_work(shape, itemsize).flops * 5 // 2
    return Work(query_rows * (4 * row + 4) + key_rows * 4 * row, issued, flops)
