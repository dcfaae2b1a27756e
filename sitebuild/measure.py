"""Time the site's build cold, warm and with execution off, and how soon an edit is served.

The three builds take turns, so that a change of the machine's speed meets all of them. The own
run time of labs and notebooks is what their processes take when they are started one after another.
"""

import contextlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from sitebuild.labs import ROOT
from sitebuild.notebooks import notebooks

ROUNDS = 5
CACHE = ROOT / ".cache"
RUN = re.compile(r'print\(run\("([\w.]+)"\)\)')


def build(config: str) -> float:
    """Seconds of one build in a process of its own, from a configuration given as text."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "mkdocs", "build", "-f", "-", "-d", out]
        start = time.perf_counter()
        subprocess.run(command, input=config.encode(), cwd=ROOT, check=True, capture_output=True)
        return time.perf_counter() - start


def own_time() -> float:
    """Seconds that the labs, figures and notebooks of all pages take by themselves."""
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    commands = [["-m", module] for module in dict.fromkeys(RUN.findall(pages))]
    execute = "import nbclient, jupytext, sys; nbclient.execute(jupytext.read(sys.argv[1]))"
    commands += [["-c", execute, str(notebook)] for notebook in notebooks()]
    start = time.perf_counter()
    for command in commands:
        subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True)
    return time.perf_counter() - start


@contextlib.contextmanager
def served(tree: Path) -> Iterator[str]:
    """Serve a tree with `mkdocs serve`; the value is the address of the home page."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "mkdocs", "serve", "--dev-addr", address]
    with (tree / "serve.log").open("w") as log:
        server = subprocess.Popen(command, cwd=tree, stdout=log, stderr=log)
    try:
        yield f"http://{address}/"
    finally:
        server.terminate()
        server.wait()


def wait_for(url: str, text: str) -> None:
    """Return once the page at `url` holds `text`."""
    while True:
        with contextlib.suppress(OSError), urllib.request.urlopen(url) as answer:
            if text in answer.read().decode():
                return
        time.sleep(0.05)


def edits() -> list[float]:
    """Seconds from saving a page to its being served, the watcher's own half second included."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in (
            "docs",
            "snippets",
            "kernels",
            "sitebuild",
            "requirements",
            ".cache",
            ".pyodide",
        ):
            shutil.copytree(ROOT / name, tree / name)
        for name in ("mkdocs.yml", "Makefile", "pyproject.toml", "CHANGELOG.md"):
            shutil.copy(ROOT / name, tree)
        page = tree / "docs" / "lessons" / "roofline.md"
        with served(tree) as home:
            wait_for(f"{home}lessons/roofline/", "</html>")
            for edit in range(ROUNDS):
                page.write_text(f"{page.read_text('utf-8')}\nEdit number {edit}.\n", "utf-8")
                start = time.perf_counter()
                wait_for(f"{home}lessons/roofline/", f"Edit number {edit}.")
                times.append(time.perf_counter() - start)
    return times


def main() -> None:
    config = (ROOT / "mkdocs.yml").read_text("utf-8")
    off = config.replace("  - markdown-exec:\n", "  - markdown-exec:\n      enabled: false\n")
    off = off.replace("execute: true", "execute: false").replace("cache: true", "cache: false")
    times: dict[str, list[float]] = {"execution off": [], "cold": [], "warm": [], "own": []}
    for _ in range(ROUNDS):
        times["execution off"].append(build(off))
        shutil.rmtree(CACHE / "labs", ignore_errors=True)
        shutil.rmtree(CACHE / "mkdocs-jupyter", ignore_errors=True)
        times["cold"].append(build(config))
        times["warm"].append(build(config))
        times["own"].append(own_time())
    times["edit served"] = edits()
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        print(f"{name:14} {median[name]:6.2f} s   {min(values):.2f} to {max(values):.2f}")
    floor = median["execution off"] + median["own"]
    print(f"cold / (execution off + own run time)  {median['cold'] / floor:.2f}")
    print(f"warm / execution off                   {median['warm'] / median['execution off']:.2f}")


if __name__ == "__main__":
    main()
