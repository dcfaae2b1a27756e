"""The online-softmax rule over the splits of `flash_decode`: partial results become one."""

import triton
import triton.language as tl

from kernels.attention_tiles import LN_2, LOG2_E


# --8<-- [start:merge]
@triton.jit(do_not_specialize=["rows", "splits"])
def merge_splits_kernel(
    part_ptr, part_lse_ptr, out_ptr, lse_ptr,  # (splits, rows, D) and (splits, rows) -> (rows, D)
    rows, splits,
    D: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Merge the splits of one row: each weighs exp(lse of the split - lse of the row)."""
    row = tl.program_id(0).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D)
    running_max = -float("inf")
    running_sum = 0.0
    acc = tl.zeros((BLOCK_D,), tl.float32)
    for start in range(0, splits, BLOCK_S):
        split = start + tl.arange(0, BLOCK_S)
        source = split.to(tl.int64) * rows + row
        lse = tl.load(part_lse_ptr + source, mask=split < splits, other=-float("inf")) * LOG2_E
        mask = (split < splits)[:, None] & (offs_d < D)[None, :]
        part = tl.load(part_ptr + source[:, None] * D + offs_d[None, :], mask=mask, other=0.0)
        new_max = tl.maximum(running_max, tl.max(lse, 0))
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        weight = tl.exp2(lse - shift)
        correction = tl.exp2(running_max - shift)
        acc = acc * correction + tl.sum(weight[:, None] * part, 0)
        running_sum = running_sum * correction + tl.sum(weight, 0)
        running_max = new_max
    total = tl.where(running_sum == 0.0, 1.0, running_sum)
    out = (acc / total).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + row * D + offs_d, out, mask=offs_d < D)
    tl.store(lse_ptr + row, (running_max + tl.log2(total)) * LN_2)


# --8<-- [end:merge]
