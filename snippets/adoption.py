"""What a faster attention kernel is worth to the whole step, and when it has paid for itself.

What to notice: a kernel is judged against the library that is already there. Most of the gain
over separate kernels comes with one call, and the upkeep of your own may eat the rest.

Run it: `python -m snippets.adoption`
"""

from math import inf

# Assumptions to replace by your own: attention's share of a step that uses separate kernels, how
# many times as fast the library's fused kernel is, how many times as fast yours is as that.
SHARE, LIBRARY, OWN = 0.40, 6.0, 1.2
GPU_MONTHS_PER_ENGINEER_MONTH = 10.0
# engineer-months to build, engineer-months of upkeep in each month after
EFFORT = {"library": (0.1, 0.0), "own": (3.0, 0.25)}


# --8<-- [start:adoption]
def speedup_of_step(share: float, speedup: float) -> float:
    """Amdahl's law: how many times as fast a step gets when `share` of it gets `speedup`."""
    _numbers(share=share, speedup=speedup)
    _require(0 <= share <= 1, f"share must lie between 0 and 1, got {share}")
    _require(speedup > 0, f"speedup must be above 0, got {speedup}")
    return 1 / ((1 - share) + share / speedup)


def share_afterwards(share: float, speedup: float) -> float:
    """The part's share of the step once the part has become `speedup` times as fast."""
    return speedup_of_step(share, speedup) * share / speedup


def months_to_break_even(gain: float, gpus: float, build: float, upkeep: float) -> float:
    """Months until the GPUs set free have paid for the work; `inf` if upkeep costs more.

    `gain` is how many times as fast the step gets, `build` is in GPU-months, `upkeep` in
    GPU-months a month.
    """
    _numbers(gain=gain, gpus=gpus, build=build, upkeep=upkeep)
    _require(gain > 0, f"gain must be above 0, got {gain}")
    for name, value in {"gpus": gpus, "build": build, "upkeep": upkeep}.items():
        _require(0 <= value < inf, f"{name} must be at least 0 and finite, got {value}")
    net = gpus * (1 - 1 / gain) - upkeep
    return build / net if net > 0 else inf


# --8<-- [end:adoption]


def _numbers(**values: float) -> None:
    for name, value in values.items():
        _require(type(value) in (int, float), f"{name} must be a number, got {value!r}")


def _require(fulfilled: bool, complaint: str) -> None:
    if not fulfilled:
        raise ValueError(complaint)


def main() -> None:
    share = share_afterwards(SHARE, LIBRARY)
    gains = {"library": speedup_of_step(SHARE, LIBRARY), "own": speedup_of_step(share, OWN)}
    print("assumed step, ms      attention    rest   total  speed, library = 1")
    rest, fused = 100 * (1 - SHARE), 100 * SHARE / LIBRARY
    for name, part in (
        ("separate kernels", 100 * SHARE),
        ("the library", fused),
        ("your own kernel", fused / OWN),
        ("attention in no time", 0.0),
    ):
        speed = (rest + fused) / (rest + part)
        print(f"{name:20} {part:10.1f} {rest:7.1f} {rest + part:7.1f} {speed:19.2f}")
    print(f"\nyour kernel: {LIBRARY * OWN:.1f} times the separate kernels;", end=" ")
    print(f"your step: {gains['own'] - 1:.1%} faster\n")
    sizes = (8, 64, 512, 4096)
    print("months to break even on GPUs" + "".join(f"{gpus:9,}" for gpus in sizes))
    for name, gain in gains.items():
        build, upkeep = (part * GPU_MONTHS_PER_ENGINEER_MONTH for part in EFFORT[name])
        months = [months_to_break_even(gain, gpus, build, upkeep) for gpus in sizes]
        cells = ["never" if m == inf else f"{m:.1f}" if m > 0.05 else "< 0.1" for m in months]
        print(f"{name:28}" + "".join(f"{cell:>9}" for cell in cells))


if __name__ == "__main__":
    main()
