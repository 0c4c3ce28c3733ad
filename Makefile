# Two commands are enough on a fresh machine with Python 3.11 or newer: `make run` and `make test`.
# `make check` and `make test` are the loop of a change; `make test-all` needs Node.js, and installs much more.
# All environments are in .venv. A stamp in each makes pip run again only when a lock has changed.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
FRAMEWORKS := $(shell sed -n 's/^\([a-z0-9_]*\): .*/\1/p' locks/frameworks.lock)
OLDEST_ROBOTO := $(VENV)/roboto-oldest
AWS_CLI := $(VENV)/aws-cli
SMITHY := $(VENV)/smithy
SIZE := $(VENV)/size
TS := clients/typescript
PY := clients/python
WEB := clients/web
FRONT_ENDS := examples/copilotkit-direct examples/copilotkit-runtime examples/assistant-ui examples/nextjs
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
run: $(VENV)/.run ## Serve on port 8080; AGUI_* variables and PYTHONPATH are passed on
	@PYTHONPATH="$(CURDIR)/app:$(CURDIR)/$(PY)/src$${PYTHONPATH:+:$$PYTHONPATH}" exec $(BIN)/python -m agui_container serve

.PHONY: issuer
issuer: $(VENV)/.run ## Serve a token issuer on port 9000, to try AGUI_AUTH=jwt
	@exec $(BIN)/python examples/local_issuer.py

# Twice the cores of the smallest machine in use: half of the time a test waits for a process that it has started.
WORKERS ?= 4
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS)

.PHONY: test
test: $(VENV)/.test ## Run the short lane; ROOM=protocol is one folder of tests, ARGS="-k ping" goes to pytest, WORKERS=0 is one process
	@$(PYTEST) --lane short $(ROOM:%=tests/%) $(ARGS)

.PHONY: test-all
test-all: install types node-check ## Run the long lane: databases, Chromium, other languages, frameworks, wheels, guides, front ends; --jobs 2 prepares it faster
	@$(PYTEST) --lane long $(ROOM:%=tests/%) $(ARGS)

.PHONY: install
install: $(VENV)/.all $(FRAMEWORKS:%=$(VENV)/frameworks/%/.done) $(OLDEST_ROBOTO)/.done $(AWS_CLI)/.done $(SMITHY)/.done node machine ## Install what the long lane needs; --jobs 2 installs two parts at a time

.PHONY: types
types: $(VENV)/.all
	$(BIN)/mypy

.PHONY: node-check
node-check: node
	@! command -v npm >/dev/null || for part in $(TS) $(WEB) $(FRONT_ENDS); do (cd $$part && npm run --silent check) || exit; done

# The adapters of frameworks are left to the long lane, which has the frameworks.
.PHONY: check
check: $(VENV)/.test ## Check format, lint, types, and the direction of imports
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	PYTHONPATH=app:$(PY)/src $(BIN)/lint-imports --no-logo
	$(BIN)/mypy --exclude agents/frameworks/ app $(PY)/src

.PHONY: web
web: $(WEB)/node_modules/.done ## Build the chat page into app/agui_container/web/console/static
	@cd $(WEB) && npm run --silent build

.PHONY: pictures
pictures: $(VENV)/.all machine ## Take the pictures of the guides with Chromium
	@PYTHONPATH=app:$(PY)/src $(BIN)/python -m tests.web.console.pictures

.PHONY: format
format: $(VENV)/.test ## Format the code and fix what lint can fix
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	@test ! -e $(WEB)/node_modules/.done || npm --prefix $(TS) run --silent format

.PHONY: proto
proto: GEN := app/agui_container/protocols/gen
proto: $(VENV)/.all ## Compile the services of proto/
	out=$$(mktemp -d) && \
	$(BIN)/python -m grpc_tools.protoc -I proto --include_imports --descriptor_set_out=$(GEN)/services.binpb --pyi_out=$$out \
		$(patsubst proto/%,%,$(sort $(shell find proto -name '*.proto'))) && \
	find $$out -name '*.pyi' -exec mv {} $(GEN) \; && rm -r $$out

