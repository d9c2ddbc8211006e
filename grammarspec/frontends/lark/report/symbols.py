"""Rules and terminals of a ``.lark`` grammar that nothing uses, or that have no texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grammarspec.frontends.lark.contradictions import unproductive
from grammarspec.frontends.lark.loader import Source
from grammarspec.frontends.lark.options import Options
from grammarspec.frontends.lark.report.findings import Finding
from grammarspec.frontends.lark.tree import Alternatives, Body, Maybe, Repetition, Sequence, Symbol, TemplateUse

__all__ = ["symbols"]


def symbols(source: Source, options: Options) -> Iterator[Finding]:
    """The rules and terminals that nothing uses, and the used ones that have no texts."""
    used = _used(source, options)
    for name in [*source.rules, *source.terminals]:
        place = _place(source, name)
        if name not in used and place:
            kind = "terminal" if name in source.terminals else "rule"
            yield Finding("unused", f"the {kind} {name} is used by nothing that is reached from the start", place)
    for name, why in unproductive(source, used, options.dialect):
        kind = "terminal" if name in source.terminals else "rule"
        yield Finding("unproductive", f"the {kind} {name} {why}", _place(source, name))


def _place(source: Source, name: str) -> str:
    """Where a name is defined or, by itself, imported; ``""`` for what another grammar brings with it."""
    return source.text.definition(name) or source.text.imported(name)


def _used(source: Source, options: Options) -> set[str]:
    """The rules and terminals that are reached from the start, are ignored, or are made of lines' indentation."""
    used: set[str] = set()
    terminals = {id(tree): name for name, tree in source.terminals.items() if tree is not None}
    todo = [*options.start, *source.ignored, *_of_indenter(dict(options.others).get("postlex"))]
    while todo:
        name = todo.pop()
        if name in used:
            continue
        used.add(name)
        if name in source.rules and (body := source.rules[name].body):
            todo += _names(body)
        elif source.terminals.get(name) is not None:
            todo += _references(source.terminals[name], terminals)
    return used


def _of_indenter(indenter: Any) -> list[str]:
    """The terminals that an indenter names."""
    if indenter is None:
        return []
    types = [indenter.NL_type, indenter.INDENT_type, indenter.DEDENT_type]
    return [*types, *indenter.OPEN_PAREN_types, *indenter.CLOSE_PAREN_types]


def _names(body: Body) -> Iterator[str]:
    """The names that a body mentions, those of a template's parameters among them."""
    match body:
        case Alternatives(parts) | Sequence(parts):
            for part in parts:
                yield from _names(part)
        case Maybe(inner) | Repetition(inner, _, _):
            yield from _names(inner)
        case TemplateUse(name, arguments):
            yield name
            for argument in arguments:
                yield from _names(argument)
        case Symbol(name, _):
            yield name


def _references(tree: Any, names: Mapping[int, str]) -> Iterator[str]:
    """The terminals that lark's tree of a terminal mentions: their trees stand in it, found by their identity."""
    for part in tree.iter_subtrees():
        if part is not tree and id(part) in names:
            yield names[id(part)]
