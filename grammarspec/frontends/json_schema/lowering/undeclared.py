"""Undeclared members: makes the node of one member whose name is not among the declared ones.

The names of each class are a regular language: an intersection of patterns and complements of patterns.
"""

from __future__ import annotations

from collections.abc import Sequence

from grammarspec.frontends.json_schema.lowering.context import Lowering, Text
from grammarspec.frontends.json_schema.lowering.strings import pattern_text, text_of
from grammarspec.frontends.json_schema.normal_form.shapes import Pattern, StringShape, UndeclaredMembers

__all__ = ["undeclared_member"]


def undeclared_member(lowering: Lowering, members: UndeclaredMembers) -> int | None:
    """The node of an undeclared member: the name, the colon and the value.

    Returns:
        The node; ``None`` if there can be no such member.

    Raises:
        GrammarError: a pattern is malformed or not supported.
    """
    b, text = lowering.builder, lowering.text
    common: list[Text] | None = None
    parts = []
    for one in members.classes:
        values = lowering.values(one.value)
        if not values:
            continue
        if not (one.patterns or members.patterns or members.names):
            parts.append(b.seq(*text.undeclared(text.key_except(members.taken), values)))
            continue
        if common is None:
            common = _common(lowering, members)
        names = [*_matching(lowering, one.patterns), *common]
        if b.nothing not in [name.node for name in names]:
            negative = bool(common) or not any(pattern.wanted for pattern in one.patterns)
            node = b.both(*([text.exact.any_text] if negative else []), *(name.node for name in names))
            key = text.exact_key(node, asserting=any(name.asserting for name in names))
            parts.append(b.seq(*text.undeclared(key, values)))
    return b.alt(*parts) if parts else None


def _common(lowering: Lowering, members: UndeclaredMembers) -> list[Text]:
    """Regular languages to all of which the names of all classes belong."""
    b = lowering.builder
    common = [_one_of(lowering, shapes) for shapes in members.names] + _matching(lowering, members.patterns)
    if members.taken:
        common.append(Text(b.complement(lowering.text.exact.words(members.taken)), False))
    return common


def _matching(lowering: Lowering, patterns: Sequence[Pattern]) -> list[Text]:
    """The names that match a pattern, or do not, for each of some patterns."""
    texts = [(pattern.wanted, pattern_text(lowering, pattern)) for pattern in patterns]
    return [text if wanted else Text(lowering.builder.complement(text.node), text.asserting) for wanted, text in texts]


def _one_of(lowering: Lowering, shapes: Sequence[StringShape]) -> Text:
    """The strings that satisfy one of these shapes, in the exact alphabet."""
    b = lowering.builder
    texts = [text_of(lowering, shape) for shape in shapes]
    kept = [text for text in texts if text.node != b.nothing]
    if not kept:
        return Text(b.nothing, False)
    return Text(b.alt(*(text.node for text in kept)), any(text.asserting for text in kept))
