"""The size of S against lists of numbers, and the edge at which it stops to fit in L2."""

from typing import Any

import pytest

from snippets.hardware import DEVICES, fact
from snippets.score_matrix import largest_in_l2, main, score_bytes


@pytest.mark.parametrize(("N", "heads", "itemsize"), [(1, 1, 1), (3, 2, 2), (7, 5, 4)])
def test_score_bytes_are_those_of_the_matrices_laid_out(N: int, heads: int, itemsize: int) -> None:
    laid_out = [b"\0" * itemsize for _ in range(heads) for _ in range(N) for _ in range(N)]
    assert score_bytes(N, heads, itemsize) == len(b"".join(laid_out))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("heads", [1, 8, 64])
@pytest.mark.parametrize("itemsize", [2, 4])
def test_the_largest_length_fits_and_the_next_does_not(
    device: str, heads: int, itemsize: int
) -> None:
    N, l2 = largest_in_l2(device, heads, itemsize), fact(device, "l2").value
    assert score_bytes(N, heads, itemsize) <= l2 < score_bytes(N + 1, heads, itemsize)


def test_no_length_fits_when_even_one_score_a_head_is_too_much() -> None:
    assert largest_in_l2("A100-40", heads=10**9) == 0


def test_one_head_of_4096_fits_in_every_l2_and_64_heads_in_none() -> None:
    assert min(largest_in_l2(device) for device in DEVICES) >= 4096
    assert max(largest_in_l2(device, 64) for device in DEVICES) < 4096


def test_prints_the_sizes_and_the_edges(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    printed = capsys.readouterr().out
    assert "N=4096           33.6        2147.5" in printed
    assert "H200          50                5000                   625" in printed
    assert max(len(line) for line in printed.splitlines()) <= 72


@pytest.mark.parametrize("wrong", [0, -3, True, 1.5])
@pytest.mark.parametrize("name", ["N", "heads", "itemsize"])
def test_refuses_a_size_that_is_no_positive_integer(name: str, wrong: object) -> None:
    sizes: dict[str, Any] = {"N": 4, "heads": 1, "itemsize": 2} | {name: wrong}
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, got {wrong}"):
        score_bytes(**sizes)


def test_refuses_no_heads_and_an_unknown_device() -> None:
    with pytest.raises(ValueError, match="heads must be an integer of at least 1, got 0"):
        largest_in_l2("H200", heads=0)
    with pytest.raises(ValueError, match="itemsize must be an integer of at least 1, got 0"):
        largest_in_l2("H200", itemsize=0)
    with pytest.raises(ValueError, match="unknown device 'V100'; allowed: A100-40"):
        largest_in_l2("V100")
