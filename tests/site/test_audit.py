"""An audit says what it found, and never calls clean what it could not ask about."""

import json
import subprocess
import sys

import pytest

from sitebuild.audit import NotAuditedError, vulnerabilities
from sitebuild.labs import ROOT


def answer(*packages: dict[str, object]) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


CLEAN = {"name": "mkdocs", "version": "1.6.1", "vulns": []}


def test_a_clean_answer_gives_nothing() -> None:
    assert vulnerabilities(answer(CLEAN), "No known vulnerabilities found") == []


def test_a_vulnerability_is_named_with_the_version_that_mends_it() -> None:
    bad = {
        "name": "jinja2",
        "version": "2.0",
        "vulns": [
            {"id": "PYSEC-1", "fix_versions": ["2.1", "3.0"]},
            {"id": "PYSEC-2", "fix_versions": []},
        ],
    }
    assert vulnerabilities(answer(CLEAN, bad), "") == [
        "jinja2 2.0: PYSEC-1, mended in 2.1, 3.0",
        "jinja2 2.0: PYSEC-2, mended in no version yet",
    ]


@pytest.mark.parametrize(
    ("printed", "complaint", "reason"),
    [
        ("", "Traceback\nConnectionError: no route", "ConnectionError: no route"),
        ("", "", "no answer"),
        ("{}", "strange", "strange"),
        (answer(CLEAN, {"name": "torch", "skip_reason": "not found"}), "", "torch: not found"),
    ],
)
def test_what_was_not_asked_is_no_clean_result(printed: str, complaint: str, reason: str) -> None:
    with pytest.raises(NotAuditedError, match=reason):
        vulnerabilities(printed, complaint)


@pytest.mark.parametrize(("argument", "status"), [("fail", 1), ("", 0)])
def test_an_audit_that_cannot_be_made_says_so(argument: str, status: int) -> None:
    # stands in for a database out of reach: the child process fails at once
    code = "import sys; sys.executable = 'false'\n"
    code += f"sys.argv = ['audit', {argument!r}]\n"
    code += "from sitebuild.audit import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith("NOT AUDITED: ")
    assert done.returncode == status
