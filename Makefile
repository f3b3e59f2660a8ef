# Every target does its own set-up: a fresh machine needs Python 3.11 (or newer), make and git, nothing else.
# `make serve` installs what serving needs, without torch; `make test` adds the rest to the same .venv, once.

VENV ?= .venv
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := $(VENV)/bin
# $(call pip-install,ENVIRONMENT,ARGUMENTS). pip reports the cause of a conflict on standard output, so --quiet would hide it.
pip-install = $(1)/bin/python -m pip install --progress-bar off --disable-pip-version-check --no-input $(2) > $(1)/pip.log \
	|| { tail -n 12 $(1)/pip.log >&2; echo "Installation failed; $(1)/pip.log has the complete output of pip" >&2; exit 1; }
# Several builds share one version of torch. Without the pin on the installed build, pip answers any conflict by
# downloading the other builds and their gigabytes of CUDA before it reports the conflict.
TORCH_PIN := $(VENV)/torch.txt

define INSTALL_TORCH
	@echo "Installing torch (CPU build, about 200 MB; several GB if pip is offered the CUDA build alone)"
	@$(call pip-install,$(VENV),-c constraints.txt torch==2.13.0)
	@$(BIN)/python -c "from importlib.metadata import version; print('torch==' + version('torch'))" > $(TORCH_PIN)
endef

