"""The kernels in Gluon, run on the CPU: Triton has no interpreter for them, `gluon_on_cpu` is one.

Their sources run as they are, launchers included: warps as threads that take turns, barriers with
phases and bytes, copies that come late, products and stores that read shared memory until they are
waited for. A hang, a race, a wrong slot, row or mask fails here without a GPU.

What only a GPU shows, in the tests of the kernels themselves: a race between the threads of one
warpgroup, which walk as one here, and memory order, beyond a fence that is missing; what the
compiler and the assembler make of the source, layouts and registers above all; bfloat16; speed.
"""

import functools
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from kernels import (
    flash_attention_hopper,
    flash_attention_hopper_consumer,
    flash_attention_hopper_gradients,
    flash_attention_hopper_gradients_consumer,
    flash_attention_hopper_gradients_producer,
    flash_attention_hopper_producer,
    flash_attention_hopper_short,
)
from kernels.attention_ladder import (
    gluon_tiles,
    step4_ring,
    step5_warpgroups,
    step6_overlap,
    step7_persistent,
    trial_late_wait,
)
from kernels.attention_reference import eager, inputs, reference, sizes
from tests.kernels.gluon_on_cpu.launch import run_on_cpu

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU runs the kernels itself")

STEPS = [step4_ring, step5_warpgroups, step6_overlap, step7_persistent, trial_late_wait]
MODULES = [
    flash_attention_hopper,
    flash_attention_hopper_producer,
    flash_attention_hopper_consumer,
    flash_attention_hopper_gradients,
    flash_attention_hopper_gradients_producer,
    flash_attention_hopper_gradients_consumer,
    flash_attention_hopper_short,
    gluon_tiles,
    *STEPS,
]
COUNTER = torch.zeros(2, dtype=torch.int32)  # one for all launches, as on a stream
Shape = tuple[int, ...]  # B, H, H_KV, N_Q, N_K, D


