# The five commands of this repository. `make demo` and `make test` set everything up by themselves.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
# one BLAS/OpenMP thread per worker: two test processes on two cores must not fight over them
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: setup demo test check bench docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@echo "[setup] creating .venv (a few minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt pip setuptools wheel
	@echo "[setup] installing torch, onnx, onnxruntime and the tools, at the tested versions"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@
	@echo "[setup] done"

demo: setup
	@$(BIN)/python -m entrepot.models_zoo.demo

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/python -m pytest -n 2 --dist loadfile

bench: setup
	$(BIN)/python -m benchmarks.run

docs: setup
	$(BIN)/sphinx-build -W -b html docs docs/_build/html

clean:
	rm -rf .venv build dist *.egg-info docs/_build
