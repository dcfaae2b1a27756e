"""Notebooks are plain Python files; this makes the `.ipynb` that a reader can download.

It also takes from their pages the scripts that would load MathJax and Mermaid from another host.
"""

import hashlib
import re
import sys
from pathlib import Path

import jupytext

from sitebuild.labs import ROOT, imports_of, source_files

PRACTICE = ROOT / "docs" / "practice"
LOADERS = re.compile(
    r'<script src="">\s*</script>'
    r'|<script type="text/x-mathjax-config">.*?</script>'
    r'|<script type="module">(?:(?!</script>).)*\bmermaid\b.*?</script>',
    re.S,
)


def notebooks() -> list[Path]:
    """Return the notebook sources in the order of their names."""
    return sorted(PRACTICE.glob("*.py"))


def digest() -> str:
    """Digest of every file that a notebook imports, and of Python's version."""
    files = {path for notebook in notebooks() for path in imports_of(notebook)}
    for path in list(files):
        files.update(source_files(".".join(path.relative_to(ROOT).with_suffix("").parts)))
    total = hashlib.sha256(sys.version.encode())
    for path in sorted(files):
        total.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return total.hexdigest()


def write_downloads(docs_dir: Path, site_dir: Path) -> None:
    """Write `<stem>.ipynb`, without outputs, beside the page of each notebook."""
    for source in sorted((docs_dir / "practice").glob("*.py")):
        folder = site_dir / "practice"
        for page in (folder / source.stem / "index.html", folder / f"{source.stem}.html"):
            if page.is_file():
                jupytext.write(jupytext.read(source), page.with_name(f"{source.stem}.ipynb"))


def drop_loaders(site_dir: Path) -> None:
    """Take the loaders of MathJax and Mermaid from the notebooks' pages, which use neither.

    The theme would run them anew after each instant navigation, as plain scripts.
    """
    for page in sorted(site_dir.glob("practice/**/*.html")):
        page.write_text(LOADERS.sub("", page.read_text("utf-8")), "utf-8")
