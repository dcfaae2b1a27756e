"""The picture of the machine: sizes over the whole device, the estimated rate, the ridge."""

import pytest

from snippets.gpu_model import flops_per_element_loaded, main, on_chip_bytes, shared_memory_rate
from snippets.hardware import DEVICES, fact


@pytest.mark.parametrize(
    ("device", "expected"),
    [("A100-40", 12.5), ("A100-80", 9.6), ("H100", 9.2), ("H200", 6.4), ("B200", 4.4)],
)
def test_shared_memory_over_hbm_is_the_expected_ratio(device: str, expected: float) -> None:
    ratio = shared_memory_rate(device) / fact(device, "hbm_rate").value
    assert f"{ratio:.1f}" == f"{expected:.1f}"


@pytest.mark.parametrize("device", DEVICES)
def test_on_chip_bytes_are_the_sum_over_the_sms(device: str) -> None:
    sms = int(fact(device, "sms").value)
    one_by_one = sum(int(fact(device, "registers_per_sm").value) for _ in range(sms))
    assert on_chip_bytes(device, "registers_per_sm") == one_by_one


def test_registers_of_an_h200_are_33_mebibytes() -> None:
    assert on_chip_bytes("H200", "registers_per_sm") == 33 * 2**20


@pytest.mark.parametrize("device", DEVICES)
def test_registers_hold_more_than_shared_memory(device: str) -> None:
    shared = on_chip_bytes(device, "shared_per_sm")
    assert shared < on_chip_bytes(device, "registers_per_sm") < fact(device, "l2").value


def test_shared_memory_rate_is_bytes_a_clock_of_all_sms() -> None:
    assert shared_memory_rate("H100") == pytest.approx(132 * 128 * 1.83e9)


def test_one_bf16_number_of_an_h200_costs_about_400_flop() -> None:
    assert round(flops_per_element_loaded("H200")) == 412


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_time_of_a_load_equals_time_of_its_flop(device: str, size: int) -> None:
    load = size / fact(device, "hbm_rate").value
    arithmetic = flops_per_element_loaded(device, size) / fact(device, "bf16_dense").value
    assert arithmetic == pytest.approx(load)


@pytest.mark.parametrize("size", [0, -2])
def test_an_element_of_no_bytes_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"bytes_per_element must be an integer >= 1, got {size}"):
        flops_per_element_loaded("H200", size)


def test_unknown_device_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown device 'TPU'; allowed: A100-40"):
        shared_memory_rate("TPU")


def test_unknown_kind_of_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="no 'l1_per_sm' for H200; allowed: sms"):
        on_chip_bytes("H200", "l1_per_sm")


def test_prints_the_table_the_lesson_shows(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert ["H200", "132", "33.0", "29.4", "50", "141", "4.80", "30.9", "6.4"] in rows
    assert ["A100-80", "153.0", "-", "76.5", "9.6"] in rows
    assert ["B200", "281.2", "562.5", "140.6", "9.4"] in rows
    assert out.endswith("so 412 FLOP for each bf16 number it loads\n")
    assert max(map(len, out.splitlines())) <= 88
