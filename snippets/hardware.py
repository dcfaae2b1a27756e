"""The one table of devices: every value with its unit and its source.

What to notice: vendors print Hopper and Blackwell tensor rates *with* 2:4 sparsity; a roofline
for ordinary matrices needs the dense rate, which is half.

Run it: `python -m snippets.hardware`
"""

from typing import NamedTuple


class Fact(NamedTuple):
    value: float
    unit: str
    source: str  # a key of docs/reference/sources.md


DEVICES = ("A100-40", "A100-80", "H100", "H200", "B200")  # SXM parts
# --8<-- [start:table]
TUNING_GUIDES = "ampere-tuning ampere-tuning hopper-tuning hopper-tuning blackwell-tuning"
DATA_SHEETS = "nvidia-a100 nvidia-a100 nvidia-h100 nvidia-h200 nvidia-dgx-b200"
BOOK, PEAK_FLOPS, GUIDE = (f" {key}" * 5 for key in ("scaling-book", "peak-flops", "cuda-guide"))
TABLE = f"""
sms              count   108      108      132      132      148      | {BOOK}
registers_per_sm B       262144   262144   262144   262144   262144   | {TUNING_GUIDES}
shared_per_sm    B       167936   167936   233472   233472   233472   | {TUNING_GUIDES}
shared_per_block B       166912   166912   232448   232448   232448   | {TUNING_GUIDES}
shared_per_clock B/clk   128      128      128      128      128      | {BOOK}
l2               B       40e6     40e6     50e6     50e6     126e6    | {BOOK}
hbm              B       40e9     80e9     80e9     141e9    180e9    | {DATA_SHEETS}
hbm_rate         B/s     1.555e12 2.039e12 3.35e12  4.8e12   8.0e12   | {DATA_SHEETS}
tensor_per_clock FLOP/clk 2048    2048     4096     4096     8192     | {BOOK}
exp_per_clock    exp/clk  16       16       16       16       16       | {GUIDE}
warp_slots       count    64       64       64       64       64       | {TUNING_GUIDES}
max_registers    count    255      255      255      255      255      | {GUIDE}
clock            Hz      1.41e9   1.41e9   1.83e9   1.83e9   1.85e9   | {PEAK_FLOPS}
bf16_dense       FLOP/s  312e12   312e12   989.4e12 989.4e12 2250e12  | {DATA_SHEETS}
bf16_sparse      FLOP/s  624e12   624e12   1979e12  1979e12  4500e12  | {DATA_SHEETS}
fp8_dense        FLOP/s  -        -        1979e12  1979e12  4500e12  | {DATA_SHEETS}
fp8_sparse       FLOP/s  -        -        3958e12  3958e12  9000e12  | {DATA_SHEETS}
tf32_dense       FLOP/s  156e12   156e12   494.7e12 494.7e12 1125e12  | {DATA_SHEETS}
tf32_sparse      FLOP/s  312e12   312e12   989.4e12 989.4e12 2250e12  | {DATA_SHEETS}
fp32_dense       FLOP/s  19.5e12  19.5e12  66.9e12  66.9e12  75e12    | {DATA_SHEETS}
"""
# --8<-- [end:table]


FACTS: dict[tuple[str, str], Fact] = {}
for row in TABLE.strip().splitlines():
    left, right = row.split("|")
    quantity, unit, *values = left.split()
    for device, value, source in zip(DEVICES, values, right.split(), strict=True):
        if value != "-":
            FACTS[device, quantity] = Fact(float(value), unit, source)


# --8<-- [start:fact]
def fact(device: str, quantity: str) -> Fact:
    """Return one value with its unit and source. Raises ValueError for an unknown name."""
    if device not in DEVICES:
        raise ValueError(f"unknown device {device!r}; allowed: {', '.join(DEVICES)}")
    if (device, quantity) not in FACTS:
        allowed = [name for owner, name in FACTS if owner == device]
        raise ValueError(f"no {quantity!r} for {device}; allowed: {', '.join(allowed)}")
    return FACTS[device, quantity]


def dense_peak(device: str, dtype: str) -> float:
    """Return the FLOP/s a roofline may use. A sparse rate is refused: no dense kernel gets it."""
    if "sparse" in str(dtype):
        raise ValueError(f"a roofline takes a dense peak, got {dtype!r}; allowed: bf16, fp8, ...")
    return fact(device, f"{dtype}_dense").value


def ridge(device: str, dtype: str = "bf16") -> float:
    """Return the FLOP a kernel must do per HBM byte before arithmetic, not memory, limits it."""
    return dense_peak(device, dtype) / fact(device, "hbm_rate").value


# --8<-- [end:fact]


def main() -> None:
    for device in DEVICES:
        dense, sparse = dense_peak(device, "bf16"), fact(device, "bf16_sparse").value
        print(f"{device:8} bf16 dense {dense / 1e12:7.1f}  sparse {sparse / 1e12:7.1f} TFLOP/s")


if __name__ == "__main__":
    main()
