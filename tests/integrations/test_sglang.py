"""The adapter for SGLang, on stand-ins with the signatures of SGLang 0.5.23, and a scheduler that calls as SGLang's.

SGLang's own files are used in ``test_sglang_wheel.py``, where they are there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import grammarspec as gs
from grammarspec.integrations import sglang as adapter
from grammarspec.integrations import vocabularies
from grammarspec.integrations.sglang import backend as backends
from grammarspec.integrations.sglang import expected
from grammarspec.integrations.sglang.grammar import allocate_vocab_mask
from grammarspec.serving import guarded

torch = pytest.importorskip("torch")
from tests.integrations.sglang_scheduler import Scheduler, traverse  # noqa: E402

VOCABULARY = gs.Vocabulary.bytes()
END = 256
SCHEMA = json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})


def stand_ins() -> dict[str, ModuleType]:  # a list
    """Modules with what the adapter touches, as SGLang 0.5.23 has it."""
    registry: dict[str, Any] = {}

    class GrammarRow(NamedTuple):
        row: int
        grammar: Any

    class BaseGrammarObject:
        def __init__(self):
            self._finished, self.grammar_stats, self.current_token = False, None, None

        def maybe_init_reasoning(self, reasoning): ...
        def accept_token(self, token): ...
        def rollback(self, k): ...
        def is_terminated(self): ...
        def allocate_vocab_mask(self, vocab_size, batch_size, device): ...
        def fill_vocab_mask(self, vocab_mask, idx): ...
        @staticmethod
        def fill_vocab_mask_batched(entries, vocab_mask):
            for entry in entries:
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

        @staticmethod
        def reset_vocab_mask(vocab_mask): ...
        @staticmethod
        def move_vocab_mask(vocab_mask, device): ...
        @staticmethod
        def apply_vocab_mask(logits, vocab_mask): ...
        def copy(self):
            return self

        @property
        def finished(self):
            return self._finished

        @finished.setter
        def finished(self, finished):
            self._finished = finished

        def try_jump_forward(self, tokenizer): ...
        def jump_forward_str_state(self, helper): ...
        def jump_and_retokenize(self, old_output_ids, new_output_ids, next_state): ...

    class InvalidGrammarObject(BaseGrammarObject):
        def __init__(self, error_message="Unknown grammar error"):
            super().__init__()
            self.error_message = error_message

    class BaseGrammarBackend:
        def __init__(self):
            self.executor, self.cache = ThreadPoolExecutor(2), {}

        def get_request_grammar_key(self, key, *, input_ids, thinking_budget):
            return key

        def dispatch_json(self, key_string): ...
        def dispatch_regex(self, key_string): ...
        def dispatch_ebnf(self, key_string): ...
        def dispatch_structural_tag(self, key_string): ...
        def set_token_filter(self, vocab_mask, token_ids, batch_idx, is_allowed=True, reset_vocab_mask=True): ...
        def _init_value_dispatch(self, key, require_reasoning):
            name = {"full_assistant_ebnf": "ebnf"}.get(key[0], key[0])
            return getattr(self, f"dispatch_{name}")(key[1])

        def get_cached_or_future_value(self, key, require_reasoning):
            return self.executor.submit(self._init_value_dispatch, key, require_reasoning), False

        def set_cache(self, key, value): ...
        def reset(self):
            self.cache.clear()

    class ReasonerGrammarBackend(BaseGrammarBackend):
        def __init__(self, grammar_backend, reasoning_parser, tokenizer, enable_strict_thinking=False):
            super().__init__()
            self.inner = grammar_backend

        def _init_value_dispatch(self, key, reasoning):
            made = self.inner._init_value_dispatch((key[0].partition(":")[0], key[1]), reasoning)
            made.wrapped = reasoning
            return made

    class ReasoningParser:
        def __init__(
            self, model_type=None, stream_reasoning=True, force_reasoning=None, request=None, tokenizer=None,
            tool_call_parser_active=False, prefix=None,
        ):  # fmt: skip
            ends = [7] if model_type == "thinks" else []
            self.detector = SimpleNamespace(get_think_end_token_ids=lambda tokenizer: ends)

    class Serving:
        reasoning_parser: str | None = None
        enable_strict_thinking: bool = False
        constrained_json_whitespace_pattern: str | None = None
        constrained_json_disable_any_whitespace: bool = False
        constrained_json_max_whitespace_cnt: int | None = None

    def register_grammar_backend(name, init_func):
        registry[name] = init_func

    serving, choices = Serving(), ["xgrammar", "none"]
    contents = {
        "sglang": {"__version__": "0.5.23"},
        expected.BASE: {
            one.__name__: one
            for one in (
                GrammarRow,
                BaseGrammarObject,
                InvalidGrammarObject,
                BaseGrammarBackend,
                register_grammar_backend,
            )
        },
        expected.REASONER: {"ReasonerGrammarBackend": ReasonerGrammarBackend},
        expected.CHOICES: {"GRAMMAR_BACKEND_CHOICES": choices, "add_grammar_backend_choices": choices.extend},
        "sglang.srt.parser.reasoning_parser": {"ReasoningParser": ReasoningParser},
        "sglang.srt.runtime_context": {"get_serving": lambda: serving},
        "sglang.srt.arg_groups.fields.serving": {"Serving": Serving},
    }
    contents[expected.BASE]["GRAMMAR_BACKEND_REGISTRY"] = registry
    modules = {}
    for name, members in contents.items():
        modules[name] = ModuleType(name)
        vars(modules[name]).update(members)
    return modules


class Tokenizer:
    eos_token_id = END


@pytest.fixture
def sglang(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    modules = stand_ins()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(vocabularies, "_made", lambda tokenizer, size, ends: VOCABULARY)
    backends._grammar_class.cache_clear()
    yield modules
    backends._grammar_class.cache_clear()


def made(sglang: dict[str, ModuleType]) -> Any:
    adapter.register()
    init = sglang[expected.BASE].GRAMMAR_BACKEND_REGISTRY["grammarspec"]
    return init(SimpleNamespace(), Tokenizer(), VOCABULARY.size, {END})


@pytest.fixture
def scheduler(sglang: dict[str, ModuleType]) -> Scheduler:
    return Scheduler(made(sglang), VOCABULARY.size)


def logits_for(*texts: bytes) -> torch.Tensor:
    """Logits that prefer the next byte of each text, and then the end."""
    logits = torch.zeros(len(texts), VOCABULARY.size)
    for row, text in enumerate(texts):
        logits[row, text[0] if text else END] = 1
    return logits


def run(scheduler: Scheduler, sequences: list[Any], texts: list[bytes]) -> list[bytes]:
    for place in range(max(map(len, texts)) + 1):
        scheduler.step(sequences, logits_for(*(text[place:] for text in texts)))
    return [bytes(token for token in one.tokens if token != END) for one in sequences]


# ---------------------------------------------------------------------- registration
def test_it_is_registered_once(sglang: dict[str, ModuleType]) -> None:
    adapter.register()
    adapter.plugin()
    assert sglang[expected.CHOICES].GRAMMAR_BACKEND_CHOICES == ["xgrammar", "none", "grammarspec"]


@pytest.mark.parametrize("one", expected.EXPECTED, ids=lambda one: one.name)
def test_a_name_that_is_not_as_expected_is_refused(sglang: dict[str, ModuleType], one: expected.Expected) -> None:
    owner: Any = sys.modules[one.module]
    *path, last = one.name.split(".")
    for part in path:
        owner = getattr(owner, part)
    for changed in (lambda other: None, None):
        if changed is None:
            delattr(owner, last)
            if hasattr(owner, last):
                continue  # a base class has it
        else:
            setattr(owner, last, changed)
        with pytest.raises(gs.UnsupportedFeature, match=last):
            adapter.register()
    assert "grammarspec" not in sglang[expected.CHOICES].GRAMMAR_BACKEND_CHOICES


@pytest.mark.parametrize("version", ["0.5.22", "0.5.24", "0.6.0", "1.0", "unknown"])
def test_other_versions_go_on_without_it(
    sglang: dict[str, ModuleType], version: str, caplog: pytest.LogCaptureFixture
) -> None:
    sglang["sglang"].__version__ = version
    adapter.plugin()
    assert f"the version of SGLang is {version}" in caplog.text
    assert "grammarspec" not in sglang[expected.CHOICES].GRAMMAR_BACKEND_CHOICES


def test_without_sglang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sglang", None)
    with pytest.raises(gs.MissingPackage, match=r"grammarspec\[sglang\]"):
        adapter.register()


def test_missing_settings_are_refused(sglang: dict[str, ModuleType]) -> None:
    del sglang["sglang.srt.arg_groups.fields.serving"].Serving.__annotations__["reasoning_parser"]
    with pytest.raises(gs.UnsupportedFeature, match="reasoning_parser"):
        adapter.register()
    sglang[expected.CHOICES].GRAMMAR_BACKEND_CHOICES = ("xgrammar",)
    with pytest.raises(gs.UnsupportedFeature, match="not a list"):
        adapter.register()


# ---------------------------------------------------------------------- requests
@pytest.mark.parametrize(
    ("kind", "text", "answer"),
    [
        ("json", SCHEMA, b'{"a": 12}'),
        ("json", "$$ANY$$", b"[1, null]"),
        ("regex", "[0-9]{3}", b"123"),
        ("ebnf", 'root ::= "a" [0-9]+', b"a77"),
        ("full_assistant_ebnf", 'root ::= "yes" | "no"', b"no"),
        ("structural_tag", '{"type": "structural_tag", "format": {"type": "json_schema", "json_schema": null}}', b"1"),
        (
            "structural_tag",
            json.dumps({"structures": [{"begin": "<a>", "schema": None, "end": "</a>"}], "triggers": ["<a>"]}),
            b"x<a>{}</a>",
        ),
    ],
)
def test_kinds_of_requests(scheduler: Scheduler, kind: str, text: str, answer: bytes) -> None:
    one = scheduler.admit(kind, text)
    assert run(scheduler, [one], [answer]) == [answer]
    assert one.ended == "stop" and one.grammar.finished


def test_sequences_of_one_grammar_do_not_share_tokens(scheduler: Scheduler) -> None:
    texts = [b'{"a": 1}', b'{"a":-20}']
    batch = [scheduler.admit("json", SCHEMA), scheduler.admit("json", SCHEMA)]
    assert batch[0].grammar is not batch[1].grammar
    assert scheduler.backend.constraints.stats().misses == 1
    batch.append(type(batch[0])(None, [], "other"))  # a request without a grammar is not masked
    assert run(scheduler, batch, [*texts, b"anything"])[:2] == texts


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("json", '{"type": "integer", "minimum": 2, "maximum": 1}', ""),
        ("json", '{"$ref": "#/nowhere"}', "points to nothing"),
        ("json", "{", ""),
        ("regex", "(", ""),
        ("ebnf", "root ::= missing", "missing"),
        ("structural_tag", "[" * 100_000, ""),
        ("structural_tag", '{"type": "structural_tag"}', ""),
    ],
)
def test_what_cannot_be_answered_is_an_invalid_grammar(
    scheduler: Scheduler, kind: str, text: str, message: str
) -> None:
    for _ in range(2):  # compiled, and remembered
        one = scheduler.admit(kind, text)
        assert one.ended.startswith(f"Failed to compile {kind} grammar: ") and message in one.ended
        assert len(one.ended) > 40
    good = scheduler.admit("regex", "ok")
    assert run(scheduler, [good], [b"ok"]) == [b"ok"]


def test_few_errors_and_no_grammars_are_kept_by_sglang(scheduler: Scheduler) -> None:
    for number in range(backends._MOST_ERRORS + 5):
        scheduler.backend.set_cache(("regex", f"({number}"), scheduler.admit("regex", "(").grammar)
    assert len(scheduler.backend.cache) == backends._MOST_ERRORS
    scheduler.admit("regex", "a")
    assert ("regex", "a") not in scheduler.backend.cache
    scheduler.backend.reset()
    assert not scheduler.backend.cache and not scheduler.backend.constraints.stats().entries


def test_options_of_the_server() -> None:
    serving = SimpleNamespace(
        constrained_json_whitespace_pattern=None,
        constrained_json_disable_any_whitespace=False,
        constrained_json_max_whitespace_cnt=2,
    )
    request = backends.request_of_key("json", "{}", backends.json_options(serving), {})
    grammar = request.lower().grammar
    assert grammar.matches("[  1]") and not grammar.matches("[   1]")
    serving.constrained_json_whitespace_pattern = " ?"
    assert backends.json_options(serving) == {"whitespace_pattern": " ?"}
    serving.constrained_json_disable_any_whitespace = True
    assert backends.json_options(serving) == {"whitespace": "compact"}
    with pytest.raises(TypeError, match="kind"):
        backends.request_of_key("other", "", {}, {})


def test_backends_for_reasoning_are_wrapped(sglang: dict[str, ModuleType]) -> None:
    serving = sglang["sglang.srt.runtime_context"].get_serving()
    serving.reasoning_parser = "thinks"
    backend = made(sglang)
    assert isinstance(backend, sglang[expected.REASONER].ReasonerGrammarBackend)
    scheduler = Scheduler(backend, VOCABULARY.size)
    for _ in range(2):  # compiled, and from the cache
        assert scheduler.admit("regex", "a+", reasoning=True).grammar.wrapped
    assert backend.get_cached_or_future_value(("regex:open_answer", "a+"), False)[1]
    assert backend.constraints is backend.inner.constraints and not backend.cache
    backend.reset()
    serving.reasoning_parser = "thinks not"
    assert not isinstance(made(sglang), sglang[expected.REASONER].ReasonerGrammarBackend)


# ---------------------------------------------------------------------- tokens and masks
@pytest.mark.parametrize("token", [-1, 257, 1 << 31, 1 << 70, None, "a", 98])
def test_tokens_that_are_not_allowed_end_their_request(scheduler: Scheduler, token: Any) -> None:
    one, other = scheduler.admit("regex", "a+"), scheduler.admit("regex", "a+")
    scheduler.take(one, token)
    assert one.ended.startswith("Grammar accept_token failed: ") and not one.tokens
    mask = one.grammar.allocate_vocab_mask(VOCABULARY.size, 1, "cpu")
    one.grammar.fill_vocab_mask(mask, 0)  # does not raise
    assert run(scheduler, [other], [b"aaa"]) == [b"aaa"]


def test_the_end_twice_and_back(scheduler: Scheduler) -> None:
    grammar = scheduler.admit("regex", "ab?").grammar
    for token in (97, END, END):
        grammar.accept_token(token)
    assert grammar.is_terminated() and grammar.current_token == END
    grammar.rollback(1)
    assert not grammar.is_terminated()
    grammar.accept_token(98)
    grammar.rollback(50)  # more than there are
    with pytest.raises(ValueError, match="token 98 is not allowed here"):
        grammar.accept_token(98)
    grammar.accept_token(97)


def test_copies_go_on_from_where_they_were_made(scheduler: Scheduler) -> None:
    grammar = scheduler.admit("regex", "abc").grammar
    grammar.accept_token(97)
    copied = grammar.copy()
    copied.accept_token(98)
    grammar.accept_token(98)
    copied.rollback(2)
    copied.accept_token(97)
    assert grammar.try_jump_forward(None) == ([99], "") and grammar.jump_forward_str_state(([99], "")) == ("", -1)
    assert copied.try_jump_forward(None) == ([98, 99], "")
    grammar.accept_token(99)
    grammar.accept_token(END)
    assert grammar.try_jump_forward(None) is None


def test_jumps_are_retokenized(scheduler: Scheduler) -> None:
    grammar = scheduler.admit("regex", "a[bc]d").grammar
    grammar.accept_token(97)
    grammar.accept_token(98)
    grammar.jump_and_retokenize([97, 98], [97, 99, 100], -1)
    grammar.accept_token(END)
    assert grammar.is_terminated()
    grammar.rollback(1)
    with pytest.raises(ValueError, match="token 120"):
        grammar.jump_and_retokenize([97, 99, 100], [120], -1)


def test_trees_of_drafts(scheduler: Scheduler) -> None:
    """A tree of ``a(b(end) | c(d) | x)`` behind a first token: each row is that of a matcher that went there."""
    grammar = scheduler.admit("regex", "za(b|cd)").grammar
    grammar.accept_token(122)
    tokens, child, sibling = [122, 97, 98, END, 99, 100, 120], [1, 2, 3, -1, 5, -1, -1], [-1, -1, 4, -1, 6, -1, -1]
    mask = grammar.allocate_vocab_mask(VOCABULARY.size, 7, "cpu")
    traverse(grammar, tokens, child, sibling, mask)
    constraint = gs.compile(gs.regex("za(b|cd)"), VOCABULARY)
    for node, path in enumerate((b"z", b"za", b"zab", None, b"zac", b"zacd", None)):
        if path is None:  # behind the end, and behind a token that is not allowed, rows stay as they were
            assert (mask[node] == -1).all()
            continue
        row = gs.allocate_bitmask(1, VOCABULARY.size)
        matcher = constraint.matcher()
        assert matcher.accept_tokens(list(path)) == len(path)
        matcher.fill_bitmask(row)
        assert np.array_equal(mask[node].numpy(), row[0])
    grammar.accept_token(97)  # where it was


def test_failures_of_a_batch_are_kept(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = [scheduler.admit("regex", "a+"), scheduler.admit("regex", "b+")]
    failure = gs.LimitExceeded("the mask takes too many steps")
    real = guarded.fill_bitmasks

    def fails(matchers: Any, rows: Any, *, rows_index: Any, threads: int) -> Any:
        results = real(matchers, rows, rows_index=rows_index, threads=threads)
        return [failure, *results[1:]]

    monkeypatch.setattr(guarded, "fill_bitmasks", fails)
    scheduler.step(batch, logits_for(b"z", b"b"))
    assert "too many steps" in batch[0].ended and not batch[1].ended
    monkeypatch.undo()
    scheduler.step(batch, logits_for(b"z", b"b"))
    assert batch[1].tokens == [98, 98]


def test_an_error_of_a_whole_batch_does_not_reach_the_scheduler(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def panics(*_: Any, **__: Any) -> Any:
        raise BaseException("a panic of the compiler")

    monkeypatch.setattr(guarded, "fill_bitmasks", panics)
    batch = [scheduler.admit("regex", "a+"), scheduler.admit("regex", "b+")]
    scheduler.step(batch, logits_for(b"a", b"b"))
    assert [one.tokens for one in batch] == [[97], [98]]  # each was filled alone
    batch[0].grammar.guarded.fail(gs.LimitExceeded("too many steps"))
    scheduler.step(batch, logits_for(b"z", b"b"))
    assert "too many steps" in batch[0].ended and batch[1].tokens == [98, 98]


def test_the_threads_of_a_batch_are_set(sglang: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = guarded.fill_bitmasks

    def counts(*arguments: Any, threads: int, **named: Any) -> Any:
        asked.append(threads)
        return real(*arguments, threads=threads, **named)

    monkeypatch.setattr(guarded, "fill_bitmasks", counts)
    for given, expected_ in (("3", 3), ("0", max(1, min((os.cpu_count() or 1) // 2, 8)))):
        monkeypatch.setenv("GRAMMARSPEC_SGLANG_MASK_THREADS", given)
        scheduler = Scheduler(made(sglang), VOCABULARY.size)
        batch = [scheduler.admit("regex", "a+"), scheduler.admit("regex", "b+")]
        batch[1].grammar = batch[1].grammar.copy()
        scheduler.step(batch, logits_for(b"a", b"b"))
        batch[0].grammar = None
        scheduler.step(batch[1:], logits_for(b"b"))
        assert asked == [expected_] * 2
        asked.clear()
    scheduler.admit("regex", "a").grammar.fill_vocab_mask_batched([], torch.zeros(1, 9, dtype=torch.int32))


@pytest.mark.parametrize(("device", "pinned"), [
    ("cuda", True), ("cuda:1", True), (torch.device("cuda"), True), ("cpu", False), ("meta", False), (None, False),
])  # fmt: skip
def test_masks_are_pinned_for_cuda_devices_only(monkeypatch: pytest.MonkeyPatch, device: Any, pinned: bool) -> None:
    asked: list[bool] = []
    real = torch.full

    def full(*arguments: Any, pin_memory: bool, **named: Any) -> Any:
        asked.append(pin_memory)
        return real(*arguments, **named)

    monkeypatch.setattr(torch, "full", full)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    mask = allocate_vocab_mask(65, 2, device)
    assert asked == [pinned] and mask.shape == (2, 3) and mask.device.type == "cpu" and (mask == -1).all()


def test_token_filters(scheduler: Scheduler) -> None:
    mask = scheduler.backend.allocate_vocab_mask(VOCABULARY.size, 2, "cpu")
    scheduler.backend.set_token_filter(mask, [31, 97], 1)
    allowed = [t for t in range(VOCABULARY.size) if int(mask[1, t // 32]) >> t % 32 & 1]
    assert allowed == [31, 97] and (mask[0] == -1).all()
    scheduler.backend.set_token_filter(mask, [31], 1, is_allowed=False, reset_vocab_mask=False)
    assert not int(mask[1, 0]) and int(mask[1, 3])
    scheduler.backend.set_token_filter(mask, [31], 1, is_allowed=False)
    assert [t for t in range(VOCABULARY.size) if not int(mask[1, t // 32]) >> t % 32 & 1] == [31]
    scheduler.admit("regex", "a").grammar.reset_vocab_mask(mask)
    assert (mask == -1).all()