.PHONY: schema
schema: $(VENV)/.all ## Make the JSON Schema of agui.toml
	$(BIN)/python -m tests.docs.settings_schema

.PHONY: docs
docs: $(VENV)/.all ## Build the site of the documentation into build/site
	@PYTHONPATH=.:app:$(PY)/src $(BIN)/python -m zensical build --strict --config-file mkdocs.yml

.PHONY: lock
lock: $(VENV)/.all ## Make the locks from pyproject.toml and locks/*.in; ARGS=--upgrade takes newer versions
	@rm -rf build/own && $(PIP) wheel --no-deps --wheel-dir build/own ./$(PY)
	$(COMPILE) --output-file locks/requirements.lock
	$(COMPILE) locks/test.in --output-file locks/requirements-test.lock --constraint locks/requirements.lock
	$(COMPILE) locks/test.in locks/all.in --output-file locks/requirements-all.lock --constraint locks/requirements-test.lock \
		--extra langgraph --extra pydantic-ai
	@sed -i.old '/^agui-client==/d' locks/requirements*.lock && rm locks/*.old # it is this checkout's own

# The extras that the image has: all parts that a setting can choose.
IMAGE_EXTRAS := aws grpc jwt mcp metrics postgresql redis sqlite

COMPILE = CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile pyproject.toml $(IMAGE_EXTRAS:%=--extra %) $(ARGS) \
	--quiet --find-links build/own --no-emit-options --strip-extras --allow-unsafe --annotation-style line

.PHONY: bench
bench: $(VENV)/.test ## Measure this server beside others; ARGS=--quick takes two minutes to show that it works
	@$(BIN)/python -m bench $(ARGS)

.PHONY: image
image: ## Build the ARM64 image; IMAGE=name:tag, BASE_IMAGE=another base, PLATFORM=linux/amd64, AWS_SERVICES="s3"
	docker buildx build --platform $(PLATFORM) --build-arg PLATFORM=$(PLATFORM) -f Dockerfile.arm64 -t $(IMAGE) \
		$(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) \
		$(if $(AWS_SERVICES),--build-arg AWS_SERVICES="$(AWS_SERVICES)") --load .

.PHONY: audit
audit: $(VENV)/.all ## Ask the database of PyPI for known vulnerabilities of the packages in the image
	$(BIN)/pip-audit --strict --requirement locks/requirements.lock --no-deps --disable-pip --progress-spinner off $(ARGS)

.PHONY: size
size: | $(BIN)/python ## Install the packages of the image into a new folder, prepare them as the image does, and show their size
	@rm -rf $(SIZE) && $(BIN)/python -I -m venv --without-pip $(SIZE) && mkdir -p $(SIZE)/agui
	@$(PIP) --python $(SIZE)/bin/python install --no-cache-dir --only-binary=:all: -r locks/requirements.lock
	@cp -r app/agui_container $(PY)/src/agui_core $(SIZE)/agui && $(BIN)/python -m compileall -q $(SIZE)/agui
	@$(BIN)/python deploy/image/prepare.py "$$($(SIZE)/bin/python -c '$(PURELIB)')" locks/requirements.lock $(SIZE)/agui

.PHONY: newest
newest: $(VENV)/.test ## Run the core of the tests with the newest versions that the registry serves; ARGS="tests/protocols/grpc"
	$(call with-versions,$(SERVING))

.PHONY: oldest
oldest: LEFT_OUT := --ignore tests/behaviour/test_mcp_questions.py # the package mcp asks for pydantic 2.12
oldest: $(VENV)/.test ## Run the core of the tests with the lowest versions that pyproject.toml allows
	$(call with-versions,$$($(BIN)/python -c '$(LOWEST)'))

# Packages that carry requests, in any version. Everything else is found in the environment of the tests.
SERVING := ag-ui-protocol anyio fastapi grpclib httptools pydantic starlette uvicorn uvloop websockets
LOWEST := import re, tomllib; wanted = tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]; \
	print(*(re.sub(">=([0-9.]+).*", r"==\1", each) for each in wanted if "agui-client" not in each))
CORE := tests/behaviour tests/protocols/grpc/test_connections.py tests/server/test_protocol_classes.py

define with-versions
@rm -rf $(VENV)/$@ && $(BIN)/python -I -m venv --without-pip $(VENV)/$@
@$(PIP) --python $(VENV)/$@/bin/python install --no-compile $(1)
@$(PIP) --python $(VENV)/$@/bin/python list --path "$$($(VENV)/$@/bin/python -c '$(PURELIB)')"
@$(BIN)/python -c '$(PURELIB)' >"$$($(VENV)/$@/bin/python -c '$(PURELIB)')/tests.pth"
@$(VENV)/$@/bin/python -m pytest --lane short $(LEFT_OUT) $(or $(ARGS),$(CORE))
endef

.PHONY: clean
clean: ## Remove everything that the other targets made
	rm -rf $(VENV) $(NODE:=/node_modules) $(TS)/dist $(TS)/build
	rm -rf examples/node_modules $(FRONT_ENDS:=/dist) examples/nextjs/next-env.d.ts examples/nextjs/*.tsbuildinfo
	rm -rf build/pages build/site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find app $(PY) tests examples bench -name __pycache__ -prune -exec rm -rf {} +

# --- Python environments -----------------------------------------------------------------------------------------------

$(BIN)/python:
	@$(or $(PYTHON),false) -c '$(MINIMUM)' || \
		{ echo "Python 3.11 or newer is needed; name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -I -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.run: locks/requirements.lock | $(BIN)/python
	@echo "Installing locks/requirements.lock into $(VENV)"
	@$(PIP) install -r locks/requirements.lock
	@touch $@

$(VENV)/.test: locks/requirements-test.lock | $(BIN)/python
	@echo "Installing $< into $(VENV)"
	@$(PIP) install --no-compile -r $<
	@touch $@ $(VENV)/.run

$(VENV)/.all: locks/requirements-all.lock | $(BIN)/python
	@echo "Installing $< into $(VENV)"
	@$(PIP) install --no-compile -r $<
	@touch $@ $(VENV)/.test $(VENV)/.run

PURELIB := import sysconfig; print(sysconfig.get_path("purelib"))

# Packages that cannot share $(VENV), each in an environment that finds everything else there: frameworks, Roboto's
# oldest release, which is the one whose documentation the server follows, and the AWS CLI, which wants older versions.
OLDEST_ROBOTO_PACKAGES := roboto==0.44.2 mcap-ros1-support==0.9.0 mcap-ros2-support==0.6.0
AWS_CLI_PACKAGES := awscli==1.46.3 colorama==0.4.6 docutils==0.19 pyasn1==0.6.5 rsa==4.7.2

# AWS's generated client needs Python 3.12. Where there is none, its test is skipped.
SMITHY_PACKAGES := aws-sdk-bedrock-agentcore==0.12.0 aws-sdk-signers==0.4.0 smithy-aws-core==0.12.0 smithy-core==0.9.0 \
	smithy-aws-event-stream==0.3.0 smithy-http==0.6.0 smithy-json==0.3.0 aiohttp==3.14.5 aiohappyeyeballs==2.7.1 \
	aiosignal==1.4.0 attrs==26.1.0 frozenlist==1.8.0 idna==3.20 ijson==3.6.0 multidict==7.2.1 propcache==0.5.4 \
	typing_extensions==4.16.0 yarl==1.25.1
PYTHON_312 = $(shell for python in python3.12 python3.13 python3.14; do $$python -c '' 2>/dev/null && echo $$python && break; done)

define overlay
@echo "Installing packages into $(@D)"
@$(BIN)/python -I -m venv --without-pip $(@D)
@$(PIP) --python $(@D)/bin/python install --no-compile --no-deps $(1)
@$(BIN)/python -c '$(PURELIB)' >"$$($(@D)/bin/python -c '$(PURELIB)')/shared.pth"
@touch $@
endef

$(VENV)/frameworks/%/.done: locks/frameworks.lock $(VENV)/.all
	$(call overlay,$(shell sed -n 's/^$*: //p' locks/frameworks.lock))

$(OLDEST_ROBOTO)/.done: $(VENV)/.all Makefile
	$(call overlay,$(OLDEST_ROBOTO_PACKAGES))

$(AWS_CLI)/.done: $(VENV)/.all Makefile
	$(call overlay,$(AWS_CLI_PACKAGES))

$(SMITHY)/.done: $(VENV)/.all Makefile
	@mkdir -p $(@D)
	@if test -n "$(PYTHON_312)"; then \
		echo "Installing packages into $(@D)"; \
		$(PYTHON_312) -I -m venv --without-pip $(@D); \
		$(PIP) --python $(@D)/bin/python install --no-compile --no-deps $(SMITHY_PACKAGES); \
	fi
	@touch $@

# --- Node.js: clients of the tests, the TypeScript client, the chat page, the front ends ------------------------------

NODE := $(patsubst %/package-lock.json,%,$(shell find tests clients -name node_modules -prune -o -name package-lock.json -print))

.PHONY: node
node: ## Install what runs on Node.js, and build the front ends of examples/
	@if command -v node >/dev/null && command -v npm >/dev/null; then \
		$(MAKE) --silent $(NODE:=/node_modules/.done) $(FRONT_ENDS:=/dist/.done); \
	else \
		echo "Node.js with npm is not installed, so tests with clients in JavaScript cannot run" >&2; \
		test "$(CI)" != true; \
	fi

.PHONY: front-ends
front-ends: $(FRONT_ENDS:=/dist/.done) ## Install and build the front ends of examples/

# Install scripts are off: nothing here needs one.
%/node_modules/.done: %/package.json %/package-lock.json
	@echo "Installing $*/package-lock.json into $*/node_modules"
	@cd $* && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
	@touch $@

