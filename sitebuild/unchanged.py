"""While the site is served, render only the pages whose text or sources changed since last time.

A page rests on its own Markdown, on every file that labs, figures and includes can come from, on
the two pages that all link to, and on which pages there are. A block that reads other pages is
known by the module that does.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

from sitebuild import page_faults
from sitebuild.labs import PACKAGES, ROOT

FOLDERS = (*PACKAGES, "requirements")
FILES = ("mkdocs.yml", "pyproject.toml", "Makefile", "CHANGELOG.md")
LINKED_BY_ALL = ("docs/reference/glossary.md", "docs/reference/sources.md")
READS_OTHER_PAGES = "sitebuild.topics"
RENDERED = ("content", "toc", "_title_from_render", "present_anchor_ids")

is_served = False
sources = ""  # the digest of what all pages of this build rest on
kept: dict[str, tuple[str, dict[str, Any]]] = {}  # page -> what it rested on, what came of it


def begin(pages: Iterable[str]) -> bool:
    """Look at what all pages rest on, by the times of its files; return whether it changed."""
    global sources
    before = sources
    if is_served:
        files = [ROOT / name for name in (*FILES, *LINKED_BY_ALL)]
        files += [p for d in FOLDERS for p in (ROOT / d).rglob("*") if p.suffix != ".pyc"]
        stamps = [(str(path), path.stat().st_mtime_ns) for path in files if path.is_file()]
        sources = _digest(repr((sorted(stamps), sorted(pages))))
    return sources != before


def take_or_keep(page: Any, markdown: str) -> None:
    """Let `page` be what it was if nothing changed, or else keep what its rendering yields."""
    if not is_served:
        return
    rests_on, name, render = _digest(sources + markdown), page.file.src_uri, page.render

    def take(*_: Any) -> None:
        vars(page).update(kept[name][1])

    def keep(*arguments: Any) -> None:
        render(*arguments)
        kept.pop(name, None)
        if not page_faults.found and READS_OTHER_PAGES not in markdown:
            kept[name] = rests_on, {field: getattr(page, field) for field in RENDERED}

    page.render = take if kept.get(name, ("",))[0] == rests_on else keep


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
