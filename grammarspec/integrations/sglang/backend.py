"""The backend for SGLang: from the text of a request to a grammar, or to SGLang's object for an invalid grammar.

SGLang's scheduler asks for a grammar when a request arrives. A constraint in the cache gives a grammar at once; others
are compiled in SGLang's executor. SGLang keeps compiled grammars in a dictionary without a bound; this backend keeps
constraints in a :class:`.GrammarCache` instead, and uses the dictionary for errors only.
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
"""SGLang's text for "any JSON" in place of a schema."""
_MOST_ERRORS: Final = 256
"""The largest number of errors that are kept."""


def json_options(serving: Any) -> dict[str, Any]:
    """The options for JSON, from the arguments of SGLang's server.

    Args:
        serving: the value of SGLang's ``get_serving()``.
    """
    if serving.constrained_json_disable_any_whitespace:
        return {"whitespace": "compact"}
    if serving.constrained_json_whitespace_pattern is not None:
        return {"whitespace_pattern": serving.constrained_json_whitespace_pattern}
    if serving.constrained_json_max_whitespace_cnt is not None:
        return {"whitespace_pattern": rf"[ \n\r\t]{{0,{int(serving.constrained_json_max_whitespace_cnt)}}}"}
    return {}


def request_of_key(kind: str, text: str, options: Mapping[str, Any], special_tokens: Mapping[str, int]) -> Request:
    """The request for a key of SGLang's cache.

    Args:
        kind: ``"json"``, ``"regex"``, ``"ebnf"``, ``"full_assistant_ebnf"`` or ``"structural_tag"``.
        text: the declaration.
        options: the options for JSON.
        special_tokens: the special tokens of the model, by name.

    Raises:
        GrammarSyntaxError: a structural tag is not JSON.
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
    raise TypeError(f"unknown kind of grammar: {kind!r:.60}")


def _with_schemas(text: str) -> str:
    """A structural tag in which ``{}`` replaces schemas that are null, as SGLang writes schemas that were not given."""
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
    """The bounded cache, which the plain backend and the one for reasoning share.

    Attributes:
        constraints: the cache of constraints.
    """

    constraints: GrammarCache
    cache: dict[tuple[str, str], Any]
    """SGLang's dictionary; here it has errors only."""

    def request(self, key: tuple[str, str]) -> Request:
        """The request for a key. The kind in the key may be followed by a colon and a variant.

        Raises:
            GrammarSyntaxError, TypeError: as :func:`request_of_key`.
        """
        raise NotImplementedError

    def get_cached_or_future_value(self, key: tuple[str, str], require_reasoning: bool) -> tuple[Any, bool]:
        """A grammar and ``True`` if its constraint is in the cache; otherwise a future of a grammar and ``False``."""
        known = self.cache.get(key)
        if known is not None:
            return known, True
        inherited: Any = super()
        try:
            ready = self.constraints.ready(self.request(key))
        except (GrammarspecError, TypeError):
            ready = False  # the executor finds and reports the error
        if ready:
            # If another thread evicts it meanwhile, it is compiled here, which is slow but correct.
            return self._init_value_dispatch(key, require_reasoning), True
        answer: tuple[Any, bool] = inherited.get_cached_or_future_value(key, require_reasoning)
        return answer

    def _init_value_dispatch(self, key: tuple[str, str], require_reasoning: bool) -> Any:
        inherited: Any = super()
        return inherited._init_value_dispatch(key, require_reasoning)

    def set_cache(self, key: tuple[str, str], value: Any) -> None:
        """Keep an error. Grammars are not kept here, as the cache has their constraints."""
        if not isinstance(value, ENGINE.found(BASE, "InvalidGrammarObject")):
            return
        while len(self.cache) >= _MOST_ERRORS:
            del self.cache[next(iter(self.cache))]
        self.cache[key] = value

    def reset(self) -> None:
        """Remove all constraints and errors."""
        inherited: Any = super()
        inherited.reset()
        self.constraints.clear()


