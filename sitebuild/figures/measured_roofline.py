"""Captured kernels as points under the roofs of their device: the data sheet's and the run's own.

A page calls `chart(stem)` for one kernel; run as a module it draws all kernels together.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernels.bench.rates import data_sheet, peak_flops, tflop_per_s
from sitebuild.figures.kernel_speed import picked
from sitebuild.kernel_results import ABSENT, RESULTS, STEMS, best_case, label, results
from sitebuild.svg import circle, figure, line, log_scale, text

LEFT, RIGHT, TOP, BOTTOM = 44.0, 430.0, 30.0, 300.0
X = (0.1, 20_000.0)  # FLOP/B
Y = (0.3, 2_000.0)  # TFLOP/s
Result = dict[str, Any]


def chart(stem: str, folder: Path = RESULTS) -> str:
    """Return one roofline for each device with the largest cases of one kernel."""
    return "\n\n".join(draw([found], stem) for found in results(stem, folder)) or ABSENT


def at(flop_per_byte: float, tflops: float) -> tuple[float, float]:
    return log_scale(*X, LEFT, RIGHT, flop_per_byte), log_scale(*Y, BOTTOM, TOP, tflops)


def points(result: Result, all_cases: bool) -> list[tuple[str, float, float]]:
    """Return name, FLOP for each compulsory byte and TFLOP/s of what is drawn of one kernel."""
    ours = [r for r in result["rows"] if r["implementation"] == "ours" and "us" in r]
    ours = [r for r in ours if (r["pass"], r["dtype"]) == ("forward", "bf16") and r["flops"]]
    best = best_case(result)
    shapes = picked(ours) if all_cases else [best["shape"]] if best else []
    return [
        (
            f"{result['kernel']} {label(row['shape'])}",
            row["flops"] / row["model_bytes"],
            tflop_per_s(row["flops"], row["us"][1]),
        )
        for row in ours
        if row["shape"] in shapes
    ]


def draw(found: Sequence[Result], name: str) -> str:
    """Return one roofline of the results of one device."""
    device, ceilings = found[0]["device"]["name"], found[0]["sessions"][-1]["ceilings"]
    body = [text(6, 14, "TFLOP/s", classes="soft"), *_axes()]
    rate, peak = data_sheet(device, "hbm_rate"), peak_flops(device, "bf16")
    if rate and peak:
        body += _roof(rate / 1e12, peak / 1e12, "line thin dashed", "stroke-hbm dashed")
    measured = ceilings["matmul_tflop_s"]
    body += _roof(ceilings["copy_gb_s"] / 1e3, measured, "line", "stroke-hbm")
    roof = at(1, measured)[1]
    body.append(
        text(
            at(ceilings["matmul_tflop_s"] * 1e3 / ceilings["copy_gb_s"], 1)[0] - 8,
            roof + 4,
            f"bf16 product {measured:.0f}",
            "end",
        )
    )
    data, under_the_roof = [], 0
    for result in found:
        for label_, x, y in points(result, len(found) == 1):
            px, py = at(x, y)
            body.append(circle(px, py, 4, "ink", f"{label_}: {x:,.1f} FLOP/B, {y:,.1f} TFLOP/s"))
            if len(found) > 1 and x < 100:
                body.append(text(px + 8, py + 12, result["kernel"]))
            elif len(found) > 1:  # these crowd at the right end: one name below the other
                under_the_roof += 1
                body.append(text(RIGHT, roof + 22 + 15 * under_the_roof, result["kernel"], "end"))
            data.append((label_, f"{x:,.1f}", f"{y:,.1f}"))
    run = found[0]["run"]
    return figure(
        f"measured-roofline-{name.replace('_', '-')}-{device.lower().replace(' ', '-')}",
        f"Captured kernels on the roofline of {device}",
        "Both axes are logarithmic. A slope for HBM and a flat roof for the matrix product, as "
        "measured in the same run; dashed lines above them are the data sheet's. Each captured "
        "case is a point below the roofs.",
        BOTTOM + 40,
        body,
        ("Case", "FLOP for each compulsory byte", "TFLOP/s"),
        data,
        f"{device}, forward, bf16, captured {run['date'][:10]}: FLOP for each compulsory byte. "
        f"Solid roofs: copy at {ceilings['copy_gb_s']:,.0f} GB/s and matrix product of the run; "
        "dashed: data sheet.",
    )


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
        body += [line(LEFT - 4, y, LEFT, y), text(LEFT - 7, y + 4, f"{tick:g}", "end", "soft")]
    body.append(text(RIGHT, BOTTOM + 34, "FLOP for each compulsory byte", "end", "soft"))
    return body


def main() -> None:
    devices: dict[str, list[Result]] = {}
    for stem in STEMS:
        for result in results(stem):
            devices.setdefault(result["device"]["name"], []).append(result)
    print("\n\n".join(draw(found, "all") for found in devices.values()) or ABSENT)


if __name__ == "__main__":
    main()
