"""Markdown extension: turn TeX into MathML while the page is built. Wrong TeX stops the build."""

import html
import re
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from math_core import LatexError, LatexToMathML

from sitebuild.page_faults import report


class _TexToMathML(Treeprocessor):
    def __init__(self, md: Markdown) -> None:
        super().__init__(md)
        self.converter = LatexToMathML()

    def run(self, root: Element) -> None:
        for element in root.iter():
            if "arithmatex" in element.get("class", "").split() and element.text:
                # arithmatex hands over `\(...\)` for inline and `\[...\]` for display math
                tex = html.unescape(element.text).strip()
                body = tex[2:-2].strip()
                try:
                    mathml = self.converter.convert_with_local_state(
                        body, displaystyle=tex.startswith(r"\[")
                    )
                except LatexError as error:
                    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()[0]
                    report(f"TeX that cannot be read: {body!r}: {plain}")
                    continue
                element.text = self.md.htmlStash.store(mathml)


class MathML(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802, the name is Markdown's
        md.treeprocessors.register(_TexToMathML(md), "mathml", 5)


def makeExtension(**options: object) -> MathML:  # noqa: N802
    return MathML(**options)
