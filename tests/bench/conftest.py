"""A made-up result of a made-up device, small enough to compute every rendered value by hand."""

import copy
import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from kernels.bench import stale
from kernels.bench.store import result_path, write

if importlib.util.find_spec("torch"):
    import torch

    if not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"  # before any kernel is imported

SHAPE = {"B": 8, "H": 32, "H_KV": 32, "N_Q": 8192, "N_K": 8192, "D": 128, "causal": False}
CASE = {"pass": "forward", "dtype": "bf16", "shape": SHAPE}
WORK = {"model_bytes": 2_000_000_000, "issued_bytes": 9_000_000_000, "flops": 8_000_000_000_000}
TIMED = {"repetitions": 12, "graph": False, "session": 0}
RESULT: dict[str, Any] = {
    "format": 1,
    "kernel": "flash_attention",
    "run": {
        "date": "2031-02-03T04:05:06Z",
        "commit": "0123456789abcdef",
        "dirty": False,
        "command": "python -m kernels.bench flash_attention",
        "python": "3.12.3",
        "torch": "2.11.0",
        "triton": "3.6.0",
        "cuda": "13.0",
        "ptxas": None,
        "liger": None,
        "source_digest": "a" * 64,
        "left": 0,
    },
    "device": {
        "name": "NVIDIA H200",
        "driver": "580.1",
        "sm_count": 132,
        "l2_bytes": 62914560,
        "memory_bytes": 150000000000,
        "power_limit_w": 700.0,
    },
    "method": {
        "timer": "CUDA events",
        "warm_up": "until stable",
        "repetitions": "4 visits",
        "quantiles": [0.2, 0.5, 0.8],
        "l2": "cold",
        "flush_bytes": 536870912,
        "order": "A B C C B A",
        "inputs": "normal distribution",
        "graphs": "where the host is slow",
        "seed": 0,
    },
    "sessions": [
        {
            "date": "2031-02-03T04:05:06Z",
            "ceilings": {"copy_gb_s": 4000.0, "read_gb_s": 4400.0, "matmul_tflop_s": 800.0},
            "clocks": {
                "sm_mhz": {"min": 1500.0, "median": 1700.0, "max": 1980.0},
                "throttle_reasons": ["0x0000000000000004"],
            },
        }
    ],
    "exactness": [
        {"implementation": "ours", **CASE, "output": "out", "error": 0.002, "eager_error": 0.003,
         "tolerance": 0.008, "passed": True},
        {"implementation": "ours", **CASE, "output": "lse", "error": None, "eager_error": None,
         "tolerance": 0.1, "passed": False, "reason": "not finite where the reference is"},
    ],
    "rows": [
        {"implementation": "ours", **CASE, **WORK, **TIMED, "us": [12500.0, 16000.0, 20000.0]},
        {"implementation": "sdpa-cudnn", **CASE, **WORK, **TIMED, "issued_bytes": None,
         "us": [16000.0, 20000.0, 25000.0]},
        {"implementation": "eager", **CASE, **WORK, "session": 0, "error": "out of memory"},
    ],
    "counters": [
        {"implementation": "ours", **CASE, "model_bytes": 2_000_000_000,
         "issued_bytes": 9_000_000_000, "dram_read": 1_500_000_000, "dram_write": 480_000_000,
         "l2_bytes": 7_000_000_000, "kernels": 1},
    ],
    "uncounted": [{"implementation": "eager", **CASE, "reason": "out of memory"}],
    "launches": [
        {"implementation": "ours", **CASE, "us": [39.0, 40.0, 41.0], "graph_us": [7.0, 8.0, 9.0]},
    ],
}  # fmt: skip


@pytest.fixture
def result() -> dict[str, Any]:
    return copy.deepcopy(RESULT)


@pytest.fixture
def folder(tmp_path: Path, result: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one fresh result."""
    monkeypatch.setattr(stale, "source_digest", lambda _module: "a" * 64)
    write(result_path(tmp_path, result["kernel"], result["device"]["name"]), result)
    return tmp_path
