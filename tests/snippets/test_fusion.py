"""The ledger of fusion."""

from typing import Any

import pytest

from snippets import fusion
from snippets.fusion import RMSNORM, Kernel, chain, fuse, traffic


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    fusion.main()
    return capsys.readouterr().out.splitlines()


def even(kernels: list[Kernel], size: int) -> dict[str, int]:
    """The same size for every tensor."""
    return {name: size for kernel in kernels for name in (*kernel.reads, *kernel.writes)}


def run_elementwise(operations: int, elements: int, itemsize: int) -> int:
    """Bytes that passed between a list standing for HBM and a chain of real loops."""
    memory, moved = [1.0] * elements, 0
    for _ in range(operations):
        for i in range(elements):
            number = memory[i]
            moved += itemsize
            memory[i] = number + 1.0
            moved += itemsize
    return moved


@pytest.mark.parametrize(("operations", "elements", "e"), [(1, 1, 2), (5, 7, 2), (3, 100, 4)])
def test_a_chain_moves_what_its_loops_move(operations: int, elements: int, e: int) -> None:
    kernels = chain(operations)
    moved = traffic(kernels, even(kernels, elements * e))
    assert moved == run_elementwise(operations, elements, e)


@pytest.mark.parametrize("operations", [1, 2, 5, 17])
def test_a_fused_chain_keeps_one_read_and_one_write(operations: int) -> None:
    fused = fuse(chain(operations), [f"t{operations}"])
    assert fused == Kernel(("t0",), (f"t{operations}",))


def test_five_operations_over_8192_squared_save_one_gib() -> None:
    kernels = chain(5)
    sizes = even(kernels, 8192 * 8192 * 2)
    assert traffic(kernels, sizes) == 1.25 * 2**30
    assert traffic([fuse(kernels, ["t5"])], sizes) == 0.25 * 2**30


def test_a_fused_rmsnorm_reads_its_inputs_and_writes_the_sum_and_the_rows() -> None:
    fused = fuse(RMSNORM, ["h", "y"])
    assert fused == Kernel(("x", "residual", "weight"), ("h", "y"))


def test_the_unfused_rmsnorm_moves_ten_matrices() -> None:
    sizes = even(RMSNORM, 1) | {"mean": 1000, "scale": 1000, "weight": 1000}
    assert traffic(RMSNORM, sizes) == 10 + 2 * 1000 + 2 * 1000 + 1000


def test_an_input_that_two_kernels_read_is_read_once_when_fused() -> None:
    kernels = [Kernel(("a", "b"), ("c",)), Kernel(("a", "c"), ("d",))]
    assert fuse(kernels, ["d"]) == Kernel(("a", "b"), ("d",))


def test_prints_launches_and_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    table = [line.split()[-4:-1] for line in lines(capsys)[1:]]
    assert table == [
        ["unfused", "5", "1342.18"],
        ["fused", "1", "268.44"],
        ["unfused", "6", "1342.26"],
        ["fused", "1", "536.89"],
    ]


def test_prints_microseconds_at_the_full_bandwidth(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in lines(capsys)[1:]]
    assert [row[-1] for row in rows] == [f"{float(row[-2]) / 4.8:.1f}" for row in rows]


def test_prints_lines_of_at_most_72_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert max(len(line) for line in lines(capsys)) <= 72


def test_refuses_a_tensor_without_a_size() -> None:
    with pytest.raises(ValueError, match=r"no size for \['t1'\]; sizes has \['t0'\]"):
        traffic(chain(1), {"t0": 2})


@pytest.mark.parametrize("bad", [0, -2, True, 1.5])
def test_refuses_sizes_and_counts_that_are_not_positive_integers(bad: Any) -> None:
    with pytest.raises(ValueError, match="t1 must be an integer of at least 1, got"):
        traffic(chain(1), {"t0": 2, "t1": bad})
    with pytest.raises(ValueError, match="operations must be an integer of at least 1, got"):
        chain(bad)


def test_refuses_to_keep_what_nothing_writes() -> None:
    with pytest.raises(ValueError, match=r"some of \['t1'\], each once, got \['z'\]"):
        fuse(chain(1), ["z"])


@pytest.mark.parametrize("wanted", [[], ["t1", "t1"]])
def test_refuses_to_keep_nothing_or_the_same_twice(wanted: list[str]) -> None:
    with pytest.raises(ValueError, match="wanted must be some of"):
        fuse(chain(1), wanted)


@pytest.mark.parametrize(
    "kernels", [[Kernel(("x",), ("x",))], [Kernel(("b",), ("c",)), Kernel(("a",), ("b",))]]
)
def test_refuses_a_kernel_that_reads_what_is_written_later(kernels: list[Kernel]) -> None:
    with pytest.raises(ValueError, match="before it is written"):
        fuse(kernels, [kernels[-1].writes[0]])


def test_refuses_a_tensor_that_is_written_twice() -> None:
    with pytest.raises(ValueError, match="each tensor may be written once, got"):
        fuse([*chain(1), *chain(1)], ["t1"])
