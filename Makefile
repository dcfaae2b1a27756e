# One command a habit; `make help` lists them. Works from any folder name, spaces included,
# because every path below is relative to this file's folder.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$p && break; done)
# Which PyTorch `make test` installs: cpu (about 200 MB) or cuda (several GB).
TORCH ?= cpu
TORCH_VERSION = 2.13.0
TRITON_VERSION = 3.9.0
PORT ?= 8000
STEM ?= online_softmax
# the stem that was asked for, and not the one that stands in as an example
ASKED = $(if $(filter file,$(origin STEM)),,$(STEM))

LABS = $(sort $(filter-out __init__,$(patsubst snippets/%.py,%,$(wildcard snippets/*.py))))

PY = .venv/bin/python
PIP = $(PY) -m pip install --quiet --disable-pip-version-check
BUILD = $(PY) -m mkdocs build --strict
SCHEMA = $(PY) -m check_jsonschema --quiet --builtin-schema vendor.
export NO_MKDOCS_2_WARNING = 1

.PHONY: help setup engine serve site offline lab new test fix check ci audit hooks show lock mutants \
	bench stale measure zensical browser-setup
.DEFAULT_GOAL := help

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: .venv/.docs ## Create .venv with what the site needs (no torch)

engine: .venv/.docs ## Fetch the Python that runs labs in the page; serve, site and test do
	@$(PY) -m sitebuild.engine

serve: .venv/.docs engine ## Build the site, serve it and rebuild on every edit (PORT=8000)
	@$(PY) -c "import socket; socket.create_server(('127.0.0.1', $(PORT)))" 2>/dev/null || \
		{ echo "Port $(PORT) is in use; try: make serve PORT=8001"; exit 1; }
	@echo "The site will be at http://127.0.0.1:$(PORT)/ ; stop with Ctrl-C"
	@$(PY) -m mkdocs serve --dev-addr 127.0.0.1:$(PORT)

site: .venv/.docs engine ## Build the site into site/; any fault leaves the old one in place
	@rm -rf .cache/site
	@$(BUILD) --site-dir .cache/site
	@test -f .cache/site/.built || { echo "The build ended early: a page stopped the process."; exit 1; }
	@rm -rf site && mv .cache/site site

offline: .venv/.docs ## Pack the site into a zip that opens from disk, without a server
	@$(PY) -m sitebuild.offline

zensical: .venv/.test ## Build the same site with Zensical into site.zensical/
	@rm -rf site.zensical
	@SITE_DIR=site.zensical $(PY) -m zensical build --clean
	@$(PY) -m sitebuild.finish docs site.zensical
	@$(PY) -m sitebuild.site_faults site.zensical

lab: .venv/.docs ## Run one lab: make lab STEM=online_softmax
	@test -f "snippets/$(STEM).py" || { echo "No lab is named $(STEM); there are:" $(LABS); exit 1; }
	@$(PY) -m snippets.$(STEM)

new: .venv/.docs ## Start a lesson or a kernel: make new KIND=lesson STEM=tile_sizes EXERCISE=best_tile
	@$(PY) -m sitebuild.new "$(KIND)" "$(ASKED)" "$(EXERCISE)"

test: .venv/.test engine browser-setup ## Install all that the tests need, then run all tests
	@$(PY) -m pytest -n 2 --dist loadgroup

fix: .venv/.test ## Sort imports, format, mend what can be mended by itself
	@$(PY) -m ruff check --fix . && $(PY) -m ruff format .

check: .venv/.test ## Lint, types, spelling, links, workflows, labs, exercises, strict build
	@$(PY) -m ruff check . && $(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(PY) -m codespell_lib docs snippets kernels sitebuild tests .github $(wildcard *.md)
	@.venv/bin/rumdl check --quiet .
	@.venv/bin/zizmor --quiet --offline --persona=pedantic .github
	@$(SCHEMA)github-workflows .github/workflows/*.yml
	@$(SCHEMA)dependabot .github/dependabot.yml
	@$(SCHEMA)github-issue-forms .github/ISSUE_TEMPLATE/wrong_number.yml
	@$(PY) -m pytest -q -n 2 tests/snippets tests/practice tests/bench/test_cases.py tests/test_*.py
	@$(MAKE) --no-print-directory site

ci: ## What runs on every commit: check, then test
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory test

audit: .venv/.upkeep ## Hold the locked versions against the database of known vulnerabilities
	@$(PY) -m sitebuild.audit $(UNREACHABLE)

hooks: .venv/.test .venv/.upkeep ## Run check's tools on the changed files of every commit
	@$(PY) -m pre_commit install

mutants: .venv/.test ## Break what is tested and see its tests fail: all, or STEM=roofline
	@$(PY) -m tests.mutants.run $(ASKED)

bench: .venv/.test ## Measure the kernels on this machine's GPU: make bench STEM=softmax, AGAIN=1 anew
	@$(PY) -m kernels.bench $(ASKED) $(if $(AGAIN),--again)

stale: .venv/.docs ## List the captured results whose kernel has changed since
	@$(PY) -m kernels.bench.stale

measure: .venv/.docs ## Time cold, warm and no-execution builds side by side
	@$(PY) -m sitebuild.measure

show: .venv/.docs ## List every file of a stem, or of a lesson: make show STEM=online_softmax
	@$(PY) -m sitebuild.parts "$(STEM)"

lock: .venv/.upkeep ## Resolve the dependency groups of pyproject.toml into requirements/*.txt
	@for group in docs test npm upkeep; do $(PY) -m uv pip compile --quiet --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
		--group $$group --output-file requirements/$$group.txt; done
	@$(MAKE) --no-print-directory .venv/.test .venv/.upkeep
	@$(PY) -m sitebuild.licences

.venv/.made:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed; set PYTHON=/path/to/python"; exit 1; }
	@echo "Creating .venv with $(PYTHON)"
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/.docs: .venv/.made requirements/docs.txt pyproject.toml
	@echo "Installing what the site needs"
	@$(PIP) --require-hashes --requirement requirements/docs.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.test: .venv/.docs requirements/test.txt
	@echo "Installing what the tests need, PyTorch ($(TORCH)) included"
	@$(PIP) --require-hashes --requirement requirements/test.txt
ifeq ($(TORCH),cpu)
	@$(PIP) --retries 0 --timeout 20 torch==$(TORCH_VERSION) \
		--extra-index-url https://download.pytorch.org/whl/cpu
else
	@$(PIP) torch==$(TORCH_VERSION)
endif
	@$(PIP) triton==$(TRITON_VERSION)
	@touch $@

.venv/.upkeep: .venv/.made requirements/upkeep.txt
	@echo "Installing what locks and audits the dependencies"
	@$(PIP) --require-hashes --requirement requirements/upkeep.txt
	@touch $@

# The browser tests use the system's Chromium or Chrome; as root on Debian it is installed here.
browser-setup:
	@command -v chromium chromium-browser google-chrome >/dev/null 2>&1 || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		echo "Installing Chromium"; \
		apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
			--no-install-recommends chromium fonts-liberation >/dev/null; \
	else \
		echo "No Chromium or Chrome found: the browser tests will be skipped (install one to run them)."; \
	fi
