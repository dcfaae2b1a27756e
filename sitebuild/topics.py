"""The lessons as cards, in the order of `nav`, from the front matter of their pages."""

import re
from html import escape
from typing import Any

import yaml

from sitebuild.labs import ROOT

FRONT_MATTER = re.compile(r"\A---\n(?P<matter>.*?)\n---\n", re.S)
LEVELS = ("essential", "intermediate", "advanced", "expert", "tech-lead")


def lessons() -> list[str]:
    """Return the stems of the lessons in the order of `nav`."""
    return re.findall(r"^ +- lessons/(\w+)\.md$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)


def front_matter(stem: str) -> dict[str, Any]:
    """Return the front matter of one lesson, with its `title` from the first heading.

    Raises
    ------
    ValueError
        If a field is missing or the level is none of `LEVELS`.
    """
    page = (ROOT / "docs" / "lessons" / f"{stem}.md").read_text("utf-8")
    head = FRONT_MATTER.match(page)
    title = re.search(r"^# (.+)$", page, re.M)
    if not head or not title:
        raise ValueError(f"lessons/{stem}.md needs front matter and a first-level heading")
    fields: dict[str, Any] = yaml.safe_load(head["matter"])
    wanted = ("level", "minutes", "goals", "prerequisites", "description")
    missing = [name for name in wanted if not fields.get(name)]
    if missing:
        raise ValueError(f"lessons/{stem}.md lacks {', '.join(missing)} in its front matter")
    if fields["level"] not in LEVELS:
        raise ValueError(
            f"lessons/{stem}.md has the level {fields['level']!r}; allowed: {', '.join(LEVELS)}"
        )
    return {**fields, "title": title[1]}


def cards() -> str:
    """Return one card a lesson, as Markdown: place, level, minutes, title and goals."""
    blocks = []
    for number, stem in enumerate(lessons(), start=1):
        fields = front_matter(stem)
        goals = "\n".join(f"- {goal}" for goal in fields["goals"])
        blocks.append(
            f'<div class="card" markdown>\n'
            f"[{fields['title']}](lessons/{stem}.md){{.card-title}}\n\n"
            f'<p class="card-place">Lesson {number} · {escape(fields["level"].capitalize())} · '
            f"{fields['minutes']} min</p>\n\n{goals}\n\n</div>"
        )
    return '<div class="cards" markdown>\n' + "\n".join(blocks) + "\n</div>"
