"""Strings: makes the node of the strings that satisfy a conjunction.

Lengths, patterns and formats are regular languages over the contents of strings (the *exact alphabet*); they are
intersected, and the result is translated to JSON's spelling of strings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from grammarspec.errors import GrammarError, LimitExceeded
from grammarspec.frontends.json_schema.keywords.conjunction import Concern, Conjunction
from grammarspec.frontends.json_schema.lowering.context import Lowering, Text
from grammarspec.frontends.json_schema.meaning.matching import parsed
from grammarspec.frontends.regex.lower import lower_search
from grammarspec.grammars.builder import UNBOUNDED

__all__ = ["clamp", "pattern_text", "string_node", "text_of"]


def string_node(lowering: Lowering, facts: Conjunction) -> int:
    """The node of the strings that a conjunction allows.

    Raises:
        GrammarError: a pattern is malformed or not supported, or a length is beyond the limit.
    """
    if not facts.asked & (Concern.LENGTH | Concern.TEXT | Concern.EXCLUDED):
        return lowering.text.string
    least, most = facts.min_length, facts.max_length
    if most is not None and least > most:
        return lowering.builder.nothing
    excluded = [constant for constant in facts.excluded if isinstance(constant, str)]
    if not facts.texts and not excluded:
        return lowering.text.string if least == 0 and most is None else lowering.text.free_string(*clamp(least, most))
    text = text_of(lowering, facts)
    return lowering.text.exact_string(text.node, asserting=text.asserting)


def clamp(least: int, most: int | None) -> tuple[int, int | None]:
    """Bounds of a count, as the builder takes them. A larger maximum is cut to the builder's limit (a narrowing).

    Raises:
        LimitExceeded: the minimum is beyond the builder's limit.
    """
    if least >= UNBOUNDED:
        raise LimitExceeded(f"a minimum length or count of {least} (at most {UNBOUNDED - 1})")
    return least, most if most is None else min(most, UNBOUNDED - 1)


def text_of(lowering: Lowering, facts: Conjunction, words: Sequence[str] | None = None) -> Text:
    """The contents of the strings that a conjunction allows, in the exact alphabet.

    Args:
        words: if given, only these are allowed, and bounds of the length are not applied.

    Raises:
        GrammarError: a pattern is malformed or not supported, or a length is beyond the limit.
    """
    b, exact = lowering.builder, lowering.text.exact
    parts: list[int] = []
    asserting = False
    if words is not None:
        parts.append(exact.words(words))
    elif facts.min_length > 0 or facts.max_length is not None:
        parts.append(b.repeat(exact.character, *clamp(facts.min_length, facts.max_length)))
    excluded = [constant for constant in facts.excluded if isinstance(constant, str)]
    if not parts and (excluded or len(facts.texts) > 1 or not all(facet.wanted for facet in facts.texts)):
        parts.append(exact.any_text)
    for keyword, argument, wanted, schema in facts.texts:
        if keyword == "pattern":
            where = partial(schema.where, "pattern")
            node, looks = pattern_text(lowering, argument, where, assured=bool(parts))
            asserting |= looks
        else:
            node = lowering.formats.inside(argument) if wanted else lowering.formats.around(argument)
        parts.append(node if wanted else b.complement(node))
    if excluded:
        parts.append(b.complement(exact.words(excluded)))
    return Text(b.both(*parts) if parts else exact.any_text, asserting)


def pattern_text(lowering: Lowering, pattern: str, where: Callable[[], str], *, assured: bool = False) -> Text:
    """The texts that contain a match of an ECMA-262 pattern, in the exact alphabet.

    Args:
        where: returns the JSON pointer of the pattern, for errors.
        assured: whether the caller intersects the node with one of well-formed texts only. The node may then contain
            other texts, too, which makes it smaller.

    Raises:
        GrammarError: the pattern is malformed, or uses a construct that is not supported.
    """
    known = lowering.patterns.get((pattern, assured))
    if known is None:
        b = lowering.builder
        looks = b.looks
        try:
            node = lower_search(parsed(pattern), b, lowering.text.exact, unchecked_rest=assured)
        except GrammarError as error:
            place = f"{error.where}\n  at {where()}" if error.where else where()
            raise type(error)(f"pattern: {error.message}", where=place, hint=error.hint) from None
        known = lowering.patterns[pattern, assured] = Text(node, b.looks > looks)
    return known
