"""Add to a built site what no page template writes; works whichever builder made the pages."""

from pathlib import Path

from sitebuild.notebooks import drop_loaders, write_downloads
from sitebuild.policy import write_headers


def finish(docs: Path, site: Path) -> None:
    """Write the site's further files into `site`, from the sources in `docs`."""
    write_downloads(docs, site)
    drop_loaders(site)
    write_headers(site)  # last: it reads the finished pages
