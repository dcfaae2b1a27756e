"""How large the score matrix is, and up to which length it stays in the L2 cache.

What to notice: the S of a single head fits in the L2 of a current GPU at lengths where people
benchmark, the S of a whole layer does not; so a test with one head misses the HBM traffic.

Run it: `python -m snippets.score_matrix`
"""

from math import isqrt

from snippets.hardware import DEVICES, fact
from snippets.naive_attention import check_sizes


# --8<-- [start:fits]
def score_bytes(N: int, heads: int = 1, itemsize: int = 2) -> int:
    """Bytes of S, N x N for each head."""
    check_sizes(N=N, heads=heads, itemsize=itemsize)
    return heads * N * N * itemsize


def largest_in_l2(device: str, heads: int = 1, itemsize: int = 2) -> int:
    """The largest N at which the S of all heads fits in L2; 0 if none does."""
    check_sizes(heads=heads, itemsize=itemsize)
    return isqrt(int(fact(device, "l2").value) // (heads * itemsize))


# --8<-- [end:fits]


def main() -> None:
    heads = 4 * 16
    print(f"bf16, MB    S, 1 head   S, {heads} heads")
    for N in (512, 1024, 4096, 16384):
        print(f"N={N:<8} {score_bytes(N) / 1e6:10.1f} {score_bytes(N, heads) / 1e6:13.1f}")
    print(f"\n          L2, MB   largest N, 1 head   largest N, {heads} heads")
    for device in DEVICES:
        l2 = fact(device, "l2").value / 1e6
        one, many = largest_in_l2(device), largest_in_l2(device, heads)
        print(f"{device:8} {l2:7.0f} {one:19} {many:21}")


if __name__ == "__main__":
    main()
