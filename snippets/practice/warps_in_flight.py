"""Warps that keep HBM busy

HBM delivers `rate` bytes a second and takes `latency_ns` nanoseconds to answer. A warp is 32
threads; each asks for `load` bytes and waits for them. Return the smallest number of warps that
each of the `sms` SMs must have waiting at any moment so that HBM never runs dry. All arguments
are whole numbers, and so is the answer. Then call it for an H200 with loads of 4, 8 and 16 bytes,
with figures from the [hardware table](../reference/hardware.md): for which of them has an SM
enough warp slots?

Hint: Little's law gives the bytes that must be under way on the whole device. Work out how many
of them one warp on every SM accounts for.

Hint: The quotient is rarely whole, and a part of a warp does not exist. Round up.

Hint: A quotient of floats that should be whole may come out a last digit too large, and rounding
up then adds a warp. With whole numbers, `-(-a // b)` is a / b rounded up, exactly. Nanoseconds
put a factor of `10**9` into b.

Check it: `python -m snippets.practice.warps_in_flight answer.py`
"""


def warps_needed(rate: int, latency_ns: int, sms: int, load: int) -> int:
    """Return how many warps an SM must have waiting."""
    # solution
    one_each = sms * 32 * load  # bytes of one warp an SM
    return -(-rate * latency_ns // (one_each * 10**9))
    # end


# check
from collections.abc import Iterator

from snippets.hardware import fact
from snippets.practice.grading import Case, call, main

SIGNATURE = "warps_needed(rate, latency_ns, sms, load)"


def by_adding(rate: int, latency_ns: int, sms: int, load: int) -> int:
    """Add one warp on every SM at a time, thread by thread, until enough bytes are under way."""
    warps = under_way = 0
    while under_way * 10**9 < rate * latency_ns:
        warps += 1
        under_way += sum(load for _ in range(sms) for _ in range(32))
    return warps


def cases() -> Iterator[Case]:
    """A device that fits in the head, its edges, a trap for floats, and real devices."""
    whole = "This quotient is whole. Floats can make it a little more, and rounding adds a warp."
    inputs = [
        ((32_000_000_000, 100, 1, 4), "A warp has 32 x 4 bytes under way; 25 are just enough."),
        ((32_000_000_001, 100, 1, 4), "One byte more than 25 warps bring takes a 26th: round up."),
        ((32_000_000_000, 100, 5, 4), "The warps of all SMs load at the same time."),
        ((32_000_000_000, 100, 1, 16), "Wider loads take fewer warps."),
        ((1, 1, 132, 16), "Even one byte takes one warp."),
        ((1_382_400_000_000, 700, 70, 8), whole),
        ((844_800_000_000, 600, 132, 8), whole),
    ]
    for device in ("H100", "H200"):
        rate, sms = int(fact(device, "hbm_rate").value), int(fact(device, "sms").value)
        inputs += [((rate, 700, sms, width), f"An {device}.") for width in (4, 8, 16)]
    for arguments, why in inputs:
        yield call(SIGNATURE, arguments, by_adding(*arguments), why)


if __name__ == "__main__":
    main(cases())
