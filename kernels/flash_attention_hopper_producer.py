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
def matrix(tiles, slot):
    """One tile of a ring, (1, 1, rows, D), as the matrix (rows, D)."""
    return tiles.index(slot).reshape([tiles.shape[3], tiles.shape[4]])


# How one number lies in the registers of four warps, and of one.
NUMBER = gl.constexpr(gl.BlockedLayout([1], [32], [4], [0]))
OF_ONE_WARP = gl.constexpr(gl.BlockedLayout([1], [32], [1], [0]))


# --8<-- [start:order]
@gluon.jit
def tile_at(number, order, N_Q, N_K, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr,
            IS_CAUSAL: gl.constexpr):  # fmt: skip
    """Head, first query and number of key tiles of the tile that is taken as number `number`.

    Head after head, so that all read the same keys at about the same time. Causal: the longest
    tiles first, among as many heads as share the L2.
    """
    heads, tiles, together = order
    head, tile = number // tiles, number % tiles
    if IS_CAUSAL:
        first = head // together * together
        among = gl.minimum(heads - first, together)
        nth = number - first * tiles
        head, tile = first + nth % among, tiles - 1 - nth // among
    start, count = tile * BLOCK_M, gl.cdiv(N_K, BLOCK_N)
    if IS_CAUSAL:
        count = gl.minimum(count, gl.cdiv(start + BLOCK_M + N_K - N_Q, BLOCK_N))
    return head, start, count


@gluon.jit
def tell(head, start, count, done, notes, told, heard):
    """Leave a note for the warpgroups: tile `done` of this program, -1 where there is none."""
    slot = done % 2
    mbarrier.wait(heard.index(slot), done // 2 & 1 ^ 1)
    notes.index(slot * 3).store(gl.full([1], head, gl.int32, OF_ONE_WARP))
    notes.index(slot * 3 + 1).store(gl.full([1], start, gl.int32, OF_ONE_WARP))
    notes.index(slot * 3 + 2).store(gl.full([1], count, gl.int32, OF_ONE_WARP))
    mbarrier.arrive(told.index(slot), count=1)


@gluon.jit
def hear(done, notes, told, heard):
    """Head, first query and number of key tiles of tile `done` of this program."""
    slot = done % 2
    mbarrier.wait(told.index(slot), done // 2 & 1)
    head = gl.max(notes.index(slot * 3).load(NUMBER), 0)
    start = gl.max(notes.index(slot * 3 + 1).load(NUMBER), 0)
    count = gl.max(notes.index(slot * 3 + 2).load(NUMBER), 0)
    mbarrier.arrive(heard.index(slot), count=1)
    return head, start, count


# --8<-- [end:order]


# --8<-- [start:producer]
@gluon.jit
def fetch(desc, b, h, row, tiles, slot, full, empty, phase):
    """Fill one slot of a ring once all who read it before have let go of it."""
    mbarrier.wait(empty.index(slot), phase ^ 1)
    mbarrier.expect(full.index(slot), desc.block_type.nbytes)
    async_load(desc, [b, h, row, 0], full.index(slot), tiles.index(slot))


@gluon.jit
def producer(q_desc, k_desc, v_desc, q_tiles, k_tiles, v_tiles, bars, counter, notes, order,
             H, group, N_Q, N_K, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr,
             CONSUMERS: gl.constexpr, STAGES: gl.constexpr, IS_CAUSAL: gl.constexpr):  # fmt: skip
    """Fetch tile after tile: the queries, then keys from last to first, each V one K behind."""
    q_full, q_empty, k_full, k_empty, v_full, v_empty, told, heard = bars
    heads, tiles, _together = order
    it = 0  # key tiles so far, over all tiles of queries
    done = 0  # tiles of queries so far
    b_last, h_last, row_last = 0, 0, 0
    number = gl.program_id(0)
    while number < heads * tiles:
        head, start, count = tile_at(number, order, N_Q, N_K, BLOCK_M, BLOCK_N, IS_CAUSAL)
        b, h = head // H, head % H
        tell(head, start, count, done, notes, told, heard)
        # The next tile that no program has: asked for now, the answer is there when it is needed.
        number = gl.num_programs(0) + gl.atomic_add(counter, 1, sem="relaxed")
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
    tell(-1, 0, 0, done, notes, told, heard)
    fetch(v_desc, b_last, h_last, row_last, v_tiles, (it - 1) % STAGES, v_full, v_empty,
          (it - 1) // STAGES & 1)  # fmt: skip
    if gl.atomic_add(counter + 1, 1) == gl.num_programs(0) - 1:  # no other will take a tile
        gl.store(counter, 0)
        gl.store(counter + 1, 0)


# --8<-- [end:producer]
