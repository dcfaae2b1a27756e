"""How much of a device a launch can use, by its number of programs alone.

What to notice: the time goes up in steps. One program more than the device has places for costs a
whole further wave, and one attention head leaves three quarters of an H200 idle.

Run it: `python -m snippets.waves`
"""

from snippets.hardware import fact
from snippets.naive_attention import check_sizes


# --8<-- [start:waves]
def attention_programs(heads: int, queries: int, tile: int = 128) -> int:
    """Programs of a launch with one program for each head and tile of queries."""
    check_sizes(heads=heads, queries=queries, tile=tile)
    return heads * -(-queries // tile)


def waves(programs: int, places: int) -> int:
    """Rounds until all programs, equally long, have had one of `places` places."""
    check_sizes(programs=programs, places=places)
    return -(-programs // places)


def efficiency(programs: int, places: int) -> float:
    """Share of the places that do work, over all waves, the last one included."""
    return programs / (waves(programs, places) * places)


# --8<-- [end:waves]


def main() -> None:
    device, queries, a_sm = "H200", 4096, 1
    places = int(fact(device, "sms").value) * a_sm
    print(f"{device}, {places} SMs, {a_sm} program on each; N={queries}")
    print("heads  query tile  programs  waves  efficiency")
    for heads, tile in ((1, 128), (1, 64), (4, 128), (5, 128), (8, 128), (9, 128), (64, 128)):
        programs = attention_programs(heads, queries, tile)
        share = efficiency(programs, places)
        print(f"{heads:5} {tile:11} {programs:9} {waves(programs, places):6} {share:11.0%}")


if __name__ == "__main__":
    main()
