"""Copies and products that go on by themselves, under the names that Gluon has for them.

They read shared memory from when they begin until they are waited for: where it changes meanwhile,
they make NaN.
"""

from collections.abc import Callable
from typing import Any

import torch

from tests.kernels.gluon_on_cpu.barriers import Barrier
from tests.kernels.gluon_on_cpu.memory import Descriptor, Tile, Value, value, watched
from tests.kernels.gluon_on_cpu.turns import current, pause


def finish(under_way: list[Callable[[], Any]], left: int) -> None:
    """End the oldest, until so many are left."""
    while len(under_way) > left:
        under_way.pop(0)()


def async_load(desc: Descriptor, at: list[Any], barrier: Barrier, tile: Tile) -> None:
    """Begin a copy: the tile is lost at once, and filled when the copy lands."""
    pause()
    there, ours = desc.inside(at)
    tile.data.fill_(torch.nan)

    def land() -> None:
        tile.data.zero_()
        tile.data[ours] = there
        barrier.change(0, -desc.block_type.nbytes)

    assert list(tile.shape) == desc.block_type.shape
    current().program.loads.append(land)


def async_store(
    desc: Descriptor, at: list[Any], tile: Tile, write: Any = torch.Tensor.copy_
) -> None:
    """Begin to write the tile to global memory."""
    pause()
    (there, ours), read = desc.inside(at), watched(tile.data)
    current().stores.append(lambda: write(there, read()[ours]))


def async_add(desc: Descriptor, at: list[Any], tile: Tile) -> None:
    """Begin to add the tile to global memory."""
    async_store(desc, at, tile, torch.Tensor.add_)


def store_wait(pendings: int) -> None:
    pause()
    finish(current().stores, pendings)


def fence_async_shared() -> None:
    """Let copies and products see what this warp has written."""
    pause()
    finish(current().unfenced, 0)


class Product:
    """A matrix product under way; it has a value once it has been waited for."""

    def __init__(self, a: Tile | Value, b: Tile, acc: "Product | Value | None") -> None:
        self.read, self.acc = (watched(a.data), watched(b.data)), acc
        self.value: Value | None = None

    def end(self) -> None:
        a, b = (read().float() for read in self.read)
        acc = self.acc.value if isinstance(self.acc, Product) else self.acc
        self.value = value(a @ b if acc is None else acc + a @ b)


def warpgroup_mma(
    a: Tile | Value, b: Tile, acc: Any, use_acc: bool = True, is_async: bool = False
) -> Any:
    pause()
    product = Product(a, b, acc if use_acc else None)
    current().products.append(product.end)
    return product if is_async else warpgroup_mma_wait(0, (product,))


def warpgroup_mma_wait(num_outstanding: int, deps: tuple[Any, ...]) -> Any:
    """Wait until at most so many products are under way; return the values of `deps`."""
    pause()
    finish(current().products, num_outstanding)
    values = tuple(x.value if isinstance(x, Product) else x for x in deps)
    assert all(x is not None for x in values), "a product is used that may be under way"
    return values if len(values) > 1 else values[0]
