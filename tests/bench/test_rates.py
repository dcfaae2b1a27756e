"""Units, and rates that no device can reach."""

import pytest

from kernels.bench.rates import data_sheet, gb_per_s, impossible, peak_flops, tflop_per_s

MIB = 2**20


def test_mebibytes_are_not_megabytes() -> None:
    rate = gb_per_s(3667 * MIB, 1e6)
    assert round(rate, 3) == 3.845
    assert round(rate * 1e9 / 2**30, 3) == 3.581


def test_bytes_in_a_millisecond() -> None:
    assert gb_per_s(2.4e9, 1e3) == pytest.approx(2400)
    assert tflop_per_s(2.4e9, 1e3) == pytest.approx(2.4)


@pytest.mark.parametrize(
    ("device", "rate"), [("NVIDIA H200", 4.8e12), ("NVIDIA H100 80GB HBM3", 3.35e12), ("X", None)]
)
def test_the_data_sheet_of_a_driver_s_name(device: str, rate: float | None) -> None:
    assert data_sheet(device, "hbm_rate") == rate


def test_a_name_that_two_devices_share_has_no_bandwidth() -> None:
    assert data_sheet("NVIDIA A100 SXM4", "hbm_rate") is None
    assert peak_flops("NVIDIA A100 SXM4", "fp16") == 312e12


@pytest.mark.parametrize(
    ("device", "bytes_", "flops", "us", "fault"),
    [
        ("NVIDIA H200", 0, 989_000_000, 1.0, None),
        ("NVIDIA H200", 0, 990_000_000, 1.0, "990.0 TFLOP/s is above the peak of 989.4"),
        ("NVIDIA H200", 4_800_000, 0, 1.0, None),
        ("NVIDIA H200", 4_900_000, 0, 1.0, "4900 GB/s is above the peak of 4800"),
        ("NVIDIA H200", 1, 1, 0.0, "a time of 0.0 us is no time"),
        ("NVIDIA H200", 1, 1, float("nan"), "a time of nan us is no time"),
        ("a card", 10**15, 10**15, 1.0, None),
    ],
)
def test_a_rate_above_the_peak_is_a_fault_of_the_timer(
    device: str, bytes_: int, flops: int, us: float, fault: str | None
) -> None:
    assert impossible(device, "bf16", bytes_, flops, us) == fault


def test_a_matmul_timed_without_waiting_is_caught() -> None:
    assert impossible("NVIDIA H200", "fp16", 0, 2 * 4096**3, 30.0) is not None
    assert impossible("NVIDIA H200", "fp16", 0, 2 * 4096**3, 1360.0) is None
