"""The roofs of one device."""

from math import ceil
from typing import Any

import pytest

from snippets import roofs
from snippets.hardware import DEVICES
from snippets.roofs import busy, peaks


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    roofs.main()
    return capsys.readouterr().out.splitlines()


def counted(N: int, d: int) -> dict[str, int]:
    """Operations and bytes of one head of fused attention, counted with loops."""
    work = dict.fromkeys(["tensor", "exp", "fp32", "shared", "hbm"], 0)
    for _ in range(N):
        for _ in range(N):
            work["tensor"] += 2 * d + 2 * d
            work["exp"] += 1
            work["fp32"] += 3
        work["hbm"] += 4 * d * 2
    for _ in range(N // 64):
        work["shared"] += N * 2 * d * 2
    return work


def test_additions_reach_half_of_the_fp32_rate() -> None:
    assert peaks("H200")["FP32, FMA"] == 66.9e12
    assert peaks("H200")["FP32, adds"] == 33.45e12


def test_the_exp_unit_does_16_results_a_clock_on_each_sm() -> None:
    assert peaks("H200")["exp unit"] == pytest.approx(132 * 16 * 1.83e9)
    assert f"{peaks('H100')['exp unit'] / 1e12:.2f}" in {"3.86", "3.87"}


@pytest.mark.parametrize("device", DEVICES)
def test_takes_dense_tensor_rates_only(device: str) -> None:
    assert peaks(device)["tensor bf16"] in {312e12, 989.4e12, 2250e12}


def test_has_no_fp8_roof_where_the_device_has_no_fp8() -> None:
    assert "tensor fp8" not in peaks("A100-80")
    assert peaks("H200")["tensor fp8"] == 1979e12


@pytest.mark.parametrize(("N", "d"), [(64, 1), (128, 64), (192, 128)])
def test_times_agree_with_a_count_of_the_work(N: Any, d: Any) -> None:
    work, found = counted(N, d), busy("H200", N, d)
    assert found["tensor bf16"] == pytest.approx(work["tensor"] / 989.4e12)
    assert found["exp unit"] == pytest.approx(work["exp"] / (132 * 16 * 1.83e9))
    assert found["FP32, adds"] == pytest.approx(work["fp32"] / 33.45e12)
    assert found["shared memory"] == pytest.approx(work["shared"] / (132 * 128 * 1.83e9))
    assert found["HBM"] == pytest.approx(work["hbm"] / 4.8e12)


@pytest.mark.parametrize(("d", "ratio"), [(64, 1.0), (128, 0.5), (256, 0.25)])
def test_exponentials_take_as_long_as_the_products_at_64_and_half_at_128(
    d: Any, ratio: float
) -> None:
    found = busy("H200", 8192, d)
    assert found["exp unit"] / found["tensor bf16"] == pytest.approx(ratio, rel=1e-3)


def test_prints_equal_times_for_both_units_at_64(capsys: pytest.CaptureFixture[str]) -> None:
    table = {line[:24].strip(): line.split()[-3:] for line in lines(capsys)[11:]}
    assert table["tensor bf16"][0] == table["exp unit"][0]
    assert ceil(float(table["tensor bf16"][1])) == ceil(2 * float(table["exp unit"][1]))


def test_prints_lines_of_at_most_72_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(len(line) for line in lines(capsys)) <= 72


def test_refuses_an_unknown_device() -> None:
    with pytest.raises(ValueError, match="unknown device 'H300'; allowed: A100-40"):
        peaks("H300")


@pytest.mark.parametrize(("N", "d"), [(0, 64), (64, 0), (-3, 64), (True, 64), (64, 64.0)])
def test_refuses_sizes_that_are_not_positive_integers(N: Any, d: Any) -> None:
    with pytest.raises(ValueError, match="must be an integer of at least 1, got"):
        busy("H200", N, d)
