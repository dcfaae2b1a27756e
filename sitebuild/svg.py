"""Small pieces of SVG, and the frame that every figure of the course stands in.

Colours are CSS classes, so that a figure follows the colour scheme: `lvl-registers`,
`lvl-shared`, `lvl-l2`, `lvl-hbm` for the levels of memory, `ink`, `soft` and `line` for the rest.
"""

from collections.abc import Sequence
from html import escape
from math import log10

WIDTH = 440  # user units; text of 12 stays readable on a phone and is not huge on a desktop


def text(x: float, y: float, content: str, anchor: str = "start", classes: str = "ink") -> str:
    """One line of text with its baseline at (x, y)."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{classes}">'
        f"{escape(content)}</text>"
    )


def rect(
    x: float, y: float, width: float, height: float, classes: str, tooltip: str = "", rx: float = 1
) -> str:
    """A rectangle; `tooltip` shows when the pointer rests on it."""
    inner = f"<title>{escape(tooltip)}</title>" if tooltip else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{rx:g}" '
        f'class="{classes}">{inner}</rect>'
    )


def line(x1: float, y1: float, x2: float, y2: float, classes: str = "line") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{classes}"/>'


def circle(x: float, y: float, r: float, classes: str, tooltip: str = "") -> str:
    inner = f"<title>{escape(tooltip)}</title>" if tooltip else ""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:g}" class="{classes}">{inner}</circle>'


def polyline(points: Sequence[tuple[float, float]], classes: str = "line") -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" class="{classes}"/>'


def log_scale(low: float, high: float, start: float, end: float, value: float) -> float:
    """Map `value` from the logarithmic range [low, high] to the linear range [start, end]."""
    if min(low, high, value) <= 0:
        raise ValueError(f"a log scale needs positive numbers, got {low}, {high}, {value}")
    return start + (end - start) * log10(value / low) / log10(high / low)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table; the first cell of each row heads it."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def figure(
    name: str,
    title: str,
    description: str,
    height: float,
    body: Sequence[str],
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str,
) -> str:
    """Return a figure: the drawing with title and description, its caption, its data as a table.

    Parameters
    ----------
    name : unique on the page; becomes the ids.
    title, description : what a screen reader says.
    height : in user units; the width is always `WIDTH`.
    body : SVG elements.
    header, rows : the data behind the drawing, as text.
    caption : one sentence under the drawing, plain text.
    """
    drawing = "".join(body)
    return (
        f'<figure class="figure" id="{name}">'
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>{drawing}</svg>'
        f"<figcaption>{escape(caption)}</figcaption>"
        f"<details><summary>The same data as a table</summary>{table(header, rows)}</details>"
        "</figure>"
    )
