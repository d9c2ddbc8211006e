"""Strings: makes the node of the strings that satisfy a conjunction.

Lengths, patterns and formats are regular languages over the contents of strings (the *exact alphabet*); they are
intersected, and the result is translated to JSON's spelling of strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from grammarspec.errors import GrammarError, LimitExceeded
from grammarspec.frontends.json_schema.lowering.context import Lowering, Text
from grammarspec.frontends.json_schema.normal_form.shapes import Format, Pattern, StringShape
from grammarspec.frontends.regex.lower import lower_search, lower_search_of_lengths
from grammarspec.frontends.regex.matching import parsed
from grammarspec.frontends.regex.patterns import charge
from grammarspec.grammars.builder import UNBOUNDED

_SOON = 8
"""Behind more characters than this, a pattern with a length costs less if it forgets its rest once it matches."""

__all__ = ["clamp", "pattern_text", "string_node", "text_of"]


def string_node(lowering: Lowering, shape: StringShape) -> int:
    """The node of the strings of a shape.

    Raises:
        GrammarError: a pattern is malformed or not supported, or a length is beyond the limit.
    """
    if shape.most is not None and shape.least > shape.most:
        return lowering.builder.nothing
    if not shape.texts and not shape.excluded and shape.words is None:
        free = shape.least == 0 and shape.most is None
        return lowering.text.string if free else lowering.text.free_string(*clamp(shape.least, shape.most))
    text = text_of(lowering, shape)
    return lowering.text.exact_string(text.node, asserting=text.asserting)


def clamp(least: int, most: int | None) -> tuple[int, int | None]:
    """Bounds of a count, as the builder takes them. A larger maximum is cut to the builder's limit (a narrowing).

    Raises:
        LimitExceeded: the minimum is beyond the builder's limit.
    """
    if least >= UNBOUNDED:
        raise LimitExceeded(f"a minimum length or count of {least} (at most {UNBOUNDED - 1})")
    return least, most if most is None else min(most, UNBOUNDED - 1)


def text_of(lowering: Lowering, shape: StringShape) -> Text:
    """The contents of the strings of a shape, in the exact alphabet.

    Raises:
        GrammarError: a pattern is malformed or not supported, or a length is beyond the limit.
    """
    b, exact = lowering.builder, lowering.text.exact
    parts: list[int] = []
    asserting = False
    texts = list(shape.texts)
    sized = None if shape.words is not None else _sized(lowering, texts, clamp(shape.least, shape.most))
    assuring = None if shape.words is not None or shape.most is not None else _assuring(texts, shape.least)
    if shape.words is not None:
        parts.append(exact.words(shape.words))
    elif sized is not None:
        parts.append(sized)
    elif assuring is None:
        parts.append(b.repeat(exact.character, *clamp(shape.least, shape.most)))
    else:
        texts.remove(assuring)
        node, looks = _one_text(lowering, assuring, assured=False)
        asserting |= looks
        parts.append(node)
        if shape.least:
            least, _ = clamp(shape.least, None)
            parts.append(b.seq(b.repeat(exact.character, least, least), b.anything))
    for text in texts:
        node, looks = _one_text(lowering, text, assured=True)
        asserting |= looks
        parts.append(node if text.wanted else b.complement(node))
    if shape.excluded:
        parts.append(b.complement(exact.words(shape.excluded)))
    return Text(b.both(*parts), asserting)


def _sized(lowering: Lowering, texts: list[Pattern | Format], lengths: tuple[int, int | None]) -> int | None:
    """The texts of these lengths in which a pattern is found, which is removed from ``texts``.

    Returns:
        ``None`` if no pattern can take the lengths over, or if they are not bounded.
    """
    if lengths == (0, None):
        return None
    for text in texts:
        if isinstance(text, Pattern) and text.wanted:
            node = pattern_of_lengths(lowering, text, lengths)
            if node is not None:
                texts.remove(text)
                return node
    return None


def _assuring(texts: Sequence[Pattern | Format], least: int) -> Pattern | Format | None:
    """The format or pattern that holds well-formed texts only, so that all else it is intersected with may hold others,
    too: a lower bound of the length asks nothing behind so many characters then, and the intersection is left soon."""
    found = next((text for text in texts if isinstance(text, Format) and text.wanted), None)
    alone = len(texts) == 1 and texts[0].wanted and least <= _SOON
    return found or (texts[0] if alone else None)


def _one_text(lowering: Lowering, text: Pattern | Format, *, assured: bool) -> Text:
    """The texts in which a pattern matches, or those of a format, whether that is wanted or not."""
    match text:
        case Pattern():
            return pattern_text(lowering, text, assured=assured)
        case Format(name, wanted):
            return Text(lowering.format(name, around=not wanted), False)


def pattern_text(lowering: Lowering, pattern: Pattern, *, assured: bool = False) -> Text:
    """The texts that contain a match of a pattern, whether that is wanted or not, in the exact alphabet.

    Args:
        assured: whether the caller intersects the node with one of well-formed texts only. The node may then contain
            other texts, too, which makes it smaller.

    Raises:
        GrammarError: the pattern is malformed, or uses a construct that is not supported.
    """
    known = lowering.patterns.get((pattern.text, assured))
    if known is None:
        b = lowering.builder
        looks = b.looks
        with _refusing(pattern):
            charge(pattern.text, b.budget)
            node = lower_search(parsed(pattern.text), b, lowering.text.exact, unchecked_rest=assured)
        known = lowering.patterns[pattern.text, assured] = Text(node, b.looks > looks)
    return known


def pattern_of_lengths(lowering: Lowering, pattern: Pattern, lengths: tuple[int, int | None]) -> int | None:
    """The texts that contain a match of a pattern and have so many characters; ``None`` if this takes an intersection.

    Raises:
        GrammarError: as :func:`pattern_text`.
    """
    b = lowering.builder
    with _refusing(pattern):
        charge(pattern.text, b.budget)
        return lower_search_of_lengths(parsed(pattern.text), b, lowering.text.exact, lengths)


@contextmanager
def _refusing(pattern: Pattern) -> Iterator[None]:
    """Errors that say in which keyword the pattern stands."""
    try:
        yield
    except GrammarError as error:
        raise pattern.refused(error) from None
