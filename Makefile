# Two commands are enough on a fresh machine with Python 3.11 or newer: `make run` and `make test`.
# All environments are in .venv. A stamp in each makes pip run again only when a lock has changed.

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
SITE := $(VENV)/site
INFRASTRUCTURE := $(VENV)/infrastructure
NEWEST := $(VENV)/newest
SIZE := $(VENV)/size
JS := tests/js
TS := clients/typescript
PY := clients/python
WEB := clients/web
GRPC := tests/grpc/clients
FRONT_ENDS := examples/copilotkit-direct examples/copilotkit-runtime examples/assistant-ui
IMAGE ?= agui-container
PLATFORM ?= linux/arm64

# The first Python on the PATH that is new enough.
MINIMUM := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c '$(MINIMUM)' 2>/dev/null && echo $$python && break; done)

# -I: a PYTHONPATH meant for the agent must not change what pip finds installed.
PIP := $(BIN)/python -I -m pip --disable-pip-version-check --quiet

# Without bytecode every process that a test starts would compile the application again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: $(VENV)/.run $(VENV)/.package ## Serve on port 8080; AGUI_* variables and PYTHONPATH are passed on
	@exec $(BIN)/agui serve

.PHONY: issuer
issuer: $(VENV)/.run ## Serve a token issuer on port 9000, to try AGUI_AUTH=jwt
	@exec $(BIN)/python examples/local_issuer.py

.PHONY: install
install: $(VENV)/.dev $(STRANDS)/.done $(BENCH)/.done $(ROBOTO)/.done $(OLDEST_ROBOTO)/.done $(SITE)/.done js web-tools browser ## Install what the tests need; --jobs 2 installs two parts at a time

.PHONY: test
test: install ## Run the tests of this project; ARGS="-k ping" goes to pytest, WORKERS=0 is one process
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --ignore tests/front_ends --ignore tests/infrastructure $(ARGS)

.PHONY: test-front-ends
test-front-ends: $(VENV)/.dev front-ends browser ## Install, check, build and test the front ends of examples/ (1.5 GB)
	@for app in $(FRONT_ENDS); do test ! -e $$app/node_modules/.done || npm --prefix $$app run --silent check || exit; done
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) tests/front_ends $(ARGS)

.PHONY: test-infrastructure
test-infrastructure: $(VENV)/.dev $(INFRASTRUCTURE)/.done ## Check infrastructure code with cfn-lint, CDK and the schemas of Kubernetes (460 MB)
	@$(BIN)/python -m pytest tests/infrastructure $(ARGS)

# One more than there are cores on the smallest machine in use: many tests wait for a process that they have started.
WORKERS ?= 3

.PHONY: check
check: $(VENV)/.dev js web-tools ## Check format, lint, types, the direction of imports, and that the chat page is built
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	PYTHONPATH=app:$(PY)/src $(BIN)/lint-imports --no-logo
	@test ! -d $(TS)/node_modules || npm --prefix $(TS) run --silent check
	@if test -e $(WEB)/node_modules/.done; then cd $(WEB) && npm run --silent check; fi

.PHONY: web
web: web-tools ## Build the chat page into app/agui_container/transports/console/static
	@cd $(WEB) && npm run --silent build

.PHONY: pictures
pictures: $(VENV)/.dev browser ## Take the pictures of the guides with Chromium
	@PYTHONPATH=app:$(PY)/src $(BIN)/python -m tests.console.pictures

.PHONY: format
format: $(VENV)/.dev ## Format the code and fix what lint can fix
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	@test ! -e $(WEB)/node_modules/.done || npm --prefix $(TS) run --silent format

.PHONY: proto
proto: $(VENV)/.dev ## Compile the schema of the binary encoding, and the services of proto/
	$(BIN)/python -m grpc_tools.protoc -I app/agui_container/protocol/wire/protobuf --descriptor_set_out=app/agui_container/protocol/wire/protobuf/agui.binpb agui.proto
	$(BIN)/python -m grpc_tools.protoc -I proto --python_out=app/agui_container/transports/gen --pyi_out=app/agui_container/transports/gen \
		$(patsubst proto/%,%,$(shell find proto -name '*.proto'))

