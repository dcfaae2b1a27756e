"""The Hopper kernel: what it takes, its schedule, that it compiles here, and no race on a GPU."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernels import attention_path, attention_reference
from kernels import flash_attention as launcher
from kernels import flash_attention_backward as backward
from kernels import flash_attention_hopper_gradients as hopper_gradients
from kernels.attention_path import (
    HOPPER,
    HOPPER_GRADIENTS,
    HOPPER_SHORT,
    PORTABLE,
    PORTABLE_GRADIENTS,
    Path,
)
from kernels.attention_schedule import schedule
from kernels.flash_attention import chosen, inputs, reference
from kernels.flash_attention_hopper import CONFIGS, counter_on, forward_hopper, shape_refusal
from kernels.flash_attention_hopper_short import SHORT, forward_hopper_short
from tests.kernels.compiling import uninterpreted

ON_HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9
needs_hopper = pytest.mark.skipif(not ON_HOPPER, reason="needs a CUDA GPU of the Hopper generation")

# Interpreted functions cannot be compiled, so this runs where nothing is interpreted.
COMPILE = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from tests.kernels.machine_code import products_of
from kernels.flash_attention_hopper import CONFIGS, flash_attention_hopper_kernel as kernel
from kernels import flash_attention_hopper_short as short

D, causal, tail = int(sys.argv[1]), sys.argv[2] == "True", sys.argv[3] == "True"
BLOCK_M, BLOCK_N, consumers, stages, registers = CONFIGS[D]
if sys.argv[4] == "short":
    kernel, BLOCK_N, stages = short.flash_attention_hopper_short_kernel, short.BLOCK_N, short.STAGES

def tiles(rows):
    layout = gl.NVMMASharedLayout.get_default_for([1, 1, rows, D], gl.bfloat16)
    return f"tensordesc<bf16[1, 1, {rows}, {D}],{layout!r}>"

types = {"q_desc": tiles(64), "k_desc": tiles(BLOCK_N), "v_desc": tiles(BLOCK_N),
         "out_desc": tiles(64), "lse_ptr": "*fp32", "counter": "*i32", "qk_scale": "fp32"}
fixed = {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "CONSUMERS": consumers, "STAGES": stages,
         "REGISTERS": registers, "IS_CAUSAL": causal, "HAS_TAIL": tail}
names = kernel.arg_names
fixed = {name: value for name, value in fixed.items() if name in names}
signature = {n: "constexpr" if n in fixed else types.get(n, "i32") for n in names}
source = GluonASTSource(kernel, signature, {(names.index(n),): v for n, v in fixed.items()}, {})
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
found = products_of(compiled.asm["cubin"])
print(compiled.metadata.shared, compiled.asm["ptx"].count("wgmma.mma_async"),
      found.from_registers, len(found.early))
"""


