"""The roofs of one device, and how long each of its units works on the same attention.

What to notice: the tensor cores are one unit of several. With head dimension 64 the exponentials
take as long as both matrix products; at 128 the products take twice as long as they do.

Run it: `python -m snippets.roofs`
"""

from snippets.gpu_model import shared_memory_rate
from snippets.hardware import FACTS, dense_peak, fact
from snippets.hbm_traffic import attention_flops, compulsory_bytes
from snippets.naive_attention import check_sizes

FP32_PER_SCORE = 3  # an FMA to scale and subtract the maximum, a maximum, an addition
ROWS_PER_READ = 64  # query rows for which one Hopper matrix instruction reads its tile of K or V


# --8<-- [start:roofs]
def peaks(device: str) -> dict[str, float]:
    """Operations a second of each unit; a multiply-add is two FLOP."""
    rates = {
        f"tensor {dtype}": dense_peak(device, dtype)
        for dtype in ("fp8", "bf16", "tf32")
        if (device, f"{dtype}_dense") in FACTS
    }
    rates["FP32, FMA"] = dense_peak(device, "fp32")
    rates["FP32, adds"] = rates["FP32, FMA"] / 2  # one FLOP, not two
    sms, clock = fact(device, "sms").value, fact(device, "clock").value
    rates["exp unit"] = sms * fact(device, "exp_per_clock").value * clock
    return rates


def busy(device: str, N: int, d: int) -> dict[str, float]:
    """Seconds each unit needs for one bf16 head, N queries and keys."""
    check_sizes(N=N, d=d)
    rate, scores = peaks(device), N * N
    kv_reads = 2 * N * d * 2 * N / ROWS_PER_READ  # bytes, from shared memory
    return {
        "tensor bf16": attention_flops(N, d) / rate["tensor bf16"],
        "exp unit": scores / rate["exp unit"],
        "FP32, adds": FP32_PER_SCORE * scores / rate["FP32, adds"],
        "shared memory": kv_reads / shared_memory_rate(device),
        "HBM": compulsory_bytes(N, d) / fact(device, "hbm_rate").value,
    }


# --8<-- [end:roofs]


def main() -> None:
    device, N, dims = "H200", 8192, (64, 128, 256)
    rate = fact(device, "hbm_rate").value
    print(f"{device}              1e12 a second   a byte from HBM")
    for name, peak in peaks(device).items():
        unit = "exp " if name == "exp unit" else "FLOP"
        print(f"{name:14} {peak / 1e12:11.2f} {unit} {peak / rate:13.2f}")
    for name, peak in (("shared memory", shared_memory_rate(device)), ("HBM", rate)):
        print(f"{name:14} {peak / 1e12:11.2f} B    {peak / rate:13.2f}")
    print(f"\none head, N={N}, us busy" + "".join(f"{f'd={d}':>9}" for d in dims))
    columns = [busy(device, N, d) for d in dims]
    for name in columns[0]:
        print(f"{name:24}" + "".join(f"{column[name] * 1e6:9.1f}" for column in columns))


if __name__ == "__main__":
    main()
