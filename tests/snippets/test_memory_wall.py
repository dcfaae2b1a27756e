"""The five estimates: both the remembered figures and the careful ones, and their formulas."""

import random
from fractions import Fraction

import pytest

from snippets.hardware import dense_peak, fact
from snippets.memory_wall import (
    DEVICE,
    GIB,
    REMEMBERED,
    fusion_bytes,
    main,
    passes_bytes,
    row_tile,
)
from snippets.roofline import attainable, bound

DATA_SHEET = dense_peak(DEVICE, "bf16"), fact(DEVICE, "hbm_rate").value


def roofline_seconds(flops: float, moved: float, peak: float, rate: float) -> tuple[float, float]:
    """Seconds that arithmetic alone and memory alone would take."""
    return flops / peak, moved / rate


def bytes_touched(N: int, passes: int, itemsize: int) -> int:
    """Count one element after the other."""
    return sum(itemsize for _ in range(passes) for _ in range(N) for _ in range(N))


def run_chain(elements: int, operations: int, itemsize: int) -> tuple[int, int]:
    """Bytes of a chain of operations as kernels: fetch, work, store; then all of it in one."""
    loaded = stored = 0
    for _ in range(operations):
        for _ in range(elements):
            loaded, stored = loaded + itemsize, stored + itemsize
    return loaded + stored, 2 * elements * itemsize


def halved_until_it_fits(N: int, memory: int, itemsize: int) -> tuple[int, int]:
    """Start from a power of two past the row, halve until it fits, then walk over the row."""
    block = 1
    while block <= N:
        block *= 2
    while block > N or block * itemsize > memory:
        block //= 2
    return block, len(range(0, N, block))


def test_the_remembered_machine_balances_at_145_3() -> None:
    assert REMEMBERED == (312e12, 2000 * 1024**3)
    assert f"{REMEMBERED[0] / REMEMBERED[1]:.1f}" == "145.3"


def test_the_data_sheet_balances_at_153_0() -> None:
    assert f"{DATA_SHEET[0] / DATA_SHEET[1]:.1f}" == "153.0"


@pytest.mark.parametrize(
    ("flops", "moved", "shown", "side"),
    [(2e11, 6e8, "333.3", "compute-bound"), (1e8, 8e8, "0.1", "memory-bound")],
)
def test_the_two_workloads_fall_on_the_expected_sides(
    flops: float, moved: float, shown: str, side: str
) -> None:
    assert f"{flops / moved:.1f}" == shown
    assert bound(flops / moved, *REMEMBERED) == bound(flops / moved, *DATA_SHEET) == side


def test_a_kernel_of_150_flop_a_byte_changes_sides_with_the_unit() -> None:
    assert bound(150.0, *REMEMBERED) == "compute-bound"
    assert bound(150.0, *DATA_SHEET) == "memory-bound"


@pytest.mark.parametrize(("intensity", "expected"), [(5, "10.7"), (120, "257.7")])
def test_attainable_on_the_remembered_machine(intensity: float, expected: str) -> None:
    assert f"{attainable(intensity, *REMEMBERED) / 1e12:.1f}" == expected


@pytest.mark.parametrize("seed", range(40))
def test_side_and_rate_follow_from_the_slower_of_two_times(seed: int) -> None:
    draw = random.Random(seed)
    flops, moved = 10 ** draw.uniform(6, 14), 10 ** draw.uniform(6, 12)
    peak, rate = draw.uniform(1e13, 1e15), draw.uniform(1e12, 8e12)
    arithmetic, memory = roofline_seconds(flops, moved, peak, rate)
    sides = {True: "compute-bound", False: "memory-bound"}
    assert bound(flops / moved, peak, rate) == sides[arithmetic > memory]
    assert attainable(flops / moved, peak, rate) == pytest.approx(flops / max(arithmetic, memory))


def test_at_the_ridge_itself_the_peak_is_reached() -> None:
    assert attainable(4.0, 8.0, 2.0) == 8.0
    assert bound(4.0, 8.0, 2.0) == "compute-bound"


@pytest.mark.parametrize(
    ("N", "expected"), [(1024, "0.01"), (4096, "0.09"), (8192, "0.38"), (16384, "1.50")]
)
def test_three_passes_in_gib(N: int, expected: str) -> None:
    assert f"{passes_bytes(N, 3) / GIB:.2f}" == expected


@pytest.mark.parametrize(("N", "passes", "itemsize"), [(1, 1, 1), (5, 3, 2), (7, 4, 4), (13, 2, 8)])
def test_passes_count_every_element(N: int, passes: int, itemsize: int) -> None:
    assert passes_bytes(N, passes, itemsize) == bytes_touched(N, passes, itemsize)


def test_doubling_n_quadruples_the_passes() -> None:
    assert passes_bytes(8192, 4) == 4 * passes_bytes(4096, 4)


