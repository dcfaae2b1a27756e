"""Under the policy that the site asks for, every kind of page works and nothing is violated.

All browser tests run under it: the server of the tests sends what the site's `_headers` says.
"""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.xdist_group("site")
WATCH = """
  window.violations = []
  document.addEventListener("securitypolicyviolation", event => window.violations.push(
    `${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`))
"""
KINDS = [
    "",
    "lessons/online_softmax/",
    "kernels/",
    "kernels/softmax/",
    "practice/softmax_rounding/",
    "reference/glossary/",
    "404.html",
]


@pytest.fixture
def watched(visit):
    visit.page.add_init_script(WATCH)
    return visit


def violations(page: Page) -> list[str]:
    return page.evaluate("window.violations")


@pytest.mark.parametrize("path", KINDS)
def test_a_page_works_under_its_policy(site, watched, path: str) -> None:
    page = watched.open(site.url + path)
    page.keyboard.press("End")
    page.wait_for_load_state("networkidle")
    page.get_by_role("button", name="Dark colours").click()
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")
    page.locator("[data-md-component=search-query]").press_sequentially("online softmax")
    expect(page.locator(".md-search-result__link").first).to_be_visible()
    assert violations(page) == []
    assert watched.complaints == []


def test_instant_navigation_through_every_section_violates_nothing(site, watched) -> None:
    page = watched.open(site.url)
    page.evaluate("window.stayed = true")
    for_each_tab(page, "Lessons", "Kernels", "Practice", "Reference", "Topic library")
    assert page.evaluate("window.stayed") is True
    assert violations(page) == []
    assert watched.complaints == []


def for_each_tab(page: Page, *names: str) -> None:
    for name in names:
        page.get_by_label("Tabs").get_by_role("link", name=name).click()
        expect(page.locator(".md-tabs__item--active")).to_have_text(name)
        page.wait_for_load_state("networkidle")


def test_the_policy_is_in_force(site, watched) -> None:
    page = watched.open(site.url)
    page.evaluate("""() => {
      const script = document.createElement("script")
      script.textContent = "window.foreign = true"
      document.head.append(script)
    }""")
    assert page.evaluate("window.foreign") is None
    assert [violation.split()[0] for violation in violations(page)] == ["script-src-elem"]
