# `make` alone lists the targets. PYTHON picks the interpreter that makes the virtual environments.

# Bytecode is written, also where the environment says not to, as in images for containers: each process that the tests
# start would else compile what it imports, and each of pytest rewrite all assertions.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BENCH_VENV := .bench-venv
BIN := $(VENV)/bin
PIP := PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet
PACKAGE := build/package/smelt
# What runs once more (of variants every third) from a copy in a folder with a space in its name, called `smelt`: what
# names lines, files, folders. Of the modules in C only the small ones are compiled there.
ELSEWHERE := build/elsewhere/a b/smelt
QUICK := tests/architecture tests/ir tests/tools $(wildcard tests/runtime/test_compile*.py) \
	$(foreach part,control errors hostile regressions transforms_errors transforms_trees,tests/frontend/test_$(part).py)

# What test-pythons runs: objects, threads, signals, the buffer protocol, machine code called through ctypes.
ON_PYTHONS := tests/runtime tests/ir tests/backends/test_cpu.py tests/backends/test_threads.py \
	tests/backends/test_interrupts.py $(foreach part,extents handles mlx_behaviour,tests/frontend/test_$(part).py)
PYTHONS ?=

# What the tier changes, beside tests that fix one: calls, states, donation, values that are there or not yet.
TIERED := $(wildcard tests/runtime/test_compile*.py tests/runtime/test_donation*.py tests/frontend/test_trans*.py) \
	$(foreach part,async evaluation_threads families functions_made_anew laziness memory rolled,tests/runtime/test_$(part).py) \
	$(foreach part,control custom recipes repeated_calls steps,tests/frontend/test_$(part).py) tests/nn/test_training.py

# What test-compiled runs of the frontend: half of each file's tests in one way, half in the other; each half in both
# ways in test-long. And what runs with each core whatever the setting says.
ONE_HALF := --part 2/2
OTHER_HALF := --part 1/2
OF_THE_CORE := --deselect tests/frontend/test_core.py::test_what_uses_the_core_works_with_each

.DEFAULT_GOAL := help
.PHONY: help demo test test-compiled test-elsewhere test-frameworks test-long test-metal test-arm64 test-pythons test-browser sdist-check lint types pytest docs docs-check test-cuda soak-cuda format bench bench-setup clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## train a network on scikit-learn's handwritten digits
	$(BIN)/python examples/digits.py

test: $(VENV)/.test $(PACKAGE) ## ruff, mypy, and every test; all that CI runs
	@failed=; \
	$(BIN)/ruff check . || failed="$$failed ruff"; \
	MYPYPATH=$(dir $(PACKAGE)) $(BIN)/mypy -p smelt >build/mypy.txt 2>&1 & mypy=$$!; \
	$(BIN)/python -m pytest -n 2 --dist worksteal || failed="$$failed pytest"; \
	wait $$mypy || failed="$$failed mypy"; cat build/mypy.txt; \
	$(MAKE) test-compiled || failed="$$failed test-compiled"; \
	$(MAKE) test-elsewhere || failed="$$failed test-elsewhere"; \
	$(MAKE) test-cuda || failed="$$failed test-cuda"; \
	if [ -n "$$failed" ]; then echo "make test: failed:$$failed"; exit 1; fi

test-long: $(VENV)/.test ## campaigns of random programs, files, threads, signals: an hour; SMELT_LONG_SCALE=0.1 does a tenth
	$(BIN)/python -m pytest tests/long -n 2 --durations=10
	SMELT_TEST_EXAMPLES=$${SMELT_TEST_EXAMPLES:-30} $(BIN)/python -m pytest tests/compose tests/passes_py/test_patterns.py -n 2
	$(BIN)/python -m pytest -n 2 --dist worksteal -m thinned --all-variants
	$(MAKE) test-compiled ONE_HALF= OTHER_HALF=

test-cuda: $(VENV)/.test $(PACKAGE) ## the tests of ops, compositions and the frontend on an NVIDIA GPU, where there is one
	@if $(BIN)/python -c 'import sys, smelt; sys.exit(not smelt.cuda.is_available())'; then \
	$(BIN)/python -m pytest --device cuda -n 8 --dist worksteal; \
	else echo "make test-cuda: no NVIDIA GPU here, so nothing was run on one"; fi

test-browser: $(VENV)/.test $(PACKAGE) ## the page of `smelt view` in a browser without a window, which it installs
	$(PIP) --editable '.[browser]'
	$(BIN)/python -m pytest tests/runtime/test_view_in_browser.py

soak-cuda: $(VENV)/.test $(PACKAGE) ## an NVIDIA GPU for a minute and at its limits; a sample of the tests under compute-sanitizer
	$(BIN)/python -m pytest --device cuda tests/long/test_device.py
	$(BIN)/python -m tests.platforms.sanitizer memcheck
	$(BIN)/python -m tests.platforms.sanitizer racecheck

