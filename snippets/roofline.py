"""Kernels under their roofs: the FLOP they do per byte, and the FLOP/s they can reach at most.

What to notice: one forgotten tensor in a count of bytes promises 65 times too much, and the same
attention has three intensities, one for each way of counting its bytes.

Run it: `python -m snippets.roofline`
"""

from snippets.bytes_in_flight import check_positive
from snippets.hardware import fact
from snippets.hbm_traffic import attention_flops, compulsory_bytes, issued_bytes, naive_bytes
from snippets.kv_cache import decode_intensity
from snippets.roofs import peaks


# --8<-- [start:roofline]
def intensity(flops: float, bytes_moved: float) -> float:
    """FLOP per byte moved between the chip and HBM."""
    check_positive(flops=flops, bytes_moved=bytes_moved)
    return flops / bytes_moved


def ridge_point(peak: float, rate: float) -> float:
    """FLOP/B at which `peak` FLOP/s and `rate` B/s take equally long."""
    check_positive(peak=peak, rate=rate)
    return peak / rate


def attainable(flop_per_byte: float, peak: float, rate: float) -> float:
    """FLOP/s that neither the unit nor the memory forbids."""
    check_positive(flop_per_byte=flop_per_byte, peak=peak, rate=rate)
    return min(peak, flop_per_byte * rate)


def bound(flop_per_byte: float, peak: float, rate: float) -> str:
    """What takes longer: memory left of the ridge, arithmetic from it on."""
    check_positive(flop_per_byte=flop_per_byte)
    left = flop_per_byte < ridge_point(peak, rate)
    return "memory-bound" if left else "compute-bound"


def points(N: int = 4096, d: int = 64) -> list[tuple[str, float, str]]:
    """Name, FLOP/B and unit that does the work; attention is one bf16 head."""
    flops, tensor = attention_flops(N, d), "tensor bf16"
    return [
        ("c = a + b, fp32", intensity(N, 3 * N * 4), "FP32, adds"),
        ("c = a + b, bf16", intensity(N, 3 * N * 2), "FP32, adds"),
        ("decode, 1 head a KV head", decode_intensity(N, d, 1), tensor),
        ("decode, 8 heads a KV head", decode_intensity(N, d, 8), tensor),
        ("attention, naive", intensity(flops, naive_bytes(N, d)), tensor),
        ("attention, issued", intensity(flops, issued_bytes(N, d)), tensor),
        ("GEMM 4096^3", intensity(2 * 4096**3, 3 * 4096**2 * 2), tensor),
        ("attention, compulsory", intensity(flops, compulsory_bytes(N, d)), tensor),
    ]


# --8<-- [end:roofline]
def show(heading: str, rows: list[tuple[str, float, float]], rate: float) -> None:
    print(f"{heading:28}  FLOP/B   ridge  TFLOP/s")
    for name, x, peak in rows:
        shown = f"{x:.1f}" if x >= 10 else f"{x:.2f}"
        ridge, top = ridge_point(peak, rate), attainable(x, peak, rate) / 1e12
        print(f"{name:28} {shown:>7} {ridge:7.1f} {top:8.1f}  {bound(x, peak, rate)}")


def main() -> None:
    N, d, peak = 4096, 64, 990e12  # with 3.35e12 B/s an H100, rounded
    row = {"scores only": N * 2, "all bytes": (N * d + d + N) * 2}  # K, one query, its scores
    rows = [(f"Q K^T, 1 row, {name}", intensity(2 * N * d, b), peak) for name, b in row.items()]
    rows.append(("GEMM 4096^3", intensity(2 * 4096**3, 3 * 4096**2 * 2), peak))
    show("H100 class", rows, 3.35e12)
    print()
    rows = [(name, x, peaks("H200")[roof]) for name, x, roof in points(N, d)]
    show(f"H200, N={N}, d={d}", rows, fact("H200", "hbm_rate").value)


if __name__ == "__main__":
    main()
