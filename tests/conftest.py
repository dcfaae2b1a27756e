"""The built site, served from a sub-path; in CI a skip that it should not have fails the run."""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
ALLOWED_SKIPS = ("needs a CUDA GPU",)


class Site(NamedTuple):
    folder: Path  # of the built pages
    url: str  # of the home page, under a sub-path


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        """Send what a site's own `_headers` file asks for, as its host should."""
        for file in (Path(self.directory) / "_headers", Path(self.directory) / "course/_headers"):
            for line in file.read_text("utf-8").splitlines()[1:] if file.exists() else []:
                self.send_header(*line.strip().split(": ", 1))
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def serve() -> Iterator[object]:
    """Serve a folder over HTTP and return the address of its root."""
    servers = []

    def start(folder: Path) -> str:
        handler = functools.partial(_Quiet, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def build_site(tmp_path_factory: pytest.TempPathFactory, serve) -> object:
    """Build and serve the site; the environment sets what `mkdocs.yml` leaves open."""

    def build(**environment: str) -> Site:
        root = tmp_path_factory.mktemp("web")
        url = serve(root) + "course/"
        folder = root / "course"
        built = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
            cwd=ROOT,
            env={**os.environ, "SITE_URL": url, **environment},
            capture_output=True,
            text=True,
        )
        assert built.returncode == 0, built.stderr
        return Site(folder, url)

    return build


@pytest.fixture(scope="session")
def site(build_site) -> Site:
    return build_site()


@pytest.fixture(scope="session")
def copy_of_sources() -> Callable[[Path], Path]:
    """Copy the sources, with the caches, so that only what is broken in the copy runs again."""

    def make(target: Path) -> Path:
        for name in (
            "docs",
            "snippets",
            "kernels",
            "sitebuild",
            "requirements",
            ".cache",
            ".pyodide",
        ):
            if (ROOT / name).exists():
                shutil.copytree(
                    ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__", "site")
                )
        for name in ("mkdocs.yml", "Makefile", "pyproject.toml", "CHANGELOG.md"):
            shutil.copy2(ROOT / name, target)
        return target

    return make


@pytest.fixture
def copy(tmp_path: Path, copy_of_sources: Callable[[Path], Path]) -> Path:
    """A copy of the sources to break."""
    return copy_of_sources(tmp_path / "a copy")


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not reporter or os.environ.get("CI", "").lower() not in ("1", "true"):
        return
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(allowed in reason for allowed in ALLOWED_SKIPS):
            reporter.write_line(f"CI may not skip {report.nodeid}: {reason}", red=True)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
