"""Add to a built site what no page template writes; works whichever builder made the pages.

The gate runs it after MkDocs; after another builder: `python -m sitebuild.finish docs site`.
"""

import sys
from pathlib import Path

from sitebuild.engine import write_engine
from sitebuild.exercises import write_checks
from sitebuild.lab_files import write_lab_files
from sitebuild.notebooks import drop_loaders, write_downloads
from sitebuild.plain_code import drop_plain_marks
from sitebuild.policy import write_headers


def finish(docs: Path, site: Path) -> None:
    """Write the site's further files into `site`, from the sources in `docs`."""
    write_downloads(docs, site)
    write_lab_files(site)
    write_checks(site)
    write_engine(site)
    drop_loaders(site)
    drop_plain_marks(site)
    write_headers(site)  # last: it reads the finished pages


if __name__ == "__main__":
    finish(*map(Path, sys.argv[1:]))
