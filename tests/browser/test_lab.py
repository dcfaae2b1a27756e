"""Run, Edit, Reset and Stop under each lab; the recorded output is what stands there at first."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from sitebuild.engine import pin
from sitebuild.lab_marks import NO_ENGINE, STATIC
from sitebuild.labs import ROOT, run
from sitebuild.topics import lessons

pytestmark = pytest.mark.xdist_group("engine")
LOAD_MS = 90_000  # Python may take long to load while other tests have the machine
RUN_ALL = """async () => {
  const until = async found => {
    while (!found()) await new Promise(next => setTimeout(next, 10))
  }
  const runs = []
  for (const lab of document.querySelectorAll(".lab")) {
    lab.scrollIntoView()
    await until(() => lab.querySelector(".lab-bar"))
    const output = lab.querySelector("pre > code")
    const recorded = output.textContent
    const began = performance.now()
    lab.querySelector("button").click()
    const status = lab.querySelector("[role=status]")
    await until(() => !/^(Loading|Running)/.test(status.textContent))
    runs.push({
      stem: lab.dataset.lab, recorded, printed: output.textContent,
      status: status.textContent, seconds: (performance.now() - began) / 1000
    })
  }
  return runs
}"""


def new_page(browser: Browser, **options: Any) -> Page:
    if not pin().folder.is_dir():
        pytest.skip("no Python for the browser here (make engine)")
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(LOAD_MS)
    return page


@pytest.fixture(scope="module")
def opened(browser: Browser, site) -> Iterator[tuple[Page, list[str], list[str]]]:
    """A page that all tests share, so that Python is loaded once; what it asked and complained."""
    page = new_page(browser)
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.goto(site.url)
    yield page, asked, complaints
    page.context.close()


@pytest.fixture
def page(opened) -> Iterator[Page]:
    """The shared page with no edit kept, on the topic library; it may not have complained."""
    page, _, complaints = opened
    to_library(page)
    page.evaluate("localStorage.clear()")
    yield page
    assert complaints == []


def to_library(page: Page) -> None:
    page.locator(".md-header__button.md-logo").click()
    expect(page.locator(".cards")).to_be_visible()


def to_lesson(page: Page, stem: str) -> None:
    """By a link, which replaces the page without a reload."""
    page.locator(f'.card-title[href$="lessons/{stem}/"]').click()
    expect(page.locator(".lesson-place")).to_be_visible()


def lab_of(page: Page, stem: str) -> Locator:
    lab = page.locator(f'.lab[data-lab="{stem}"]')
    lab.scroll_into_view_if_needed()
    expect(lab.locator(".lab-bar")).to_be_visible()
    return lab


def press(lab: Locator, name: str) -> None:
    lab.get_by_role("button", name=name, exact=True).click()


def status(lab: Locator) -> Locator:
    return lab.get_by_role("status")


def write(lab: Locator, old: str, new: str) -> None:
    """Replace one place in the lab's code by typing over the whole of it."""
    code = lab.get_by_role("textbox")
    expect(code).to_be_visible()
    source = code.input_value()
    assert old in source
    code.fill(source.replace(old, new, 1))


def buttons(lab: Locator) -> list[str]:
    return [button.inner_text() for button in lab.get_by_role("button").all() if is_ours(button)]


def is_ours(button: Locator) -> bool:
    return "lab-button" in (button.get_attribute("class") or "")


def labs_of(path: str) -> list[str]:
    source = (ROOT / "docs" / f"{path}.md").read_text("utf-8")
    return re.findall(r'run\("snippets\.(\w+)"\)', source)


def runs_as_recorded(page: Page, path: str) -> None:
    """Press Run for every lab of the page that is open."""
    runs = page.evaluate(RUN_ALL)
    expected = {lab: run(f"snippets.{lab}").rstrip() for lab in labs_of(path)}
    assert {found["stem"]: found["recorded"].rstrip() for found in runs} == expected
    assert {found["stem"]: found["printed"].rstrip() for found in runs} == expected
    said = [re.sub(r"[\d.]+ s", "T s", found["status"]) for found in runs]
    assert set(said) == {"Done in T s; the output is the same as recorded."}


MAIN = "def main() -> None:\n"


