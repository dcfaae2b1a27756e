"""`mkdocs serve` shows an edit, and a lab that fails, on the page; it outlives both."""

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import pytest

LAB = "snippets/waves.py"
PAGE = "docs/lessons/roofline.md"
GLOSSARY = "docs/reference/glossary.md"
GUARD = "def main() -> None:\n"
BROKEN = f"{GUARD}    raise RuntimeError('broken')\n"
PATIENCE_S = 90.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Server:
    def __init__(self, tree: Path) -> None:
        self.tree, self.log = tree, tree / "serve.log"
        self.address = f"127.0.0.1:{free_port()}"
        command = [sys.executable, "-m", "mkdocs", "serve", "--dev-addr", self.address]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, cwd=tree, stdout=log, stderr=log)

    def page(self, path: str = "lessons/roofline/") -> str:
        try:
            with urllib.request.urlopen(f"http://{self.address}/{path}") as answer:
                return unescape(answer.read().decode())
        except OSError:
            return ""

    def wait_until(self, is_shown: Callable[[str], bool]) -> str:
        deadline = time.monotonic() + PATIENCE_S
        while not is_shown(page := self.page()):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.2)
        return page

    def replace(self, file: str, old: str, new: str) -> None:
        path = self.tree / file
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1), "utf-8")


@pytest.fixture
def server(copy: Path) -> Iterator[Server]:
    started = Server(copy)
    yield started
    started.process.terminate()
    started.process.wait()


def test_shows_an_edit_and_an_error_and_survives_it(server: Server) -> None:
    healthy = server.wait_until(bool)
    assert "This page fails the build" not in healthy

    server.replace(PAGE, "# Fusion and the roofline", "# Fusion, edited")
    server.wait_until(lambda page: "Fusion, edited" in page)
    assert 'class="card-title" href="lessons/roofline/">Fusion, edited' in server.page("")

    server.replace(GLOSSARY, "A roofline is the plot", "A roofline is the edited plot")
    server.wait_until(lambda page: "A roofline is the edited plot" in page)  # the tooltip

    server.replace(LAB, GUARD, BROKEN)
    line = (server.tree / LAB).read_text("utf-8").split("    raise Runtime")[0].count("\n") + 1
    message = f"snippets.waves ended with exit status 1 at {LAB}:{line}: RuntimeError: broken"
    page = server.wait_until(lambda page: "This page fails the build" in page)
    box = page.split("This page fails the build")[1].split("</div>")[0]
    assert message in box
    assert f"lessons/roofline.md: publishes a traceback: sitebuild.labs.LabError: {message}" in (
        server.log.read_text()
    )

    server.replace(LAB, BROKEN, GUARD)
    assert "Fusion, edited" in server.wait_until(lambda page: "fails the build" not in page)
    assert server.process.poll() is None


def test_a_section_that_is_missing_shows_on_its_page_and_the_others_go_on(server: Server) -> None:
    server.wait_until(bool)
    server.replace(PAGE, "waves.py:", "waves.py:no_such_")
    page = server.wait_until(lambda page: "This page fails the build" in page)
    assert "SnippetMissingError: Snippet section 'no_such_" in page
    assert "<h1" in server.page("lessons/hbm_traffic/")
    server.replace(PAGE, "waves.py:no_such_", "waves.py:")
    server.wait_until(lambda page: page and "fails the build" not in page)


def test_a_wrong_level_shows_on_the_lesson_itself(server: Server) -> None:
    server.wait_until(bool)
    server.replace(PAGE, "level: ", "level: no")
    page = server.wait_until(lambda page: "This page fails the build" in page)
    assert "lessons/roofline.md has level: 'no" in page


def test_code_that_a_page_imports_is_read_again(server: Server) -> None:
    server.wait_until(bool)
    server.replace("sitebuild/measured/hbm_traffic.py", '("Time, ms"', '("Time as edited, ms"')
    deadline = time.monotonic() + PATIENCE_S
    while "Time as edited, ms" not in server.page("lessons/hbm_traffic/"):
        assert time.monotonic() < deadline, server.log.read_text()
        time.sleep(0.2)
