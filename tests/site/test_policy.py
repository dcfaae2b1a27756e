"""The policy lets the pages' own scripts run, and no others."""

import base64
import hashlib

import pytest

from sitebuild.policy import inline_scripts, policy

pytestmark = pytest.mark.xdist_group("site")


def directive(text: str, name: str) -> list[str]:
    [found] = [part.split()[1:] for part in text.split("; ") if part.startswith(f"{name} ")]
    return found


@pytest.mark.parametrize(
    ("page", "code"),
    [
        ("<script>a()</script>", ["a()"]),
        ("<script>\n a()\n</script><SCRIPT>b()</SCRIPT>", ["\n a()\n", "b()"]),
        ('<script type="module">a()</script>', ["a()"]),
        ('<script type="text/javascript">a()</script>', ["a()"]),
        ('<script src="a.js"></script>', []),
        ('<script type="module" src="a.js"> </script>', []),
        ('<script id="c" type="application/json">{"a": 1}</script>', []),
        ('<script type="text/x-mathjax-config">a()</script>', []),
        ("<p>no script</p>", []),
    ],
)
def test_the_inline_scripts_are_those_that_a_browser_runs(page: str, code: list[str]) -> None:
    assert inline_scripts(page) == code


def test_a_script_is_named_by_the_hash_of_its_exact_text() -> None:
    expected = base64.b64encode(hashlib.sha256("a('é')\n".encode()).digest()).decode()
    allowed = directive(policy(["<script>a('é')\n</script>"]), "script-src")
    assert allowed == ["'self'", "'wasm-unsafe-eval'", f"'sha256-{expected}'"]


def test_the_same_script_on_two_pages_is_named_once() -> None:
    page = "<script>a()</script>"
    assert policy([page, page]) == policy([page])


def test_pages_may_connect_to_the_endpoint_and_to_no_other_host() -> None:
    page = '<form data-endpoint="https://x.example:8443/answers?a=1&amp;b=2"></form>'
    assert directive(policy([page]), "connect-src") == ["'self'", "https://x.example:8443"]
    assert directive(policy(['<form data-endpoint=""></form>']), "connect-src") == ["'self'"]


def test_neither_inline_code_nor_eval_is_allowed_at_large(site) -> None:
    [line] = [
        text
        for text in (site.folder / "_headers").read_text("utf-8").splitlines()
        if "Content-Security-Policy" in text
    ]
    scripts = directive(line.split(": ", 1)[1], "script-src")
    assert not {"'unsafe-inline'", "'unsafe-eval'", "*", "data:", "blob:"} & set(scripts)
    assert len([source for source in scripts if source.startswith("'sha256-")]) >= 5
