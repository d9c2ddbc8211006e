"""Masks on a real vocabulary, where every shortcut of the engine is worth taking: each bit against acceptance."""

from __future__ import annotations

import random
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest

import grammarspec as gs
from tests import tiers
from tests.counting import compared

ARITHMETIC = r"""
start: expression
expression: term ((" + " | " - ") term)*
term: factor (("*" | "/") factor)*
factor: NUMBER | NAME ("(" (expression (", " expression)*)? ")")? | "(" expression ")"
NUMBER: /[0-9]+(\.[0-9]+)?/
NAME: /[a-z][a-z0-9_]*/
"""
QUERY = r"""
start: "SELECT " NAME (", " NAME)* " FROM " NAME (" WHERE " NAME / (=|<|>) / (NAME | STRING))? ";"
NAME: /[a-zA-Z_][a-zA-Z0-9_]*(\.[a-z]+)?/
STRING: /'([^'\n]|'')*'/
"""
STATEMENTS = r"""
start: (statement _END)*
statement: "let" NAME "=" value | "print" "(" value ("," value)* ")" | NAME "[" value "]" "=" value
value: NAME | NUMBER | STRING | "(" value ")" | value ("+" | "-" | ".") NAME
NAME: /[A-Za-z_][A-Za-z0-9_]*/
NUMBER: /[0-9]+(\.[0-9]+)?/
STRING: /"([^"\\\n]|\\.)*"/
_END: ";" | /\n/
BLANKS: /[ \t]/
%ignore BLANKS
"""
"""One blank is a lexeme, so that a large part of all tokens begins behind one."""
KEYS = ["name", "names", "id", "description", 'quo"ted', "naïve", "日本", "a b", "n"]
TEXT: dict[str, Any] = {"type": "string"}
# behind each letter another residual, as a range may begin there
RANGES = "|".join(f"{letter}(?:-[{letter}-z])?" for letter in ascii_lowercase)
GRAMMARS: dict[str, gs.Grammar] = {
    "arithmetic": gs.lark(ARITHMETIC),
    "query": gs.lark(QUERY),
    "words": gs.lark('start: (word " "?)*\nword: /[a-z]+/'),
    "any text": gs.regex(r".{0,300}"),
    "letters and blanks": gs.regex(r"[a-z ]{0,2000}"),
    "email": gs.regex(r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}"),
    "nested": gs.regex(r"((([a-z]*[0-9]?)*)*x?)*!"),
    "greek": gs.regex(r"[α-ωa-z]+( [α-ω]+)*!?"),
    "search": gs.regex(r".*(cat|dog|日本).*"),
    "search with counts": gs.json_schema({**TEXT, "pattern": "[0-9a-f]{2}-[0-9a-f]{12}"}),
    "counts in words": gs.regex(r"([a-z]{10,14}x|[a-zA-Z]{9,30} )*[a-z .]*"),
    "ranges": gs.regex(rf"(?:{RANGES}|[^-a-z\]])*\]"),
    "classes": gs.json_schema({**TEXT, "format": "regex"}),
    "counted": gs.regex(r'"([a-zA-Z0-9 ]|\\["\\n]|é){2,6}"[,}]?'),
    "counted, quotes doubled": gs.regex(r'"([a-zA-Z0-9 ]|""){1,6}"x?'),
    "counted in several ways": gs.regex(r'"([a-zA-Z]|[a-z]{2}|\\n){0,4}",?'),
    "no blank first": gs.json_schema({**TEXT, "pattern": "^[^ /].*$"}),
    "path": gs.json_schema({**TEXT, "pattern": "^/([a-zA-Z0-9._~!$&'()*+,;=:@ -]|%[0-9a-f]{2}|/[a-z])*$"}),
    "one of three letters": gs.json_schema({**TEXT, "pattern": "E|L|G"}),
    "search for an address": gs.json_schema({**TEXT, "pattern": "^(http)|(https)://(.*)$"}),
    "address": gs.json_schema({**TEXT, "pattern": r"^(https?|ftp)://[^\s/$.?#].[^\s]*$"}),
    "host and path": gs.json_schema(
        {**TEXT, "pattern": r"^(https?:\/\/)?([\da-z\.-]+)\.([a-z\.]{2,6})([\/\w \.-]*)*\/?$"}
    ),
    "name": gs.json_schema({**TEXT, "pattern": "^[a-z0-9][a-z0-9_-]*$"}),
    "signs around": gs.json_schema({**TEXT, "pattern": r"^[^\s@]+@[^\s@]+\.[^\s@]+$"}),
    "host name": gs.json_schema({**TEXT, "format": "hostname"}),
    "search with a long count": gs.json_schema({**TEXT, "pattern": "[0-9a-f]{64}"}),
    "search in long texts": gs.json_schema({**TEXT, "pattern": "[0-9]+-[a-f]*", "minLength": 12}),
    "two searches": gs.json_schema(
        {"allOf": [{**TEXT, "pattern": "[0-9]{3}"}, {"pattern": "(cat|dog)s?"}], "minLength": 4}
    ),
    "search for one of many": gs.json_schema(
        {**TEXT, "pattern": "UTC|(Africa/[A-Za-z]+)|(Asia/[A-Za-z]+)|(Europe/[A-Za-z]+)"}
    ),
    "counted words": gs.json_schema({**TEXT, "pattern": r"^(?:\S+\s+){0,4}\S+$"}),
    "bounded words": gs.json_schema({**TEXT, "pattern": r"^(?:\S+\s+){0,9}\S+$", "minLength": 1, "maxLength": 60}),
    "bounded words, escaped": gs.json_schema(
        {**TEXT, "pattern": r"^(?:\S+\s+){0,5}\S+$", "maxLength": 40}, ensure_ascii=True
    ),
    "bounded letters": gs.json_schema({**TEXT, "pattern": "^[a-z ]+$", "maxLength": 40}),
    "bounded address": gs.json_schema({**TEXT, "format": "email", "maxLength": 70}),
    "bounded time": gs.json_schema({**TEXT, "format": "date-time", "maxLength": 50}),
    "bounded expression": gs.json_schema({**TEXT, "format": "regex", "maxLength": 60}),
    "twelve, of which one is a digit": gs.json_schema(
        {**TEXT, "pattern": "[0-9a-f]+", "minLength": 12, "maxLength": 12}
    ),
    "twelve, escaped": gs.json_schema(
        {**TEXT, "pattern": "[0-9a-f]+", "minLength": 8, "maxLength": 12}, ensure_ascii=True
    ),
    "two parts, bounded": gs.json_schema({**TEXT, "pattern": "^[^/]+/[^/]+$", "maxLength": 30}),
    "two parts of which one is short": gs.regex("[a-z0-9]{1,9}(-[a-z0-9]{2,9})?[.,]"),
    "all but a few letters, bounded": gs.regex("[^éл日]{3,15}x?"),
    "all but a few letters behind one, bounded": gs.regex("[a-z][^éл日-]{3,15}x?"),
    "identifier": gs.json_schema({**TEXT, "pattern": "^[a-zA-Z_][a-zA-Z0-9_]{0,20}$"}),
    "password": gs.json_schema(
        {**TEXT, "pattern": "^(?=.*[a-z])(?=.*[0-9])(?=.*[^ -~]).*$", "minLength": 6, "maxLength": 16}
    ),
    "words, bounded": gs.json_schema({**TEXT, "pattern": r"^(\w+ )*\w+$", "maxLength": 24}),
    "not a beginning, bounded": gs.json_schema({**TEXT, "pattern": "^(?!the).*$", "maxLength": 18}),
    "two patterns, bounded": gs.json_schema(
        {"allOf": [{**TEXT, "pattern": "^[a-z ]+$"}, {"pattern": "e"}], "maxLength": 20}
    ),
    "statements": gs.lark(STATEMENTS, parser="lalr"),
    "open object": gs.json_schema({"properties": dict.fromkeys(KEYS, TEXT), "type": "object"}),
    "closed object": gs.json_schema(
        {
            "properties": {key: {"type": ["number", "null"]} for key in KEYS},
            "type": "object",
            "additionalProperties": False,
        }
    ),
    "patterns": gs.json_schema(
        {
            "type": "object",
            "properties": {"code": {"type": "string", "pattern": "^[A-Z]{2}-\\d+$"}, "note": {**TEXT, "maxLength": 12}},
            "patternProperties": {"^x-": {"type": "boolean"}},
        }
    ),
}


