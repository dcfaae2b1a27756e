"""What is wrong with finished pages, whatever built them and whatever caused it.

Run it on a built site: `python -m sitebuild.site_faults site`.
"""

import html as html_text
import posixpath
import re
import sys
from pathlib import Path

FAULTS = {
    # the first line that is not indented names the error
    "publishes a traceback": re.compile(
        r"Traceback \(most recent call last\)(?::\n(?: .*\n)*(?P<error>\S.*))?"
    ),
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
ARTICLE = re.compile(r"<article\b.*?</article>", re.S)
ANCHOR_LINK = re.compile(r'<a\b[^>]*\bhref="?(?P<path>[^"#?:\s>]*)#(?P<anchor>[^"\s>]+)')
ID = re.compile(r"""\bid=["']?([^"'\s>]+)""")


def faults(content: str) -> list[str]:
    """Return what is wrong with the HTML of one page, with the text that shows it."""
    text = re.sub(r"</?(?:span|a)\b[^>]*>", "", content)
    found = []
    for fault, pattern in FAULTS.items():
        if match := pattern.search(text):
            shown = match.groupdict().get("error") or match[0][:80]
            found.append(f"{fault}: {html_text.unescape(shown)}")
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


def pages_of(site: Path) -> dict[str, str]:
    """Return path -> HTML of the pages of a built site."""
    return {
        path.relative_to(site).as_posix(): path.read_text("utf-8")
        for path in sorted(site.rglob("*.html"))
        if path.name != "404.html"
    }


def main(site: Path) -> int:
    """Print every fault of a built site. Returns 1 if there is one, or no page at all."""
    pages = pages_of(site)
    found = [
        f"{path} {fault}"
        for path, html in pages.items()
        for article in ARTICLE.findall(html)
        for fault in faults(article)
    ]
    found += dead_anchors(pages)
    print("\n".join(found) or f"{len(pages)} pages without a fault in {site}")
    return int(bool(found) or not pages)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
