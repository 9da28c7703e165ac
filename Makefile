# Every target makes its own virtual environment in .venv.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: install lint test long-test

install:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q -e '.[test]'

lint: install
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -m codespell_lib

# Children of the tests are thousands of Python processes: each would compile every module again.
test: export PYTHONDONTWRITEBYTECODE =
test: install
	$(BIN)/python -m pytest -n 3 --dist loadfile

# With the tests that are marked `long`: the failure matrix, the nemesis, the whole model.
long-test: export PYTEST_ADDOPTS = -m ''
long-test: test
