"""Pieces of SVG: escaped text, and no size or place that a browser could not draw."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from sitebuild.svg import circle, figure, line, log_scale, polyline, rect, text

PLACES: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    (call, arguments, name)
    for call, arguments in (
        (text, {"x": 1, "y": 2, "content": "a"}),
        (rect, {"x": 1, "y": 2, "width": 3, "height": 4, "rx": 1, "classes": "ink"}),
        (line, {"x1": 1, "y1": 2, "x2": 3, "y2": 4}),
        (circle, {"x": 1, "y": 2, "r": 3, "classes": "ink"}),
        (log_scale, {"low": 1, "high": 2, "start": 3, "end": 4, "value": 1.5}),
    )
    for name, value in arguments.items()
    if not isinstance(value, str)
]
FIGURE: dict[str, Any] = {
    "name": "some-figure", "title": "A <title>", "description": "d", "height": 100,
    "body": [], "header": ("Case",), "rows": [("one",)], "caption": "c",
}  # fmt: skip


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, "4", None, True])
@pytest.mark.parametrize(("call", "arguments", "name"), PLACES)
def test_refuses_what_cannot_be_drawn(
    call: Callable[..., object], arguments: dict[str, Any], name: str, wrong: object
) -> None:
    call(**arguments)
    with pytest.raises(ValueError, match=f"{name} must be a finite number, got {wrong!r}"):
        call(**(arguments | {name: wrong}))


@pytest.mark.parametrize("wrong", [math.nan, "4", None])
def test_refuses_a_line_through_no_place(wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"y must be a finite number, got {wrong!r}"):
        polyline([(1, 2), (3, wrong)])


@pytest.mark.parametrize("name", ["width", "height", "rx"])
def test_refuses_a_rectangle_of_negative_size(name: str) -> None:
    sizes = {"width": 3.0, "height": 4.0, "rx": 1.0} | {name: -0.5}
    with pytest.raises(ValueError, match=f"{name} must be at least 0, got -0.5"):
        rect(1, 2, classes="ink", **sizes)


@pytest.mark.parametrize("height", [math.nan, -1, None])
def test_refuses_a_figure_without_a_height(height: Any) -> None:
    with pytest.raises(ValueError, match="height must be"):
        figure(**(FIGURE | {"height": height}))


@pytest.mark.parametrize("place", ["low", "high", "value"])
def test_a_log_scale_needs_positive_numbers(place: str) -> None:
    with pytest.raises(ValueError, match="a log scale needs positive numbers, got "):
        log_scale(**({"low": 1, "high": 100, "start": 0, "end": 1, "value": 10} | {place: 0}))


def test_a_log_scale_needs_two_ends() -> None:
    with pytest.raises(ValueError, match="two different ends, got 3 twice"):
        log_scale(3, 3, 0, 1, 3)


def test_a_log_scale_puts_equal_ratios_at_equal_distances() -> None:
    assert [log_scale(1, 100, 0, 10, x) for x in (1, 10, 100)] == [0, 5, 10]


def test_a_figure_escapes_its_text_and_shows_its_mark_first() -> None:
    drawn = figure(**FIGURE, mark="Stale & old")
    assert "A &lt;title&gt;" in drawn
    assert drawn.index('<p class="stale">Stale &amp; old</p>') < drawn.index("<svg")
    assert "stale" not in figure(**FIGURE)


def test_places_are_written_to_a_tenth_and_in_few_bytes() -> None:
    assert text(6.04, 16, "a") == '<text x="6" y="16" class="ink">a</text>'
    assert 'x="6.3" y="20" text-anchor="end"' in text(6.26, 20.0, "a", "end")
    assert 'x="1" y="2" width="30" height="4.5" rx="0.5"' in rect(1, 2, 30.0, 4.5, "ink", rx=0.5)
    assert 'x1="1" y1="2" x2="10" y2="-4.1"' in line(1, 2, 10, -4.1)
    assert 'cx="100" cy="2.5" r="3"' in circle(100, 2.5, 3, "ink")
    assert 'points="1,2.3 100,-4"' in polyline([(1.0, 2.34), (100, -4)])