@pytest.mark.parametrize("stem", lessons())
def test_the_browser_prints_what_was_recorded(page: Page, stem: str) -> None:
    to_lesson(page, stem)
    runs_as_recorded(page, f"lessons/{stem}")


def test_the_browser_prints_what_was_recorded_on_the_ladder_s_page_too(page: Page) -> None:
    page.locator('.md-tabs__link[href$="kernels/"]').click()
    page.locator('td a[href$="attention_ladder/"]').click()
    expect(page.locator("h1")).to_contain_text("A ladder of attention kernels")
    runs_as_recorded(page, "kernels/attention_ladder")


def test_a_second_run_takes_300_ms_at_most(page: Page) -> None:
    to_lesson(page, "roofline")
    page.evaluate(RUN_ALL)
    again = page.evaluate(RUN_ALL) + page.evaluate(RUN_ALL)
    assert min(found["seconds"] for found in again if found["stem"] == "roofline") <= 0.3


def test_python_is_loaded_by_the_first_run_and_stays_for_the_next_page(opened, page: Page) -> None:
    asked = opened[1]
    to_lesson(page, "roofline")
    page.evaluate(RUN_ALL)
    before = len(asked)
    page.go_back()
    to_lesson(page, "gpu_model")
    page.evaluate(RUN_ALL)
    assert [url for url in asked[before:] if "pyodide" in url and "engine.json" not in url] == []
    assert len(page.workers) == 1


def test_no_request_leaves_the_host(opened, site) -> None:
    assert {urlparse(url).netloc for url in opened[1]} == {urlparse(site.url).netloc}


def test_an_edit_is_run_and_kept_and_reset_and_restored(page: Page) -> None:
    to_lesson(page, "roofline")
    lab = lab_of(page, "waves")
    recorded = lab.locator("pre").inner_text()
    assert buttons(lab) == ["Run", "Edit"]
    press(lab, "Edit")
    assert lab.get_by_role("textbox").input_value() == (ROOT / "snippets/waves.py").read_text()
    write(lab, MAIN, f"{MAIN}    print('my line')\n")
    expect(status(lab)).to_have_text("Your edit is kept in this browser.")
    press(lab, "Run")
    expect(status(lab)).to_contain_text("with your edit; the output is not the same as recorded")
    assert lab.locator("pre").inner_text() == f"my line\n{recorded}"
    assert buttons(lab) == ["Run", "Edit", "Reset"]
    press(lab, "Reset")
    assert lab.locator("pre").inner_text() == recorded
    assert "my line" not in lab.get_by_role("textbox").input_value()
    press(lab, "Restore my edit")
    assert "my line" in lab.get_by_role("textbox").input_value()
    page.reload()
    lab = lab_of(page, "waves")
    expect(status(lab)).to_have_text("Your edit is kept in this browser; Run runs it.")
    assert lab.locator("pre").inner_text() == recorded
    press(lab, "Edit")
    expect(lab.get_by_role("textbox")).to_be_visible()
    assert "print('my line')" in lab.get_by_role("textbox").input_value()


def test_an_edit_is_kept_for_its_own_lab_only_and_forgotten_when_undone(page: Page) -> None:
    to_lesson(page, "roofline")
    lab = lab_of(page, "waves")
    press(lab, "Edit")
    write(lab, MAIN, f"{MAIN}    pass\n")
    keys = page.evaluate("Object.keys(localStorage).filter(key => key.includes('lab:'))")
    assert keys == [f"{urlparse(page.url).path.split('lessons')[0]}.lab:v1:waves"]
    assert buttons(lab_of(page, "roofs")) == ["Run", "Edit"]
    write(lab, f"{MAIN}    pass\n", MAIN)
    expect(status(lab)).to_have_text("As the page has it.")
    assert page.evaluate("Object.keys(localStorage).filter(key => key.includes('lab:'))") == []
    assert buttons(lab) == ["Run", "Edit"]


def test_an_edit_of_an_older_lab_is_shown_with_a_note(page: Page, site) -> None:
    kept = {"text": "print('old')", "base": "of last year", "used": True}
    key = f"{urlparse(site.url).path}.lab:v1:waves"
    page.evaluate("([key, kept]) => localStorage.setItem(key, kept)", [key, json.dumps(kept)])
    to_lesson(page, "roofline")
    lab = lab_of(page, "waves")
    press(lab, "Edit")
    expect(status(lab)).to_have_text("The lab has changed since your edit; Reset shows it.")
    assert lab.get_by_role("textbox").input_value() == "print('old')"


