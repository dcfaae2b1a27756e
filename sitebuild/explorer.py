"""The explorer of attention's traffic: what its form may choose, and a table of standard shapes.

Device figures come from the hardware table and captured points from the result files while the
site is built; the page's script gets both as data. The table is what stands there without it.
"""

import json
import re
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from kernels.bench.rates import PEAK_OF, tflop_per_s
from sitebuild.kernel_results import RESULTS, mark, moment, results, table
from snippets.hardware import DEVICES, FACTS, dense_peak, fact
from snippets.hbm_traffic import attention_flops, compulsory_bytes, issued_bytes, naive_bytes
from snippets.roofline import attainable, bound, intensity, ridge_point

STEM = "flash_attention"
ITEMSIZE = {"bf16": 2, "fp16": 2, "fp8": 1, "tf32": 4, "fp32": 4}  # bytes of one element in HBM
# within these the counts of one head stay below 2^53, where a browser's numbers are exact
LIMITS = {"B": 65_536, "H": 1024, "N": 2**20, "d": 1024, "Br": 1024}
START: dict[str, str | int] = {
    "device": "H200",
    "dtype": "bf16",
    "B": 1,
    "H": 1,
    "N": 4096,
    "d": 64,
    "Br": 128,
}
ONE_HEAD = [(N, d) for d in (64, 128) for N in (1024, 4096, 16384)]
PRESETS = [*((1, 1, N, d) for N, d in ONE_HEAD), (4, 16, 4096, 64), (1, 32, 131_072, 128)]


class Count(NamedTuple):
    """One way of counting the bytes of attention, and what the roofline makes of it."""

    name: str
    bytes: int
    intensity: float  # FLOP/B
    bound: str
    attainable: float  # FLOP/s
    seconds: float  # at least


def dtypes(device: str) -> dict[str, float]:
    """Return the dense FLOP/s of a device for each data type that it has."""
    rates = {dtype: PEAK_OF.get(dtype, dtype) for dtype in ITEMSIZE}
    return {
        dtype: dense_peak(device, rate)
        for dtype, rate in rates.items()
        if (device, f"{rate}_dense") in FACTS
    }


def explore(device: str, dtype: str, B: int, H: int, N: int, d: int, Br: int) -> list[Count]:
    """Count the bytes of B x H heads in three ways, by the labs' functions."""
    e, rate, peak = ITEMSIZE[dtype], fact(device, "hbm_rate").value, dtypes(device)[dtype]
    flops = B * H * attention_flops(N, d)
    a_head = {
        "naive": naive_bytes(N, d, e),
        "tile-issued": issued_bytes(N, d, Br, e),
        "compulsory": compulsory_bytes(N, d, e),
    }
    found = []
    for name, count in a_head.items():
        x = intensity(flops, B * H * count)
        top = attainable(x, peak, rate)
        found.append(Count(name, B * H * count, x, bound(x, peak, rate), top, flops / top))
    return found


def captured(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Return for each result of attention its device, stale mark, origin and points."""
    return [
        {
            "device": row_of(result["device"]),
            "mark": mark([result]),
            "origin": f"Captured on {result['device']['name']}, {moment(result)}.",
            "points": [_point(row) for row in result["rows"] if _has_place(row)],
        }
        for result in results(STEM, folder)
    ]


def row_of(device: dict[str, Any]) -> str | None:
    """Return the name that a device has in the hardware table, or None; the table has SXM parts."""
    words, memory = re.findall(r"\w+", device["name"].upper()), device["memory_bytes"]
    names = [name for name in DEVICES if name.split("-")[0] in words]
    if not {"PCIE", "NVL"}.isdisjoint(words):
        return None
    # two rows of one name differ in their memory
    return min(names, key=lambda name: abs(fact(name, "hbm").value - memory), default=None)


def _has_place(row: dict[str, Any]) -> bool:
    """Say whether a row is one that the form can name: forward, without mask, heads alike."""
    shape = row["shape"]
    plain = {"B", "H", "H_KV", "N_Q", "N_K", "D"} | {name for name in shape if not shape[name]}
    alike = (shape["H"], shape["N_Q"]) == (shape["H_KV"], shape["N_K"])
    timed = row["pass"] == "forward" and "us" in row and row["dtype"] in ITEMSIZE
    return timed and alike and set(shape) <= plain


def _point(row: dict[str, Any]) -> list[Any]:
    """Return implementation, data type, B, H, N, d, FLOP for each byte of its model, TFLOP/s."""
    sizes = [row["shape"][name] for name in ("B", "H", "N_Q", "D")]
    rate = tflop_per_s(row["flops"], row["us"][1])
    return [row["implementation"], row["dtype"], *sizes, row["flops"] / row["model_bytes"], rate]


def form(folder: Path = RESULTS) -> str:
    """Return the place of the form, with all that the page's script knows as its data."""
    chosen = {
        "devices": {
            device: {
                "rate": fact(device, "hbm_rate").value,
                "peaks": dtypes(device),
                "registers": fact(device, "registers_per_sm").value,
            }
            for device in DEVICES
        },
        "itemsize": ITEMSIZE,
        "limits": LIMITS,
        "start": START,
        "presets": PRESETS,
        "captured": captured(folder),
    }
    as_attribute = escape(json.dumps(chosen, separators=(",", ":")), quote=False)
    return (
        '<div class="explorer" data-feature="explorer" data-explorer=\''
        + as_attribute.replace("'", "&#x27;")
        + "'><p>With JavaScript, and served by a web server, a form stands here: it recomputes "
        "the table of standard shapes for any device, data type, shape and tile, and draws its "
        "roofline with the captured kernels.</p></div>"
    )


def standard_shapes() -> str:
    """Return a table of standard shapes on the device that the form starts with."""
    device, dtype, tile = str(START["device"]), str(START["dtype"]), int(START["Br"])
    head = ["N, d", "Bytes", "MB", "FLOP/B", "Bound", "TFLOP/s", "us"]
    rows = [
        [
            f"{N:,}, {d}".replace(" ", "\N{NO-BREAK SPACE}"),
            count.name,
            f"{count.bytes / 1e6:,.2f}",
            f"{count.intensity:,.1f}",
            count.bound.removesuffix("-bound"),
            f"{count.attainable / 1e12:,.1f}",
            f"{count.seconds * 1e6:,.1f}",
        ]
        for N, d in ONE_HEAD
        for count in explore(device, dtype, 1, 1, N, d, tile)
    ]
    ridge = ridge_point(dtypes(device)[dtype], fact(device, "hbm_rate").value)
    return (
        f"One head on an {device}, {dtype}, query tiles of {tile}. The ridge lies at {ridge:.1f} "
        "FLOP/B; TFLOP/s are what can be reached at most, us what it takes at least.\n\n"
        + table(head, rows)
    )
