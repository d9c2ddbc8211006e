"""Patterns with bounds on the number of characters, where one part alone decides how many a text has.

``^[a-z]\\w*$`` with 3 to 20 characters is ``^[a-z]\\w{2,19}$``. That is far cheaper to run than an intersection of the
pattern with a length, which goes on in both, and whose states are as many as the pattern's times the characters.
"""

from __future__ import annotations

from grammarspec.frontends.regex.charsets import ALL
from grammarspec.frontends.regex.tree import NOTHING, Alternation, AnyText, Chars, Node, Repeat, Sequence, Text

__all__ = ["of_lengths"]


def of_lengths(node: Node, least: int, most: int | None) -> Node | None:
    """The texts of a node that have at least ``least`` characters, and at most ``most`` (``None``: any number).

    Args:
        node: without assertions.

    Returns:
        ``None`` if several parts decide how long a text is.
    """
    size = _size(node)
    if size is not None:
        return node if least <= size and (most is None or size <= most) else NOTHING
    match node:
        case Sequence(parts):
            sizes = [_size(part) for part in parts]
            if sizes.count(None) > 1:
                return None
            varying, others = sizes.index(None), sum(size for size in sizes if size is not None)
            if most is not None and most < others:
                return NOTHING
            part = of_lengths(parts[varying], max(least - others, 0), None if most is None else most - others)
            return None if part is None else Sequence((*parts[:varying], part, *parts[varying + 1 :]))
        case Alternation(branches):
            found = [of_lengths(branch, least, most) for branch in branches]
            return None if None in found else Alternation(tuple(branch for branch in found if branch is not None))
        case Repeat(body, low, high, lazy):
            each = _size(body)
            if not each:
                return None
            low = max(low, -(-least // each))
            bounds = [bound for bound in (high, None if most is None else most // each) if bound is not None]
            high = min(bounds, default=None)
            return Repeat(body, low, high, lazy) if high is None or low <= high else NOTHING
        case AnyText():
            return Repeat(Chars(ALL), least, most)
    return None


def _size(node: Node) -> int | None:
    """The number of characters of each text of a node; ``None`` if they differ, or if that is not known."""
    match node:
        case Text(text):
            return len(text)
        case Chars():
            return 1
        case Sequence(parts):
            sizes = [_size(part) for part in parts]
            return None if None in sizes else sum(size for size in sizes if size is not None)
        case Alternation(branches):
            same = {_size(branch) for branch in branches}
            return same.pop() if len(same) == 1 else None
        case Repeat(body, least, most) if least == most:
            each = _size(body)
            return None if each is None else each * least
    return None
