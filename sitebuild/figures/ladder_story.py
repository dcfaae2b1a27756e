"""The ladder in one figure: what each step reaches on the longest sequence, for both head dims."""

from pathlib import Path

from kernels.bench.cases import TRIAL
from sitebuild.kernel_results import ABSENT, RESULTS, Result, anchor, device, mark, moment, results
from sitebuild.ladder import STEM, longest, names_of, numbered, timed
from sitebuild.svg import WIDTH, figure, line, rect, text

LEFT, TOP, ROW, BAR, GAP = 112.0, 36.0, 31.0, 13.0, 12.0
ROOM = 30.0  # of the number at the end of the longest bar
PANEL = (WIDTH - LEFT - GAP) / 2  # one for each head dim
MASKS = ((False, "no mask", "bar-ours"), (True, "causal", "bar"))


def chart(folder: Path = RESULTS) -> str:
    """Return one figure for each device, or a sentence where nothing is captured."""
    drawn = [draw(found) for found in results(STEM, folder)]
    return "\n\n".join(each for each in drawn if each) or ABSENT


def draw(result: Result) -> str:
    """Return the figure of one result, empty where no case was timed."""
    N = longest(result)
    names = [name for name in names_of(result["rows"]) if name != TRIAL]
    found = {
        (D, causal, name): rate
        for D in (64, 128)
        for causal, *_ in MASKS
        for (name, length), rate in timed(result, D, causal).items()
        if length == N and name in names
    }
    if not found:
        return ""
    bottom, unit = TOP + ROW * len(names), (PANEL - ROOM) / max(found.values())
    body, data = [], []
    for row, name in enumerate(names):
        body.append(text(LEFT - 8, TOP + ROW * row + 20, numbered(name), "end"))
    for panel, D in enumerate((64, 128)):
        left = LEFT + panel * (PANEL + GAP)
        body.append(text(left, TOP - 10, f"D = {D}", classes="ink strong"))
        for row, name in enumerate(names):
            for place, (causal, mask, look) in enumerate(MASKS):
                if (rate := found.get((D, causal, name))) is None:
                    continue
                y = TOP + ROW * row + 2 + place * BAR
                tip = f"{name}, D = {D}, {mask}: {rate:,.0f} TFLOP/s"
                body.append(rect(left, y, rate * unit, BAR - 1, look, tip))
                body.append(text(left + rate * unit + 4, y + BAR - 3, f"{rate:,.0f}"))
                data.append((numbered(name), f"{D}", mask, f"{rate:,.0f}"))
        body.append(line(left, TOP, left, bottom, "line"))
    return figure(
        f"ladder-{anchor(result)}",
        f"What each step of the attention ladder reaches on {device(result)}",
        "One row a step, one panel for each head dim. The upper bar is the rate without a mask, "
        "the lower one the causal rate.",
        bottom + 6,
        body,
        ("Step", "D", "Mask", "TFLOP/s"),
        data,
        f"Attention forward, bf16, N = {N}, TFLOP/s, on {device(result)}, {moment(result)}. Upper "
        "bars: no mask; lower: causal. The last two are the whole kernel and the library's.",
        mark([result]),
    )


def main() -> None:
    print(chart())


if __name__ == "__main__":
    main()
