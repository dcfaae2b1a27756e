"""The ladder of attention kernels: each step against float64, what it refuses, that it compiles."""

import re
from typing import Any

import pytest
import torch

from kernels.attention_ladder import IMPLEMENTATIONS, SHAPES, inputs, reference, step7_persistent
from kernels.attention_reference import eager, sizes
from kernels.bench.cases import LADDER, LADDER_OURS, TRIAL
from tests.kernels.compiling import uninterpreted

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HOPPER = DEVICE == "cuda" and torch.cuda.get_device_capability()[0] == 9
needs_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA GPU")
needs_hopper = pytest.mark.skipif(not HOPPER, reason="needs a CUDA GPU of the Hopper generation")
# Triton's interpreter multiplies bfloat16 wrongly, and there is none for Gluon.
DTYPES = [torch.float16, pytest.param(torch.bfloat16, marks=needs_gpu)]
OF_HOPPER = (*LADDER[3:], TRIAL)
STEPS = [*LADDER[:3], *(pytest.param(step, marks=needs_hopper) for step in OF_HOPPER)]
LONG = [
    sizes(B, H, H, N, N, D, causal=causal)
    for B, H, N in ((1, 1, 256), (3, 5, 640), (1, 2, 1152), (2, 100, 1024), (1, 3, 4096))
    for D in (64, 128)
    for causal in (False, True)
]

# Interpreted functions cannot be compiled, so this runs where nothing is interpreted.
COMPILE = """
import importlib, inspect, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from tests.kernels.machine_code import products_of

step, D, causal = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "True"
module = importlib.import_module(f"kernels.attention_ladder.{step}")
kernel = module.attention_kernel
by_warpgroup = "ROWS" in vars(module)
BLOCK_M, BLOCK_N, workers, stages, *registers = module.CONFIGS[D]

def tiles(rows):
    layout = gl.NVMMASharedLayout.get_default_for([rows, D], gl.bfloat16)
    return f"tensordesc<bf16[{rows}, {D}],{layout!r}>"

rows = 64 if by_warpgroup else BLOCK_M
types = {"q_desc": tiles(rows), "k_desc": tiles(BLOCK_N), "v_desc": tiles(BLOCK_N),
         "out_desc": tiles(rows), "lse_ptr": "*fp32", "table": "*i32", "qk_scale": "fp32"}
fixed = {"D": D, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "STAGES": stages, "IS_CAUSAL": causal}
if by_warpgroup:
    fixed |= {"CONSUMERS": workers, "REGISTERS": registers[0]}
names = kernel.arg_names
signature = {n: "constexpr" if n in fixed else types.get(n, "i32") for n in names}
source = GluonASTSource(kernel, signature, {(names.index(n),): v for n, v in fixed.items()}, {})
options = {"num_warps": 4 if by_warpgroup else workers}
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
found = products_of(compiled.asm["cubin"])
print(compiled.metadata.shared, compiled.asm["ptx"].count("wgmma.mma_async"),
      found.from_registers, len(found.early))
"""


def halves(*size: int) -> torch.Tensor:
    return torch.zeros(size, dtype=torch.float16)


def ident(shape: dict[str, Any]) -> str:
    return "-".join(map(str, shape.values()))


