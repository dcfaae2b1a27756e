"""A real Chromium, the system's own."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)

expect.set_options(timeout=60_000)  # other tests may have the machine


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium or Chrome on this machine")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield started
        started.close()


class Visit:
    """What one page asked for and complained about."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.complaints: list[str] = []
        self.finished: list[Request] = []
        self.page.on("console", lambda m: self.complain(m.type, m.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfinished", lambda request: self.finished.append(request))
        self.page.on("requestfailed", self.note_failure)

    @property
    def bodies(self) -> dict[str, bytes]:
        """What came for each address, while the page that asked for it is still open."""
        return {request.url: request.response().body() for request in self.finished}

    def note_failure(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page was left while it was under way
            self.complaints.append(f"failed: {request.url}")

    def complain(self, kind: str, text: str) -> None:
        self.complaints += [text] if kind in ("error", "warning") else []

    def open(self, url: str) -> Page:
        self.page.goto(url, wait_until="networkidle")
        return self.page


@pytest.fixture
def visit(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Visit]:
    options = getattr(request, "param", {"viewport": {"width": 1280, "height": 900}})
    context = browser.new_context(**options)
    yield Visit(context)
    context.close()
