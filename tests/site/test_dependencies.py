"""The dependencies page names what pyproject.toml asks for, with its locked version and licence."""

import json
import re
from email.message import Message
from pathlib import Path

import pytest

from sitebuild import engine
from sitebuild.dependencies import LICENCES, direct, locked, normal, outside_the_lock, table
from sitebuild.labs import ROOT
from sitebuild.licences import licence, metadata_of

PAGE = (ROOT / "docs" / "reference" / "dependencies.md").read_text("utf-8")
SECTIONS = {
    "docs": "What builds the site",
    "test": "What tests it",
    "npm": "What brings Python",
    "upkeep": "What keeps it",
}
RECORDED = json.loads(LICENCES.read_text("utf-8"))


def listed(section: str) -> list[str]:
    rows = next(part for part in PAGE.split("\n## ") if section in part.splitlines()[0])
    return re.findall(r"^\| ([\w-]+) \|", rows, re.M)[1:]


def test_every_group_has_its_section() -> None:
    assert direct().keys() == SECTIONS.keys()


@pytest.mark.parametrize(("group", "section"), SECTIONS.items())
def test_a_section_lists_the_group_and_nothing_else(group: str, section: str) -> None:
    beside = {"test": [*outside_the_lock()], "npm": [engine.pin().package]}.get(group, [])
    assert sorted(listed(section)) == sorted([*direct()[group], *beside])


def test_every_reason_says_something() -> None:
    rows = re.findall(r"^\| [\w-]+ \|(.*)\|(.*)\|$", PAGE, re.M)
    assert len(rows) > 20
    assert [row for row in rows if not all(cell.strip() for cell in row)] == []


def test_the_licences_are_those_of_the_locked_packages() -> None:
    versions = locked()
    assert RECORDED.keys() == versions.keys(), "run `make lock`"
    assert [n for n, e in RECORDED.items() if e["version"] not in versions[n]] == []


@pytest.mark.parametrize("name", ["mkdocs-material", "pytest", "pygments"])
def test_a_recorded_licence_is_what_the_installed_package_names(name: str) -> None:
    assert RECORDED[name]["licence"] == licence(*metadata_of(name, locked()[name]))


def test_the_table_shows_every_locked_package_once_and_ours_first() -> None:
    rows = re.findall(r"^ *\| ([\w-]+) \| ([^|]+) \| ([^|]+) \|$", table(), re.M)
    names = [name for name, *_ in rows if name not in ("Package", "---")]
    asked = sorted(name for names in direct().values() for name in names)
    assert names[: len(asked)] == asked
    assert sorted(names) == sorted(locked())


def test_both_versions_of_a_package_are_read_from_a_lock(tmp_path: Path) -> None:
    (tmp_path / "docs.txt").write_text(
        "a-b==1.0 ; python_full_version < '3.12' \\\n    --hash=sha256:00\n"
        "a-b==2.0 ; python_full_version >= '3.12' \\\n    --hash=sha256:11\nc==3\n"
    )
    (tmp_path / "test.txt").write_text("c==3 \\\n    --hash=sha256:22\n")
    assert locked(tmp_path) == {"a-b": ["1.0", "2.0"], "c": ["3"]}


@pytest.mark.parametrize(
    ("requirement", "name"),
    [
        ("types-PyYAML", "types-pyyaml"),
        ("mkdocs-jupyter<0.27", "mkdocs-jupyter"),
        ("setuptools>=77", "setuptools"),
        ("ruamel.yaml ; sys_platform == 'linux'", "ruamel-yaml"),
        ("coverage[toml]==7", "coverage"),
    ],
)
def test_a_requirement_has_the_name_that_the_lock_writes(requirement: str, name: str) -> None:
    assert normal(requirement) == name


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"License-Expression": "MIT", "License": "x"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: BSD License", "License": "x"}, "BSD License"),
        ({"License": "ISC\nlong text"}, "ISC"),
    ],
)
def test_an_expression_counts_before_a_classifier_before_text(
    fields: dict[str, str], expected: str
) -> None:
    message = Message()
    [message.add_header(name, value) for name, value in fields.items()]
    assert licence(message) == expected


def test_a_licence_that_only_its_text_names_is_the_first_line_of_that_text() -> None:
    assert licence(Message(), "MIT License\n\nCopyright") == "MIT License"


def test_a_package_without_a_licence_is_refused_by_name() -> None:
    message = Message()
    message.add_header("Name", "nameless")
    with pytest.raises(ValueError, match="nameless None names no licence"):
        licence(message)
