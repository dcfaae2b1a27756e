"""The page's engine: what a program prints, how it ends, and that Stop always answers."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from sitebuild.engine import pin

pytestmark = pytest.mark.xdist_group("engine")
LOAD_MS = 90_000  # Python may take long to load while other tests have the machine
# run a program, note the longest time for which the page could not answer, stop it if asked to
RUN = """async ({ source, files, options, stopAfterMs, limit }) => {
  const { Engine } = await import(window.engineUrl)
  const engine = new Engine(options)
  const shown = document.createElement("pre")
  document.querySelector("article").prepend(shown)
  let printed = "", messages = 0, longest = 0, last, asked
  const beat = () => {
    const now = performance.now()
    if (last) longest = Math.max(longest, now - last)
    last = now
  }
  const timer = setInterval(beat, 10)
  const run = engine.run({
    files: { "lab/__init__.py": "", "lab/a.py": source, ...files },
    module: "lab.a",
    onOutput: text => {
      printed += text
      messages += 1
      shown.append(text) // what a page does with it, and what makes a flood heavy
    },
    onStart: () => {
      last = undefined
      if (stopAfterMs !== undefined)
        setTimeout(() => { asked = performance.now(); engine.stop() }, stopAfterMs)
    }
  })
  const late = new Promise(end => setTimeout(end, limit, { status: "no answer" }))
  const result = await Promise.race([run, late])
  clearInterval(timer)
  shown.remove()
  const waited = asked === undefined ? null : (performance.now() - asked) / 1000
  return { ...result, printed, messages, waited, longest: longest / 1000 }
}"""


@pytest.fixture(scope="module")
def page(browser: Browser, site) -> Iterator[Page]:
    """One page for all these tests, so that most of them find Python loaded."""
    if not pin().folder.is_dir():
        pytest.skip("no Python for the browser here (make engine)")
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(LOAD_MS)
    page.goto(site.url)
    page.evaluate(f"window.engineUrl = '{site.url}assets/js/engine.js'")
    yield page
    context.close()


def wait_for_no_worker(page: Page) -> None:
    """A browser gives a busy worker some seconds before it ends it by force."""
    deadline = time.monotonic() + 20
    while page.workers and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert page.workers == []


@pytest.fixture
def run(page: Page) -> Callable[..., dict[str, Any]]:
    def start(source: str, stop_after_ms: int | None = None, **options: Any) -> dict[str, Any]:
        files = options.pop("files", {})
        asked = {"source": source, "files": files, "options": options, "limit": LOAD_MS}
        return page.evaluate(
            RUN, asked | ({} if stop_after_ms is None else {"stopAfterMs": stop_after_ms})
        )

    return start


def test_the_engine_is_available(page: Page) -> None:
    assert page.evaluate("import(engineUrl).then(engine => engine.available())") is True


def test_a_program_is_done_and_has_printed(run) -> None:
    result = run("import sys\nprint('é', 1 / 3)\nprint('to stderr', file=sys.stderr)")
    assert (result["status"], result["message"]) == ("done", "")
    assert result["printed"] == "é 0.3333333333333333\nto stderr\n"
    assert 0 < result["seconds"] < 5


def test_python_is_the_pinned_one_and_orders_sets_the_same_way_each_time(run) -> None:
    asked = run("import sys; print(*sys.version_info[:2], sys.flags.hash_randomization)")
    assert asked["printed"] == "3 14 0\n"


def test_what_a_program_imports_comes_from_the_given_files(run) -> None:
    files = {"other/b.py": "from pathlib import Path\nx = Path('data/c.txt').read_text()"}
    result = run("from other.b import x\nprint(x)", files={**files, "data/c.txt": "here"})
    assert result["printed"] == "here\n"


def test_an_error_is_shown_with_the_programs_own_lines_only(run) -> None:
    result = run("def main():\n    return {}['x']\n\nprint('before')\nmain()")
    assert (result["status"], result["printed"]) == ("error", "before\n")
    assert result["message"] == (
        "Traceback (most recent call last):\n"
        '  File "lab/a.py", line 5, in <module>\n    main()\n    ~~~~^^\n'
        "  File \"lab/a.py\", line 2, in main\n    return {}['x']\n           ~~^^^^^\n"
        "KeyError: 'x'"
    )


def test_endless_recursion_is_an_error_of_the_program(run) -> None:
    result = run("def f(n):\n    return f(n + 1)\nf(0)")
    assert result["status"] == "error"
    assert result["message"].endswith("RecursionError: maximum recursion depth exceeded")


def test_a_run_finds_nothing_of_the_last_one(run) -> None:
    files = {"other/b.py": "x = 1"}
    run("import other.b\nother.b.x = 5\nleft = 1\nopen('left', 'w').close()", files=files)
    look = "print(other.b.x, 'left' in globals(), os.path.exists('left'))"
    result = run(f"import os, other.b\n{look}", files=files)
    assert result["printed"] == "1 False False\n"


def test_input_says_that_nobody_answers(run) -> None:
    result = run("name = input('Your name? ')")
    assert result["status"] == "error"
    assert "nobody answers input() here" in result["message"]


def stops_in_time(page: Page, run, source: str) -> bool:
    """Whether a program stops, and no pause of the page and Stop together take over 300 ms."""
    result = run(source, stop_after_ms=500, maxBytes=10**6)
    assert (result["status"], result["message"]) == ("stopped", "Stopped.")
    wait_for_no_worker(page)  # the program has ended, not only its display
    return result["waited"] + result["longest"] <= 0.3


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("pass", id="an endless loop"),
        pytest.param("print(n)\n for _ in range(2000): n += 1", id="a flood of prints"),
    ],
)
def test_stop_answers_within_300_ms(page: Page, run, body: str) -> None:
    # up to three times, since other tests may hold the machine
    assert any(stops_in_time(page, run, f"n = 0\nwhile True:\n {body}") for _ in range(3))


def test_a_flood_of_single_bytes_comes_in_few_messages_until_the_cap_ends_it(run) -> None:
    result = run("while True:\n    print()")
    assert result["status"] == "capped"
    assert result["message"] == "Stopped: it printed more than 64 KiB."
    assert len(result["printed"]) == 65_536
    assert result["messages"] <= 60 + 10 * result["seconds"]  # 50 at once, then ten a second


def test_the_time_limit_ends_a_program_and_does_not_count_the_loading_of_python(run) -> None:
    run("while True:\n    pass", stop_after_ms=0)  # so that the next run loads it anew
    result = run("print('begun')\nwhile True:\n    pass", limitMs=400)
    assert (result["status"], result["printed"]) == ("timeout", "begun\n")
    assert result["message"] == "Stopped at the time limit of 0.4 s."
    assert 0.4 <= result["seconds"] <= 0.8


def test_output_of_exactly_the_limit_is_not_capped(run) -> None:
    result = run("print('x' * 2047)", maxBytes=2048)
    assert (result["status"], len(result["printed"])) == ("done", 2048)


def test_a_program_that_ends_the_interpreter_is_an_error_and_the_next_one_runs(run) -> None:
    assert run("import os; os._exit(1)")["status"] == "error"
    assert run("print('again')")["printed"] == "again\n"


def test_engines_of_a_page_share_one_python_and_one_runs_at_a_time(page: Page) -> None:
    both = page.evaluate(
        """async () => {
          const { Engine } = await import(engineUrl)
          const files = { "a.py": "while True: pass", "b.py": "print(1)" }
          const first = new Engine().run({ files, module: "a" })
          const second = new Engine().run({ files, module: "b" })
          return [await first, await second]
        }"""
    )
    assert [result["status"] for result in both] == ["stopped", "done"]
    assert both[0]["message"] == "Stopped: another program was started."
    assert len(page.workers) == 1


def test_stop_without_a_run_does_nothing(page: Page) -> None:
    page.evaluate("import(engineUrl).then(({ Engine }) => new Engine().stop())")


def status_without(page: Page, run, file: str) -> str:
    page.route(f"**/{file}", lambda route: route.abort())
    result = run("print(1)")
    page.unroute(f"**/{file}")
    return f"{result['status']}: {result['message']}"


def test_where_a_file_does_not_come_a_run_is_unavailable_until_it_does(page: Page, run) -> None:
    run("while True:\n    pass", stop_after_ms=0)
    said = {file: status_without(page, run, file) for file in [*pin().sha256, "engine.json"]}
    assert set(said.values()) == {
        "unavailable: Python could not be loaded; check the connection, then run again."
    }
    assert run("print(1)")["status"] == "done"


def test_a_site_built_without_the_engine_says_so(page: Page, run) -> None:
    page.route("**/engine.json", lambda route: route.fulfill(json={"version": None}))
    result = run("print(1)")
    available = page.evaluate("import(engineUrl).then(engine => engine.available())")
    page.unroute("**/engine.json")
    assert result["status"] == "unavailable"
    assert result["message"] == "This copy of the site was built without Python for the browser."
    assert available is False
