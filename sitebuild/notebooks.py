"""Notebooks are plain Python files; this makes the `.ipynb` that a reader can download.

It also takes from their pages the scripts that would load MathJax and Mermaid from another host.
"""

import hashlib
import os
import re
import sys
from pathlib import Path

import jupytext

from sitebuild.labs import ROOT, imports_of, source_files

# What a cell does is guarded like a lab, imports this tree's labs and leaves no history behind.
# A kernel warns that whoever shares this machine could listen; it runs the course's own notebook.
KERNEL_CONFIG = f"""\
import logging

logging.getLogger("IPKernelApp").addFilter(lambda r: "without encryption" not in r.getMessage())
c.HistoryManager.enabled = False
c.InteractiveShellApp.exec_lines = [
    "import sys",
    "sys.path.insert(0, {str(ROOT)!r})",
    "from sitebuild import guard",
    "guard.guard_blocks()",
    "del guard, sys",
]
"""
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


def guard_kernels() -> None:
    """Start the kernels of this process's notebooks with our settings and not the reader's own."""
    home = ROOT / ".cache" / "ipython"
    profile = home / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text(KERNEL_CONFIG, "utf-8")
    os.environ["IPYTHONDIR"] = str(home)


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
