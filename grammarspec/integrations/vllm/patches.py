"""Wraps functions of vLLM. With any other backend, the wrapped functions do what they did before.

When the API's process validates a request, its grammar is lowered and compiled once. So an error in it is answered with
status 400 and grammarspec's message; found later, in the engine, it would be a 500. The engine gets the lowered form.
"""

from __future__ import annotations

from contextlib import suppress
from functools import wraps
from typing import Any, Literal, get_args

from grammarspec.constraint import Limits
from grammarspec.errors import GrammarspecError
from grammarspec.integrations.vllm.backend import Backend, SequenceGrammar
from grammarspec.integrations.vllm.expected import found
from grammarspec.integrations.vllm.recent import RecentTexts
from grammarspec.integrations.vllm.requests import json_options, request_of, sent
from grammarspec.integrations.vllm.settings import NAME, Settings
from grammarspec.integrations.vocabularies import vocabulary_of
from grammarspec.serving import GuardedMatcher, Request
from grammarspec.vocabulary import Vocabulary

__all__ = ["choose", "patch"]

_WRONG = (GrammarspecError, TypeError, ValueError, RecursionError)
"""The errors that are answered with status 400."""
_TEXTS = RecentTexts(32 << 20)
"""The lowered forms of recent requests, as many requests have the same grammar."""
_FIELDS = ("json", "regex", "choice", "json_object", "structural_tag", "whitespace_pattern")


class _Chosen:
    """What holds for all engines of this process.

    Attributes:
        backend: whether one uses grammarspec. Parsers of tool calls do not get the configuration.
        limits: those of each request.
    """

    backend = False
    limits = Limits()


def choose(settings: Settings) -> None:
    """Apply settings to requests from now on."""
    _Chosen.limits = settings.limits


def patch() -> None:
    """Wrap all functions. Call :func:`.check` first."""
    _configuration()
    _start()
    _validation()
    _engine()
    _beam_search()
    _tool_parsers()


def _configuration() -> None:
    """Make vLLM's configuration accept the name of the backend, with the options that grammarspec supports."""
    from pydantic.dataclasses import rebuild_dataclass

    module = "vllm.config.structured_outputs"
    config = found(module, "StructuredOutputsConfig")
    names = (*get_args(found(module, "StructuredOutputsBackend")), NAME)
    widened: Any = Literal[names]
    found("vllm.config", "structured_outputs").StructuredOutputsBackend = widened
    config.__annotations__["backend"] = widened
    config.__dataclass_fields__["backend"].type = widened

    decorator = config.__pydantic_decorators__.model_validators["_validate_structured_output_config"]
    original = decorator.func

    @wraps(original)
    def validate(self: Any) -> Any:
        if self.backend != NAME:
            return original(self)
        _Chosen.backend = True
        return self

    decorator.func = validate
    config._validate_structured_output_config = validate
    rebuild_dataclass(config, force=True)
    rebuild_dataclass(found("vllm.config", "VllmConfig"), force=True)


def _start() -> None:
    """Make the vocabulary and import the front-ends when the API's process starts, and not in the first request."""
    processor = found("vllm.v1.engine.input_processor", "InputProcessor")
    begin = processor.__init__

    @wraps(begin)
    def started(self: Any, vllm_config: Any, *arguments: Any, **named: Any) -> None:
        begin(self, vllm_config, *arguments, **named)
        if vllm_config.structured_outputs_config.backend == NAME and self.tokenizer is not None:
            prepare(self.tokenizer, vllm_config.model_config.get_vocab_size())

    processor.__init__ = started


def prepare(tokenizer: Any, size: int) -> None:
    """Make the vocabulary and its index, and import the front-ends.

    Raises:
        UnsupportedTokenizer, ValueError: as :func:`.vocabulary_of`; the server does not start then.
    """
    vocabulary = vocabulary_of(tokenizer, size)
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}
    firsts = Request.json_object(), Request.regex("a"), Request.grammar('start: "a"'), Request.structural_tag(tag)
    for request in firsts:
        with suppress(*_WRONG):  # a package is missing, or a limit is small: requests will get these errors
            request.lower(vocabulary, limits=_Chosen.limits)


def _validation() -> None:
    """Lower and compile requests when they are validated, so that errors in them are the client's."""
    params = found("vllm.sampling_params", "SamplingParams")
    refused = found("vllm.exceptions", "VLLMValidationError")
    original = params._validate_structured_outputs

    @wraps(original)
    def validate(self: Any, model_config: Any, structured_outputs_config: Any, tokenizer: Any) -> None:
        asked, config = self.structured_outputs, structured_outputs_config
        if asked is None or config is None or config.backend != NAME:
            original(self, model_config, structured_outputs_config, tokenizer)
            return
        if asked._backend not in (None, NAME):
            raise refused(f"the request asks for the backend {asked._backend!r}, but this server uses {NAME!r}")
        if getattr(model_config, "is_diffusion", False):
            raise refused("structured outputs of diffusion models are not supported")
        if tokenizer is None:
            raise refused("structured outputs need a tokenizer; this server has none (skip_tokenizer_init)")
        try:
            vocabulary = vocabulary_of(tokenizer, model_config.get_vocab_size())
            request = request_of(asked, json_options(config), vocabulary.special_tokens)
            text = _lowered(request, vocabulary)
        except _WRONG as error:
            raise refused(str(error), parameter="structured_outputs") from error
        for field in _FIELDS:
            setattr(asked, field, None)
        asked.grammar, asked._backend = text, NAME
        asked.__post_init__()

    params._validate_structured_outputs = validate


