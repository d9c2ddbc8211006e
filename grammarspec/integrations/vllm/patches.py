"""The functions of vLLM that are wrapped. For every other backend they do what they did.

Where a request comes in, its declaration is lowered and tried, so that what is wrong with it is the client's error
(400) with our message, and not the engine's (500). The engine gets the lowered form.
"""

from __future__ import annotations

from functools import wraps
from typing import Any, Literal, get_args

from grammarspec.errors import GrammarspecError
from grammarspec.integrations.vllm.backend import Backend, SequenceGrammar
from grammarspec.integrations.vllm.expected import found
from grammarspec.integrations.vllm.requests import json_options, request_of, sent
from grammarspec.integrations.vllm.settings import NAME, Settings
from grammarspec.integrations.vocabularies import vocabulary_of
from grammarspec.serving import Request
from grammarspec.vocabulary import Vocabulary

__all__ = ["patch"]

_WRONG = (GrammarspecError, TypeError, ValueError, RecursionError)
"""What is the client's error."""
_FIELDS = ("json", "regex", "choice", "json_object", "structural_tag", "whitespace_pattern")


class _Chosen:
    """Whether an engine of this process was configured to use grammarspec; parsers of tool calls are not told."""

    backend = False


def patch() -> None:
    """Wrap all functions, once :func:`.check` has found them as they are expected."""
    _configuration()
    _validation()
    _engine()
    _beam_search()
    _tool_parsers()


def _configuration() -> None:
    """The name becomes one that the configuration may have, with the options that grammarspec knows."""
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


def _validation() -> None:
    """Requests are lowered and tried where they come in; what is wrong with them is the client's error."""
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
            raise refused(f"the backend {asked._backend!r} was asked for, but this server has {NAME!r}")
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
    return sent(request.lower(vocabulary, limits=Settings.of_environment().limits))


def _engine() -> None:
    """The engine's manager has our backend from its start, so that what cannot be used is found then."""
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

    manager.__init__, manager.grammar_init = started, init


def _use(manager: Any) -> None:
    """Give a manager its backend, if it is configured to have ours, and there is a tokenizer."""
    config = manager.vllm_config
    if config.structured_outputs_config.backend == NAME and getattr(manager, "tokenizer", None) is not None:
        manager.backend = Backend(config, manager.tokenizer, config.model_config.get_vocab_size())


def _beam_search() -> None:
    """Offline beam search makes a backend of its own for each call; ours is made once for a tokenizer's vocabulary."""
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
    """Tools beside a format of the answer: both are allowed, if the format can be part of a structural tag."""
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
            request.lower(limits=Settings.of_environment().limits)
        except _WRONG:
            return False
        return request.kind != "lowered"

    module._xgrammar_supports = supports
