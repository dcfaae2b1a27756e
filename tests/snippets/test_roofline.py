"""Kernels under their roofs."""

from fractions import Fraction
from math import inf, nan
from typing import Any

import pytest

from snippets import roofline
from snippets.kv_cache import decode_intensity
from snippets.roofline import attainable, bound, intensity, points, ridge_point

H100_CLASS = (990e12, 3.35e12)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    roofline.main()
    return capsys.readouterr().out.splitlines()


def counted_decode(N: int, d: int, group: int) -> Fraction:
    """FLOP and bytes of one decode step, counted tensor by tensor."""
    flops = moved = 0
    for _ in range(2):  # K with its product, V with its product
        moved += sum(2 for _ in range(N) for _ in range(d))
    for _ in range(group):
        moved += 2 * (2 * d)  # q in, o out
        flops += 2 * sum(2 * d for _ in range(N))
    return Fraction(flops, moved)


def counted_naive(N: int, d: int) -> Fraction:
    """FLOP a byte of three bf16 kernels: QK^T, softmax, PV, each tensor an element list."""
    matrix, tall = N * N, N * d
    elements = (tall + tall + matrix) + (matrix + matrix) + (matrix + tall + tall)
    return Fraction(2 * matrix * d + 2 * matrix * d, 2 * elements)


def counted_issued(N: int, d: int, tile: int) -> Fraction:
    """FLOP a byte of a query-outer loop, tile by tile."""
    moved = 0
    for first in range(0, N, tile):
        rows = min(tile, N - first)
        moved += rows * d * 2 + rows * d * 2 + rows * 4  # q, o, logsumexp
        moved += sum(2 * d * 2 for _ in range(N))  # each key and its value
    return Fraction(4 * N * N * d, moved)


def by_name(N: int, d: int) -> dict[str, float]:
    return {name: x for name, x, _ in points(N, d)}


