# `make` alone lists the targets. PYTHON picks the interpreter that makes the virtual environments.

PYTHON ?= python3
VENV := .venv
BENCH_VENV := .bench-venv
BIN := $(VENV)/bin
PIP := PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet
ROOMS := frontend ir passes backends runtime tools
TYPES := build/types/smelt

.DEFAULT_GOAL := help
.PHONY: help demo test test-long lint types pytest docs-check format bench bench-setup clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## train a network on scikit-learn's handwritten digits
	$(BIN)/python examples/digits.py

test: $(VENV)/.test $(TYPES) ## ruff, mypy, and every test; all that CI runs
	@failed=; \
	$(BIN)/ruff check . || failed="$$failed ruff"; \
	MYPYPATH=$(dir $(TYPES)) $(BIN)/mypy -p smelt || failed="$$failed mypy"; \
	$(BIN)/python -m pytest -n 2 || failed="$$failed pytest"; \
	if [ -n "$$failed" ]; then echo "make test: failed:$$failed"; exit 1; fi

test-long: $(VENV)/.test ## campaigns of random programs, files, threads, signals: an hour; SMELT_LONG_SCALE=0.1 does a tenth
	$(BIN)/python -m pytest tests/long -n 2 --durations=10

lint: $(VENV)/.test ## ruff alone
	$(BIN)/ruff check .

types: $(VENV)/.test $(TYPES) ## mypy alone
	MYPYPATH=$(dir $(TYPES)) $(BIN)/mypy -p smelt

pytest: $(VENV)/.test ## the tests alone
	$(BIN)/python -m pytest -n 2

docs-check: $(VENV)/.test ## run the code and compare the output in README.md and docs/
	$(BIN)/python -m pytest tests/architecture

format: $(VENV)/.test ## sort imports and apply ruff's safe fixes
	$(BIN)/ruff check --fix .

bench: $(VENV)/.test ## time the named workloads, beside the frameworks that bench-setup installed
	$(BIN)/python -m benchmarks

bench-setup: $(BENCH_VENV)/.ready ## install torch, jax and mlx for `make bench`

clean: ## remove everything that make has made
	rm -rf $(VENV) $(BENCH_VENV) build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

# A stamp is newer than pyproject.toml when its extras are installed.

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV) || { echo "make: python's venv module is missing (Debian: python3-venv)"; exit 1; }
	$(PIP) --upgrade pip
	touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.created
	$(PIP) --editable '.[test,demo]'
	touch $@ $(VENV)/.demo

$(VENV)/.demo: pyproject.toml $(VENV)/.created
	$(PIP) --editable '.[demo]'
	touch $@

$(BENCH_VENV)/.ready: benchmarks/requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(BENCH_VENV)/bin/python -m pip install --quiet --requirement $<
	touch $@

# mypy sees the rooms as the installed package has them: a folder of links.

$(TYPES): $(wildcard frontend/*)
	rm -rf $@ && mkdir -p $@
	cd $@ && ln -s ../../../frontend/* .
	cd $@ && for room in $(filter-out frontend,$(ROOMS)); do ln -s ../../../$$room .; done
	touch $@
