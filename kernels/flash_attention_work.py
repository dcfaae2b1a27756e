"""Bytes and FLOPs of `flash_attention`, forward by the kernel of this machine, and backward."""

from typing import Any

from kernels.attention_launch import config
from kernels.attention_work import forward_work, keys_visited, visited
from kernels.device import this_device
from kernels.flash_attention_hopper import hopper_blocks, on_hopper, shape_refusal
from kernels.flash_attention_hopper_producer import ROWS
from kernels.flash_attention_hopper_short import BLOCK_N, is_short
from kernels.work import Work


def work(shape: dict[str, Any], itemsize: int, passes: str = "forward") -> Work:
    """Bytes and FLOPs of one call: 4 a visible pair and column of D, backward 2.5 times that.

    The issued bytes are those of the kernel that this machine would run.
    """
    if passes == "backward":
        return backward_work(shape, itemsize)
    N_Q, N_K, D = shape["N_Q"], shape["N_K"], shape["D"]
    device = this_device()
    blocks = config("forward", itemsize, D, device)[:2]
    fits = not shape_refusal(N_Q, N_K, D, shape["causal"], shape.get("window") or 0)
    if fits and itemsize == 2 and on_hopper(device):
        blocks = (ROWS.value, BLOCK_N) if is_short(N_K, D, shape["causal"]) else hopper_blocks(D)
    return forward_work(shape, itemsize, *blocks)


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


def backward_work(shape: dict[str, Any], itemsize: int) -> Work:
    """Backward: q, k, v, out, dout and lse read, dq, dk and dv written; delta is issued only."""
    B, H, H_KV, N_Q, N_K, D = (shape[x] for x in ("B", "H", "H_KV", "N_Q", "N_K", "D"))
    row, query_rows, key_rows = D * itemsize, B * H * N_Q, B * H_KV * N_K
    blocks = (config(name, itemsize, D, this_device())[:2] for name in ("keys", "queries"))
    queries = B * H * queries_visited(shape, *next(blocks))
    keys = B * H * keys_visited(shape, *next(blocks))
    issued = (
        query_rows * (2 * row + 4)  # out and dout into delta
        + key_rows * 4 * row + queries * (2 * row + 8)  # k, v, dk, dv; q, dout, lse and delta
        + query_rows * (3 * row + 8) + keys * 2 * row  # q, dout, dq, lse and delta; k and v
    )  # fmt: skip
    flops = forward_work(shape, itemsize, 128, 128).flops * 5 // 2
    return Work(query_rows * (4 * row + 4) + key_rows * 4 * row, issued, flops)
