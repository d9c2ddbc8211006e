"""The backend as SGLang makes and calls it: a request's text comes in, a grammar or SGLang's invalid grammar goes out.

SGLang's scheduler asks for a grammar when a request arrives. What is in the cache is answered at once; all else is
compiled in SGLang's executor. SGLang keeps what was compiled in a dictionary that knows no bound: here constraints are
kept by :class:`.GrammarCache` instead, and only errors by the dictionary.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from grammarspec.errors import GrammarspecError
from grammarspec.integrations.settings import NAME
from grammarspec.integrations.sglang import grammar
from grammarspec.integrations.sglang.expected import BASE, CHOICES, ENGINE, REASONER
from grammarspec.integrations.sglang.grammar import SequenceGrammar
from grammarspec.integrations.sglang.settings import Settings
from grammarspec.integrations.structural_tags import structural_tag_request
from grammarspec.integrations.vocabularies import vocabulary_of
from grammarspec.serving import GrammarCache, GuardedMatcher, Request

__all__ = ["KeptBySize", "RequestBackend", "create", "json_options", "register_backend", "request_of_key"]

_LOG = logging.getLogger("sglang.grammarspec")
_ANY_JSON: Final = "$$ANY$$"
"""Stands in the place of a schema where any JSON is asked for."""
_MOST_ERRORS: Final = 256
"""How many requests that cannot be answered are remembered."""


def json_options(serving: Any) -> dict[str, Any]:
    """The options for JSON that the arguments of SGLang's server give.

    Args:
        serving: what SGLang's ``get_serving()`` returns.
    """
    if serving.constrained_json_disable_any_whitespace:
        return {"whitespace": "compact"}
    if serving.constrained_json_whitespace_pattern is not None:
        return {"whitespace_pattern": serving.constrained_json_whitespace_pattern}
    if serving.constrained_json_max_whitespace_cnt is not None:
        return {"whitespace_pattern": rf"[ \n\r\t]{{0,{int(serving.constrained_json_max_whitespace_cnt)}}}"}
    return {}


def request_of_key(kind: str, text: str, options: Mapping[str, Any], special_tokens: Mapping[str, int]) -> Request:
    """The request of a key of SGLang's cache.

    Args:
        kind: ``"json"``, ``"regex"``, ``"ebnf"``, ``"full_assistant_ebnf"`` or ``"structural_tag"``.
        text: the declaration.
        options: for JSON.
        special_tokens: of the model, by name.

    Raises:
        GrammarSyntaxError: a structural tag is no JSON.
        TypeError: there is no such kind.
    """
    if kind == "json":
        return Request.json_schema("true" if text == _ANY_JSON else text, **options)
    if kind == "regex":
        return Request.regex(text)
    if kind in ("ebnf", "full_assistant_ebnf"):
        return Request.grammar(text)
    if kind == "structural_tag":
        return structural_tag_request(_with_schemas(text), options, special_tokens)
    raise TypeError(f"there is no kind {kind!r:.60} of grammars")


def _with_schemas(text: str) -> str:
    """A structural tag in which schemas that are null, as SGLang writes those that were not given, allow anything."""
    try:
        tag = json.loads(text)
    except (ValueError, RecursionError):
        return text  # the front-end says what is wrong
    stack, changed = [tag], False
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack += part
        elif isinstance(part, dict):
            name = "schema" if "begin" in part else "json_schema"
            if name in part and part[name] is None:
                part[name], changed = {}, True
            # schemas themselves are left alone
            stack += [value for key, value in part.items() if key not in ("schema", "json_schema")]
    return json.dumps(tag) if changed else text


class KeptBySize:
    """What both of SGLang's backends, the plain one and the one for reasoning, share: what is kept is bounded.

    Attributes:
        constraints: the constraints that are kept.
    """

    constraints: GrammarCache
    cache: dict[tuple[str, str], Any]
    """SGLang's dictionary; it has errors only."""

    def request(self, key: tuple[str, str]) -> Request:
        """The request of a key, whose kind may name a variant behind a colon.

        Raises:
            GrammarSyntaxError, TypeError: as :func:`request_of_key`.
        """
        raise NotImplementedError

    def get_cached_or_future_value(self, key: tuple[str, str], require_reasoning: bool) -> tuple[Any, bool]:
        """A grammar, if its constraint is kept, or a future of one; and whether it is kept."""
        known = self.cache.get(key)
        if known is not None:
            return known, True
        inherited: Any = super()
        try:
            ready = self.constraints.ready(self.request(key))
        except (GrammarspecError, TypeError):
            ready = False  # what is wrong is found, and told, in the executor
        if ready:
            # Should another thread's constraint drive it out just now, it is compiled here: slowly, but right.
            return self._init_value_dispatch(key, require_reasoning), True
        answer: tuple[Any, bool] = inherited.get_cached_or_future_value(key, require_reasoning)
        return answer

    def _init_value_dispatch(self, key: tuple[str, str], require_reasoning: bool) -> Any:
        inherited: Any = super()
        return inherited._init_value_dispatch(key, require_reasoning)

    def set_cache(self, key: tuple[str, str], value: Any) -> None:
        """Keep an error. Grammars are not kept: their constraints are."""
        if not isinstance(value, ENGINE.found(BASE, "InvalidGrammarObject")):
            return
        while len(self.cache) >= _MOST_ERRORS:
            del self.cache[next(iter(self.cache))]
        self.cache[key] = value

    def reset(self) -> None:
        """Drop all constraints and errors."""
        inherited: Any = super()
        inherited.reset()
        self.constraints.clear()


