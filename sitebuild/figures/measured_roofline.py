"""Captured kernels as points under the roofs of their device: the data sheet's and the run's own.

A page calls `chart(stem)` for one kernel; run as a module it draws all kernels together.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from kernels.bench.rates import data_sheet, peak_flops, tflop_per_s
from sitebuild.figures.kernel_speed import picked
from sitebuild.kernel_results import (
    ABSENT,
    RESULTS,
    STEMS,
    Result,
    Row,
    anchor,
    best_case,
    device,
    is_ours,
    label,
    mark,
    moment,
    rates,
    results,
)
from sitebuild.svg import circle, figure, line, log_scale, text

LEFT, RIGHT, TOP, BOTTOM = 44.0, 430.0, 30.0, 300.0
X = (0.1, 20_000.0)  # FLOP/B
Y = (0.3, 2_000.0)  # TFLOP/s
PASSING = "A share may pass 100%: a copy also writes, and clocks differ between runs."


class Point(NamedTuple):
    """One captured case in the plane of a roofline."""

    name: str  # beside the point; empty where only the table names it
    case: str
    intensity: float  # FLOP for each compulsory byte
    tflop_s: float
    share: float  # of the run's own roof over it


def chart(stem: str, folder: Path = RESULTS) -> str:
    """Return one roofline for each device with the largest cases of one kernel."""
    drawn = []
    for found in results(stem, folder):
        timed = [r for r in found["rows"] if r["implementation"] == "ours" and "us" in r]
        timed = [r for r in timed if (r["pass"], r["dtype"]) == ("forward", "bf16")]
        shapes = picked(timed)
        points = [point_of(found, row) for row in timed if row["shape"] in shapes]
        drawn.append(draw([found], points, stem))
    return "\n\n".join(drawn) or ABSENT


def point_of(result: Result, row: Row, name: str = "") -> Point:
    """Return where a timed row stands under the roofs of its own session."""
    ceilings = result["sessions"][row["session"]]["ceilings"]
    intensity, rate = row["flops"] / row["model_bytes"], tflop_per_s(row["flops"], row["us"][1])
    roof = min(ceilings["matmul_tflop_s"], intensity * ceilings["copy_gb_s"] / 1e3)
    case = f"{result['kernel']} {label(row['shape'])}"
    return Point(name, case, intensity, rate, rate / roof)


def draw(found: Sequence[Result], points: Sequence[Point], name: str) -> str:
    """Return one roofline of the results of one device."""
    copy, product = roofs(found)
    rate, peak = data_sheet(device(found[0]), "hbm_rate"), peak_flops(device(found[0]), "bf16")
    body = [text(6, 14, "TFLOP/s", classes="soft"), *_axes()]
    if rate and peak:
        body += _roof(rate / 1e12, peak / 1e12, "line thin dashed", "stroke-hbm dashed")
        x, y = at(peak / rate, peak / 1e12)
        body += [line(x, y, x, BOTTOM, "line thin dashed faint")]
        body += [text(x + 5, BOTTOM - 8, f"ridge {peak / rate:.0f}", classes="soft")]
    body += _roof(copy / 1e3, product, "line", "stroke-hbm")
    x, y = at(product * 1e3 / copy, product)
    body.append(text(x - 16, y + 4, f"bf16 product {product:.0f}", "end"))
    x, y = at(12, 12 * copy / 1e3)
    body.append(text(x - 8, y, f"copy {copy:,.0f} GB/s", "end"))
    crowd = y = at(1, product)[1] + 22
    for point in points:
        px, py = at(point.intensity, point.tflop_s)
        tip = f"{point.case}: {point.intensity:,.1f} FLOP/B, {point.tflop_s:,.1f} TFLOP/s"
        body.append(circle(px, py, 4, "ink", tip))
        if point.name and point.intensity < 100:
            body.append(text(px + 8, py + 12, point.name))
        elif point.name:  # these crowd at the right end: one name below the other
            crowd += 15
            body.append(text(RIGHT, crowd, point.name, "end"))
    measured = ", ".join(dict.fromkeys(moment(result) for result in found))
    return figure(
        f"measured-roofline-{name.replace('_', '-')}-{anchor(found[0])}",
        f"Captured kernels on the roofline of {device(found[0])}",
        "Both axes are logarithmic. A slope for HBM and a flat roof for the matrix product, the "
        "fastest that these runs measured; dashed lines above them are the data sheet's. Each "
        "captured case is a point, near a roof or below; one that hardly writes can lie above.",
        BOTTOM + 40,
        body,
        ("Case", "FLOP for each compulsory byte", "TFLOP/s", "Of its own run's roof"),
        [(p.case, f"{p.intensity:,.1f}", f"{p.tflop_s:,.1f}", f"{p.share:.0%}") for p in points],
        f"{device(found[0])}, forward, bf16, {measured}. Solid roofs: the fastest copy and the "
        "fastest matrix product of a library in these runs; dashed: data sheet, whose two roofs "
        "meet at the ridge. In the table a share is of the ceiling in the case's own run. "
        f"{PASSING}",
        mark(found),
    )


def roofs(found: Sequence[Result]) -> tuple[float, float]:
    """Return the fastest copy in GB/s and the fastest bf16 product of a library in TFLOP/s.

    Cases are timed beside copies and products of their own, which may beat the session's ceiling.
    """
    ceilings = [session["ceilings"] for result in found for session in result["sessions"]]
    rows = [(result["kernel"], row) for result in found for row in result["rows"] if "us" in row]
    copies = [rates(row, False)[0] for _, row in rows if row["implementation"] == "copy"]
    products = [
        rates(row, True)[0]
        for kernel, row in rows
        if (kernel, row["dtype"]) == ("matmul", "bf16") and not is_ours(row["implementation"])
    ]
    return (
        max([float(x["copy_gb_s"]) for x in ceilings] + copies),
        max([float(x["matmul_tflop_s"]) for x in ceilings] + products),
    )


def at(flop_per_byte: float, tflops: float) -> tuple[float, float]:
    return log_scale(*X, LEFT, RIGHT, flop_per_byte), log_scale(*Y, BOTTOM, TOP, tflops)


def _roof(tb_s: float, tflops: float, flat: str, slope: str) -> list[str]:
    low = max(X[0], Y[0] / tb_s)
    corner = at(tflops / tb_s, tflops)
    start, end = at(low, low * tb_s), at(X[1], tflops)
    return [line(*start, *corner, slope), line(*corner, *end, flat)]


def _axes() -> list[str]:
    body = [line(LEFT, BOTTOM, RIGHT, BOTTOM), line(LEFT, BOTTOM, LEFT, TOP)]
    for tick in (0.1, 1, 10, 100, 1000, 10_000):
        x, _ = at(tick, Y[0])
        body += [
            line(x, BOTTOM, x, BOTTOM + 4),
            text(x, BOTTOM + 17, f"{tick:,g}", "middle", "soft"),
        ]
    for tick in (1, 10, 100, 1000):
        _, y = at(X[0], tick)
        body += [line(LEFT - 4, y, LEFT, y), text(LEFT - 7, y + 4, f"{tick:,g}", "end", "soft")]
    body.append(text(RIGHT, BOTTOM + 34, "FLOP for each compulsory byte", "end", "soft"))
    return body


def by_device(folder: Path = RESULTS) -> list[list[Result]]:
    """Return the results of all kernels, those of one device together."""
    devices: dict[str, list[Result]] = {}
    for stem in STEMS:
        for result in results(stem, folder):
            devices.setdefault(device(result), []).append(result)
    return list(devices.values())


def main() -> None:
    drawn = []
    for found in by_device():
        largest = [(result, best_case(result)) for result in found]
        points = [point_of(result, row, result["kernel"]) for result, row in largest if row]
        drawn.append(draw(found, points, "all"))
    print("\n\n".join(drawn) or ABSENT)


if __name__ == "__main__":
    main()
