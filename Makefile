# Every target sets up its own .venv: a machine with Python 3.11 and pip is enough.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# PIP_OPTIONS and DIST_OPTIONS are for whoever calls make: .ci/run has some.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_OPTIONS)
# Compiled modules are kept, or every process that a test starts would compile the whole package again.
export PYTHONDONTWRITEBYTECODE :=
# One process more than two cores can run: tests that wait for a server, a lock or a child leave a core to the others.
PYTEST := $(BIN)/python -m pytest -n 3 --dist worksteal -q

.PHONY: help venv demo test test-all check soak lint docs dist bench notebooks proofs clean

help:
	@echo "make demo      set up and walk through asking, repeating, explaining, being refused"
	@echo "make test      set up and run the tests (a few minutes)"
	@echo "make test-all  what 'make test' leaves out: enumeration, audits, fault injection, most generated examples"
	@echo "make check     both in one go: no test runs twice"
	@echo "make soak      what is too long for CI: planted bugs, a kill at every step, many more scenes (hours)"
	@echo "make lint      style, formatting and types"
	@echo "make docs      the Python reference, from docstrings: a site that works from disk, in build/reference"
	@echo "make dist      build the packages, install the wheel into empty environments and run the demo there"
	@echo "make bench     all benchmarks, quick settings; rewrites benchmarks/RESULTS.md"
	@echo "make notebooks run the notebooks of examples/ and keep what they print"
	@echo "make proofs    re-stamp the written privacy arguments after reading them again"

.venv/bin/python:
	$(PYTHON) -m venv .venv || { $(PYTHON) -m pip install --user virtualenv && $(PYTHON) -m virtualenv .venv; }

.venv/core: .venv/bin/python pyproject.toml
	$(PIP) -e .
	@touch $@

.venv/dev: .venv/bin/python pyproject.toml
	$(PIP) -e '.[dev]'
	@touch .venv/core $@

venv: .venv/dev

demo: .venv/core
	$(BIN)/bursar demo

test: .venv/dev
	$(PYTEST) -m "not heavy and not soak" tests

test-all: .venv/dev
	$(PYTEST) -m "(heavy or hypothesis or partly) and not soak" tests

check: .venv/dev
	$(PYTEST) -n 4 -m "not soak" tests

# The figures of the environment are read by tests/harness/faults.py and tests/record_play.
soak: .venv/dev dist
	$(PIP) -e '.[spark,mbi]' deltalake
	$(BIN)/python tools/mutants.py run --workers 2
	BURSAR_SOAK=1 BURSAR_SCENES=100 $(PYTEST) -m "heavy or soak or hypothesis or partly" tests

lint: .venv/dev
	$(BIN)/ruff check src tests benchmarks tools
	$(BIN)/ruff format --check src tests benchmarks tools
	$(BIN)/mypy

docs: .venv/dev
	$(BIN)/python tools/architecture.py check
	$(BIN)/python tools/reference.py build/reference
	$(BIN)/python tools/links.py
	$(BIN)/python tools/links.py build/reference

dist: .venv/dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python tools/dist.py dist $(DIST_OPTIONS)

bench: .venv/dev
	$(BIN)/python -m benchmarks.all --quick

notebooks: .venv/dev
	$(BIN)/python tools/notebooks.py

proofs: .venv/dev
	$(BIN)/python tools/proofs.py stamp

clean:
	rm -rf .venv build dist src/*.egg-info bursar-demo
