"""Exercises in the page: an answer is checked, kept, stopped, and readable without any of it."""

import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from sitebuild.engine import pin
from sitebuild.exercises import exercises, read
from sitebuild.labs import ROOT
from snippets.practice.grading import complaint

pytestmark = pytest.mark.xdist_group("engine")
LOAD_MS = 90_000  # Python may take long to load while other tests have the machine
LOOP = "while True:\n    pass\n"
PHONE = {"viewport": {"width": 390, "height": 844}}
RIGHT, WRONG = (
    re.compile(r"^Right: all \d+ checks pass\.$"),
    re.compile(r"^Not yet\. Check \d+ of "),
)


def lesson_of(stem: str) -> str:
    lessons = (ROOT / "docs" / "lessons").glob("*.md")
    (found,) = (page.stem for page in lessons if f'exercise("{stem}")' in page.read_text("utf-8"))
    return found


class Reader(NamedTuple):
    page: Page
    complaints: list[str]  # errors of the page since the last exercise was begun


@pytest.fixture(scope="module")
def reader(browser: Browser, site) -> Iterator[Reader]:
    """A reader who goes from lesson to lesson without a reload, so that Python stays loaded."""
    if not pin().folder.is_dir():
        pytest.skip("no Python for the browser here (make engine)")
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, complaints = context.new_page(), []
    page.set_default_timeout(LOAD_MS)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.goto(f"{site.url}lessons/gpu_model/")
    yield Reader(page, complaints)
    context.close()


@pytest.fixture
def begin(reader: Reader) -> Callable[[str], Locator]:
    """Go to an exercise, with nothing kept of earlier ones, and return it when it is ready."""
    reader.complaints.clear()

    def gone(stem: str) -> Locator:
        page = reader.page
        page.evaluate("localStorage.clear()")
        page.locator(".md-tabs__link").first.click()
        page.locator(f".card-title[href$='lessons/{lesson_of(stem)}/']").click()
        return ready(page, stem)

    return gone


def opened(site, visit, stem: str) -> Locator:
    """Load the lesson of an exercise, and return the exercise when it is ready."""
    return ready(visit.open(f"{site.url}lessons/{lesson_of(stem)}/"), stem)


def ready(page: Page, stem: str) -> Locator:
    """Go down to the exercise, which makes it load."""
    found = page.locator(f"[data-exercise={stem}]")
    found.scroll_into_view_if_needed()
    expect(answer(found)).to_be_visible()
    return found


def answer(exercise: Locator) -> Locator:
    return exercise.get_by_role("textbox", name="Your answer")


def press(exercise: Locator, name: str) -> None:
    exercise.get_by_role("button", name=name, exact=True).click()


def says(exercise: Locator, text: str | re.Pattern[str]) -> None:
    expect(exercise.locator(".exercise-status")).to_have_text(text, timeout=LOAD_MS)


def on_this_python(stem: str, text: str, folder: Path) -> str:
    """What the check says of an answer here, its first line apart from the rest."""
    (folder / "answer.py").write_text(text, "utf-8")
    module = importlib.import_module(f"snippets.practice.{stem}")
    return complaint(folder / "answer.py", module.cases())


@pytest.mark.parametrize("stem", exercises())
def test_the_start_is_refused_the_solution_passes_and_a_loop_is_stopped(
    begin, reader: Reader, stem: str, tmp_path: Path
) -> None:
    exercise, parts = begin(stem), read(stem)
    place, _, found = on_this_python(stem, parts.skeleton, tmp_path).partition("\n\n")
    expect(answer(exercise)).to_have_value(parts.skeleton)
    press(exercise, "Check")
    says(exercise, f"Not yet. {place}")
    assert exercise.locator(".exercise-detail").text_content() == found

    answer(exercise).fill(parts.solution)
    press(exercise, "Check")
    says(exercise, RIGHT)
    expect(exercise.locator(".exercise-detail")).to_be_hidden()

    answer(exercise).fill(LOOP)
    press(exercise, "Check")
    says(exercise, "Checking …")
    press(exercise, "Stop")
    says(exercise, "Stopped.")
    expect(exercise.get_by_role("button", name="Stop")).to_be_hidden()
    assert reader.complaints == []


def test_a_loop_that_nobody_stops_ends_at_the_limit(begin) -> None:
    exercise = begin("online_update")
    answer(exercise).fill(LOOP)
    press(exercise, "Check")
    says(exercise, "Stopped at the time limit of 10 s. Does a loop never end?")
    expect(exercise.get_by_role("button", name="Check")).to_have_attribute("aria-disabled", "false")