.PHONY: schema
schema: $(VENV)/.dev ## Make the JSON Schema of agui.toml
	$(BIN)/python -m tests.docs.settings_schema

.PHONY: docs
docs: $(VENV)/.dev $(SITE)/.done ## Build the site of the documentation into build/site
	@PYTHONPATH=app:$(PY)/src $(BIN)/python -m website build/pages
	@$(SITE)/bin/zensical build --strict --config-file mkdocs.yml

.PHONY: lock
lock: $(VENV)/.dev ## Make the locks from pyproject.toml; ARGS=--upgrade takes newer versions
	$(COMPILE) --output-file requirements.lock $(IMAGE_EXTRAS:%=--extra %)
	$(COMPILE) tests/servers.in --output-file requirements-dev.lock --constraint requirements.lock \
		$(IMAGE_EXTRAS:%=--extra %) --extra dev --extra langgraph --extra pydantic-ai
	$(COMPILE) --output-file requirements-strands.lock $(IMAGE_EXTRAS:%=--extra %) --extra strands
	$(COMPILE_ONLY) tests/roboto/newest.in --output-file requirements-roboto.lock
	$(COMPILE_ONLY) tests/roboto/oldest.in --output-file requirements-roboto-oldest.lock
	$(COMPILE_ONLY) website/site.in --output-file requirements-site.lock
	$(COMPILE_ONLY) tests/infrastructure/tools.in --output-file requirements-infrastructure.lock
	grep -E '^($(SERVED))==' requirements.lock >$(VENV)/served.txt
	$(COMPILE_ONLY) bench/peers.in --output-file requirements-bench.lock --constraint $(VENV)/served.txt

# The extras that the image has: all parts that a setting can choose.
IMAGE_EXTRAS := aws grpc jwt mcp metrics postgresql redis sqlite

COMPILE = $(COMPILE_ONLY) pyproject.toml
COMPILE_ONLY = CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile $(ARGS) --quiet \
	--no-emit-options --strip-extras --allow-unsafe --annotation-style line

# Packages that serve the peers and this server, in one version, so that the versions are not compared.
SERVED := ag-ui-protocol|anyio|fastapi|httptools|pydantic|pydantic-core|starlette|uvicorn|uvloop|websockets

.PHONY: bench
bench: $(VENV)/.dev $(BENCH)/.done $(SHIPPED)/.done ## Measure this server and its peers; ARGS=--quick takes two minutes to show that it works
	@PYTHONPATH=app $(BIN)/python -m bench $(ARGS)

.PHONY: scale
scale: $(VENV)/.dev ## Measure what open streams and runs cost; STORE=postgresql://… BUS=redis://… of this machine
	@PYTHONPATH=app $(BIN)/python -m bench.scale $(STORE) $(BUS) $(ARGS)

.PHONY: peers
peers: $(VENV)/.dev $(BENCH)/.done ## Check this server and its peers with `agui platform check`, and write the table of docs/platform.md
	@PYTHONPATH=app:$(PY)/src $(BIN)/python -m bench.peer_rules

.PHONY: fuzz
fuzz: $(VENV)/.dev ## Read a million random bodies with the server's parsers; ARGS="--first SEED --bodies 1" repeats one
	@PYTHONPATH=app:$(PY)/src $(BIN)/python -m tests.fuzz $(ARGS)

.PHONY: image
image: ## Build the ARM64 image; IMAGE=name:tag, BASE_IMAGE=another base, PLATFORM=linux/amd64, AWS_SERVICES="s3"
	docker buildx build --platform $(PLATFORM) --build-arg PLATFORM=$(PLATFORM) -f Dockerfile.arm64 -t $(IMAGE) \
		$(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) \
		$(if $(AWS_SERVICES),--build-arg AWS_SERVICES="$(AWS_SERVICES)") --load .

.PHONY: audit
audit: $(VENV)/.dev ## Ask the database of PyPI for known vulnerabilities of the packages in the image
	$(BIN)/pip-audit --strict --requirement requirements.lock --no-deps --disable-pip --progress-spinner off $(ARGS)