def test_prints_the_pinned_values_of_an_h100_class_device(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = lines(capsys)
    assert rows[3].split() == ["GEMM", "4096^3", "1365.3", "295.5", "990.0", "compute-bound"]
    assert rows[1].split()[-4:] == ["64.0", "295.5", "214.4", "memory-bound"]


def test_prints_the_row_with_all_its_bytes_beside_the_miscounted_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert lines(capsys)[2].split()[-4:] == ["0.98", "295.5", "3.3", "memory-bound"]


def test_uses_the_ridge_of_the_h200_for_the_h200(capsys: pytest.CaptureFixture[str]) -> None:
    h200 = [line.split()[-3] for line in lines(capsys)[6:]]
    assert h200 == ["7.0", "7.0", *["206.1"] * 6]


def test_prints_lines_of_at_most_72_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(len(line) for line in lines(capsys)) <= 72


def test_intensity_of_a_gemm_is_a_sixth_of_twice_its_side() -> None:
    assert intensity(2 * 4096**3, 3 * 4096**2 * 2) == pytest.approx(4096 / 3)


def test_attainable_is_the_slope_left_of_the_ridge_and_the_roof_right_of_it() -> None:
    assert attainable(64, *H100_CLASS) == 214.4e12
    assert attainable(295, *H100_CLASS) == 295 * 3.35e12
    assert attainable(296, *H100_CLASS) == 990e12


def test_the_ridge_is_where_bytes_and_arithmetic_take_equally_long() -> None:
    flops = 7e12
    moved = flops / ridge_point(*H100_CLASS)
    assert flops / 990e12 == pytest.approx(moved / 3.35e12)


@pytest.mark.parametrize(
    ("x", "expected"), [(9.99, "memory-bound"), (10, "compute-bound"), (11, "compute-bound")]
)
def test_names_the_side_of_the_ridge(x: float, expected: str) -> None:
    assert bound(x, 1000, 100) == expected


def test_an_addition_is_a_twelfth_in_fp32_and_a_sixth_in_bf16() -> None:
    assert by_name(4096, 64)["c = a + b, fp32"] == pytest.approx(1 / 12)
    assert by_name(4096, 64)["c = a + b, bf16"] == pytest.approx(1 / 6)


def test_an_addition_has_the_fp32_roof_and_everything_else_the_tensor_roof() -> None:
    roofs = {name: roof for name, _, roof in points()}
    assert {name for name, roof in roofs.items() if roof == "FP32, adds"} == {
        "c = a + b, fp32",
        "c = a + b, bf16",
    }
    assert set(roofs.values()) == {"FP32, adds", "tensor bf16"}


@pytest.mark.parametrize(("N", "d", "group"), [(1, 1, 1), (37, 5, 3), (300, 64, 8), (129, 7, 4)])
def test_decoding_agrees_with_a_count_of_its_bytes(N: Any, d: Any, group: int) -> None:
    assert decode_intensity(N, d, group) == pytest.approx(float(counted_decode(N, d, group)))


@pytest.mark.parametrize(("name", "group"), [("1 head", 1), ("8 heads", 8)])
def test_a_decode_point_stands_for_the_heads_it_names(name: str, group: int) -> None:
    x = {label: x for label, x, _ in points(4096, 64)}[f"decode, {name} a KV head"]
    assert x == pytest.approx(float(counted_decode(4096, 64, group)))


@pytest.mark.parametrize(("group", "limit"), [(1, 1.0), (4, 4.0), (8, 8.0)])
def test_decoding_tends_to_the_group_size_in_bf16(group: int, limit: float) -> None:
    assert decode_intensity(10**7, 128, group) == pytest.approx(limit, rel=1e-4)


@pytest.mark.parametrize(("N", "d"), [(1, 1), (100, 3), (129, 64), (1000, 128), (4096, 64)])
def test_attention_agrees_with_a_count_of_its_bytes(N: Any, d: Any) -> None:
    found = by_name(N, d)
    assert found["attention, naive"] == pytest.approx(float(counted_naive(N, d)))
    assert found["attention, issued"] == pytest.approx(float(counted_issued(N, d, 128)))
    assert found["attention, compulsory"] == pytest.approx(N / 2)


@pytest.mark.parametrize(
    ("N", "d", "naive", "issued", "compulsory"),
    [
        (1024, 64, "30.1", "113.6", "512.0"),
        (4096, 64, "31.5", "124.1", "2048.0"),
        (16384, 64, "31.9", "127.0", "8192.0"),
        (1024, 128, "56.9", "113.7", "512.0"),
        (4096, 128, "62.1", "124.1", "2048.0"),
        (16384, 128, "63.5", "127.0", "8192.0"),
    ],
)
def test_reproduces_the_reference_table_of_intensities(
    N: Any, d: Any, naive: str, issued: str, compulsory: str
) -> None:
    found = by_name(N, d)
    assert f"{found['attention, naive']:.1f}" == naive
    assert f"{found['attention, issued']:.1f}" == issued
    assert f"{found['attention, compulsory']:.1f}" == compulsory


@pytest.mark.parametrize("bad", [0, -1.0, nan, inf, True])
def test_refuses_what_is_not_a_positive_finite_number(bad: Any) -> None:
    with pytest.raises(ValueError, match="bytes_moved must be a finite number above 0, got"):
        intensity(1, bad)
    with pytest.raises(ValueError, match="rate must be a finite number above 0, got"):
        ridge_point(1, bad)
    with pytest.raises(ValueError, match="peak must be a finite number above 0, got"):
        attainable(1, bad, 1)
    with pytest.raises(ValueError, match="flop_per_byte must be a finite number above 0, got"):
        bound(bad, 1, 1)


@pytest.mark.parametrize(("N", "d"), [(0, 64), (4096, 0), (-1, 64), (4096, True), (4096.0, 64)])
def test_refuses_sizes_that_are_not_positive_integers(N: Any, d: Any) -> None:
    with pytest.raises(ValueError, match="must be an integer of at least 1, got"):
        points(N, d)
