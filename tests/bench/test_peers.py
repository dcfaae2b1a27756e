"""What stands beside our kernels, and that a library which is not there is said to be absent."""

import importlib.util
import re
import sys
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

from kernels.bench import cases, peers  # noqa: E402
from kernels.bench.measure import describe  # noqa: E402

ROWS = ("softmax", "rms_norm")
QKV = {name: torch.randn(1, 2, 4, 8) for name in ("q", "k", "v")}


@pytest.fixture
def kernel() -> ModuleType:
    return ModuleType("made_up")


@pytest.fixture
def liger(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package in the place of liger-kernel, with its names and its habit of writing in place."""
    functional = ModuleType("liger_kernel.transformers.functional")

    class Norm(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, r: Any, w: Any, eps: float, in_place: bool) -> Any:
            total = x + r
            ctx.in_place = in_place
            return torch.nn.functional.rms_norm(total, total.shape[-1:], w, eps), total

        @staticmethod
        def backward(ctx: Any, d_out: Any, d_total: Any) -> Any:
            dx = d_out.mul_(2) if ctx.in_place else d_out * 2
            return dx, dx, d_total.sum(0), None, None

    functional.liger_softmax = lambda x: torch.softmax(x, -1)  # type: ignore[attr-defined]
    functional.liger_fused_add_rms_norm = (  # type: ignore[attr-defined]
        lambda x, r, w, eps, in_place=True: Norm.apply(x, r, w, eps, in_place)
    )
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: object())
    monkeypatch.setitem(sys.modules, functional.__name__, functional)
    return functional


@pytest.mark.parametrize("stem", cases.STEMS)
def test_every_kernel_has_its_peers_and_nobody_else(stem: str, kernel: ModuleType) -> None:
    setattr(kernel, stem, torch.softmax)
    told = f"{stem} has no implementation 'theirs'; it has {peers.names(stem)[0]}, "
    assert "theirs" not in peers.names(stem)
    with pytest.raises(ValueError, match=told):
        peers.implementation("theirs", stem, kernel)


def test_a_new_kernel_brings_its_peer_along(kernel: ModuleType) -> None:
    assert peers.names("made_up") == ("ours", "compile", "eager")
    kernel.eager = lambda x: x * 2  # type: ignore[attr-defined]
    x = torch.ones(3)
    (found,) = peers.implementation("eager", "made_up", kernel)(x=x)
    assert torch.equal(found, x * 2)


@pytest.mark.parametrize("name", ["compile", "eager"])
def test_a_new_kernel_without_a_peer_is_told_what_it_needs(kernel: ModuleType, name: str) -> None:
    needs = f"'{name}' needs a function eager in kernels/made_up.py: ordinary PyTorch"
    with pytest.raises(ValueError, match=re.escape(needs)):
        peers.implementation(name, "made_up", kernel)


@pytest.mark.parametrize("name", cases.LADDER_OURS)
def test_a_step_of_the_ladder_is_called_by_its_name(name: str, kernel: ModuleType) -> None:
    kernel.IMPLEMENTATIONS = {name: lambda **_: (name, "lse")}  # type: ignore[attr-defined]
    assert peers.implementation(name, "attention_ladder", kernel)(**QKV) == (name, "lse")


def test_beside_the_ladder_the_library_writes_its_lse_too(
    kernel: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[bool] = []
    monkeypatch.setattr(
        peers, "implementation", lambda *_: lambda q, **_: wanted.append(q.requires_grad)
    )
    peers.prepared("sdpa-cudnn", "attention_ladder", kernel, QKV, "forward")()
    assert wanted == [True]


@pytest.mark.parametrize("stem", ROWS)
@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_liger_is_asked_in_every_case_of_rows(stem: str, dtype: str, direction: str) -> None:
    assert "liger" in peers.names(stem, direction, dtype)


@pytest.mark.parametrize("stem", ROWS)
def test_a_row_says_that_liger_is_not_installed(
    stem: str, kernel: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(peers.AbsentError) as absent:
        peers.implementation("liger", stem, kernel)
    assert describe(absent.value) == "liger-kernel is not installed"


@pytest.mark.usefixtures("liger")
def test_liger_is_called_with_the_launcher_s_own_arguments(kernel: ModuleType) -> None:
    x, residual, weight = torch.randn(3, 8), torch.randn(3, 8), torch.randn(8)
    (weights,) = peers.implementation("liger", "softmax", kernel)(x=x)
    out, total = peers.implementation("liger", "rms_norm", kernel)(
        x=x, residual=residual, weight=weight
    )
    assert torch.equal(weights, torch.softmax(x, -1))
    assert torch.equal(total, x + residual)
    assert torch.allclose(out, torch.nn.functional.rms_norm(x + residual, (8,), weight, 1e-6))


@pytest.mark.usefixtures("liger")
def test_liger_leaves_the_gradients_alone_that_all_peers_share(kernel: ModuleType) -> None:
    inputs = {"x": torch.randn(3, 8), "residual": torch.randn(3, 8), "weight": torch.randn(8)}
    gradients = (torch.ones(3, 8), torch.ones(3, 8))
    run = peers.prepared("liger", "rms_norm", kernel, inputs, "backward", gradients)
    first, again = run(), run()
    assert torch.equal(gradients[0], torch.ones(3, 8))
    assert torch.equal(first[0], again[0])


@pytest.mark.parametrize(("name", "asked"), [("ours", None), ("ours-deterministic", True)])
def test_the_backward_of_choice_is_timed_beside_the_deterministic_one(
    name: str, asked: bool | None, kernel: ModuleType
) -> None:
    assert name in peers.names("flash_attention", "backward", "bf16")
    kernel.flash_attention = lambda deterministic=None, **_: (deterministic,)  # type: ignore[attr-defined]
    assert peers.implementation(name, "flash_attention", kernel)(**QKV) == (asked,)


@pytest.mark.parametrize("name", peers.BACKENDS)
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"window": 2}, "has no window"),
        ({"causal": True, "k": torch.randn(1, 2, 5, 8)}, "aligns the mask at the first key"),
    ],
)
def test_a_library_that_would_compute_something_else_is_refused(
    name: str, options: dict[str, Any], told: str, kernel: ModuleType
) -> None:
    call = peers.implementation(name, "flash_attention", kernel)
    with pytest.raises(ValueError, match=told):
        call(**(QKV | options))


@pytest.mark.parametrize("causal", [False, True])
def test_sdpa_computes_attention(causal: bool, kernel: ModuleType) -> None:
    (found,) = peers.implementation("sdpa-math", "flash_attention", kernel)(
        **QKV, causal=causal, scale=0.5
    )
    seen = torch.ones(4, 4, dtype=torch.bool).tril() if causal else torch.ones(4, 4) > 0
    scores = (QKV["q"] @ QKV["k"].mT * 0.5).masked_fill(~seen, float("-inf"))
    assert torch.allclose(found, torch.softmax(scores, -1) @ QKV["v"], atol=1e-6)


def test_grouped_heads_are_handed_on(kernel: ModuleType) -> None:
    call = peers.implementation("sdpa-math", "flash_decode", kernel)
    few = {name: QKV[name][:, :1] for name in ("k", "v")}
    (grouped,) = call(**(QKV | few))
    (repeated,) = call(**(QKV | {name: x.expand(1, 2, 4, 8) for name, x in few.items()}))
    assert torch.allclose(grouped, repeated, atol=1e-6)