# One stamp for each set of packages; all are out of date as soon as a requirement changes.
SERVE_STAMP := $(VENV)/.installed-serve
DEV_STAMP := $(VENV)/.installed-dev
BENCH_STAMP := $(VENV)/.installed-bench
RESOLVED := $(VENV)-constraints
RELEASE := $(VENV)-release
# Installing compiles the native operators too, so their sources count among what an installation depends on.
REQUIREMENTS := pyproject.toml constraints.txt setup.py $(wildcard kernels/source/*)
KERNELS := kernels/libkvasir.so
# pip shows nothing of a build that went through, and one without operators does. Modules of an editable installation
# have no bytecode: where PYTHONDONTWRITEBYTECODE is set, every start would compile them.
define FINISH_INSTALLATION
	@test -f $(KERNELS) || echo "$(KERNELS) was not built, and int8 models run more slowly without it;" \
		"to see why: $(BIN)/python -m pip install -v -e ." >&2
	@$(BIN)/python -m compileall -q kvasir.py kvasir_commands.py bundle kernels library server
endef

# Tests start some hundred processes, and without files of bytecode each of them compiles every module again: a third of
# the time until a server listens.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv venv-dev serve check test format docs page-test clients bench bench-gate peers constraints release clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 14

$(BIN)/python:
	@test -n "$(PYTHON)" && $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer not found; set it with make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -f $@; exit 1; }

$(SERVE_STAMP): $(REQUIREMENTS) | $(BIN)/python
	@echo "Installing Kvasir for serving and compiling its native operators (about 200 MB)"
	@$(call pip-install,$(VENV),-c constraints.txt -e .)
	$(FINISH_INSTALLATION)
	@touch $@

# torch comes first and alone, so that pip takes a CPU build where one is offered next to the default one.
$(DEV_STAMP): $(REQUIREMENTS) | $(BIN)/python
	$(INSTALL_TORCH)
	@echo "Installing Kvasir for export, training, tests and load tests (about 400 MB)"
	@$(call pip-install,$(VENV),-c constraints.txt -c $(TORCH_PIN) -e '.[dev]')
	$(FINISH_INSTALLATION)
	@touch $(SERVE_STAMP) $@

$(BENCH_STAMP): $(REQUIREMENTS) | $(BIN)/python
	$(INSTALL_TORCH)
	@echo "Installing Kvasir for benchmarks"
	@$(call pip-install,$(VENV),-c constraints.txt -c $(TORCH_PIN) -e '.[bench]')
	$(FINISH_INSTALLATION)
	@touch $(SERVE_STAMP) $@

venv: $(SERVE_STAMP)  ## Set up .venv for serving (no torch)

venv-dev: $(DEV_STAMP)  ## Set up .venv for exporting, training, testing and load testing

serve: $(SERVE_STAMP)  ## Serve the default model; flags: make serve ARGS="--port 9000"
	$(BIN)/kvasir serve $(ARGS)

check: $(DEV_STAMP)  ## Format, lint, types, import contracts: every check but the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/hadolint Dockerfile
	$(BIN)/mypy
	$(BIN)/lint-imports

# After the quick checks: the closing line of pytest is the last one printed. A file of tests shares its models and
# servers, so it stays in one of the processes.
test: check  ## Every check and all tests: what CI runs
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile

format: $(DEV_STAMP)  ## Rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Without the variable, the theme prints a notice about its successor into every build.
docs: $(DEV_STAMP)  ## Write the reference pages again, and build the site and openapi.json in build/docs
	$(BIN)/python -m tests.docs.reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -m tests.docs.openapi_file build/docs/openapi.json

page-test: $(DEV_STAMP)  ## The page in a real Chromium (Debian: apt-get install chromium chromium-driver)
	$(BIN)/pytest tests/browser

clients: $(DEV_STAMP)  ## Other people's clients against this server; needs the network, node and npm
	$(BIN)/pytest tests/clients

bench: $(BENCH_STAMP)  ## Compare with other engines; flags: make bench ARGS="--limit 200 --repetitions 3"
	$(BIN)/python -m benchmarks.engines.compare $(ARGS)

bench-gate: $(DEV_STAMP)  ## Fail if starting takes longer than it may, compared with its imports
	$(BIN)/python -m benchmarks.offline.start --floors benchmarks/offline/floors.toml $(ARGS)

peers: $(BENCH_STAMP)  ## The same load on other servers; flags: make peers ARGS="--checkpoint FOLDER"
	$(BIN)/python -m benchmarks.servers $(ARGS)

# A separate environment, so that packages installed by hand stay out of the file. pip resolves for the Python that runs
# it; the check then compares the result with the oldest supported one.
constraints:  ## Resolve all versions again: constraints.txt, and deploy/requirements*.txt with the hashes of wheels
	@echo "Creating $(RESOLVED) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(RESOLVED)
	@echo "Installing torch (CPU build, about 200 MB; several GB if pip is offered the CUDA build alone)"
	@$(call pip-install,$(RESOLVED),torch==2.13.0)
	@echo "Resolving and installing everything else (about 500 MB)"
	@$(call pip-install,$(RESOLVED),'.[dev]' '.[bench]')
	@$(RESOLVED)/bin/python -m pip freeze > $(RESOLVED)/frozen.txt
	@{ head -n 2 constraints.txt; grep -v '^kvasir-server' $(RESOLVED)/frozen.txt | sed 's/+cpu$$//'; } > $(RESOLVED)/new.txt
	@mv $(RESOLVED)/new.txt constraints.txt
	$(RESOLVED)/bin/python -m pytest --quiet tests/architecture/test_constraints.py
	$(RESOLVED)/bin/python deploy/pin_hashes.py
	rm -rf $(RESOLVED)

PYTHONS ?= $(PYTHON)
# The wheel is built of the source distribution.
release: docs  ## Build wheel, sdist and checksums in dist/, and try the wheel: PYTHONS="python3.11 python3.13"
	rm -rf dist $(RELEASE)
	$(PYTHON) -m venv $(RELEASE)
	@$(call pip-install,$(RELEASE),build==1.6.1)
	$(RELEASE)/bin/python -m build --outdir dist > $(RELEASE)/build.log || { tail -n 20 $(RELEASE)/build.log >&2; exit 1; }
	cp build/docs/openapi.json dist/
	rm -rf $(RELEASE)
	$(BIN)/python deploy/release.py dist $(PYTHONS)

clean:  ## Remove the environment and everything that can be made again
	rm -rf $(VENV) $(RESOLVED) $(RELEASE) .clients build dist $(KERNELS) *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
