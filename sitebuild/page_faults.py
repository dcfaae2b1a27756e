"""Faults of the page being built: warnings in the terminal, and a box on the page itself.

Under strict mode a warning fails the build; under `make serve` the writer sees the box.
"""

import logging
from collections.abc import Callable
from html import escape
from typing import Any

log = logging.getLogger("mkdocs.page_faults")
page_now = ""
found: list[str] = []


def begin(page: str) -> None:
    """From here on faults belong to `page`, the path of its source."""
    global page_now
    page_now = page
    found.clear()


def report(message: str) -> None:
    """Warn, naming the page being built."""
    log.warning(f"{page_now}: {message}" if page_now else message)
    found.append(message)


def report_refusal(check: Callable[[str], object], argument: str) -> None:
    """Report the ValueError that `check` raises for its argument, if it does."""
    try:
        check(argument)
    except ValueError as refusal:
        report(str(refusal))


def show_failure(page: Any) -> None:
    """Let a page that cannot be rendered show why, as nothing else is served until it can be."""
    render = page.render

    def render_or_report(*arguments: Any) -> None:
        try:
            render(*arguments)
        except Exception as failure:
            report(f"{type(failure).__name__}: {failure}")
            page.content, page.toc = "", []

    page.render = render_or_report


def box() -> str:
    """Return HTML that lists what was reported of the page being built, or nothing."""
    if not found:
        return ""
    items = "".join(f"<li>{escape(message)}</li>" for message in dict.fromkeys(found))
    return (
        '<div class="admonition failure"><p class="admonition-title">This page fails the build</p>'
        f"<ul>{items}</ul></div>\n"
    )
