"""Requests for structured output, and their lowered form: the grammar as the compiler has it.

A :class:`Request` holds a declaration and its options, all of them JSON values, so that equal requests can be
recognised by their content. :meth:`Request.lower` runs the front-end and compiles the result once, to find errors. The
resulting :class:`Lowered` can be sent to another process as bytes, which are checked when they are read.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final, Literal

from grammarspec._compiler import CancelToken, Constraint
from grammarspec._compiler import Grammar as Ir
from grammarspec.constraint import Limits, compile
from grammarspec.errors import GrammarError, GrammarSyntaxError
from grammarspec.grammars.expressions import Grammar, choice
from grammarspec.imports import importing
from grammarspec.vocabulary import Vocabulary

__all__ = ["Kind", "Lowered", "Request"]

Kind = Literal["json_schema", "regex", "choice", "grammar", "structural_tag", "tools", "lowered"]

_MAGIC: Final = b"gsrq\x01"
"""The first bytes of lowered requests; the last of them is the version of the format."""
_HEAD: Final = struct.Struct("<5s32sI")  # magic, digest of all that follows, length of the options


@dataclass(frozen=True, slots=True)
class Lowered:
    """A request in the compiler's form: a grammar for any vocabulary that has its special tokens.

    Attributes:
        ir: the grammar.
        options: further data about the request for the engine, as JSON values.
    """

    ir: Ir
    options: Mapping[str, Any] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The lowered request in a portable form, with its version and a digest (SHA-256) of its content.

        Raises:
            TypeError: the options are not JSON values.
        """
        try:
            options = json.dumps(dict(self.options), sort_keys=True, allow_nan=False).encode()
        except ValueError as error:
            raise TypeError(f"the options cannot be written as JSON: {error}") from None
        content = options + self.ir.to_bytes()
        return _HEAD.pack(_MAGIC, _digest(len(options), content), len(options)) + content

    @staticmethod
    def from_bytes(data: bytes) -> Lowered:
        """Read what :meth:`to_bytes` wrote.

        The digest detects damage; it does not prove who wrote the bytes. Bytes that were forged give an error, or some
        grammar, whose work is bounded by the limits under which it is compiled.

        Raises:
            GrammarError: the bytes are damaged, cut short, or of a version that this release cannot read.
            TypeError: the data is not bytes.
        """
        data = bytes(memoryview(data))
        if len(data) < _HEAD.size or data[: len(_MAGIC) - 1] != _MAGIC[:-1]:
            raise GrammarSyntaxError("the bytes are not a lowered request")
        magic, digest, length = _HEAD.unpack_from(data)
        if magic != _MAGIC:
            hint = "lower the request with the release of grammarspec that compiles it"
            raise GrammarSyntaxError(
                f"the lowered request has the format version {magic[-1]}, which this release cannot read", hint=hint
            )
        content = data[_HEAD.size :]
        if length > len(content) or _digest(length, content) != digest:
            raise GrammarSyntaxError("the lowered request is damaged")
        try:
            options = json.loads(content[:length])
        except (ValueError, RecursionError):
            raise GrammarSyntaxError("the options of the lowered request are not valid JSON") from None
        if not isinstance(options, dict):
            raise GrammarSyntaxError("the options of the lowered request are not a JSON object")
        return Lowered(Ir.from_bytes(content[length:]), options)

    @property
    def grammar(self) -> Grammar[str]:
        """The grammar; its texts mean themselves."""
        return Grammar(self.ir)

    @property
    def key(self) -> bytes:
        """The head of :meth:`to_bytes`, whose digest identifies the lowered request."""
        return self.to_bytes()[: _HEAD.size]


def _digest(length: int, content: bytes) -> bytes:
    return hashlib.sha256(length.to_bytes(4, "little") + content).digest()


