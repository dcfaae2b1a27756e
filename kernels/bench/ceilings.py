"""What this device reaches in this run: copy, read and matrix product.

A data sheet says what no program can exceed; a ceiling says what a plain program gets today, at
today's clocks. A share of the ceiling is the fairer measure of a kernel.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.bench.rates import gb_per_s, tflop_per_s
from kernels.bench.timing import Run, Timer, interleaved, quantiles

STREAM_BYTES = 2**30  # each side of the copy; far above any L2
MATRIX = 8192
READS = ((8, 4), (8, 8), (16, 8), (32, 8))  # loads in flight a program, warps


@triton.jit  # type: ignore[untyped-decorator]
def read_kernel(x_ptr, sums_ptr, BLOCK: tl.constexpr, LOADS: tl.constexpr):  # type: ignore
    """Sum LOADS * BLOCK elements a program, so that the loads cannot be left out."""
    pid = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.static_range(LOADS):
        offs = (pid * LOADS + i) * BLOCK + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offs)
    tl.store(sums_ptr + pid, tl.sum(total, 0))


def copy_of(byte_count: int, device: str = "cuda") -> Run:
    """Return a copy that moves `byte_count` bytes: half of them read, half written."""
    source = torch.empty(max(1, byte_count // 2), dtype=torch.int8, device=device).random_()
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def reader(byte_count: int, loads: int, warps: int) -> Run:
    """Return a kernel that reads `byte_count` bytes and writes next to nothing."""
    block = 1024 * warps // 4
    programs = byte_count // 4 // (block * loads)
    source = torch.randn(programs * block * loads, device="cuda")
    sums = torch.empty(programs, device="cuda")
    return lambda: read_kernel[(programs,)](source, sums, BLOCK=block, LOADS=loads, num_warps=warps)


def measure(timer: Timer) -> dict[str, Any]:
    """Return the ceilings of this session: GB/s (1e9) and TFLOP/s, medians."""
    found: dict[str, Any] = {}
    best = _medians(timer, {"copy": copy_of(2 * STREAM_BYTES)})
    found["copy_gb_s"] = gb_per_s(2 * STREAM_BYTES, best["copy"])
    runs = {f"{loads}x{warps}": reader(STREAM_BYTES, loads, warps) for loads, warps in READS}
    found["read_gb_s"] = gb_per_s(STREAM_BYTES, min(_medians(timer, runs).values()))
    a, b = (torch.randn(MATRIX, MATRIX, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    product = _medians(timer, {"matmul": lambda: a @ b})["matmul"]
    found["matmul_tflop_s"] = tflop_per_s(2 * MATRIX**3, product)
    return found


def _medians(timer: Timer, runs: dict[str, Run]) -> dict[str, float]:
    medians = {}
    for name, times in interleaved(timer, runs).items():
        if isinstance(times, Exception):
            raise times
        medians[name] = quantiles(times)[1]
    return medians