def test_what_an_answer_prints_is_shown_beside_the_verdict_and_as_text(begin) -> None:
    exercise, parts = begin("partial_merge"), read("partial_merge")
    detail = exercise.locator(".exercise-detail")
    answer(exercise).fill("print('<b>seen</b>', end='')\n" + parts.solution)
    press(exercise, "Check")
    says(exercise, RIGHT)
    expect(detail).to_have_text("<b>seen</b>")
    answer(exercise).fill("print('<i>seen</i>')\n" + parts.skeleton)
    press(exercise, "Check")
    says(exercise, WRONG)
    expect(detail).to_contain_text("expected  ([0.5, 1.0], 1.693147181)")
    expect(detail).to_contain_text("It printed\n\n<i>seen</i>")


def test_what_is_wrong_stays_in_sight_while_it_is_mended(begin) -> None:
    exercise = begin("fused_bytes")
    press(exercise, "Check")
    says(exercise, WRONG)
    answer(exercise).press_sequentially("# ")
    says(exercise, WRONG)
    expect(exercise.locator(".exercise-detail")).to_contain_text("expected  9")
    answer(exercise).fill(read("fused_bytes").solution)
    press(exercise, "Check")
    says(exercise, RIGHT)
    answer(exercise).press_sequentially("# ")
    says(exercise, "Not checked since then.")


def test_an_answer_is_kept_until_it_is_reset(site, visit) -> None:
    exercise, start = opened(site, visit, "online_update"), read("online_update").skeleton
    expect(exercise.get_by_role("button", name="Reset")).to_be_hidden()
    answer(exercise).fill("mine")
    visit.page.reload()
    exercise = ready(visit.page, "online_update")
    expect(answer(exercise)).to_have_value("mine")
    says(exercise, "Your answer as you left it; it is kept in this browser only.")
    press(exercise, "Reset")
    expect(answer(exercise)).to_have_value(start)
    says(exercise, "As it began.")
    expect(exercise.get_by_role("button", name="Check")).to_be_focused()
    visit.page.reload()
    expect(answer(ready(visit.page, "online_update"))).to_have_value(start)
    assert visit.page.evaluate("Object.keys(localStorage).filter(k => k.includes('exer'))") == []


def test_two_exercises_of_a_lesson_keep_their_answers_apart(site, visit) -> None:
    first, second = opened(site, visit, "masked_tile"), ready(visit.page, "partial_merge")
    answer(first).fill("one")
    answer(second).fill("two")
    visit.page.reload()
    expect(answer(ready(visit.page, "masked_tile"))).to_have_value("one")
    expect(answer(ready(visit.page, "partial_merge"))).to_have_value("two")


def test_what_a_first_run_loads_is_said_until_any_has_loaded_it(site, visit) -> None:
    if not pin().folder.is_dir():
        pytest.skip("no Python for the browser here (make engine)")
    exercise = opened(site, visit, "fused_bytes")
    says(exercise, re.compile(r"^The first Check loads Python, \d+\.\d MB\.$"))
    labs = visit.page.locator(".lab")
    labs.first.scroll_into_view_if_needed()
    labs.first.get_by_role("button", name="Run", exact=True).click()
    says(exercise, "Not checked yet.")
    labs.last.scroll_into_view_if_needed()
    expect(labs.last.get_by_role("status")).to_have_text("Recorded when the site was built.")


def test_the_second_of_two_checks_stops_the_first(begin, reader: Reader) -> None:
    first, second = begin("masked_tile"), ready(reader.page, "partial_merge")
    answer(first).fill(LOOP)
    press(first, "Check")
    says(first, "Checking …")
    press(second, "Check")
    says(first, "Stopped.")
    says(second, WRONG)


def test_the_keyboard_alone_writes_indented_lines_and_checks_them(begin, reader: Reader) -> None:
    exercise, keyboard = begin("warps_in_flight"), reader.page.keyboard
    answer(exercise).focus()
    keyboard.press("ControlOrMeta+a")
    keyboard.type("def warps_needed(rate, latency_ns, sms, load):\n")
    keyboard.type("under = rate * latency_ns / 10**9\nreturn -(-under // (sms * 32 * load))")
    written = answer(exercise).input_value()
    assert written.splitlines()[1:] == [
        "    under = rate * latency_ns / 10**9",
        "    return -(-under // (sms * 32 * load))",
    ]
    keyboard.press("ControlOrMeta+Enter")
    says(exercise, RIGHT)
    keyboard.press("Tab")
    expect(exercise.get_by_role("button", name="Check")).to_be_focused()
    keyboard.press("Tab")
    keyboard.press("Enter")
    says(exercise, "As it began.")


def test_after_instant_navigation_forth_and_back_there_is_one_editor(begin, reader: Reader) -> None:
    page = reader.page
    page.evaluate("window.stayed = true")
    begin("masked_tile")
    begin("online_update")
    page.go_back()
    page.go_back()
    exercise = ready(page, "masked_tile")
    assert exercise.locator("textarea").count() == 1
    assert exercise.locator(".exercise-bar").count() == 1
    press(exercise, "Check")
    says(exercise, WRONG)
    assert page.evaluate("window.stayed") is True
    assert reader.complaints == []


