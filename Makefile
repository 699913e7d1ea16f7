# Two commands are all a newcomer needs, and each sets up everything by itself:
#
#   make demo     see Harken at work
#   make test     run the test suite; what takes minutes is in `make test-long`
#
# `make test-fast` leaves out all that needs Spark, a database or Kafka.
# For contributors: `make check` (lint, types, import rules), `make lock` (renew the pinned versions), `make
# test-install` (the wheel with each extra alone, in fresh environments) and `make test-pythons` (every Python there is).

# Any Python from 3.11 to 3.13: the first that is found, or the one that is named here.
PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
IN_MEMORY := $(BIN)/python scripts/in-memory.py
# uv takes half the time, and seconds if its cache has what the lock names; where uv cannot be had, or cannot reach
# what pip reaches, pip does.
UV := VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/python scripts/uv.py
# Every process that is started would compile what it imports, numba and Spark's part of Python included, to forget it.
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
LOCKED := --require-hashes --requirement requirements.lock

.PHONY: demo test test-fast test-compiled test-interpreted test-bounds test-long test-install test-pythons check lock clean

demo: $(READY)
	@$(BIN)/harken demo

# The first waits for Java and for other processes now and then; the others use the time that it leaves.
test: $(READY)
	@$(MAKE) --no-print-directory --jobs 3 KERNELS="$(CONTRACTS)" test-compiled test-interpreted test-bounds

test-compiled: $(READY)
	@$(BIN)/python scripts/share-java.py build/spark.jsa || echo "Java starts as usual"
	$(IN_MEMORY) $(BIN)/pytest -n 2 --dist worksteal $(ELSEWHERE)

# Folders of which nothing would run are not even looked at: each process would import what they import.
test-fast: $(READY)
	$(IN_MEMORY) $(BIN)/pytest -n 2 --dist worksteal $(ELSEWHERE) --ignore tests/spark --ignore tests/judge \
		-m "not install and not long and not service"

# What `make test-install` runs.
ELSEWHERE := --ignore tests/installs

# The contract, as part of all tests, or whatever tests kernels, if one of the next two is asked for.
CONTRACTS := tests/contract/test_contract.py tests/symmetric/test_memory.py tests/symmetric/test_memory_capacity.py
KERNELS := tests

INSTALLS := install

# Kernels are Python too, and must do the same.
test-interpreted: $(READY)
	NUMBA_DISABLE_JIT=1 nice -n 15 $(IN_MEMORY) $(BIN)/pytest --quiet -p no:cacheprovider -m kernel $(KERNELS)

# Every index of every kernel is checked.
test-bounds: $(READY)
	NUMBA_BOUNDSCHECK=1 nice -n 5 $(IN_MEMORY) $(BIN)/pytest --quiet -p no:cacheprovider -m kernel $(KERNELS)

# What takes minutes: object stores and HDFS, Kafka, Spark Connect, experiments, and processes that are killed.
test-long: $(READY)
	$(BIN)/pytest -m "long and not install"

test-install: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal -m "$(INSTALLS)" tests/installs

test-pythons:
	@sh scripts/test-pythons.sh

check: $(READY)
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy
	$(BIN)/lint-imports

# One version of each package, for all Pythons.
lock: $(READY)
	$(BIN)/uv pip compile pyproject.toml --extra dev --generate-hashes --no-header --no-annotate \
		--universal --fork-strategy fewest --python-version 3.11 --quiet --output-file requirements.lock

clean:
	rm -rf $(VENV) build .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(READY): requirements.lock pyproject.toml scripts/ensure-java.sh scripts/find-python.sh
	@sh scripts/ensure-java.sh
	@echo "Setting up $(VENV) from requirements.lock (once) ..."
	@python=$$(sh scripts/find-python.sh $(PYTHON)) && "$$python" -m venv $(VENV)
	@$(UV) pip install --quiet --offline $(LOCKED) 2> /dev/null || $(UV) pip install --quiet $(LOCKED) || $(PIP) $(LOCKED)
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@
