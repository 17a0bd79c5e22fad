# `make demo` and `make test` need nothing but python3: each builds .venv first, and installs what it needs once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REQUIREMENTS := pyproject.toml constraints.txt
# two processes of one thread each: most tensors are too small to share among threads
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable

.PHONY: demo test test-all lint docs format clean

demo: $(VENV)/.installed-demo
	$(BIN)/python tutorials/demo.py $(ARGS)

test: $(VENV)/.installed-test
	$(PYTEST) $(ARGS)

test-all: $(VENV)/.installed-test
	$(PYTEST) -m "" $(ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.installed-docs
	$(BIN)/sphinx-build -W --keep-going -q -n docs docs/_build/html
	@echo "docs/_build/html/index.html"

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build *.egg-info docs/_build docs/api docs/tutorials

# One stamp for each set of extras; a newer pyproject.toml or constraints.txt installs again.
$(VENV)/.installed-demo: EXTRAS := fast,plot
$(VENV)/.installed-test: EXTRAS := test
$(VENV)/.installed-dev: EXTRAS := dev
$(VENV)/.installed-docs: EXTRAS := docs
$(VENV)/.installed-%: $(REQUIREMENTS) | $(BIN)/python
	$(INSTALL) ".[$(EXTRAS)]"
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
