"""The outputs of labs are marked for the page to run them; nothing else is."""

from pathlib import Path

import pytest
from markdown import Markdown

from sitebuild import lab_marks
from sitebuild.engine import Pin

LAB = '```python exec="1" result="text" id="waves"\nfrom sitebuild import run\n{}\n```'


@pytest.fixture
def html(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return what a page becomes, with the engine (of 2.5 MB) or without it."""
    monkeypatch.setattr("sitebuild.engine.CACHE", tmp_path)
    monkeypatch.setattr(lab_marks, "pin", lambda: Pin("pyodide", "1", {"a": "", "b": ""}))

    def convert(page: str, engine: bool = True) -> str:
        folder = tmp_path / ("1" if engine else "0")
        folder.mkdir()
        (folder / "a").write_bytes(bytes(1_500_000))
        (folder / "b").write_bytes(bytes(1_000_000))
        extensions = ["md_in_html", "pymdownx.superfences", "sitebuild.lab_marks"]
        return Markdown(extensions=extensions).convert(page)

    return convert


def test_the_fence_that_runs_a_lab_is_marked_with_its_stem(html) -> None:
    page = html("Before.\n\n" + LAB.format('print(run("snippets.waves"))') + "\n\nAfter.")
    marked = '<div class="lab" data-feature="lab" data-lab="waves" data-python="2.5 MB">\n'
    before, inside, after = page.replace(marked, "|").replace("\n</div>\n<p>After", "|").split("|")
    assert before == "<p>Before.</p>\n"
    assert inside.startswith('<p class="lab-off" data-search-exclude')
    assert f">{lab_marks.STATIC}</p>" in inside
    assert "<code" in inside
    assert after == ".</p>"


def test_two_labs_are_marked_apart(html) -> None:
    labs = [LAB.format(f'print(run("snippets.{stem}"))') for stem in ("waves", "roofs")]
    page = html("\n\n".join(labs))
    assert [page.count(f'data-lab="{stem}"') for stem in ("waves", "roofs")] == [1, 1]
    assert page.count("</div>") == page.count("<div")


@pytest.mark.parametrize(
    "fence",
    [
        LAB.format('print(run("sitebuild.figures.waves"))'),
        LAB.format('print(run("snippets.waves"))').replace(' result="text"', ""),
        LAB.format('print(run("snippets.waves"))\nprint(1)'),
        LAB.format('print(run("snippets.waves"))').replace('exec="1" ', ""),
    ],
)
def test_a_figure_and_other_fences_are_not_marked(html, fence: str) -> None:
    assert "data-lab" not in html(fence)


def test_without_the_engine_a_lab_says_why_it_cannot_be_run(html) -> None:
    page = html(LAB.format('print(run("snippets.waves"))'), engine=False)
    assert page.startswith('<div class="lab">\n')
    assert lab_marks.NO_ENGINE in page
    assert "data-feature" not in page