@pytest.mark.parametrize("kept", ["{", "null", "[]", '{"text": 1}'])
def test_what_is_damaged_in_storage_counts_as_no_edit(page: Page, site, kept: str) -> None:
    key = f"{urlparse(site.url).path}.lab:v1:waves"
    page.evaluate("([key, kept]) => localStorage.setItem(key, kept)", [key, kept])
    to_lesson(page, "roofline")
    assert buttons(lab_of(page, "waves")) == ["Run", "Edit"]


def test_an_error_is_shown_after_what_was_printed(page: Page) -> None:
    to_lesson(page, "roofline")
    lab = lab_of(page, "waves")
    press(lab, "Edit")
    write(lab, MAIN, f"{MAIN}    print('before', end='')\n    1 / 0\n")
    press(lab, "Run")
    expect(status(lab)).to_have_text("Ended with ZeroDivisionError: division by zero")
    shown = lab.locator("pre").inner_text()
    assert shown.startswith("before\nTraceback (most recent call last):\n")
    assert re.findall(r'File "(.+)",', shown) == ["snippets/waves.py"] * 2


def test_stop_ends_a_run_and_another_lab_takes_its_turn(page: Page) -> None:
    to_lesson(page, "roofline")
    lab = lab_of(page, "waves")
    press(lab, "Edit")
    write(lab, MAIN, f"{MAIN}    print('in')\n    while True: pass\n")
    press(lab, "Run")
    expect(lab.locator("pre")).to_have_text("in\n")
    assert buttons(lab) == ["Run", "Edit", "Stop"]
    press(lab, "Stop")
    expect(status(lab)).to_have_text("Stopped.")
    press(lab, "Run")
    expect(lab.locator("pre")).to_have_text("in\n")
    other = lab_of(page, "roofs")
    press(other, "Run")
    expect(status(lab)).to_have_text("Stopped.")
    expect(status(other)).to_contain_text("the same as recorded")
    assert buttons(lab) == ["Run", "Edit", "Reset"]


def test_a_page_that_is_left_takes_its_program_with_it(page: Page) -> None:
    to_lesson(page, "roofline")
    lab = lab_of(page, "waves")
    press(lab, "Edit")
    write(lab, MAIN, f"{MAIN}    print('in')\n    while True: pass\n")
    press(lab, "Run")
    expect(lab.locator("pre")).to_have_text("in\n")
    with page.workers[0].expect_event("close", timeout=12_000):  # well before the time limit
        to_library(page)


def there_and_back(page: Page) -> None:
    to_lesson(page, "roofline")
    lab_of(page, "waves")
    page.go_back()
    expect(page.locator(".cards")).to_be_visible()
    page.go_forward()
    lab_of(page, "waves")
    to_library(page)


def test_there_and_back_twice_no_control_is_doubled(page: Page) -> None:
    there_and_back(page)
    there_and_back(page)
    to_lesson(page, "roofline")
    assert [len(page.evaluate(RUN_ALL)), page.locator(".lab-bar").count()] == [4, 4]


def test_before_a_run_nothing_of_python_is_loaded(browser: Browser, site) -> None:
    page = new_page(browser)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(site.url + "lessons/roofline/")
    press(lab_of(page, "roofline"), "Edit")
    expect(page.get_by_role("textbox").last).to_be_visible()
    lab_of(page, "waves")
    page.wait_for_load_state("networkidle")
    assert [url for url in asked if "pyodide" in url or "engine" in url] == []
    assert any(url.endswith("/assets/labs/snippets/roofline.py") for url in asked)
    page.context.close()


def refuse_storage(page: Page) -> None:
    refuse = "{ get() { throw new DOMException('denied', 'SecurityError') } }"
    page.add_init_script(
        f"for (const name of ['localStorage', 'sessionStorage'])"
        f"  Object.defineProperty(window, name, {{ ...{refuse}, configurable: true }})"
    )


