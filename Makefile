# The commands of this repository. `make demo` and `make test` set everything up by themselves.
#   make setup PYTHON=python3.12                                    with another interpreter
#   make setup TORCH_INDEX=<address of the CPU wheels on pytorch.org>   torch without CUDA: a tenth of the download
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= python3
TORCH_INDEX ?=
BIN := .venv/bin
STAMP := .venv/.ready
FRAMEWORKS := .venv/.frameworks
# one BLAS/OpenMP thread per worker: two test processes on two cores must not fight over them
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

PIP = $(BIN)/python -m pip install --disable-pip-version-check --log .venv/setup.log --constraint constraints.txt
# what is downloaded and installed, without the lines about what is there already; all of it when something fails
SHOW = 2>&1 | { grep --line-buffered -E '^ *(Downloading|Successfully)' || true; } || { tail -n 40 .venv/setup.log; exit 1; }

.PHONY: setup demo test check bench opset-sweep export-sweep transformer-sweep transformer-tokens matrix docs clean

setup: $(STAMP)
	@echo "[setup] ready: $$($(BIN)/python --version), $(CURDIR)/.venv"

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "[setup] Python 3.11 or newer is needed, $(PYTHON) is $$($(PYTHON) --version); try make PYTHON=python3.12"; exit 1; }
	@echo "[setup] 1/4 .venv"
	@# some distributions ship venv without ensurepip: their pip then furnishes the new environment
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || \
	  { $(PYTHON) -m venv --clear --without-pip .venv && $(PYTHON) -m pip --python $(BIN)/python install pip; }
	@echo "[setup] 2/4 build tools"
	@$(PIP) pip setuptools $(SHOW)
	@echo "[setup] 3/4 torch: the large one, a few minutes the first time"
	@$(PIP) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) torch $(SHOW)
	@echo "[setup] 4/4 onnx, onnxruntime, the tools, and entrepot itself, at the tested versions"
	@$(PIP) --no-build-isolation --editable '.[dev]' $(SHOW)
	@touch $@

# the other frameworks, which only tests need: a gigabyte more
$(FRAMEWORKS): $(STAMP)
	@echo "[setup] TensorFlow, JAX and the boosters, for the tests"
	@$(PIP) --no-build-isolation --editable '.[dev,all,peers]' $(SHOW)
	@touch $@

demo: setup
	@$(BIN)/python -m entrepot.models_zoo.demo

check: $(FRAMEWORKS)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# in surroundings that change from day to day; VARIATION=haswell repeats one, python -m tests.variations --list names them
VARIATION ?=
test: check
	@$(BIN)/python -m tests.variations $(VARIATION)

bench: setup
	$(BIN)/python -m benchmarks.run

# all backend tests to every opset: some 60,000 conversions, each judged by an evaluator, in about ten minutes
# and every step of every operator on variants of its cases: STRENGTH=1 every value of every attribute and type, in
# some five minutes, STRENGTH=2 every pair of them, in some fifteen
STRENGTH ?= 1
opset-sweep: setup
	$(BIN)/python -m benchmarks.opset_corpus
	$(BIN)/python -m benchmarks.opset_corpus --via 28
	$(BIN)/python -m benchmarks.opset_rows --strength $(STRENGTH)

# some 250 modules and 300 architectures exported with nothing but a sample: what passes, what stays static or is refused,
# and why; a few hours. SWEEP="--corpus modules --only recurrence" runs a part, SWEEP="--json FILE --resume" goes on later
SWEEP ?=
export-sweep: setup
	$(BIN)/python -m benchmarks.export_sweep $(SWEEP)

# every model of the zoo at three opsets: how many of each source and task are proved
matrix: setup
	$(BIN)/python -m benchmarks.matrix

# every architecture that transformers has, small, through export_transformer: passed, refused and why, wrong; hours
transformer-sweep: setup
	$(BIN)/python -m benchmarks.export_sweep --corpus packages --timeout 120 --list wrong crashed refused $(SWEEP)

# tokens of packages beside those of transformers, host and graph, opsets 20 and 17, greedy and beams; some ten minutes
transformer-tokens: setup
	$(BIN)/python -m benchmarks.transformer_tokens $(SWEEP)

docs: setup
	$(BIN)/python docs/generate_support_matrix.py
	$(BIN)/python docs/generate_opset_table.py
	$(BIN)/sphinx-build -W -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:
	rm -rf .venv build dist *.egg-info docs/_build out