@dataclass(frozen=True)
class Request:
    """A client's request for structured output.

    The class methods make requests, one for each kind. Requests are compared by content. They are checked when they are
    lowered; making one checks nothing and costs almost nothing.

    Attributes:
        kind: the kind of the declaration.
        declaration: the declaration, a JSON value.
        options: the options of the front-end, JSON values.
    """

    kind: Kind
    declaration: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    # ------------------------------------------------------------------ kinds
    @classmethod
    def json_schema(cls, schema: Mapping[str, Any] | bool | str, **options: Any) -> Request:
        """JSON that satisfies a schema: a dict, a boolean, or JSON text.

        Args:
            schema: the schema.
            options: those of :func:`grammarspec.json_schema` that are JSON values; and ``whitespace_pattern``, the
                text of a regular expression, in place of ``whitespace=re.compile(...)``.
        """
        return cls("json_schema", schema, options)

    @classmethod
    def json_object(cls, **options: Any) -> Request:
        """Any JSON object; the options are those of :meth:`json_schema`."""
        return cls("json_schema", {"type": "object"}, options)

    @classmethod
    def regex(cls, pattern: str, **options: Any) -> Request:
        """Texts that a regular expression matches as a whole; :func:`grammarspec.regex` describes the ``options``."""
        return cls("regex", pattern, options)

    @classmethod
    def choice(cls, texts: Iterable[str]) -> Request:
        """One of these texts."""
        return cls("choice", texts if isinstance(texts, str) else list(texts))

    @classmethod
    def grammar(cls, text: str, *, language: str = "auto", **options: Any) -> Request:
        """The texts of a grammar.

        Args:
            text: the grammar.
            language: ``"lark"``, ``"gbnf"`` (of llama.cpp, and XGrammar's EBNF) or ``"llguidance"``; ``"auto"`` decides
                by the text: with ``::=`` it is GBNF, with ``%llguidance`` at the beginning llguidance's, otherwise
                lark's, or llguidance's if lark cannot read it.
            options: those of :func:`grammarspec.lark`, :func:`grammarspec.gbnf` or :func:`grammarspec.llguidance` that
                are JSON values, except ``import_paths``: grammars of requests read no files.
        """
        return cls("grammar", text, {"language": language, **options})

    @classmethod
    def structural_tag(cls, tag: Mapping[str, Any] | str, **options: Any) -> Request:
        """Free text and tagged parts; the ``options`` are those of :func:`grammarspec.structural_tag`."""
        return cls("structural_tag", tag, options)

    @classmethod
    def tools(
        cls,
        tools: Iterable[Mapping[str, Any]],
        *,
        tool_format: str,
        choice: str = "auto",
        parallel: bool = True,
        special_tokens: Iterable[str] = (),
    ) -> Request:
        """Calls of tools in the format of a family of models.

        Args:
            tools: the tools as JSON, as chat completions have them.
            tool_format: the name of the format, such as ``"hermes"``; ``docs/tools.md`` lists them.
            choice: ``"auto"``, ``"required"``, ``"none"``, or the name of the tool that must be called.
            parallel: whether one turn may have several calls.
            special_tokens: the names of the model's special tokens; markers of the format that are among them are
                tokens, the others are text.
        """
        options = {"tool_format": tool_format, "choice": choice, "parallel": parallel}
        return cls("tools", list(tools), {**options, "special_tokens": list(special_tokens)})

    @classmethod
    def lowered(cls, data: bytes | str) -> Request:
        """A request that was lowered before: the bytes of :meth:`Lowered.to_bytes`, or these in base64 (RFC 4648)."""
        return cls("lowered", data if isinstance(data, str) else base64.b64encode(data).decode())

    # ------------------------------------------------------------------ lowering
    @cached_property
    def key(self) -> bytes:
        """A digest that identifies the request: of all its attributes; of a lowered request, :attr:`Lowered.key`.

        What was lowered is checked when it is read: a request that has the head of another and other content has no
        constraint of its own.

        Raises:
            TypeError: the declaration or an option has a value that JSON does not have.
            GrammarSyntaxError: the declaration or an option nests too deeply, or contains itself.
        """
        if self.kind == "lowered":
            return _bytes_of_base64(self.declaration, _HEAD.size)
        try:
            text = json.dumps([self.kind, self.declaration, dict(self.options)], ensure_ascii=False)
        except (ValueError, RecursionError) as error:
            raise GrammarSyntaxError(f"the request cannot be written as JSON: {error}") from None
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

    def lower(
        self,
        vocabulary: Vocabulary | None = None,
        *,
        limits: Limits | None = None,
        cancel: CancelToken | None = None,
    ) -> Lowered:
        """Run the front-end; then compile the grammar and compute its first mask, to find errors.

        Args:
            vocabulary: the tokens of the model. Without it, the grammar is compiled for single bytes; a special token
                or a character that the vocabulary lacks is then found only when the grammar is compiled for it.
            limits: the limits of the front-end, and those of compiling; each has the whole budget.
            cancel: cancelling it stops the work.

        Raises:
            GrammarError: the request is wrong, not supported, or exceeds a limit; the error has the place and, often,
                a hint.
            Cancelled: ``cancel`` was cancelled.
            TypeError, ValueError: the declaration is of a wrong type, or an option is unknown or has a wrong value.
            MissingPackage: the front-end needs a package that is not installed.
        """
        return self.compiled(vocabulary, limits=limits, cancel=cancel)[0]

    def compiled(
        self,
        vocabulary: Vocabulary | None = None,
        *,
        limits: Limits | None = None,
        cancel: CancelToken | None = None,
    ) -> tuple[Lowered, Constraint]:
        """The lowered form, and the constraint that was compiled to find errors, with its first mask computed.

        Arguments and errors are those of :meth:`lower`.

        Raises:
            GrammarError, Cancelled, TypeError, ValueError, MissingPackage: as :meth:`lower`.
        """
        if self.kind == "lowered":
            lowered = Lowered.from_bytes(_bytes_of_base64(self.declaration))
            grammar: Grammar[Any] = lowered.grammar
        else:
            grammar = _FRONT_ENDS[self.kind](self.declaration, dict(self.options), limits, cancel)
            lowered = Lowered(grammar.ir)
        constraint = compile(grammar, vocabulary or _any_bytes(grammar), limits=limits, cancel=cancel)
        constraint.mask(constraint.start)
        return lowered, constraint


