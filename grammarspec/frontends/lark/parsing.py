"""What a text of a ``.lark`` grammar is made of: lark itself parses it, once it has been generated.

The engine recognises texts and builds no trees. So a grammar that is asked for trees or captures keeps what lark needs
to read it, and its texts are read by :class:`Tree`, :class:`Transformed` and :class:`Captures`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from grammarspec.errors import Invalid, UnsupportedFeature, ValidationFailed, needed_by
from grammarspec.frontends.lark.given_terminals import Matcher
from grammarspec.frontends.lark.loader import read
from grammarspec.frontends.lark.opening import Opened
from grammarspec.frontends.lark.options import Options

__all__ = ["Captures", "Parsed", "Transformed", "Tree", "check_transformer"]


@dataclass(frozen=True)
class Parsed(Opened):
    """A grammar as lark reads it."""

    def tree(self, text: str, *, enclosed: bool = False) -> Any:
        """Lark's tree of a text of the language, with positions; of several trees, the one that lark prefers.

        Args:
            enclosed: whether the tree is for captures: always one, of lark's own class, in which positions of a rule
                take in what encloses a token that stands in a rule's place (parentheses around a number, say).
        """
        from lark.exceptions import UnexpectedInput

        parser, starts = _parser(self, enclosed), self.options.start
        for start in starts[:-1]:
            try:
                return parser.parse(text, start=start)
            except UnexpectedInput:
                continue
        return parser.parse(text, start=starts[-1])

    def check(self, names: Sequence[str]) -> None:
        """Check that lark can make trees, and that these may have parts of such names.

        Raises:
            GrammarError: lark rejects the grammar.
            UnsupportedFeature: lark would not make trees, but forests.
            ValueError: no part has one of the names.
        """
        if dict(self.options.others).get("ambiguity") == "forest":
            message = "trees and captures of ambiguity='forest' are not supported: lark makes no trees of texts then"
            raise UnsupportedFeature(message, hint='ambiguity="explicit" has all trees of a text in one')
        known = _parts(_parser(self, bool(names)))
        for name in names:
            if name not in known:
                hint = (
                    "trees have no rules and terminals that begin with _, no strings of rules, aliases in place of "
                    "rules, and no ?rules that always have one child"
                )
                raise ValueError(f"captures: trees of the grammar have no parts named {name!r:.60}\n  hint: {hint}")


def _parts(parser: Any) -> set[str]:
    """The names of all parts that lark's trees may have."""
    found = set[str]()
    for rule in parser.rules:
        options = rule.options
        everything = options.keep_all_tokens
        kept = [symbol for symbol in rule.expansion if everything or not getattr(symbol, "filter_out", False)]
        found.update(symbol.name for symbol in kept if symbol.is_term)
        inlined = [symbol for symbol in kept if not symbol.is_term and symbol.name.startswith("_")]
        placeholders = parser.options.maybe_placeholders and any(options.empty_indices)
        if rule.alias or not options.expand1 or len(kept) != 1 or inlined or placeholders:
            found.add(rule.alias or options.template_source or rule.origin.name)
    return {name for name in found if not name.startswith("_")}


@lru_cache(maxsize=32)
def _parser(grammar: Parsed, enclosed: bool) -> Any:
    """Lark's parser of a grammar, under the options that the language is that of, and with positions.

    Args:
        enclosed: as for :meth:`Parsed.tree`.
    """
    options, loaded, shape = grammar.options, None, dict[str, Any](propagate_positions=True)
    if enclosed:
        shape["tree_class"] = None
        if dict(options.others).get("ambiguity") == "explicit":
            shape["ambiguity"] = "resolve"
    if options.given:
        keep = bool(dict(options.others).get("keep_all_tokens"))
        loaded = read(grammar.text, grammar.file, options.folders, options.given, keep_all_tokens=keep).grammar
    parser = options.reader(grammar.text, grammar.file, loaded, **shape)
    if any(not one.is_expression for one in options.given):
        parser.parser.parser.term_matcher = Matcher(options.given, parser.parser.parser.term_matcher)
    if enclosed:
        callbacks = parser.parser.parser_conf.callbacks
        for rule in parser.rules:
            callbacks[rule] = _Enclosing(callbacks[rule])
    return parser