def _lowered(request: Request, vocabulary: Vocabulary) -> str:
    limits = _Chosen.limits
    return _TEXTS.get((request.key, vocabulary, limits), lambda: sent(request.lower(vocabulary, limits=limits)))


def _engine() -> None:
    """Give the engine's manager the backend when it starts, so that a tokenizer that is not supported is found then."""
    manager = found("vllm.v1.structured_output", "StructuredOutputManager")
    types = "vllm.v1.structured_output.backend_types"
    found(types, "StructuredOutputBackend").register(Backend)
    found(types, "StructuredOutputGrammar").register(SequenceGrammar)
    begin, grammar_init = manager.__init__, manager.grammar_init

    @wraps(begin)
    def started(self: Any, vllm_config: Any) -> None:
        begin(self, vllm_config)
        _use(self)

    @wraps(grammar_init)
    def init(self: Any, request: Any) -> None:
        if self.backend is None:
            _use(self)
        grammar_init(self, request)

    step = manager.grammar_bitmask

    @wraps(step)
    def grammar_bitmask(self: Any, requests: Any, structured_output_request_ids: Any, drafts: Any) -> Any:
        ids, backend = structured_output_request_ids, self.backend
        if len(ids) < 2 or not isinstance(backend, Backend) or any(drafts.get(one) for one in ids):
            return step(self, requests, ids, drafts)
        return _masks(self, backend, [requests[one] for one in ids])

    manager.__init__, manager.grammar_init, manager.grammar_bitmask = started, init, grammar_bitmask


def _masks(manager: Any, backend: Backend, requests: list[Any]) -> Any:
    """The masks of a step without drafts, computed in one call; vLLM would ask for one after the other."""
    if manager._grammar_bitmask is None:
        most = manager.vllm_config.scheduler_config.max_num_seqs
        manager._grammar_bitmask = backend.allocate_token_bitmask(
            most * (1 + manager.vllm_config.num_speculative_tokens)
        )
    rows = backend.memory_of(manager._grammar_bitmask)
    sequences, index = [], []
    for row, request in enumerate(requests):
        grammar = request.structured_output_request.grammar
        constrained = manager._get_constraint_bounds(request, ()).constraint_start == 0
        if constrained and not grammar.is_terminated():
            sequences.append(grammar.guarded)
            index.append(row)
        else:
            rows[row] = -1
    GuardedMatcher.fill_bitmasks(sequences, rows, index, backend.mask_threads)
    return manager._grammar_bitmask[: len(requests)].numpy()


def _use(manager: Any) -> None:
    """Give a manager the backend, if the configuration names it and there is a tokenizer."""
    config = manager.vllm_config
    if config.structured_outputs_config.backend == NAME and getattr(manager, "tokenizer", None) is not None:
        manager.backend = Backend(config, manager.tokenizer, config.model_config.get_vocab_size())


def _beam_search() -> None:
    """Make offline beam search, which makes a backend for each call, use this one; the vocabulary is made once."""
    mixin = found("vllm.entrypoints.generate.beam_search.offline", "BeamSearchOfflineMixin")
    original = mixin._init_beam_search_structured_output

    @wraps(original)
    def init(self: Any, structured_outputs: Any, tokenizer: Any) -> Any:
        config = self.llm_engine.vllm_config
        if config.structured_outputs_config.backend != NAME:
            return original(self, structured_outputs, tokenizer)
        backend = Backend(config, tokenizer, self.model_config.get_vocab_size())
        key = found("vllm.v1.structured_output.request", "get_structured_output_key")(structured_outputs)
        return backend, key, backend.allocate_token_bitmask(1)

    mixin._init_beam_search_structured_output = init


def _tool_parsers() -> None:
    """Allow tools and a format of the answer in one request, if the format can be part of a structural tag."""
    module = found("vllm.parser", "abstract_parser")
    original = module._xgrammar_supports

    @wraps(original)
    def supports(structured_outputs: Any) -> bool:
        if not _Chosen.backend:
            return bool(original(structured_outputs))
        try:
            request = request_of(structured_outputs, {}, {})
            if request.kind == "grammar" and "::=" not in request.declaration:
                return False  # formats of structural tags have no other grammars
            request.lower(limits=_Chosen.limits)
        except _WRONG:
            return False
        return request.kind != "lowered"

    module._xgrammar_supports = supports