def test_a_page_that_is_left_takes_its_check_with_it(begin, reader: Reader) -> None:
    exercise = begin("masked_tile")
    answer(exercise).fill(LOOP)
    press(exercise, "Check")
    says(exercise, "Checking …")
    left = exercise.locator(".exercise-status").element_handle()
    begin("online_update")
    # well before the time limit would
    reader.page.wait_for_function("e => e.textContent === 'Stopped.'", arg=left, timeout=5000)


def test_a_check_that_cannot_be_loaded_says_so_and_can_be_tried_again(begin, reader) -> None:
    exercise = begin("causal_traffic")
    reader.page.route("**/exercises/*.json", lambda route: route.abort())
    press(exercise, "Check")
    says(exercise, "The check could not be loaded; try again.")
    reader.page.unroute("**/exercises/*.json")
    press(exercise, "Check")
    says(exercise, WRONG)


def test_an_exercise_is_loaded_when_it_comes_near_and_python_when_it_is_checked(
    site, visit
) -> None:
    loaded = """() => performance.getEntriesByType("resource")
      .map(entry => entry.name.split("/").at(-1))
      .filter(name => /exercise|engine/.test(name)).sort()"""
    page = visit.open(f"{site.url}lessons/online_softmax/")
    assert page.evaluate(loaded) == []
    ready(page, "masked_tile")
    assert page.evaluate(loaded) == ["exercise.css", "exercise.js"]


@pytest.mark.parametrize("visit", [PHONE], indirect=True)
def test_on_a_phone_the_page_stays_narrow_and_buttons_are_large(site, visit) -> None:
    exercise = opened(site, visit, "planted_fault")
    box = exercise.get_by_role("button", name="Check").bounding_box()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert min(box["width"], box["height"]) >= 44
    assert visit.page.evaluate("getComputedStyle(document.querySelector('textarea')).fontSize") == (
        "16px"
    )


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_without_javascript_start_hints_and_solution_are_there(site, visit) -> None:
    page = visit.open(f"{site.url}lessons/online_softmax/")
    exercise, parts = page.locator("[data-exercise=masked_tile]"), read("masked_tile")
    assert exercise.locator("textarea").count() == 0
    expect(exercise).to_contain_text("Check needs JavaScript and a page served over http.")
    expect(exercise.locator("pre code").first).to_have_text(parts.skeleton)
    expect(exercise.get_by_text("Hint 2 of 3")).to_be_hidden()
    exercise.get_by_text("Hint 1 of 3").click()
    exercise.get_by_text("Hint 2 of 3").click()
    expect(exercise.get_by_text("Hint 3 of 3")).to_be_visible()
    exercise.get_by_text("Solution").click()
    expect(exercise.locator("details.success pre code")).to_have_text(parts.solution)


def test_paper_has_the_start_and_not_the_editor(site, visit) -> None:
    exercise = opened(site, visit, "online_update")
    answer(exercise).fill("mine")
    visit.page.emulate_media(media="print")
    expect(exercise.locator("textarea")).to_be_hidden()
    expect(exercise.locator("pre code").first).to_be_visible()
    expect(exercise.locator(".exercise-bar")).to_be_hidden()


def test_where_storage_is_refused_an_answer_can_still_be_checked(site, visit) -> None:
    refuse = "{ get() { throw new DOMException('denied', 'SecurityError') } }"
    visit.page.add_init_script(
        f"for (const name of ['localStorage', 'sessionStorage'])"
        f"  Object.defineProperty(Window.prototype, name, {refuse})"
        f", Object.defineProperty(window, name, {{ ...{refuse}, configurable: true }})"
    )
    exercise = opened(site, visit, "online_update")
    answer(exercise).fill(read("online_update").solution)
    press(exercise, "Check")
    says(exercise, RIGHT)
    assert visit.complaints == []


def test_where_storage_is_full_the_reader_is_told(site, visit) -> None:
    exercise = opened(site, visit, "online_update")
    visit.page.evaluate("void (Storage.prototype.setItem = () => { throw new Error('full') })")
    answer(exercise).fill("mine")
    says(exercise, "This browser does not keep your answer: copy it before you leave.")


def test_what_the_check_says_is_announced(begin) -> None:
    exercise = begin("online_update")
    press(exercise, "Check")
    says(exercise, WRONG)
    expect(exercise.get_by_role("status")).to_contain_text("expected  (1.0, 1.367879441, 4.0)")


def test_the_answer_to_a_question_is_folded_and_is_the_labs_own_line(site, visit) -> None:
    page = visit.open(f"{site.url}lessons/memory_wall/")
    answered = page.locator(".predict details")
    expect(answered.locator("pre")).to_be_hidden()
    answered.locator("summary").click()
    expect(answered.locator("pre")).to_contain_text("your step: 1.7% faster")