class _Enclosing:
    """Makes the part for a rule, as lark does, and keeps where the rule stands if a token is put in its place.

    Lark keeps that of trees only: ``PropagatePositions`` looks for the positions of what encloses a part
    (``container_start_pos`` and others) at trees and tokens, but sets none at tokens.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        from lark.parse_tree_builder import PropagatePositions

        positions: Any = PropagatePositions
        self._make, self._meta = make, positions(make)._pp_get_meta

    def __call__(self, children: Sequence[Any]) -> Any:
        first, last = self._meta(children), self._meta(reversed(children))
        part = self._make(children)
        if hasattr(part, "children") or getattr(part, "type", None) is None:
            return part
        token = _enclosed_token().new_borrow_pos(part.type, str(part), part)
        token.container_start_pos = getattr(first, "container_start_pos", first.start_pos)
        token.container_end_pos = getattr(last, "container_end_pos", last.end_pos)
        return token


@lru_cache(maxsize=1)
def _enclosed_token() -> Any:
    """A class of tokens to which the positions of what encloses them can be added."""
    from lark import Token

    return type("EnclosedToken", (Token,), {})


@dataclass(frozen=True)
class Tree:
    """Makes lark's tree of a text."""

    grammar: Parsed

    def __call__(self, text: str) -> Any:
        return self.grammar.tree(text)


@dataclass(frozen=True)
class Transformed:
    """Makes what a transformer makes of lark's tree of a text.

    Attributes:
        grammar: the grammar.
        transformer: an instance of ``lark.Transformer``, or a class of which one is made for each text.
    """

    grammar: Parsed
    transformer: Any

    def __call__(self, text: str) -> Any:
        """The transformed tree.

        Raises:
            ValidationFailed: the transformer raises an error, which is the cause.
        """
        from lark.exceptions import VisitError

        tree = self.grammar.tree(text)
        transformer = self.transformer() if isinstance(self.transformer, type) else self.transformer
        try:
            return transformer.transform(tree)
        except VisitError as error:
            place = _place(error.obj)
            message = f"{_said(error.orig_exc)} (in {error.rule}{place})"
            raise ValidationFailed(text, (Invalid("#", message),), attempts=0) from error.orig_exc
        except Exception as error:
            raise ValidationFailed(text, (Invalid("#", _said(error)),), attempts=0) from error


def check_transformer(transformer: Any, options: Options) -> None:
    """Check what is given as a transformer.

    Raises:
        TypeError: it is none, or its class cannot be called without arguments.
        UnsupportedFeature: what lark makes of texts are no trees that a transformer could go through.
    """
    with needed_by("transformer="):
        from lark import Transformer, Tree
        from lark.visitors import TransformerChain

    kinds = (Transformer, TransformerChain)
    if not (issubclass(transformer, kinds) if isinstance(transformer, type) else isinstance(transformer, kinds)):
        hint = "gs.lark(..., tree=True).map(function) reads trees by any other function"
        message = f"transformer takes a lark.Transformer or a class of them, not {transformer!r:.60}"
        raise TypeError(f"{message}\n  hint: {hint}")
    if isinstance(transformer, type):
        transformer()
    tree_class = dict(options.others).get("tree_class")
    if tree_class is not None and not (isinstance(tree_class, type) and issubclass(tree_class, Tree)):
        message = "transformer= with a tree_class that is no subclass of lark.Tree is not supported"
        raise UnsupportedFeature(message, hint="lark's transformers go through instances of lark.Tree only")


def _said(error: BaseException) -> str:
    """What an error says, with its class unless it is about a value."""
    plain = isinstance(error, ValueError | AssertionError) and str(error)
    return str(error) if plain else f"{type(error).__name__}: {error}".removesuffix(": ")


def _place(part: Any) -> str:
    """Where a part of a tree stands, for messages."""
    line = getattr(getattr(part, "meta", part), "line", None)
    column = getattr(getattr(part, "meta", part), "column", None)
    return "" if line is None or column is None else f", line {line}, column {column}"


@dataclass(frozen=True)
class Captures:
    """Captures the texts of rules and terminals: of each name a list, in the order in which they begin."""

    grammar: Parsed
    names: tuple[str, ...]

    def __call__(self, text: str) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in self.names}
        pending = [self.grammar.tree(text, enclosed=True)]
        while pending:
            part = pending.pop()
            if hasattr(part, "children"):
                name, meta = part.data, part.meta
                pending += reversed(part.children)
                here = "" if meta.empty else text[meta.start_pos : meta.end_pos]
            else:
                name, here = getattr(part, "type", None), part  # a placeholder is None
            if name in found:
                found[name].append(str(here))
        return found
