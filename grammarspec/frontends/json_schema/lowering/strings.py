"""Strings: from a conjunction to the spellings of the strings that satisfy it."""

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
    """The strings that a conjunction allows."""
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
    """Counts that the builder takes. Nothing is ever as long as its limit, so larger maxima are cut to that.

    Raises:
        LimitExceeded: the minimum is beyond the limit.
    """
    if least >= UNBOUNDED:
        raise LimitExceeded(f"a minimum length or count of {least} (at most {UNBOUNDED - 1})")
    return least, most if most is None else min(most, UNBOUNDED - 1)


def text_of(lowering: Lowering, facts: Conjunction, words: Sequence[str] | None = None) -> Text:
    """The texts that a conjunction allows, in the exact alphabet; of these ``words`` only, if they are given."""
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
    """The texts in which an ECMA-262 pattern is found, in the exact alphabet.

    Args:
        where: the JSON pointer of the pattern.
        assured: the node is intersected with one that has well-formed texts only, so that it may have others.

    Raises:
        GrammarError: the pattern is malformed, or uses what is not supported.
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
