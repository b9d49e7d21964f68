PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
GPU := $(shell command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1 && echo [cuda])

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(BIN)/allot: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.$(GPU)'
	$(BIN)/allot warm
	@touch $@

$(VENV)/dev: $(BIN)/allot
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

install: $(BIN)/allot ## make .venv with the service (and CUDA where nvidia-smi shows a GPU)

demo: install ## start everything on a free port, solve all four problems over HTTP, stop
	$(BIN)/allot demo

serve: install ## run API, workers and (unless ALLOT_REDIS_URL is set) Redis in the foreground
	$(BIN)/allot serve

test: $(VENV)/dev ## lint, type-check and run every test that this machine can
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy app workers kernels tests
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(VENV)/dev ## lint and types only
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy app workers kernels tests

bench: $(VENV)/dev ## every benchmark, JSON lines into benchmarks/results/
	for name in lap auction uot qap; do $(BIN)/python -m benchmarks.$$name || exit 1; done

.PHONY: help install demo serve test check bench
