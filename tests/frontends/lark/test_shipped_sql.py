"""The shipped SQL grammar against SQLite's own parser: what the grammar accepts, SQLite finds no error of syntax in."""

from __future__ import annotations

import random
import re
import sqlite3
from pathlib import Path

import pytest

pytest.importorskip("lark")
from tests.oracles.shipped import Derivations, accepts, cases, parser

QUERIES = [
    line
    for line in (Path(__file__).parent / "queries.sql").read_text(encoding="utf-8").splitlines()
    if not line.startswith("--")
]
WORDS = {
    "NAME": ["a", "b", "users", "x1", "Count", "main"],
    "QUOTED_NAME": ['"q r"', "[s]", "`t`"],
    "PARAMETER": ["?", "?1", ":p", "@q", "$r"],
    "STRING": ["'s'", "''", "'it''s'"],
    "BLOB": ["x'00'", "X''"],
    "NUMBER": ["1", "2.5", ".5", "1e3", "0x1F", "1."],
}
TOKEN = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|--.*|/\*.*?\*/|\w+|[<>=!]=|<>|\|\||->>?|<<|>>|[^\w\s]""")
BETWEEN = [" ", " ", " ", "", "\n", "/* c */", "-- d\n"]
pytestmark = pytest.mark.skipif(
    sqlite3.sqlite_version_info < (3, 39), reason="SQLite is older than what the grammar is of"
)


def syntax_error(statement: str) -> str:
    """What SQLite's parser says against a statement, or ``""``; that there is no such table is nothing against it."""
    with sqlite3.connect(":memory:") as connection:
        try:
            connection.execute(f"EXPLAIN {statement}")
        except sqlite3.Error as error:
            said = str(error)
            return said if re.search("syntax error|unrecognized token|incomplete input|one statement", said) else ""
    return ""


def changed(draw: random.Random, tokens: list[str], others: list[str]) -> list[str]:
    """Tokens of which some are left out, added, replaced or exchanged."""
    tokens = list(tokens)
    for _ in range(draw.randint(1, 3)):
        at, other = draw.randrange(len(tokens)), draw.randrange(len(tokens))
        match draw.randrange(4):
            case 0 if len(tokens) > 1:
                del tokens[at]
            case 1:
                tokens.insert(at, draw.choice(others))
            case 2:
                tokens[at] = draw.choice(others)
            case _:
                tokens[at], tokens[other] = tokens[other], tokens[at]
    return tokens


def test_everyday_queries() -> None:
    assert len(set(QUERIES)) >= 300
    contains = accepts("sql")
    assert [query for query in QUERIES if not contains(query)] == []
    assert [query for query in QUERIES if syntax_error(query)] == []


LEFT_OUT = {"DROP TABLE t", "PRAGMA foreign_keys = ON", "ALTER TABLE t ADD COLUMN a", "BEGIN"}
"""What SQLite parses among the rejected cases."""


def test_cases() -> None:
    assert [text for text in cases("sql")["accept"] if syntax_error(text)] == []
    one = [text for text in cases("sql")["reject"] if ";" not in text]
    assert {text for text in one if not syntax_error(text)} == LEFT_OUT


@pytest.mark.parametrize("seed", range(2))
def test_sqlite_parses_whatever_is_derived(seed: int) -> None:
    draw, contains = random.Random(seed), accepts("sql")
    derivations = Derivations(parser("sql"), WORDS)
    texts = [
        "".join(token + draw.choice(BETWEEN) for token in derivations.tokens(draw, draw.randint(5, 35)))
        for _ in range(150)
    ]
    found = [text for text in texts if contains(text)]
    assert len(found) > 20  # glued tokens are others
    assert {text: said for text in found if (said := syntax_error(text))} == {}


@pytest.mark.parametrize("seed", range(2))
def test_sqlite_parses_what_remains_of_changed_queries(seed: int) -> None:
    draw, contains = random.Random(seed), accepts("sql")
    tokens = [TOKEN.findall(query) for query in QUERIES]
    all_tokens = [token for query in tokens for token in query]
    blanks = [" "] * 30 + BETWEEN
    texts = ["".join(t + draw.choice(blanks) for t in changed(draw, query, all_tokens)) for query in tokens * 3]
    found = [text for text in texts if contains(text)]
    assert len(found) > 50
    assert {text: said for text in found if (said := syntax_error(text))} == {}
