"""Answers reach a real endpoint on another port; where they do not, they stay and can be copied."""

import http.server
import json
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.xdist_group("site")
LESSON = "lessons/online_softmax/"
STORED = "localStorage.getItem('/course/.feedback:v1')"
ANSWER = {"lesson": "online_softmax", "helpful": "no", "note": "More on merging, please."}


class Endpoint(http.server.ThreadingHTTPServer):
    """Takes answers as a deployer's server would, preflight included; or fails as told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Receive)
        self.url = f"http://127.0.0.1:{self.server_port}/answers"
        self.reset()

    def reset(self) -> None:
        self.status = 204
        self.go_on = threading.Event()
        self.go_on.set()
        self.received: list[tuple[dict[str, str], Any]] = []


class Receive(http.server.BaseHTTPRequestHandler):
    server: Endpoint

    def reply(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Headers", "Content-Type")
        self.end_headers()

    def do_OPTIONS(self) -> None:
        self.reply(204)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append((dict(self.headers), json.loads(body)))
        self.server.go_on.wait()
        self.reply(self.server.status)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def running_endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def endpoint(running_endpoint: Endpoint) -> Iterator[Endpoint]:
    running_endpoint.reset()
    yield running_endpoint
    running_endpoint.go_on.set()


@pytest.fixture(scope="module")
def asking(build_site, running_endpoint: Endpoint) -> str:
    """The address of a site that was built to send answers to the endpoint."""
    return build_site(FEEDBACK_ENDPOINT=running_endpoint.url).url


def form(page: Page) -> Locator:
    page.locator(".feedback").scroll_into_view_if_needed()
    return page.locator(".feedback")


def answer(page: Page) -> Locator:
    """Answer, but do not send; return the button that does."""
    form(page).get_by_text("No", exact=True).click()
    form(page).get_by_label("What helped").fill(ANSWER["note"])
    return form(page).locator(".feedback-answer button")


def status(page: Page) -> Locator:
    return form(page).locator("[role=status]")


def stored(page: Page) -> Any:
    return json.loads(page.evaluate(STORED) or "{}")


def test_an_answer_arrives_once_and_carries_nothing_else(asking, endpoint, visit) -> None:
    page = visit.open(asking + LESSON)
    page.context.add_cookies([{"name": "session", "value": "1", "url": endpoint.url}])
    answer(page).click()
    expect(status(page)).to_have_text("Thank you, your answer has arrived.")
    expect(status(page)).to_be_focused()
    [(headers, body)] = endpoint.received
    assert body == ANSWER
    assert not headers.keys() & {"Cookie", "Referer", "Authorization"}
    assert stored(page) == {}
    assert visit.complaints == []


def test_a_double_click_sends_once(asking, endpoint, visit) -> None:
    endpoint.go_on.clear()
    page = visit.open(asking + LESSON)
    answer(page).dblclick()
    expect(status(page)).to_have_text("Sending …")
    page.wait_for_timeout(300)
    endpoint.go_on.set()
    expect(status(page)).to_contain_text("Thank you")
    assert len(endpoint.received) == 1


def test_an_error_of_the_server_keeps_the_answer_which_can_be_sent_again(
    asking, endpoint, visit
) -> None:
    endpoint.status = 500
    page = visit.open(asking + LESSON)
    answer(page).click()
    expect(status(page)).to_have_text(
        "Not sent: the server answered 500. Your answer is kept in this browser."
    )
    assert stored(page) == {"online_softmax": ANSWER}
    endpoint.status = 204
    page = visit.open(asking + LESSON)
    expect(status(page)).to_contain_text("You have answered before")
    form(page).get_by_role("button", name="Send again").click()
    expect(status(page)).to_contain_text("Thank you")
    assert [body for _, body in endpoint.received] == [ANSWER, ANSWER]
    assert stored(page) == {}


def test_a_server_that_does_not_answer_is_given_up_after_ten_seconds(
    asking, endpoint, visit
) -> None:
    endpoint.go_on.clear()
    page = visit.open(asking + LESSON)
    button = answer(page)
    page.clock.install(time=datetime(2030, 1, 1))
    page.clock.pause_at(datetime(2030, 1, 2))
    button.click()
    expect(status(page)).to_have_text("Sending …")
    page.clock.fast_forward(9_900)
    expect(status(page)).to_have_text("Sending …")
    page.clock.fast_forward(200)
    expect(status(page)).to_contain_text("Not sent: there was no answer within 10 seconds.")
    assert stored(page) == {"online_softmax": ANSWER}


def test_without_a_connection_the_answer_stays(asking, endpoint, visit) -> None:
    page = visit.open(asking + LESSON)
    button = answer(page)
    page.context.set_offline(True)
    button.click()
    expect(status(page)).to_contain_text("Not sent: this browser is offline.")
    page.context.set_offline(False)
    form(page).get_by_role("button", name="Send again").click()
    expect(status(page)).to_contain_text("Thank you")
    assert len(endpoint.received) == 1


def test_a_server_that_is_gone_is_said_to_be_out_of_reach(asking, visit) -> None:
    visit.page.route("**/answers", lambda route: route.abort("connectionrefused"))
    page = visit.open(asking + LESSON)
    answer(page).click()
    expect(status(page)).to_contain_text("Not sent: the server could not be reached.")


def test_an_answer_without_yes_or_no_is_not_sent(asking, endpoint, visit) -> None:
    page = visit.open(asking + LESSON)
    form(page).locator(".feedback-answer button").click()
    expect(form(page).locator("input:invalid").first).to_be_focused()
    assert endpoint.received == []


def test_without_an_endpoint_the_answer_stays_can_be_copied_and_forgotten(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    expect(form(page).locator("small")).to_contain_text("This site collects no answers")
    expect(form(page).get_by_role("button", name="Send again")).to_have_count(0)
    answer(page).click()
    expect(status(page)).to_contain_text("Nothing was sent. Your answer is kept in this browser.")
    form(page).get_by_role("button", name="Copy").click()
    expect(status(page)).to_have_text("Copied.")
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == ANSWER
    assert stored(page) == {"online_softmax": ANSWER}
    form(page).get_by_role("button", name="Forget it").click()
    expect(status(page)).to_have_text("Forgotten.")
    assert page.evaluate(STORED) is None
    assert visit.complaints == []


def test_where_nothing_can_be_stored_or_copied_the_answer_is_shown(site, visit) -> None:
    visit.page.add_init_script(
        "Storage.prototype.setItem = () => { throw new DOMException('no', 'SecurityError') };"
        "Object.defineProperty(navigator, 'clipboard', { value: undefined })"
    )
    page = visit.open(site.url + LESSON)
    answer(page).click()
    expect(status(page)).to_contain_text("could not be kept either")
    form(page).get_by_role("button", name="Copy").click()
    expect(status(page)).to_contain_text(json.dumps(ANSWER, separators=(",", ":")))


def test_looking_at_the_form_stores_and_sends_nothing(asking, endpoint, visit) -> None:
    page = visit.open(asking + LESSON)
    expect(form(page).get_by_text("Was this lesson helpful?")).to_be_visible()
    page.wait_for_timeout(300)
    assert page.evaluate(STORED) is None
    assert endpoint.received == []


def test_the_form_can_be_filled_in_and_sent_from_the_keyboard(asking, endpoint, visit) -> None:
    page = visit.open(asking + LESSON)
    expect(form(page).get_by_label("Yes")).to_be_visible()
    form(page).get_by_label("Yes").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.type("Fine.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(status(page)).to_contain_text("Thank you")
    assert endpoint.received[0][1] == {**ANSWER, "helpful": "yes", "note": "Fine."}


@pytest.mark.parametrize("visit", [{"java_script_enabled": False}], indirect=True)
def test_without_javascript_no_form_is_shown(site, visit) -> None:
    page = visit.open(site.url + LESSON)
    expect(page.locator(".feedback-answer")).to_be_hidden()
