"""Launching again: what is asked once, and that the rest comes from each call."""

import gc
import inspect
import itertools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernels import flash_attention_hopper as hopper
from kernels import flash_attention_hopper_gradients as gradients
from kernels import flash_attention_hopper_short as short
from kernels import flash_decode as decode
from kernels import quick_launch
from kernels.attention_ladder.arguments import check as ladder_check
from kernels.attention_launch import check_attention
from kernels.device import generation, on_its_device, shared_memory, sm_count
from kernels.flash_attention import flash_attention
from kernels.flash_attention_hopper import described, descriptor, tile_layout
from kernels.flash_attention_hopper_gradients import gradients_fit, shares_of
from kernels.flash_decode import flash_decode
from kernels.matmul import matmul
from kernels.quick_launch import launch
from kernels.rms_norm import rms_norm
from kernels.softmax import softmax

CPU = torch.device("cpu")


class Kernel:
    """A kernel that writes down how it is launched."""

    def __init__(self, compiles: bool) -> None:
        self.compiles, self.calls = compiles, list[Any]()

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def run(*arguments: Any, **options: Any) -> Any:
            self.calls.append((grid, arguments, options))
            return self if self.compiles else None

        return run


@pytest.fixture(autouse=True)
def _nothing_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_launch, "_launched", {})


def test_options_are_for_the_first_launch_and_arguments_for_each() -> None:
    kernel = Kernel(compiles=True)
    launch(kernel, 3, "key", 1, 2, num_warps=4)
    launch(kernel, 5, "key", 6, 7, num_warps=4)
    assert kernel.calls == [((3,), (1, 2), {"num_warps": 4}), ((5, 1, 1), (6, 7), {})]


def test_another_key_and_another_kernel_are_asked_for_again() -> None:
    first, second = Kernel(compiles=True), Kernel(compiles=True)
    for kernel, key in ((first, "a"), (first, "b"), (second, "a")):
        launch(kernel, 1, key, num_warps=4)
    assert [options for *_, options in first.calls + second.calls] == [{"num_warps": 4}] * 3


def test_what_compiles_nothing_is_launched_in_the_ordinary_way_each_time() -> None:
    kernel = Kernel(compiles=False)
    for _ in range(2):
        launch(kernel, 1, "key", 1, num_warps=4)
    assert kernel.calls == [((1,), (1,), {"num_warps": 4})] * 2


def test_what_is_still_being_compiled_is_not_kept() -> None:
    class Future(Kernel):
        def __getitem__(self, grid: tuple[int, ...]) -> Any:
            launched = super().__getitem__(grid)
            return lambda *arguments, **options: [launched(*arguments, **options), object()][1]

    kernel = Future(compiles=True)
    for _ in range(2):
        launch(kernel, 1, "key", 1, num_warps=4)
    assert kernel.calls == [((1,), (1,), {"num_warps": 4})] * 2


def test_a_failed_launch_leaves_nothing_behind() -> None:
    class Broken(Kernel):
        def __getitem__(self, grid: tuple[int, ...]) -> Any:
            raise RuntimeError("no")

    kernel = Broken(compiles=True)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no"):
            launch(kernel, 1, "key")
    assert quick_launch._launched == {}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_descriptor_is_what_triton_makes_the_second_time_too(dtype: torch.dtype) -> None:
    for _ in range(2):
        x = torch.empty(2, 30, 3, 64, dtype=dtype).transpose(1, 2)
        layout = tile_layout(64, 64, dtype)
        expected = TensorDescriptor(x, list(x.shape), list(x.stride()), [1, 1, 64, 64], layout)
        found = descriptor(x, 64, 64)
        assert type(found) is TensorDescriptor
        assert found.base is x
        rest = [vars(each) | {"base": None} for each in (found, expected)]
        assert rest[0] == rest[1]


def test_sizes_strides_and_blocks_tell_descriptors_apart() -> None:
    x = torch.empty(1, 2, 64, 128, dtype=torch.float16)
    halves, rows, narrow = x[..., :64], x[..., :32, :64], x[..., :64].contiguous()
    found = [descriptor(each, 64, 64) for each in (halves, rows, narrow)]
    assert [each.shape[2] for each in found] == [64, 32, 64]
    assert [each.strides[2] for each in found] == [128, 128, 64]
    assert list(descriptor(halves, 32, 64).block_shape) == [1, 1, 32, 64]


