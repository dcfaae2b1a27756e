"""TO FILL one sentence on what you will see: here, the mean of a few numbers.

What to notice: TO FILL what is easily missed in the output.

Run it: `python -m snippets.new_stem`
"""

from collections.abc import Sequence


# --8<-- [start:answer]
def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one number."""
    if not values:
        raise ValueError(f"values must hold at least one number, got {values!r}")
    return sum(values) / len(values)


# --8<-- [end:answer]


def main() -> None:
    for values in ([2.0], [1.0, 4.0], [0.5, 1.5, 4.0]):
        print(f"{mean(values):6.2f} is the mean of {values}")


if __name__ == "__main__":
    main()
