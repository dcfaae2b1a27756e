"""Faults that Markdown extensions find, as warnings that name the page being built."""

import logging

log = logging.getLogger("mkdocs.report")
page_now = ""  # set by the gate before each page


def report(message: str) -> None:
    """Warn, naming the page being built; under strict mode the build then fails."""
    log.warning(f"{page_now}: {message}" if page_now else message)
