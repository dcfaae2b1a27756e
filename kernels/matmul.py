"""Matrix product in tiles: the kernel whose time the tensor cores set and not the memory.

Programs that run at the same time work on a near-square group of tiles, so the rows of a and the
columns of b they share stay in the L2.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.device import on_its_device, shared_memory, sm_count, this_device
from kernels.differentiation import refuse_gradients
from kernels.matmul_tiles import grouped_tile, load_tile, operand
from kernels.work import Work

DTYPES = (torch.float16, torch.bfloat16)
SIZE_LIMIT = 2**31 - 256  # indices are 32-bit, and a tile may reach beyond the last one


# --8<-- [start:kernel]
@triton.jit
def matmul_kernel(
    a, b, out,                                                     # operands (M, K), (K, N), (M, N)
    M, N, K, programs,                                             # sizes; programs in the grid
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    TMA: tl.constexpr, A_FLIPPED: tl.constexpr, B_FLIPPED: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    """Tiles of the product, one after the other; flattened, one's last loads overlap the next."""
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, programs, flatten=FLATTEN):
        tile_m, tile_n = grouped_tile(tile, tiles_m, tiles_n, GROUP_M)
        m, n = tile_m * BLOCK_M, tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            a_tile = load_tile(a, m, k, M, K, BLOCK_M, BLOCK_K, TMA, A_FLIPPED)
            b_tile = load_tile(b, k, n, K, N, BLOCK_K, BLOCK_N, TMA, B_FLIPPED)
            acc = tl.dot(a_tile, b_tile, acc)
        if TMA:
            out.store([m, n], acc.to(out.dtype))
        else:
            offs_m = (m + tl.arange(0, BLOCK_M)).to(tl.int64)
            offs_n = n + tl.arange(0, BLOCK_N)
            mask = (offs_m < M)[:, None] & (offs_n < N)[None, :]
            out_ptrs = out[0] + offs_m[:, None] * N + offs_n[None, :]
            tl.store(out_ptrs, acc.to(out[0].dtype.element_ty), mask=mask)


# --8<-- [end:kernel]


# --8<-- [start:sizes]
# Fewest tiles: BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, warps, stages. Large tiles use what they load
# more often; small ones give every SM something to do.
CONFIGS = {
    256: (128, 256, 64, 8, 8, 3),
    128: (128, 128, 64, 8, 8, 3),
    0: (64, 64, 64, 8, 4, 4),
}
LARGE = 209 * 2**10  # bytes of shared memory that the largest tiles need; a GeForce has 99 KB
POINTERS = (64, 64, 32, 8, 4, 3)  # what TMA cannot fetch: odd sizes, odd strides


def config(M: int, N: int, device: torch.device) -> tuple[int, int, int, int, int, int]:
    """Return the largest tiles of which a product has enough and a block of the device has room."""
    skipped = 0 if shared_memory(device) >= LARGE else 1
    enough = (
        c
        for least, c in list(CONFIGS.items())[skipped:]
        if triton.cdiv(M, c[0]) * triton.cdiv(N, c[1]) >= least
    )
    return next(enough)


def programs_for(tiles: int, tma: bool, a: torch.Tensor) -> int:
    """Return one program an SM, which does tile after tile; without TMA, one for each tile."""
    if not (tma and a.is_cuda):
        return tiles
    return min(tiles, sm_count(a.device))


# --8<-- [end:sizes]


