# `make` and `make help` list the targets. Every target below installs first, once, into .venv.
# Pass more to a target with ARGS: make diagnose ARGS="out=studies/mine", make test ARGS="tests/lcd -k curves".

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
ARGS ?=
PYTHON ?=

# An interpreter's name on PATH proves nothing (version managers leave shims that only print an error), so each is run.
CANDIDATES := $(or $(PYTHON),python3.11 python3.12 python3 python /usr/bin/python3 $(wildcard $(HOME)/.pyenv/versions/3.1[12].*/bin/python))
SUITS := import sys, ensurepip, venv; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))

# Hashes are locked for this platform alone. It is also the only one that procgen-mirror has wheels for.
LOCK := $(if $(filter Linux-x86_64,$(shell uname -sm | tr ' ' -)),lock/linux-x86_64.txt)

# Modules are compiled when they are first imported. Where Python may not write what it compiled (container images like to
# say so), every process would compile thousands of them again: there all are compiled in advance, in half a minute.
PIP := $(BIN)/python -m pip install --disable-pip-version-check --no-warn-conflicts --no-compile -qq

SOAKS := $(addprefix tests/soak/,kills.py faults.py memory.py hands.py orders.py commands.py) $(wildcard tests/soak/fuzz_configs.py tests/soak/fuzz_files.py)

.DEFAULT_GOAL := help
.PHONY: help install diagnose test lint types docs bench soak lock clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## /\1\t/' | awk -F '\t' '{ printf "  make %-9s %s\n", $$1, $$2 }'

install: $(STAMP)  ## make .venv and install everything into it (about two minutes, 8 GB)

diagnose: $(STAMP)  ## diagnose the toy benchmark, end to end
	@$(BIN)/lcd diagnose benchmark=toy $(ARGS)

test: $(STAMP)  ## run the tests
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 --dist worksteal $(ARGS)

lint: types  ## check style, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

# mypy looks for `lcd.envs` in lcd/envs, which is envs/ (package-dir in pyproject.toml), and an editable installation tells it
# nothing. So it sees a tree of links in which every room lies where its name says.
types: $(STAMP)  ## check types
	@rm -rf $(VENV)/rooms
	@mkdir -p $(VENV)/rooms/lcd
	@ln -s "$(CURDIR)"/lcd/* $(foreach room,envs frontends pipelines configs,"$(CURDIR)/$(room)") $(VENV)/rooms/lcd
	@cd $(VENV)/rooms && ../bin/python -m mypy --config-file ../../pyproject.toml --cache-dir ../.mypy_cache --package lcd

docs: $(STAMP)  ## build the docs as a site into build/site; no warnings, links checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet --clean $(ARGS)
	@echo 'build/site/index.html; to look at it: python -m http.server -d build/site, then http://localhost:8000'

bench: $(STAMP)  ## measure speed against peers, and print the figures; ONLY=delay runs one script, which takes ARGS
	@for script in tests/benchmarks/bench_$(or $(ONLY),*).py; do echo "== $$script"; $(BIN)/python $$script $(ARGS) || exit 1; done

soak: $(STAMP)  ## hours of kills, faults at every write, fuzzing, growth of memory (docs/trust.md); ONLY=kills runs one, which takes ARGS
	@failed=0; for script in $(if $(ONLY),tests/soak/$(ONLY).py,$(SOAKS)); do echo "== $$script"; $(BIN)/python $$script $(ARGS) || failed=1; done; exit $$failed

lock: $(STAMP)  ## lock the hashes of what constraints.txt lists, and write the bill of materials
	@$(BIN)/python lock/make.py $(ARGS)

clean:  ## remove .venv, build products and caches; studies stay
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml constraints.txt $(LOCK)
	@rm -f $@
	@if ! $(BIN)/python -c '$(SUITS)' 2> /dev/null; then \
	    for candidate in $(CANDIDATES); do \
	        if "$$candidate" -c '$(SUITS)' > /dev/null 2>&1; then found="$$candidate"; break; fi; \
	    done; \
	    if [ -z "$$found" ]; then \
	        echo 'LCD needs Python 3.11 or 3.12 with its venv module, and none of "$(strip $(CANDIDATES))" is one that runs: install it, or name it with make PYTHON=/path/to/python3.12.' >&2; \
	        exit 1; \
	    fi; \
	    "$$found" -m venv --clear $(VENV); \
	fi
	@echo 'Installing into $(VENV) with' "$$($(BIN)/python --version)" '(once; about two minutes)'
ifneq ($(LOCK),)
	@$(PIP) --no-deps --require-hashes -r lock/build.txt
	@# The lock holds all that is needed by what is needed. That Procgen and OCAtari need numpy < 2, and gym, is metadata only.
	@$(PIP) --no-deps --require-hashes --no-build-isolation -r $(LOCK)
	@$(PIP) --no-deps --no-build-isolation --editable .
else
	@echo 'Hashes are locked for Linux on x86_64, and Procgen has wheels for it alone: this is the same without either.'
	@$(PIP) -c constraints.txt setuptools wheel
	@$(PIP) -c constraints.txt --no-build-isolation --editable '.[all]'
endif
	@if [ -n "$$PYTHONDONTWRITEBYTECODE" ]; then $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true; fi
	@touch $@
