# What a person types here: demo, test, check, bench, bench-cycle, bench-warm, bench-probe,
# bench-bisect, bench-shrink, bench-tiny, bench-squeeze, bench-hang, soak, lint-all.
# An interpreter that may not keep its bytecode compiles every module at every start.
unexport PYTHONDONTWRITEBYTECODE
unexport PYTHONPATH
unexport VIRTUAL_ENV

PYTHON ?= python3
# Most of what tests do is to wait for processes.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) '*' 3 + 2)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALLED := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest
TORCH := .venv-torch
NODES ?= 3

.PHONY: demo test check lint format-check ruff types layers generated-check docs bench bench-cycle
.PHONY: bench-warm bench-probe bench-bisect bench-shrink bench-tiny bench-squeeze bench-hang
.PHONY: soak lint-all programs torch generated clean tiny-table bytecode slurm-up slurm-down

## demo: the whole cycle on a bundled example, in under a minute
demo: $(INSTALLED)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh scripts/demo.sh

## test: every test; tests that drive a program that is missing say so
test: $(READY) programs bytecode
	$(PYTEST) -n $(JOBS) --dist worksteal tests

# Without RELAUNCH_CI=1 the tests that need torch are skipped, unless RELAUNCH_TORCH_PYTHON has it.
ifeq ($(RELAUNCH_CI),1)
test: torch
export RELAUNCH_TORCH_PYTHON ?= $(CURDIR)/$(TORCH)/bin/python
endif

## check: what must hold before a commit
check: lint docs test

# Apart from each other, so that `make -k lint` tells everything that is off at once.
lint: format-check ruff types layers generated-check

format-check: $(READY)
	$(BIN)/ruff format --check --quiet .

ruff: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

generated-check: $(READY)
	$(BIN)/python scripts/completions.py --check

## lint-all: the same on the other Pythons that we support, where they are here
lint-all: lint
	@$(BIN)/python -m tests.needs | while read -r version python; do \
		echo "on Python $$version:"; \
		$(MAKE) -k lint VENV=".venv-$$version" PYTHON="$$python" || exit 1; done

docs: $(READY)
	$(BIN)/python scripts/reference.py
	$(BIN)/mkdocs build --strict --quiet

## bench, and bench-cycle to bench-hang one by one: what rl costs beside its peers
bench: bench-cycle bench-warm bench-probe bench-bisect bench-shrink bench-tiny bench-squeeze bench-hang

bench-cycle: $(READY)
	$(BIN)/python -m benchmarks.cycle

bench-warm: $(READY)
	$(BIN)/python -m benchmarks.warm

bench-probe: $(READY)
	$(BIN)/python -m benchmarks.probe

bench-bisect: $(READY)
	$(BIN)/python -m benchmarks.bisect

bench-tiny: $(READY)
	$(BIN)/python -m benchmarks.tiny

## tiny-table: how many of the installed architectures can be made tiny; goes on where it stopped
tiny-table: $(READY) torch
	$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check scipy pillow  # vision asks for them
	$(BIN)/python -m benchmarks.tiny_models --check

bench-squeeze: $(READY)
	@sh scripts/programs.sh strace:strace stress-ng:stress-ng
	$(BIN)/python -m benchmarks.squeeze

bench-hang: $(READY) torch programs
	$(BIN)/python -m benchmarks.hang

# CASES=FOLDER: also with the failures of released packages in it
bench-shrink: $(READY)
	@sh scripts/programs.sh cvise:cvise
	$(BIN)/python -m benchmarks.shrink $(if $(CASES),--cases "$(CASES)")

## soak: every test on every Python, with many rounds; what is deep at all is in tests/depth.py.
## TESTS=tests/quality FAULTS=10000 PAIRS=20000: only some of them, with still more rounds
TESTS ?= tests
soak: $(READY) programs bytecode torch lint-all
	RELAUNCH_DEEP=1 RELAUNCH_CI=1 RELAUNCH_LONGEST_TEST_S=7200 \
		RELAUNCH_FAULTS=$(FAULTS) RELAUNCH_WARM_PAIRS=$(PAIRS) \
		RELAUNCH_TORCH_PYTHON="$${RELAUNCH_TORCH_PYTHON:-$(CURDIR)/$(TORCH)/bin/python}" \
		$(PYTEST) -n $(JOBS) --dist worksteal $(TESTS)

## generated: write the shell completions anew from the parsers
generated: $(READY)
	$(BIN)/python scripts/completions.py

# Editable, so that tests see the checkout, with the bytecode compiled as an installer would.
$(INSTALLED): pyproject.toml scripts/venv.sh bin/rl
	PYTHON="$(PYTHON)" sh scripts/venv.sh "$(VENV)"
	@touch $@

$(READY): $(INSTALLED)
	PYTHON="$(PYTHON)" sh scripts/venv.sh "$(VENV)" dev
	@touch $@

torch: $(TORCH)/.ready

$(TORCH)/.ready: | $(INSTALLED)
	$(BIN)/python -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy pandas
	$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check transformers==5.22.2 tokenizers==0.23.3 safetensors==0.8.0
	@touch $@

programs:
	@sh scripts/programs.sh

## slurm-up NODES=3, slurm-down: a real Slurm on this machine alone; prints what to export
slurm-up:
	@$(PYTHON) scripts/slurm.py up --nodes $(NODES)

slurm-down:
	@$(PYTHON) scripts/slurm.py down

bytecode: $(READY)
	@$(BIN)/python -m tests.bytecode

clean:
	rm -rf $(VENV) .venv-* site docs/reference/verbs/*.md
