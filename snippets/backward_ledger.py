"""Bytes and FLOP of attention's backward pass, with P kept from forward or computed again.

What to notice: computing P again is a fifth matrix product, so backward takes 2.5 times the FLOP
of forward and not 2 times; yet it moves far fewer bytes, for no N x N matrix is left.

Run it: `python -m snippets.backward_ledger`
"""

from typing import NamedTuple

from snippets.naive_attention import check_sizes


# --8<-- [start:ledger]
class Kernel(NamedTuple):
    """One kernel: the tensors it reads and writes, and its N x N x d matrix products."""

    name: str
    reads: str
    writes: str
    products: int


FORWARD_PRODUCTS = 2  # Q K^T and P V
STANDARD = (
    Kernel("dV = P^T dO", "P dO", "dV", 1),
    Kernel("dP = dO V^T", "dO V", "dP", 1),
    Kernel("dS from P and dP", "P dP", "dS", 0),
    Kernel("dQ = dS K", "dS K", "dQ", 1),
    Kernel("dK = dS^T Q", "dS Q", "dK", 1),
)
FUSED = (
    Kernel("delta = rowsum(dO * O)", "dO O", "delta", 0),
    Kernel("P again, dV dP dQ dK", "Q K V dO LSE delta", "dQ dK dV", 5),
)


def bytes_of(tensors: str, n: int, d: int, e: int = 2) -> int:
    """Bytes of one head's tensors: N x N, one fp32 number a row, or N x d."""
    check_sizes(n=n, d=d, e=e)
    sizes = dict.fromkeys(("P", "dP", "dS"), n * n * e) | dict.fromkeys(("LSE", "delta"), 4 * n)
    sizes |= dict.fromkeys(["Q", "K", "V", "O", "dO", "dQ", "dK", "dV"], n * d * e)
    unknown = [name for name in tensors.split() if name not in sizes]
    if unknown:
        raise ValueError(f"unknown tensor {unknown[0]!r}; allowed: {', '.join(sizes)}")
    return sum(sizes[name] for name in tensors.split())


def flop(products: int, n: int, d: int) -> int:
    """FLOP of so many N x N x d matrix products, a multiply and an add for each term."""
    check_sizes(n=n, d=d)
    check_sizes(0, products=products)
    return products * 2 * n * n * d


# --8<-- [end:ledger]


def main() -> None:
    n, d = 4096, 64
    print(f"one head, N = {n}, d = {d}, 2 bytes an element; each operand moved once")
    print("                               read   written   matrix products")
    print("                                 MB        MB   GFLOP   / forward")
    for title, kernels in (("P kept", STANDARD), ("P again", FUSED)):
        total = Kernel(
            f"{title}, total",
            " ".join(kernel.reads for kernel in kernels),
            " ".join(kernel.writes for kernel in kernels),
            sum(kernel.products for kernel in kernels),
        )
        for kernel in (*kernels, total):
            read, written = (bytes_of(names, n, d) / 1e6 for names in kernel[1:3])
            print(f"{kernel.name:25} {read:10.2f} {written:9.2f}", end="")
            print(f" {flop(kernel.products, n, d) / 1e9:7.2f}", end="")
            print(f" {kernel.products / FORWARD_PRODUCTS:10.1f}x")


if __name__ == "__main__":
    main()