class RequestBackend(KeptBySize):
    """The methods of a ``BaseGrammarBackend`` of SGLang; :func:`create` makes a class of the two."""

    is_support_token_filter = True
    allocate_vocab_mask = staticmethod(grammar.allocate_vocab_mask)
    move_vocab_mask = staticmethod(grammar.move_vocab_mask)
    apply_vocab_mask = staticmethod(grammar.apply_vocab_mask)

    options: Mapping[str, Any]
    """The options for JSON."""
    mask_threads: int
    """The number of threads that compute the masks of a step."""

    def request(self, key: tuple[str, str]) -> Request:
        """The request for a key, by :func:`request_of_key`.

        Raises:
            GrammarSyntaxError, TypeError: as :func:`request_of_key`.
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
        """The grammar of a text in EBNF, or in any notation that :meth:`.Request.grammar` takes."""
        return self._answer("ebnf", key_string)

    def dispatch_structural_tag(self, key_string: str) -> Any:
        """The grammar of a structural tag."""
        return self._answer("structural_tag", key_string)

    def _answer(self, kind: str, text: str) -> Any:
        """A grammar, or SGLang's invalid grammar with the text of the error."""
        try:
            matcher = self.constraints.constraint(self.request((kind, text))).matcher()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of the compiler is not an Exception
            _LOG.warning("the grammar of a request (%s) cannot be used: %s", kind, error)
            return ENGINE.found(BASE, "InvalidGrammarObject")(str(error))
        return _grammar_class().of(GuardedMatcher(matcher, _told), self.mask_threads)

    def set_token_filter(
        self,
        vocab_mask: Any,
        token_ids: Iterable[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allow or forbid tokens in a mask row, for SGLang's limits on the length of reasoning.

        Args:
            vocab_mask: ``int32[rows, words]``.
            token_ids: the tokens.
            batch_idx: the index of the row.
            is_allowed: whether the tokens are to be allowed or forbidden.
            reset_vocab_mask: whether all other tokens are set to the opposite.
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
    _LOG.warning("the grammar of a request has failed, which ends the request: %s", error)


@cache
def _grammar_class() -> Any:
    return type("GrammarspecGrammar", (SequenceGrammar, ENGINE.found(BASE, "BaseGrammarObject")), {})


def create(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any = None) -> Any:
    """The backend of one scheduler; SGLang calls this when its server starts.

    For models that reason, SGLang wraps its own backends, but not registered ones; so the wrapping is done here.

    Args:
        server_args: the arguments of SGLang's server; not used, as ``get_serving()`` has their resolved values.
        tokenizer: the tokenizer of the model.
        vocab_size: the number of logits.
        eos_token_ids: the end-of-text tokens of the model: a set, a number or ``None``.

    Raises:
        UnsupportedTokenizer, ValueError: as :func:`.vocabulary_of`.
        SettingsError: an environment variable has a wrong value.
    """
    settings = Settings.of_environment()
    serving = ENGINE.found("sglang.srt.runtime_context", "get_serving")()
    ends = [eos_token_ids] if isinstance(eos_token_ids, int) else eos_token_ids or ()
    vocabulary = vocabulary_of(tokenizer, vocab_size, ends)
    vocabulary.keep(constraints=0, memory=0)  # constraints are kept by the GrammarCache only
    backend: Any = type("GrammarspecBackend", (RequestBackend, ENGINE.found(BASE, "BaseGrammarBackend")), {})()
    backend.options, backend.mask_threads = json_options(serving), settings.mask_thread_count
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
    """Register the name with SGLang. Call :func:`.check` first."""
    ENGINE.found(BASE, "register_grammar_backend")(NAME, create)
    if NAME not in ENGINE.found(CHOICES, "GRAMMAR_BACKEND_CHOICES"):
        ENGINE.found(CHOICES, "add_grammar_backend_choices")([NAME])
