# %% [markdown]
# # How exact is exact?
#
# Online softmax is exact up to rounding, says [the lesson](../lessons/online_softmax.md). What
# is that worth when a kernel also rounds to 16 bits? And which rounding costs most: that of the
# scores S, of the weights P or of the output O? Each row here is held against a result with
# thirty digits.
#
# To run it yourself, [download the notebook](softmax_rounding.ipynb) and put it in the top folder
# of a copy of this course's repository. It needs Python's standard library and the labs.

# %%
import math
import random
import struct
from html import escape
from statistics import median

from IPython.display import HTML, display

from snippets.batch_softmax import batch
from snippets.exactness import exact
from snippets.online_softmax import finish, online

# %% [markdown]
# ## Sixteen bits in the standard library
#
# `struct` knows fp16 as `"e"` and fp32 as `"f"`. It does not know bf16, but bf16 is the upper
# half of fp32: add half of the last place that stays, one less on a tie to an even number, and
# cut.


# %%
def fp16(x: float) -> float:
    """Round to the nearest fp16 number, ties to even; beyond 65,504 to infinity."""
    try:
        return struct.unpack("e", struct.pack("e", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def bf16(x: float) -> float:
    """Round to the nearest bf16 number, ties to even (by way of fp32)."""
    (bits,) = struct.unpack("I", struct.pack("f", x))
    kept = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return struct.unpack("f", struct.pack("I", kept))[0]


for x in (1 / 3, 8.03, 70000.0):
    print(f"{x:12.6f}   fp16 {fp16(x):14.6f}   bf16 {bf16(x):14.6f}")

# %% [markdown]
# ## The places that round
#
# Standard attention writes S and P to memory, and so rounds both; a fused kernel keeps S in fp32
# and rounds the weights just before the second matrix product. They round different weights: the
# standard ones are divided by their sum already, the fused ones are exp(s - m) for the maximum so
# far, and their sum l is taken before the rounding. Both round the output. Everything else here
# is float64, so that each column shows its own rounding and no other.


# %%
def standard(scores, values, s=float, p=float, o=float):
    """Whole row; `s`, `p` and `o` round the scores, the divided weights and the output."""
    scores = [s(score) for score in scores]
    largest = max(scores)
    weights = [math.exp(score - largest) for score in scores]
    total = math.fsum(weights)
    return o(math.fsum(p(w / total) * v for w, v in zip(weights, values, strict=True)))


def fused(scores, values, tile, p=float, o=float):
    """Online softmax whose weights are rounded by `p` before they meet the values."""
    m, total, acc = -math.inf, 0.0, 0.0
    for i in range(0, len(scores), tile):
        block = scores[i : i + tile]
        larger = max([m, *block])
        factor = math.exp(m - larger)
        weights = [math.exp(score - larger) for score in block]
        total = total * factor + math.fsum(weights)
        acc = acc * factor + math.fsum(
            p(w) * v for w, v in zip(weights, values[i : i + tile], strict=True)
        )
        m = larger
    return o(acc / total)


# %% [markdown]
# ## The rows
#
# 120 rows of 256 scores between -8 and 8, with values between -1 and 1 that are bf16 numbers, as
# V may be in a kernel, so that rounding V plays no part. The error is divided by the sum of p
# |v|, for the reason given in the lesson. Before the table, a check that `fused` without rounding
# is the lab's online softmax.

# %%
ROWS, LENGTH, TILE = 120, 256, 32
draw = random.Random(5).uniform
rows = []
for _ in range(ROWS):
    scores = [draw(-8, 8) for _ in range(LENGTH)]
    values = [bf16(draw(-1, 1)) for _ in range(LENGTH)]
    (size,) = batch(scores, [[abs(v)] for v in values])
    rows.append((scores, values, float(exact(scores, values)), size))


def errors(method):
    """Errors of `method(scores, values)` over all rows, each over its sum of p |v|."""
    return [abs(method(s, v) - true) / size for s, v, true, size in rows]


def lab(s, v):
    return finish(online(s, [[x] for x in v], TILE))[0][0]


assert all(abs(fused(s, v, TILE) - lab(s, v)) < 1e-14 * size for s, v, _, size in rows)

# %%
table = [("none", "online softmax", errors(lab))]
table.append(("none", "whole row", errors(lambda s, v: batch(s, [[x] for x in v])[0])))
for name, r in (("fp16", fp16), ("bf16", bf16)):
    table += [
        (name, "O only", errors(lambda s, v, r=r: standard(s, v, o=r))),
        (name, "P only", errors(lambda s, v, r=r: standard(s, v, p=r))),
        (name, "S only", errors(lambda s, v, r=r: standard(s, v, s=r))),
        (name, "fused: P, O", errors(lambda s, v, r=r: fused(s, v, TILE, p=r, o=r))),
        (name, "standard: S, P, O", errors(lambda s, v, r=r: standard(s, v, r, r, r))),
    ]


def row(cells, tag="td"):
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


head = row(("rounded to", "where", "median error", "largest"), "th")
body = "".join(row((*names, f"{median(e):.1e}", f"{max(e):.1e}")) for *names, e in table)
display(HTML(f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"))
for (name, _, ours), (_, _, theirs) in (table[5:7], table[10:12]):
    closer = sum(a < b for a, b in zip(ours, theirs, strict=True))
    print(f"{name}: fused closer to the exact result than standard in {closer} of {ROWS} rows")

# %% [markdown]
# ## The picture
#
# Each line runs from the smallest error to the largest of all rows, the dot is the median. From
# one upright line to the next is a factor of 10,000; an error of zero stands at 1e-18.

# %%
LEFT, WIDTH, STEP = 172, 440, 24
LOW, HIGH = 1e-18, 1e-2
COLOURS = {
    "none": "currentColor",
    "fp16": "var(--link, #0b5a7a)",
    "bf16": "var(--accent, #a3400f)",
}


def x_of(error):
    return LEFT + (WIDTH - 8 - LEFT) * math.log10(max(error, LOW) / LOW) / math.log10(HIGH / LOW)


height = STEP * (len(table) + 1)
marks = []
for power in range(-17, -2, 4):
    x = x_of(10.0**power)
    marks.append(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 22}" stroke="currentColor" '
        f'opacity="0.2"/><text x="{x:.1f}" y="{height - 6}" text-anchor="middle">1e{power}</text>'
    )
for index, (name, where, e) in enumerate(table):
    y = STEP * (index + 0.5)
    low, middle, high = x_of(min(e)), x_of(median(e)), x_of(max(e))
    label = where if name == "none" else f"{name}  {where}"
    marks.append(
        f'<text x="0" y="{y + 4:.1f}">{escape(label)}</text>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}" '
        f'stroke="{COLOURS[name]}" stroke-width="2"/>'
        f'<circle cx="{middle:.1f}" cy="{y:.1f}" r="5" fill="{COLOURS[name]}"/>'
    )
display(
    HTML(
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="rounding-title" '
        'style="max-width: 34rem; width: 100%; font: 14px system-ui, sans-serif" '
        'fill="currentColor"><title id="rounding-title">Error over the sum of p times abs(v) for '
        f"each place of rounding; the numbers are in the table above</title>{''.join(marks)}</svg>"
    )
)

# %% [markdown]
# ## What it says
#
# - Without 16-bit rounding, online and whole-row softmax cannot be told apart on this scale.
#   Working in tiles is not what costs precision.
# - Rounding S costs most. A relative error in a score is an absolute error in an exponent: a
#   score near 8 that is off by one part in a thousand makes its weight wrong by eight parts in a
#   thousand.
# - Rounding P or O stays below the last place of the format, and the many roundings of P partly
#   cancel.
# - So the fused loop, which never rounds S, is closer to the exact result on most rows than
#   standard attention with the same data type. It is not closer on every row: errors have signs
#   and can cancel.
#
# Try larger scores, positive values only, or another tile in the cells above: what should each
# change, and does it? Then go back to [online softmax](../lessons/online_softmax.md).
