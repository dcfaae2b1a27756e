"""A mental model of a GPU in one table per device: how much memory, how far away, how fast.

What to notice: each step away from the arithmetic holds more and delivers less, and the ridge,
the FLOP a kernel must do per byte from HBM to keep the tensor cores busy, is in the hundreds.

Run it: `python -m snippets.gpu_model`
"""

from snippets.hardware import DEVICES, FACTS, dense_peak, fact, ridge


# --8<-- [start:model]
def on_chip_bytes(device: str, per_sm: str) -> float:
    """Bytes of one kind of on-chip memory over the whole device, `per_sm` naming the kind."""
    return fact(device, "sms").value * fact(device, per_sm).value


def shared_memory_rate(device: str) -> float:
    """Estimated B/s of all shared memories: SMs x bytes per clock x the tensor rate's clock."""
    sms, clock = fact(device, "sms").value, fact(device, "clock").value
    return sms * fact(device, "shared_per_clock").value * clock


def flops_per_element_loaded(device: str, bytes_per_element: int = 2) -> float:
    """FLOP that the tensor cores could do in the time HBM takes to deliver one element."""
    if type(bytes_per_element) is not int or bytes_per_element < 1:
        raise ValueError(f"bytes_per_element must be an integer >= 1, got {bytes_per_element!r}")
    return ridge(device) * bytes_per_element


# --8<-- [end:model]


def main() -> None:
    print("            SMs  registers  shared    L2   HBM    HBM  shared  shared")
    print("                       MiB     MiB    MB    GB   TB/s   TB/s*    /HBM")
    for device in DEVICES:
        registers = on_chip_bytes(device, "registers_per_sm") / 2**20
        shared = on_chip_bytes(device, "shared_per_sm") / 2**20
        l2, hbm = fact(device, "l2").value / 1e6, fact(device, "hbm").value / 1e9
        hbm_rate, shared_rate = fact(device, "hbm_rate").value, shared_memory_rate(device)
        print(
            f"{device:10} {fact(device, 'sms').value:4.0f} {registers:10.1f} {shared:7.1f}"
            f" {l2:5.0f} {hbm:5.0f} {hbm_rate / 1e12:6.2f} {shared_rate / 1e12:7.1f}"
            f" {shared_rate / hbm_rate:7.1f}"
        )
    print("* an estimate: SMs x bytes a clock x the clock of the quoted tensor rate\n")
    dtypes = ("bf16", "fp8", "tf32", "fp32")
    print("ridge, FLOP/B   " + "".join(f"{dtype:>8}" for dtype in dtypes))
    for device in DEVICES:
        ridges = [
            f"{ridge(device, dtype):8.1f}" if (device, f"{dtype}_dense") in FACTS else f"{'-':>8}"
            for dtype in dtypes
        ]
        print(f"{device:16}{''.join(ridges)}")
    peak, rate = dense_peak("H200", "bf16") / 1e12, fact("H200", "hbm_rate").value / 1e12
    print(f"\nH200: {peak:.1f} TFLOP/s over {rate:.1f} TB/s is {ridge('H200'):.1f} FLOP/B,")
    print(f"so {flops_per_element_loaded('H200'):.0f} FLOP for each bf16 number it loads")


if __name__ == "__main__":
    main()
