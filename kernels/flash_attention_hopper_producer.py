"""The copying warp of the Hopper kernel: it keeps the rings of tiles in shared memory full."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

# Triton 3.6 has the long names, newer versions the short ones.
NEW = hasattr(tma, "async_load")
async_load = tma.async_load if NEW else tma.async_copy_global_to_shared
async_store = tma.async_store if NEW else tma.async_copy_shared_to_global
ROWS = gl.constexpr(64)  # queries of a warpgroup: the M of its matrix instruction


@gluon.jit
def tile_at(number, tiles, N_Q, N_K, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr,
            IS_CAUSAL: gl.constexpr):  # fmt: skip
    """Head, first query and number of key tiles of one tile of queries."""
    start = number % tiles * BLOCK_M
    count = gl.cdiv(N_K, BLOCK_N)
    if IS_CAUSAL:
        count = gl.minimum(count, gl.cdiv(start + BLOCK_M + N_K - N_Q, BLOCK_N))
    return number // tiles, start, count


# --8<-- [start:producer]
@gluon.jit
def fetch(desc, b, h, row, tiles, slot, full, empty, phase):
    """Fill one slot of a ring once all who read it before have let go of it."""
    mbarrier.wait(empty.index(slot), phase ^ 1)
    mbarrier.expect(full.index(slot), desc.block_type.nbytes)
    async_load(desc, [b, h, row, 0], full.index(slot), tiles.index(slot))


@gluon.jit
def producer(q_desc, k_desc, v_desc, q_tiles, k_tiles, v_tiles, bars, table, tiles,
             H, group, N_Q, N_K, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr,
             CONSUMERS: gl.constexpr, STAGES: gl.constexpr, IS_CAUSAL: gl.constexpr):  # fmt: skip
    """Fetch tile after tile: the queries, then keys from last to first, each V one K behind."""
    q_full, q_empty, k_full, k_empty, v_full, v_empty = bars
    it = 0  # key tiles so far, over all tiles of queries
    done = 0  # tiles of queries so far
    b_last, h_last, row_last = 0, 0, 0
    number = gl.load(table)
    while number >= 0:
        head, start, count = tile_at(number, tiles, N_Q, N_K, BLOCK_M, BLOCK_N, IS_CAUSAL)
        b, h = head // H, head % H
        for part in gl.static_range(CONSUMERS):
            fetch(q_desc, b, h, start + part * ROWS, q_tiles, done % 2 * CONSUMERS + part,
                  q_full, q_empty, done // 2 & 1)  # fmt: skip
        for back in range(count):
            row = (count - 1 - back) * BLOCK_N
            fetch(k_desc, b, h // group, row, k_tiles, it % STAGES, k_full, k_empty,
                  it // STAGES & 1)  # fmt: skip
            if it > 0:
                fetch(v_desc, b_last, h_last, row_last, v_tiles, (it - 1) % STAGES, v_full,
                      v_empty, (it - 1) // STAGES & 1)  # fmt: skip
            b_last, h_last, row_last = b, h // group, row
            it += 1
        done += 1
        number = gl.load(table + done)
    fetch(v_desc, b_last, h_last, row_last, v_tiles, (it - 1) % STAGES, v_full, v_empty,
          (it - 1) // STAGES & 1)  # fmt: skip


# --8<-- [end:producer]
