# make run     observe a program: the first example with its fix proved, or SCRIPT=path with ARGS="..."
# make test    everything, with all three frameworks
# make check   format, types, layers and the tests that need no framework: under a minute
# make clean   remove what these made
#
# ARGS go to the program, OPTIONS to gradwhy. PYTHON is the interpreter that the environment is made with, 3.11 or newer. VENV is
# where it is put.

PYTHON ?= python3
VENV ?= .venv
SCRIPT ?= examples/mask_outside_tape.py
ARGS ?=
OPTIONS ?= $(if $(filter examples/mask_outside_tape.py,$(SCRIPT)),--prove --to-end)

# The frameworks that a program names are those that it needs.
comma := ,
space := $() $()
named_in = $(sort $(subst keras,tensorflow,$(subst flax,jax,$(shell \
	sed -nE 's/^[[:space:]]*(import|from)[[:space:]]+(tensorflow|keras|torch|jax|flax)([^A-Za-z0-9_].*)?$$/\2/p' '$(1)' 2>/dev/null))))
FRAMEWORKS ?= $(call named_in,$(SCRIPT))

export TF_CPP_MIN_LOG_LEVEL ?= 3

.PHONY: run test check style types clean help
.DEFAULT_GOAL := help
.NOTPARALLEL:

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

run: $(VENV)/.has-run-$(subst $(space),$(comma),$(FRAMEWORKS))
	@$(VENV)/bin/gradwhy run $(OPTIONS) '$(SCRIPT)' $(ARGS)

test: $(VENV)/.has-test-dev,tensorflow,torch,jax,cases style types
	$(VENV)/bin/pytest

check: $(VENV)/.has-check-dev style types
	$(VENV)/bin/pytest -m 'not frameworks'

style: | $(VENV)/bin/ruff
	$(VENV)/bin/ruff format --check --quiet .
	$(VENV)/bin/ruff check --quiet .

types: | $(VENV)/bin/mypy
	$(VENV)/bin/mypy --no-error-summary

clean:
	rm -rf '$(VENV)' .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

# A stamp for each set of extras, so that a second call installs nothing. The install is editable: a change of the sources
# needs no other one. A set is installed at once: pip sees what its parts demand of each other.
define install
	@echo "installing what this needs into $(VENV): the first time takes a few minutes" >&2
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check -e '.$(if $(1),[$(1)])'
	@touch $@
endef

$(VENV)/.has-run-%: pyproject.toml | $(VENV)/.made
	$(call install,$*)

$(VENV)/.has-run-: pyproject.toml | $(VENV)/.made
	$(call install,)

$(VENV)/.has-check-%: pyproject.toml | $(VENV)/.made
	$(call install,$*)

$(VENV)/.has-test-%: pyproject.toml | $(VENV)/.made
	$(call install,$*)

$(VENV)/bin/ruff $(VENV)/bin/mypy:
	@$(MAKE) --no-print-directory $(VENV)/.has-check-dev

$(VENV)/.made:
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "gradwhy needs Python 3.11 or newer, and $(PYTHON) is $$('$(PYTHON)' -V 2>&1)." \
		"Name another one: make PYTHON=python3.11 ..." >&2; exit 1; }
	@'$(PYTHON)' -m venv '$(VENV)'
	@touch $@