@pytest.mark.parametrize(("which", "D"), [("long", 64), ("long", 128), ("short", 64)])
@pytest.mark.parametrize(("causal", "tail"), [(False, False), (True, True)])
def test_it_compiles_for_hopper_without_a_gpu_and_its_tiles_fit(
    which: str, D: int, causal: bool, tail: bool
) -> None:
    printed = uninterpreted("-c", COMPILE, str(D), str(causal), str(tail), which)
    shared, products, from_registers, early = map(int, printed.split())
    # Bytes that a block may have; of the short kernel five share an SM, with 1 KB each beside.
    assert shared <= (232_448 if which == "long" else 233_472 // 5 - 1024)
    assert products > 0
    assert from_registers > 0
    assert early == 0  # writes to what a product still reads


@pytest.mark.parametrize(
    ("heads", "tiles", "together", "programs"), [(3, 5, 2, 4), (64, 16, 4, 132), (1, 1, 1, 1)]
)
def test_the_schedule_names_every_tile_once_and_ends_each_program(
    heads: int, tiles: int, together: int, programs: int
) -> None:
    rows = schedule(heads, tiles, tuple(range(1, tiles + 1)), together, programs)
    assert sorted(tile for row in rows for tile in row if tile >= 0) == list(range(heads * tiles))
    assert len(rows) == programs
    assert {len(row) for row in rows} == {max(map(len, rows))}
    assert all(row[0] >= 0 and row[-1] == -1 for row in rows)
    assert all(row[row.index(-1) :] == [-1] * row.count(-1) for row in rows)


def test_the_schedule_of_causal_tiles_is_even() -> None:
    costs = tuple(n + 1.5 for n in range(1, 65))  # of the tiles of one head, 8192 long
    rows = schedule(64, 64, costs, 4, 132)
    busy = [sum(costs[tile % 64] for tile in row if tile >= 0) for row in rows]
    assert max(busy) <= 1.01 * sum(busy) / len(busy)


DIM, FEW = "a head dim outside 33 to 128", "fewer than 64 queries"
NOT_FIT = "float32, a window, a head dim other than 40, 48, ... 128, or a tensor not for TMA"
APART = "causal, and the keys do not outnumber the queries by a multiple of 64"


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ((128, 128, 64, False, 0), ""),
        ((64, 1, 33, False, 0), ""),
        ((63, 128, 64, False, 0), FEW),
        ((128, 128, 32, False, 0), DIM),
        ((128, 128, 129, False, 0), DIM),
        ((128, 128, 64, True, 5), "a window"),
        ((100, 164, 64, True, 0), ""),
        ((100, 163, 64, True, 0), APART),  # a diagonal in two tiles of keys
        ((100, 132, 64, True, 0), APART),
        ((164, 100, 64, True, 0), APART),  # queries that see no key
    ],
)
def test_what_it_takes_and_why_not_the_rest(sizes: tuple[Any, ...], reason: str) -> None:
    assert shape_refusal(*sizes) == reason


class Recorder:
    """A kernel that notes its launch."""

    def __init__(self, ran: list[str], name: str) -> None:
        self.ran, self.name = ran, name

    def __getitem__(self, _grid: Any) -> Any:
        return lambda *_, **__: self.ran.append(self.name)


def case(N_Q: int, N_K: int, D: int, dtype: torch.dtype, **options: Any) -> dict[str, Any]:
    return inputs(attention_reference.sizes(1, 2, 1, N_Q, N_K, D, **options), dtype, "cpu")


HALF, FULL = torch.float16, torch.float32
PATHS = [
    (case(64, SHORT[True], 64, HALF, causal=True), Path(HOPPER_SHORT)),
    (case(64, SHORT[True] + 64, 64, HALF, causal=True), Path(HOPPER)),
    (case(64, SHORT[False], 64, HALF), Path(HOPPER_SHORT)),
    (case(64, SHORT[False] + 1, 64, HALF), Path(HOPPER)),
    (case(64, 64, 72, HALF, causal=True), Path(HOPPER)),
    (case(64, 70, 64, HALF, causal=True), Path(PORTABLE, APART)),
    (case(64, 64, 64, HALF, causal=True, window=9), Path(PORTABLE, "a window")),
    (case(64, 64, 64, FULL), Path(PORTABLE, "float32")),
    (case(64, 64, 36, HALF), Path(PORTABLE, "a start or a stride that TMA cannot take")),
]