def test_where_storage_is_refused_a_lab_can_be_edited_and_says_that_nothing_is_kept(
    browser: Browser, site
) -> None:
    page = new_page(browser)
    refuse_storage(page)
    page.goto(site.url + "lessons/roofline/")
    lab = lab_of(page, "waves")
    press(lab, "Edit")
    write(lab, MAIN, f"{MAIN}    print('my line')\n")
    expect(status(lab)).to_contain_text("does not keep your edit: copy it")
    press(lab, "Run")
    expect(lab.locator("pre")).to_contain_text("my line")
    page.context.close()


def test_a_lab_works_by_keyboard_alone(page: Page) -> None:
    to_lesson(page, "roofline")
    lab = lab_of(page, "waves")
    lab.get_by_role("button", name="Run").focus()
    page.keyboard.press("Enter")
    expect(status(lab)).to_contain_text("the same as recorded")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(lab.get_by_role("textbox")).to_be_focused()
    page.keyboard.press("Tab")  # leaves the field, as in any form
    expect(lab.get_by_role("button", name="Run")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Control+Home")
    page.keyboard.type("print('typed')\nwhile True: pass\n")
    page.keyboard.press("Control+Enter")
    expect(lab.locator("pre")).to_have_text("typed\n")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(lab.get_by_role("button", name="Stop")).to_be_focused()
    page.keyboard.press("Enter")
    expect(status(lab)).to_have_text("Stopped.")
    expect(lab.get_by_role("button", name="Run")).to_be_focused()


def test_on_a_phone_a_lab_fits_and_its_buttons_are_large(browser: Browser, site) -> None:
    page = new_page(browser, viewport={"width": 390, "height": 844}, has_touch=True)
    page.goto(site.url + "lessons/roofline/")
    lab = lab_of(page, "waves")
    press(lab, "Edit")
    write(lab, MAIN, f"{MAIN}    pass\n")
    boxes = [b.bounding_box() for b in lab.locator(".lab-button:visible").all()]
    assert len(boxes) == 3
    assert [box for box in boxes if min(box["width"], box["height"]) < 44] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.context.close()


def test_a_printed_page_shows_the_output_and_no_control(page: Page) -> None:
    to_lesson(page, "roofline")
    lab = lab_of(page, "waves")
    press(lab, "Edit")
    expect(lab.get_by_role("textbox")).to_be_visible()
    page.emulate_media(media="print")
    shown = [lab.locator(part).is_visible() for part in (".lab-bar", ".lab-editor", "pre")]
    page.emulate_media(media="screen")
    assert shown == [False, False, True]


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_without_javascript_a_line_beside_the_output_says_why_it_cannot_be_run(site, visit) -> None:
    page = visit.open(site.url + "lessons/roofline/")
    lab = page.locator(".lab[data-lab=waves]")
    assert lab.locator("p").all_inner_texts() == [STATIC]
    assert lab.locator("button:visible").count() == 0
    assert run("snippets.waves").rstrip() in lab.locator("pre").inner_text()


def test_from_a_file_a_line_beside_the_output_says_why_it_cannot_be_run(
    browser: Browser, site
) -> None:
    page = new_page(browser)
    page.goto((site.folder / "lessons" / "roofline" / "index.html").as_uri())
    lab = page.locator(".lab[data-lab=waves]")
    lab.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    assert lab.locator("p").all_inner_texts() == [STATIC]
    assert lab.locator(".lab-button").count() == 0
    assert run("snippets.waves").rstrip() in lab.locator("pre").inner_text()
    page.context.close()


def test_a_site_built_without_python_says_so_beside_each_output(
    copy: Path, tmp_path: Path, serve, visit
) -> None:
    shutil.rmtree(copy / ".pyodide", ignore_errors=True)
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=copy,
        capture_output=True,
        text=True,
    )
    said = [line for line in built.stderr.splitlines() if "Python for the browser" in line]
    assert (built.returncode, len(said)) == (0, 1)
    page = visit.open(serve(tmp_path / "site") + "lessons/roofline/")
    labs = page.locator(".lab")
    labs.last.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    assert labs.locator("p").all_inner_texts() == [NO_ENGINE] * 4
    assert page.locator(".lab-button").count() == 0
    assert run("snippets.waves").rstrip() in labs.last.locator("pre").inner_text()
    assert visit.complaints == []
