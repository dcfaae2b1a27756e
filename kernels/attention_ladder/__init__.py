"""Attention forward in seven steps, each a file that a reader can compare with the one before.

A trial stands beside them, to be compared with the last step.

The steps take one length for queries and keys, head dims 64 and 128 and whole tiles; what they
refuse, `flash_attention` computes.
"""

from typing import Any

from kernels.attention_ladder import (
    step1_two_loops,
    step2_descriptors,
    step3_longest_first,
    step4_ring,
    step5_warpgroups,
    step6_overlap,
    step7_persistent,
    trial_late_wait,
)
from kernels.attention_reference import inputs as inputs
from kernels.attention_reference import reference as reference
from kernels.attention_reference import sizes
from kernels.attention_work import forward_work
from kernels.flash_attention import flash_attention
from kernels.work import Work

# Named as the result file names them: the steps, the trial, the kernel that the ladder leads to.
IMPLEMENTATIONS: dict[str, Any] = {
    "two-loops": step1_two_loops.forward,
    "descriptors": step2_descriptors.forward,
    "longest-first": step3_longest_first.forward,
    "ring": step4_ring.forward,
    "warpgroups": step5_warpgroups.forward,
    "overlap": step6_overlap.forward,
    "persistent": step7_persistent.forward,
    "late-wait": trial_late_wait.forward,
    "flash_attention": flash_attention,
}


def work(shape: dict[str, Any], itemsize: int, passes: str = "forward") -> Work:  # noqa: ARG001
    """Bytes and FLOPs of one call: 4 a visible pair and column of D; tiles of 128 by 128."""
    return forward_work(shape, itemsize, 128, 128)


SHAPES: dict[str, list[dict[str, Any]]] = {
    "test": [
        sizes(B, H, H, N, N, D, causal=causal)
        for B, H, N in ((2, 1, 256), (1, 2, 384))  # 384 is ragged for tiles of 192
        for D in (64, 128)
        for causal in (False, True)
    ],
    "bench": [
        sizes(32768 // N, 2048 // D, 2048 // D, N, N, D, causal=causal)
        for D in (64, 128)
        for N in (1024, 4096, 16384)
        for causal in (False, True)
    ],
}
