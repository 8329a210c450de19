# The book and its library. `make` alone lists the targets.
#
# Each target first brings $(VENV) up to date: it is made when it is missing or was made by another
# version of Python, and packages are installed when the files that name them have changed.

PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt

export TF_CPP_MIN_LOG_LEVEL ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK = 1

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install -q $(if $(CONSTRAINTS),-c $(CONSTRAINTS))
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
VENV_MADE := $(VENV)/.made-by-python-$(VERSION)
DEV_READY := $(VENV)/.ready-dev
LAB_READY := $(VENV)/.ready-lab
BENCH_READY := $(VENV)/.ready-bench
NOTEBOOKS := $(sort $(wildcard book/*.ipynb))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help book pdf course check test lab bench set-repo clean distclean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Settings: PYTHON=python3.x (3.10 to 3.13, now $(PYTHON)), VENV=folder (now $(VENV)),"
	@echo "CONSTRAINTS=file with exact versions, or nothing for the latest (now $(CONSTRAINTS))."

book: $(DEV_READY)  ## build the book, executing every notebook, into _build/html
	rm -rf _build
	$(BIN)/jupyter-book build -W -n --keep-going .
	$(BIN)/python -m adjoint_book.build.check_site _build/html
	@echo "The book is at _build/html/index.html"

pdf: $(DEV_READY)  ## build the book once more, as a PDF for print, into _build/pdf
	$(BIN)/python -m adjoint_book.build.pdf

course: $(DEV_READY)  ## write slides, notebooks, quizzes and plans for a course into _build/course
	rm -rf _build/course
	$(BIN)/python -m adjoint_book course

# What needs no test run: format, style, spelling, types, and which folder may import which. Types
# are checked against those of later versions of NumPy: 1.26 has no defaults for an array's.
define STATIC_CHECKS
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(if $(findstring oldest,$(CONSTRAINTS)),,$(BIN)/mypy)
	$(BIN)/lint-imports
endef

check: $(DEV_READY)  ## before each commit: style, spelling, types and the core tests, three minutes
	$(STATIC_CHECKS)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal tests/core tests/project/test_public_api.py

test: $(DEV_READY)  ## check style, spelling and types, run every test and every notebook
	$(STATIC_CHECKS)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --nbval --nbval-current-env \
		--nbval-sanitize-with book/sanitize.cfg $(NOTEBOOKS)

lab: $(LAB_READY)  ## open the chapters in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=book

bench: $(BENCH_READY)  ## run the benchmarks; ARGS="--models vgg7" for a part
	$(BIN)/python -m benchmarks $(ARGS)
	$(if $(ARGS),,$(BIN)/python -m benchmarks uses)

set-repo:  ## change the repository's address everywhere: make set-repo URL=https://...
	@$(PYTHON) book/adjoint_book/build/setup_cell.py '$(URL)'

clean:  ## remove the built book, packages and caches
	rm -rf _build build dist .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find adjoint_lib tests benchmarks book -type d \
		\( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

distclean: clean  ## also remove the virtual environment
	rm -rf $(VENV)

# Making the environment clears it, so whatever was installed by another Python goes with it.
$(VENV_MADE):
	@$(PYTHON) -c '' || { echo "Python was not found as '$(PYTHON)'." \
		"Install Python 3.10 to 3.13, or name it: make PYTHON=python3.x"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo \
		"Python 3.10 to 3.13 is needed, but '$(PYTHON)' is Python $(VERSION)." \
		"Name a later one: make PYTHON=python3.x"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info >= (3, 14))' || { echo \
		"Python 3.10 to 3.13 is needed, but '$(PYTHON)' is Python $(VERSION)," \
		"for which there is no TensorFlow yet. Name an earlier one: make PYTHON=python3.13"; exit 1; }
	@echo "Making $(VENV) with Python $(VERSION)."
	@$(PYTHON) -m venv --clear $(VENV) || { echo "Python's venv module did not work." \
		"On Debian and Ubuntu, install the package python3-venv."; exit 1; }
	@touch $@

$(DEV_READY): $(VENV_MADE) requirements.txt pyproject.toml $(CONSTRAINTS)
	@echo "Installing requirements.txt into $(VENV) (about 600 MB to download the first time)."
	@$(INSTALL) -r requirements.txt
	@touch $@

$(LAB_READY): $(DEV_READY)
	@echo "Installing JupyterLab into $(VENV)."
	@$(INSTALL) -e '.[lab]'
	@touch $@

$(BENCH_READY): $(VENV_MADE) benchmarks/requirements.txt pyproject.toml
	@echo "Installing benchmarks/requirements.txt into $(VENV)."
	@$(INSTALL) -r benchmarks/requirements.txt
	@touch $@
