"""Tiles fit the shared memory of every GPU that takes them, found by compiling without one.

Limits a block: CUDA C++ programming guide, technical specifications by compute capability.
"""

import subprocess
import sys

import pytest
import torch

from kernels import attention_launch, flash_decode, matmul
from kernels.attention_launch import CONFIGS, LARGE, SMALL_CONFIGS
from kernels.attention_reference import inputs, reference, sizes
from kernels.flash_attention import flash_attention

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = 99 * 2**10
# A100, GeForce RTX 40 (RTX 30 alike), H100 and H200, GeForce RTX 50; TMA on the last two
LIMITS = {80: 163 * 2**10, 89: SMALL, 90: 227 * 2**10, 120: SMALL}

# Interpreted functions cannot be compiled, so this runs where nothing is interpreted.
COMPILE = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from kernels.flash_attention import flash_attention_kernel
from kernels.flash_attention_backward_keys import key_gradients_kernel
from kernels.flash_attention_backward_queries import query_gradients_kernel
from kernels.flash_decode import flash_decode_kernel

KERNELS = {"forward": flash_attention_kernel, "keys": key_gradients_kernel,
           "queries": query_gradients_kernel, "decode": flash_decode_kernel}
kernel, generation = KERNELS[sys.argv[1]], int(sys.argv[2])
itemsize, D, BLOCK_M, BLOCK_N, warps, stages = map(int, sys.argv[3].split(","))
dtype = {2: "bf16", 4: "fp32"}[itemsize]
tma = generation >= 90
fixed = {"D": D, "BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_D": D, "IS_CAUSAL": True,
         "HAS_WINDOW": False, "HAS_TAIL": True, "TMA": tma, "KEPT": generation == 90,
         "AHEAD": generation == 90 and D > 64}
operands = {"q": BLOCK_M, "out": BLOCK_M, "dout": BLOCK_M, "dq": BLOCK_M,
            "k": BLOCK_N, "v": BLOCK_N, "dk": BLOCK_N, "dv": BLOCK_N}
names = kernel.arg_names
fixed = {name: value for name, value in fixed.items() if name in names}
signature, attributes = {}, {}
for i, name in enumerate(names):
    pointer = name.endswith("_ptr")
    signature[name] = (
        "constexpr" if name in fixed
        else f"tensordesc<{dtype}[1, 1, {operands[name]}, {D}]>" if tma and name in operands
        else (f"*{dtype}", "i32", "i32", "i32") if name in operands
        else f"*{dtype}" if name in ("q_ptr", "out_ptr")
        else "*fp32" if pointer
        else "fp32" if name.endswith("scale") else "i32"
    )
    by_16 = [["tt.divisibility", 16]]
    if name in operands and not tma:
        attributes |= {(i, part): by_16 for part in range(4)}
    elif pointer or name in ("N_Q", "N_K") or name.startswith("stride"):
        attributes[i,] = by_16
source = ASTSource(kernel, signature, {(names.index(n),): v for n, v in fixed.items()}, attributes)
options = {"num_warps": warps, "num_stages": stages}
compiled = triton.compile(source, target=GPUTarget("cuda", generation, 32), options=options)
print(compiled.metadata.shared)
"""
RESERVED = 2**10  # bytes that a block takes besides its own, by the same guide

COMPILE_MATMUL = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from kernels.matmul import matmul_kernel as kernel

generation, BLOCK_M, BLOCK_N, BLOCK_K, group, warps, stages = map(int, sys.argv[1].split(","))
fixed = {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K, "GROUP_M": group, "TMA": True,
         "A_FLIPPED": False, "B_FLIPPED": False, "FLATTEN": True}
types = {"a": f"tensordesc<bf16[{BLOCK_M}, {BLOCK_K}]>",
         "b": f"tensordesc<bf16[{BLOCK_K}, {BLOCK_N}]>",
         "out": f"tensordesc<bf16[{BLOCK_M}, {BLOCK_N}]>"}
names = kernel.arg_names
signature = {n: "constexpr" if n in fixed else types.get(n, "i32") for n in names}
source = ASTSource(kernel, signature, {(names.index(n),): v for n, v in fixed.items()}, {})
options = {"num_warps": warps, "num_stages": stages}
compiled = triton.compile(source, target=GPUTarget("cuda", generation, 32), options=options)
print(compiled.metadata.shared)
"""