@pytest.mark.parametrize(("arguments", "expected"), PATHS)
def test_the_kernel_that_runs_is_the_one_that_is_named(
    arguments: dict[str, Any], expected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []
    monkeypatch.setattr(attention_path, "on_hopper", lambda _device: True)
    monkeypatch.setattr(launcher, "flash_attention_kernel", Recorder(ran, PORTABLE))
    monkeypatch.setattr(launcher, "forward_hopper", lambda *_: (ran.append(HOPPER), None))
    monkeypatch.setattr(
        launcher, "forward_hopper_short", lambda *_: (ran.append(HOPPER_SHORT), None)
    )
    scale, window = arguments["q"].shape[3] ** -0.5, arguments.get("window") or 0
    tensors = (arguments[name] for name in "qkv")
    launcher.forward(*tensors, arguments["causal"], window, scale)
    assert chosen(**arguments) == expected
    assert ran == [expected.kernel]


GRADIENTS = [
    (PATHS[0][0], False, Path(HOPPER_GRADIENTS)),
    (PATHS[0][0], True, Path(PORTABLE_GRADIENTS, "asked to repeat bit for bit")),
    (case(64, 64, 64, HALF, causal=True, window=9), False, Path(PORTABLE_GRADIENTS, NOT_FIT)),
    (case(64, 64, 64, FULL), False, Path(PORTABLE_GRADIENTS, NOT_FIT)),
]


@pytest.mark.parametrize(("arguments", "deterministic", "expected"), GRADIENTS)
def test_the_backward_that_runs_is_the_one_that_is_named(
    arguments: dict[str, Any], deterministic: bool, expected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(attention_path, "on_hopper", lambda _device: True)
    monkeypatch.setattr(hopper_gradients, "on_hopper", lambda _device: True)
    for name in ("delta_kernel", "key_gradients_kernel", "query_gradients_kernel"):
        monkeypatch.setattr(backward, name, Recorder(ran, name))
    monkeypatch.setattr(backward, "backward_hopper", lambda *_: ran.append(HOPPER_GRADIENTS))
    q, k, v = (arguments[name] for name in "qkv")
    lse, window = q.new_zeros(q.shape[:3], dtype=torch.float32), arguments.get("window") or 0
    options = arguments["causal"], window, 0.125, deterministic
    backward.flash_attention_backward(q, None, q, k, v, q, lse, *options)
    found = chosen(**arguments, deterministic=deterministic, gradients=True)
    assert found == expected
    assert expected.kernel in ran
    assert (HOPPER_GRADIENTS in ran) == (expected.kernel == HOPPER_GRADIENTS)


def test_elsewhere_the_kernel_for_every_gpu_runs_and_says_so() -> None:
    assert chosen(**PATHS[0][0]) == Path(PORTABLE, "not a Hopper GPU")
    gradients = chosen(**PATHS[0][0], deterministic=False, gradients=True)
    assert gradients == Path(PORTABLE_GRADIENTS, "not a Hopper GPU")


def test_a_stream_keeps_its_counter_and_each_graph_has_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = SimpleNamespace(cuda_stream=1)
    capturing = [False]
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _device: now)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])
    device = torch.device("cpu")
    first, again = counter_on(device), counter_on(device)
    assert first is again
    assert not first.any()
    now.cuda_stream = 2
    assert counter_on(device) is not first
    capturing[0] = True
    assert counter_on(device) is not counter_on(device)


def test_a_warpgroup_has_64_rows_of_each_tile() -> None:
    assert all(64 * consumers == BLOCK_M for BLOCK_M, _, consumers, *_ in CONFIGS.values())


BY_LAUNCHER = [(forward_hopper_short, 64), (forward_hopper, 64), (forward_hopper, 128)]


def launched(launch: Any, arguments: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """What a launcher makes of checked arguments, whichever the case would pick."""
    q, k, v, causal = (arguments[name] for name in ("q", "k", "v", "causal"))
    out, lse = torch.empty_like(q), torch.empty(q.shape[:3], device=q.device)
    scale = arguments.get("scale") or q.shape[3] ** -0.5
    return launch(q, k, v, out, lse, causal, scale)  # type: ignore[no-any-return]


@needs_hopper
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("launch", "D"), BY_LAUNCHER)
def test_two_runs_on_each_of_many_inputs_agree_bit_for_bit(
    launch: Any, D: int, causal: bool
) -> None:
    shape = attention_reference.sizes(2, 4, 2, 1111, 1111, D, causal=causal)
    for seed in range(200):
        arguments = inputs(shape, torch.bfloat16, "cuda", seed)
        first, second = launched(launch, arguments), launched(launch, arguments)
        assert torch.equal(first[0], second[0])
        assert torch.equal(first[1], second[1])


@needs_hopper
@pytest.mark.parametrize("scale", [1e-4, 50.0])
@pytest.mark.parametrize("N", [64, 65, 191, 192, 193, 640])
@pytest.mark.parametrize(("launch", "D"), BY_LAUNCHER)
def test_lengths_around_its_tiles_and_large_scores_are_exact(
    launch: Any, D: int, N: int, scale: float, assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs(attention_reference.sizes(1, 2, 2, N, N, D), torch.float16, "cuda")
    arguments |= {"causal": True, "scale": scale}
    found = launched(launch, arguments)
    ordinary, exact = attention_reference.eager(**arguments), reference(**arguments)
    assert_as_exact_as_eager(found[0], ordinary[0], exact[0])
    assert_as_exact_as_eager(found[1], ordinary[1], exact[1])
