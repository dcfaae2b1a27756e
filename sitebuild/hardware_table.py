"""The hardware page's tables, printed as Markdown from `snippets.hardware`.

Every value stands with its unit, whether it counts 2:4 sparsity, and the source it has in the
table; a quantity that no group below names is an error, so that none is left out in silence.
"""

from sitebuild.references import sources
from snippets.gpu_model import on_chip_bytes, shared_memory_rate
from snippets.hardware import DEVICES, FACTS, fact, ridge

Unit = tuple[str, float, int]  # its name, what one of it is worth, digits after the point
Rows = dict[str, tuple[str, Unit]]  # quantity -> label and unit

KIB, MB, GB = ("KiB", 1024.0, 0), ("MB", 1e6, 0), ("GB", 1e9, 0)
TB_S, TFLOP_S = ("TB/s", 1e12, 3), ("TFLOP/s", 1e12, 1)
GHZ, COUNT = ("GHz", 1e9, 2), ("count", 1.0, 0)
B_CLK, FLOP_CLK, EXP_CLK = ("B/clk", 1.0, 0), ("FLOP/clk", 1.0, 0), ("exp/clk", 1.0, 0)
DENSE, SPARSE = ", dense", ", with 2:4 sparsity"
GROUPS: dict[str, Rows] = {
    "On each SM": {
        "registers_per_sm": ("Registers", KIB),
        "shared_per_sm": ("Shared memory, at most", KIB),
        "shared_per_block": ("Shared memory of one program, at most", KIB),
        "shared_per_clock": ("Shared memory, rate", B_CLK),
        "tensor_per_clock": (f"Tensor cores, rate in bf16{DENSE}", FLOP_CLK),
        "exp_per_clock": ("Exponentials, rate", EXP_CLK),
        "warp_slots": ("Warps it can hold", COUNT),
        "max_registers": ("Registers that one thread can name", COUNT),
    },
    "The whole device": {
        "sms": ("SMs", COUNT),
        "clock": ("Clock of the quoted tensor rate", GHZ),
        "l2": ("L2 cache", MB),
        "hbm": ("HBM", GB),
        "hbm_rate": ("HBM bandwidth", TB_S),
    },
    "Peak arithmetic": {
        "bf16_dense": (f"bf16{DENSE}", TFLOP_S),
        "bf16_sparse": (f"bf16{SPARSE}", TFLOP_S),
        "fp8_dense": (f"fp8{DENSE}", TFLOP_S),
        "fp8_sparse": (f"fp8{SPARSE}", TFLOP_S),
        "tf32_dense": (f"tf32{DENSE}", TFLOP_S),
        "tf32_sparse": (f"tf32{SPARSE}", TFLOP_S),
        "fp32_dense": (f"fp32{DENSE}, outside the tensor cores", TFLOP_S),
    },
}
STORED_IN = {"KiB": "B", "MB": "B", "GB": "B", "GHz": "Hz", "TB/s": "B/s", "TFLOP/s": "FLOP/s"}


def shown(device: str, quantity: str, unit: Unit) -> str:
    """Return one value in the unit of its row, or a dash where the device has none."""
    if (device, quantity) not in FACTS:
        return "–"
    name, worth, digits = unit
    value = fact(device, quantity)
    if value.unit != STORED_IN.get(name, name):
        raise ValueError(f"{quantity} is stored in {value.unit} and cannot be shown in {name}")
    text = f"{value.value / worth:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def source_lines(rows: Rows) -> list[str]:
    """Return one list item for each set of sources: the rows it holds for, a link for each."""
    labels_of: dict[str, list[str]] = {}
    for quantity, (label, _) in rows.items():
        owners: dict[str, list[str]] = {}
        for device in DEVICES:
            if (device, quantity) in FACTS:
                owners.setdefault(fact(device, quantity).source, []).append(device)
        links = [f"{link(key)} for {', '.join(devices)}" for key, devices in owners.items()]
        everything = "; ".join(links) if len(owners) > 1 else link(*owners)
        labels_of.setdefault(everything, []).append(label)
    return [f"- {'; '.join(labels)}: {links}" for links, labels in labels_of.items()]


def link(key: str) -> str:
    """Return a link to a source of docs/reference/sources.md; an unknown key is a KeyError."""
    return f"[{sources()[key][0]}][{key}]"


def markdown_table(rows: list[tuple[str, ...]]) -> list[str]:
    """Return a table with the devices as columns; a row is its label, its unit and the values."""
    lines = [f"| Quantity | {' | '.join(DEVICES)} |", f"| --- |{' --: |' * len(DEVICES)}"]
    return lines + [f"| {label} ({unit}) | {' | '.join(cells)} |" for label, unit, *cells in rows]


def derived() -> list[tuple[str, ...]]:
    """Return the rows that the course computes from the tables above."""
    on_chip = {"Registers, all SMs": "registers_per_sm", "Shared memory, all SMs": "shared_per_sm"}
    rows = [
        (label, "MiB", *(f"{on_chip_bytes(device, per_sm) / 2**20:.1f}" for device in DEVICES))
        for label, per_sm in on_chip.items()
    ]
    rates = [shared_memory_rate(device) for device in DEVICES]
    hbm = [fact(device, "hbm_rate").value for device in DEVICES]
    rows.append(("Shared memory, all SMs, estimate", "TB/s", *(f"{r / 1e12:.1f}" for r in rates)))
    ratios = [f"{r / h:.1f}" for r, h in zip(rates, hbm, strict=True)]
    rows.append(("The same over HBM's, estimate", "ratio", *ratios))
    for dtype in ("bf16", "fp8", "tf32", "fp32"):
        owners = [device for device in DEVICES if (device, f"{dtype}_dense") in FACTS]
        ridges = {device: f"{ridge(device, dtype):.1f}" for device in owners}
        cells = [ridges.get(device, "–") for device in DEVICES]
        rows.append((f"Ridge, {dtype}{DENSE}", "FLOP/B", *cells))
    return rows


def main() -> None:
    named = {quantity for rows in GROUPS.values() for quantity in rows}
    if missing := {quantity for _, quantity in FACTS} - named:
        raise ValueError(f"no group shows {', '.join(sorted(missing))}")
    for heading, rows in GROUPS.items():
        cells = [
            (label, unit[0], *(shown(device, quantity, unit) for device in DEVICES))
            for quantity, (label, unit) in rows.items()
        ]
        anchor = heading.lower().replace(" ", "-")  # fixed, whatever else the page runs
        print("\n".join([f"## {heading} {{#{anchor}}}", "", *markdown_table(cells), ""]))
        print("\n".join(["Sources:", "", *source_lines(rows), ""]))
    print("\n".join(["## Computed from these {#computed}", "", *markdown_table(derived())]))


if __name__ == "__main__":
    main()
