"""The copying warp of the Hopper backward: it fetches keys once, then the queries that see them."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from kernels.flash_attention_hopper_producer import ROWS as ROWS
from kernels.flash_attention_hopper_producer import async_load

KEYS = gl.constexpr(128)  # keys of a program: 64 for each of two warpgroups


@gluon.jit
def keys_at(number, tiles, N_Q, N_K, BLOCK_M: gl.constexpr, IS_CAUSAL: gl.constexpr):
    """Group, first key, and the first and the number of the tiles of queries that see it."""
    start = number % tiles * KEYS
    first = gl.to_tensor(0)
    if IS_CAUSAL:
        first = gl.maximum(0, start - (N_K - N_Q)) // BLOCK_M
    return number // tiles, start, first, gl.cdiv(N_Q, BLOCK_M) - first


# --8<-- [start:producer]
@gluon.jit
def fetch_rows(desc, rows_desc, b, h, H, row, tiles, numbers, slot, full):
    """Fill one slot of a ring: a tile, and one number for each of its rows."""
    mbarrier.expect(full.index(slot), desc.block_type.nbytes + rows_desc.block_type.nbytes)
    async_load(rows_desc, [b * H + h, row], full.index(slot), numbers.index(slot))
    async_load(desc, [b, h, row, 0], full.index(slot), tiles.index(slot))


@gluon.jit
def gradients_producer(q_desc, k_desc, v_desc, dout_desc, lse_desc, delta_desc, k_tiles, v_tiles,
                       q_tiles, dout_tiles, lse_rows, delta_rows, bars, table, tiles, H,
                       groups, parts, N_Q, N_K, BLOCK_M: gl.constexpr, STAGES: gl.constexpr,
                       IS_CAUSAL: gl.constexpr):  # fmt: skip
    """For each tile of keys and group fetch the queries, of all its heads, that see it."""
    kv_full, kv_empty, q_full, dout_full, empty, _ds_full = bars
    heads_of_group = H // groups
    it = 0  # tiles of queries so far
    done = 0  # tiles of keys so far
    number = gl.load(table)
    while number >= 0:
        head, start, first, count = keys_at(number, tiles, N_Q, N_K, BLOCK_M, IS_CAUSAL)
        b, group = head // groups, head % groups
        mbarrier.wait(kv_empty.index(0), done & 1 ^ 1)
        mbarrier.expect(kv_full.index(0), 4 * k_desc.block_type.nbytes)
        for part in gl.static_range(2):
            at = [b, group // parts, start + part * ROWS, 0]
            async_load(k_desc, at, kv_full.index(0), k_tiles.index(part))
            async_load(v_desc, at, kv_full.index(0), v_tiles.index(part))
        for member in range(heads_of_group):
            h = group * heads_of_group + member
            for tile in range(first, first + count):
                slot, row = it % STAGES, tile * BLOCK_M
                mbarrier.wait(empty.index(slot), it // STAGES & 1 ^ 1)
                fetch_rows(q_desc, lse_desc, b, h, H, row, q_tiles, lse_rows, slot, q_full)
                fetch_rows(dout_desc, delta_desc, b, h, H, row, dout_tiles, delta_rows, slot,
                           dout_full)  # fmt: skip
                it += 1
        done += 1
        number = gl.load(table + done)


# --8<-- [end:producer]
