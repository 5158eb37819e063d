# Every target sets up what it needs by itself: `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready

.PHONY: help demo test coverage lint frontend bench docs notebooks dist fuzz mutants lowest newest clean

help:
	@echo "make demo   diagnose a sample trace and say where the results are"
	@echo "make test   run the tests"
	@echo "make coverage  run the tests and write htmlcov/: which lines and branches no test reaches"
	@echo "make lint   format, style, types, one-way imports"
	@echo "make frontend  check, test and bundle the pages' sources of frontend/ (needs node and npm)"
	@echo "make bench  measure every claim of benchmarks/README.md"
	@echo "make docs   regenerate the reference pages and schemas, build the site"
	@echo "make notebooks  run the notebooks again and keep their output"
	@echo "make dist   build the wheel and the source archive, and check them"
	@echo "make sbom   list what an installation holds (CycloneDX) in dist/"
	@echo "make lock   keep the versions of the development packages in packaging/dev-lock.txt"
	@echo "make fuzz   damage samples of every format for SECONDS (600) and watch the readers"
	@echo "make mutants  change readers, rules and stores for SECONDS (600); do tests notice?"
	@echo "make lowest  install the lowest declared versions and ask a few questions"
	@echo "make newest  the same with the newest versions"
	@echo "make clean  remove .venv, demo, dist and site"

# What Debian keeps apart is brought by apt where it is missing and we may: $(call bring,PACKAGE).
bring = { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1) >/dev/null || true; }

# The demo needs ioprism alone; all that checks and builds needs three times as much beside it.
$(INSTALLED): pyproject.toml
	@$(PYTHON) -c "import ensurepip" 2>/dev/null || $(call bring,python3-venv)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	@touch $(INSTALLED)

# LOCKED=1 takes the versions of packaging/dev-lock.txt, with which Python 3.11 passed the tests.
$(READY): $(INSTALLED)
	$(BIN)/python -m pip install --quiet $(if $(LOCKED),-c packaging/dev-lock.txt) --editable ".[dev]"
	@touch $(READY)

demo: $(INSTALLED)
	$(BIN)/ioprism demo --output demo

test: $(READY)
	@command -v chromium >/dev/null || $(call bring,chromium)  # pages are tested in a real browser
	$(BIN)/python -m pytest -n 4 --dist worksteal -rs --durations=25

# Commands that run as processes of their own are not counted: they end without clean-up.
coverage: $(READY)
	$(BIN)/python -m pytest -n 4 --dist worksteal -q --cov --cov-report=html --cov-report=term:skip-covered

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The bundles are committed: installing ioprism needs no node. CI builds them again and compares.
frontend:
	cd frontend && npm ci --no-audit --no-fund && npm run check && npm test && npm run build

bench: $(READY)
	$(BIN)/python -m benchmarks

SECONDS ?= 600
FIRST ?= 0

fuzz: $(READY)
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --first $(FIRST)

mutants: $(READY)
	$(BIN)/python -m tests.mutants --seconds $(SECONDS)

lowest newest:
	.ci/smoke $@ $(PYTHON)

docs: $(READY)
	$(BIN)/python -m docs.generate
	@$(BIN)/python -c "import material" 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

notebooks: $(READY)
	$(BIN)/python -m docs.notebooks

dist: $(READY)
	$(BIN)/python -m pip install --quiet build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

# What an installation of ioprism holds, for those who must list it (CycloneDX).
sbom: $(INSTALLED)
	$(BIN)/python -m pip install --quiet cyclonedx-bom
	$(PYTHON) -m venv dist/.sbom
	dist/.sbom/bin/python -m pip install --quiet .
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml \
	  --output-file dist/ioprism.cdx.json dist/.sbom/bin/python
	rm -rf dist/.sbom

lock: $(READY)
	$(BIN)/python -m pip freeze --exclude-editable > packaging/dev-lock.txt

clean:
	rm -rf $(VENV) demo dist site