.PHONY: size
size: | $(BIN)/python ## Install the packages of the image into a new folder, prepare them as the image does, and show their size
	@rm -rf $(SIZE) && $(BIN)/python -I -m venv --without-pip $(SIZE) && mkdir -p $(SIZE)/agui
	@$(PIP) --python $(SIZE)/bin/python install --no-cache-dir --only-binary=:all: -r requirements.lock
	@cp -r app/agui_container $(SIZE)/agui && $(BIN)/python -m compileall -q $(SIZE)/agui
	@$(BIN)/python deploy/image/prepare.py "$$($(SIZE)/bin/python -c '$(PURELIB)')" requirements.lock $(SIZE)/agui

.PHONY: newest
newest: $(VENV)/.dev ## Run the core of the tests with the newest versions that the registry serves; ARGS="tests/grpc"
	@rm -rf $(NEWEST) && $(BIN)/python -I -m venv --without-pip $(NEWEST)
	@$(PIP) --python $(NEWEST)/bin/python install --no-compile $(SERVING)
	@$(PIP) --python $(NEWEST)/bin/python list --path "$$($(NEWEST)/bin/python -c '$(PURELIB)')"
	@$(BIN)/python -c '$(PURELIB)' >"$$($(NEWEST)/bin/python -c '$(PURELIB)')/tests.pth"
	@$(NEWEST)/bin/python -m pytest $(or $(ARGS),$(CORE))

# Packages that carry requests, in any version. Everything else is found in the environment of the tests.
SERVING := ag-ui-protocol anyio fastapi grpclib httptools pydantic starlette uvicorn uvloop websockets
CORE := tests/behaviour tests/grpc/test_connections.py tests/server/test_protocol_classes.py

.PHONY: clean
clean: ## Remove everything that the other targets made
	rm -rf $(VENV) $(JS)/node_modules $(GRPC)/node_modules $(TS)/node_modules $(TS)/dist $(TS)/build $(WEB)/node_modules
	rm -rf $(FRONT_ENDS:=/node_modules) $(FRONT_ENDS:=/dist)
	rm -rf build/pages build/site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find app $(PY) tests examples bench -name __pycache__ -prune -exec rm -rf {} +

# --- Python environments -----------------------------------------------------------------------------------------------

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
	@$(PIP) install --no-compile -r requirements-dev.lock
	@touch $@ $(VENV)/.run

# Editable installation of this checkout, with the command `agui`, and of the Python client. Only `make run` needs it:
# tests and bench run the modules of the checkout, and tests/packaging installs the wheel with each of its extras.
$(VENV)/.package: pyproject.toml $(PY)/pyproject.toml | $(BIN)/python
	@$(PIP) install --no-deps --editable . --editable $(PY)
	@touch $@

# A separate environment from one lock. The pip of .venv installs into it, after the lock of .venv has replaced this pip.
# Python compiles only what is imported.
define environment
@echo "Installing $< into $(@D)"
@$(BIN)/python -I -m venv --without-pip $(@D)
@$(PIP) --python $(@D)/bin/python install --no-compile -r $<
@touch $@
endef

PURELIB := import sysconfig; print(sysconfig.get_path("purelib"))

# Strands needs an older mcp than the image has, so its tests use a separate environment.
$(STRANDS)/.done: requirements-strands.lock | $(VENV)/.dev
	$(environment)

# Roboto's client package, which tests the server. It needs other versions than the image has, one environment a release.
$(ROBOTO)/.done: requirements-roboto.lock | $(VENV)/.dev
	$(environment)

# The oldest release finds in the environment of the newest one what both locks have.
$(OLDEST_ROBOTO)/.done: requirements-roboto-oldest.lock $(ROBOTO)/.done
	@$(BIN)/python -I -m venv --without-pip $(@D)
	@$(ROBOTO)/bin/python -c '$(PURELIB)' >"$$($(@D)/bin/python -c '$(PURELIB)')/newest.pth"
	$(environment)

# The peers that bench/ measures need other packages than the image has.
$(BENCH)/.done: requirements-bench.lock | $(VENV)/.dev
	$(environment)

