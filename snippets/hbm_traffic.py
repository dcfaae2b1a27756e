"""The bytes of attention counted three ways: the fewest possible, asked for by tiles, measured.

What to notice: the floor promises 257 times fewer bytes than naive attention, the loop's own
loads only 4 times; how near HBM comes to the floor depends on the L2, and only counters say it.

Run it: `python -m snippets.hbm_traffic`
"""

from collections.abc import Iterator

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


def comparison(rows: list[Counted]) -> Iterator[str]:
    """Model, issued, DRAM and L2 bytes of each captured count as lines of text, by case."""
    if not rows:
        yield "not captured yet; the models alone, one head"
        for N in (1024, 4096, 16384):
            yield f"  N={N:<10} {mb(compulsory_bytes(N, 64)):>9} {mb(issued_bytes(N, 64)):>9}"
    case = ""
    for row in rows:
        if row.case() != case:
            yield (case := row.case())
        dram = row.read + row.written
        cells = [f"{mb(count):>9}" for count in (row.model_bytes, row.issued_bytes, dram, row.l2)]
        yield f"  {row.implementation:12} {' '.join(cells)} {dram / row.model_bytes:8.3f}"


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
    print(f"\n{'forward, MB':14} {'model':>9} {'issued':>9} {'DRAM':>9} {'L2':>9} DRAM / model")
    for line in comparison(rows):
        print(line)
    for origin in dict.fromkeys(row.origin for row in rows):
        print(f"captured on {origin}")


if __name__ == "__main__":
    main()
