"""The model that runs Gluon on the CPU: what it takes for a fault, in kernels of a few lines."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.kernels.gluon_on_cpu import barriers as mbarrier
from tests.kernels.gluon_on_cpu import in_flight as tma
from tests.kernels.gluon_on_cpu import language as gl
from tests.kernels.gluon_on_cpu import turns
from tests.kernels.gluon_on_cpu.memory import Descriptor, Pointer, Tile, Value


def run(kernel: Callable[..., Any], *arguments: Any, order: int = 0) -> None:
    turns.Program(0, 1, random.Random(order)).run(kernel, *arguments)


def barrier(count: int = 1) -> Any:
    made = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout()).index(0)
    mbarrier.init(made, count)
    return made


def filled(x: float) -> Value:
    return gl.full([4, 4], x, gl.float32, None)


def tile_of(x: float) -> Tile:
    made: Tile = gl.allocate_shared_memory(gl.float32, [4, 4], None)
    made.store(filled(x))
    tma.fence_async_shared()
    return made


def descriptor(x: torch.Tensor) -> Descriptor:
    return Descriptor.from_tensor(x, [4, 4], None)


def test_a_hang_says_who_waits_for_which_phase_and_where() -> None:
    def other(full: Any) -> None:
        mbarrier.wait(full, 0)

    def kernel() -> None:
        full, empty = barrier(), barrier()
        mbarrier.arrive(full, count=1)
        gl.warp_specialize([(other, (full,)), (other, (empty,))], [4], [24])

    with pytest.raises(AssertionError, match="a hang") as caught:
        run(kernel)
    waiting = str(caught.value).splitlines()[1:]
    assert waiting[0].startswith("kernel 0 waits for those it began: gl.warp_specialize(")
    assert waiting[1:] == ["other 2 waits for phase 0 of slot 0: mbarrier.wait(full, 0)"]


def test_a_kernel_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel() -> None:
        full = barrier()
        while True:
            mbarrier.arrive(full, count=1)

    monkeypatch.setattr(turns, "TURNS", 100)
    with pytest.raises(AssertionError, match="no end after 100 turns"):
        run(kernel)


def test_more_arrivals_than_a_phase_has_are_refused() -> None:
    with pytest.raises(AssertionError, match="more than the 2 arrivals that a phase has"):
        run(lambda: mbarrier.arrive(barrier(2), count=3))


def test_a_phase_ends_with_its_arrivals_and_its_bytes_and_a_copy_fills_the_tile() -> None:
    def kernel(desc: Descriptor) -> None:
        full, tile = barrier(), tile_of(1.0)
        mbarrier.expect(full, desc.block_type.nbytes)
        assert full.phase == 0
        tma.async_load(desc, [0, 0], full, tile)
        seen.append(tile.data.clone())
        mbarrier.wait(full, 0)
        seen.append(tile.load(None))

    seen: list[torch.Tensor] = []
    run(kernel, descriptor(torch.ones(4, 4)))
    assert seen[0].isnan().all()
    assert (seen[1] == 1).all()


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize(("asked", "fault"), [(1, "copy is under way|bytes asked"), (3, "a hang")])
def test_bytes_that_are_asked_for_must_be_those_that_come(
    asked: int, fault: str, order: int
) -> None:
    def kernel(desc: Descriptor) -> None:
        full = barrier()
        mbarrier.expect(full, asked * desc.block_type.nbytes)
        tma.async_load(desc, [0, 0], full, tile_of(0.0))
        tma.async_load(desc, [0, 0], full, tile_of(0.0))
        mbarrier.wait(full, 0)

    with pytest.raises(AssertionError, match=fault):
        run(kernel, descriptor(torch.ones(4, 4)), order=order)


def test_a_product_is_nan_where_its_tile_was_written_before_it_was_waited_for() -> None:
    def kernel() -> None:
        a, b = tile_of(1.0), tile_of(2.0)
        first = tma.warpgroup_mma(a, b, filled(3.0), is_async=True)
        second = tma.warpgroup_mma(a, b, first, is_async=True)
        seen.append(tma.warpgroup_mma_wait(1, (first,)))
        a.store(filled(1.5))
        seen.append(tma.warpgroup_mma_wait(0, (second,)))

    seen: list[torch.Tensor] = []
    run(kernel)
    assert (seen[0] == 11).all()
    assert seen[1].isnan().all()


def test_a_product_must_be_waited_for_before_it_is_used_and_before_the_end() -> None:
    def early() -> None:
        product = tma.warpgroup_mma(tile_of(1.0), tile_of(1.0), None, False, is_async=True)
        tma.warpgroup_mma_wait(1, (product,))

    def never() -> None:
        tma.warpgroup_mma(tile_of(1.0), tile_of(1.0), None, False, is_async=True)

    with pytest.raises(AssertionError, match="a product is used that may be under way"):
        run(early)
    with pytest.raises(AssertionError, match="never 0 ends while a product is under way"):
        run(never)


def test_what_no_fence_has_sent_on_is_stored_as_nan() -> None:
    def kernel(desc: Descriptor) -> None:
        tile = tile_of(0.0)
        tile.store(filled(1.0))
        tma.async_store(desc, [0, 0], tile)
        tma.store_wait(0)

    out = torch.zeros(4, 4)
    run(kernel, descriptor(out))
    assert out.isnan().all()


def test_what_is_written_before_a_store_has_been_waited_for_is_stored_as_nan() -> None:
    def kernel(desc: Descriptor) -> None:
        tile = tile_of(1.0)
        tma.async_store(desc, [0, 0], tile)
        tile.store(filled(2.0))
        tma.fence_async_shared()
        tma.store_wait(0)

    out = torch.zeros(4, 4)
    run(kernel, descriptor(out))
    assert out.isnan().all()


def test_a_store_must_be_waited_for_before_the_end() -> None:
    def kernel(desc: Descriptor) -> None:
        tma.async_store(desc, [0, 0], tile_of(1.0))
        tma.store_wait(1)

    with pytest.raises(AssertionError, match="kernel 0 ends while a store reads shared memory"):
        run(kernel, descriptor(torch.zeros(4, 4)))


@pytest.mark.parametrize("at", [(0, 0), (-1, 2), (3, -3), (9, 0)])
def test_copies_read_zero_beyond_the_edges_and_write_nothing_there(at: tuple[int, int]) -> None:
    def kernel(source: Descriptor, target: Descriptor) -> None:
        full, tile = barrier(), tile_of(0.0)
        mbarrier.expect(full, source.block_type.nbytes)
        tma.async_load(source, list(at), full, tile)
        mbarrier.wait(full, 0)
        seen.append(tile.load(None))
        tma.async_store(target, list(at), tile)
        tma.async_add(target, list(at), tile)
        tma.store_wait(0)

    seen: list[torch.Tensor] = []
    source, around = torch.rand(5, 6), torch.zeros(25, 26)
    run(kernel, descriptor(source), descriptor(around[10:15, 10:16]))
    row, column = (10 + x for x in at)
    bordered = torch.nn.functional.pad(source, (10, 10, 10, 10))
    block = bordered[row : row + 4, column : column + 4]
    assert torch.equal(seen[0], block)
    around[row : row + 4, column : column + 4] -= 2 * block
    assert not around.any()


def test_addresses_outside_a_tensor_are_refused() -> None:
    with pytest.raises(AssertionError, match="an address outside the tensor"):
        run(lambda table: gl.load(table + 3), Pointer(torch.zeros(3)))
    with pytest.raises(AssertionError, match="an address outside the tensor"):
        run(
            lambda out: gl.store(out + gl.arange(0, 4, None), filled(1.0)[0]),
            Pointer(torch.zeros(3)),
        )


def test_an_order_repeats_and_another_differs() -> None:
    def one(name: str) -> None:
        for _ in range(50):
            turns.pause()
            seen.append(name)

    def walk(order: int) -> str:
        seen.clear()
        run(lambda: gl.warp_specialize([(one, ("a",)), (one, ("b",))], [4], [24]), order=order)
        return "".join(seen)

    seen: list[str] = []
    walks = [walk(order) for order in range(20)]
    assert walks == [walk(order) for order in range(20)]
    assert {w[0] for w in walks} == {"a", "b"}
    assert any("a" * 50 in w for w in walks)
    assert any(w.count("ab") > 1 for w in walks)
