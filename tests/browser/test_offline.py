"""The zip of the site opens from disk with working links, figures and search."""

import hashlib
import os
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Page, expect

from sitebuild.offline import NAME, SHIM, build, pack
from sitebuild.topics import lessons

pytestmark = pytest.mark.xdist_group("site")
SHIM_SHA256 = "e8e412dbcfea9b7e31b5ffa288d7b6035915e714c542f4176a0cdbe262fc9609"
TARGETS = """() => [...document.querySelectorAll("[href], [src]")].map(e => e.href || e.src)
  .filter(address => typeof address === "string")"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that a reader gets, at a path with a space in it."""
    folder = tmp_path_factory.mktemp("a disk")
    build(folder / "site")
    pack(folder / "site", folder / "site.zip")
    with zipfile.ZipFile(folder / "site.zip") as packed:
        packed.extractall(folder)
    return folder / NAME


def address(unpacked: Path, page: str) -> str:
    return (unpacked / page).as_uri()


def missing(page: Page, root: Path) -> list[str]:
    """The files that the open page links to or loads and that are not there."""
    targets = {urlsplit(target) for target in page.evaluate(TARGETS)}
    local = {Path(unquote(target.path)) for target in targets if target.scheme == "file"}
    return sorted(str(path) for path in local if not path.is_file() or root not in path.parents)


def test_every_link_of_every_page_leads_to_a_file(unpacked: Path, visit) -> None:
    pages = sorted(path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*.html"))
    lost = {name: missing(visit.open(address(unpacked, name)), unpacked) for name in pages}
    assert len(pages) >= 20
    assert lost == {name: [] for name in pages}
    assert visit.complaints == []


def test_a_reader_goes_from_the_library_to_a_lesson_and_back(unpacked: Path, visit) -> None:
    page = visit.open(address(unpacked, "index.html"))
    page.get_by_role("link", name="Fusion and the roofline").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Fusion and the roofline")
    expect(page.locator("figure svg").first).to_be_visible()
    expect(page.locator("math").first).to_be_visible()
    page.locator(".lesson-place a").click()
    expect(page.locator(".card")).to_have_count(len(lessons()))
    assert visit.complaints == []


def test_search_finds_from_disk_and_leads_there(unpacked: Path, visit) -> None:
    page = visit.open(address(unpacked, "lessons/gpu_model.html"))
    page.locator("[data-md-component=search-query]").press_sequentially("online softmax")
    first = page.locator(".md-search-result__link").first
    expect(first).to_be_visible()
    first.click()
    page.wait_for_url("**/lessons/online_softmax.html**")
    assert visit.complaints == []


def test_what_cannot_work_from_disk_is_not_shown(unpacked: Path, visit) -> None:
    page = visit.open(address(unpacked, "lessons/online_softmax.html"))
    expect(page.locator("fieldset.progress").first).to_be_hidden()
    expect(page.locator(".feedback-answer")).to_be_hidden()
    page.goto(address(unpacked, "index.html"))
    expect(page.locator(".card-progress").first).to_be_hidden()


def test_the_same_site_gives_the_same_zip_and_holds_nothing_useless(
    site, unpacked: Path, tmp_path: Path
) -> None:
    pack(site.folder, tmp_path / "one.zip")
    os.utime(site.folder / "index.html", (0, 0))
    pack(site.folder, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert not [*unpacked.rglob("*.map"), *unpacked.rglob("lunr"), *unpacked.rglob("main.js")]


def test_the_shim_is_the_one_of_the_pinned_release() -> None:
    code = SHIM.read_text("utf-8").split(" */\n", 1)[1]
    assert hashlib.sha256(code.encode()).hexdigest() == SHIM_SHA256


def test_without_the_zip_a_page_from_disk_shows_no_search(site, visit) -> None:
    page = visit.open((site.folder / "lessons" / "gpu_model" / "index.html").as_uri())
    expect(page.get_by_role("heading", level=1)).to_contain_text("A mental model of the GPU")
    expect(page.locator("[data-md-component=search-query]")).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("label.md-header__button[for=__search]")).to_be_hidden()
