"""Take the marks off those parts of code that look like code anyway.

Pygments puts every name, bracket and operator into an element of its own: nine of ten elements of
a page that shows a kernel, each of which a phone has to style before it answers.
"""

import re
from pathlib import Path

# names, punctuation, operators and spaces, which site.css gives the color of plain code
PLAIN = re.compile(r'<span class="(?:n|p|o|w)">([^<]*)</span>')


def drop_plain_marks(site_dir: Path) -> None:
    """Leave the text of plain tokens without elements, on every page of a built site."""
    for page in sorted(site_dir.rglob("*.html")):
        page.write_text(PLAIN.sub(r"\1", page.read_text("utf-8")), "utf-8")
