# make test and make paper set everything up by themselves; see 'make help'.

VENV := .venv
EXTRAS := sim,rigor,cluster,parquet,dev,docs
PYTHON :=
WORKERS := 2

RUN := $(VENV)/bin/python -m

# The name of the stamp says what was installed and where: change the pins, the extras or move the
# folder, and the next call installs again. It is touched last, so an interrupted install leaves
# none.
KEY := $(shell { cat pyproject.toml constraints.txt .ci/hashes.txt; echo '$(EXTRAS)'; pwd; } | cksum | cut -d' ' -f1)
STAMP := $(VENV)/.installed-$(KEY)

# Tests start some hundred interpreters; they find the bytecode of our modules if it is kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
HOURS := 2

.PHONY: help paper decide test test-machines lint docs bench performance pins clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' $(firstword $(MAKEFILE_LIST))

$(STAMP):
	@sh .ci/venv $(VENV) $(EXTRAS) $(PYTHON)
	@rm -f $(VENV)/.installed-*
	@touch $@

paper: $(STAMP) ## Every figure at quick scale into figures/out, and report.html: the paper against ours
	@$(RUN) figures all report --scale quick

decide: $(STAMP) ## Go on with the runs that decide claims on learning, for HOURS=2 at most
	@$(RUN) figures decide --hours $(HOURS)

test: $(STAMP) ## Run the tests, the doctests and the figures
	@$(RUN) pytest -n $(WORKERS) --dist worksteal -q

test-machines: $(STAMP) ## Run the numerical tests as other processors round, in random order
	@$(RUN:-m=) .ci/machines all -n $(WORKERS)

lint: $(STAMP) ## Check style and types
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) mypy

docs: $(STAMP) ## Build the documentation into docs/_build/html, warnings are errors
	@$(RUN) sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The documentation is in docs/_build/html/index.html"

bench: $(STAMP) ## Time the code, in CPU time
	@$(RUN) pytest -o addopts=--import-mode=importlib tests/benchmarks --benchmark-only --benchmark-timer=time.process_time

performance: $(STAMP) ## Measure against numpy and sgemm, and write docs/performance.md
	@$(RUN:-m=) docs/_ext/performance.py

pins: ## Renew .ci/hashes.txt after a change of constraints.txt
	@$(or $(PYTHON),python3) .ci/pins

clean: ## Remove everything that was made, .venv included
	rm -rf $(VENV) figures/out docs/_build docs/api/generated docs/examples .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
