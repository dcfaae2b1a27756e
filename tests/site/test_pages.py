"""The built site shows what the labs print now, hangs together, and comes from one host."""

import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlparse

import jupytext
import nbformat
import pytest

from sitebuild.labs import ROOT, run
from sitebuild.topics import front_matter, lessons
from snippets.captured import counters

pytestmark = pytest.mark.xdist_group("site")
BACK = '<a href="../..">Back to the topic library'
RUN = re.compile(r'result="text"[^\n]*\n(?:.*\n)?print\(run\("([\w.]+)"\)\)')
FIGURE = re.compile(r'run\("(sitebuild\.figures\.\w+)"\)')
# one a device, so their number depends on what is captured
OF_CAPTURED = {"launch_overhead", "ladder_story"}
CAPTURED = re.compile('<figure class="figure" id="(measured-roofline|launch-overhead|ladder)-')


class Links(HTMLParser):
    """The addresses a page links to, those it loads, and its ids."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        target = found.get("href") or found.get("src")
        kind = self.links if tag == "a" else self.loads
        kind += [target] if target and tag != "base" else []


def pages(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix().removesuffix("index.html"): path.read_text("utf-8")
        for path in sorted(folder.rglob("*.html"))
    }


def lesson_html(folder: Path, stem: str) -> str:
    return (folder / "lessons" / stem / "index.html").read_text("utf-8")


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


@pytest.mark.parametrize("stem", lessons())
def test_a_lesson_shows_what_its_labs_print(site, stem: str) -> None:
    source = (ROOT / "docs" / "lessons" / f"{stem}.md").read_text("utf-8")
    shown = text_of(lesson_html(site.folder, stem))
    outputs = [run(module).strip() for module in RUN.findall(source)]
    assert len(outputs) >= 1
    assert [output for output in outputs if output not in shown] == []


@pytest.mark.parametrize("stem", lessons())
def test_a_lesson_shows_its_figures_with_title_text_and_table(site, stem: str) -> None:
    html = lesson_html(site.folder, stem)
    source = (ROOT / "docs" / "lessons" / f"{stem}.md").read_text("utf-8")
    figures = re.findall(r'<figure class="figure".*?</figure>', html, re.S)
    of_models = [n for n in FIGURE.findall(source) if n.split(".")[-1] not in OF_CAPTURED]
    assert len([f for f in figures if not CAPTURED.match(f)]) == len(of_models)
    assert [f for f in figures if "<title" not in f or "<desc" not in f or "<table" not in f] == []


@pytest.mark.parametrize(
    ("stem", "values"),
    [
        ("hbm_traffic", ["8.91", "136.31", "2155.87", "257.0", "541.13"]),
        ("online_softmax", ["53.6863940430", "3.7557683242"]),
        ("roofline", ["295.5", "1365.3", "990.0", "64.0", "214.4", "206.1"]),
        ("memory_wall", ["145.3", "333.3", "10.7", "257.7", "1.25", "153.0"]),
    ],
)
def test_a_lesson_holds_the_values_it_must(site, stem: str, values: list[str]) -> None:
    shown = text_of(lesson_html(site.folder, stem))
    assert [value for value in values if value not in shown] == []


def test_the_measured_column_of_hbm_traffic_is_what_the_counters_saw(site) -> None:
    shown = text_of(lesson_html(site.folder, "hbm_traffic"))
    rows = [row for row in counters("flash_attention") if row.direction == "forward"]
    measured = [f"{(row.read + row.written) / 1e6:.2f}" for row in rows] or ["not captured yet"]
    assert [value for value in measured if value not in shown] == []


def test_the_topic_library_has_a_card_for_every_lesson_in_order(site) -> None:
    home = (site.folder / "index.html").read_text("utf-8")
    cards = re.findall(r'class="card-title" href="lessons/(\w+)/"', home)
    assert cards == lessons()
    shown = text_of(home)
    expected = [goal for stem in lessons() for goal in front_matter(stem)["goals"]]
    assert [goal for goal in expected if goal not in shown] == []


def test_a_lesson_leads_to_the_library_to_the_one_before_and_to_the_next(site) -> None:
    stems = lessons()
    for kind, expected in (("Previous", stems[:-1]), ("Next", stems[1:])):
        link = re.compile(rf'<a href="\.\./(\w+)/">{kind} lesson')
        found = [link.search(lesson_html(site.folder, stem)) for stem in stems]
        assert [one[1] for one in found if one] == expected
    assert [lesson_html(site.folder, s).count(BACK) for s in stems] == [1] * len(stems)


def test_an_address_that_is_none_leads_to_the_library_and_the_search(site) -> None:
    html = (site.folder / "404.html").read_text("utf-8")
    shown = text_of(html.split("<article")[1].split("</article>")[0])
    assert "This page does not exist" in shown
    assert "the search at the top" in shown
    assert re.search(r'<a href="?(?:/course)?/?\.?"?>topic library</a>', html)


def test_every_page_is_reachable_and_no_link_or_anchor_is_broken(site) -> None:
    every = pages(site.folder)
    parsed = {name: Links(html) for name, html in every.items()}
    internal = [
        (name, *urldefrag(urljoin(f"{site.url}{name}", link)))
        for name, found in parsed.items()
        if name != "404.html"
        for link in [*found.links, *found.loads]
        if urlparse(urljoin(site.url, link)).netloc == urlparse(site.url).netloc
    ]
    targets = [(name, url.removeprefix(site.url), anchor) for name, url, anchor in internal]
    missing = [t for t in targets if not (site.folder / t[1]).exists()]
    dead = [t for t in targets if t[1] in parsed and t[2] and t[2] not in parsed[t[1]].ids]
    assert missing == []
    assert [t for t in dead if not t[2].startswith("__")] == []
    assert set(parsed) - {"404.html"} == {t[1] for t in targets if t[1] in parsed}


def test_no_id_stands_twice_on_a_lesson(site) -> None:
    ids = {stem: Links(lesson_html(site.folder, stem)).ids for stem in lessons()}
    assert {stem: sorted(i for i in set(x) if x.count(i) > 1) for stem, x in ids.items()} == {
        stem: [] for stem in ids
    }


def test_no_page_loads_anything_from_another_host(site) -> None:
    host = urlparse(site.url).netloc
    loads = {
        urljoin(f"{site.url}{name}", target)
        for name, html in pages(site.folder).items()
        for target in Links(html).loads
    }
    assert [url for url in loads if urlparse(url).netloc not in (host, "")] == []


def test_math_is_mathml_and_needs_no_script(site) -> None:
    html = lesson_html(site.folder, "naive_attention")
    assert html.count("<math") >= 3
    assert "arithmatex" not in re.sub(r'class="arithmatex"', "", html)
    assert not re.search(r"mathjax|katex", html, re.I)


def test_the_search_index_holds_online_softmax(site) -> None:
    index = json.loads((site.folder / "search" / "search_index.json").read_text("utf-8"))
    titles = {doc["location"]: doc["title"] for doc in index["docs"]}
    assert "Online softmax" in titles["lessons/online_softmax/"]


def test_the_notebook_can_be_downloaded_and_is_its_source(site) -> None:
    file = site.folder / "practice" / "softmax_rounding" / "softmax_rounding.ipynb"
    notebook = nbformat.read(file, as_version=4)
    source = jupytext.read(ROOT / "docs" / "practice" / "softmax_rounding.py")
    nbformat.validate(notebook)
    assert [cell.source for cell in notebook.cells] == [cell.source for cell in source.cells]
    page = (file.parent / "index.html").read_text("utf-8")
    assert "softmax_rounding.ipynb" in Links(page).links


def test_no_page_of_a_notebook_can_load_a_renderer_from_another_host(site) -> None:
    html = (site.folder / "practice" / "softmax_rounding" / "index.html").read_text("utf-8")
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", html, re.S)
    assert not [code for code in scripts if re.search(r"mermaid|mathjax|https?://", code, re.I)]
    assert [code for code in scripts if "clipboard-copy" in code]  # its copy buttons still work


def test_nothing_of_the_theme_is_sent_that_no_page_uses(site) -> None:
    assert not list(site.folder.glob("assets/_markdown_exec_*"))
    assert "_markdown_exec_" not in (site.folder / "index.html").read_text("utf-8")
