# Two commands are enough on a fresh machine with Python 3.11 or newer: `make run` and `make test`.
# Everything lives in .venv; a stamp in it makes pip run again only when a lock has changed.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
STRANDS := $(VENV)/strands
ROBOTO := $(VENV)/roboto
OLDEST_ROBOTO := $(VENV)/roboto-oldest
BENCH := $(VENV)/bench
SHIPPED := $(VENV)/shipped
JS := tests/js
IMAGE ?= agui-container

# The first Python on the PATH that is new enough.
MINIMUM := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c '$(MINIMUM)' 2>/dev/null && echo $$python && break; done)

# -I: a PYTHONPATH meant for the agent must not change what pip finds installed.
PIP := $(BIN)/python -I -m pip --disable-pip-version-check --quiet

# Whoever runs Python without bytecode would have every process that a test starts compile the application again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: $(VENV)/.run ## Serve on port 8080; AGUI_* variables and PYTHONPATH are passed on
	@exec $(BIN)/python -m app serve

.PHONY: test
test: $(VENV)/.dev $(STRANDS)/.done $(ROBOTO)/.done $(OLDEST_ROBOTO)/.done js ## Run every test; ARGS="-k ping" goes to pytest, WORKERS=0 is one process
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) $(ARGS)

# One more than there are cores on the smallest machine in use: many tests wait for a process that they have started.
WORKERS ?= 3

.PHONY: check
check: $(VENV)/.dev ## Check format, lint, types and the direction of imports
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

.PHONY: format
format: $(VENV)/.dev ## Format the code and fix what lint can fix
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

.PHONY: proto
proto: $(VENV)/.dev ## Compile the schema of the binary encoding
	$(BIN)/python -m grpc_tools.protoc -I app/core/proto --descriptor_set_out=app/core/proto/agui.binpb agui.proto

.PHONY: lock
lock: $(VENV)/.dev ## Make the locks from pyproject.toml; ARGS=--upgrade takes newer versions
	$(COMPILE) --output-file requirements.lock
	$(COMPILE) tests/servers.in --output-file requirements-dev.lock --constraint requirements.lock \
		--extra dev --extra langgraph --extra pydantic-ai
	$(COMPILE) --output-file requirements-strands.lock --extra strands
	$(COMPILE_ONLY) tests/roboto/newest.in --output-file requirements-roboto.lock
	$(COMPILE_ONLY) tests/roboto/oldest.in --output-file requirements-roboto-oldest.lock
	grep -E '^($(SERVED))==' requirements.lock >$(VENV)/served.txt
	$(COMPILE_ONLY) bench/peers.in --output-file requirements-bench.lock --constraint $(VENV)/served.txt

COMPILE = $(COMPILE_ONLY) pyproject.toml
COMPILE_ONLY = CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile $(ARGS) --quiet \
	--no-emit-options --strip-extras --allow-unsafe --annotation-style line

# What serves the peers as well as us: in one version, or the versions would be compared.
SERVED := ag-ui-protocol|anyio|fastapi|httptools|pydantic|pydantic-core|starlette|uvicorn|uvloop|websockets

.PHONY: bench
bench: $(VENV)/.dev $(BENCH)/.done $(SHIPPED)/.done ## Measure us and our peers; ARGS=--quick takes two minutes to show that it works
	@$(BIN)/python -m bench $(ARGS)

.PHONY: image
image: ## Build the ARM64 image; IMAGE=name:tag, BASE_IMAGE=another base
	docker buildx build --platform linux/arm64 -f Dockerfile.arm64 -t $(IMAGE) \
		$(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) --load .

.PHONY: clean
clean: ## Remove everything that the other targets made
	rm -rf $(VENV) $(JS)/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find app tests examples bench -name __pycache__ -prune -exec rm -rf {} +

# --- environments: the development lock holds the runtime lock, so one .venv serves both -------------------------------

$(BIN)/python:
	@$(or $(PYTHON),false) -c '$(MINIMUM)' || \
		{ echo "Python 3.11 or newer is needed; name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -I -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.run: requirements.lock | $(BIN)/python
	@echo "Installing requirements.lock into $(VENV)"
	@$(PIP) install -r requirements.lock
	@touch $@

$(VENV)/.dev: requirements-dev.lock | $(BIN)/python
	@echo "Installing requirements-dev.lock into $(VENV)"
	@$(PIP) install -r requirements-dev.lock
	@touch $@ $(VENV)/.run

# An environment of its own, from one lock.
define environment
@echo "Installing $< into $(@D)"
@$(BIN)/python -I -m venv $(@D)
@$(@D)/bin/python -I -m pip --disable-pip-version-check --quiet install -r $<
@touch $@
endef

# Strands wants an older mcp than is shipped, so its tests serve it from here.
$(STRANDS)/.done: requirements-strands.lock | $(BIN)/python
	$(environment)

# Roboto's own package, which judges the server: it wants other versions than we ship, and each release an environment.
$(ROBOTO)/.done: requirements-roboto.lock | $(BIN)/python
	$(environment)

$(OLDEST_ROBOTO)/.done: requirements-roboto-oldest.lock | $(BIN)/python
	$(environment)

# The peers that bench/ measures: what they need is not what we ship.
$(BENCH)/.done: requirements-bench.lock | $(BIN)/python
	$(environment)

# What bench/ measures of ours: what the image has, and none of what tests need.
$(SHIPPED)/.done: requirements.lock | $(BIN)/python
	$(environment)

# --- the official AG-UI client, which judges the server in the tests --------------------------------------------------

.PHONY: js
js: ## Install the official AG-UI client for the tests
	@if command -v node >/dev/null && command -v npm >/dev/null; then \
		$(MAKE) --silent $(JS)/node_modules/.done; \
	else \
		echo "Node.js with npm is not installed: the tests with the official AG-UI client cannot run" >&2; \
		test "$(CI)" != true; \
	fi

$(JS)/node_modules/.done: $(JS)/package.json $(JS)/package-lock.json
	@echo "Installing the official AG-UI client into $(JS)/node_modules"
	@cd $(JS) && npm ci --no-audit --no-fund --loglevel=error
	@touch $@