# --8<-- [start:launch]
@on_its_device
def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a b, multiplied in the input dtype and added in float32. No gradients.

    Parameters
    ----------
    a : (M, K) float16 or bfloat16, any strides
    b : (K, N), dtype and device of a, any strides

    Returns
    -------
    out : (M, N), dtype of a, contiguous; 0 if K is 0

    Raises
    ------
    ValueError
        Naming the argument, what came and what is allowed.

    References
    ----------
    Tillet, Kung, Cox, "Triton: an intermediate language and compiler for tiled neural network
    computations", 2019, https://doi.org/10.1145/3315508.3329973
    """
    for name, x in (("a", a), ("b", b)):
        if x.dim() != 2:
            raise ValueError(f"{name} has {x.dim()} dimensions; allowed: 2")
        if x.dtype not in DTYPES:
            raise ValueError(f"{name} is {x.dtype}; allowed: {', '.join(map(str, DTYPES))}")
        if max(x.shape) > SIZE_LIMIT:
            raise ValueError(f"{name} is {tuple(x.shape)}; allowed: sizes up to {SIZE_LIMIT}")
    refuse_gradients(a=a, b=b)
    if (b.dtype, b.device) != (a.dtype, a.device):
        raise ValueError(f"b is {b.dtype} on {b.device}; allowed: as a, {a.dtype} on {a.device}")
    if b.shape[0] != a.shape[1]:
        raise ValueError(f"b has {b.shape[0]} rows; allowed: {a.shape[1]}, the columns of a")
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if M == 0 or N == 0 or K == 0:
        return out.zero_()
    BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, warps, stages = config(M, N, a.device)
    a_tiles, a_flipped = operand(a, BLOCK_M, BLOCK_K)
    b_tiles, b_flipped = operand(b, BLOCK_K, BLOCK_N)
    out_tiles, _ = operand(out, BLOCK_M, BLOCK_N)
    tma = all((a_tiles, b_tiles, out_tiles))
    operands: tuple[Any, ...] = a_tiles, b_tiles, out_tiles
    if not tma:
        BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, warps, stages = POINTERS
        operands = (a, *a.stride()), (b, *b.stride()), (out,)
        a_flipped = b_flipped = False
    programs = programs_for(triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N), tma, a)
    matmul_kernel[(programs,)](
        *operands, M, N, K, programs,
        BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M,
        tma, a_flipped, b_flipped, tma, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out


# --8<-- [end:launch]


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product in float64."""
    return a.double() @ b.double()


def inputs(shape: dict[str, Any], dtype: torch.dtype, device: str, seed: int = 0) -> dict[str, Any]:
    """Return a (M, K) and b (K, N), random normal."""
    generator = torch.Generator(device).manual_seed(seed)
    sizes = {"a": (shape["M"], shape["K"]), "b": (shape["K"], shape["N"])}
    options: dict[str, Any] = {"dtype": dtype, "device": device, "generator": generator}
    return {name: torch.randn(size, **options) for name, size in sizes.items()}


def work(shape: dict[str, Any], itemsize: int, passes: str = "forward") -> Work:
    """Bytes and FLOPs of one call; every tile of the product reads its rows and columns anew."""
    if passes != "forward":
        raise ValueError(f"passes is {passes!r}; allowed: 'forward'")
    M, N, K = shape["M"], shape["N"], shape["K"]
    tma = N * itemsize % 16 == K * itemsize % 16 == 0
    BLOCK_M, BLOCK_N = (config(M, N, this_device()) if tma else POINTERS)[:2]
    loads = M * K * triton.cdiv(N, BLOCK_N) + K * N * triton.cdiv(M, BLOCK_M)
    return Work((M * K + K * N + M * N) * itemsize, (loads + M * N) * itemsize, 2 * M * N * K)


SHAPES: dict[str, list[dict[str, Any]]] = {
    "test": [
        {"M": M, "N": N, "K": K}
        for M, N, K in (
            (1, 1, 1), (1, 70, 33), (70, 1, 33), (3, 5, 1), (65, 129, 40), (130, 72, 136),
            (128, 64, 64), (511, 511, 511), (600, 72, 8),
        )
    ],
    "bench": [{"M": size, "N": size, "K": size} for size in (4096, 8192, 1024, 2048, 512, 4095)]
    + [
        {"M": M, "N": N, "K": K}
        for M, N, K in ((16384, 4096, 1024), (1024, 16384, 4096), (128, 8192, 8192))
    ],
}  # fmt: skip
