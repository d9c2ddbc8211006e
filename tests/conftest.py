"""Options, the tier, counts and skips of a run, and the fixtures that several rooms use."""

from __future__ import annotations

import gc
import importlib.util
import os
import random
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from tests import counting, data, smollm2, tiers
from tests.oracles.engines import NOT_INSTALLED

# The tests' tensors are small: threads would wait for each other more than they work. (Read when torch is imported.)
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Without a device, kernels run in Triton's interpreter. (Read when Triton is imported; 0 compiles them.)
os.environ.setdefault("TRITON_INTERPRET", "1")

ALLOWED_SKIPS = (
    "needs a CUDA device",
    "make grammars-test fetches real grammars",
    "needs vLLM: python tests/integrations/vllm_environment.py",
    "needs SGLang's wheel: python tests/integrations/sglang_environment.py",
    "needs llama-cpp-python in an environment: see the test's module",
    "needs MLX-LM in a folder: see the test's module",
    *NOT_INSTALLED.values(),
    *map(data.not_at_hand, data.FOLDERS),
)
"""Reasons of skips that ``--no-skips`` allows: devices, engines that are only compared with, grammars and servers that
take minutes to fetch and have a command of their own, and data that cannot be fetched from a package index."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("grammarspec")
    group.addoption("--tier", choices=list(tiers.TIERS), default="quick", help="how many examples are drawn")
    group.addoption("--tier-seed", type=int, help="the random seed of the tier long, as an earlier run printed it")
    group.addoption("--part", type=tiers.Part.parsed, metavar="K/N", help="of every N tests run the K-th")
    group.addoption(
        "--data", type=Path, default=_path(os.environ.get("GRAMMARSPEC_DATA")), help="data as tests/data.py lists it"
    )
    group.addoption("--no-skips", action="store_true", help="skips are failures, but for those of devices and of data")
    group.addoption("--write", action="store_true", help="write anew what tests make: docs/types.md and the ratchets")


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def pytest_configure(config: pytest.Config) -> None:
    if config.option.tier_seed is None:
        config.option.tier_seed = random.randrange(2**31)  # workers of pytest-xdist are handed this one
    tiers.select(config.option.tier, config.option.tier_seed)
    gc.disable()  # until all tests are collected, what is made stays


def pytest_report_header(config: pytest.Config) -> str:
    seed = f", --tier-seed {config.option.tier_seed}" if tiers.selected().random else ""
    return f"tier: {config.option.tier}{seed}; data: {config.option.data or 'none'}"


# ---------------------------------------------------------------------- which tests are run
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if hasattr(getattr(item, "obj", None), "hypothesis"):
            item.add_marker("property")
            counting.count_examples(item.obj)  # type: ignore[attr-defined]
        if any(name.startswith("smollm2_") for name in getattr(item, "fixturenames", ())):
            item.add_marker("model")
    left_out = _left_out(items)
    kept = [item for item in items if item not in left_out]
    if config.option.part:
        kept = [*tiers.Part(*config.option.part).of(kept)]  # a worker of pytest-xdist is handed a plain tuple
    config.hook.pytest_deselected(items=[*{*items}.difference(kept)])
    items[:] = kept


def _left_out(items: list[pytest.Item]) -> set[pytest.Item]:
    """The tests that the tier does not run."""
    if tiers.selected().random:
        return {item for item in items if not item.get_closest_marker("property")}
    if tiers.selected().whole:
        return set()
    left_out = {item for item in items if any(map(item.get_closest_marker, ("suite", "slow")))}
    combined: dict[str, list[Any]] = {}
    for item in items:
        if item.get_closest_marker("combined") and item not in left_out:
            combined.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in combined.values():
        chosen = tiers.covering([[*case.callspec.params.values()] for case in cases])
        left_out.update(case for number, case in enumerate(cases) if number not in chosen)
    return left_out


def pytest_collection_finish() -> None:
    gc.freeze()  # a tenth of the time would go into looking through torch and the like for garbage
    gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # extensions complain of what is left at the end of the process


# ---------------------------------------------------------------------- counts
@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[Any]:
    with counting.scope() as counts:
        try:
            if hasattr(pyfuncitem.obj, "hypothesis"):
                given = {name: pyfuncitem.funcargs[name] for name in signature(pyfuncitem.obj).parameters}
                for _ in range(tiers.selected().rounds - 1):
                    pyfuncitem.obj(**given)
            return (yield)
        finally:
            pyfuncitem.user_properties.append(counting.as_property(counts))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [report for found in ("passed", "failed") for report in terminalreporter.stats.get(found, [])]
    for line in counting.summary(reports):
        terminalreporter.write_line(line)


# ---------------------------------------------------------------------- skips
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    return _without_skips((yield), item.config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[Any]:
    return _without_skips((yield), collector.config)


def _without_skips(report: Any, config: pytest.Config) -> Any:
    """The report; with ``--no-skips``, one of a skip whose reason is not allowed is one of a failure."""
    if config.option.no_skips and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if reason not in ALLOWED_SKIPS:
            report.outcome = "failed"
            report.longrepr = f"skipped, which --no-skips forbids: {reason}"
    return report


# ---------------------------------------------------------------------- fixtures
@pytest.fixture(scope="session")
def smollm2_gguf() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct (49,152 tokens, byte-level BPE)."""
    pytest.importorskip("transformers")
    from grammarspec.models.loading import smollm2_path

    try:
        return smollm2_path()
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def smollm2_directory(smollm2_gguf: Path) -> Path:
    """The same model as transformers saves it, which is loaded much faster."""
    return smollm2.copy(smollm2_gguf)


@pytest.fixture(scope="session")
def smollm2_as_published(request: pytest.FixtureRequest) -> Path:
    """The model as a GGUF file; in the tier ``quick`` as a directory."""
    return request.getfixturevalue("smollm2_gguf" if tiers.selected().whole else "smollm2_directory")


@pytest.fixture(scope="session")
def smollm2_tokenizer(smollm2_directory: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(smollm2_directory)


@pytest.fixture(scope="session")
def llama3_directory(pytestconfig: pytest.Config) -> Path:
    """A directory with Llama-3's tokenizer.json (128,256 tokens, byte-level BPE)."""
    return data.folder(pytestconfig, "llama3")


@pytest.fixture(scope="session")
def tekken() -> Any:
    """Mistral's Tekken (131,072 tokens)."""
    path = data.package_file("mistral_common", "data/tekken_240911.json")
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    return Tekkenizer.from_file(path)


@pytest.fixture(scope="session")
def tiny_model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two thin layers with random weights and a byte-level tokenizer, saved as transformers saves models.

    Tokens: the 256 bytes, ``</s>`` (256), ``<turn>`` (257); the logits are padded to 264.
    """
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE({c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["</s>", "<turn>"])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>")
    tokenizer.chat_template = "{% for m in messages %}{{ m.content }}<turn>{% endfor %}"
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=264,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.6,  # wide enough that the logits of the random model differ
        bos_token_id=None,
        eos_token_id=256,
    )
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(eos_token_id=256)
    directory = tmp_path_factory.mktemp("tiny")
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


@pytest.fixture
def drafts_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes cost the same however many tokens they read, and all texts of a batch save as much as others; so drafts
    are as long as they can be."""
    if importlib.util.find_spec("torch") is None:
        return
    from grammarspec.decoding import adaptive

    monkeypatch.setattr(adaptive.Costs, "knows", lambda self, rows, tokens: True)
    monkeypatch.setattr(adaptive.Costs, "seconds", lambda self, rows, tokens: 1e6)
    monkeypatch.setattr(adaptive, "_least_of", lambda count: 0.0)
