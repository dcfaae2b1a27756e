"""The ledger of naive attention against a run of the three kernels that counts each element."""

from typing import Any

import pytest

from snippets.hbm_traffic import naive_bytes
from snippets.naive_attention import intensity, ledger, main, total

SHAPES = [(1, 1, 1, 2), (3, 5, 2, 2), (5, 3, 4, 4), (1, 7, 3, 2), (6, 6, 1, 1)]


class CountingMatrix:
    """Numbers that remember which elements were loaded and stored."""

    def __init__(self) -> None:
        self.loaded: set[tuple[int, int]] = set()
        self.stored: set[tuple[int, int]] = set()

    def load(self, row: int, column: int) -> None:
        self.loaded.add((row, column))

    def store(self, row: int, column: int) -> None:
        self.stored.add((row, column))


def run_three_kernels(
    queries: int, keys: int, d: int, itemsize: int
) -> list[tuple[int, int, int, int]]:
    """Return (read, written, FLOP, other operations) of each kernel, counted one by one.

    Within one kernel an element counts once however often it is used, as the ledger assumes.
    """
    counts = []
    q, k, v, s, p, o = (CountingMatrix() for _ in range(6))
    flops = other = 0
    for i in range(queries):
        for j in range(keys):
            for x in range(d):
                q.load(i, x)
                k.load(j, x)
                flops += 2
            other += 1  # the scale
            s.store(i, j)
    counts.append((len(q.loaded) + len(k.loaded), len(s.stored), flops, other))
    other = 0
    for i in range(queries):
        for j in range(keys):
            s.load(i, j)
            for _ in ("maximum", "subtraction", "exponential", "addition", "division"):
                other += 1
            p.store(i, j)
    counts.append((len(s.loaded), len(p.stored), 0, other))
    flops = 0
    for i in range(queries):
        for x in range(d):
            for j in range(keys):
                p.load(i, j)
                v.load(j, x)
                flops += 2
            o.store(i, x)
    counts.append((len(p.loaded) + len(v.loaded), len(o.stored), flops, 0))
    return [(read * itemsize, wrote * itemsize, f, extra) for read, wrote, f, extra in counts]


@pytest.mark.parametrize("shape", SHAPES)
def test_each_kernel_moves_and_computes_what_a_counting_run_sees(
    shape: tuple[int, int, int, int],
) -> None:
    assert [tuple(step)[1:] for step in ledger(*shape)] == run_three_kernels(*shape)


@pytest.mark.parametrize("N", [1, 7, 1024, 4096])
@pytest.mark.parametrize(("d", "itemsize"), [(64, 2), (128, 2), (3, 4)])
def test_the_ledger_adds_up_to_the_formula_of_the_traffic_lab(
    N: int, d: int, itemsize: int
) -> None:
    together = total(ledger(N, N, d, itemsize))
    assert together.read + together.written == naive_bytes(N, d, itemsize)
    assert together.flops == 4 * N * N * d


def test_s_and_p_make_four_passes_over_n_by_n() -> None:
    first, second, third = ledger(4096, 4096, 64)
    one_pass = 4096 * 4096 * 2
    small = 4096 * 64 * 2
    assert first.written == second.read == second.written == third.read - small == one_pass


@pytest.mark.parametrize(
    ("N", "d", "expected"),
    [
        (1024, 64, "30.1"),
        (4096, 64, "31.5"),
        (16384, 64, "31.9"),
        (1024, 128, "56.9"),
        (4096, 128, "62.1"),
        (16384, 128, "63.5"),
    ],
)
def test_intensity_of_the_whole_tends_to_d_over_element_size(N: int, d: int, expected: str) -> None:
    assert f"{intensity(total(ledger(N, N, d))):.1f}" == expected
    assert intensity(total(ledger(N, N, d))) < d / 2


def test_one_query_does_one_flop_a_byte_and_not_sixty_four() -> None:
    row = ledger(1, 4096, 64)[0]
    assert f"{intensity(row):.2f}" == "0.98"
    assert row.flops / row.written == 64.0


def test_prints_the_ledger_and_a_layer_of_heads(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    printed = capsys.readouterr().out
    assert "together                  68.68       67.63     4.29    31.5     0.10" in printed
    assert "S alone 33.6 MB; all traffic 136.31 MB, 98.5% of it S and P" in printed
    assert "all traffic 8724.2 MB" in printed
    assert "one query, Q K^T: 0.98 FLOP/B, or 64.0 counting" in printed
    assert max(len(line) for line in printed.splitlines()) <= 72


def test_the_exercise_has_the_solution_of_the_page() -> None:
    steps = ledger(4096, 4096, 64)
    moved = total(steps).read + total(steps).written - 2 * steps[1].written
    assert moved == 69_206_016
    assert f"{total(steps).flops / moved:.1f}" == "62.1"


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "4", None])
@pytest.mark.parametrize("name", ["queries", "keys", "d", "itemsize"])
def test_refuses_a_size_that_is_no_positive_integer(name: str, wrong: object) -> None:
    sizes: dict[str, Any] = {"queries": 4, "keys": 4, "d": 2, "itemsize": 2} | {name: wrong}
    with pytest.raises(ValueError, match=f"{name} must be an integer of at least 1, got {wrong!r}"):
        ledger(**sizes)
