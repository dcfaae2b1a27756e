"""Small pieces of SVG, and the frame that every figure of the course stands in.

Colours are CSS classes, so that a figure follows the colour scheme: `lvl-registers`,
`lvl-shared`, `lvl-l2`, `lvl-hbm` for the levels of memory, `ink`, `soft` and `line` for the rest.
"""

from collections.abc import Sequence
from html import escape
from math import isfinite, log10

WIDTH = 440  # user units; text of 12 stays readable on a phone and is not huge on a desktop


def text(x: float, y: float, content: str, anchor: str = "start", classes: str = "ink") -> str:
    """One line of text with its baseline at (x, y)."""
    x, y = _places(x=x, y=y)
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    place = f'x="{_tenths(x)}" y="{_tenths(y)}"'
    return f'<text {place}{side} class="{classes}">{escape(content)}</text>'


def rect(
    x: float, y: float, width: float, height: float, classes: str, tooltip: str = "", rx: float = 1
) -> str:
    """A rectangle; `tooltip` shows when the pointer rests on it."""
    x, y = _places(x=x, y=y)
    width, height, rx = _sizes(width=width, height=height, rx=rx)
    inner = f"<title>{escape(tooltip)}</title>" if tooltip else ""
    return (
        f'<rect x="{_tenths(x)}" y="{_tenths(y)}" width="{_tenths(width)}" '
        f'height="{_tenths(height)}" rx="{rx:g}" class="{classes}">{inner}</rect>'
    )


def line(x1: float, y1: float, x2: float, y2: float, classes: str = "line") -> str:
    x1, y1, x2, y2 = _places(x1=x1, y1=y1, x2=x2, y2=y2)
    ends = f'x1="{_tenths(x1)}" y1="{_tenths(y1)}" x2="{_tenths(x2)}" y2="{_tenths(y2)}"'
    return f'<line {ends} class="{classes}"/>'


def circle(x: float, y: float, r: float, classes: str, tooltip: str = "") -> str:
    x, y = _places(x=x, y=y)
    (r,) = _sizes(r=r)
    inner = f"<title>{escape(tooltip)}</title>" if tooltip else ""
    place = f'cx="{_tenths(x)}" cy="{_tenths(y)}"'
    return f'<circle {place} r="{r:g}" class="{classes}">{inner}</circle>'


def polyline(points: Sequence[tuple[float, float]], classes: str = "line") -> str:
    path = " ".join(",".join(map(_tenths, _places(x=x, y=y))) for x, y in points)
    return f'<polyline points="{path}" class="{classes}"/>'


def log_scale(low: float, high: float, start: float, end: float, value: float) -> float:
    """Map `value` from the logarithmic range [low, high] to the linear range [start, end]."""
    low, high, value, start, end = _places(low=low, high=high, value=value, start=start, end=end)
    if min(low, high, value) <= 0:
        raise ValueError(f"a log scale needs positive numbers, got {low}, {high}, {value}")
    if low == high:
        raise ValueError(f"a log scale needs two different ends, got {low} twice")
    return start + (end - start) * log10(value / low) / log10(high / low)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """An HTML table; the first cell of each row heads it."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def drawing(name: str, title: str, description: str, height: float, body: Sequence[str]) -> str:
    """Return the drawing alone; the arguments are those of `figure`."""
    (height,) = _sizes(height=height)
    return (
        f'<svg data-search-exclude viewBox="0 0 {WIDTH} {height:g}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>{"".join(body)}</svg>'
    )


def figure(
    name: str,
    title: str,
    description: str,
    height: float,
    body: Sequence[str],
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str,
    mark: str = "",
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
    mark : a warning over the drawing, such as that its data are stale.
    """
    warning = f'<p class="stale">{escape(mark)}</p>' if mark else ""
    return (
        f'<figure class="figure" id="{name}">{warning}'
        f"{drawing(name, title, description, height, body)}"
        f"<figcaption>{escape(caption)}</figcaption>"
        "<details data-search-exclude><summary>The same data as a table</summary>"
        f"{table(header, rows)}</details>"
        "</figure>"
    )


def _places(**values: float) -> list[float]:
    """Return the values. Raises ValueError for one that no drawing can show, by its name."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise ValueError(f"{name} must be a finite number, got {value!r}")
    return list(values.values())


def _sizes(**values: float) -> list[float]:
    """Return the values, none of them negative."""
    for name, value in values.items():
        if not _places(**{name: value})[0] >= 0:
            raise ValueError(f"{name} must be at least 0, got {value!r}")
    return list(values.values())


def _tenths(value: float) -> str:
    """Return the value to a tenth, which no eye can tell from the value; 12 for 12.0."""
    return f"{value:.1f}".removesuffix(".0")
