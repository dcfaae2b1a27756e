"""A printed page is a handout: light, complete, nothing cut off, nothing that needs a screen."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.xdist_group("site")
A4 = {"width": 680, "height": 960}  # what margins of 15 mm leave, in CSS pixels
DARK = [{"viewport": A4, "color_scheme": "dark"}]
PAGES = [
    "lessons/hbm_traffic/",
    "lessons/online_softmax/",
    "kernels/flash_attention/",
    "reference/hardware/",
    "practice/softmax_rounding/",
]
FOR_SCREENS = """() =>
  [...document.querySelectorAll("button, input, select, nav, header, form, .md-footer")]
  .filter(e => e.checkVisibility()).map(e => e.outerHTML.slice(0, 80))"""
CUT_OFF = """() => [...document.querySelectorAll("article *")]
  .filter(e => !e.closest("svg, math") && e.checkVisibility())
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1
    || (getComputedStyle(e).overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1))
  .map(e => `${e.tagName} ${e.className} ${e.textContent.slice(0, 40)}`)"""
COVERED = """() => [...document.querySelectorAll("article .origin")]
  .map(e => [e, e.previousElementSibling?.querySelector("table") ?? e.previousElementSibling])
  .filter(([e, above]) => above?.tagName === "TABLE" && e.checkVisibility())
  .filter(([e, table]) => e.getBoundingClientRect().top < table.getBoundingClientRect().bottom)
  .map(([e]) => e.textContent)"""
BRIGHTNESS = """([selector, property]) => {
  const element = document.querySelector(selector)
  return Math.max(...getComputedStyle(element)[property].match(/\\d+/g).slice(0, 3).map(Number))
}"""


STILL = """() => {
  const style = document.createElement("style")
  style.textContent = "* { transition: none !important }"
  document.head.append(style)
}"""


def printed(visit, address: str) -> Page:
    page = visit.open(address)
    page.emulate_media(media="print")
    page.evaluate(STILL)
    return page


@pytest.mark.parametrize("visit", DARK, indirect=True)
@pytest.mark.parametrize("path", PAGES)
def test_print_shows_nothing_for_screens_and_cuts_nothing_off(site, visit, path: str) -> None:
    page = printed(visit, site.url + path)
    assert page.evaluate(FOR_SCREENS) == []
    assert page.evaluate(CUT_OFF) == []


@pytest.mark.parametrize("visit", DARK, indirect=True)
@pytest.mark.parametrize("path", ["kernels/attention_ladder/", "kernels/model_path/"])
def test_in_print_no_table_covers_where_it_comes_from(site, visit, path: str) -> None:
    page = printed(visit, site.url + path)
    assert page.locator("article .md-typeset__scrollwrap + .origin").count() > 0
    assert page.evaluate(COVERED) == []


@pytest.mark.parametrize("visit", DARK, indirect=True)
def test_print_is_ink_on_white_paper_even_for_a_dark_reader(site, visit) -> None:
    page = printed(visit, site.url + "lessons/online_softmax/")
    papers = ("html", "body")
    inks = ("article p", "article h2", "article pre code", "article pre code .k", "article a")
    assert [page.evaluate(BRIGHTNESS, [s, "backgroundColor"]) for s in papers] == [255, 255]
    assert max(page.evaluate(BRIGHTNESS, [s, "color"]) for s in inks) < 190


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_print_unfolds_solutions_and_keeps_outputs_and_figures_without_javascript(
    site, visit
) -> None:
    page = printed(visit, site.url + "lessons/roofline/")
    expect(page.get_by_text("33.55 MB").first).to_be_visible()  # in the folded solution
    expect(page.locator("article")).to_contain_text("1365.3")
    expect(page.locator("figure svg").first).to_be_visible()


def test_a_page_prints_on_a_few_sheets(site, visit) -> None:
    page = visit.open(site.url + "lessons/roofline/")
    pdf = page.pdf(format="A4")
    assert 3 <= pdf.count(b"/Type /Page\n") <= 20
