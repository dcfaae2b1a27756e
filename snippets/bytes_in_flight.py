"""Little's law: to use a bandwidth you must keep bandwidth x latency bytes under way.

What to notice: one load at a time leaves HBM idle; an H200 wants a few MB under way at once,
and that is why a kernel needs many threads, or loads that are issued long before their use.

Run it: `python -m snippets.bytes_in_flight`
"""

from math import inf

from snippets.hardware import fact

LATENCY_S = 700e-9  # an assumption; vendors do not publish it


# --8<-- [start:law]
def bytes_needed(rate: float, latency_s: float = LATENCY_S) -> float:
    """Bytes that must be under way at any moment to sustain `rate` B/s."""
    check_positive(rate=rate, latency_s=latency_s)
    return rate * latency_s


def sustained_rate(in_flight: float, rate: float, latency_s: float = LATENCY_S) -> float:
    """B/s that `in_flight` bytes under way can sustain, at most the device's own `rate`."""
    check_positive(in_flight=in_flight, rate=rate, latency_s=latency_s)
    return min(rate, in_flight / latency_s)


# --8<-- [end:law]


def check_positive(**values: float) -> None:
    """Raise ValueError for the first value that is not a finite number above 0."""
    for name, value in values.items():
        if type(value) not in (int, float) or not 0 < value < inf:
            raise ValueError(f"{name} must be a finite number above 0, got {value!r}")


def main() -> None:
    device = "H200"
    rate, sms = fact(device, "hbm_rate").value, fact(device, "sms").value
    needed = bytes_needed(rate)
    print(f"{device}: {rate / 1e12:.1f} TB/s x {LATENCY_S * 1e9:.0f} ns (assumed)", end=" ")
    print(f"= {needed / 1e6:.1f} MB in flight, {needed / sms / 1024:.0f} KiB an SM\n")
    print("in flight, KiB an SM   TB/s   share of HBM")
    for kib in (1, 2, 4, 8, 16, 32):
        sustained = sustained_rate(kib * 1024 * sms, rate)
        print(f"{kib:20} {sustained / 1e12:6.2f} {sustained / rate:11.0%}")


if __name__ == "__main__":
    main()
