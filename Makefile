# Two commands: `make lab` opens the first lesson, `make test` checks everything.
# They need GNU make and a Python from 3.11 to 3.14, which makes its own .venv. PYTHON=... names another Python.

VENV := .venv
RUN := $(VENV)/bin/python
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
SUITABLE := import sys, venv, ensurepip, sqlite3; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))
PYTHON = $(firstword $(foreach p,$(CANDIDATES),$(shell $(p) -c '$(SUITABLE)' 2>/dev/null && echo $(p))))
WORKERS ?= 2
ARGS ?=

.PHONY: help lab test lint types notebooks browser front-end pytest clean
.NOTPARALLEL:

help:
	@echo "make lab         open the first lesson in JupyterLab       (ARGS='--no-browser', ARGS='-- --port 9000')"
	@echo "make test        all checks: lint, types, front end, package, lessons, notebooks, browser"
	@echo "make lint | types | notebooks | browser | front-end      one of them"
	@echo "make clean       remove .venv, caches and builds; your notebooks stay"

lab: $(VENV)/.lab
	@exec $(RUN) -m agentlab lab $(ARGS)

test: lint types front-end pytest

lint: $(VENV)/.test
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .

types: $(VENV)/.test
	$(RUN) -m mypy

# Rewrites notebooks/ in its one form and checks the limits of a lesson.
notebooks: $(VENV)/.test
	$(RUN) tools/notebooks.py

browser: $(VENV)/.test
	$(RUN) -m pytest tests/browser

# What measures time, and the browser, run alone; all the rest on two workers.
# Without Chromium the browser tests are skipped and say why; where CI=true they fail.
pytest: $(VENV)/.test
	$(RUN) -m pytest -m timing
	$(RUN) -m pytest tests/browser -m "not timing"
	$(RUN) -m pytest -m "not timing" --ignore tests/browser -n $(WORKERS) --dist loadgroup

front-end:
	@if command -v npm >/dev/null && node -e 'process.exit(+process.versions.node.split(".")[0] < 20 ? 1 : 0)' 2>/dev/null; then \
	  $(MAKE) --no-print-directory widgets/node_modules/.package-lock.json && cd widgets && npm run check && npm test; \
	elif [ "$(CI)" = true ]; then \
	  echo "front end: FAILED. CI must have Node 20 or newer, with npm."; exit 1; \
	else \
	  echo "front end: skipped. Node 20 or newer with npm is not here; the built front ends are in the repository."; \
	fi

widgets/node_modules/.package-lock.json: widgets/package-lock.json
	cd widgets && npm ci --no-audit --no-fund
	@touch $@

$(VENV)/.lab: pyproject.toml | $(RUN)
	@echo "Installing agentlab and JupyterLab into $(VENV). Once; about a minute."
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[lab]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(RUN)
	@echo "Installing agentlab and what its tests need into $(VENV). Once; a minute or two."
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@ $(VENV)/.lab

$(RUN):
	@test -n "$(PYTHON)" || { \
	  echo "agentlab needs a Python from 3.11 to 3.14 that can make environments (with venv, pip and SQLite)."; \
	  echo "None was found under these names: $(CANDIDATES)."; \
	  echo "Install one (on Debian or Ubuntu: apt install python3 python3-venv), or name it: make $(MAKECMDGOALS) PYTHON=<its path>"; \
	  exit 1; }
	@echo "Making $(VENV) with $(PYTHON)."
	@$(PYTHON) -m venv --clear $(VENV)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis widgets/node_modules
	find agentlab tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
