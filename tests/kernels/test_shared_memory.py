"""Tiles fit the shared memory of every GPU that takes them, found by compiling without one.

Limits: CUDA C++ programming guide, technical specifications by compute capability.
"""

import pytest
import torch

from kernels import attention_launch, flash_decode, matmul
from kernels.attention_launch import CONFIGS, LARGE, SMALL_CONFIGS
from kernels.attention_reference import inputs, reference, sizes
from kernels.flash_attention import flash_attention
from tests.kernels.compiling import compiled_attention, uninterpreted

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SMALL = 99 * 2**10
# A100, GeForce RTX 40 (RTX 30 alike), H100 and H200, GeForce RTX 50; TMA on the last two
LIMITS = {80: 163 * 2**10, 89: SMALL, 90: 227 * 2**10, 120: SMALL}
RESERVED = 2**10  # bytes that a block takes besides its own, by the same guide
REGISTERS = 2**16  # of an SM

# Interpreted functions cannot be compiled, so this runs where nothing is interpreted.
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
    shared = compiled_attention(kernel, generation, itemsize, D, config)["shared"]
    assert 0 < shared <= LIMITS[generation]


@pytest.mark.parametrize(("D", "least", "most"), [(64, 3, 4), (128, 2, 2)])
def test_so_many_programs_of_the_forward_share_an_sm_of_hopper(
    D: int, least: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = attention_launch.config("forward", 2, D, device_with(LIMITS[90], monkeypatch))
    threads = 32 * config[2]
    share = []
    for mask in ("none", "causal"):
        found = compiled_attention("forward", 90, 2, D, config, mask)
        registers = threads * -(-found["registers"] // 8) * 8  # a warp is given them by the eight
        by_memory = (LIMITS[90] + RESERVED) // (found["shared"] + RESERVED)
        share.append(min(by_memory, REGISTERS // registers))
    assert min(share) >= least
    assert max(share) == most


@pytest.mark.parametrize("generation", [90, 120])
@pytest.mark.parametrize(("M", "N"), [(4096, 4096), (2048, 1024), (64, 64)])
def test_tiles_of_a_product_fit(
    M: int, N: int, generation: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = matmul.config(M, N, device_with(LIMITS[generation], monkeypatch))
    case = ",".join(map(str, (generation, *config)))
    assert 0 < int(uninterpreted("-c", COMPILE_MATMUL, case)) <= LIMITS[generation]


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
