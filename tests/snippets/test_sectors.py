"""Sectors against a map of memory in which each byte that a thread loads is marked."""

from typing import Any

import pytest

from snippets.sectors import main, sectors_touched, share_used


def marked_sectors(stride: int, itemsize: int, offset: int) -> int:
    """Mark each loaded byte in a memory large enough, then look at its pieces of 32 bytes."""
    memory = bytearray((offset + 31 * stride + 1) * itemsize + 32)
    for thread in range(32):
        for byte in range(itemsize):
            memory[(offset + thread * stride) * itemsize + byte] = 1
    return sum(any(memory[at : at + 32]) for at in range(0, len(memory), 32))


@pytest.mark.parametrize("stride", [0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 64, 1000])
@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 12, 16])
@pytest.mark.parametrize("offset", [0, 1, 5, 16])
def test_sectors_are_those_marked_in_memory(stride: int, itemsize: int, offset: int) -> None:
    assert sectors_touched(stride, itemsize, offset) == marked_sectors(stride, itemsize, offset)


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
def test_neighbours_from_an_aligned_start_waste_nothing(itemsize: int) -> None:
    assert share_used(1, itemsize) == 1.0


@pytest.mark.parametrize(("itemsize", "share"), [(2, 1 / 16), (4, 1 / 8)])
def test_a_stride_of_a_sector_or_more_uses_one_element_of_each(itemsize: int, share: float) -> None:
    assert share_used(32 // itemsize, itemsize) == share
    assert share_used(64, itemsize) == share


def test_a_broadcast_asks_for_one_element_in_one_sector() -> None:
    assert sectors_touched(0) == 1
    assert share_used(0) == 2 / 32


def test_a_start_between_sectors_costs_one_more() -> None:
    assert sectors_touched(1, 2, 1) == 3
    assert share_used(1, 2, 1) == 64 / 96


def test_prints_a_line_for_each_stride(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    printed = capsys.readouterr().out
    assert "               1        2     64 100.0%             4    128 100.0%" in printed
    assert "              64       32   1024   6.2%            32   1024  12.5%" in printed
    assert "stride 1 from element 1: 3 sectors in bf16, 5 in fp32" in printed
    assert max(len(line) for line in printed.splitlines()) <= 72


@pytest.mark.parametrize(("name", "least"), [("stride", 0), ("itemsize", 1), ("offset", 0)])
@pytest.mark.parametrize("wrong", [-1, True, 1.0, "2"])
def test_refuses_what_is_no_integer_or_too_small(name: str, least: int, wrong: object) -> None:
    sizes: dict[str, Any] = {"stride": 1, "itemsize": 2, "offset": 0} | {name: wrong}
    with pytest.raises(
        ValueError, match=f"{name} must be an integer of at least {least}, got {wrong!r}"
    ):
        sectors_touched(**sizes)


def test_refuses_an_element_of_no_bytes() -> None:
    with pytest.raises(ValueError, match="itemsize must be an integer of at least 1, got 0"):
        share_used(1, itemsize=0)
