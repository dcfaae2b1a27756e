"""The Content-Security-Policy of a built site, and the `_headers` file that carries it.

It names the pages' inline scripts by their hashes, so that no other runs. A host that reads
`_headers` sends it by itself; for others its lines are what to configure.
"""

import base64
import hashlib
import html
import re
from pathlib import Path
from urllib.parse import urlsplit

SCRIPT = re.compile(r"<script\b(?P<attributes>[^>]*)>(?P<code>.*?)</script>", re.S | re.I)
TYPE = re.compile(r"""\btype=["']?(?P<type>[^"'\s]*)""", re.I)
RUN_TYPES = ("", "module", "text/javascript")
ENDPOINT = re.compile(r'\bdata-endpoint="(?P<address>[^"]+)"')


def policy(pages: list[str]) -> str:
    """Return the policy under which all these pages work, given as HTML."""
    scripts = sorted({hash_of(code) for page in pages for code in inline_scripts(page)})
    endpoints = sorted({origin(m["address"]) for page in pages for m in ENDPOINT.finditer(page)})
    return "; ".join(
        [
            "default-src 'self'",
            # Python in the page is WebAssembly
            " ".join(["script-src 'self' 'wasm-unsafe-eval'", *scripts]),
            # the theme and the notebooks set styles on elements
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            " ".join(["connect-src 'self'", *endpoints]),
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'self'",
        ]
    )


def inline_scripts(page: str) -> list[str]:
    """Return the code of each script that a browser would run from the page itself."""
    return [m["code"] for m in SCRIPT.finditer(page) if _runs_inline(m["attributes"])]


def _runs_inline(attributes: str) -> bool:
    kind = TYPE.search(attributes)
    return "src=" not in attributes and (kind["type"] if kind else "") in RUN_TYPES


def hash_of(code: str) -> str:
    """Return a script's source expression: its SHA-256 in base64, quoted."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"


def origin(address: str) -> str:
    parts = urlsplit(html.unescape(address))
    return f"{parts.scheme}://{parts.netloc}"


def write_headers(site: Path) -> None:
    """Write `_headers` into a built site: what its host should send with every file."""
    pages = [path.read_text("utf-8") for path in sorted(site.rglob("*.html"))]
    lines = [
        "/*",
        f"  Content-Security-Policy: {policy(pages)}",
        "  X-Content-Type-Options: nosniff",
        "  Referrer-Policy: strict-origin-when-cross-origin",
    ]
    (site / "_headers").write_text("\n".join(lines) + "\n", "utf-8")
