# The commands of this project. Each sets up .venv by itself, from requirements.txt and constraints.txt, and does nothing twice.
#
#   make report       one notebook on made-up texts: reports/correlation-planted.html; another: NOTEBOOK=erasure
#   make reports      all notebooks, trainings and reports as jobs; write reports/index.html and summary.html
#   make reports DATASETS="sst 20news" PROFILE=paper SEEDS=5   each optional, as NOTEBOOKS, JOBS, ON, DEVICE, DATA_HOME
#   make test         run the tests
#   make faults       the tests of what a sweep withstands, with twenty kills of a grid: a quarter of an hour
#   make mutations    plant each fault of tests/mutations.toml in a copy of the project: the tests catch it
#   make readme       check that README is what the kept results give
#   make lab          JupyterLab on working copies of the notebooks, in lab/, on this machine only; LAB=... for its options
#   make bench        how fast the fast forms are beside their definitions, and how their cost grows
#   make environment  set up .venv alone: some minutes, about 2 GB
#   make clean        remove the reports' pages and the caches of tools; raw data and trained models stay
#
# Choices (make reports DATASETS="sst 20news" PROFILE=paper):
NOTEBOOKS ?= $(sort $(patsubst notebooks/%.ipynb,%,$(wildcard notebooks/*.ipynb)))
# of make report
NOTEBOOK  ?= correlation
# empty: of each notebook the made-up texts that it reads by itself
DATASETS  ?=
PROFILE   ?= quick
# a number of seeds, or the seeds themselves as 0,3; empty: as many as the profile has
SEEDS     ?=
# jobs at a time on this machine; empty: one for each core
JOBS      ?=
# a folder in profiles/: where jobs run
ON        ?= here
# auto, cpu or cuda; empty: auto
DEVICE    ?=
# where real data lies; empty: data/raw
DATA_HOME ?=
# options of JupyterLab, as --allow-root
LAB       ?=
# the Python that makes .venv, 3.11 to 3.13; empty: the first on the PATH that fits
PYTHON    ?=

SHELL := /bin/sh
RUN   := .venv/bin/python
STAMP := .venv/installed
export OMP_NUM_THREADS := 1
export JUPYTER_PREFER_ENV_PATH := 1

ifneq ($(strip $(DATA_HOME)),)
  FOUND_HOME := $(shell cd "$(DATA_HOME)" 2>/dev/null && pwd)
  ifeq ($(FOUND_HOME),)
    $(error DATA_HOME=$(DATA_HOME) is not a folder)
  endif
  override DATA_HOME := $(FOUND_HOME)
  export DATA_HOME
else
  unexport DATA_HOME
endif

.PHONY: help report reports test faults mutations readme lab bench clean environment
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   \(make .*\)/\1/p' Makefile

environment: $(STAMP)

report: override NOTEBOOKS := $(NOTEBOOK)

report reports: $(STAMP)
	@if [ -z "$(strip $(NOTEBOOKS))" ]; then echo "no notebook to run: notebooks/ has none"; exit 1; fi
	@exec $(RUN) -m tools.sweep $(NOTEBOOKS) --profile "$(PROFILE)" --on "$(ON)" $(if $(strip $(DATASETS)),--datasets $(DATASETS)) \
	  $(if $(strip $(SEEDS)),--seeds "$(SEEDS)") $(if $(strip $(JOBS)),--jobs "$(JOBS)") $(if $(strip $(DEVICE)),-p device "$(DEVICE)")

test: $(STAMP)
	@$(RUN) -m pytest -q -n auto --dist loadgroup --no-loadscope-reorder

faults: $(STAMP)
	@KILLS=20 $(RUN) -m pytest -q tests/test_faults.py --durations=0

mutations: $(STAMP)
	@$(RUN) -m tests.mutations

readme: $(STAMP)
	@$(RUN) -m tools.summary --check

lab: $(STAMP)
	@case " $(LAB) " in *" --allow-root "*) ;; *) if [ "$$(id -u)" = 0 ]; then \
	  echo "JupyterLab does not run as root: make lab LAB=--allow-root"; exit 1; fi ;; esac
	@echo "JupyterLab on http://127.0.0.1:8888 (or the port below), for this machine only; stop it with Ctrl-C"
	@mkdir -p lab && cp -n notebooks/*.ipynb lab/ 2>/dev/null || true
	@echo "lab/ holds working copies, which git and reports do not read; for a fresh copy remove one and start again"
	@PYTHONPATH="$(CURDIR)" $(RUN) -m jupyterlab --ip=127.0.0.1 --notebook-dir="$(CURDIR)/lab" $(LAB)

bench: $(STAMP)
	@$(RUN) -m benchmarks

clean:
	@echo "removing the reports, .pytest_cache, .ruff_cache, __pycache__ and .ipynb_checkpoints;"
	@echo "reports/results, reports/rendered, data/ and .venv stay"
	@rm -rf reports/*.html reports/*.csv reports/work .pytest_cache .ruff_cache
	@find . -path ./.venv -prune -o -path ./data -prune -o \
	  -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

# The stamp is written last: an interrupted installation leaves none, and the next command takes it up again.
# The file project.pth lets a notebook import lib wherever it is opened.
$(STAMP): requirements.txt constraints.txt
	@rm -f $@; found=; \
	fits='import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; \
	if [ -x $(RUN) ] && $(RUN) -c "$$fits" 2>/dev/null; then \
	  echo "Updating .venv to requirements.txt and constraints.txt"; \
	else \
	  for python in $(if $(strip $(PYTHON)),"$(strip $(PYTHON))",python3 python3.13 python3.12 python3.11 python); do \
	    if "$$python" -c "$$fits" >/dev/null 2>&1; then found=$$python; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "No Python 3.11, 3.12 or 3.13 with the modules venv and ensurepip was found$(if $(strip $(PYTHON)), as PYTHON=$(strip $(PYTHON)))."; \
	    echo "Install one (Debian, Ubuntu: apt install python3 python3-venv), or say where it is: make PYTHON=/path/to/python3"; \
	    exit 1; \
	  fi; \
	  echo "Setting up .venv with $$("$$found" --version): some minutes and about 2 GB, once"; \
	  "$$found" -m venv --clear .venv || exit 1; \
	fi; \
	$(RUN) -m pip install --disable-pip-version-check -r requirements.txt -c constraints.txt || exit 1; \
	$(RUN) -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("purelib"), "project.pth").write_text(str(pathlib.Path.cwd()))'; \
	touch $@; echo "The environment is ready."