# What builds the site needs no package of the server, and the server none of it.
$(SITE)/.done: requirements-site.lock | $(VENV)/.dev
	$(environment)

# The tools that check infrastructure code are large, and need other packages than the image has.
$(INFRASTRUCTURE)/.done: requirements-infrastructure.lock | $(VENV)/.dev
	$(environment)

# The server that bench/ measures has the packages of the image, without those of the tests.
$(SHIPPED)/.done: requirements.lock | $(VENV)/.dev
	$(environment)

# --- Node.js: test clients and the TypeScript client --------------------------------------------------------------------

.PHONY: js
js: ## Install the official AG-UI client, gRPC clients, and what the TypeScript client needs
	@if command -v node >/dev/null && command -v npm >/dev/null; then \
		$(MAKE) --silent $(JS)/node_modules/.done $(GRPC)/node_modules/.done $(TS)/node_modules/.done; \
	else \
		echo "Node.js with npm is not installed: the tests with clients in JavaScript cannot run" >&2; \
		test "$(CI)" != true; \
	fi

%/node_modules/.done: %/package.json %/package-lock.json
	@echo "Installing $*/package-lock.json into $*/node_modules"
	@cd $* && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

# Install scripts are off. They are not needed, because buf's binary is a package.
$(GRPC)/node_modules/.done: $(GRPC)/package.json $(GRPC)/package-lock.json
	@echo "Installing $(GRPC)/package-lock.json into $(@D)"
	@cd $(GRPC) && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
	@touch $@

# --- chat page and browser --------------------------------------------------------------------------------------------

.PHONY: web-tools
web-tools: ## Install what builds and checks the chat page
	@if command -v node >/dev/null && command -v npm >/dev/null; then \
		$(MAKE) --silent $(WEB)/node_modules/.done; \
	else \
		echo "Node.js with npm is not installed: the chat page cannot be built or checked" >&2; \
		test "$(CI)" != true; \
	fi

$(WEB)/node_modules/.done: $(WEB)/package.json $(WEB)/package-lock.json
	@echo "Installing what builds the chat page into $(WEB)/node_modules"
	@cd $(WEB) && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
	@touch $@

.PHONY: browser
browser: ## Install Chromium for the tests, where it is missing and root asks on Debian
	@if command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null \
		|| command -v chromium-browser >/dev/null; then :; \
	elif command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
		echo "Installing Chromium"; \
		apt-get update --quiet=2 && DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes chromium-headless-shell >/dev/null; \
	else \
		echo "Chromium is not installed: the tests of the chat page cannot run" >&2; \
		test "$(CI)" != true; \
	fi

# --- front ends of examples/ ------------------------------------------------------------------------------------------

.PHONY: front-ends
front-ends: ## Install and build the front ends of examples/
	@if command -v node >/dev/null && command -v npm >/dev/null; then \
		$(MAKE) --silent $(FRONT_ENDS:=/dist/.done); \
	else \
		echo "Node.js with npm is not installed: the front ends of examples/ cannot be built" >&2; \
		test "$(CI)" != true; \
	fi

# The package is built for the front ends. The stamp stands beside the others, because all of dist is packed.
$(TS)/node_modules/.built: $(TS)/node_modules/.done $(TS)/tsconfig.json $(TS)/tsconfig.build.json $(wildcard $(TS)/src/*.ts)
	@rm -rf $(TS)/dist && npm --prefix $(TS) run --silent build
	@touch $@

# npm copies the TypeScript client into each of them, so a change of the client installs them again.
examples/%/node_modules/.done: examples/%/package.json examples/%/package-lock.json $(TS)/node_modules/.built
	@echo "Installing examples/$*/package-lock.json into examples/$*/node_modules"
	@cd examples/$* && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
	@touch $@

.SECONDARY: $(FRONT_ENDS:=/node_modules/.done)
.SECONDEXPANSION:
examples/%/dist/.done: examples/%/node_modules/.done $$(wildcard examples/$$*/*.ts examples/$$*/*.html examples/$$*/src/*)
	@echo "Building examples/$*"
	@cd examples/$* && DO_NOT_TRACK=1 npm run --silent build -- --logLevel error
	@touch $@
