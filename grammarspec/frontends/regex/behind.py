"""Lookbehinds that hold assertions about what follows, such as ``(?<=\\b)`` or ``(?<=;$)``.

What is before a position is read forwards to that position and no further, so an assertion that looks on from within
is moved out: at the end of a lookbehind it stands at the very position of the lookbehind itself.
"""

from __future__ import annotations

from grammarspec.frontends.regex.facts import FactTable
from grammarspec.frontends.regex.tree import EMPTY, Alternation, End, Look, Node, Repeat, Rest, Sequence

__all__ = ["lookbehind", "looks_ahead"]


def lookbehind(body: Node, negative: bool) -> Node | None:
    """A node equal to the lookbehind in which no lookbehind holds an assertion about what follows.

    ``None``: the body has one somewhere but at its end.
    """
    if not looks_ahead(body):
        return Look(body, False, negative)
    apart = _apart(body, FactTable())
    if apart is None or not negative:
        return apart
    return Look(apart, True, True)  # the opposite of what holds without any text


def looks_ahead(node: Node) -> bool:
    """Whether the node holds an assertion about what follows, outside lookbehinds."""
    todo = [node]
    while todo:
        node = todo.pop()
        match node:
            case End() | Look(ahead=True) | Rest(ahead=True):
                return True
            case Sequence(parts) if node.asserts:
                todo += parts
            case Alternation(branches) if node.asserts:
                todo += branches
            case Repeat(inner) if node.asserts:
                todo.append(inner)
    return False


def _apart(node: Node, table: FactTable) -> Node | None:
    """Zero-width: a text of the node ends here."""
    if not looks_ahead(node):
        return Look(node, False, False)
    match node:
        case Alternation(branches):
            return _any([_apart(branch, table) for branch in branches])
        case Repeat(inner, least, _) if least == 0:
            return EMPTY
        case Repeat(inner) if table.of(inner).zero_width:
            return _apart(inner, table)
        case Sequence(parts):
            end = len(parts)
            while end and table.of(parts[end - 1]).zero_width:
                end -= 1
            before, after = parts[:end], parts[end:]
            if not any(map(looks_ahead, before)):
                return Sequence((Look(Sequence(before), False, False), *after)) if before else node
            if not after and isinstance(parts[-1], Alternation):
                return _any([_apart(Sequence((*parts[:-1], branch)), table) for branch in parts[-1].branches])
            return None
        case Look() | End():
            return node
    return None


def _any(branches: list[Node | None]) -> Node | None:
    found = tuple(branch for branch in branches if branch is not None)
    return Alternation(found) if len(found) == len(branches) else None
