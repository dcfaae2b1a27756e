"""The same mkdocs.yml builds with Zensical: same pages, live values and figures.

What differs is written on the portability page: no page for a notebook, and no hooks, so that the
finished pages are searched for faults afterwards.
"""

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from sitebuild.labs import ROOT
from sitebuild.site_faults import ARTICLE, pages_of
from sitebuild.topics import lessons

pytestmark = pytest.mark.xdist_group("site")
PAGE = "docs/lessons/roofline.md"
OUT = "site.zensical"


def build(tree: Path) -> subprocess.CompletedProcess[str]:
    command = "-m zensical build --clean"
    return subprocess.run(
        [sys.executable, *command.split()],
        cwd=tree,
        env={**os.environ, "SITE_DIR": OUT},
        capture_output=True,
        text=True,
        timeout=240,
    )


def after_build(tree: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"sitebuild.{module}", *arguments]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True)


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory, copy_of_sources) -> Path:
    tree = copy_of_sources(tmp_path_factory.mktemp("zensical") / "a copy")
    done = build(tree)
    assert done.returncode == 0, done.stdout + done.stderr
    assert after_build(tree, "finish", "docs", OUT).returncode == 0
    return tree


def articles(site: Path) -> dict[str, str]:
    found = {path: ARTICLE.findall(html)[0] for path, html in pages_of(site).items()}
    # Zensical takes this off once its search has read it
    return {path: html.replace(" data-search-exclude", "") for path, html in found.items()}


def text_of(html: str) -> list[str]:
    return unescape(re.sub(r"<[^>]+>", " ", html)).split()


def is_notebook(path: str) -> bool:
    return (ROOT / "docs" / path).parent.with_suffix(".py").is_file()


def test_has_the_same_pages_but_for_the_notebooks(site, moved: Path) -> None:
    ours, theirs = articles(site.folder), articles(moved / OUT)
    assert sorted(theirs) == sorted(path for path in ours if not is_notebook(path))


def test_every_page_says_the_same_to_the_word(site, moved: Path) -> None:
    ours, theirs = articles(site.folder), articles(moved / OUT)
    assert [path for path in theirs if text_of(theirs[path]) != text_of(ours[path])] == []


@pytest.mark.parametrize("stem", lessons())
def test_a_lesson_shows_the_same_live_values_and_figures(site, moved: Path, stem: str) -> None:
    path = f"lessons/{stem}/index.html"
    ours, theirs = articles(site.folder)[path], articles(moved / OUT)[path]
    blocks = [re.findall(r"<pre.*?</pre>", html, re.S) for html in (ours, theirs)]
    figures = [re.findall(r"<figure.*?</figure>", html, re.S) for html in (ours, theirs)]
    assert len(blocks[0]) > 2
    assert [text_of(block) for block in blocks[0]] == [text_of(block) for block in blocks[1]]
    assert figures[0] == figures[1]


def test_a_lesson_knows_its_place_under_either_builder(site, moved: Path) -> None:
    places = [
        re.findall(r"Lesson \d+ of \d+", pages_of(folder)["lessons/roofline/index.html"])
        for folder in (site.folder, moved / OUT)
    ]
    assert (
        places[0] == places[1] == [f"Lesson {lessons().index('roofline') + 1} of {len(lessons())}"]
    )


def test_a_fault_is_found_in_the_finished_pages(moved: Path) -> None:
    assert after_build(moved, "site_faults", OUT).returncode == 0
    page = moved / PAGE
    page.write_text(f'{page.read_text("utf-8")}\n```python exec="1"\n1 / 0\n```\n', "utf-8")
    build(moved)
    checked = after_build(moved, "site_faults", OUT)
    assert checked.returncode == 1
    assert "publishes a traceback: ZeroDivisionError: division by zero" in checked.stdout