@pytest.fixture(params=[0, 1], ids="order{}".format)
def gpu_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let kernels in Gluon run here, as on a GPU of so many SMs."""

    def with_sms(sms: int) -> None:
        device = SimpleNamespace(multi_processor_count=sms)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: device)
        for module in (flash_attention_hopper, flash_attention_hopper_gradients):
            monkeypatch.setattr(module, "sm_count", lambda _: sms)
        flash_attention_hopper_gradients.shares_of.cache_clear()
        monkeypatch.setattr(flash_attention_hopper, "counter_on", lambda _: COUNTER)
        run_on_cpu(monkeypatch, MODULES, request.param)

    return with_sms


def ident(x: Any) -> str:
    return "-".join(map(str, x)) if isinstance(x, tuple) else str(x)


@functools.cache
def case(shape: Shape, causal: bool, apart: float = 0.0) -> tuple[dict[str, Any], Any, Any]:
    """Arguments, and (out, lse) of them by ordinary computation and in float64.

    Queries lie `apart` above and keys below 0, so that all scores are low.
    """
    arguments = inputs(sizes(*shape, causal=causal), torch.float16, "cpu")
    arguments["q"] += apart
    arguments["k"] -= apart
    arguments |= {name: arguments[name].requires_grad_() for name in "qkv"}
    return arguments, eager(**arguments), reference(**arguments)


@pytest.mark.parametrize(
    ("shape", "causal", "sms"),
    [
        ((1, 2, 2, 64, 64, 64), False, 132),  # fewer programs than SMs
        ((2, 2, 1, 200, 333, 64), False, 3),
        ((1, 4, 2, 300, 428, 64), True, 5),  # the first tile of a program not always the longest
        ((1, 2, 2, 640, 640, 40), True, 1),  # all tiles in one program
        ((1, 2, 1, 300, 364, 128), True, 2),
        ((1, 3, 3, 130, 257, 96), False, 2),
    ],
    ids=ident,
)
def test_the_forward_is_as_exact_as_eager(
    shape: Shape, causal: bool, sms: int, gpu_of: Any, assert_as_exact_as_eager: Any
) -> None:
    arguments, ordinary, exact = case(shape, causal)
    q, k, v = (arguments[name].detach() for name in "qkv")
    out, lse = torch.empty_like(q), torch.empty(q.shape[:3])
    gpu_of(sms)
    flash_attention_hopper.forward_hopper(q, k, v, out, lse, causal, q.shape[3] ** -0.5)
    assert not COUNTER.any()
    assert_as_exact_as_eager(out, ordinary[0], exact[0], arguments)
    assert_as_exact_as_eager(lse, ordinary[1], exact[1], arguments)


@pytest.mark.parametrize(
    ("shape", "causal"),
    [
        ((2, 2, 1, 64, 64, 64), False),
        ((2, 2, 1, 200, 333, 40), False),
        ((1, 1, 1, 1, 5, 64), False),
        ((1, 4, 2, 300, 428, 64), True),
        ((2, 6, 2, 640, 640, 40), True),
        ((1, 10, 5, 70, 134, 33), True),  # 7 heads for the L2, then 3
    ],
    ids=ident,
)
def test_the_short_forward_is_as_exact_as_eager(
    shape: Shape, causal: bool, gpu_of: Any, monkeypatch: pytest.MonkeyPatch,
    assert_as_exact_as_eager: Any,
) -> None:  # fmt: skip
    arguments, ordinary, exact = case(shape, causal)
    q, k, v = (arguments[name].detach() for name in "qkv")
    out, lse = torch.empty_like(q), torch.empty(q.shape[:3])
    gpu_of(132)
    monkeypatch.setattr(flash_attention_hopper_short, "heads_in_l2", lambda *_: 7)
    flash_attention_hopper_short.forward_hopper_short(q, k, v, out, lse, causal, q.shape[3] ** -0.5)
    assert_as_exact_as_eager(out, ordinary[0], exact[0], arguments)
    assert_as_exact_as_eager(lse, ordinary[1], exact[1], arguments)


@pytest.mark.parametrize(
    ("shape", "causal", "sms", "apart"),
    [
        ((1, 1, 1, 128, 128, 64), False, 132, 0.0),
        ((1, 2, 1, 300, 384, 64), True, 2, 0.0),  # a diagonal and no tail
        ((1, 3, 3, 1, 300, 40), False, 4, 0.0),
        ((1, 1, 1, 70, 191, 40), False, 1, 4.0),  # a score of 0, beyond the end, would overflow
        ((1, 4, 2, 200, 330, 128), True, 3, 0.0),
        ((2, 2, 1, 333, 140, 128), False, 3, 0.0),
        ((1, 2, 1, 330, 200, 96), True, 2, 0.0),  # queries that see no key
        ((2, 4, 2, 100, 300, 64), True, 1, 0.0),  # one SM: groups whole
        ((1, 8, 2, 640, 640, 40), True, 10, 0.0),  # groups cut in halves of two heads
    ],
    ids=ident,
)
def test_the_gradients_are_as_exact_as_eager(
    shape: Shape, causal: bool, sms: int, apart: float, gpu_of: Any, assert_as_exact_as_eager: Any
) -> None:
    arguments, ordinary, exact = case(shape, causal, apart)
    leaves = [arguments[name] for name in "qkv"]
    dout = torch.randn(leaves[0].shape, generator=torch.Generator().manual_seed(1)).half()
    theirs, right = (
        torch.autograd.grad(out, leaves, dout.to(out.dtype), retain_graph=True)
        for out, _lse in (ordinary, exact)
    )
    q, k, v = (x.detach() for x in leaves)
    out, lse = exact[0].detach().half(), exact[1].detach().float()
    gpu_of(sms)
    found = flash_attention_hopper_gradients.backward_hopper(
        dout, None, q, k, v, out, lse, causal, q.shape[3] ** -0.5
    )
    assert_as_exact_as_eager(found[0], theirs[0], right[0], arguments)
    assert_as_exact_as_eager(found[1], theirs[1], right[1], arguments)
    assert_as_exact_as_eager(found[2], theirs[2], right[2], arguments)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("H", "N", "D", "sms"), [(1, 256, 64, 132), (2, 640, 64, 1), (3, 384, 128, 2)]
)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__.split(".")[-1])
def test_each_step_of_the_ladder_and_the_trial_are_as_exact_as_eager(
    step: ModuleType, H: int, N: int, D: int, sms: int, causal: bool,
    gpu_of: Any, assert_as_exact_as_eager: Any,
) -> None:  # fmt: skip
    arguments, ordinary, exact = case((1, H, H, N, N, D), causal)
    q, k, v = (arguments[name].detach() for name in "qkv")
    gpu_of(sms)
    out, lse = step.forward(q, k, v, causal)
    assert_as_exact_as_eager(out, ordinary[0], exact[0], arguments)
    assert_as_exact_as_eager(lse, ordinary[1], exact[1], arguments)
