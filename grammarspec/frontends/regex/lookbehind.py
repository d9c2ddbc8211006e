"""Lookbehinds whose body holds assertions about what follows, such as ``(?<=\\b)`` or ``(?<=;$)``.

The automaton of a lookbehind reads the text up to the lookbehind's position and no further, so it cannot decide an
assertion about what follows. Such an assertion at the end of the body stands at the position of the lookbehind itself:
it is moved out of the lookbehind, to stand beside it. One that is followed by text within the body cannot be moved, and
the pattern is refused.
"""

from __future__ import annotations

from grammarspec.frontends.regex.facts import FactTable
from grammarspec.frontends.regex.tree import EMPTY, Alternation, End, Look, Node, Repeat, Rest, Sequence

__all__ = ["lookbehind", "looks_ahead"]


def lookbehind(body: Node, negative: bool) -> Node | None:
    """A node equal to the lookbehind of this body, in which no lookbehind holds an assertion about what follows.

    ``None``: the body has such an assertion, with text behind it.
    """
    if not looks_ahead(body):
        return Look(body, False, negative)
    moved = _moved_out(body, FactTable())
    if moved is None or not negative:
        return moved
    return Look(moved, True, True)  # of a zero-width node, the negative lookahead is the negation


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


def _moved_out(node: Node, table: FactTable) -> Node | None:
    """A zero-width node: a text of this node ends here. Assertions about what follows stand outside its lookbehinds."""
    if not looks_ahead(node):
        return Look(node, False, False)
    match node:
        case Alternation(branches):
            return _any([_moved_out(branch, table) for branch in branches])
        case Repeat(inner, least, _) if least == 0:
            return EMPTY
        case Repeat(inner) if table.of(inner).zero_width:
            return _moved_out(inner, table)
        case Sequence(parts):
            end = len(parts)
            while end and table.of(parts[end - 1]).zero_width:
                end -= 1
            before, after = parts[:end], parts[end:]
            if not any(map(looks_ahead, before)):
                return Sequence((Look(Sequence(before), False, False), *after)) if before else node
            if not after and isinstance(parts[-1], Alternation):
                return _any([_moved_out(Sequence((*parts[:-1], branch)), table) for branch in parts[-1].branches])
            return None
        case Look() | End():
            return node
    return None


def _any(branches: list[Node | None]) -> Node | None:
    """Any of the branches; ``None`` if one of them is."""
    found = tuple(branch for branch in branches if branch is not None)
    return Alternation(found) if len(found) == len(branches) else None
