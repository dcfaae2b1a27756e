"""Markdown extension: make every glossary term and every source a link by its name.

A page writes `[HBM][]` or `[the paper][dao2022]`; this extension knows the address, and for a
term its first sentence as the tooltip. The glossary and the sources page are the only lists.
"""

import re
from pathlib import Path
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

from sitebuild.page_faults import report

DOCS = Path(__file__).resolve().parent.parent / "docs"
# `## HBM, high-bandwidth memory {#hbm}` and the paragraph below it
TERM = re.compile(r"^## (?P<names>.+?) \{ *#(?P<anchor>[\w-]+) *\}\n+(?P<text>.+(?:\n.+)*)", re.M)
# `- **Dao et al. 2022.** ... <https://...> {#dao2022}` or a heading of the sources page
SOURCE = re.compile(
    r"^### (?P<title>.+?) \{ *#(?P<anchor>[\w-]+) *\}\n+(?P<text>.+(?:\n.+)*)", re.M
)


def glossary(path: Path = DOCS / "reference" / "glossary.md") -> dict[str, tuple[str, str]]:
    """Return name -> (anchor, first sentence) for every name of every term."""
    terms: dict[str, tuple[str, str]] = {}
    for match in TERM.finditer(path.read_text("utf-8")):
        sentence = first_sentence(plain(match["text"]))
        for name in match["names"].split(", "):
            terms[name.lower()] = (match["anchor"], sentence)
    return terms


def sources(path: Path = DOCS / "reference" / "sources.md") -> dict[str, tuple[str, str]]:
    """Return key -> (title, text with the address) for every source."""
    return {
        match["anchor"]: (plain(match["title"]), match["text"])
        for match in SOURCE.finditer(path.read_text("utf-8"))
    }


def plain(markdown: str) -> str:
    """Strip links, emphasis and code marks from one paragraph of Markdown."""
    text = re.sub(r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", markdown)
    return re.sub(r"[*_`$]", "", " ".join(text.split()))


def first_sentence(text: str) -> str:
    """Return the text up to the first full stop that ends a sentence."""
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]


class _AddReferences(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        for key, (title, _) in sources().items():
            self.md.references[key] = (f"../reference/sources.md#{key}", title)
        for name, (anchor, sentence) in glossary().items():
            self.md.references[name] = (f"../reference/glossary.md#{anchor}", sentence)
        return lines


class _UnknownReference(InlineProcessor):
    """Sees what Markdown's own processor for `[text][name]` left, which runs just before."""

    # the name and the arguments are Markdown's
    def handleMatch(self, m: Any, _: str) -> Any:  # type: ignore[override]  # noqa: N802
        name = m[2] or m[1]
        report(f"[{name}] is neither in the glossary nor in the sources; code goes in backticks")
        return None, None, None


class References(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802, the name is Markdown's
        md.preprocessors.register(_AddReferences(md), "references", 15)
        unknown = _UnknownReference(r"\[([^\[\]]+)\]\[([^\[\]]*)\]", md)
        md.inlinePatterns.register(unknown, "unknown reference", 165)


def makeExtension(**options: object) -> References:  # noqa: N802
    return References(**options)