def test_adding_two_vectors_is_a_twelfth_of_a_flop_a_byte_in_fp32() -> None:
    add = {size: Fraction(1, 3 * size) for size in (4, 2)}  # two reads and a write an element
    assert add == {4: Fraction(1, 12), 2: Fraction(1, 6)}
    assert bound(float(add[4]), dense_peak(DEVICE, "fp32") / 2, DATA_SHEET[1]) == "memory-bound"


def test_fusing_five_operations_takes_1_25_gib_to_0_25_and_saves_80_percent() -> None:
    before, after = fusion_bytes(8192 * 8192, 5)
    assert (f"{before / GIB:.2f}", f"{after / GIB:.2f}") == ("1.25", "0.25")
    assert f"{(before - after) / GIB:.2f}" == "1.00"
    assert f"{(before - after) / before:.0%}" == "80%"


@pytest.mark.parametrize("sizes", [(1, 1, 1), (7, 3, 2), (100, 5, 4), (13, 11, 8)])
def test_fusion_saves_what_a_chain_of_kernels_loads_and_stores(sizes: tuple[int, int, int]) -> None:
    assert fusion_bytes(*sizes) == run_chain(*sizes)


def test_one_operation_alone_gains_nothing_by_fusion() -> None:
    before, after = fusion_bytes(1000, 1)
    assert before == after


def test_a_bare_row_of_8192_fits_100_kib_whole() -> None:
    assert row_tile(8192, 100 * 1024) == (8192, 1)


@pytest.mark.parametrize("seed", range(40))
def test_the_row_tile_is_the_largest_power_of_two_that_fits(seed: int) -> None:
    draw = random.Random(seed)
    N, itemsize = draw.randint(1, 5000), draw.choice([1, 2, 4, 8])
    memory = draw.randint(itemsize, 20_000)
    assert row_tile(N, memory, itemsize) == halved_until_it_fits(N, memory, itemsize)


@pytest.mark.parametrize(
    ("N", "memory", "expected"), [(1, 4, (1, 1)), (5, 16, (4, 2)), (4, 15, (2, 2)), (9, 4, (1, 9))]
)
def test_the_row_tile_at_the_edges(N: int, memory: int, expected: tuple[int, int]) -> None:
    assert row_tile(N, memory) == expected


def test_memory_for_less_than_one_element_is_refused() -> None:
    with pytest.raises(ValueError, match="elements_that_fit must be an integer of at least 1"):
        row_tile(8192, 3)


@pytest.mark.parametrize("bad", [0, -4, True, 2.5])
def test_sizes_that_are_not_whole_are_refused(bad: int) -> None:
    with pytest.raises(ValueError, match=f"N must be an integer of at least 1, got {bad}"):
        passes_bytes(bad, 3)
    with pytest.raises(ValueError, match=f"passes must be an integer of at least 1, got {bad}"):
        passes_bytes(8, bad)
    with pytest.raises(ValueError, match=f"itemsize must be an integer of at least 1, got {bad}"):
        passes_bytes(8, 3, bad)
    with pytest.raises(ValueError, match=f"operations must be an integer of at least 1, got {bad}"):
        fusion_bytes(8, bad)
    with pytest.raises(ValueError, match=f"elements must be an integer of at least 1, got {bad}"):
        fusion_bytes(bad, 5)
    with pytest.raises(ValueError, match=f"memory must be an integer of at least 1, got {bad}"):
        row_tile(8, bad)


def test_prints_each_estimate_twice(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    out = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "bandwidth 2000 GiB/s 2039 GB/s" in lines
    assert "the ridge itself 145.3 153.0" in lines
    assert "200 GFLOP over 600 MB 333.3 compute-bound compute-bound" in lines
    assert "300 GFLOP over 2000 MB 150.0 compute-bound memory-bound" in lines
    assert "0.1 GFLOP over 800 MB 0.1 memory-bound memory-bound" in lines
    assert "c = a + b in fp32 0.083 memory-bound" in lines
    assert "c = a + b in bf16 0.167 memory-bound" in lines
    assert "against the ridge of fp32 additions, 4.8 FLOP/B" in out
    assert "16,384 1.50 2.00 2155.87" in lines
    assert "a guess, not fused 5.0 10.7" in lines
    assert "a guess, fused 120.0 257.7" in lines
    assert "N=4096, d=64, naive 31.5 64.2" in lines
    assert "N=4096, d=64, fused, issued 124.1 253.0" in lines
    assert "N=4096, d=64, fused, compulsory 2048.0 312.0" in lines
    assert "8192 x 8192 1.25 0.25 1.00, 80% 134.2 MB no" in lines
    assert "1024 x 1024 0.02 0.00 0.02, 80% 2.1 MB yes" in lines
    assert "row of 8192, fp32 32.0 in 100 KiB: BLOCK 8192, tiles: 1" in lines
    assert "128 x 128, d=64 144.0 16.0 19.0 83.0" in lines
    assert "128 x 128, d=128 224.0 32.0 -61.0 3.0" in lines
    assert max(map(len, out.splitlines())) <= 72
