"""What CI and the commit hook run is what the Makefile runs, so that it can be run at home."""

import os
import re
import socket
import subprocess

import pytest
import yaml

from sitebuild.labs import ROOT

MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = re.findall(r"^([a-z-]+):", MAKEFILE, re.M)
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
CHECKERS = {"ruff check", "ruff format", "mypy", "codespell_lib", "rumdl check", "zizmor"}


def recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.M)
    return found[1] if found else ""


def steps(workflow: str) -> list[str]:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / workflow).read_text("utf-8"))["jobs"]
    return [step.get("run", "") for job in jobs.values() for step in job["steps"]]


@pytest.mark.parametrize("target", sorted(set(TARGETS) - {"help", "browser-setup"}))
def test_make_help_says_what_a_command_does(target: str) -> None:
    helped = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True).stdout
    assert re.search(rf"^  make {target} +[A-Z]", helped, re.M)


@pytest.mark.parametrize("checker", sorted(CHECKERS))
def test_the_commit_hook_runs_each_checker_of_make_check(checker: str) -> None:
    assert checker in recipe("check")
    assert [hook["id"] for hook in HOOKS if checker in hook["entry"]] != []


def make(*arguments: str) -> tuple[int, str]:
    # a make that runs these tests would pass its own options on
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", *arguments], cwd=ROOT, env=env, capture_output=True, text=True)
    return done.returncode, done.stdout


def test_a_misspelt_lab_is_told_which_there_are() -> None:
    status, told = make("lab", "STEM=rooflin", "-o", ".venv/.docs")
    assert status != 0
    assert re.match(r"No lab is named rooflin; there are: adoption .*\broofline\b", told)
    assert "__init__" not in told


def test_an_address_is_promised_only_where_the_port_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, told = make("serve", f"PORT={port}", "-o", ".venv/.docs", "-o", "engine")
    assert status != 0
    assert told == f"Port {port} is in use; try: make serve PORT=8001\n"


def test_the_commit_hook_is_installed_with_the_tools_that_it_runs() -> None:
    assert re.search(r"^check:(.*) ##", MAKEFILE, re.M)[1].split() == [".venv/.test"]
    needed = re.search(r"^hooks:(.*) ##", MAKEFILE, re.M)[1].split()
    assert needed == [".venv/.test", ".venv/.upkeep"]


@pytest.mark.parametrize(
    "folder", ["tests/snippets", "tests/practice", "tests/bench/test_cases.py"]
)
def test_make_check_tests_what_a_lesson_is_made_of(folder: str) -> None:
    assert folder in recipe("check").split()


def test_the_commit_hook_rewrites_no_markdown() -> None:
    writing = [hook for hook in HOOKS if re.search(r"\bformat\b|--fix|\bfmt\b", hook["entry"])]
    assert {kind for hook in writing for kind in hook["types_or"]} == {"python", "pyi"}


def test_ci_builds_tests_and_audits_with_commands_of_the_makefile() -> None:
    commands = [run for run in steps("docs.yml") if run.startswith("make ")]
    assert [command.split()[1] for command in commands] == ["ci", "audit"]
    assert {"ci", "audit", "bench"} <= set(TARGETS)
    assert [run for run in steps("bench.yml") if run.startswith("make ")] == [
        'make bench TORCH=cuda STEM="$STEM"'
    ]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_has_a_time_limit_and_only_the_rights_that_it_names(workflow) -> None:
    parsed = yaml.safe_load(workflow.read_text("utf-8"))
    jobs = parsed["jobs"].values()
    assert parsed["permissions"] == {}
    assert all(job["timeout-minutes"] <= 180 and job["permissions"] for job in jobs)
    assert all(
        re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", step["uses"])
        for job in jobs
        for step in job["steps"]
        if "uses" in step
    )


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_that_runs_our_code_can_only_read(workflow) -> None:
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
    running = [job for job in jobs if any("make " in step.get("run", "") for step in job["steps"])]
    assert [job["permissions"] for job in running] == [{"contents": "read"}] * len(running)
    assert "secrets." not in workflow.read_text("utf-8")
    assert "pull_request_target" not in workflow.read_text("utf-8")
