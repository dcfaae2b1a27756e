"""MkDocs hooks: turn faults that a build would publish in silence into warnings.

Strict mode turns each warning into a failed build. They check the finished pages, so that a
fault is caught whatever caused it.
"""

import atexit
import html as html_text
import logging
import os
import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

from sitebuild.finish import finish
from sitebuild.notebooks import digest

ROOT = Path(__file__).resolve().parent.parent
log = logging.getLogger("mkdocs.hooks.gate")

FAULTS = {
    "publishes a traceback": re.compile(r"Traceback \(most recent call last\)"),
    "shows an include marker that was not resolved": re.compile(r"-+8 ?&lt; ?-+|-+8 ?< ?-+"),
    "shows a fence that was not run (check its quotes and options)": re.compile(
        r"(?:`{3,}|~{3,})\w*[^<\n]*\bexec=|<code>\w* ?exec="
    ),
    "has an empty result block": re.compile(r"<code>\s*</code>|<p>\s*</p>"),
    "has a mermaid diagram, whose renderer the theme would load from another host": re.compile(
        r"class=[\"'][^\"'>]*\bmermaid\b"
    ),
    "loads from another host": re.compile(
        r"<(?!a\b)\w+\b[^>]*\b(?:src|srcset|data|poster|href)\s*=\s*[\"']?\s*(?:https?:)?//"
        r"|(?:url\(|@import|\bfetch\()\s*[\"']?(?:https?:)?//",
        re.I,
    ),
}
PRINTED_LINK = re.compile(r'href="(?P<path>[^":#?]+\.(?:md|py))(?P<anchor>#[^"]*)?"')
FENCE_OPTIONS = re.compile(r"^ *(?:`{3,}|~{3,})\w* .*\bexec=.*$", re.M)
RUN_FENCE = re.compile(r'^ *```python exec="1"(?: \w+="[\w-]*")*$')
MERMAID_FENCE = re.compile(r"^ *(?:`{3,}|~{3,}) *\{?[. ]*mermaid\b", re.M)
ANCHOR_LINK = re.compile(r'<a\b[^>]*\bhref="?(?P<path>[^"#?:\s>]*)#(?P<anchor>[^"\s>]+)')
ID = re.compile(r"""\bid=["']?([^"'\s>]+)""")

ENDPOINT = re.compile(r"(?:https://[\w.-]+|http://127\.0\.0\.1)(?::\d+)?(?:/[^\s\"'<>;,]*)?")

page_now = ""  # the page being built, for faults that Markdown extensions find


def report(message: str) -> None:
    """Warn, naming the page being built; under strict mode the build then fails."""
    log.warning(f"{page_now}: {message}" if page_now else message)


def faults(content: str) -> list[str]:
    """Return what is wrong with the HTML of one page, with the text that shows it."""
    text = re.sub(r"</?(?:span|a)\b[^>]*>", "", content)
    found = []
    for fault, pattern in FAULTS.items():
        if match := pattern.search(text):
            found.append(f"{fault}: {html_text.unescape(match[0])[:80]!r}")
    return found


def dead_anchors(pages: dict[str, str]) -> list[str]:
    """Return the links between built pages whose anchor is on no page; keys are site paths."""
    ids = {path: set(ID.findall(content)) for path, content in pages.items()}
    dead = []
    for path, content in pages.items():
        for match in ANCHOR_LINK.finditer(content):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match["path"]))
            if match["path"] == "":
                target = path
            elif match["path"].endswith("/") or target == ".":
                target = posixpath.normpath(posixpath.join(target, "index.html"))
            if target in ids and html_text.unescape(match["anchor"]) not in ids[target]:
                dead.append(
                    f"{path} links to {match['path']}#{match['anchor']}, which is not there"
                )
    return dead


def on_startup(**_: Any) -> None:
    """Make a page that ends the process fail the build: exit code 0 would look like success."""
    atexit.register(_fail_if_unfinished)


def on_pre_build(**_: Any) -> None:
    unfinished.append(True)


def _fail_if_unfinished() -> None:
    if unfinished:
        print("The build ended early: a page stopped the process.", file=sys.stderr, flush=True)
        os._exit(1)


unfinished: list[bool] = []


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    # Markdown extensions import this module by its name, MkDocs loads it by its path
    sys.modules["sitebuild.gate"].page_now = page.file.src_uri  # type: ignore[attr-defined]
    for match in FENCE_OPTIONS.finditer(markdown):
        if not RUN_FENCE.match(match[0].replace("\t", " ")):
            report_on(
                page,
                f"has a fence that was not run: {match[0].strip()!r}; write "
                '```python exec="1" and options in double quotes',
            )
    if MERMAID_FENCE.search(markdown):
        report_on(page, "has a mermaid diagram, which nothing here draws; use an SVG figure")
    return markdown


def on_config(config: Any) -> Any:
    check_endpoint(config.extra["feedback"]["endpoint"])
    _forget_stale_notebooks()
    return config


def check_endpoint(endpoint: str) -> None:
    """Raise where answers of readers would be sent to is no address that a page can send to."""
    if endpoint and not ENDPOINT.fullmatch(endpoint):
        raise PluginError(
            f"extra.feedback.endpoint is {endpoint!r}; allowed: nothing, an https:// address, or "
            "http:// on 127.0.0.1"
        )


def report_on(page: Any, message: str) -> None:
    log.warning(f"{page.file.src_uri} {message}")


def on_page_content(html: str, page: Any, files: Any, **_: Any) -> str:
    where = page.file.src_uri

    # MkDocs resolves the links that a page writes, not those that a block on it prints
    def resolve(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(where), match["path"]))
        file = files.get_file_from_path(target)
        if file is None:
            report_on(page, f"prints a link to {match['path']!r}, which is no page")
            return match[0]
        return f'href="{file.url_relative_to(page.file)}{match["anchor"] or ""}"'

    html = PRINTED_LINK.sub(resolve, html)
    if where.endswith(".md"):  # a notebook that fails stops the build by itself
        for fault in faults(html):
            report_on(page, fault)
    return html


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
    pages = {
        path.relative_to(site).as_posix(): path.read_text("utf-8")
        for path in site.rglob("*.html")
        if path.name != "404.html"
    }
    for dead in dead_anchors(pages):
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
