"""The Hopper backward: its row kernels, that it compiles here, and its gradients on a GPU."""

from typing import Any

import pytest
import torch

from kernels import attention_reference
from kernels.attention_launch import operand
from kernels.attention_schedule import makespan
from kernels.flash_attention import flash_attention, inputs, reference
from kernels.flash_attention_hopper_gradients import (
    GRADIENT_CONFIGS,
    gradients_fit,
    order_of,
    parts_of,
)
from kernels.flash_attention_hopper_gradients_rows import finish_kernel, prepare_kernel
from tests.kernels.compiling import uninterpreted

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HOPPER = DEVICE == "cuda" and torch.cuda.get_device_capability()[0] == 9
needs_hopper = pytest.mark.skipif(not HOPPER, reason="needs a CUDA GPU of the Hopper generation")

# Interpreted functions cannot be compiled, so this runs where nothing is interpreted.
COMPILE = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from tests.kernels.machine_code import products_of
from kernels import flash_attention_hopper_gradients as module

kernel = module.flash_attention_hopper_gradients_kernel

D, causal, tail = int(sys.argv[1]), sys.argv[2] == "True", sys.argv[3] == "True"
BLOCK_M, stages, registers = module.GRADIENT_CONFIGS[D]

def tiles(dtype, block):
    kind = {"bf16": gl.bfloat16, "fp32": gl.float32}[dtype]
    layout = gl.NVMMASharedLayout.get_default_for(block, kind)
    if len(block) == 2:
        layout = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=2)
    return f"tensordesc<{dtype}{block},{layout!r}>"

queries, keys = tiles("bf16", [1, 1, BLOCK_M, D]), tiles("bf16", [1, 1, 64, D])
types = dict.fromkeys(("q_desc", "dout_desc"), queries)
types |= dict.fromkeys(("k_desc", "v_desc", "dk_desc", "dv_desc"), keys)
types |= dict.fromkeys(("lse_desc", "delta_desc"), tiles("fp32", [1, BLOCK_M]))
types |= {"dq_desc": tiles("fp32", [16, 256]), "table": "*i32"}
types |= {"qk_scale": "fp32", "scale": "fp32"}
fixed = {"BLOCK_M": BLOCK_M, "STAGES": stages, "REGISTERS": registers, "IS_CAUSAL": causal,
         "HAS_TAIL": tail}
names = kernel.arg_names
signature = {n: "constexpr" if n in fixed else types.get(n, "i32") for n in names}
source = GluonASTSource(kernel, signature, {(names.index(n),): v for n, v in fixed.items()}, {})
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
found = products_of(compiled.asm["cubin"])
print(compiled.metadata.shared, compiled.asm["ptx"].count("cp.reduce.async.bulk.tensor"),
      found.from_registers, len(found.early))
