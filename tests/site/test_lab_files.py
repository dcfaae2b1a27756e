"""A site holds what its labs run and read, as the repository has it, and a list for each lab."""

import json
import re
from pathlib import Path

import pytest

from sitebuild.lab_files import labs, needs, write_lab_files
from sitebuild.labs import ROOT

RESULTS = sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / "kernels" / "results").glob("*.json")
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("site")
    write_lab_files(site)
    return site / "assets" / "labs"


def listed(folder: Path, stem: str) -> list[str]:
    return json.loads((folder / f"{stem}.json").read_text("utf-8"))


def test_every_lab_has_a_list(folder: Path) -> None:
    files = {path.stem for path in (ROOT / "snippets").glob("*.py")} - {"__init__"}
    assert {path.stem for path in folder.glob("*.json")} == files == set(labs())


@pytest.mark.parametrize("stem", labs())
def test_what_is_listed_is_there_and_is_the_file_of_the_repository(folder: Path, stem: str) -> None:
    paths = listed(folder, stem)
    assert paths[0] == f"snippets/{stem}.py"
    assert len(paths) == len(set(paths))
    assert {path: (folder / path).read_bytes() for path in paths} == {
        path: (ROOT / path).read_bytes() for path in paths
    }


def test_the_list_follows_imports_of_imports() -> None:
    assert needs("waves") == [
        "snippets/waves.py",
        "snippets/__init__.py",
        "snippets/hardware.py",
        "snippets/naive_attention.py",
    ]


@pytest.mark.parametrize("stem", labs())
def test_captured_results_go_with_the_labs_that_can_read_them(stem: str) -> None:
    imports = [
        re.findall(r"^from snippets\.(\w+)", (ROOT / p).read_text(), re.M)
        for p in needs(stem)
        if p.endswith(".py")
    ]
    reads = stem == "captured" or any("captured" in names for names in imports)
    assert [path for path in needs(stem) if path.endswith(".json")] == (RESULTS if reads else [])
