# Two commands: `make book` builds the book, `make test` runs everything that CI runs.
# Both set up a local environment in .venv first; python3 (3.11 or newer), make and git suffice.

PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
export OMP_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup lab book pdf test unit quick lint bench verify paper release pair student lecturer serve links lock clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## make or refresh the environment in .venv (skipped when the lock has not changed)
	@$(PYTHON) tools/setup.py $(VENV)

book: setup  ## execute what is stale, build the site into _build/html
	@$(RUN) -m tools.book book

lab: setup  ## open a copy of the chapters as notebooks, yours to run and to change
	@$(RUN) -m tools.book lab
	@$(RUN) -m jupyterlab lab

pdf: book  ## print the whole book into one PDF beside the site (needs Chromium)
	@$(RUN) -m tools.book pdf

test: lint  ## everything that CI runs: lint, types, tests, the book, and the site in a browser
	@$(RUN) -m tools.book check
	@$(RUN) -m pytest -n 2 --dist worksteal -m "not site and not long"
	@$(RUN) -m tools.book book
	@$(RUN) -m pytest -n 2 -m site

unit: setup  ## the tests that need neither the book nor a browser
	@$(RUN) -m pytest -n 2 --dist worksteal -m "not site and not long"

quick: setup  ## the unit tests that take seconds
	@$(RUN) -m pytest -n 2 --dist worksteal -m "not site and not slow and not long"

lint: setup  ## ruff, mypy, which part imports which, and names
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy conceptnb tools benchmarks
	@$(VENV)/bin/lint-imports --no-cache --no-logo
	@$(RUN) -m tools.names

bench: setup  ## ratios of CPU time, measured side by side, into results/benchmarks.json
	@$(RUN) -m benchmarks

verify: setup  ## compute runs of tables whose code has changed, by both versions, and compare
	@$(RUN) -m conceptnb results verify

IMAGES ?= 20000
paper: setup  ## Tables 2 to 5 with the paper's own models and images: IMAGES=20000, a download of 0.9 GB
	@$(RUN) -m conceptnb reproduce clip --models openai --data 3dshapes --images $(IMAGES) \
	    --cache _build/openai --out results/clip_openai.json --force

release: setup  ## compute again what has moved, then check every stratum of every table
	@$(RUN) -m conceptnb results renew
	@$(RUN) -m conceptnb results verify --all --whole --budget 36000
	@$(RUN) -m benchmarks

pair: setup  ## generate notebooks/*.ipynb from the .md that people edit
	@$(RUN) -m tools.book pair

student: setup  ## the chapters without solutions, as notebooks in _build/editions/student
	@$(RUN) -m tools.book editions student

lecturer: setup  ## the chapters with solutions filled in, in _build/editions/lecturer
	@$(RUN) -m tools.book editions lecturer

serve: book  ## show the book at http://localhost:8000
	@$(RUN) -m http.server 8000 --bind 127.0.0.1 --directory _build/html

links: book  ## ask every address that the book links to whether it still answers
	@$(RUN) -m tools.book links

lock: setup  ## pin the newest versions that requirements.txt allows
	@$(VENV)/bin/uv pip compile requirements.txt --universal --upgrade --python-version 3.11 \
	    --no-header --no-annotate --no-emit-index-url --quiet --output-file requirements.lock

clean:  ## remove what is generated, the environment included, and nothing that you worked on
	@$(PYTHON) tools/clean.py