"""


@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize(("causal", "tail"), [(False, False), (True, True)])
def test_it_compiles_for_hopper_without_a_gpu_and_its_tiles_fit(
    D: int, causal: bool, tail: bool
) -> None:
    printed = uninterpreted("-c", COMPILE, str(D), str(causal), str(tail))
    shared, additions, from_registers, early = map(int, printed.split())
    assert shared <= 232_448  # bytes that a block may have
    assert additions > 0
    assert from_registers > 0
    assert early == 0  # writes to what a product still reads


def normal(*sizes: int, dtype: torch.dtype = torch.float32, seed: int = 9) -> torch.Tensor:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(seed)).to(DEVICE, dtype)


# B, H, H_KV, N_Q, N_K, BLOCK_M, bytes a row, causal, SMs; and the parts
CUTS = [
    ((4, 32, 1, 4096, 4096, 64, 1024, True, 132), 16),  # hardly a tile of keys an SM
    ((2, 24, 8, 4096, 4096, 64, 1024, True, 132), 3),  # uneven tiles
    ((8, 24, 8, 1024, 1024, 64, 1024, True, 132), 1),  # cutting would cost more than it evens out
    ((16, 16, 16, 2048, 2048, 64, 1024, True, 132), 1),  # nothing to cut
    ((4, 32, 1, 4096, 4096, 64, 1024, False, 132), 1),  # all tiles are as long
]


@pytest.mark.parametrize(("sizes", "parts"), CUTS)
def test_query_heads_that_share_keys_are_cut_where_that_ends_sooner(
    sizes: tuple[Any, ...], parts: int
) -> None:
    found, order = parts_of(*sizes)
    B, H, H_KV, *rest = sizes
    assert found == parts
    assert H % (H_KV * parts) == 0
    whole = order_of(B, H, H_KV, *rest[:-1], 2.0, rest[-1])
    assert makespan(*order) <= makespan(*whole)


def test_no_schedule_ends_before_its_work_is_shared_evenly() -> None:
    heads, costs, programs = 5, (3.0, 2.0, 1.0), 4
    ends = makespan(heads, len(costs), costs, heads, programs)
    assert heads * sum(costs) / programs <= ends <= heads * sum(costs) / programs + max(costs)


@pytest.mark.parametrize("has_dlse", [False, True])
@pytest.mark.parametrize(("N_Q", "rows"), [(128, 128), (70, 128), (130, 192)])
def test_what_belongs_to_a_query_is_prepared(N_Q: int, rows: int, has_dlse: bool) -> None:
    B, H, D = 2, 3, 40
    out, dout = (normal(B, H, N_Q, D, dtype=torch.float16, seed=seed) for seed in (1, 2))
    lse, dlse = normal(B, H, N_Q, seed=3), normal(B, H, N_Q, seed=4)
    lse[1, 2, 5] = -float("inf")  # a query that sees no key
    lse_2, delta = torch.full((2, B * H, rows), float("nan"), device=DEVICE)
    dq_sum = torch.full((B * H * rows * 64 // 256, 256), float("nan"), device=DEVICE)
    prepare_kernel[(B * H * (rows // 64),)](
        operand(out, 64, False), operand(dout, 64, False), lse, dlse if has_dlse else None,
        lse_2, delta, dq_sum, H, N_Q, rows, D, 64, has_dlse,
    )  # fmt: skip
    exact = (out.double() * dout.double()).sum(3) - (dlse.double() if has_dlse else 0)
    torch.testing.assert_close(delta[:, :N_Q].double(), exact.flatten(0, 1), rtol=0, atol=1e-5)
    assert not delta[:, N_Q:].any()
    base_2 = (lse.double() / torch.tensor(2.0).double().log()).flatten(0, 1)
    base_2[5, 5] = float("inf")
    torch.testing.assert_close(lse_2[:, :N_Q].double(), base_2, rtol=1e-6, atol=1e-6)
    assert (lse_2[:, N_Q:] == float("inf")).all()
    assert not dq_sum.any()


def as_threads_leave_it(total: torch.Tensor) -> torch.Tensor:
    """What the Hopper kernel adds up for dQ (B H, rows, BLOCK_D): by blocks of (64, 64)."""
    heads, rows, BLOCK_D = total.shape
    left = torch.empty(heads, rows // 64, BLOCK_D // 64, 4096, device=total.device)
    for row in range(64):
        for column in range(64):
            warp, half, row_of_lane = row // 16, row // 8 % 2, row % 8
            part, lane_of_row, pair = column // 8, column // 2 % 4, column % 2
            thread = warp * 32 + row_of_lane * 4 + lane_of_row
            place = part * 512 + thread * 4 + half * 2 + pair  # four numbers of a thread together
            left[..., place] = total[:, row::64, column::64]
    return left.view(-1, 256)


@pytest.mark.parametrize(("N_Q", "D"), [(64, 40), (130, 64), (70, 96)])
def test_the_sum_is_put_in_order_scaled_and_rounded_once(N_Q: int, D: int) -> None:
    B, H, rows, BLOCK_D = 2, 3, -(-N_Q // 64) * 64, 64 if D <= 64 else 128
    total = normal(B * H, rows, BLOCK_D)
    dq = torch.full((B, H, N_Q, D), float("nan"), dtype=torch.float16, device=DEVICE)
    finish_kernel[(B * H * (rows // 64),)](
        as_threads_leave_it(total), operand(dq, 64, False), 0.125, H, N_Q, rows, D, BLOCK_D
    )
    expected = (total[:, :N_Q, :D] / 8).to(torch.float16)
    assert torch.equal(dq, expected.view(B, H, N_Q, D))


def test_the_queries_of_a_program_fill_whole_matrix_instructions() -> None:
    assert all(BLOCK_M in (64, 128) for BLOCK_M, *_ in GRADIENT_CONFIGS.values())


@needs_hopper
@pytest.mark.parametrize(
    ("shape", "causal"),
    [
        ((1, 2, 2, 128, 128, 64), False),
        ((2, 4, 4, 512, 512, 128), False),
        ((2, 4, 4, 512, 512, 64), True),
        ((1, 4, 4, 1024, 1024, 128), True),
        ((2, 8, 2, 333, 333, 64), True),
        ((1, 8, 1, 257, 700, 128), True),
        ((2, 3, 3, 700, 257, 96), True),  # queries that see no key
        ((3, 6, 3, 1, 300, 40), False),
        ((1, 2, 1, 1111, 65, 80), False),
        ((9, 16, 4, 640, 640, 128), True),  # more tiles than programs
        ((9, 16, 4, 640, 640, 64), False),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_its_gradients_are_as_exact_as_eager(
    shape: tuple[int, ...], causal: bool, dtype: torch.dtype, assert_as_exact_as_eager: Any
) -> None:
    arguments = inputs(attention_reference.sizes(*shape, causal=causal), dtype, DEVICE)
    q, k, v = (arguments[name].requires_grad_() for name in "qkv")
    dout = normal(*q.shape, dtype=dtype)
    upstream = [dout] if shape[3] > shape[4] else [dout, normal(*q.shape[:3], seed=8)]
    assert gradients_fit(q, k, v, dout, 0)
    found, ordinary, exact = (
        torch.autograd.grad(
            outputs[: len(upstream)],
            (q, k, v),
            [g.to(x.dtype) for g, x in zip(upstream, outputs, strict=False)],
        )
        for outputs in (
            flash_attention(**arguments, deterministic=False),
            attention_reference.eager(**arguments),
            reference(**arguments),
        )
    )
    for ours, theirs, true in zip(found, ordinary, exact, strict=True):
        assert_as_exact_as_eager(ours, theirs, true, arguments)


@needs_hopper
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("D", [64, 128])
def test_fresh_inputs_give_the_same_again_but_for_the_order_of_sums(D: int, causal: bool) -> None:
    shape = attention_reference.sizes(2, 8, 4, 1111, 1111, D, causal=causal)
    for seed in range(25):
        arguments = inputs(shape, torch.bfloat16, DEVICE, seed)
        q, k, v = (arguments[name].requires_grad_() for name in "qkv")
        out, _ = flash_attention(**arguments, deterministic=False)
        dout = normal(*out.shape, dtype=torch.bfloat16, seed=seed)
        first, second = (
            torch.autograd.grad(out, (q, k, v), dout, retain_graph=True) for _ in range(2)
        )
        assert torch.equal(first[1], second[1])
        assert torch.equal(first[2], second[2])
        torch.testing.assert_close(first[0], second[0], rtol=2**-7, atol=1e-4)
