"""The bytes that other loops of tiled attention ask for: causal, and with the keys outside.

What to notice: skipping tiles above the diagonal saves nearly half. With the keys in the outer
loop K and V are read once, but the unfinished O goes out and back on every pass and costs more.

Run it: `python -m snippets.loop_order`
"""

from snippets.hbm_traffic import issued_bytes, naive_bytes
from snippets.naive_attention import check_sizes


# --8<-- [start:orders]
def causal_bytes(N: int, d: int, tile: int = 128, key_tile: int = 128, itemsize: int = 2) -> int:
    """Query-outer, causal: a tile reads the key tiles up to its own last row."""
    check_sizes(N=N, d=d, tile=tile, key_tile=key_tile, itemsize=itemsize)
    keys_read = 0
    for start in range(0, N, tile):
        key_tiles = -(-(start + tile) // key_tile)  # rounded up
        keys_read += min(N, key_tiles * key_tile)
    return 2 * N * d * itemsize + 4 * N + 2 * d * itemsize * keys_read


def key_outer_bytes(
    N: int,
    d: int,
    key_tile: int = 128,
    itemsize: int = 2,
    o_itemsize: int = 4,
    first_read: bool = True,
) -> int:
    """Key-outer (FlashAttention, algorithm 1): each pass reads Q, updates O, m, l.

    A number of O kept between passes has `o_itemsize` bytes; m and l are fp32.
    Without `first_read` the first pass does not read O, m and l, which are new.
    """
    check_sizes(N=N, d=d, key_tile=key_tile)
    check_sizes(itemsize=itemsize, o_itemsize=o_itemsize)
    passes = -(-N // key_tile)
    state = N * d * o_itemsize + 8 * N  # O, m and l, in one direction
    moved = 2 * N * d * itemsize + passes * (N * d * itemsize + 2 * state)
    return moved if first_read else moved - state


# --8<-- [end:orders]


def main() -> None:
    N, d = 16384, 64
    naive = naive_bytes(N, d)
    rows = {
        "query-outer": issued_bytes(N, d),
        "query-outer, causal": causal_bytes(N, d),
        "key-outer, O in 16 bits": key_outer_bytes(N, d, o_itemsize=2),
        "key-outer, O in fp32": key_outer_bytes(N, d, o_itemsize=4),
        "  first read of O skipped": key_outer_bytes(N, d, o_itemsize=4, first_read=False),
    }
    print(f"issued, N={N}, d={d}, bf16, tiles of 128        MB  naive / it")
    for name, count in rows.items():
        print(f"{name:38} {count / 1e6:11.2f} {naive / count:11.2f}")


if __name__ == "__main__":
    main()
