"""The table of devices agrees with itself, with its sources and with the figures of the course."""

import pytest

from sitebuild.references import sources
from snippets.hardware import DEVICES, FACTS, Fact, dense_peak, fact, main, ridge

SPARSE_PAIRS = [
    (device, dtype)
    for device in DEVICES
    for dtype in ("bf16", "fp8", "tf32")
    if (device, f"{dtype}_sparse") in FACTS
]
UNITS = {"count", "B", "B/clk", "B/s", "exp/clk", "FLOP/clk", "FLOP/s", "Hz"}


@pytest.mark.parametrize("device", DEVICES)
def test_sms_times_flop_a_clock_times_clock_is_the_dense_tensor_peak(device: str) -> None:
    sms, per_clock, clock = (
        fact(device, quantity).value for quantity in ("sms", "tensor_per_clock", "clock")
    )
    assert sms * per_clock * clock == pytest.approx(dense_peak(device, "bf16"), rel=0.01)


@pytest.mark.parametrize(("device", "dtype"), SPARSE_PAIRS)
def test_sparse_rate_is_twice_the_dense_one_up_to_rounding(device: str, dtype: str) -> None:
    dense, sparse = dense_peak(device, dtype), fact(device, f"{dtype}_sparse").value
    assert sparse == pytest.approx(2 * dense, rel=0.001)


def test_every_device_has_a_sparse_bf16_rate_to_compare() -> None:
    assert len(SPARSE_PAIRS) == 13
    assert {device for device, dtype in SPARSE_PAIRS if dtype == "bf16"} == set(DEVICES)


@pytest.mark.parametrize("device", DEVICES)
def test_halving_the_element_doubles_the_tensor_rate(device: str) -> None:
    assert dense_peak(device, "bf16") == pytest.approx(2 * dense_peak(device, "tf32"), rel=0.001)


@pytest.mark.parametrize("device", ["H100", "H200", "B200"])
def test_fp8_doubles_bf16_where_it_exists(device: str) -> None:
    assert dense_peak(device, "fp8") == pytest.approx(2 * dense_peak(device, "bf16"), rel=0.001)


@pytest.mark.parametrize(
    ("device", "expected"),
    [("A100-40", 200.6), ("A100-80", 153.0), ("H100", 295.3), ("H200", 206.1), ("B200", 281.2)],
)
def test_ridge_of_bf16_is_the_published_one(device: str, expected: float) -> None:
    assert f"{ridge(device):.1f}" == f"{expected:.1f}"


@pytest.mark.parametrize(
    ("device", "quantity", "value"),
    [
        ("A100-40", "sms", 108),
        ("H200", "sms", 132),
        ("B200", "sms", 148),
        ("A100-80", "shared_per_block", 163 * 1024),
        ("H100", "shared_per_block", 232_448),
        ("H200", "registers_per_sm", 256 * 1024),
        ("A100-40", "hbm_rate", 1555e9),
        ("A100-80", "hbm_rate", 2039e9),
        ("H200", "hbm_rate", 4.8e12),
        ("H200", "hbm", 141e9),
        ("A100-80", "bf16_dense", 312e12),
        ("H100", "bf16_dense", 989.4e12),
        ("B200", "bf16_dense", 2250e12),
        ("B200", "fp8_dense", 4500e12),
        ("H100", "fp32_dense", 66.9e12),
    ],
)
def test_value_is_the_published_one(device: str, quantity: str, value: float) -> None:
    assert fact(device, quantity).value == value


@pytest.mark.parametrize("device", DEVICES)
def test_one_program_gets_a_kibibyte_less_than_its_sm(device: str) -> None:
    assert fact(device, "shared_per_sm").value - fact(device, "shared_per_block").value == 1024


@pytest.mark.parametrize("device", DEVICES)
def test_memory_grows_from_shared_memory_to_hbm(device: str) -> None:
    shared, registers, l2, hbm = (
        fact(device, quantity).value
        for quantity in ("shared_per_sm", "registers_per_sm", "l2", "hbm")
    )
    assert shared < registers < l2 < hbm


@pytest.mark.parametrize("device", ["A100-40", "A100-80"])
def test_ampere_has_no_fp8(device: str) -> None:
    with pytest.raises(ValueError, match=f"no 'fp8_dense' for {device}; allowed: sms, "):
        dense_peak(device, "fp8")


def test_every_source_of_the_table_is_on_the_sources_page() -> None:
    assert {value.source for value in FACTS.values()} <= sources().keys()


def test_every_unit_is_one_the_course_defines() -> None:
    assert {value.unit for value in FACTS.values()} == UNITS


def test_every_quantity_is_there_for_every_device_but_fp8_of_ampere() -> None:
    quantities = {quantity for _, quantity in FACTS}
    missing = {(d, q) for d in DEVICES for q in quantities} - FACTS.keys()
    assert missing == {(d, f"fp8_{k}") for d in DEVICES[:2] for k in ("dense", "sparse")}


def test_a_fact_carries_value_unit_and_source() -> None:
    assert fact("H200", "hbm_rate") == Fact(4.8e12, "B/s", "nvidia-h200")


@pytest.mark.parametrize("device", ["H100 PCIe", "h100", "", "A100"])
def test_unknown_device_is_refused_with_the_allowed_ones(device: str) -> None:
    with pytest.raises(ValueError, match=r"unknown device .*; allowed: A100-40, A100-80, H100"):
        fact(device, "sms")


def test_unknown_quantity_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match=r"no 'l3' for H200; allowed: sms, .*fp32_dense"):
        fact("H200", "l3")


@pytest.mark.parametrize("dtype", ["bf16_sparse", "sparse", "fp8_sparse"])
def test_a_sparse_peak_is_refused_for_a_roofline(dtype: str) -> None:
    with pytest.raises(ValueError, match=f"takes a dense peak, got '{dtype}'; allowed: bf16"):
        dense_peak("H100", dtype)


def test_prints_dense_and_sparse_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(DEVICES)
    assert lines[2] == "H100     bf16 dense   989.4  sparse  1979.0 TFLOP/s"