def test_the_benchmark_names_the_steps_in_their_order_and_the_trial_beside_them() -> None:
    assert tuple(IMPLEMENTATIONS) == LADDER_OURS
    assert TRIAL not in LADDER


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES["test"], ids=ident)
@pytest.mark.parametrize("step", STEPS)
def test_out_and_lse_are_as_exact_as_eager(
    step: str, shape: dict[str, Any], dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs(shape, dtype, DEVICE)
    found, ordinary = IMPLEMENTATIONS[step](**arguments), eager(**arguments)
    exact = reference(**arguments)
    assert_as_exact_as_eager(found[0], ordinary[0], exact[0], arguments)
    assert_as_exact_as_eager(found[1], ordinary[1], exact[1], arguments)


@needs_hopper
@pytest.mark.parametrize("shape", LONG, ids=ident)
@pytest.mark.parametrize("step", [*LADDER, TRIAL])
def test_few_and_many_tiles_are_exact_and_repeat_bit_for_bit(
    step: str, shape: dict[str, Any], assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs(shape, torch.bfloat16, DEVICE)
    found, again = (IMPLEMENTATIONS[step](**arguments) for _ in range(2))
    ordinary, exact = eager(**arguments), reference(**arguments)
    assert_as_exact_as_eager(found[0], ordinary[0], exact[0])
    assert_as_exact_as_eager(found[1], ordinary[1], exact[1])
    assert torch.equal(found[0], again[0])
    assert torch.equal(found[1], again[1])


@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize("step", STEPS)
def test_each_query_sees_the_keys_up_to_its_own(step: str, D: int) -> None:
    N = 384
    arguments = inputs(sizes(1, 2, 2, N, N, D, causal=True), torch.float16, DEVICE)
    arguments["q"].zero_()  # equal weights: the sum is the number of keys, out their mean
    arguments["v"].copy_(torch.arange(N, device=DEVICE)[:, None] / 8)
    out, lse = IMPLEMENTATIONS[step](**arguments)
    seen = torch.arange(1, N + 1, device=DEVICE).double()
    assert torch.allclose(lse.double(), seen.log().expand(1, 2, N), rtol=0, atol=1e-6)
    assert torch.allclose(out[0, 1].double(), ((seen - 1) / 16)[:, None].expand(N, D), rtol=2e-3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [1e-4, 0.7, 20.0])
@pytest.mark.parametrize("step", STEPS)
def test_the_scale_is_the_one_given(
    step: str, scale: float, causal: bool, assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs(sizes(1, 1, 1, 256, 256, 64, causal=causal), torch.float16, DEVICE)
    arguments |= {"scale": scale}
    exact, ordinary = reference(**arguments), eager(**arguments)
    found = IMPLEMENTATIONS[step](**arguments)
    assert_as_exact_as_eager(found[0], ordinary[0], exact[0], arguments)
    assert_as_exact_as_eager(found[1], ordinary[1], exact[1], arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict.fromkeys("qkv", halves(1, 2, 300, 64)), "q has length 300; allowed: multiples of 1"),
        (dict.fromkeys("qkv", halves(1, 2, 128, 64)), "q has length 128; allowed: multiples of 1"),
        (dict.fromkeys("kv", halves(1, 1, 256, 64)), "k and v are (1, 1, 256, 64); allowed: the "),
        (dict.fromkeys("kv", halves(1, 2, 512, 64)), "k and v are (1, 2, 512, 64); allowed: the "),
        (dict.fromkeys("qkv", halves(1, 2, 256, 80)), "q has head dim 80; allowed: 64, 128"),
        (dict.fromkeys("qkv", halves(0, 2, 256, 64)), "q is (0, 2, 256, 64) with strides"),
        ({"v": halves(1, 256, 2, 64).transpose(1, 2)}, "v is (1, 2, 256, 64) with strides"),
        ({"k": halves(32769)[1:].view(1, 2, 256, 64)}, "at byte 2 of 16; allowed: contiguous"),
        ({"q": halves(1, 2, 256, 64).float()}, "k is torch.float16 on cpu; allowed: as q"),
        (dict.fromkeys("qkv", halves(1, 2, 256, 64).float()), "q is torch.float32; allowed: torch"),
        ({"scale": 0.0}, "scale is 0.0; allowed: finite and above 0"),
    ],
)
@pytest.mark.parametrize("step", [*LADDER, TRIAL])
def test_what_the_steps_leave_to_the_whole_kernel_is_refused(
    step: str, changes: dict[str, Any], message: str
) -> None:
    arguments = dict.fromkeys("qkv", halves(1, 2, 256, 64)) | changes
    with pytest.raises(ValueError, match=re.escape(message)):
        IMPLEMENTATIONS[step](**arguments)


@pytest.mark.parametrize(("D", "causal"), [(64, True), (128, False)])
@pytest.mark.parametrize(
    "step",
    ["step4_ring", "step5_warpgroups", "step6_overlap", "step7_persistent", "trial_late_wait"],
)
def test_it_compiles_for_hopper_without_a_gpu_and_its_tiles_fit(
    step: str, D: int, causal: bool
) -> None:
    printed = uninterpreted("-c", COMPILE, step, str(D), str(causal))
    shared, products, from_registers, early = map(int, printed.split())
    assert shared <= 232_448  # bytes that a block may have
    assert products > 0
    assert from_registers > 0
    assert early == 0  # writes to what a product still reads


@pytest.mark.parametrize(
    ("heads", "costs", "together", "programs"),
    [(3, (1, 2, 3, 4, 5), 2, 4), (64, tuple(range(16)), 4, 132), (1, (7,), 1, 1)],
)
def test_the_table_names_every_tile_once_and_ends_each_program(
    heads: int, costs: tuple[int, ...], together: int, programs: int
) -> None:
    rows = step7_persistent.schedule(heads, costs, together, programs)
    assert sorted(n for row in rows for n in row if n >= 0) == list(range(heads * len(costs)))
    assert len(rows) == programs
    assert {len(row) for row in rows} == {max(map(len, rows))}
    assert all(row[0] >= 0 and row[-1] == -1 for row in rows)
    assert all(row[row.index(-1) :] == [-1] * row.count(-1) for row in rows)


def test_the_table_of_causal_tiles_is_even() -> None:
    costs = tuple(range(3, 67))  # of the tiles of one head, 8192 long
    rows = step7_persistent.schedule(64, costs, 4, 132)
    busy = [sum(costs[n % 64] for n in row if n >= 0) for row in rows]
    assert max(busy) <= 1.01 * sum(busy) / len(busy)
