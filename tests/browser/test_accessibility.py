"""axe finds nothing at WCAG 2.2 AA on any page; the keyboard reaches what the theme left out."""

from collections.abc import Iterator
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Page, expect

from sitebuild.labs import ROOT

pytestmark = pytest.mark.xdist_group("site")
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
PAGES = sorted(
    path.relative_to(ROOT / "docs").with_suffix("").as_posix().removesuffix("index")
    for kind in ("*.md", "practice/*.py")
    for path in (ROOT / "docs").rglob(kind)
)
ADDRESSES = [page if page.endswith("/") or not page else f"{page}/" for page in PAGES]
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}
SHOW_ALL = """async () => {
  document.querySelectorAll("details").forEach(part => { part.open = true })
  for (const part of [...document.querySelectorAll("[data-feature]"), document.body]) {
    part.scrollIntoView()
    await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))
  }
}"""
STILL = "* { transition: none !important; content-visibility: visible !important }"
SCHEME = "scheme => document.body.setAttribute('data-md-color-scheme', scheme)"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
EVERYTHING = {"type": "tag", "values": TAGS}
COLOURS = ["color-contrast"]
RUN = """async ([part, runOnly]) => {
  // the checkbox of the menu stands before every landmark, where the theme's style sheet needs it
  const rules = { region: { enabled: false } }
  const found = await axe.run(part, { rules, runOnly, resultTypes: ["violations"], preload: false })
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target}: ${failureSummary}`))
}"""


@pytest.fixture(scope="module", params=SIZES)
def reader(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """One tab for all pages: opening a new one for each would take longer than the check."""
    width, height = SIZES[request.param]
    context = browser.new_context(
        viewport={"width": width, "height": height}, reduced_motion="reduce"
    )
    context.add_init_script(AXE)
    page = context.new_page()
    yield page
    context.close()


def findings(page: Page, part: str = "html") -> list[str]:
    """What axe finds on the open page in both schemes, with all unfolded and at work."""
    page.add_style_tag(content=STILL)
    page.evaluate(SHOW_ALL)
    page.wait_for_selector("[data-feature]:not([data-mounted=done])", state="detached")
    light = page.evaluate(RUN, [part, EVERYTHING])
    page.evaluate(SCHEME, "slate")  # which changes colours and nothing else
    return light + page.evaluate(RUN, [part, COLOURS])


@pytest.mark.parametrize("address", ADDRESSES)
def test_axe_finds_nothing_on_a_page(site, reader: Page, address: str) -> None:
    reader.goto(site.url + address)
    assert findings(reader) == []


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the focus is there; a panel of the menu takes 250 ms to open or close."""
    page.wait_for_timeout(350)
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.locator(f"{selector}:focus").count():
            return
    raise AssertionError(f"no tab stop {selector}")


SEEN = """() => {
  const element = document.activeElement
  if (element.matches("input")) return true  // drawn by the label beside it, tested below
  const { x, y, width, height } = element.getBoundingClientRect()
  return width > 0 && x >= 0 && getComputedStyle(element).visibility === "visible"
}"""


@pytest.mark.parametrize("size", SIZES)
def test_the_tab_key_stops_only_at_what_can_be_seen(site, visit, size: str) -> None:
    width, height = SIZES[size]
    visit.page.set_viewport_size({"width": width, "height": height})
    page = visit.open(site.url + "lessons/online_softmax/")
    stops = [page.keyboard.press("Tab") or page.evaluate(SEEN) for _ in range(40)]
    assert stops == [True] * 40


@pytest.mark.parametrize("visit", [{"viewport": {"width": 390, "height": 844}}], indirect=True)
def test_the_menu_of_a_phone_works_from_the_keyboard(site, visit) -> None:
    page = visit.open(site.url + "lessons/online_softmax/")
    link = page.locator(".md-sidebar--primary a", has_text="Fusion and the roofline")
    expect(link).to_be_hidden()
    tab_to(page, "#__drawer")
    button = page.locator("label.md-header__button[for=__drawer]")
    expect(button).to_have_css("outline-style", "solid")
    page.keyboard.press("Space")
    expect(link).to_be_visible()
    tab_to(page, "#__nav_2")
    page.keyboard.press("Space")
    expect(link).to_be_hidden()
    tab_to(page, "#__nav_3")
    page.keyboard.press("Space")
    tab_to(page, ".md-sidebar--primary a[href$='kernels/matmul/']")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Matrix product")
    expect(link).to_be_hidden()


def test_the_colour_scheme_is_changed_from_the_keyboard(site, visit) -> None:
    page = visit.open(site.url)
    tab_to(page, ".scheme")
    expect(page.locator(".scheme")).to_have_css("outline-style", "solid")
    page.keyboard.press("Enter")
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")


@pytest.mark.parametrize("visit", [{"viewport": {"width": 390, "height": 844}}], indirect=True)
def test_a_table_wider_than_a_phone_is_scrolled_from_the_keyboard(site, visit) -> None:
    page = visit.open(site.url + "reference/hardware/")
    table = page.locator(".md-typeset__scrollwrap").first
    expect(table).to_have_attribute("tabindex", "0")
    table.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.activeElement.scrollLeft > 0")
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(table).not_to_have_attribute("tabindex", "0")


@pytest.mark.parametrize("visit", [{"viewport": {"width": 390, "height": 844}}], indirect=True)
def test_axe_finds_nothing_in_the_open_menu_and_the_open_search(site, visit) -> None:
    page = visit.open(site.url + "lessons/online_softmax/")
    page.evaluate(AXE)
    page.add_style_tag(content=STILL)
    page.locator("label.md-header__button[for=__drawer]").click()
    expect(page.locator(".md-sidebar--primary a", has_text="Fusion")).to_be_visible()
    assert findings(page, ".md-sidebar--primary") == []
    page.locator(".md-overlay").click(position={"x": 380, "y": 400})
    page.locator("label.md-header__button[for=__search]").click()
    page.locator("[data-md-component=search-query]").press_sequentially("softmax")
    expect(page.locator(".md-search-result__link").first).to_be_visible()
    assert findings(page, ".md-search") == []
