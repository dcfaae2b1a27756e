"""The built lessons hold their exercises: start, hints and solution, and what a check needs."""

import json
import re
from html import unescape

import pytest

from sitebuild.exercises import exercises, read
from sitebuild.topics import cards, lessons, optional

pytestmark = pytest.mark.xdist_group("site")


@pytest.fixture(scope="module")
def sections(site) -> dict[str, str]:
    """The HTML of each exercise in code, by its name."""
    pages = [site.folder / "lessons" / stem / "index.html" for stem in lessons()]
    found = re.findall(
        r'<section class="exercise"[^>]* data-exercise="(\w+)".*?>(.+?)</section>',
        "\n".join(page.read_text("utf-8") for page in pages),
        re.S,
    )
    assert len(dict(found)) == len(found)
    return dict(found)


def codes(html: str) -> list[str]:
    """The text of its blocks of code."""
    blocks = re.findall(r"<pre>.*?<code>(.*?)</code></pre>", html, re.S)
    return [unescape(re.sub(r"<[^>]+>", "", block)) for block in blocks]


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", "", html)).split())


def test_every_exercise_is_on_the_built_lessons(sections: dict[str, str]) -> None:
    assert sorted(sections) == exercises()


@pytest.mark.parametrize("stem", exercises())
def test_a_built_exercise_has_its_start_hints_and_solution(sections, stem: str) -> None:
    parts = read(stem)
    hints = [words(hint.replace("`", "")) for hint in parts.hints]
    places = [words(sections[stem]).find(hint) for hint in hints]
    assert codes(sections[stem]) == [parts.skeleton, parts.solution]
    assert places[0] > -1
    assert places == sorted(places)


@pytest.mark.parametrize("stem", exercises())
def test_the_site_has_what_a_check_needs(site, stem: str) -> None:
    program = json.loads((site.folder / "assets" / "exercises" / f"{stem}.json").read_text())
    assert f"snippets/practice/{stem}.py" in program["files"]
    assert program["answer"] not in program["files"]
    assert f"{program['module']}.py" in program["files"]


def test_the_search_finds_the_titles_of_exercises_and_gives_away_no_solution(site) -> None:
    index = json.loads((site.folder / "search" / "search_index.json").read_text("utf-8"))
    texts = {doc["title"]: doc["text"] for doc in index["docs"]}
    titles = [f"In code: {read(stem).title}" for stem in exercises()]
    assert {title: texts[title] for title in titles} == dict.fromkeys(titles, "")
    assert "Solution" not in "".join(texts.values())


def test_cards_lead_to_what_is_optional() -> None:
    text = cards()
    assert text.count("[Visualize](lessons/") == len(lessons())
    assert f"[Practice](lessons/roofline.md{optional('roofline')['Practice']})" in text
    assert "[Deep dive](kernels/flash_attention.md)" in text
