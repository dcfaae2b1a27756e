"""The pages as a browser sees them: phone and desktop, light and dark."""

import gzip
from urllib.parse import urlparse

import pytest
from playwright.sync_api import expect

from sitebuild.topics import lessons

pytestmark = pytest.mark.xdist_group("site")
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
PATHS = [
    "",
    "practice/explorer/",
    "reference/glossary/",
    "reference/hardware/",
    "practice/softmax_rounding/",
] + [f"lessons/{stem}/" for stem in lessons()]


SETTINGS = [
    pytest.param({"viewport": size, "color_scheme": scheme}, id=f"{name}-{scheme}")
    for name, size in (("phone", PHONE), ("desktop", DESKTOP))
    for scheme in ("light", "dark")
]


@pytest.mark.parametrize("visit", SETTINGS, indirect=True)
@pytest.mark.parametrize("path", PATHS)
def test_a_page_has_no_complaint_and_no_sideways_scroll(site, visit, path: str) -> None:
    page = visit.open(site.url + path)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert visit.complaints == []
    assert width <= page.viewport_size["width"]
    assert {urlparse(url).netloc for url in visit.bodies} == {urlparse(site.url).netloc}


@pytest.mark.parametrize("visit", SETTINGS, indirect=True)
def test_the_scheme_of_the_reader_decides_the_colours(site, visit) -> None:
    page = visit.open(site.url + "lessons/gpu_model/")
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    red = "Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])"
    assert (page.evaluate(red) < 60) == dark


def test_the_colours_that_a_reader_chooses_stay_and_are_stored_by_the_click_alone(
    site, visit
) -> None:
    page = visit.open(site.url + "lessons/gpu_model/")
    assert page.evaluate("localStorage.length") == 0
    page.get_by_role("button", name="Dark colours").click()
    page.emulate_media(color_scheme="light")
    page = visit.open(site.url + "lessons/roofline/")
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    page.get_by_role("button", name="Dark colours", pressed=True).click()
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "light")


def test_the_colours_follow_the_system_until_the_reader_chooses(site, visit) -> None:
    page = visit.open(site.url)
    page.emulate_media(color_scheme="dark")
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    page.evaluate("localStorage.setItem('/course/.__scheme', 'damaged')")
    page.emulate_media(color_scheme="light")
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "light")
    assert visit.complaints == []


@pytest.mark.parametrize("visit", SETTINGS, indirect=True)
def test_print_is_dark_ink_on_white_in_either_scheme(site, visit) -> None:
    page = visit.open(site.url + "lessons/gpu_model/")
    page.emulate_media(media="print")
    dark = "s => Number(getComputedStyle(document.querySelector(s)).color.match(/\\d+/)[0]) < 100"
    for selector in ("article p", "article pre code", "article h2"):
        page.wait_for_function(dark, arg=selector, timeout=2000)  # colours change over some frames
    assert page.locator(".md-code__nav").first.is_hidden()


@pytest.mark.parametrize("stem", lessons())
def test_the_first_load_of_a_lesson_is_light_and_without_the_search(site, visit, stem: str) -> None:
    visit.open(f"{site.url}lessons/{stem}/")
    weight = sum(len(gzip.compress(body, 6)) for body in visit.bodies.values())
    assert len(visit.bodies) <= 10
    assert weight <= 90_000
    assert not [url for url in visit.bodies if "search" in url]


def test_search_loads_on_first_use_and_finds_online_softmax(site, visit) -> None:
    page = visit.open(site.url + "lessons/gpu_model/")
    page.locator("[data-md-component=search-query]").click()
    page.locator("[data-md-component=search-query]").press_sequentially("online softmax")
    first = page.locator(".md-search-result__link").first
    expect(first).to_be_visible()
    expect(page.locator(".md-search-result__list")).to_contain_text("Online softmax")
    index = [body for url, body in visit.bodies.items() if url.endswith("search_index.json")]
    assert len(index) == 1
    assert len(gzip.compress(index[0], 6)) <= 60_000
    first.click()
    page.wait_for_url("**/lessons/online_softmax/**")
    assert visit.complaints == []


def test_a_link_of_the_library_leads_to_a_lesson_without_a_reload(site, visit) -> None:
    page = visit.open(site.url)
    page.evaluate("window.stayed = true")
    page.get_by_role("link", name="Online softmax, and how exact it is").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Online softmax")
    assert page.evaluate("window.stayed") is True
    assert page.locator("math").count() >= 1
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Attention and GPU kernels")
    assert visit.complaints == []


def test_the_site_works_at_the_root_of_a_host_too(site, serve, visit) -> None:
    page = visit.open(serve(site.folder))
    page.get_by_role("link", name="A mental model of the GPU").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("A mental model of the GPU")
    assert visit.complaints == []


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_without_javascript_text_output_figures_and_solution_are_there(site, visit) -> None:
    page = visit.open(site.url + "lessons/roofline/")
    expect(page.locator("article")).to_contain_text("1365.3")
    assert page.locator("figure svg").count() >= 2
    page.locator("details.success summary").first.click()
    expect(page.locator("details.success p").first).to_contain_text("33.55 MB")


def test_where_storage_is_refused_search_and_colour_scheme_still_work(site, visit) -> None:
    refuse = "{ get() { throw new DOMException('denied', 'SecurityError') } }"
    visit.page.add_init_script(
        f"for (const name of ['localStorage', 'sessionStorage'])"
        f"  Object.defineProperty(Window.prototype, name, {refuse})"
        f", Object.defineProperty(window, name, {{ ...{refuse}, configurable: true }})"
    )
    page = visit.open(site.url + "lessons/gpu_model/")
    page.locator("[data-md-component=search-query]").click()
    page.locator("[data-md-component=search-query]").press_sequentially("online softmax")
    expect(page.locator(".md-search-result__link").first).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate("document.body.dataset.mdColorScheme") == "slate"
    assert visit.complaints == []