# The package is built for the front ends. The stamp stands beside the others, because all of dist is packed.
$(TS)/node_modules/.built: $(TS)/node_modules/.done $(TS)/tsconfig.json $(TS)/tsconfig.build.json $(wildcard $(TS)/src/*.ts)
	@rm -rf $(TS)/dist && npm --prefix $(TS) run --silent build
	@touch $@

# npm copies the TypeScript client to the front ends, so a change of the client installs them again.
examples/node_modules/.done: $(TS)/node_modules/.built

.SECONDEXPANSION:
examples/%/dist/.done: examples/node_modules/.done $$(wildcard examples/$$*/*.ts examples/$$*/*.html) $$(shell find examples/$$*/src -type f)
	@echo "Building examples/$*"
	@cd examples/$* && DO_NOT_TRACK=1 NEXT_TELEMETRY_DISABLED=1 npm run --silent build
	@touch $@

# --- programs of the machine ------------------------------------------------------------------------------------------

# Debian's package of each program, with the programs that will do. PostgreSQL and Redis are wheels in
# locks/requirements-all.lock; Redis has one for x86 only.
PROGRAMS := chromium-headless-shell:chromium-headless-shell,chromium,chromium-browser default-jdk-headless:javac curl:curl pgbouncer:pgbouncer \
	nginx-light:nginx haproxy:haproxy caddy:caddy \
	$(if $(filter x86_64,$(shell uname -m)),,valkey-server:valkey-server,redis-server)

.PHONY: machine
machine: ## Install Chromium, a JDK, curl, PgBouncer and proxies for the long lane, where they are missing and root asks on Debian
	@missing=; for each in $(PROGRAMS); do \
		found=; for program in $$(echo "$${each#*:}" | tr , ' '); do command -v $$program >/dev/null && found=1; done; \
		test -n "$$found" || missing="$$missing $${each%%:*}"; done; \
	if test -z "$$missing"; then :; \
	elif command -v apt-get >/dev/null && test "$$(id -u)" = 0; then \
		echo "Installing$$missing"; \
		apt-get update --quiet=2 && DEBIAN_FRONTEND=noninteractive apt-get install --quiet=2 --yes $$missing >/dev/null; \
	else \
		echo "Not installed, so some tests cannot run:$$missing" >&2; \
		test "$(CI)" != true; \
	fi
