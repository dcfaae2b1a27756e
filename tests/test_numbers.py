"""Every number in the prose comes from somewhere that a machine or a reader can check.

A number counts as traced when the same page shows it in an included file or in the output of a
block, when its paragraph links to a source, or when it is given by a prediction or an exercise.
What is left must stand in `numbers.toml` with the expression that yields it, which is computed
here. Whole numbers below ten only count things. Numbers in code are the code's own.
"""

import contextlib
import importlib
import io
import math
import re
import tomllib
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import torch

from sitebuild.labs import ROOT
from sitebuild.references import sources
from snippets.hardware import fact

DOCS = ROOT / "docs"
# the list of sources, wrong numbers that are quoted, and versions that are read from the lock
EXEMPT = {"reference/sources", "reference/errata", "reference/dependencies"}
WORKED = tomllib.loads((ROOT / "tests" / "numbers.toml").read_text("utf-8"))
ENTRIES = [(page, number) for page, numbers in WORKED.items() for number in numbers]
NUMBER = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?!\w|\.\d)")
VALUE = re.compile(r"(?<![A-Za-z_.,\d])\d+(?:,\d{3})*(?:\.\d+)?")  # `3.35e12` shows 3.35
FENCE = re.compile(r"^( *)```(?P<head>.*)\n(?P<code>(?:.*\n)*?)\1```$", re.M)
INCLUDE = re.compile(r'^ *--8<-- "([^":]+)', re.M)
CITATION = re.compile(r"\]\[([\w-]+)\]")
TABLES_WITH_SOURCES = re.compile(r"\]\((?:\.\./reference/)?(?:hardware|method)\.md")
PREMISE = re.compile(
    r'<div class="predict".*?</div>|<section class="exercise".*?(?=^\?\?\? success)', re.M | re.S
)
SOLUTION = re.compile(r"^\?\?\? success.*?</section>", re.M | re.S)
NAMES = {path.stem for path in (ROOT / "snippets").glob("*.py")} - {"__init__"}


def key(page: Path) -> str:
    return page.relative_to(DOCS).with_suffix("").as_posix()


PAGES = {key(p): p for p in sorted(DOCS.rglob("*.md")) if key(p) not in EXEMPT}


def plain(number: str) -> str:
    """Without separators, and without zeros at the end of a fraction."""
    number = number.replace(",", "")
    return number.rstrip("0").rstrip(".") if "." in number else number


def numbers(text: str, pattern: re.Pattern[str] = NUMBER) -> set[str]:
    return {plain(number) for number in pattern.findall(text)}


def printed(code: str) -> str:
    """What a block of a page prints, without tags."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "<block>", "exec"), {})
    return re.sub(r"</?[a-z][^>]*>", " ", out.getvalue())


@cache
def shown(text: str) -> set[str]:
    """The numbers that the blocks of a page show or print; of an included file, all of them."""
    parts = []
    for fence in FENCE.finditer(text):
        files = [(ROOT / name).read_text("utf-8") for name in INCLUDE.findall(fence["code"])]
        is_run = 'exec="1"' in fence["head"]
        parts += [printed(dedent(fence["code"]))] if is_run else [fence["code"], *files]
    return numbers(" ".join(parts), VALUE)


def paragraphs(text: str) -> list[str]:
    """The prose, without premises and code; a row of a table is a paragraph of its own."""
    prose = PREMISE.sub("", FENCE.sub("", text))
    rows = re.sub(r"^(\|.*)$", r"\n\1\n", prose, flags=re.M)
    return [part for part in re.split(r"\n\s*\n", rows) if part.strip()]


def is_cited(paragraph: str) -> bool:
    keys = set(CITATION.findall(paragraph))
    return bool(keys & sources().keys() or TABLES_WITH_SOURCES.search(paragraph))


def without_code_and_targets(paragraph: str) -> str:
    text = re.sub(r"`[^`]*`", " ", paragraph)
    return re.sub(r"\]\([^)]*\)|\]\[[^\]]*\]|\{ *[#.:][^}]*\}|<[^>]*>", " ", text)


def untraced(page: str) -> dict[str, str]:
    """Each number of the prose that no rule traces, with its paragraph."""
    text = re.sub(r"\A---\n.*?\n---\n", "", page, flags=re.S)
    given = numbers(" ".join(PREMISE.findall(text)))
    solutions = " ".join(SOLUTION.findall(text))
    found = {}
    for paragraph in paragraphs(text):
        allowed = shown(text) | (given if paragraph in solutions else set())
        rest = numbers(without_code_and_targets(paragraph)) - allowed
        if not is_cited(paragraph):
            found |= {number: paragraph for number in rest if not re.fullmatch(r"\d", number)}
    return found


@cache
def namespace() -> dict[str, Any]:
    """What an expression may use: math, torch's own limits, the labs and the device table."""
    labs = {name: importlib.import_module(f"snippets.{name}") for name in NAMES}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return vars(math) | labs | {"fact": fact, "torch": torch, "project": project}


@pytest.mark.parametrize("page", PAGES)
def test_every_number_in_the_prose_can_be_traced(page: str) -> None:
    found = untraced(PAGES[page].read_text("utf-8"))
    worked = {plain(number) for number in WORKED.get(page, {})}
    left = [f"{number}: {text}" for number, text in sorted(found.items()) if number not in worked]
    assert left == [], f"{page} has numbers that nothing yields:\n\n" + "\n\n".join(left)


@pytest.mark.parametrize(("page", "number"), ENTRIES)
def test_a_worked_number_is_what_its_expression_yields(page: str, number: str) -> None:
    value = float(eval(WORKED[page][number], namespace()))
    digits = len(number.partition(".")[2])
    assert f"{value:.{digits}f}" == number.replace(",", "")


@pytest.mark.parametrize(("page", "number"), ENTRIES)
def test_a_worked_number_stands_in_the_prose_of_its_page(page: str, number: str) -> None:
    prose = "\n".join(paragraphs(PAGES[page].read_text("utf-8")))
    assert plain(number) in numbers(without_code_and_targets(prose))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Attention takes 37 % of a step.", {"37"}),
        ("It moves 1,234.50 MB.", {"1234.5"}),
        (
            "| case | 12 |\n| --- | --- |\n| See [it][dao2022], 15 | 16 |\n| none | 17 |",
            {"12", "17"},
        ),
        ("By $2^{31}$ and $x \\approx 0.135$.", {"31", "0.135"}),
        ("About 37 %, says [the paper][dao2022].", set()),
        ("About 37 %, says [the table](../reference/hardware.md).", set()),
        ("About 37 %, says [another page](roofline.md).", {"37"}),
        ("About 37 %, says [a term][tile].", {"37"}),
        ("H100, bf16, FlashAttention-2, `x[37]`, lesson 3 and 3 x 5.", set()),
        ('```python exec="1"\nprint(37.0)\n```\n\nThe output says 37.', set()),
        ('```python\n--8<-- "snippets/hardware.py:table"\n```\n\nIt is 3.35 TB/s.', set()),
        ('<div class="predict" markdown>\n10, 20 or 30?\n</div>\n\nIt is 20.', {"20"}),
        (
            '<section class="exercise" markdown>\n\nTake 41.\n\n??? success "Solution"\n'
            "    41 + 1 is 42.\n\n</section>\n\nIt was 41.",
            {"41", "42"},
        ),
    ],
)
def test_a_number_counts_as_traced_by_these_rules(text: str, expected: set[str]) -> None:
    assert set(untraced(text)) == expected
