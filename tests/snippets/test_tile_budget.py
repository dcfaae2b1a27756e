"""Bytes of a tile counted element by element, and how many programs an SM holds."""

import pytest

from snippets.tile_budget import main, programs_per_sm, registers_per_thread, split, tile_bytes


def counted(br: int, bc: int, d: int, e: int) -> int:
    """Bytes of Q, K, V, S and O by walking over their elements."""
    total = 0
    for _ in range(br):
        total += sum(e + 4 for _ in range(d))  # a row of Q and a row of O
        total += sum(4 for _ in range(bc))  # a row of S
    for _ in range(bc):
        total += sum(2 * e for _ in range(d))  # a row of K and a row of V
    return total


def test_a_tile_of_128_by_128_needs_147456_bytes_at_d_64_and_229376_at_128() -> None:
    assert sum(tile_bytes(128, 128, 64).values()) == 147_456
    assert sum(tile_bytes(128, 128, 128).values()) == 229_376 == 224 * 1024
    assert tile_bytes(128, 128, 128)["K"] == tile_bytes(128, 128, 128)["V"] == 32_768


@pytest.mark.parametrize("shape", [(128, 64, 96, 2), (3, 5, 7, 4), (64, 192, 128, 1), (1, 1, 1, 2)])
def test_bytes_of_a_tile_are_those_of_its_elements(shape: tuple[int, int, int, int]) -> None:
    assert sum(tile_bytes(*shape).values()) == counted(*shape)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_each_stage_adds_one_tile_of_k_and_one_of_v(stages: int) -> None:
    shared, registers = split(128, 64, 96, stages)
    assert shared == 128 * 96 * 2 + stages * 2 * (64 * 96 * 2)
    assert registers == 128 * 64 * 4 + 128 * 96 * 4


def test_s_and_o_of_the_large_tile_take_128_of_256_kib_of_registers() -> None:
    assert split(128, 128, 128, 2)[1] == 128 * 1024


def test_four_warps_would_need_one_register_more_than_a_thread_can_name() -> None:
    shared, registers = split(128, 128, 128, 2)
    assert registers_per_thread(registers, 4) == 256
    assert registers_per_thread(registers, 8) == 128
    assert programs_per_sm("H200", shared, registers, 4) == 0
    assert programs_per_sm("H200", shared, registers, 8) == 1


@pytest.mark.parametrize(
    ("shared", "programs"), [(232_448, 1), (232_449, 0), (115_712, 2), (115_713, 1)]
)
def test_shared_memory_limits_programs_with_a_reserve_of_one_kib_each(
    shared: int, programs: int
) -> None:
    assert programs_per_sm("H200", shared, 4, 1) == programs


@pytest.mark.parametrize(("kib", "programs"), [(128, 2), (127, 2), (129, 1), (64, 4), (256, 1)])
def test_registers_limit_programs(kib: int, programs: int) -> None:
    assert programs_per_sm("H200", 1024, kib * 1024, 16) == programs


@pytest.mark.parametrize(("warps", "programs"), [(1, 64), (4, 16), (16, 4), (64, 1)])
def test_warp_slots_limit_programs(warps: int, programs: int) -> None:
    assert programs_per_sm("H200", 1024, 4, warps) == programs


def test_the_same_tile_may_fit_one_device_and_not_another() -> None:
    shared, registers = split(128, 128, 128, 3)
    assert programs_per_sm("H100", shared, registers, 8) == 1
    assert programs_per_sm("A100-80", shared, registers, 8) == 0


@pytest.mark.parametrize("bad", [0, -1, True, 1.5])
def test_sizes_that_are_no_positive_integers_are_refused(bad: int) -> None:
    with pytest.raises(ValueError, match="br must be an integer of at least 1, got"):
        tile_bytes(bad, 128, 64)
    with pytest.raises(ValueError, match="d must be an integer of at least 1, got"):
        tile_bytes(128, 128, bad)
    with pytest.raises(ValueError, match="stages must be an integer of at least 1, got"):
        split(128, 128, 64, bad)
    with pytest.raises(ValueError, match="warps must be an integer of at least 1, got"):
        registers_per_thread(1024, bad)
    with pytest.raises(ValueError, match="shared must be an integer of at least 1, got"):
        programs_per_sm("H200", bad, 1024, 4)


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown device 'H900'"):
        programs_per_sm("H900", 1024, 1024, 4)


def test_page_shows_that_the_large_tile_leaves_no_room(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    out = capsys.readouterr().out
    assert "147,456" in out
    assert "229,376" in out
    assert "232,448 B. At d = 128 that leaves\n3,072 B; the next tile of K takes 32,768 B." in out