test-metal: $(VENV)/.test ## on a Mac: the GPU's acceptance, with a report to hand in; elsewhere what can be said without
	@mkdir -p build; failed=; \
	$(BIN)/smelt doctor -o build/metal-report.txt || failed="$$failed doctor"; \
	$(BIN)/python -m pytest tests/platforms/test_metal_gpu.py tests/backends/metal -rs >build/metal-tests.txt 2>&1 || failed="$$failed pytest"; \
	tail -40 build/metal-tests.txt | tee -a build/metal-report.txt; \
	echo "Hand in build/metal-report.txt."; \
	if [ -n "$$failed" ]; then echo "make test-metal: failed:$$failed; see build/metal-tests.txt"; exit 1; fi

test-arm64: $(VENV)/.test $(PACKAGE) ## CPU tests on Linux aarch64, emulated (root; apt-get install qemu-user-static debootstrap)
	sh tests/platforms/arm64.sh $(BIN)/python tests/ops tests/backends/test_cpu.py tests/backends/test_blas.py tests/runtime tests/frontend

test-pythons: $(VENV)/.test $(PACKAGE) ## what depends on Python's version, on every Python >= 3.10 here; PYTHONS="a b" names them
	$(BIN)/python -m tests.platforms.pythons --on "$(PYTHONS)" $(ON_PYTHONS)

sdist-check: $(VENV)/.test ## build the source distribution, install from it in a fresh environment, run its tests there
	$(BIN)/python -m tests.platforms.sdist

test-compiled: $(VENV)/.test ## parts of the tests: small graphs compiled as large ones are; without the core in C; as users run them
	SMELT_SMALL_WORK=0 $(BIN)/python -m pytest -n 2 --dist worksteal tests/frontend --sample 17 $(ONE_HALF) $(OF_THE_CORE)
	SMELT_CORE=python $(BIN)/python -m pytest -n 2 --dist worksteal tests/frontend --sample 17 $(OTHER_HALF) $(OF_THE_CORE)
	SMELT_TIER=auto $(BIN)/python -m pytest -n 2 --dist worksteal $(TIERED) --sample 17

test-frameworks: $(BENCH_VENV)/.test $(PACKAGE) ## what is tested beside PyTorch, JAX and MLX, where these are (after bench-setup)
	PYTHONPATH=$(dir $(PACKAGE)) SMELT_JAX_PYTHON=$(BENCH_VENV)/bin/python $(BENCH_VENV)/bin/python -m pytest -n 2 --dist worksteal \
	tests/exchange tests/nn tests/frontend/test_interchange.py
	PYTHONPATH=$(dir $(PACKAGE)) $(BENCH_VENV)/bin/python -m pytest -n 2 tests/architecture/test_documents.py tests/architecture/test_examples.py -k "exchange or pytorch"

lint: $(VENV)/.test ## ruff alone
	$(BIN)/ruff check .

test-elsewhere: $(VENV)/.test ## the quick part of the tests, from a copy in a folder "a b/smelt"
	rm -rf build/elsewhere && mkdir -p '$(ELSEWHERE)'
	tar -cf - --exclude=./build --exclude=./.git --exclude='./.*venv' --exclude='./.*cache' --exclude=__pycache__ . | tar -xf - -C '$(ELSEWHERE)'
	mkdir -p '$(ELSEWHERE)/$(PACKAGE)' && for core in $(PACKAGE)/_core.*; do [ ! -e "$$core" ] || cp -p "$$core" '$(ELSEWHERE)/$(PACKAGE)'; done
	python="$$PWD/$(BIN)/python" && cd '$(ELSEWHERE)' && "$$python" build_backend.py && \
	PYTHONPATH="$$PWD/build/package" "$$python" -m pytest -n 2 --dist worksteal $(QUICK) --sample 3 --deselect tests/architecture/test_examples.py::test_demo

types: $(VENV)/.test $(PACKAGE) ## mypy alone
	MYPYPATH=$(dir $(PACKAGE)) $(BIN)/mypy -p smelt

pytest: $(VENV)/.test ## the tests alone
	$(BIN)/python -m pytest -n 2 --dist worksteal

docs-check: $(VENV)/.test ## run the code and compare the output in README.md and docs/
	$(BIN)/python -m pytest tests/architecture

format: $(VENV)/.test ## sort imports and apply ruff's safe fixes
	$(BIN)/ruff check --fix .

bench: $(VENV)/.test ## time the named workloads, beside the frameworks that bench-setup installed
	$(BIN)/python -m benchmarks

docs: $(VENV)/.test $(PACKAGE) ## build/docs: the reference of all functions, as pages
	PYTHONPATH=$(dir $(PACKAGE)) $(BIN)/python -m pdoc --docformat google --output-directory build/docs smelt
	@echo "open build/docs/index.html"

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

# The extras of the tests beside the frameworks; `expecttest` loads PyTorch's own samples (tests/exchange/torch_ops.py).
$(BENCH_VENV)/.test: pyproject.toml $(BENCH_VENV)/.ready
	$(BENCH_VENV)/bin/python -m pip install --quiet --editable '.[test,demo]' expecttest
	touch $@

# The rooms as the installed package has them: a folder of links.

$(PACKAGE): $(VENV)/.test $(wildcard frontend/* frontend/lazy/native/*.[ch])
	$(BIN)/python build_backend.py

build/types/smelt: $(PACKAGE)
	rm -rf build/types && ln -s package build/types
