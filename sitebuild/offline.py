"""Pack the site into a zip that opens from disk: `python -m sitebuild.offline`, or `make offline`.

A page from disk may load plain scripts, and neither modules nor workers nor JSON. So the links
name files, the search index becomes a script, and a shim runs the search worker in a frame. What
needs modules (labs that run, progress, feedback) is left out; site.css hides its controls.
"""

import os
import posixpath
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from sitebuild.labs import ROOT

NAME = "attention-and-gpu-kernels"
SHIM = ROOT / "sitebuild" / "iframe-worker.js"
MODULE = re.compile(r'<script [^>]*\btype="module"[^>]*></script>')
OF_NO_USE = re.compile(
    r"\.map$|\.gz$|^(\.built|_headers|404\.html|sitemap\.xml|search/search_index\.json)$"
    r"|^assets/(javascripts/lunr|js|pyodide)/"
)


def build(site: Path) -> None:
    """Build the site with links to files rather than folders, in strict mode."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    environment = {**os.environ, "DIRECTORY_URLS": "false", "FEEDBACK_ENDPOINT": ""}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


def from_disk(page: str, path: str) -> str:
    """Return a page, which lies at `path` in the site, as it works from disk."""
    shim = posixpath.relpath("assets/iframe-worker.js", posixpath.dirname(path) or ".")
    page = page.replace("<html ", "<html data-offline ", 1)
    page = page.replace("<head>", f'<head>\n    <script src="{shim}"></script>', 1)
    return MODULE.sub("", page)


def pack(site: Path, archive: Path) -> None:
    """Write the built site into a zip, in one folder that bears the course's name."""
    files = {
        path.relative_to(site).as_posix(): path
        for path in sorted(site.rglob("*"))
        if path.is_file()
    }
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:

        def add(name: str, content: bytes) -> None:
            # a fixed date, so that the same site gives the same bytes
            packed.writestr(zipfile.ZipInfo(f"{NAME}/{name}"), content, zipfile.ZIP_DEFLATED)

        for name, path in files.items():
            if OF_NO_USE.search(name):
                continue
            content = path.read_bytes()
            if name.endswith(".html"):
                content = from_disk(content.decode(), name).encode()
            add(name, content)
        index = files["search/search_index.json"].read_text("utf-8")
        add("search/search_index.js", f"var __index = {index}".encode())
        add("assets/iframe-worker.js", SHIM.read_bytes())


def main() -> None:
    archive = ROOT / f"{NAME}.zip"
    with tempfile.TemporaryDirectory() as scratch:
        build(Path(scratch))
        pack(Path(scratch), archive)
    print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB; unpack it and open index.html")


if __name__ == "__main__":
    main()
