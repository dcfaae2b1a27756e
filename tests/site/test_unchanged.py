"""A served page is rendered again when, and only when, something that it rests on changed."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sitebuild import page_faults, unchanged
from sitebuild.unchanged import FILES, LINKED_BY_ALL, RENDERED, begin, take_or_keep


class Page:
    """What MkDocs has for a page, anew in each build."""

    rendered = 0
    content = toc = _title_from_render = present_anchor_ids = None

    def __init__(self, name: str) -> None:
        self.file = SimpleNamespace(src_uri=name)

    def render(self, *_: Any) -> None:
        Page.rendered += 1
        self.content = f"render number {Page.rendered}"


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A small tree that is being served, with nothing kept."""
    for name in (*FILES, *LINKED_BY_ALL, "snippets/lab.py", "kernels/results/a.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(unchanged, "ROOT", tmp_path)
    monkeypatch.setattr(unchanged, "is_served", True)
    monkeypatch.setattr(unchanged, "kept", {})
    monkeypatch.setattr(Page, "rendered", 0)
    page_faults.begin("")
    return tmp_path


def build(text: str = "text", name: str = "page.md", pages: tuple[str, ...] = ("page.md",)) -> Any:
    """One build of one page; returns the page."""
    begin(pages)
    page = Page(name)
    take_or_keep(page, text)
    page.render(None, None)
    return page


def test_a_page_that_did_not_change_is_taken_as_it_was() -> None:
    first, second = build(), build()
    assert Page.rendered == 1
    assert [getattr(second, f) for f in RENDERED] == [getattr(first, f) for f in RENDERED]
    assert second.content == "render number 1"


def test_a_page_whose_text_changed_is_rendered_and_so_is_the_text_before() -> None:
    contents = [build(text).content for text in ("one", "two", "two", "one")]
    assert contents == [f"render number {n}" for n in (1, 2, 2, 3)]


@pytest.mark.parametrize(
    "changed", ["snippets/lab.py", "kernels/results/a.json", "CHANGELOG.md", *LINKED_BY_ALL]
)
def test_a_source_that_changed_renders_every_page(served: Path, changed: str) -> None:
    build()
    os.utime(served / changed, ns=(1, 1))
    build()
    assert Page.rendered == 2


def test_a_new_or_removed_file_or_page_renders_every_page(served: Path) -> None:
    build()
    (served / "snippets" / "new.py").touch()
    build()
    (served / "snippets" / "new.py").unlink()
    build()
    build(pages=("page.md", "other.md"))
    assert Page.rendered == 4


def test_a_page_with_a_fault_or_that_reads_other_pages_is_rendered_each_time() -> None:
    page_faults.report("a fault")
    build()
    build()
    page_faults.begin("")
    build("from sitebuild.topics import cards")
    build("from sitebuild.topics import cards")
    assert Page.rendered == 4


def test_nothing_is_kept_where_nothing_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unchanged, "is_served", False)
    build()
    build()
    assert Page.rendered == 2
    assert unchanged.kept == {}
