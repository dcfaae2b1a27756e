"""Progress is set by the reader alone, shown wherever the lesson is named, and kept here only."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from sitebuild.topics import lessons

pytestmark = pytest.mark.xdist_group("site")
LESSON = "lessons/online_softmax/"
STORED = "Object.entries(localStorage).filter(([key]) => key.endsWith('.progress:v1'))"
REFUSE = """for (const name of ["localStorage", "sessionStorage"]) {
  const refuse = { get() { throw new DOMException("denied", "SecurityError") } }
  Object.defineProperty(Window.prototype, name, refuse)
  Object.defineProperty(window, name, { ...refuse, configurable: true })
}"""
FULL = """() => {
  Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError") }
}"""


# the reader's choices from before the script is asked for until well after it has come
CHOOSE_QUICKLY = """async () => {
  const [chosen, kept] = [[], []]
  const keep = Storage.prototype.setItem
  Storage.prototype.setItem = function (key, value) {
    if (key.endsWith(".progress:v1")) kept.push(Object.values(JSON.parse(value))[0])
    keep.call(this, key, value)
  }
  const radios = document.querySelectorAll("[name=progress-head]:not([value=none])")
  for (const end = performance.now() + 500; performance.now() < end;) {
    const radio = radios[chosen.length % 2]
    radio.click()
    chosen.push(radio.value)
    await new Promise(done => setTimeout(done))
  }
  await new Promise(done => setTimeout(done, 500))
  return [chosen, kept]
}"""


def control(page: Page, place: str = "head") -> Locator:
    return page.locator("fieldset.progress").nth(0 if place == "head" else 1)


def choose(page: Page, label: str, place: str = "head") -> None:
    control(page, place).get_by_text(label, exact=True).click()


def stored(page: Page) -> list[Any]:
    return [json.loads(value) for _, value in page.evaluate(STORED)]


def entry(page: Page, lesson: str) -> Locator:
    """The lesson's sign in the navigation."""
    return page.locator(f".md-nav--primary a[href$='{lesson}/'] .progress-mark")


def card(page: Page, lesson: str) -> Locator:
    return page.locator(f".card-progress[data-lesson={lesson}]")


def panel(page: Page) -> Locator:
    """Where progress is saved, loaded and cleared; it is mounted when it comes near."""
    page.locator(".progress-file").scroll_into_view_if_needed()
    return page.locator(".progress-file")


def forth_and_back(page: Page) -> None:
    page.locator(".md-nav--primary a[href$='roofline/']").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("roofline")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Online softmax")


