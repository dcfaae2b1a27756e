"""The bytes of attention counted three ways: the fewest possible, asked for by tiles, measured.

What to notice: the floor promises 257 times fewer bytes than naive attention, the loop's own
loads only 4 times; how near HBM comes to the floor depends on the L2, and only counters say it.

Run it: `python -m snippets.hbm_traffic`
"""

from snippets.captured import Counted, counters
from snippets.naive_attention import check_sizes


# --8<-- [start:traffic]
def naive_bytes(N: int, d: int, itemsize: int = 2) -> int:
    """Three kernels, one head: Q, K, V, O once; S and P out and in again."""
    check_sizes(N=N, d=d, itemsize=itemsize)
    return (4 * N * d + 4 * N * N) * itemsize


def compulsory_bytes(N: int, d: int, itemsize: int = 2, lse: bool = False) -> int:
    """Q, K, V read once, O written once; with `lse` an fp32 number a row."""
    check_sizes(N=N, d=d, itemsize=itemsize)
    return 4 * N * d * itemsize + (4 * N if lse else 0)


def issued_bytes(N: int, d: int, tile: int = 128, itemsize: int = 2) -> int:
    """Query-outer loop: each tile of queries reads all of K and V."""
    check_sizes(N=N, d=d, tile=tile, itemsize=itemsize)
    query_tiles = -(-N // tile)  # rounded up
    once = 2 * N * d * itemsize + 4 * N  # Q, O and the fp32 logsumexp
    return once + query_tiles * 2 * N * d * itemsize


def attention_flops(N: int, d: int) -> int:
    """FLOP of both products, forward, one head, no mask: same for all."""
    check_sizes(N=N, d=d)
    return 4 * N * N * d


# --8<-- [end:traffic]


def comparison(rows: list[Counted]) -> list[tuple[str, str, str, str]]:
    """Case, compulsory, issued and measured MB as text: one line for each captured count."""
    if not rows:
        cases = [(f"1 head, N={N}, d=64", N) for N in (1024, 4096, 16384)]
        absent = "not captured yet"
        return [(c, mb(compulsory_bytes(N, 64)), mb(issued_bytes(N, 64)), absent) for c, N in cases]
    return [
        (row.label(), mb(row.model_bytes), mb(row.issued_bytes), mb(row.read + row.written))
        for row in rows
    ]


def mb(count: int | None) -> str:
    """Bytes as MB of 1e6 bytes, or a dash where there is no count."""
    return "-" if count is None else f"{count / 1e6:.2f}"


def main() -> None:
    print("one head, bf16, forward, MB; ratios are naive / that column")
    print("   d      N     naive  compulsory  ratio  tile-issued  ratio")
    for d in (64, 128):
        for N in (1024, 4096, 16384):
            naive, floor, issued = naive_bytes(N, d), compulsory_bytes(N, d), issued_bytes(N, d)
            print(
                f"{d:4} {N:6} {mb(naive):>9} {mb(floor):>11} {naive / floor:6.1f}"
                f" {mb(issued):>12} {naive / issued:6.2f}"
            )
    rows = [row for row in counters("flash_attention") if row.direction == "forward"]
    print(f"\n{'forward, MB':35} {'model':>9} {'issued':>9} {'measured':>10}")
    for case, floor_mb, issued_mb, measured_mb in comparison(rows):
        print(f"{case:35} {floor_mb:>9} {issued_mb:>9} {measured_mb:>10}")
    for origin in dict.fromkeys(row.origin for row in rows):
        print(f"captured on {origin}")


if __name__ == "__main__":
    main()
