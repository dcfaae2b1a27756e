"""The lessons as cards, in the order of `nav`, from the front matter of their pages."""

import posixpath
import re
from collections.abc import Callable
from html import escape
from typing import Any

import yaml

from sitebuild.labs import ROOT

FRONT_MATTER = re.compile(r"\A---\n(?P<matter>.*?)\n---\n", re.S)
FENCE = re.compile(r"^( *)```.*?^\1```$", re.M | re.S)
OPTIONAL = re.compile(
    r"^- \*\*(?P<kind>Visualize|Practice|Deep dive)\*\* \[[^\]]+\]\((?P<target>[^)]+)\)", re.M
)
LEVELS = ("essential", "intermediate", "advanced", "expert", "tech-lead")


def lessons() -> list[str]:
    """Return the stems of the lessons in the order of `nav`."""
    return re.findall(r"^ +- lessons/(\w+)\.md$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)


def front_matter(stem: str) -> dict[str, Any]:
    """Return the front matter of one lesson, with its `title` from the first heading.

    Raises
    ------
    ValueError
        If a field is missing or is not what it should be, naming the page and the field.
    """
    page = (ROOT / "docs" / "lessons" / f"{stem}.md").read_text("utf-8")
    head = FRONT_MATTER.match(page)
    title = re.search(r"^# (.+)$", FENCE.sub("", page[head.end() :] if head else ""), re.M)
    if not head or not title:
        raise ValueError(f"lessons/{stem}.md needs front matter and a first-level heading")
    try:
        fields = yaml.safe_load(head["matter"])
    except yaml.YAMLError as error:
        raise ValueError(f"lessons/{stem}.md has front matter that is no YAML: {error}") from None
    fields = fields if isinstance(fields, dict) else {}
    allowed: dict[str, Callable[[Any], bool]] = {
        "level": lambda value: value in LEVELS,
        "minutes": lambda value: type(value) is int and value > 0,
        "goals": _is_list_of_text,
        "prerequisites": _is_list_of_text,
        "description": lambda value: isinstance(value, str) and value != "",
    }
    for name, is_right in allowed.items():
        if not is_right(fields.get(name)):
            raise ValueError(
                f"lessons/{stem}.md has {name}: {fields.get(name)!r} in its front matter; allowed: "
                f"level one of {', '.join(LEVELS)}; minutes a whole number above 0; goals and "
                "prerequisites lists of text; description a text"
            )
    return {**fields, "title": title[1]}


def _is_list_of_text(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) and v for v in value) and value != []


def optional(stem: str) -> dict[str, str]:
    """Return kind -> its first link for what a lesson offers beside its text, as it says itself.

    Raises
    ------
    ValueError
        If the lesson does not name all three kinds, naming the lesson and what it has.
    """
    page = (ROOT / "docs" / "lessons" / f"{stem}.md").read_text("utf-8")
    found = {match["kind"]: match["target"] for match in OPTIONAL.finditer(page)}
    if list(found) != ["Visualize", "Practice", "Deep dive"]:
        raise ValueError(
            f"lessons/{stem}.md must offer Visualize, Practice and Deep dive, each with a link; "
            f"it has {', '.join(found) or 'none'}"
        )
    return found


def _optional_links(stem: str) -> str:
    """Return the links of `optional` as the topic library needs them."""
    links = []
    for kind, target in optional(stem).items():
        page = f"{stem}.md{target}" if target.startswith("#") else target
        links.append(f"[{kind}]({posixpath.normpath(posixpath.join('lessons', page))})")
    return " · ".join(links)


def cards() -> str:
    """Return one card a lesson, as Markdown: place, level, minutes, title, goals, progress."""
    blocks = []
    for number, stem in enumerate(lessons(), start=1):
        fields = front_matter(stem)
        goals = "\n".join(f"- {goal}" for goal in fields["goals"])
        blocks.append(
            f'<div class="card" markdown>\n'
            f"[{fields['title']}](lessons/{stem}.md){{.card-title}}\n\n"
            f'<p class="card-place">Lesson {number} · {escape(fields["level"].capitalize())} · '
            f"{fields['minutes']} min</p>\n\n{goals}\n\n"
            f'<p class="card-optional" markdown>Optional: {_optional_links(stem)}</p>\n\n'
            f'<p class="card-progress" data-lesson="{stem}" data-state="none">Not started</p>'
            "\n\n</div>"
        )
    return '<div class="cards" markdown>\n' + "\n".join(blocks) + "\n</div>"
