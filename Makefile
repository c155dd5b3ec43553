# Two commands: `make serve` opens the dashboard, `make test` runs the tests.
# Both first create .venv with the versions in constraints.txt. CONSTRAINTS=/dev/null takes the newest versions.

PORT ?= 5006
# Not ?=: some shells export HOST, and the dashboard must not appear on a network by accident.
HOST = 127.0.0.1

CONSTRAINTS := constraints.txt

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input
# pip compiles what it installs on one core. Some files are not of this Python's syntax, and nobody imports them.
COMPILE := $(PY) -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib || true
# A folder named bnnviz beside a script, such as the checkout itself, would hide the package: it is found by its path, too.
FIND := $(PY) -c 'import pathlib, sysconfig; \
	pathlib.Path(sysconfig.get_path("purelib"), "bnnviz-checkout.pth").write_text(str(pathlib.Path.cwd()) + "\n")'
INSTALLED := $(VENV)/.installed
TESTABLE := $(VENV)/.installed-test

# The environment is .venv and nothing around it, whatever the caller has activated.
unexport PYTHONHOME PYTHONPATH VIRTUAL_ENV PIP_TARGET PIP_PREFIX PIP_USER
# What Python has compiled is kept: else each process compiles all of bnnviz anew, and each run of the tests all tests.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
.PHONY: help install serve lint test test-nightly docs screenshots notebooks clean

help:
	@echo 'make serve         open the dashboard on $(HOST):$(PORT) (PORT=, HOST=)'
	@echo 'make test          lint, the quick tests and a walk through all pages in a browser: minutes'
	@echo 'make test-nightly  the slow tests: statistics, processes that are killed, all pages in a browser: hours'
	@echo 'make install       create the environment with the tools of CONTRIBUTING.md; then $(VENV)/bin/bnnviz works'
	@echo 'make docs          build the documentation in build/docs/html: three minutes'
	@echo 'make screenshots   take the pictures of the README anew'
	@echo 'make notebooks     execute the notebooks and keep their outputs (WHAT="02 05": some of them)'
	@echo 'make clean         remove the environment and everything generated'
	@echo 'PYTHON=            the Python to make the environment with (3.11 to 3.14)'

install: $(TESTABLE)
	@echo '$(VENV)/bin/bnnviz is ready.'

serve: $(INSTALLED)
	@exec $(VENV)/bin/bnnviz serve --address $(HOST) --port $(PORT)

lint: $(TESTABLE)
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(VENV)/bin/lint-imports

# What a browser shows is timed: these tests run one at a time. They are skipped where no browser is found.
test: lint
	$(PY) -m pytest -n 2 --ignore tests/browser -m 'not browser and not slow'
	@$(PY) tests/get_browser.py || true
	$(PY) -m pytest tests/browser/test_walk.py

# Set BNNVIZ_DATA to a folder of the published data sets to include the tests of these.
test-nightly: $(TESTABLE)
	$(PY) -m pytest -n 2 --ignore tests/browser -m '(slow or data) and not browser'
	@$(PY) tests/get_browser.py || true
	$(PY) -m pytest tests/browser -m slow

docs: $(TESTABLE)
	$(PY) -m docs.site.build

screenshots: $(TESTABLE)
	$(PY) tests/screenshots.py

notebooks: $(TESTABLE)
	$(PY) tests/execute_notebooks.py $(WHAT)

clean:
	rm -rf $(VENV) build dist *.egg-info tests/artifacts .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): $(PY) pyproject.toml setup.py constraints.txt
	@echo 'Installing bnnviz into $(VENV) (the first time takes minutes: PyTorch is large) ...'
	@$(PIP) install --quiet --no-compile -c $(CONSTRAINTS) 'setuptools>=77'
	@$(PIP) install --quiet --no-compile -c $(CONSTRAINTS) --no-build-isolation -e '.[all]'
	@$(FIND)
	@$(COMPILE)
	@touch $@

$(TESTABLE): $(PY) pyproject.toml setup.py constraints.txt
	@echo 'Installing bnnviz and its tests into $(VENV) (the first time takes minutes: PyTorch is large) ...'
	@$(PIP) install --quiet --no-compile -c $(CONSTRAINTS) 'setuptools>=77'
	@$(PIP) install --quiet --no-compile -c $(CONSTRAINTS) --no-build-isolation -e '.[all,test]'
	@$(FIND)
	@$(COMPILE)
	@touch $(INSTALLED) $@

# An environment holds the path that it was made at: one that was moved or copied is made anew.
ifneq ($(shell cat $(VENV)/.made-at 2>/dev/null),$(CURDIR))
.PHONY: $(PY)
endif

$(PY):
	@for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
	    if "$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then \
	        found=$$python; break; \
	    fi; \
	done; \
	if [ -z "$${found:-}" ]; then \
	    echo 'bnnviz needs Python 3.11 to 3.14 and found none as $(or $(PYTHON),python3); install one or name it: make PYTHON=/path/to/python3.12' >&2; \
	    exit 1; \
	fi; \
	if ! "$$found" -c 'import ensurepip, venv' 2>/dev/null; then \
	    package=$$("$$found" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	        echo "Installing $$package, which $$found needs to make an environment ..."; \
	        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y "$$package" >/dev/null; \
	    else \
	        echo "$$found cannot make an environment without its venv package; install it (sudo apt install $$package) and run make again." >&2; \
	        exit 1; \
	    fi; \
	fi; \
	"$$found" -m venv --clear $(VENV) && printf '%s\n' '$(CURDIR)' > $(VENV)/.made-at
