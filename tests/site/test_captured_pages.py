"""The built pages with a second device, with no result at all, and with a kernel that changed."""

import json
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from kernels.bench.cases import JOBS, STEMS
from kernels.bench.digest import source_digest
from kernels.bench.schema import read
from sitebuild.labs import ROOT

KEPT = ("ours", "eager", "two-loops", "flash_attention")
CARD = "Contributor's <Card> 9000"
PAGES = [f"kernels/{stem}" for stem in STEMS]
RESULTS = ROOT / "kernels" / "results"
NOT_CAPTURED = {stem for stem in STEMS if not any(RESULTS.glob(f"{stem}.*.json"))}
CAPTURED = [stem for stem in STEMS if stem not in NOT_CAPTURED]
LESSONS = ["hbm_traffic", "online_softmax", "roofline", "triton_kernels", "memory_wall"]
SHOWING = [*PAGES, "kernels", *(f"lessons/{stem}" for stem in LESSONS)]


def build(tree: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", "out"],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return tree / "out"


def page(site: Path, path: str) -> str:
    return (site / path / "index.html").read_text("utf-8")


def add_a_card(tree: Path, stem: str) -> None:
    """A second result: another device, other versions, fewer rows, nothing counted."""
    folder = tree / "kernels" / "results"
    result = json.loads(min(folder.glob(f"{stem}.*.json")).read_text("utf-8"))
    result["device"] |= {"name": CARD, "driver": None, "power_limit_w": None}
    result["run"] |= {"torch": "9.9.9", "dirty": None, "ptxas": None}
    result |= {"counters": "ncu may not read counters here", "uncounted": [], "launches": []}
    result["rows"] = [row for row in result["rows"] if row["implementation"] in KEPT]
    path = folder / f"{stem}.card.json"
    path.write_text(json.dumps(result), "utf-8")
    read(path)  # valid by the schema


@pytest.fixture
def captured(copy: Path) -> Path:
    """A copy of the sources with its results as if they were of this very code."""
    for stem in CAPTURED:
        path = min((copy / "kernels" / "results").glob(f"{stem}.*.json"))
        result = json.loads(path.read_text("utf-8"))
        result["run"]["source_digest"] = source_digest(f"kernels.{stem}")
        path.write_text(json.dumps(result), "utf-8")
    return copy


def test_a_second_device_stands_beside_the_first_on_every_page(captured: Path) -> None:
    first = min(captured.glob("kernels/results/softmax.*.json"))
    device = json.loads(first.read_text("utf-8"))["device"]["name"]
    assert [add_a_card(captured, stem) for stem in CAPTURED] == [None] * len(CAPTURED)
    site = build(captured)
    showing = [path for path in SHOWING if path.removeprefix("kernels/") not in NOT_CAPTURED]
    shown = {path: page(site, path) for path in showing}
    text = {path: unescape(re.sub(r"<[^>]+>", "", html)) for path, html in shown.items()}
    with_launches_alone = {"lessons/memory_wall"}  # the card has none
    assert [path for path in showing if device not in text[path]] == []
    assert {path for path in showing if CARD not in text[path]} == with_launches_alone
    ids = {path: re.findall(r'\bid="?([^"\s>]+)', html) for path, html in shown.items()}
    assert [path for path in showing if len(ids[path]) != len(set(ids[path]))] == []
    assert [path for path in showing if 'class="stale"' in shown[path]] == []
    assert "torch 9.9.9" in text["kernels/softmax"]
    assert "Not counted: ncu may not read counters here." in text["kernels/softmax"]


def test_where_nothing_is_captured_every_page_says_so(copy: Path) -> None:
    shutil.rmtree(copy / "kernels" / "results")
    site = build(copy)
    jobs = [f"kernels/{stem}" for stem in JOBS]
    assert [path for path in {*SHOWING, *jobs} if "ot captured yet" not in page(site, path)] == []
    assert [path for path in jobs if "<figure" in page(site, path)] == []


def test_a_changed_kernel_marks_its_tables_and_charts_everywhere(captured: Path) -> None:
    with (captured / "kernels" / "flash_attention.py").open("a", encoding="utf-8") as out:
        out.write("\nCHANGED = 1\n")
    site = build(captured)
    html = page(site, "kernels/flash_attention")
    parts = html.count('class="stale"')
    assert parts == html.count('class="origin"') + html.count("<figure")
    assert parts >= 8
    marked = [path for path in SHOWING if 'class="stale"' in page(site, path)]
    ladder = {"kernels/attention_ladder", "lessons/triton_kernels"}  # the kernel stands on it too
    assert [path for path in marked if path not in ladder] == [
        "kernels/flash_attention",
        "kernels",
        "lessons/hbm_traffic",
        "lessons/roofline",
        "lessons/memory_wall",
    ]
    assert ladder & set(marked) == (set() if "attention_ladder" in NOT_CAPTURED else ladder)
