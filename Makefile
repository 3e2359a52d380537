# Everything happens in .venv; "make help" lists the targets.

PYTHON  ?= python3
# a pinned CPU build keeps CI small; users are not pinned
# (on Linux the default index may serve the larger CUDA build: point pip at PyTorch's CPU index)
TORCH   ?= torch==2.13.0
# parallel test processes
WORKERS ?= 2

VENV := .venv
BIN  := $(VENV)/bin
# -q twice: pip prints its errors and nothing else
PIP  := $(BIN)/python -m pip --disable-pip-version-check -q -q

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run demo test lint format docs docs-pictures package clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.installed-plot ## install what is needed into .venv and run the paper's first table
	@$(BIN)/symgnn reproduce polytopes-3d

demo: $(VENV)/.installed-plot ## measure the symmetry of every block on the five solids
	@$(BIN)/symgnn demo

test: lint ## check style and types, then run the tests
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest -n $(WORKERS)

lint: $(VENV)/.installed-dev ## check style (ruff), types (mypy) and the direction of imports (import-linter)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache > /dev/null || $(BIN)/lint-imports --no-cache

format: $(VENV)/.installed-dev ## fix what ruff can fix and format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-docs ## build the site into site/ (open site/index.html); broken links are errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

docs-pictures: $(VENV)/.installed-all ## draw the pictures of the documentation again
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_start_picture.py
	$(BIN)/python docs/make_recording.py

package: $(VENV)/.torch ## build the wheel and the sdist into dist/, install the wheel into a new environment and try it
	rm -rf dist build/package
	@$(PIP) install build
	$(BIN)/python -m build
	$(PYTHON) -m venv build/package
	@build/package/bin/python -m pip --disable-pip-version-check -q -q install $(TORCH)
	@build/package/bin/python -m pip --disable-pip-version-check -q -q install dist/*.whl
	cd build/package && bin/symgnn --version && bin/symgnn explore --help > /dev/null
	cd build/package && bin/python -c 'import symgnn; print(symgnn.load("qm9-homo"))'

clean: ## remove .venv, builds and caches
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find src tests docs benchmarks -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# ---- installing: a file per step, so that nothing is installed twice

# .installed-X: the package, editable, with its extra X (see pyproject.toml)
$(VENV)/.installed-%: pyproject.toml $(VENV)/.torch
	@echo "installing symgnn[$*] into $(VENV)"
	@$(PIP) install -e '.[$*]'
	@touch $@

$(VENV)/.torch: | $(VENV)/.created
	@$(BIN)/python -c 'import torch' 2>/dev/null || { \
	  echo "installing $(TORCH) into $(VENV), a few minutes the first time"; \
	  $(PIP) install $(TORCH); }
	@touch $@

# pip 21.3 is the first that installs a pyproject.toml package as editable
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	  echo "symgnn needs Python 3.10 or newer, and $(PYTHON) is not: try make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install 'pip>=21.3'
	@touch $@
