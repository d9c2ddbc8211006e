"""Which texts does a schema's grammar take? Asked of the compiled automaton over single bytes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import grammarspec as gs

__all__ = ["BYTES", "Case", "acceptor", "check", "corpus", "dumps", "orders"]

BYTES = gs.Vocabulary.bytes()


def acceptor(schema: Any, **options: Any) -> Callable[[str], bool]:
    """A function that tells whether a text is in the language of the schema."""
    constraint = gs.compile(gs.json_schema(schema, **options), BYTES)

    @cache
    def accepts(text: str) -> bool:
        data = text.encode()
        matcher = constraint.matcher()
        return matcher.accept_tokens(list(data)) == len(data) and matcher.is_accepting

    return accepts


@dataclass
class Case:
    """A schema (as text) with texts of its language, and others."""

    schema: str
    accepted: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def corpus(name: str) -> list[Case]:
    """The cases of a file beside this one; its first line says how they are written."""
    cases: list[Case] = []
    for line in (Path(__file__).parent / name).read_text().splitlines():
        if line.startswith("  +"):
            cases[-1].accepted.append(line[4:])
        elif line.startswith("  -"):
            cases[-1].refused.append(line[4:])
        elif line and not line.startswith("#"):
            cases.append(Case(line))
    return cases


def check(schema: Any, case: Case, **options: Any) -> None:
    """Every text of the case gets the right answer."""
    accepts = acceptor(schema, **options)
    assert [text for text in case.accepted if not accepts(text)] == []
    assert [text for text in case.refused if accepts(text)] == []


def dumps(value: Any) -> str:
    """How the tests write a value: as ``json.dumps`` does, with text as it is."""
    return json.dumps(value, ensure_ascii=False)


def orders(value: Any) -> Iterator[Any]:
    """The value with the members of its objects in every order (of small objects)."""
    if isinstance(value, dict):
        for names in itertools.permutations(value):
            for members in itertools.product(*(list(orders(value[name])) for name in names)):
                yield dict(zip(names, members, strict=True))
    elif isinstance(value, list):
        yield from (list(items) for items in itertools.product(*(list(orders(item)) for item in value)))
    else:
        yield value
