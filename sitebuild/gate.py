"""MkDocs hooks: turn faults that a build would publish in silence into warnings.

Strict mode turns each warning into a failed build. They check the finished pages, so that a
fault is caught whatever caused it.
"""

import atexit
import logging
import os
import posixpath
import re
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority

from sitebuild import page_faults, page_imports, topics, unchanged
from sitebuild.finish import finish
from sitebuild.guard import guard_blocks
from sitebuild.notebooks import digest, guard_kernels
from sitebuild.site_faults import dead_anchors, faults, pages_of

ROOT = Path(__file__).resolve().parent.parent
log = logging.getLogger("mkdocs.hooks.gate")

PAGE_LIMIT_S = 300  # labs have a limit of their own; this one is for a page's blocks and cells
PRINTED_LINK = re.compile(r'href="(?P<path>[^":#?]+\.(?:md|py))(?P<anchor>#[^"]*)?"')
FENCE_OPTIONS = re.compile(r"^ *(?:`{3,}|~{3,})\w* .*\bexec=.*$", re.M)
RUN_FENCE = re.compile(r'^ *```python exec="1"(?: \w+="[\w-]*")*$')
MERMAID_FENCE = re.compile(r"^ *(?:`{3,}|~{3,}) *\{?[. ]*mermaid\b", re.M)
ENDPOINT = re.compile(r"(?:https://[\w.-]+|http://127\.0\.0\.1)(?::\d+)?(?:/[^\s\"'<>;,]*)?")


def links_to_elsewhere(tree: Path) -> list[Path]:
    """Return the links in a tree, hidden folders aside, that lead out of it."""
    visible = [path for path in tree.iterdir() if not path.name.startswith(".")]
    every = visible + [
        p for folder in visible if not folder.is_symlink() for p in folder.rglob("*")
    ]
    return [p for p in every if p.is_symlink() and not p.resolve().is_relative_to(tree)]


def on_startup(command: str, **_: Any) -> None:
    """Make a page that ends the process fail the build: exit code 0 would look like success."""
    atexit.register(_fail_if_unfinished)
    guard_blocks()
    unchanged.is_served = command == "serve"
    page_imports.begin()


def on_pre_build(**_: Any) -> None:
    unfinished.append(True)
    # an include follows a link, and a link below docs/ is published with what it leads to
    for path in links_to_elsewhere(ROOT):
        log.warning(
            f"{path.relative_to(ROOT)} is a link to {path.readlink()}, outside the repository"
        )


def _fail_if_unfinished() -> None:
    if unfinished:
        print("The build ended early: a page stopped the process.", file=sys.stderr, flush=True)
        os._exit(1)


unfinished: list[bool] = []


def on_build_error(**_: Any) -> None:
    """End the limit and the wait for the end: the error that came says why the build stopped."""
    _limit(0)
    unfinished.clear()


def on_files(files: Any, **_: Any) -> Any:
    if unchanged.begin(file.src_uri for file in files):
        page_imports.forget()
    return files


@event_priority(100)  # before a notebook is run
def on_pre_page(page: Any, **_: Any) -> Any:
    _limit(PAGE_LIMIT_S)
    return page


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    page_faults.begin(page.file.src_uri)
    for match in FENCE_OPTIONS.finditer(markdown):
        if not RUN_FENCE.match(match[0].replace("\t", " ")):
            page_faults.report(
                f"has a fence that was not run: {match[0].strip()!r}; write "
                '```python exec="1" and options in double quotes',
            )
    if MERMAID_FENCE.search(markdown):
        page_faults.report("has a mermaid diagram, which nothing here draws; use an SVG figure")
    if page.file.src_uri.startswith("lessons/"):
        page_faults.report_refusal(topics.front_matter, Path(page.file.src_uri).stem)
    if page.file.src_uri.endswith(".md"):
        unchanged.take_or_keep(page, markdown)
    if unchanged.is_served:
        page_faults.show_failure(page)
    return markdown


def on_config(config: Any) -> Any:
    check_endpoint(config.extra["feedback"]["endpoint"])
    _forget_stale_notebooks()
    guard_kernels()
    return config


def check_endpoint(endpoint: str) -> None:
    """Raise where answers of readers would be sent to is no address that a page can send to."""
    if endpoint and not ENDPOINT.fullmatch(endpoint):
        raise PluginError(
            f"extra.feedback.endpoint is {endpoint!r}; allowed: nothing, an https:// address, or "
            "http:// on 127.0.0.1"
        )


def on_page_content(html: str, page: Any, files: Any, **_: Any) -> str:
    where = page.file.src_uri

    # MkDocs resolves the links that a page writes, not those that a block on it prints
    def resolve(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(where), match["path"]))
        file = files.get_file_from_path(target)
        if file is None:
            page_faults.report(f"prints a link to {match['path']!r}, which is no page")
            return match[0]
        return f'href="{file.url_relative_to(page.file)}{match["anchor"] or ""}"'

    html = PRINTED_LINK.sub(resolve, html)
    if where.endswith(".md"):  # a notebook that fails stops the build by itself
        for fault in faults(html):
            page_faults.report(fault)
    _limit(0)
    return page_faults.box() + html


def _limit(seconds: int) -> None:
    """Raise TimeoutError in what a page runs after so many seconds; 0 ends the limit."""
    if threading.current_thread() is threading.main_thread():  # where signals arrive
        signal.signal(signal.SIGALRM, _out_of_time)
        signal.alarm(seconds)


def _out_of_time(*_: Any) -> None:
    raise TimeoutError(f"what this page runs took longer than {PAGE_LIMIT_S} s and was stopped")


def on_env(env: Any, config: Any, **_: Any) -> Any:
    # markdown-exec adds its in-browser runner to every page; no page uses it
    for kind in ("extra_css", "extra_javascript"):
        config[kind] = [entry for entry in config[kind] if "_markdown_exec_" not in str(entry)]
    return env


def on_post_build(config: Any) -> None:
    site = Path(config["site_dir"])
    for unused in site.glob("assets/_markdown_exec_*"):
        unused.unlink()
    finish(Path(config["docs_dir"]), site)
    for dead in dead_anchors(pages_of(site)):
        log.warning(dead)
    # proof that the build reached its end: a lab that ends the process leaves none
    (site / ".built").write_text("ok\n")
    unfinished.clear()


def _forget_stale_notebooks() -> None:
    """Drop mkdocs-jupyter's cache when code that a notebook imports has changed.

    Its cache key is the notebook's own bytes, so it would show the output of old code.
    """
    cache = ROOT / ".cache" / "mkdocs-jupyter"
    stamp = ROOT / ".cache" / "notebooks.digest"
    now = digest()
    if not stamp.exists() or stamp.read_text() != now:
        shutil.rmtree(cache, ignore_errors=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(now)
