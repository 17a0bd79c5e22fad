SHELL := bash
# `make demo` and `make test` need nothing but python3: each builds .venv first, and installs what it needs once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REQUIREMENTS := pyproject.toml constraints.txt
# Two processes of one thread each: most tensors are too small to share among threads. Bytecode is kept: without, each
# process rewrites the assertions of two hundred files, in nine seconds. At the end stands what all processes took.
PYTEST := time PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable

.PHONY: demo test test-all lint docs tables pictures dist format clean

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

# The tables of README.md and the pages, from benchmarks/results.
tables: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks tables

# The pictures of README.md, of the front page and of the paper, in some minutes.
pictures: $(VENV)/.installed-test
	$(BIN)/python docs/pictures/skewness.py
	$(BIN)/python docs/pictures/uses.py

# The archives, with a README.md that stands alone (SITE is the address of the built pages). The wheel, in an empty environment away from the checkout, must run the README's examples; the source archive must
# build a wheel of the same files.
dist: $(BIN)/python
	rm -rf dist build
	$(BIN)/python -m pip install --quiet build twine
	place=$$(mktemp -d) && trap 'rm -rf "$$place"' EXIT && $(BIN)/python .ci/pypi_readme.py "$$place" $(SITE) && \
	$(BIN)/python -m build --outdir dist "$$place"
	$(BIN)/python -m twine check --strict dist/*
	place=$$(mktemp -d) && trap 'rm -rf "$$place"' EXIT && wheel=$$(echo "$(CURDIR)"/dist/*.whl) && \
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir "$$place/again" dist/*.tar.gz && \
	diff <($(BIN)/python -m zipfile --list "$$wheel" | cut -d' ' -f1 | sort) \
		<($(BIN)/python -m zipfile --list "$$place"/again/*.whl | cut -d' ' -f1 | sort) && \
	$(PYTHON) -m venv "$$place/venv" && \
	"$$place/venv/bin/python" -m pip install --quiet --constraint constraints.txt "$$wheel[ax,fast,optuna,plot]" && \
	cd "$$place" && venv/bin/python "$(CURDIR)/tests/run_readme.py"
	@echo dist/*

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info docs/_build docs/api docs/tutorials

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
