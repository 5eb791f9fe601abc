# `make demo` and `make test` need nothing but python3 (3.11 or later), pip, make and a compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

.PHONY: demo test thorough browser check bench papers docs dist references clean

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/understudy fit --activation erf --teacher 8 --student 4 --seeds 20 --out results/demo

# On Python 3.12 and later coverage costs next to nothing; before, about a third more time. `make test COVERAGE=` leaves it out.
COVERAGE = --cov --cov-report=term
test: $(STAMP) browser
	COVERAGE_CORE=$$($(BIN)/python -c 'import sys; print("sysmon" if sys.version_info >= (3, 12) else "ctrace")') \
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not thorough" $(COVERAGE)

thorough: $(STAMP) browser
	$(BIN)/python -m pytest -n 2 --dist loadfile -m thorough

# Chromium, for the tests of the lab's page, from Debian's packages where that is possible.
browser:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || \
	{ apt-get update -qq && apt-get install -y -qq chromium; } > /dev/null 2>&1 || \
	echo "There is no Chromium here: the tests of the lab's page will be skipped."

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks

# A quick run of each of the five papers, compared with the ledger: about five minutes each.
papers: $(STAMP)
	for paper in copy-average few-neurons alignment tight-balance attraction-repulsion; do \
	$(BIN)/understudy reproduce $$paper --compare --out results/papers || exit 1; done

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python -m scripts.site_links site

# Wheel and source archive in dist/, tried in an empty environment.
dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --quiet --outdir dist
	$(BIN)/python -m scripts.smoke dist

references: $(STAMP)
	$(BIN)/python -m scripts.references

clean:
	rm -rf $(VENV) results site build dist
