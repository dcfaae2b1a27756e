"""The roofline of one H200: a roof for each unit, and the kernels of the lab under theirs."""

from sitebuild.svg import circle, figure, line, log_scale, text
from snippets.gpu_model import shared_memory_rate
from snippets.hardware import fact
from snippets.roofline import attainable, bound, points, ridge_point
from snippets.roofs import peaks

DEVICE = "H200"
LEFT, RIGHT, TOP, BOTTOM = 40.0, 434.0, 30.0, 330.0
X = (0.05, 8000.0)  # FLOP/B
Y = (0.2, 9000.0)  # TFLOP/s
# where a name stands beside its point, dx, dy and the end of the text that is there, and what it is
BESIDE = {
    "decode, 1 head a KV head": (8.0, 12.0, "start", "decode, 1 head"),
    "decode, 8 heads a KV head": (8.0, 18.0, "start", "decode, 8 heads"),
    "attention, issued": (8.0, 20.0, "start", "attention, issued"),
    "GEMM 4096^3": (-6.0, -5.0, "end", "GEMM"),
    "attention, compulsory": (40.0, -44.0, "end", "attention, compulsory"),
}


def at(flop_per_byte: float, flops: float) -> tuple[float, float]:
    """Place of a point, in user units."""
    return log_scale(*X, LEFT, RIGHT, flop_per_byte), log_scale(*Y, BOTTOM, TOP, flops / 1e12)


def main() -> None:
    rate, shared = fact(DEVICE, "hbm_rate").value, shared_memory_rate(DEVICE)
    roofs = {name: peak for name, peak in peaks(DEVICE).items() if name != "exp unit"}
    highest = max(roofs.values())
    body = [text(6, 14, "TFLOP/s", classes="soft"), *axes()]
    for name, peak in roofs.items():
        corner, end = at(ridge_point(peak, rate), peak), at(X[1], peak)
        body.append(line(LEFT, corner[1], corner[0], corner[1], "line thin dashed faint"))
        body.append(line(*corner, *end, "line"))
        body.append(text(LEFT + 4, corner[1] - 3, f"{name} {peak / 1e12:.0f}", classes="ink"))
    for level, name, bandwidth in (("hbm", "HBM", rate), ("shared", "shared memory", shared)):
        low = max(X[0], Y[0] * 1e12 / bandwidth)
        start, end = at(low, low * bandwidth), at(highest / bandwidth, highest)
        body.append(line(*start, *end, f"stroke-{level}"))
        if level == "shared":
            body.append(text(end[0] + 4, end[1] - 5, name, "end"))
        else:  # on its slope: at the end it would read as the label of a roof
            x, y = at(70, 70 * bandwidth)
            body.append(text(x - 9, y, name, "end"))
    rows = []
    for name, x, roof in points():
        peak = roofs[roof]
        top = attainable(x, peak, rate)
        px, py = at(x, top)
        dx, dy, anchor, label = BESIDE.get(name, (8.0, 12.0, "start", name))
        if dy < -20:
            body.append(line(px, py, px, py + dy + 4, "line thin"))
        dot = "lvl-hbm" if top < peak else "ink"
        body.append(circle(px, py, 4, dot, f"{name}: {x:.2f} FLOP/B"))
        body.append(text(px + dx, py + dy, label, anchor))
        rows.append((name, f"{x:.2f}", roof, f"{top / 1e12:.1f}", bound(x, peak, rate)))
    print(
        figure(
            "roofline-h200",
            f"Roofline of one {DEVICE} with several roofs",
            "Both axes are logarithmic. Five flat roofs, two slopes for HBM and shared memory, and "
            "eight kernels: additions, decoding, naive and tile-issued attention lie on the slope "
            "of HBM; compulsory attention and a large matrix product lie on the bf16 roof.",
            BOTTOM + 40,
            body,
            ("Kernel", "FLOP/B", "Roof", "TFLOP/s", "Bound"),
            rows,
            f"One {DEVICE}, data-sheet rates, with the points of the lab. Vermilion points lie on "
            f"the slope of HBM, {rate / 1e12:.1f} TB/s; the others under the flat roof of their "
            f"unit. The slope of shared memory, {shared / 1e12:.0f} TB/s, is an estimate.",
        )
    )


def axes() -> list[str]:
    """Frame, ticks and the name of the horizontal axis."""
    body = [line(LEFT, BOTTOM, RIGHT, BOTTOM), line(LEFT, BOTTOM, LEFT, TOP)]
    for tick in (0.1, 1, 10, 100, 1000):
        x, _ = at(tick, Y[0] * 1e12)
        body += [
            line(x, BOTTOM, x, BOTTOM + 4),
            text(x, BOTTOM + 17, f"{tick:g}", "middle", "soft"),
        ]
    for tick in (1, 10, 100, 1000):
        _, y = at(X[0], tick * 1e12)
        body += [line(LEFT - 4, y, LEFT, y), text(LEFT - 7, y + 4, f"{tick:g}", "end", "soft")]
    body.append(text(RIGHT, BOTTOM + 34, "FLOP for each byte from HBM", "end", "soft"))
    return body


if __name__ == "__main__":
    main()
