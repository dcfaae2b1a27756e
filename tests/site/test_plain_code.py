"""Code keeps its text and its colors without an element for every name and bracket."""

import re
from pathlib import Path

import pytest
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from sitebuild.labs import ROOT
from sitebuild.plain_code import PLAIN, drop_plain_marks
from sitebuild.site_faults import pages_of

CODE = 'def f(x):\n    """Twice."""\n    return x < 2 and g(x)["é"]  # why\n'


def text_of(html: str) -> str:
    return re.sub("<[^>]+>", "", html)


def test_plain_tokens_lose_their_elements_and_no_text(tmp_path: Path) -> None:
    page = tmp_path / "lessons" / "a" / "index.html"
    page.parent.mkdir(parents=True)
    before = highlight(CODE, PythonLexer(), HtmlFormatter())
    page.write_text(before, "utf-8")
    drop_plain_marks(tmp_path)
    after = page.read_text("utf-8")
    assert text_of(after) == text_of(before)
    assert set(re.findall(r'span class="(\w+)"', after)) == {
        "k",
        "nf",
        "sd",
        "mi",
        "ow",
        "s2",
        "c1",
    }


@pytest.mark.xdist_group("site")
def test_no_page_of_the_site_has_any(site) -> None:
    pages = pages_of(site.folder)
    assert any('<span class="k">' in html for html in pages.values())
    assert [path for path, html in pages.items() if PLAIN.search(html)] == []


@pytest.mark.parametrize("kind", ["name", "operator", "punctuation"])
def test_they_have_the_color_of_plain_code(kind: str) -> None:
    style = (ROOT / "docs" / "assets" / "site.css").read_text("utf-8")
    (plain,) = re.findall("--md-code-fg-color: (.*);", style)
    assert re.findall(f"--md-code-hl-{kind}-color: (.*);", style) == [plain]
