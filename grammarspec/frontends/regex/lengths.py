"""Patterns with bounds on the number of characters, where one part alone decides how many a text has.

``^[a-z]\\w*$`` with 3 to 20 characters is ``^[a-z]\\w{2,19}$``. That is far cheaper to run than an intersection of the
pattern with a length, which goes on in both, and whose states are as many as the pattern's times the characters.
"""

from __future__ import annotations

from grammarspec.frontends.regex.charsets import ALL
from grammarspec.frontends.regex.facts import FactTable
from grammarspec.frontends.regex.tree import NOTHING, Alternation, AnyText, Chars, Node, Repeat, Sequence

__all__ = ["of_lengths"]


def of_lengths(node: Node, least: int, most: int | None, table: FactTable) -> Node | None:
    """The texts of a node that have at least ``least`` characters, and at most ``most`` (``None``: any number).

    Args:
        node: without assertions.
        table: the facts of the nodes.

    Returns:
        ``None`` if several parts decide how long a text is.
    """

    def size(node: Node) -> int | None:
        facts = table.of(node)
        return facts.shortest if facts.shortest == facts.longest else None

    fixed = size(node)
    if fixed is not None:
        return node if least <= fixed and (most is None or fixed <= most) else NOTHING
    match node:
        case Sequence(parts):
            sizes = [size(part) for part in parts]
            if sizes.count(None) > 1:
                return None
            varying = sizes.index(None)
            others = sum(one for one in sizes if one is not None)
            if most is not None and most < others:
                return NOTHING
            rest = None if most is None else most - others
            part = of_lengths(parts[varying], max(least - others, 0), rest, table)
            return None if part is None else Sequence((*parts[:varying], part, *parts[varying + 1 :]))
        case Alternation(branches):
            found = [of_lengths(branch, least, most, table) for branch in branches]
            return None if None in found else Alternation(tuple(branch for branch in found if branch is not None))
        case Repeat(body, low, high, lazy):
            each = size(body)
            if not each:
                return None
            low = max(low, -(-least // each))
            bounds = [bound for bound in (high, None if most is None else most // each) if bound is not None]
            high = min(bounds, default=None)
            return Repeat(body, low, high, lazy) if high is None or low <= high else NOTHING
        case AnyText():
            return Repeat(Chars(ALL), least, most)
    return None