def _bytes_of_base64(text: Any, count: int | None = None) -> bytes:
    """The bytes that a text is, or the first of them."""
    try:
        needed = text if count is None else text[: -(-count // 3) * 4]
        return base64.b64decode(needed, validate=True)[:count]
    except (TypeError, ValueError):
        raise GrammarSyntaxError("the lowered request is damaged: it must be bytes written in base64") from None


def _any_bytes(grammar: Grammar[Any]) -> Vocabulary:
    """A vocabulary of all single bytes and of the special tokens of a grammar."""
    names = sorted(grammar.node.special_tokens)
    return _single_bytes() if not names else _bytes_and(names)


@cache
def _single_bytes() -> Vocabulary:
    """The vocabulary of grammars without special tokens: most are. It keeps no constraints."""
    vocabulary = _bytes_and([])
    vocabulary.keep(constraints=0, memory=0)
    return vocabulary


def _bytes_and(names: list[str]) -> Vocabulary:
    texts = [bytes([value]) for value in range(256)]
    return Vocabulary.from_tokens(texts, [256], special_tokens={name: 257 + at for at, name in enumerate(names)})


# ---------------------------------------------------------------------- the front-ends, imported when they are needed
def _json_schema(
    schema: Any, options: dict[str, Any], limits: Limits | None, cancel: CancelToken | None
) -> Grammar[Any]:
    import re

    with importing:
        from grammarspec.frontends.json_schema import json_schema

    if not isinstance(schema, dict | bool | str):
        raise TypeError(f"a schema must be an object, a boolean or JSON text, not {schema!r:.60}")
    blanks = options.pop("whitespace_pattern", None)
    if blanks is not None:
        try:
            options["whitespace"] = re.compile(blanks)
        except (re.error, TypeError, RecursionError) as error:
            raise GrammarSyntaxError(f"whitespace_pattern is not a regular expression: {error}") from None
    if isinstance(options.get("separators"), list):
        options["separators"] = tuple(options["separators"])
    return json_schema(schema, limits=limits, cancel=cancel, **options)


def _regex(pattern: Any, options: dict[str, Any], limits: Limits | None, cancel: CancelToken | None) -> Grammar[Any]:
    with importing:
        from grammarspec.frontends.regex import regex

    return regex(pattern, limits=limits, cancel=cancel, **options)


def _choice(texts: Any, options: dict[str, Any], limits: Limits | None, cancel: CancelToken | None) -> Grammar[Any]:
    return choice(texts, **options)


def _grammar(text: Any, options: dict[str, Any], limits: Limits | None, cancel: CancelToken | None) -> Grammar[Any]:
    with importing:
        from grammarspec.frontends.gbnf import gbnf
        from grammarspec.frontends.lark import lark
        from grammarspec.frontends.llguidance import llguidance

    if not isinstance(text, str):
        raise TypeError(f"a grammar must be a string, not {text!r:.60}")
    if options.get("import_paths"):
        raise ValueError("grammars in requests cannot read files: import_paths is not allowed")
    language = options.pop("language", "auto")
    found = _language(text) if language == "auto" else language
    readers: dict[str, Callable[..., Grammar[Any]]] = {"lark": lark, "gbnf": gbnf, "llguidance": llguidance}
    if found not in readers:
        raise ValueError(f'the language must be "auto", {", ".join(readers)}, not {language!r:.60}')
    try:
        return readers[found](text, limits=limits, cancel=cancel, **options)
    except (GrammarError, TypeError):
        if language != "auto" or found != "lark":
            raise
        try:
            return llguidance(text, limits=limits, cancel=cancel, **options)
        except (GrammarError, TypeError):
            pass
        raise  # the error of lark's front-end says more


def _language(text: str) -> str:
    if text.lstrip().startswith("%llguidance"):
        return "llguidance"
    return "gbnf" if "::=" in text else "lark"


def _structural_tag(
    tag: Any, options: dict[str, Any], limits: Limits | None, cancel: CancelToken | None
) -> Grammar[Any]:
    with importing:
        from grammarspec.tools.structural_tags import structural_tag

    return structural_tag(tag, limits=limits, cancel=cancel, **options)


def _tools(tools: Any, options: dict[str, Any], limits: Limits | None, cancel: CancelToken | None) -> Grammar[Any]:
    with importing:
        from grammarspec.grammars.expressions import literal, special
        from grammarspec.tools.formats import tool_format
        from grammarspec.tools.sources import as_tools

    known = frozenset(options.pop("special_tokens", ()))
    chosen = tool_format(options.pop("tool_format"))
    declared = list(as_tools(tools).values())
    return chosen.grammar(declared, markers=lambda name: special(name) if name in known else literal(name), **options)


_FRONT_ENDS: Final[dict[str, Callable[..., Grammar[Any]]]] = {
    "json_schema": _json_schema,
    "regex": _regex,
    "choice": _choice,
    "grammar": _grammar,
    "structural_tag": _structural_tag,
    "tools": _tools,
}