@pytest.fixture(scope="module")
def vocabulary(smollm2_tokenizer: Any) -> gs.Vocabulary:
    return gs.Vocabulary.from_tokenizer(smollm2_tokenizer)


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.property
def test_every_bit(name: str, vocabulary: gs.Vocabulary) -> None:
    """Random texts, favouring long tokens; at each place all tokens are tried."""
    rng = random.Random(f"{name}{tiers.seed(0) or ''}")
    constraint = gs.compile(GRAMMARS[name], vocabulary)
    rows = np.zeros((1, (vocabulary.size + 31) // 32), dtype=np.int32)
    every = [[token] for token in range(vocabulary.size)]
    for _ in range(tiers.draws(3)):
        matcher = constraint.matcher()
        for _ in range(tiers.draws(6, least=4, most=6)):
            matcher.fill_bitmask(rows)
            bits = np.unpackbits(rows.view(np.uint8), bitorder="little")[: vocabulary.size].astype(bool)
            takes = np.fromiter(map(matcher.validate_tokens, every), dtype=bool, count=vocabulary.size)
            compared(vocabulary.size)
            wrong = np.flatnonzero(bits != takes)
            assert not wrong.size, [(vocabulary.token_bytes(int(t)), bool(bits[t])) for t in wrong[:5]]
            allowed = [int(t) for t in np.flatnonzero(bits) if t not in vocabulary.eos_token_ids]
            if not allowed:
                break
            some = rng.choices(allowed, k=4)
            assert matcher.accept_token(max(some, key=lambda token: len(vocabulary.token_bytes(token) or b"")))