def test_a_descriptor_keeps_no_tensor_alive() -> None:
    x = torch.empty(1, 1, 192, 64, dtype=torch.float16)
    gone = weakref.ref(x)
    descriptor(x, 64, 64)
    del x
    gc.collect()
    assert gone() is None


def test_what_triton_refuses_is_refused() -> None:
    x = torch.empty(1, 1, 64, 64, dtype=torch.float16)
    with pytest.raises(AssertionError):
        described(x, (1, 64, 64), lambda: tile_layout(64, 64, x.dtype))


def decides(kernel: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return what Triton compiles by: constants, types, blocks, and what it asks of integers."""
    interpreted = getattr(kernel, "kwargs", {}).get("do_not_specialize")
    left_alone = getattr(kernel, "do_not_specialize", interpreted) or ()
    names = inspect.signature(kernel.fn).parameters

    def seen(name: str, x: Any) -> Any:
        if isinstance(x, TensorDescriptor):
            return x.base.dtype, tuple(x.block_shape), repr(x.layout)
        if isinstance(x, torch.Tensor):
            return x.dtype, x.data_ptr() % 16 == 0
        if isinstance(x, tuple):
            return tuple(seen(name, each) for each in x)
        constant = "constexpr" in str(names[name].annotation) or isinstance(x, (bool, type(None)))
        if constant:
            return x
        whole = isinstance(x, int) and name not in left_alone
        return (x == 1, x % 16 == 0) if whole else type(x)

    pairs = zip(names, arguments, strict=True)
    return tuple(seen(name, x) for name, x in pairs), tuple(sorted(options.items()))


SIZES = [  # B, H, H_KV, N_Q, N_K, D
    (1, 2, 2, 64, 64, 64), (1, 2, 1, 64, 64, 64), (2, 3, 3, 100, 164, 64), (1, 1, 1, 64, 128, 40),
    (1, 4, 2, 128, 192, 128), (1, 16, 16, 70, 70, 128), (3, 2, 2, 96, 160, 96),
]  # fmt: skip


def test_the_key_decides_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[tuple[Any, Any], set[Any]] = {}

    def record(kernel: Any, _programs: int, key: Any, *arguments: Any, **options: Any) -> None:
        found.setdefault((kernel, key), set()).add(decides(kernel, arguments, options))

    for module in (hopper, short, gradients):
        monkeypatch.setattr(module, "launch", record)
    monkeypatch.setattr(hopper, "counter_on", lambda _: torch.zeros(2, dtype=torch.int32))
    for (B, H, H_KV, N_Q, N_K, D), dtype, causal, spread in itertools.product(
        SIZES, (torch.float16, torch.bfloat16), (False, True), (False, True)
    ):
        q, k, v, dout = (
            torch.zeros(B, heads, N, D * (1 + spread), dtype=dtype)[..., :D]
            for heads, N in ((H, N_Q), (H_KV, N_K), (H_KV, N_K), (H, N_Q))
        )
        out, lse = torch.zeros_like(q), torch.zeros(B, H, N_Q)
        odd = torch.zeros(out.numel() + 1, dtype=dtype)[1:].view_as(out)
        odd_lse = torch.zeros(lse.numel() + 1)[1:].view_as(lse)
        hopper.forward_hopper(q, k, v, out, lse, causal, 0.1)
        if D <= 64:
            short.forward_hopper_short(q, k, v, out, lse, causal, 0.1)
        for dlse in (None, lse, torch.zeros(B * H * N_Q + 1)[1:].view(B, H, N_Q)):
            for saved in ((out, lse), (odd, lse), (out, odd_lse)):
                gradients.backward_hopper(dout, dlse, q, k, v, *saved, causal, 0.1)
    assert len({kernel for kernel, _ in found}) == 5
    assert all(len(forms) == 1 for forms in found.values())


def test_the_key_of_decoding_decides_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[tuple[Any, Any], set[Any]] = {}

    def record(kernel: Any, _programs: int, key: Any, *arguments: Any, **options: Any) -> None:
        found.setdefault((kernel, key), set()).add(decides(kernel, arguments, options))

    monkeypatch.setattr(decode, "launch", record)
    sizes = [
        (1, 2, 2, 1, 128, 64), (1, 2, 1, 1, 129, 64), (3, 32, 1, 1, 160, 64), (1, 4, 2, 5, 256, 40),
        (2, 4, 2, 1, 1024, 128), (1, 1, 1, 1, 16, 20),
    ]  # fmt: skip
    for (B, H, H_KV, N_Q, N_K, D), dtype, causal, spread, moved, splits in itertools.product(
        sizes, (torch.float16, torch.bfloat16, torch.float32), (False, True), (False, True),
        ((), (0,), (1,), (2,)), (1, 3),
    ):  # fmt: skip
        operands = [
            torch.zeros(B * heads * N * D * (1 + spread) + 1, dtype=dtype)[place in moved :]
            [: B * heads * N * D * (1 + spread)].view(B, heads, N, -1)[..., :D]
            for place, (heads, N) in enumerate(((H, N_Q), (H_KV, N_K), (H_KV, N_K)))
        ]  # fmt: skip
        flash_decode(*operands, causal, splits=splits)
    assert len({kernel for kernel, _ in found}) == 2
    assert all(len(forms) == 1 for forms in found.values())


@pytest.mark.parametrize("scale", [1, 2, True, 0.5, None])
def test_a_scale_is_a_float_since_triton_compiles_for_an_integer(scale: float | None) -> None:
    x = torch.zeros(1, 1, 1, 16)
    found = check_attention(x, x, x, scale)
    assert type(found) is float
    assert found == (0.25 if scale is None else scale)


def test_a_table_that_a_graph_may_read_is_kept_for_good() -> None:
    sizes = [(1, 1, 1, 64 * n, 64 * n, 64, 512, True) for n in range(1, 101)]
    tables = [shares_of(CPU, *each)[3] for each in sizes]
    assert all(shares_of(CPU, *each)[3] is x for each, x in zip(sizes, tables, strict=True))


def test_head_dims_whose_gradients_tma_cannot_take_have_other_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gradients, "on_hopper", lambda _: True)
    for D, fits in ((32, False), (36, False), (40, True), (100, False), (128, True)):
        q = torch.zeros(1, 2, 64, 128, dtype=torch.float16)[..., :D]
        assert gradients_fit(q, q, q, q, 0) is fits


class Elsewhere(torch.Tensor):
    """A tensor that says it is on the second GPU."""

    is_cuda = True
    device = torch.device("cuda", 1)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    return torch.zeros(1, 1, 256, 64, dtype=torch.float16).as_subclass(Elsewhere)


def test_a_launcher_runs_on_the_device_of_its_first_argument(
    elsewhere: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = [0]

    @contextmanager
    def device(wanted: torch.device) -> Iterator[None]:
        current.append(wanted.index)
        yield
        current.pop()

    monkeypatch.setattr(torch.cuda, "device", device)
    seen = on_its_device(lambda x, y=0: (x.dim(), y, current[-1]))
    assert seen(elsewhere) == (4, 0, 1)
    assert seen(y=3, x=elsewhere) == (4, 3, 1)
    assert seen(torch.zeros(1), 5) == (1, 5, 0)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert seen(elsewhere) == (4, 0, 0)
    assert current == [0]


@pytest.mark.parametrize("launcher", [softmax, rms_norm, matmul, flash_attention, flash_decode])
def test_every_launcher_does(launcher: Any) -> None:
    code = on_its_device(lambda x: x).__code__  # type: ignore[attr-defined]
    assert launcher.__code__ is code
    with pytest.raises(TypeError, match="missing"):
        launcher()


def test_steps_of_the_ladder_refuse_another_device(elsewhere: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="q is on cuda:1; allowed: the current device"):
        ladder_check(elsewhere, elsewhere, elsewhere, None)


def test_without_cuda_there_is_no_generation_one_multiprocessor_and_no_limit() -> None:
    assert (generation(CPU), sm_count(CPU)) == (0, 1)
    assert shared_memory(CPU) > 2**30
