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
DOCS_STAMP := $(VENV)/.installed-docs
RESOLVED := $(VENV)-constraints
OUTSIDE := $(VENV)-wheel
RAY := $(VENV)-ray
# Installing compiles the native operators too, so their sources count among what an installation depends on.
REQUIREMENTS := pyproject.toml constraints.txt setup.py $(wildcard kernels/source/*)
KERNELS := kernels/libkvasir.so
# pip shows nothing of a build that went through, and one without operators does. Modules of an editable installation
# have no bytecode: where PYTHONDONTWRITEBYTECODE is set, every start would compile them.
define FINISH_INSTALLATION
	@test -f $(KERNELS) || echo "$(KERNELS) was not built, and int8 models run more slowly without it;" \
		"to see why: $(BIN)/python -m pip install -v -e ." >&2
	@$(BIN)/python -m compileall -q kvasir.py bundle kernels library server
endef

# Tests start some hundred processes, and without files of bytecode each of them compiles every module again: a third of
# the time until a server listens.
unexport PYTHONDONTWRITEBYTECODE

URL ?= http://127.0.0.1:8000
SMOKE_PORT ?= 8137
SMOKE_URL = http://127.0.0.1:$(SMOKE_PORT)

.DEFAULT_GOAL := help
.PHONY: help serve test check lint types contracts tests format docs reference loadtest loadtest-smoke peers clients page-test faults soak bench bench-families bench-gate venv venv-dev constraints \
	constraints-check wheel-smoke audit hashes ray-test mutate sanitize clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 20

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

# torch comes first and alone, so that a CPU build offered beside the default one is the one taken.
$(DEV_STAMP): $(REQUIREMENTS) | $(BIN)/python
	$(INSTALL_TORCH)
	@echo "Installing Kvasir for export, training, tests and load tests (about 400 MB)"
	@$(call pip-install,$(VENV),-c constraints.txt -c $(TORCH_PIN) -e '.[dev]')
	$(FINISH_INSTALLATION)
	@touch $(SERVE_STAMP) $(DOCS_STAMP) $@

$(BENCH_STAMP): $(REQUIREMENTS) | $(BIN)/python
	$(INSTALL_TORCH)
	@echo "Installing Kvasir for benchmarks"
	@$(call pip-install,$(VENV),-c constraints.txt -c $(TORCH_PIN) -e '.[bench]')
	$(FINISH_INSTALLATION)
	@touch $(SERVE_STAMP) $@

$(DOCS_STAMP): $(REQUIREMENTS) | $(BIN)/python
	@echo "Installing Kvasir and MkDocs"
	@$(call pip-install,$(VENV),-c constraints.txt -e '.[docs]')
	$(FINISH_INSTALLATION)
	@touch $(SERVE_STAMP) $@

venv: $(SERVE_STAMP)  ## Set up .venv for serving (no torch)

venv-dev: $(DEV_STAMP)  ## Set up .venv for exporting, testing and load testing

serve: $(SERVE_STAMP)  ## Serve the default model; flags: make serve ARGS="--port 9000"
	$(BIN)/kvasir serve $(ARGS)

test: check  ## Format, lint, types, import contracts and tests: what CI runs

check: lint types contracts tests  ## The same

lint: $(DEV_STAMP)  ## Formatting and lint rules, of the Dockerfiles too
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/hadolint Dockerfile

types: $(DEV_STAMP)  ## mypy --strict
	$(BIN)/mypy

contracts: $(DEV_STAMP)  ## Which folder may import which
	$(BIN)/lint-imports

# After the quick checks even under make -j: the closing line of pytest is the last one printed. A file of tests shares
# its models and servers, so it stays in one of the processes.
tests: lint types contracts  ## The tests alone
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile

format: $(DEV_STAMP)  ## Rewrite the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

reference: $(DEV_STAMP)  ## Write docs/options.md, openapi.json, and the tables of docs/settings.md, docs/metrics.md and docs/models.md again
	$(BIN)/python -m server.interface.option_table > docs/options.md
	$(BIN)/python -m tests.docs.metrics_page
	$(BIN)/python -m tests.docs.settings_page
	$(BIN)/python -m tests.docs.openapi_file
	$(BIN)/python -m tests.docs.models_page

# Without the variable, the theme prints a notice about its successor into every build.
docs: $(DOCS_STAMP)  ## Build the site of the documentation in build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

loadtest: $(DEV_STAMP)  ## Load the server at URL=; flags: make loadtest ARGS="--scenario steady"
	$(BIN)/kvasir loadtest --url $(URL) $(ARGS)

loadtest-smoke: $(DEV_STAMP)  ## Start a server and ask it for a little of everything, in a minute; SMOKE_PORT=8137
	@$(BIN)/kvasir serve --port $(SMOKE_PORT) --log-level warning & server=$$!; trap "kill $$server" EXIT; \
	until $(BIN)/python -c "from urllib.request import urlopen; urlopen('$(SMOKE_URL)/health/ready')" 2>/dev/null; \
	do kill -0 $$server && sleep 0.5 || exit 1; done; \
	$(BIN)/kvasir loadtest --url $(SMOKE_URL) --scenario smoke --server-pid $$server --max-error-ratio 0 \
		--guard-requests 100000 $(ARGS)

peers: $(BENCH_STAMP)  ## The same load on other servers; flags: make peers ARGS="--checkpoint FOLDER"
	$(BIN)/python -m benchmarks.servers $(ARGS)

clients: $(DEV_STAMP)  ## Other people's clients against this server; needs the network, node and npm
	$(BIN)/pytest tests/clients

page-test: $(DEV_STAMP)  ## The page in a real Chromium (Debian: apt-get install chromium chromium-driver)
	$(BIN)/pytest tests/browser

faults: $(DEV_STAMP)  ## Fifty hostile documents of every format, large requests and 5,000 random ones, in some forty minutes
	$(BIN)/pytest tests/faults/hostile_documents.py
	$(BIN)/python -m tests.faults.hostile_uploads
	$(BIN)/python -m tests.faults.loop_holds
	$(BIN)/python -m tests.faults.engine_storm
	$(BIN)/python -m tests.faults.drain_under_load
	$(BIN)/python -m tests.faults.greedy_client
	$(BIN)/python -m tests.faults.memory_returns
	$(BIN)/python -m tests.faults.fuzz_requests

MINUTES ?= 60
soak: $(DEV_STAMP)  ## Mixed load for MINUTES=60, with the slopes of memory, descriptors and latency
	$(BIN)/python -m tests.faults.soak --minutes $(MINUTES) $(ARGS)

bench: $(BENCH_STAMP)  ## Compare with other engines; flags: make bench ARGS="--limit 200 --repetitions 3"
	$(BIN)/python -m benchmarks.engines.compare $(ARGS)

bench-families: $(BENCH_STAMP)  ## Compare with CTranslate2 on random models of other families: ARGS="--family t5-base"
	$(BIN)/python -m benchmarks.engines.families $(ARGS)

bench-gate: $(BENCH_STAMP)  ## Fail if kvasir translate is slower than its floors: ARGS="--data LINES.txt --checkpoint FOLDER"
	$(BIN)/python -m benchmarks.offline --floors benchmarks/offline/floors.toml $(ARGS)

# A separate environment, so that packages installed by hand stay out of the file. pip resolves for the Python that runs
# it; the check then compares the result with the oldest supported one.
constraints:  ## Resolve all versions again, write constraints.txt and check it
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
	rm -rf $(RESOLVED)

hashes:  ## Write deploy/requirements*.txt again: the packages of the image, with the hashes of their wheels
	$(PYTHON) -m venv --clear $(RESOLVED)
	$(RESOLVED)/bin/python deploy/pin_hashes.py
	rm -rf $(RESOLVED)

# pip-audit ends with 0, too, if it has the data of no package.
audit:  ## Compare constraints.txt with the known vulnerabilities; needs the network
	$(PYTHON) -m venv --clear $(RESOLVED)
	@$(call pip-install,$(RESOLVED),pip-audit==2.10.1)
	$(RESOLVED)/bin/pip-audit --progress-spinner off --no-deps --disable-pip -r constraints.txt > $(RESOLVED)/audit.txt \
		|| { cat $(RESOLVED)/audit.txt; exit 1; }
	@! grep -q "could not be audited: fastapi" $(RESOLVED)/audit.txt || { echo "no data of vulnerabilities can be reached" >&2; exit 1; }
	rm -rf $(RESOLVED)

# Ray is installed beside the packages of the project, which are not installed again.
ray-test: $(DEV_STAMP)  ## Kvasir behind a local Ray of two replicas: throughput, kill -9, rolling update, scaling (five minutes)
	$(PYTHON) -m venv --clear $(RAY)
	@$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> $$($(RAY)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/project.pth
	@$(call pip-install,$(RAY),-c constraints.txt 'ray[serve]==2.60.0')
	PYTHONPATH=. $(RAY)/bin/python -m pytest -s -W default -p no:xdist tests/deploy/ray_cluster.py
	rm -rf $(RAY)

MUTATE := $(VENV)-mutate

mutate: $(DEV_STAMP)  ## Change FILES at random, SAMPLE=20 times each (SEED=1); print the changes that no test notices
	@test -n "$(FILES)" || { echo 'make mutate FILES="server/engine/scheduler.py ..." SAMPLE=20' >&2; exit 1; }
	$(PYTHON) -m venv $(MUTATE)
	@$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> $$($(MUTATE)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/project.pth
	@$(call pip-install,$(MUTATE),-c constraints.txt cosmic-ray==8.7.0)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(MUTATE)/bin/python -m tests.mutate --sample $(or $(SAMPLE),20) --seed $(or $(SEED),1) $(FILES)

sanitize: $(DEV_STAMP)  ## The native operators under ASAN and UBSAN with drawn shapes; needs clang-19 (or CLANG=)
	$(BIN)/python -m tests.kernels.sanitize

constraints-check: $(DEV_STAMP)  ## Check that constraints.txt resolves on every supported Python
	$(BIN)/pytest --quiet tests/architecture/test_constraints.py

# Removes build/ first, because setuptools packs whatever an earlier build left there.
# Translates with the installed wheel outside the checkout, on the command line and over HTTP.
define TRY_WHEEL
	cd / && echo "Good morning." | $(abspath $(OUTSIDE))/bin/kvasir translate | grep Guten
	@cd / && $(abspath $(OUTSIDE))/bin/kvasir serve --port $(SMOKE_PORT) --log-level warning & server=$$!; trap "kill $$server" EXIT; \
	until $(OUTSIDE)/bin/python -c "from urllib.request import urlopen; urlopen('$(SMOKE_URL)/health/ready')" 2>/dev/null; \
	do kill -0 $$server && sleep 0.5 || exit 1; done; \
	$(OUTSIDE)/bin/python -c "from urllib.request import urlopen; \
	print(urlopen('$(SMOKE_URL)/translate', b'q=Good+morning.&source=en&target=de').read().decode())" | grep Guten
endef

wheel-smoke:  ## Install the wheel into a clean environment, translate with it, and again with the newest versions allowed
	@rm -rf build
	@echo "Creating $(OUTSIDE) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv --clear $(OUTSIDE)
	@echo "Building and installing the wheel (about 200 MB)"
	@$(call pip-install,$(OUTSIDE),-c constraints.txt .)
	$(TRY_WHEEL)
	@echo "Installing the newest versions that the wheel allows"
	@$(call pip-install,$(OUTSIDE),--upgrade --upgrade-strategy eager .)
	$(TRY_WHEEL)
	rm -rf $(OUTSIDE) build

clean:  ## Remove the environment and everything that can be made again
	rm -rf $(VENV) $(RESOLVED) $(OUTSIDE) $(RAY) $(MUTATE) .clients build dist $(KERNELS) *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
