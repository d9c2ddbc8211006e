"""The adapter for vLLM, on stand-ins with the signatures of vLLM 0.32: each name that it wraps, and its backend.

What vLLM itself does with it is tested in ``test_vllm_server.py``, where vLLM is installed.
"""

from __future__ import annotations

import enum
import os
import sys
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import grammarspec as gs
from grammarspec.integrations import vllm as adapter
from grammarspec.integrations.vllm import expected
from grammarspec.integrations.vllm.backend import Backend
from grammarspec.integrations.vllm.recent import RecentTexts
from grammarspec.integrations.vllm.requests import PREFIX
from grammarspec.integrations.vllm.settings import SettingsError
from grammarspec.integrations.vocabularies import vocabulary_of
from grammarspec.serving import GuardedMatcher, Lowered, Request

pytest.importorskip("pydantic")
from pydantic import ValidationError

from tests.integrations.vllm_stand_ins import StructuredOutputOptions, VLLMValidationError, stand_ins

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class Tokenizer:
    """What the adapter needs of a tokenizer, found by the vocabulary that the test puts in its place."""

    eos_token_id = 258


VOCABULARY = gs.Vocabulary.from_tokens(
    [*(bytes([value]) for value in range(256)), b"yes", None, None, None],
    eos_token_ids=[258],
    special_tokens={"<call>": 257},
)


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """vLLM's stand-in with the adapter registered."""
    modules = stand_ins()
    for name in [name for name in sys.modules if name == "vllm" or name.startswith("vllm.")]:
        monkeypatch.delitem(sys.modules, name)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    for name in [name for name in os.environ if name.startswith("GRAMMARSPEC_VLLM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(adapter, "_registered", False)
    from grammarspec.integrations import vocabularies
    from grammarspec.integrations.vllm import patches

    monkeypatch.setattr(patches._Chosen, "backend", False)
    monkeypatch.setattr(vocabularies, "_made", lambda tokenizer, size, ends: VOCABULARY)
    adapter.register()
    tokenizer = Tokenizer()
    model_config = SimpleNamespace(get_vocab_size=lambda: VOCABULARY.size, is_diffusion=False)

    def ask(*, backend: str = "grammarspec", **asked: Any) -> Any:
        params = modules["vllm.sampling_params"].StructuredOutputsParams(**asked)
        sampling = modules["vllm.sampling_params"].SamplingParams(params)
        settings = modules["vllm.config.structured_outputs"].StructuredOutputsConfig(backend=backend)
        sampling._validate_structured_outputs(model_config, settings, tokenizer)
        return sampling.structured_outputs

    def engine(**options: Any) -> Any:
        settings = modules["vllm.config.structured_outputs"].StructuredOutputsConfig(backend="grammarspec", **options)
        full = SimpleNamespace(structured_outputs_config=settings, model_config=model_config, tokenizer=tokenizer)
        return modules["vllm.v1.structured_output"].StructuredOutputManager(full)

    return SimpleNamespace(modules=modules, ask=ask, engine=engine, tokenizer=tokenizer, model_config=model_config)


# ---------------------------------------------------------------------- what vLLM must be
@pytest.mark.parametrize("one", expected.EXPECTED, ids=lambda one: one.name)
def test_a_name_that_is_not_as_expected_is_refused(vllm: SimpleNamespace, one: expected.Expected) -> None:
    holder: Any = vllm.modules[one.module]
    *outer, name = one.name.split(".")
    for part in outer:
        holder = getattr(holder, part)
    setattr(holder, name, lambda self, other: None)
    with pytest.raises(gs.UnsupportedFeature, match=one.name.replace(".", r"\.") + r" takes \(self, other\)"):
        expected.check()
    delattr(holder, name)
    if name != "__init__":
        with pytest.raises(gs.UnsupportedFeature, match=f"{name}.*is missing"):
            expected.check()


@pytest.mark.parametrize("version", ["0.31.2", "0.33.0", "0.33.0rc1", "1.0", "nightly"])
def test_another_version_is_refused_and_left_alone(
    vllm: SimpleNamespace, version: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    vllm.modules["vllm"].__version__ = version  # type: ignore[attr-defined]
    monkeypatch.setattr(adapter, "_registered", False)
    with pytest.raises(gs.UnsupportedFeature, match="version of vLLM"):
        adapter.register()
    adapter.plugin()  # vLLM goes on without it
    assert "not available" in caplog.text


def test_fields_and_kinds_must_be_there(vllm: SimpleNamespace) -> None:
    types = vllm.modules["vllm.v1.structured_output.backend_types"]
    types.StructuredOutputOptions = enum.Enum("StructuredOutputOptions", ["JSON"])
    with pytest.raises(gs.UnsupportedFeature, match="CHOICE"):
        expected.check()
    del vllm.modules["vllm.sampling_params"].StructuredOutputsParams.__dataclass_fields__["whitespace_pattern"]
    with pytest.raises(gs.UnsupportedFeature, match="whitespace_pattern"):
        expected.check()


def test_without_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(gs.MissingPackage, match="vllm"):
        expected.check()


# ---------------------------------------------------------------------- configuration
def test_the_name_is_one_that_the_configuration_may_have(vllm: SimpleNamespace) -> None:
    settings = vllm.modules["vllm.config.structured_outputs"].StructuredOutputsConfig
    whole = vllm.modules["vllm.config"].VllmConfig
    assert settings(backend="grammarspec", disable_any_whitespace=True).backend == "grammarspec"
    assert (
        whole(structured_outputs_config={"backend": "grammarspec"}).structured_outputs_config.backend == "grammarspec"
    )
    assert settings().backend == "auto"
    with pytest.raises(ValidationError):
        settings(backend="nonsense")
    with pytest.raises(ValidationError, match="disable_any_whitespace"):
        settings(backend="outlines", disable_any_whitespace=True)


# ---------------------------------------------------------------------- requests
ASKED: dict[str, tuple[dict[str, Any], str]] = {
    "json": ({"json": SCHEMA}, '{"a": 5}'),
    "json text": ({"json": '{"type": "boolean"}'}, "true"),
    "json with whitespace": ({"json": {"type": "array"}, "whitespace_pattern": " "}, "[ 1 ]"),
    "json object": ({"json_object": True}, '{"b": 1}'),
    "regex": ({"regex": "[a-z]+"}, "abc"),
    "choice": ({"choice": ["yes", "no"]}, "yes"),
    "lark": ({"grammar": 'start: "a"+'}, "aa"),
    "gbnf": ({"grammar": 'root ::= "b"'}, "b"),
    "structural tag": (
        {"structural_tag": '{"structures": [{"begin": "<f>", "schema": true, "end": "</f>"}], "triggers": ["<f"]}'},
        "x<f>1</f>y",
    ),
}


@pytest.mark.parametrize("kind", ASKED)
def test_requests_go_to_the_engine_lowered(vllm: SimpleNamespace, kind: str) -> None:
    asked, member = ASKED[kind]
    params = vllm.ask(**asked)
    assert params._backend == "grammarspec" and params.grammar.startswith(PREFIX)
    manager = vllm.engine()
    request = SimpleNamespace(key=(StructuredOutputOptions.GRAMMAR, params.grammar), stop_token_ids={258, 259})
    manager.grammar_init(request)
    rows = manager.backend.allocate_token_bitmask(4)
    tokens = list(member.encode())
    assert request.grammar.validate_tokens([*tokens, 255]) == tokens
    for token in tokens:
        request.grammar.fill_bitmask(rows, 2)
        assert int(rows[2, token // 32]) >> (token % 32) & 1
        assert request.grammar.accept_tokens("r", [token])
    request.grammar.fill_bitmask(rows, 2)
    assert all(int(rows[2, end // 32]) >> (end % 32) & 1 for end in (258, 259))
    assert (rows[1] == -1).all()
    assert not request.grammar.is_terminated() and request.grammar.accept_tokens("r", [259])
    assert request.grammar.is_terminated() and request.grammar.validate_tokens([97]) == []
    request.grammar.rollback(1)
    assert not request.grammar.is_terminated()
    again = vllm.ask(grammar=params.grammar)  # parameters that are used for a second prompt
    assert again.grammar == params.grammar


def test_special_tokens_of_structural_tags(vllm: SimpleNamespace) -> None:
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "<call>x"}}
    import json

    lowered = Request.lowered(_bytes(vllm.ask(structural_tag=json.dumps(tag)).grammar)).lower()
    assert lowered.grammar.node.special_tokens == {"<call>"}


def _bytes(text: str) -> bytes:
    import base64

    return base64.b64decode(text.removeprefix(PREFIX))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"json": {"properties": {"a": {"$ref": "#/nowhere"}}}}, "#/properties/a/.ref"),
        ({"json": "{"}, "line 1, column 2"),
        ({"json": ""}, "not JSON"),
        ({"json": {"allOf": [{"type": "string"}, {"type": "null"}]}}, "at #"),
        ({"json": {"type": "array", "minItems": 3, "maxItems": 2}}, "at #"),
        ({"regex": r"(a)\1"}, "hint|backreference"),
        ({"regex": "("}, "column"),
        ({"regex": "\ud800"}, "surrogate|U.D800|lone"),
        ({"choice": []}, "choice"),
        ({"grammar": "root ::= ("}, "line 1"),
        ({"grammar": "start: undefined"}, "undefined"),
        ({"grammar": ""}, "start"),
        ({"grammar": PREFIX + "####"}, "damaged"),
        ({"grammar": PREFIX + "AAAA"}, "not a lowered request"),
        ({"structural_tag": "[]"}, "object"),
        ({"structural_tag": "[" * 100_000}, "JSON"),
        ({"structural_tag": '{"type": "structural_tag", "format": {"type": "magic"}}'}, "magic"),
        ({"json_object": False}, "structured outputs must have"),
        ({"regex": "(((a{0,99}){0,99}){0,99}b){0,99}(?=.*c)x*y"}, "limit|no text"),
    ],
)
def test_what_is_wrong_is_the_clients_error(vllm: SimpleNamespace, asked: dict[str, Any], said: str) -> None:
    with pytest.raises(VLLMValidationError, match=said) as raised:
        vllm.ask(**asked)
    assert raised.value.parameter == "structured_outputs"


def test_other_backends_are_left_alone(vllm: SimpleNamespace) -> None:
    assert vllm.ask(backend="xgrammar", regex="(")._backend == "xgrammar"
    sampling = vllm.modules["vllm.sampling_params"].SamplingParams()
    sampling._validate_structured_outputs(vllm.model_config, None, vllm.tokenizer)
    manager = vllm.modules["vllm.v1.structured_output"].StructuredOutputManager(
        SimpleNamespace(structured_outputs_config=SimpleNamespace(backend="auto"), tokenizer=vllm.tokenizer)
    )
    assert manager.backend is None
    with pytest.raises(ValueError, match="Unsupported"):
        manager.grammar_init(SimpleNamespace())


def test_servers_that_cannot_answer_say_so(vllm: SimpleNamespace) -> None:
    module = vllm.modules["vllm.sampling_params"]
    settings = vllm.modules["vllm.config.structured_outputs"].StructuredOutputsConfig(backend="grammarspec")
    diffusion = SimpleNamespace(get_vocab_size=lambda: VOCABULARY.size, is_diffusion=True)
    for model_config, tokenizer, said in (
        (diffusion, vllm.tokenizer, "diffusion"),
        (vllm.model_config, None, "tokenizer"),
    ):
        sampling = module.SamplingParams(module.StructuredOutputsParams(regex="a"))
        with pytest.raises(VLLMValidationError, match=said):
            sampling._validate_structured_outputs(model_config, settings, tokenizer)
    params = module.StructuredOutputsParams(regex="a")
    params._backend = "guidance"
    with pytest.raises(VLLMValidationError, match="guidance"):
        module.SamplingParams(params)._validate_structured_outputs(vllm.model_config, settings, vllm.tokenizer)


def test_the_api_is_prepared_before_it_serves(vllm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[Any, int]] = []

    def make(tokenizer: Any, size: int, ends: Any) -> gs.Vocabulary:
        made.append((tokenizer, size))
        return VOCABULARY

    monkeypatch.setattr("grammarspec.integrations.vocabularies._made", make)
    processor = vllm.modules["vllm.v1.engine.input_processor"].InputProcessor
    settings = vllm.modules["vllm.config.structured_outputs"].StructuredOutputsConfig

    def start(tokenizer: Any, backend: str = "grammarspec") -> None:
        config = SimpleNamespace(structured_outputs_config=settings(backend=backend), model_config=vllm.model_config)
        config.tokenizer = tokenizer
        processor(config)

    start(None)
    start(vllm.tokenizer, backend="xgrammar")
    assert not made
    start(vllm.tokenizer)
    assert made == [(vllm.tokenizer, VOCABULARY.size)]
    vllm.ask(regex="a+")
    assert len(made) == 1

    def refuse(tokenizer: Any, size: int, ends: Any) -> gs.Vocabulary:
        raise gs.errors.UnsupportedTokenizer("no kind that is known")

    monkeypatch.setattr("grammarspec.integrations.vocabularies._made", refuse)
    with pytest.raises(gs.errors.UnsupportedTokenizer):
        start(Tokenizer())


# ---------------------------------------------------------------------- the engine
def test_a_failure_ends_its_sequence_alone(vllm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAMMARSPEC_VLLM_MAX_CALL_STEPS", "3000")
    manager = vllm.engine()
    kind = StructuredOutputOptions.GRAMMAR
    bad = manager.backend.compile_grammar(kind, 'start: a~1..1000\na: b~1..1000\nb: c~0..1000\nc: "x" | ","\n')
    good = manager.backend.compile_grammar(StructuredOutputOptions.REGEX, "[a-z]+")
    rows = manager.backend.allocate_token_bitmask(2)
    accepted = 0
    while bad.accept_tokens("bad", [ord(",")]):
        accepted += 1
    bad.fill_bitmask(rows, 0)
    good.fill_bitmask(rows, 1)
    assert (rows[0] == -1).all() and not (rows[1] == -1).all()
    assert not bad.accept_tokens("bad", [ord(",")]) and bad.validate_tokens([ord(",")]) == []
    assert good.accept_tokens("good", [97, 98]) and good.validate_tokens([97]) == [97]
    bad.rollback(1000)
    bad.reset()
    assert bad.accept_tokens("bad", [ord(",")])
    assert isinstance(bad.guarded.matcher, gs.Matcher)


def test_the_masks_of_a_step_are_made_in_one_call(vllm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAMMARSPEC_VLLM_MAX_CALL_STEPS", "3000")
    manager = vllm.engine()
    manager.vllm_config.scheduler_config = SimpleNamespace(max_num_seqs=6)
    manager.vllm_config.num_speculative_tokens = 0
    manager._grammar_bitmask = None

    def request(text: str, kind: StructuredOutputOptions = StructuredOutputOptions.REGEX, thinks: bool = False) -> Any:
        grammar = manager.backend.compile_grammar(kind, text, stop_token_ids=[259])
        structured = SimpleNamespace(grammar=grammar)
        return SimpleNamespace(structured_output_request=structured, constrained=not thinks)

    requests = {
        "letters": request("[a-z]+"),
        "thinks": request("[a-z]+", thinks=True),
        "ended": request("[a-z]+"),
        "fails": request(
            'start: a~1..1000\na: b~1..1000\nb: c~0..1000\nc: "x" | ","\n', StructuredOutputOptions.GRAMMAR
        ),
        "digits": request("[0-9]+"),
    }
    grammars = {name: one.structured_output_request.grammar for name, one in requests.items()}
    grammars["ended"].accept_tokens("ended", [97, 259])
    while grammars["fails"].accept_tokens("fails", [ord(",")]):
        pass
    failure = grammars["fails"].guarded.failure
    order = ["digits", "thinks", "fails", "ended", "letters"]
    for _ in range(2):  # the masks are computed, and known then
        rows = manager.grammar_bitmask(requests, order, {})
        assert rows.shape == (5, (VOCABULARY.size + 31) // 32)
        assert [bool((row == -1).all()) for row in rows] == [False, True, True, True, False]
        expected_row = np.full_like(rows, -1)
        for at, name in ((0, "digits"), (4, "letters")):
            grammars[name].fill_bitmask(expected_row, at)
            assert (rows[at] == expected_row[at]).all()
    assert failure is not None and grammars["fails"].guarded.failure is failure
    assert not grammars["fails"].accept_tokens("fails", [ord(",")])
    assert manager.grammar_bitmask(requests, order, {"letters": [97]}) == "vLLM's own"
    manager.backend = object()
    assert manager.grammar_bitmask(requests, order, {}) == "vLLM's own"


def test_a_mask_that_fails_in_a_batch_ends_its_sequence_alone(vllm: SimpleNamespace) -> None:
    bad = gs.compile(gs.regex("[a-z]+"), VOCABULARY, limits=gs.Limits(max_call_steps=1)).matcher()
    told: list[BaseException] = []
    sequences = [GuardedMatcher(bad, told.append), GuardedMatcher(gs.compile(gs.regex("[a-z]+"), VOCABULARY).matcher())]
    rows = np.zeros((3, (VOCABULARY.size + 31) // 32), dtype=np.int32)
    for _ in range(2):
        GuardedMatcher.fill_bitmasks(sequences, rows, [2, 0])
        assert (rows[2] == -1).all() and not (rows[0] == -1).all() and (rows[1] == 0).all()
        assert len(told) == 1 and sequences[0].failure is told[0] and sequences[1].failure is None
    assert not sequences[0].accept_tokens([97]) and sequences[1].accept_tokens([97])
    GuardedMatcher.fill_bitmasks(sequences[1:], rows[:, :1], [0])  # rows that are too narrow are nobody's to raise
    assert sequences[1].failure is not None


def test_what_is_asked_for_again_is_lowered_once(vllm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    lowered: list[Request] = []
    lower = Request.lower

    def counted(self: Request, *arguments: Any, **named: Any) -> Lowered:
        lowered.append(self)
        return lower(self, *arguments, **named)

    monkeypatch.setattr(Request, "lower", counted)
    schema = {"type": "object", "properties": {"asked again": {"type": "integer"}}}
    assert vllm.ask(json=schema).grammar == vllm.ask(json=schema).grammar
    assert len(lowered) == 1
    monkeypatch.setenv("GRAMMARSPEC_VLLM_MAX_STEPS", "3000000")
    adapter.register()
    vllm.ask(json=schema)
    assert len(lowered) == 2
    for _ in range(2):
        with pytest.raises(VLLMValidationError, match="backreference"):
            vllm.ask(regex=r"(again)\1")
    assert len(lowered) == 4


def test_recent_texts_are_bounded() -> None:
    texts, made = RecentTexts(80_000), []

    def make(key: int, length: int = 5_000) -> str:
        made.append(key)
        return "x" * length

    for key in [*range(20), 19, 0]:
        texts.get(key, lambda key=key: make(key))
    assert made == [*range(20), 0] and texts._bytes == sum(map(len, texts._texts.values())) + 500 * len(texts._texts)
    assert texts._bytes <= 80_000
    for _ in range(2):
        texts.get("large", lambda: make(-1, 20_000))
    assert made[-2:] == [-1, -1]


def test_the_engine_takes_what_was_not_validated(vllm: SimpleNamespace) -> None:
    backend = vllm.engine(disable_any_whitespace=True).backend
    cases = {
        "JSON": ('{"type": "array"}', b"[1]", b"[ "),
        "JSON_OBJECT": ("", b"{}", b"["),
        "REGEX": ("a+", b"aa", b"b"),
        "CHOICE": ('["yes", "no"]', b"no", b"x"),
        "GRAMMAR": ("start: /x/", b"x", b"y"),
        "STRUCTURAL_TAG": (
            '{"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {"type": "array"}}}',
            b"[1]",
            b"[ ",
        ),
    }
    assert set(cases) == set(StructuredOutputOptions.__members__)
    for name, (text, member, other) in cases.items():
        grammar = backend.compile_grammar(StructuredOutputOptions[name], text)
        assert grammar.validate_tokens(list(member)) == list(member)
        assert grammar.validate_tokens(list(other)) != list(other)
    with pytest.raises(gs.GrammarError):
        backend.compile_grammar(StructuredOutputOptions.REGEX, "(")
    assert backend.cache.stats().entries == 6
    backend.destroy()
    assert backend.cache.stats().entries == 0


def test_rows_that_were_not_allocated_here_are_written_too(vllm: SimpleNamespace) -> None:
    backend: Backend = vllm.engine().backend
    grammar = backend.compile_grammar(StructuredOutputOptions.REGEX, "a")
    allocated = backend.allocate_token_bitmask(2)
    other = np.zeros((2, allocated.shape[1]), np.int32)
    grammar.fill_bitmask(other, 1)
    grammar.fill_bitmask(allocated, 1)
    assert (allocated[1].numpy() == other[1]).all() and not other[0].any()


def test_beam_search_has_a_backend(vllm: SimpleNamespace) -> None:
    mixin = vllm.modules["vllm.entrypoints.generate.beam_search.offline"].BeamSearchOfflineMixin()
    manager = vllm.engine()
    mixin.llm_engine = SimpleNamespace(vllm_config=manager.vllm_config)
    mixin.model_config = vllm.model_config
    asked = vllm.modules["vllm.sampling_params"].StructuredOutputsParams(regex="a+")
    backend, key, rows = mixin._init_beam_search_structured_output(asked, vllm.tokenizer)
    assert backend.compile_grammar(*key).accept_tokens("beam", [97]) and len(rows) == 1
    mixin.llm_engine.vllm_config = SimpleNamespace(structured_outputs_config=SimpleNamespace(backend="auto"))
    with pytest.raises(ValueError, match="Unsupported"):
        mixin._init_beam_search_structured_output(asked, vllm.tokenizer)


def test_tools_beside_a_format_of_the_answer(vllm: SimpleNamespace) -> None:
    supports = vllm.modules["vllm.parser.abstract_parser"]._xgrammar_supports
    asked = vllm.modules["vllm.sampling_params"].StructuredOutputsParams
    assert not supports(asked(json=SCHEMA))  # no engine has our backend yet: the original decides
    vllm.engine()
    assert supports(asked(json=SCHEMA)) and supports(asked(choice=["a"])) and supports(asked(grammar='root ::= "a"'))
    assert not supports(asked(regex="(")) and not supports(asked(grammar='start: "a"'))


# ---------------------------------------------------------------------- settings
def test_settings_are_told_by_the_environment(vllm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    for field in fields(adapter.Settings):
        monkeypatch.setenv(f"GRAMMARSPEC_VLLM_{field.name.upper()}", "1")
    adapter.register(adapter.Settings(max_steps=50, cache_bytes=1000, cache_directory="folder"))
    told = adapter.Settings.of_environment()
    assert (told.max_steps, told.cache_bytes, told.cache_directory) == (50, 1000, "folder")
    with pytest.raises(VLLMValidationError, match="max_steps"):
        vllm.ask(json={"properties": {str(i): {"pattern": f"x{i}"} for i in range(200)}})
    for wrong in ("many", "0", "-1"):
        monkeypatch.setenv("GRAMMARSPEC_VLLM_MAX_STEPS", wrong)
        with pytest.raises(ValueError, match="GRAMMARSPEC_VLLM_"):
            adapter.Settings.of_environment()


def test_unknown_variables_leave_the_backend_out(
    vllm: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(adapter, "_registered", False)
    monkeypatch.setenv("GRAMMARSPEC_VLLM_MAX_STEP", "50")
    with pytest.raises(SettingsError, match="Did you mean GRAMMARSPEC_VLLM_MAX_STEPS"):
        adapter.register()
    adapter.plugin()
    assert "GRAMMARSPEC_VLLM_MAX_STEP is not a setting" in caplog.text
    assert not adapter._registered


def test_a_vocabulary_is_made_once(vllm: SimpleNamespace) -> None:
    assert vocabulary_of(vllm.tokenizer, VOCABULARY.size) is vocabulary_of(vllm.tokenizer, VOCABULARY.size)
    assert isinstance(Lowered.from_bytes(_bytes(vllm.ask(regex="a").grammar)), Lowered)
