"""Which texts does a schema's grammar take? Asked of the compiled automaton over single bytes."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import grammarspec as gs

__all__ = ["BYTES", "Case", "acceptor", "check", "corpus", "dumps", "orders", "walk"]

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


def walk(constraint: gs.Constraint, random_: random.Random, length: int) -> bytes:
    """A text written by random choice among the allowed bytes, then by the shortest way to an end."""
    state, written = constraint.start, bytearray()
    for _ in range(length):
        mask = constraint.mask(state)
        allowed = [byte for byte in range(256) if mask[byte >> 3] >> (byte & 7) & 1]
        if not allowed:
            break
        frequent = [byte for byte in allowed if chr(byte) in '{}[],:"0123456789truefalsnab.-e']
        byte = random_.choice(frequent if frequent and random_.random() < 0.9 else allowed)
        following = constraint.step(state, byte)
        assert following is not None
        state = following
        written.append(byte)
    for token in constraint.shortest_completion(state):
        if token < 256:
            written.append(token)
    return bytes(written)
