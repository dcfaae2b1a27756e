"""Rates from counts and times, the only place where units are converted.

A rate that the device cannot reach is a fault of the timer, never a result.
"""

from snippets.hardware import DEVICES, FACTS, dense_peak, fact

PEAK_OF = {"bf16": "bf16", "fp16": "bf16", "fp32": "fp32"}  # fp16 and bf16 share a rate


def gb_per_s(byte_count: float, us: float) -> float:
    """Bytes and microseconds to GB/s, 1e9 bytes a second."""
    return byte_count / us / 1e3


def tflop_per_s(flops: float, us: float) -> float:
    """FLOP and microseconds to TFLOP/s, 1e12 FLOP a second."""
    return flops / us / 1e6


def data_sheet(device: str, quantity: str) -> float | None:
    """Return a value of the hardware table for a device as its driver names it, or None.

    A device with two rows, such as the A100, has no answer: its name does not say which it is.
    """
    rows = [name for name in DEVICES if name.split("-")[0] in device.upper().split()]
    if len(rows) != 1 or (rows[0], quantity) not in FACTS:
        return None
    return fact(rows[0], quantity).value


def peak_flops(device: str, dtype: str) -> float | None:
    """Return the data sheet's dense FLOP/s for a data type, or None for an unknown device."""
    rows = [name for name in DEVICES if name.split("-")[0] in device.upper().split()]
    return dense_peak(rows[0], PEAK_OF[dtype]) if rows and dtype in PEAK_OF else None


def impossible(device: str, dtype: str, byte_count: int, flops: int, us: float) -> str | None:
    """Return why a time cannot be true on this device, or None.

    Parameters
    ----------
    byte_count : compulsory bytes, which no implementation can avoid.
    flops : floating-point operations by the convention of the method page.
    us : microseconds of one run.
    """
    if not us > 0:
        return f"a time of {us} us is no time"
    peak, rate = peak_flops(device, dtype), data_sheet(device, "hbm_rate")
    if peak and flops / us * 1e6 > peak:
        return f"{tflop_per_s(flops, us):.1f} TFLOP/s is above the peak of {peak / 1e12:.1f}"
    if rate and byte_count / us * 1e6 > rate:
        return f"{gb_per_s(byte_count, us):.0f} GB/s is above the peak of {rate / 1e9:.0f}"
    return None
