"""The four levels of memory of one H200, areas true to capacity, bars true to bandwidth."""

from math import sqrt

from sitebuild.svg import figure, line, rect, text
from snippets.gpu_model import on_chip_bytes, shared_memory_rate
from snippets.hardware import fact

DEVICE = "H200"
HBM_SIDE = 196.0  # user units for the side of the HBM square
ZOOM = 16.0
WIDTH_PER_TB_S = 3.6  # user units of bar for one TB/s


def shown(level: str, size: float) -> str:
    """Registers and shared memory count in powers of two, as in the lab; L2 in MB."""
    return f"{size / 1e6:.0f} MB" if level == "l2" else f"{size / 2**20:.1f} MiB"


def main() -> None:
    hbm = fact(DEVICE, "hbm").value
    levels = [
        ("registers", "Registers", on_chip_bytes(DEVICE, "registers_per_sm"), None),
        (
            "shared",
            "Shared memory",
            on_chip_bytes(DEVICE, "shared_per_sm"),
            shared_memory_rate(DEVICE),
        ),
        ("l2", "L2 cache", fact(DEVICE, "l2").value, None),
    ]
    hbm_rate = fact(DEVICE, "hbm_rate").value
    x0, y0 = 6.0, 26.0
    body = [
        text(x0, 16, "HBM", classes="ink strong"),
        rect(x0, y0, HBM_SIDE, HBM_SIDE, "lvl-hbm"),
        text(x0 + 10, y0 + 24, f"{hbm / 1e9:.0f} GB", classes="on-level strong"),
        text(250, 16, "On the chip", classes="ink strong"),
    ]
    y, tiny = y0, y0 + 60.0
    for level, label, size, rate in levels:
        side = HBM_SIDE * sqrt(size / hbm)
        body.append(rect(214, tiny, side, side, f"lvl-{level}", rx=0))
        tiny += side + 2
        big = side * ZOOM
        body.append(rect(256, y, big, big, f"lvl-{level}", f"{label}: {shown(level, size)}"))
        body.append(text(326, y + 18, label, classes="ink strong"))
        body.append(text(326, y + 33, shown(level, size)))
        if rate:
            body.append(text(326, y + 48, f"~{rate / 1e12:.0f} TB/s", classes="ink"))
        y += big + 12
    body += [
        line(222, y0 + 60, 252, y0, "line thin"),
        line(222, tiny, 252, y - 12, "line thin"),
        text(232, tiny + 46, f"x{ZOOM:.0f}", "end", "soft"),
    ]
    top = y0 + HBM_SIDE + 34
    body.append(text(x0, top, "Bytes each second", classes="ink strong"))
    rows = [("hbm", "HBM", hbm_rate), ("shared", "Shared memory", shared_memory_rate(DEVICE))]
    for index, (level, label, rate) in enumerate(rows):
        bar = top + 12 + 26 * index
        body.append(text(x0, bar + 13, label))
        width = rate / 1e12 * WIDTH_PER_TB_S
        body.append(rect(x0 + 100, bar, width, 18, f"lvl-{level}", f"{rate / 1e12:.1f} TB/s"))
        body.append(text(x0 + 108 + width, bar + 13, f"{rate / 1e12:.1f} TB/s"))
    print(
        figure(
            "memory-hierarchy",
            f"The levels of memory of one {DEVICE}",
            "A large square for HBM beside three tiny squares for L2, shared memory and registers, "
            "which are shown again enlarged; below, bars compare the bandwidth of HBM with that "
            "of shared memory.",
            top + 66,
            body,
            ("Level", "Size", "TB/s"),
            [
                *(
                    (label, shown(level, size), f"{rate / 1e12:.1f} *" if rate else "–")
                    for level, label, size, rate in levels
                ),
                ("HBM", f"{hbm / 1e9:.0f} GB", f"{hbm_rate / 1e12:.1f}"),
            ],
            f"One {DEVICE}. Areas are true to scale: all memory on the chip together is the three "
            f"specks beside HBM, drawn again {ZOOM:.0f} times as wide. Shared memory's rate is the "
            "lab's estimate.",
        )
    )


if __name__ == "__main__":
    main()
