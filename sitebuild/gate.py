"""MkDocs hooks: turn faults that a build would publish in silence into warnings.

Strict mode turns each warning into a failed build. They check the finished pages, so that a
fault is caught whatever caused it.
"""

import html as html_text
import logging
import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
log = logging.getLogger("mkdocs.hooks.gate")

FAULTS = {
    "publishes a traceback": re.compile(r"Traceback \(most recent call last\)"),
    "shows an include marker that was not resolved": re.compile(r"-+8 ?&lt; ?-+|-+8 ?< ?-+"),
    "shows a fence that was not run (check its quotes and options)": re.compile(
        r"```+\w*[^<\n]*\bexec=|<code>\w* ?exec="
    ),
    "has an empty result block": re.compile(r"<code>\s*</code>|<p>\s*</p>"),
    "has a reference that is neither in the glossary nor in the sources": re.compile(
        r"\[[^\]\n<]+\]\[[\w -]*\]"
    ),
    "loads from another host": re.compile(
        r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc=[\"']?(?:https?:)?//"
        r"|<link\b[^>]*\shref=[\"']?(?:https?:)?//"
    ),
}
PRINTED_LINK = re.compile(r'href="(?P<path>[^":#?]+\.(?:md|py))(?P<anchor>#[^"]*)?"')
CODE = re.compile(r"<code\b.*?</code>", re.S)


def report(message: str) -> None:
    """Warn; under strict mode the build then fails."""
    log.warning(message)


def faults(content: str) -> list[str]:
    """Return what is wrong with the HTML of one page, with the text that shows it."""
    text = re.sub(r"</?(?:span|a)\b[^>]*>", "", content)
    found = []
    for fault, pattern in FAULTS.items():
        # code may well hold brackets side by side, as in scores[i][j]
        where = CODE.sub("", text) if "reference" in fault else text
        if match := pattern.search(where):
            shown = html_text.unescape(match[0])[:80]
            found.append(f"{fault}: {shown!r}")
    return found


def on_config(config: Any) -> Any:
    _forget_stale_notebooks()
    return config


def on_page_content(html: str, page: Any, files: Any, **_: Any) -> str:
    where = page.file.src_uri

    # MkDocs resolves the links that a page writes, not those that a block on it prints
    def resolve(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(where), match["path"]))
        file = files.get_file_from_path(target)
        if file is None:
            report(f"{where} prints a link to {match['path']!r}, which is no page")
            return match[0]
        return f'href="{file.url_relative_to(page.file)}{match["anchor"] or ""}"'

    html = PRINTED_LINK.sub(resolve, html)
    if where.endswith(".md"):  # a notebook that fails stops the build by itself
        for fault in faults(html):
            report(f"{where} {fault}")
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
    from sitebuild.notebooks import write_downloads

    write_downloads(Path(config["docs_dir"]), site)
    # proof that the build reached its end: a lab that ends the process leaves none
    (site / ".built").write_text("ok\n")


def _forget_stale_notebooks() -> None:
    """Drop mkdocs-jupyter's cache when code that a notebook imports has changed.

    Its cache key is the notebook's own bytes, so it would show the output of old code.
    """
    from sitebuild.notebooks import digest

    cache = ROOT / ".cache" / "mkdocs-jupyter"
    stamp = ROOT / ".cache" / "notebooks.digest"
    now = digest()
    if not stamp.exists() or stamp.read_text() != now:
        shutil.rmtree(cache, ignore_errors=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(now)
