"""Markdown extension: mark the output of each lab, so that the page can run and edit it there.

A page writes the fence that runs the lab, no more; figures, run by other fences, stay unmarked.
"""

import re

from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor

from sitebuild.engine import pin

FENCE = re.compile(
    r'^```python exec="1" result="text"[^\n]*\n'
    r'from sitebuild import run\nprint\(run\("snippets\.(?P<stem>\w+)"\)\)\n```$',
    re.M,
)
# the line that stands where the controls come; they replace it
STATIC = (
    "Recorded when the site was built. Run and Edit need JavaScript and a page served over http."
)
NO_ENGINE = (
    "Recorded when the site was built. Run is off: this copy was built without Python for the "
    "browser."
)


class _MarkLabs(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        pinned = pin()
        here = pinned.folder.is_dir()
        size = f' data-python="{pinned.megabytes():.1f} MB"' if here else ""

        def mark(match: re.Match[str]) -> str:
            feature = f' data-feature="lab" data-lab="{match["stem"]}"' if here else ""
            line = STATIC if here else NO_ENGINE
            return (
                f'<div class="lab"{feature}{size} markdown="1">\n'
                f'<p class="lab-off" data-search-exclude>{line}</p>\n\n{match[0]}\n\n</div>'
            )

        return FENCE.sub(mark, "\n".join(lines)).split("\n")


class LabMarks(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802, the name is Markdown's
        # after whitespace is made regular, before fences and HTML blocks are taken out
        md.preprocessors.register(_MarkLabs(md), "lab marks", 28)


def makeExtension(**options: object) -> LabMarks:  # noqa: N802
    return LabMarks(**options)
