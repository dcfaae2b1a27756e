"""The bytes that naive attention moves through HBM, kernel by kernel, for one head.

What to notice: Q, K, V and O are a rounding error. Almost all bytes are S and P, each written
once and read once: four passes over an N x N matrix, and 31.5 FLOP for each byte.

Run it: `python -m snippets.naive_attention`
"""

from typing import NamedTuple


# --8<-- [start:ledger]
class Step(NamedTuple):
    kernel: str
    read: int  # bytes
    written: int  # bytes
    flops: int  # of the matrix product; by convention nothing else is counted
    other: int  # operations outside the products


def ledger(queries: int, keys: int, d: int, itemsize: int = 2) -> list[Step]:
    """What each kernel of softmax(Q K^T / sqrt(d)) V moves and computes, one head."""
    check_sizes(queries=queries, keys=keys, d=d, itemsize=itemsize)
    q = out = queries * d * itemsize  # bytes of Q, and as many of O
    k = v = keys * d * itemsize
    scores = queries * keys  # numbers in S, and as many in P
    s = p = scores * itemsize
    product = 2 * scores * d  # a multiplication and an addition at each step
    return [
        Step("S = Q K^T / sqrt(d)", q + k, s, flops=product, other=scores),
        # a score's maximum, subtraction, exponential, addition and division
        Step("P = softmax(S)", s, p, flops=0, other=5 * scores),
        Step("O = P V", p + v, out, flops=product, other=0),
    ]


def total(steps: list[Step]) -> Step:
    """The sum of the steps."""
    return Step(
        "together",
        sum(step.read for step in steps),
        sum(step.written for step in steps),
        sum(step.flops for step in steps),
        sum(step.other for step in steps),
    )


def intensity(step: Step) -> float:
    """FLOP of the products for each byte read or written."""
    return step.flops / (step.read + step.written)


# --8<-- [end:ledger]


def check_sizes(least: int = 1, /, **sizes: int) -> None:
    """Raise ValueError for the first size that is not an integer of at least `least`."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < least:
            raise ValueError(f"{name} must be an integer of at least {least}, got {size!r}")


def main() -> None:
    N, d, B, H = 4096, 64, 4, 16
    steps = ledger(N, N, d)
    print(f"N={N}, d={d}, bf16     read MB  written MB    GFLOP  FLOP/B  other G")
    for step in [*steps, total(steps)]:
        print(
            f"{step.kernel:20} {step.read / 1e6:10.2f} {step.written / 1e6:11.2f}"
            f" {step.flops / 1e9:8.2f} {intensity(step):7.1f} {step.other / 1e9:8.2f}"
        )
    moved = total(steps).read + total(steps).written
    scores = N * N * 2
    print(f"\nS alone {scores / 1e6:.1f} MB; all traffic {moved / 1e6:.2f} MB,", end=" ")
    print(f"{4 * scores / moved:.1%} of it S and P")
    print(f"B x H = {B} x {H} heads: S {B * H * scores / 1e6:.1f} MB,", end=" ")
    print(f"all traffic {B * H * moved / 1e6:.1f} MB")
    row = ledger(1, N, d)[0]
    print(f"one query, Q K^T: {intensity(row):.2f} FLOP/B,", end=" ")
    print(f"or {row.flops / row.written:.1f} counting only what it writes")


if __name__ == "__main__":
    main()
