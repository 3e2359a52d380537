# Everything happens in .venv; "make help" lists the targets.

PYTHON  ?= python3
# a pinned CPU build keeps CI small; users are not pinned
# (on Linux the default index may serve the larger CUDA build: point pip at PyTorch's CPU index)
TORCH   ?= torch==2.13.0
# parallel test processes
WORKERS ?= 2
# what to test in other environments; everything if empty
TESTS   ?=

# the packages whose coverage is counted
CORE := geometry graphs nn train audit

VENV := .venv
BIN  := $(VENV)/bin
# -q twice: pip prints its errors and nothing else
PIP  := $(BIN)/python -m pip --disable-pip-version-check -q -q

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run demo test test-minimum test-newest coverage lint format docs docs-pictures package clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.installed-plot ## install what is needed into .venv and run the paper's first table
	@$(BIN)/symgnn reproduce polytopes-3d

demo: $(VENV)/.installed-plot ## measure the symmetry of every block on the five solids
	@$(BIN)/symgnn demo

test: lint ## check style and types, then run the tests
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest -n $(WORKERS)

# Other versions of other packages warn of other things: there, only our own warnings are errors.
OUR_WARNINGS = -o filterwarnings="$$(printf 'default\nerror:::symgnn')"

test-minimum: $(VENV)/.uv ## run the tests with the oldest versions that pyproject.toml allows, in .venv-minimum
	$(BIN)/uv venv -q --clear --python $(PYTHON) .venv-minimum
	$(BIN)/uv pip install -q --python .venv-minimum/bin/python --resolution lowest-direct -e '.[test]'
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} .venv-minimum/bin/python -m pytest -n $(WORKERS) $(OUR_WARNINGS) $(TESTS)

test-newest: $(VENV)/.uv ## run the tests with the newest versions of everything, in .venv-newest
	$(BIN)/uv venv -q --clear --python $(PYTHON) .venv-newest
	$(BIN)/uv pip install -q --python .venv-newest/bin/python --upgrade -e '.[test]'
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} .venv-newest/bin/python -m pytest -n $(WORKERS) $(OUR_WARNINGS) $(TESTS)

coverage: $(VENV)/.installed-dev ## count the lines of the core packages that the tests reach
	@$(PIP) install pytest-cov
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest -n $(WORKERS) $(CORE:%=--cov=symgnn.%) --cov-report=term:skip-covered --cov-fail-under=95

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

package: $(VENV)/.torch $(VENV)/.uv ## build the wheel and the sdist into dist/, try the wheel in new environments, with each extra alone
	rm -rf dist build/package
	@$(PIP) install build
	$(BIN)/python -m build
	$(PYTHON) -m venv build/package
	@build/package/bin/python -m pip --disable-pip-version-check -q -q install $(TORCH)
	@build/package/bin/python -m pip --disable-pip-version-check -q -q install dist/*.whl
	cd build/package && bin/symgnn --version && bin/symgnn explore --help > /dev/null
	cd build/package && bin/python -c 'import symgnn; print(symgnn.load("qm9-homo"))'
	UV_FIND_LINKS=$${UV_FIND_LINKS:-$$PIP_FIND_LINKS} $(BIN)/python tools/try_extras.py dist/*.whl $(TORCH)

clean: ## remove .venv, builds and caches
	rm -rf $(VENV) .venv-minimum .venv-newest build dist site .pytest_cache .ruff_cache .mypy_cache .hypothesis
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

# it finds the oldest versions that are allowed
$(VENV)/.uv: | $(VENV)/.created
	@$(PIP) install uv
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