class RequestBackend(KeptBySize):
    """SGLang's ``BaseGrammarBackend``, joined with it by :func:`create`; the names of its methods are SGLang's."""

    is_support_token_filter = True
    allocate_vocab_mask = staticmethod(grammar.allocate_vocab_mask)
    move_vocab_mask = staticmethod(grammar.move_vocab_mask)
    apply_vocab_mask = staticmethod(grammar.apply_vocab_mask)

    options: Mapping[str, Any]
    """The options for JSON."""

    def request(self, key: tuple[str, str]) -> Request:
        """As :func:`request_of_key`.

        Raises:
            GrammarSyntaxError, TypeError: as there.
        """
        kind = key[0].partition(":")[0]
        return request_of_key(kind, key[1], self.options, self.constraints.vocabulary.special_tokens)

    def dispatch_json(self, key_string: str) -> Any:
        """The grammar of a JSON Schema."""
        return self._answer("json", key_string)

    def dispatch_regex(self, key_string: str) -> Any:
        """The grammar of a regular expression."""
        return self._answer("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> Any:
        """The grammar of a grammar's text."""
        return self._answer("ebnf", key_string)

    def dispatch_structural_tag(self, key_string: str) -> Any:
        """The grammar of a structural tag."""
        return self._answer("structural_tag", key_string)

    def _answer(self, kind: str, text: str) -> Any:
        """A grammar, or SGLang's invalid one with the error."""
        try:
            matcher = self.constraints.constraint(self.request((kind, text))).matcher()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the compiler is no Exception
            _LOG.warning("a request for %s cannot be answered: %s", kind, error)
            return ENGINE.found(BASE, "InvalidGrammarObject")(str(error))
        return _grammar_class().of(GuardedMatcher(matcher, _told))

    def set_token_filter(
        self,
        vocab_mask: Any,
        token_ids: Iterable[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allow or forbid tokens in a row, as SGLang's limits of reasoning ask.

        Args:
            vocab_mask: ``int32[rows, words]``.
            token_ids: the tokens.
            batch_idx: the row.
            is_allowed: whether they are allowed.
            reset_vocab_mask: whether all other tokens become the opposite.
        """
        row = vocab_mask[batch_idx]
        if reset_vocab_mask:
            row.fill_(0 if is_allowed else -1)
        for token in token_ids:
            bit = 1 << token % 32
            word = int(row[token // 32]) & 0xFFFFFFFF
            word = word | bit if is_allowed else word & ~bit
            row[token // 32] = word - (1 << 32) if word >> 31 else word


def _told(error: BaseException) -> None:
    _LOG.warning("the grammar of a request failed, and the request ends: %s", error)


@cache
def _grammar_class() -> Any:
    return type("GrammarspecGrammar", (SequenceGrammar, ENGINE.found(BASE, "BaseGrammarObject")), {})


def create(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any = None) -> Any:
    """The backend of one scheduler; SGLang calls this when its server starts.

    SGLang wraps its own backends for models that reason, and not those that are registered: that is done here.

    Args:
        server_args: SGLang's; what it resolved them to is asked of SGLang instead.
        tokenizer: that of the model.
        vocab_size: the number of logits.
        eos_token_ids: the tokens that the model ends with: a set, a number or ``None``.

    Raises:
        UnsupportedTokenizer, ValueError: as :func:`.vocabulary_of`.
        SettingsError: the environment sets what cannot be.
    """
    settings = Settings.of_environment()
    serving = ENGINE.found("sglang.srt.runtime_context", "get_serving")()
    ends = [eos_token_ids] if isinstance(eos_token_ids, int) else eos_token_ids or ()
    vocabulary = vocabulary_of(tokenizer, vocab_size, ends)
    vocabulary.keep(constraints=0, memory=0)  # the cache keeps what is kept
    backend: Any = type("GrammarspecBackend", (RequestBackend, ENGINE.found(BASE, "BaseGrammarBackend")), {})()
    backend.options = json_options(serving)
    backend.constraints = GrammarCache(
        vocabulary,
        max_bytes=settings.cache_bytes,
        limits=settings.limits,
        directory=settings.cache_directory or None,
    )
    if not serving.reasoning_parser:
        return backend
    parser = ENGINE.found("sglang.srt.parser.reasoning_parser", "ReasoningParser")(
        model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer
    )
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend
    wrapper: Any = type(
        "GrammarspecReasonerBackend", (KeptBySize, ENGINE.found(REASONER, "ReasonerGrammarBackend")), {}
    )
    wrapped: Any = wrapper(backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking)
    wrapped.constraints, wrapped.request = backend.constraints, backend.request
    return wrapped


def register_backend() -> None:
    """Tell SGLang the name, once :func:`.check` has found all as it is expected."""
    ENGINE.found(BASE, "register_grammar_backend")(NAME, create)
    if NAME not in ENGINE.found(CHOICES, "GRAMMAR_BACKEND_CHOICES"):
        ENGINE.found(CHOICES, "add_grammar_backend_choices")([NAME])