def device_with(limit: int, monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """Return a device whose blocks may have so many bytes of shared memory."""
    for module in (attention_launch, matmul):
        monkeypatch.setattr(module, "shared_memory", lambda _: limit)
    return torch.device("cuda")


def compiled(monkeypatch: pytest.MonkeyPatch, *command: str) -> int:
    """Return the bytes of shared memory that a program found by compiling."""
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    ran = subprocess.run([sys.executable, "-c", *command], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout)


@pytest.mark.parametrize(
    ("generation", "itemsize", "D"),  # other head dims take less; float32 never takes TMA
    [(80, 2, 256), (89, 2, 128), (89, 2, 256), (89, 4, 256), (120, 2, 128), (120, 2, 256)],
)
@pytest.mark.parametrize("kernel", ["forward", "keys", "queries", "decode"])
def test_tiles_fit(
    kernel: str, generation: int, itemsize: int, D: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = device_with(LIMITS[generation], monkeypatch)
    if kernel == "decode":
        config = 64, *flash_decode.config(itemsize, D, device)  # 64 rows are the most a tile has
    else:
        config = attention_launch.config(kernel, itemsize, D, device)
    case = ",".join(map(str, (itemsize, D, *config)))
    shared = compiled(monkeypatch, COMPILE, kernel, str(generation), case)
    assert 0 < shared <= LIMITS[generation]


@pytest.mark.parametrize(("D", "programs"), [(64, 4), (128, 2)])
def test_so_many_programs_of_the_forward_fit_an_sm_of_hopper(
    D: int, programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = attention_launch.config("forward", 2, D, device_with(LIMITS[90], monkeypatch))
    case = ",".join(map(str, (2, D, *config)))
    shared = compiled(monkeypatch, COMPILE, "forward", "90", case)
    assert programs * (shared + RESERVED) <= LIMITS[90] + RESERVED


@pytest.mark.parametrize("generation", [90, 120])
@pytest.mark.parametrize(("M", "N"), [(4096, 4096), (2048, 1024), (64, 64)])
def test_tiles_of_a_product_fit(
    M: int, N: int, generation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = matmul.config(M, N, device_with(LIMITS[generation], monkeypatch))
    case = ",".join(map(str, (generation, *config)))
    assert 0 < compiled(monkeypatch, COMPILE_MATMUL, case) <= LIMITS[generation]


@pytest.mark.parametrize("D", [128, 256])
def test_smaller_tiles_compute_the_same(D: int, monkeypatch: pytest.MonkeyPatch) -> None:
    device_with(SMALL, monkeypatch)
    arguments = inputs(sizes(1, 2, 1, 70, 90, D, causal=True), torch.float16, DEVICE)
    names = ("q", "k", "v")
    leaves = {name: arguments[name].requires_grad_() for name in names}
    found, exact = flash_attention(**arguments)[0], reference(**arguments)[0]
    torch.testing.assert_close(found.double(), exact, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(
        flash_decode.flash_decode(**{n: x.detach() for n, x in leaves.items()}, causal=True)[0],
        found.detach(), rtol=2e-2, atol=2e-2,
    )  # fmt: skip
    gradient = torch.randn_like(found)
    for ours, right in zip(
        torch.autograd.grad(found, leaves.values(), gradient),
        torch.autograd.grad(exact, leaves.values(), gradient.double()),
        strict=True,
    ):
        torch.testing.assert_close(ours, right, rtol=2e-2, atol=6e-2)


def test_small_tiles_are_for_small_memory_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tight, roomy = (
        {key: attention_launch.config(*key, device_with(limit, monkeypatch)) for key in CONFIGS}
        for limit in (SMALL, LARGE)
    )
    assert roomy == CONFIGS
    assert tight == CONFIGS | SMALL_CONFIGS
    decode, replaced = flash_decode.CONFIGS, flash_decode.SMALL_CONFIGS
    tight_decode, roomy_decode = (
        {key: flash_decode.config(*key, device_with(limit, monkeypatch)) for key in decode}
        for limit in (SMALL, LARGE)
    )
    assert roomy_decode == decode
    assert tight_decode == decode | replaced
