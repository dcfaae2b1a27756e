"""In CI a skip that CI should not have fails the run."""

import os

import pytest

ALLOWED_SKIPS = ("needs a CUDA GPU",)


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not reporter or os.environ.get("CI", "").lower() not in ("1", "true"):
        return
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(allowed in reason for allowed in ALLOWED_SKIPS):
            reporter.write_line(f"CI may not skip {report.nodeid}: {reason}", red=True)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
