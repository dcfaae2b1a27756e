"""Kernel pages in a browser: the answer first, tables that fold, fit and print."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from kernels.bench.cases import JOBS, STEMS
from sitebuild.labs import ROOT

pytestmark = pytest.mark.xdist_group("site")
PATHS = ["kernels/", *(f"kernels/{stem}/" for stem in JOBS)]
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"}
DESKTOP = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"}
LONG = "kernels/flash_attention/"
CAPTURED = [s for s in STEMS if any((ROOT / "kernels" / "results").glob(f"{s}.*.json"))]


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = browser.new_context(**getattr(request, "param", DESKTOP))
    yield context.new_page()
    context.close()


def open_page(page: Page, url: str) -> list[str]:
    """Open a page and return its complaints, and what it asked other hosts for."""
    complaints: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda r: complaints.append(f"failed: {r.url}"))
    page.goto(url, wait_until="networkidle")
    return complaints


@pytest.mark.parametrize("page", [PHONE, DESKTOP], ids=["phone", "desktop"], indirect=True)
@pytest.mark.parametrize("path", PATHS)
def test_a_kernel_page_fits_the_screen_without_complaint(site, page: Page, path: str) -> None:
    assert open_page(page, site.url + path) == []
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.viewport_size["width"]


@pytest.mark.parametrize("page", [PHONE], indirect=True)
@pytest.mark.parametrize("stem", CAPTURED)
def test_the_answer_fits_a_phone_and_stands_on_its_first_screen(
    site, page: Page, stem: str
) -> None:
    open_page(page, f"{site.url}kernels/{stem}/")
    summary = page.locator("#in-short ~ .measured table").first.bounding_box()
    assert summary["y"] < 844
    assert summary["x"] + summary["width"] <= 390


def test_a_folded_table_opens_by_keyboard(site, page: Page) -> None:
    open_page(page, site.url + LONG)
    fold = page.locator("#speed ~ .measured details").first
    expect(fold.locator("table")).to_be_hidden()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(fold.locator("table")).to_be_visible()


def test_print_shows_what_the_screen_folds(site, page: Page) -> None:
    open_page(page, site.url + LONG)
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 without its margins
    fold = page.locator("#speed ~ .measured details").first
    folded = fold.bounding_box()["height"]
    page.emulate_media(media="print")
    table = fold.locator("table").bounding_box()
    assert table["height"] > 5 * folded
    assert table["x"] + table["width"] <= 718


def test_each_part_leads_to_the_circumstances_of_its_measurement(site, page: Page) -> None:
    open_page(page, site.url + LONG)
    links = page.locator(".origin a")
    assert links.count() >= 5
    links.first.scroll_into_view_if_needed()
    page.wait_for_timeout(500)  # the theme stores the scroll after 100 ms and would return to it
    links.first.click()
    expect(page.locator("[id^=captured-on-]")).to_be_in_viewport()
    told = page.locator("p:has([id^=captured-on-]) + *")
    expect(told).to_contain_text("kernels.bench flash_attention")


def test_a_chart_holds_a_dot_for_every_case(site, page: Page) -> None:
    open_page(page, site.url + LONG)
    figure = page.locator("figure[id^=shares-]").first
    rows = figure.locator("tbody tr").count()
    assert figure.locator("circle").count() == 2 * rows  # one for the roof, one for the peers