def test_looking_at_a_lesson_stores_nothing_and_loads_nothing(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    page.keyboard.press("End")
    page.wait_for_timeout(500)
    expect(control(page).get_by_label("Not started")).to_be_checked()
    assert stored(page) == []
    assert [url for url in visit.bodies if "progress" in url] == []


def test_a_choice_shows_at_head_foot_navigation_and_card_and_stays(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    choose(page, "In progress")
    expect(control(page, "foot").get_by_label("In progress")).to_be_checked()
    expect(entry(page, "lessons/naive_attention")).to_have_attribute("aria-label", "Not started")
    choose(page, "Done", "foot")
    expect(control(page, "head").get_by_label("Done")).to_be_checked()
    page.goto(site.url + "lessons/roofline/")
    expect(entry(page, "online_softmax")).to_have_attribute("aria-label", "Done")
    expect(control(page).get_by_label("Not started")).to_be_checked()
    page.goto(site.url)
    expect(card(page, "online_softmax")).to_have_text("Done")
    expect(card(page, "roofline")).to_have_text("Not started")
    assert stored(page) == [{"online_softmax": "done"}]
    assert visit.complaints == []


def test_the_choice_can_be_taken_back_and_leaves_nothing(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    choose(page, "Done")
    expect(control(page, "foot").get_by_label("Done")).to_be_checked()
    choose(page, "Not started")
    expect(control(page, "foot").get_by_label("Not started")).to_be_checked()
    assert stored(page) == []


def test_the_control_works_from_the_keyboard(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    control(page).get_by_label("Not started").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(control(page, "foot").get_by_label("Done")).to_be_checked()
    expect(control(page).locator("input:focus + span")).to_have_css("outline-style", "solid")
    assert stored(page) == [{"online_softmax": "done"}]


def test_choices_made_while_the_script_loads_are_taken_in_their_order(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    chosen, kept = page.evaluate(CHOOSE_QUICKLY)
    assert len(set(chosen)) == 2
    assert kept == chosen


def test_a_choice_is_kept_though_the_reader_leaves_before_the_script_has_come(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    page.route("**/progress.js", lambda _: None)  # no answer, for as long as this page is there
    with page.expect_request("**/progress.js"):
        choose(page, "Done")
    page.goto(site.url)
    other = page.context.new_page()
    other.goto(site.url)
    expect(card(other, "online_softmax")).to_have_text("Done")
    assert stored(other) == [{"online_softmax": "done"}]


def test_instant_navigation_twice_forth_and_back_doubles_nothing(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    choose(page, "Done")
    page.evaluate("window.stayed = true")
    forth_and_back(page)
    forth_and_back(page)
    expect(control(page).get_by_label("Done")).to_be_checked()
    expect(page.locator("fieldset.progress")).to_have_count(2)
    expect(entry(page, "online_softmax")).to_have_count(1)
    expect(entry(page, "lessons/roofline")).to_have_count(1)
    assert page.evaluate("window.stayed") is True
    assert visit.complaints == []


def test_two_open_tabs_keep_in_step(site, visit) -> None:
    first = visit.open(site.url)
    second = visit.page.context.new_page()
    second.goto(site.url + LESSON)
    choose(second, "In progress")
    expect(card(first, "online_softmax")).to_have_text("In progress")
    second.evaluate("localStorage.clear()")
    expect(card(first, "online_softmax")).to_have_text("Not started")


def test_where_storage_is_refused_the_control_works_and_says_that_it_is_not_kept(
    site, visit
) -> None:
    visit.page.add_init_script(REFUSE)
    page = visit.open(site.url + LESSON)
    choose(page, "Done")
    expect(control(page).locator("[role=status]")).to_contain_text("refuses storage")
    expect(entry(page, "online_softmax")).to_have_attribute("aria-label", "Done")
    page.locator(".lesson-place a").click()
    expect(card(page, "online_softmax")).to_have_text("Done")
    expect(panel(page).locator("[role=status]")).to_contain_text("refuses storage")
    page.reload()
    expect(card(page, "online_softmax")).to_have_text("Not started")
    assert visit.complaints == []


def test_full_storage_is_said(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    page.evaluate(FULL)
    choose(page, "Done")
    expect(control(page).locator("[role=status]")).to_contain_text("storage is full")


@pytest.mark.parametrize("value", ["{", "null", "3", '"done"', '{"online_softmax": "toString"}'])
def test_a_record_that_cannot_be_read_counts_as_none(site, visit, value: str) -> None:
    page = visit.open(site.url + LESSON)
    page.evaluate("value => localStorage.setItem('/course/.progress:v1', value)", value)
    visit.open(site.url + LESSON)
    expect(entry(page, "online_softmax")).to_have_attribute("aria-label", "Not started")
    choose(page, "Done")
    expect(entry(page, "online_softmax")).to_have_attribute("aria-label", "Done")
    assert visit.complaints == []


def test_nothing_is_sent_and_no_cookie_is_set(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.method} {request.url}"))
    choose(page, "Done")
    expect(entry(page, "online_softmax")).to_have_attribute("aria-label", "Done")
    page.wait_for_timeout(300)
    assert sent == [f"GET {site.url}assets/js/progress.js"]
    assert page.context.cookies() == []


def test_progress_goes_from_one_browser_to_another_as_a_file(
    site, visit, browser: Browser, tmp_path: Path
) -> None:
    page = visit.open(site.url + LESSON)
    choose(page, "Done")
    page.goto(site.url)
    with page.expect_download() as download:
        panel(page).get_by_role("button", name="Save to a file").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    other = browser.new_context().new_page()
    other.goto(site.url)
    other.evaluate("localStorage.setItem('/course/.progress:v1', '{\"roofline\": \"begun\"}')")
    panel(other).get_by_label("Load from a file").set_input_files(file)
    expect(panel(other).locator("[role=status]")).to_contain_text(f"{file.name}: 1.")
    expect(card(other, "online_softmax")).to_have_text("Done")
    expect(card(other, "roofline")).to_have_text("In progress")
    other.context.close()


def test_clear_asks_first_and_then_leaves_nothing(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    choose(page, "Done")
    page.goto(site.url)
    page.once("dialog", lambda dialog: dialog.dismiss())
    panel(page).get_by_role("button", name="Clear").click()
    expect(card(page, "online_softmax")).to_have_text("Done")
    page.once("dialog", lambda dialog: dialog.accept())
    panel(page).get_by_role("button", name="Clear").click()
    expect(card(page, "online_softmax")).to_have_text("Not started")
    assert stored(page) == []


GOOD = {"format": "attention and GPU kernels, progress", "version": 1, "states": {}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "it is not JSON"),
        ("[]", "its format is not"),
        (json.dumps({**GOOD, "version": 2}), "its version is 2; this page reads 1"),
        (json.dumps({**GOOD, "states": []}), "its states are not an object"),
        (json.dumps({**GOOD, "states": None}), "its states are not an object"),
        (
            json.dumps({**GOOD, "states": {"roofline": "finished"}}),
            'it gives roofline the state "finished"; allowed: none, begun, done',
        ),
        (json.dumps({**GOOD, "states": {"roofline": ["done"]}}), 'the state ["done"]'),
        (json.dumps({**GOOD, "states": {"__proto__": "x"}}), 'it gives __proto__ the state "x"'),
        (" " * 100_001, "it has 100001 bytes; at most 100000 are read"),
    ],
)
def test_a_file_that_is_no_record_is_refused_and_changes_nothing(
    site, visit, content: str, message: str
) -> None:
    page = visit.open(site.url)
    page.evaluate("localStorage.setItem('/course/.progress:v1', '{\"roofline\": \"begun\"}')")
    picked = {"name": "mine.json", "mimeType": "application/json", "buffer": content.encode()}
    panel(page).get_by_label("Load from a file").set_input_files(files=[picked])
    expect(panel(page).locator("[role=status]")).to_contain_text("mine.json was not read")
    expect(panel(page).locator("[role=status]")).to_contain_text(message)
    assert stored(page) == [{"roofline": "begun"}]


def test_a_lesson_that_the_course_does_not_have_is_named_and_left_out(site, visit) -> None:
    page = visit.open(site.url)
    states = {"roofline": "done", "warp_shuffles": "done"}
    content = json.dumps({**GOOD, "states": states}).encode()
    picked = {"name": "mine.json", "mimeType": "application/json", "buffer": content}
    panel(page).get_by_label("Load from a file").set_input_files(files=[picked])
    expect(panel(page).locator("[role=status]")).to_contain_text(
        "Lessons read from mine.json: 1. Left out, since this course has no such lesson: "
        "warp_shuffles."
    )
    assert stored(page) == [{"roofline": "done"}]


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_without_javascript_no_control_is_shown(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    expect(control(page)).to_be_hidden()
    page.goto(site.url)
    expect(page.locator(".card-progress").first).to_be_hidden()


def test_every_lesson_has_its_controls_under_its_own_name(site, visit) -> None:
    read = "document.querySelectorAll('fieldset.progress')"
    names = [
        visit.open(f"{site.url}lessons/{stem}/").evaluate(f"[...{read}].map(c => c.dataset.lesson)")
        for stem in lessons()
    ]
    assert names == [[stem, stem] for stem in lessons()]
