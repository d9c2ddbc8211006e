"""Declarations with something changed: what people mistype, and what nobody would write."""

from __future__ import annotations

import copy
import json
import random
import struct
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import grammarspec as gs
from tests.hostile import drawing
from tests.hostile.lark_files import LARK_FILES
from tests.hostile.regexes import REGEXES
from tests.hostile.schemas import SCHEMAS

__all__ = ["KINDS", "Made"]

Made = tuple[str, Callable[[], gs.Grammar]]
"""How a declaration is shown, and the call that makes its grammar."""

_SMALL = 3_000  # characters: of the corpus, what is larger says nothing else
_HEAD = 12
"""Bytes before the numbers of a serialised grammar: what they are, and the version."""
_VALUES: list[Any] = [
    None, True, False, 0, -1, 1.5, 1e308, 10**40, -0.0, float("nan"), float("inf"), "", "a", "^a", "[", "\ud800", "#",
    "#/x", [], [1], [[]], {}, {"": 0}, {"$ref": "#"}, "date", "2020", ["a", "a"], b"a", (1,), {1: 2}, object,
]  # fmt: skip
_KEYWORDS = (
    "type const enum multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern items "
    "prefixItems additionalItems maxItems minItems uniqueItems contains maxContains minContains maxProperties "
    "minProperties required properties patternProperties additionalProperties dependencies dependentRequired "
    "dependentSchemas propertyNames if then else allOf anyOf oneOf not format $ref $defs $id $anchor $schema "
    "$dynamicRef $dynamicAnchor $recursiveRef $recursiveAnchor $vocabulary unevaluatedItems unevaluatedProperties "
    "contentEncoding contentMediaType nullable discriminator default title description definitions id"
).split()
_OPTIONS: dict[str, list[Any]] = {
    "dialect": [None, "draft4", "draft6", "draft7", "draft2019-09", "draft2020-12", "x", 7],
    "format": ["assert", "annotation", "x", None],
    "property_order": ["declared", "any", "x", 0],
    "additional_properties": [True, False, None, "x"],
    "whitespace": ["flexible", "compact", "pretty", "x", None, 3],
    "indent": [None, 0, 2, -1, 10**9, "\t", "x", 1.5, True],
    "separators": [None, (",", ":"), (", ", ": "), (";", "="), (",",), "x", (1, 2)],
    "ensure_ascii": [True, False, None],
    "escapes": ["any", "minimal", "x"],
    "numbers": ["any", "plain", "x", None],
    "unsupported": ["error", "warn", "x"],
}
_PIECES = (
    r"( ) (?: (?= (?! (?<= (?<! (?P<n> (?P=n) (?i) (?s-i: [ ] [^ - | * + ? *? ++ {2} {0,} {,3} {9,2} . ^ $ \b \B \A \Z "
    r"\d \D \w \W \s \S \p{L} \p{Greek} \u00e9 \x41 \0 \1 \N{DASH} é ſ ß 😀 a b z 0 - \\ \n / (?# (?> \ud800"
).split()
_LARK_PIECES = (
    'start : | ( ) [ ] ? * + ~ .. ~2 ~0..9 -> _ ! // %import %ignore %declare %extend %override common.WORD . .2 "a" '
    '"" "\\" /a/ /(/ /a/i "a".."z" T r0 { } , x{y} \n \t é 0 9999999999'
).split(" ")


def _text(schema: Any) -> str:
    try:
        copy.deepcopy(schema)  # as recursive as what is done to schemas here
        return json.dumps(schema, default=repr, skipkeys=True)
    except RecursionError:
        return "{}"


_SCHEMAS = [text for schema in SCHEMAS.values() if len(text := _text(schema)) < _SMALL]
_REGEXES = [pattern for pattern in REGEXES.values() if len(pattern) < _SMALL // 10]
_LARK_FILES = [text for text in LARK_FILES.values() if len(text) < _SMALL // 5]


def _nodes(value: Any, put: Callable[[Any], None]) -> Iterator[tuple[Any, Callable[[Any], None]]]:
    """Every part of a value with a function that puts another one in its place."""
    yield value, put
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield from _nodes(value[key], lambda new, key=key: value.__setitem__(key, new))


def _schema(draw: random.Random) -> Any:
    """A schema of the corpus or a random one, with up to four changes."""
    root = [json.loads(draw.choice(_SCHEMAS)) if draw.random() < 0.4 else drawing.schema(draw)]
    for _ in range(draw.randint(0, 4)):
        places = list(_nodes(root[0], lambda new: root.__setitem__(0, new)))
        place, put = draw.choice(places)
        match draw.randrange(5):
            case 0:
                put(copy.deepcopy(draw.choice(_VALUES)))
            case 1:
                put(json.loads(_text(draw.choice(places)[0])))
            case 2 if isinstance(place, dict):
                others = [drawing.schema(draw, 1), [drawing.schema(draw, 0)]]
                place[draw.choice(_KEYWORDS)] = copy.deepcopy(draw.choice([*_VALUES, *others]))
            case 3 if isinstance(place, dict) and place:
                del place[draw.choice(list(place))]
            case 4:
                put({draw.choice(["allOf", "anyOf", "oneOf"]): [place, drawing.schema(draw, 1)]})
            case _:
                put({draw.choice(["not", "items", "if", "contains", "unevaluatedProperties"]): place})
    return root[0]


def _schema_made(draw: random.Random) -> Made:
    schema = _schema(draw)
    options = {name: draw.choice(_OPTIONS[name]) for name in draw.sample(sorted(_OPTIONS), draw.choice([0, 0, 1, 3]))}
    if draw.random() < 0.1:
        schema = _changed(draw, _text(schema), _PIECES)
    return f"json_schema({schema!r}, **{options!r})", lambda: gs.json_schema(schema, **options)


def _changed(draw: random.Random, text: str, pieces: list[str]) -> str:
    """A text with pieces put in, taken out and repeated."""
    for _ in range(draw.randint(0, 6)):
        at = draw.randint(0, len(text))
        end = min(len(text), at + draw.choice([0, 0, 1, 3, 20]))
        text = text[:at] + draw.choice([draw.choice(pieces), "", text[at:end] * 2]) + text[end:]
    return text


def _regex_made(draw: random.Random) -> Made:
    pattern = _changed(draw, draw.choice([draw.choice(_REGEXES), drawing.regex(draw), drawing.regex(draw, 6)]), _PIECES)
    flags, dialect = draw.choice([0, 0, 2, 8, 16, 64, 256, 10**6]), draw.choice(["python", "python", "ecma262", "x"])
    return f"regex({pattern!r}, flags={flags}, dialect={dialect!r})", lambda: gs.regex(
        pattern, flags=flags, dialect=dialect
    )


def _lark_made(draw: random.Random) -> Made:
    text = _changed(draw, draw.choice([draw.choice(_LARK_FILES), drawing.lark_file(draw)]), _LARK_PIECES)
    return f"lark({text!r})", lambda: gs.lark(text)


def _arrays_made(draw: random.Random) -> Made:
    """The arrays of a grammar, in the form that ``compiler/src/ir/portable.rs`` writes, with numbers changed."""
    made = draw.choice([lambda: gs.json_schema(drawing.schema(draw, 1)), lambda: gs.lark(drawing.lark_file(draw))])
    ir = made().ir
    encoded, bodies, blob, names, marks, start = ir.arrays()
    ops, rules, kinds = array("I", encoded), array("I", bodies), bytearray(marks)
    for _ in range(draw.randint(1, 4)):
        numbers = draw.choice([ops, ops, ops, rules])
        if numbers:
            at = draw.randrange(len(numbers))
            near = [0, 1, 2**31, 2**32 - 1, (numbers[at] + 1) % 2**32, max(numbers[at], 1) - 1, draw.randrange(16)]
            numbers[at] = draw.choice(near)
    if kinds and draw.random() < 0.3:
        kinds[draw.randrange(len(kinds))] = draw.randrange(256)
    data = ir.to_bytes()[:_HEAD] + struct.pack(f"<2I{len(ops)}I", start, len(ops), *ops) + struct.pack("<I", len(rules))
    for body, kind, name in zip(rules, kinds, names, strict=True):
        data += struct.pack("<3I", body, kind, len(name.encode())) + name.encode()
    data += struct.pack("<I", len(blob)) + blob
    arrays = f"arrays {ops.tolist()} {rules.tolist()} {bytes(kinds)!r}"
    return arrays, lambda: gs.Grammar(type(ir).from_bytes(data))


def _bytes_made(draw: random.Random) -> Made:
    data = bytearray(gs.json_schema(drawing.schema(draw, 1)).to_bytes())
    for _ in range(draw.randint(1, 3)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return f"from_bytes({bytes(data)!r})", lambda: gs.Grammar.from_bytes(bytes(data))


KINDS: dict[str, Callable[[random.Random], Made]] = {
    "schema": _schema_made,
    "regex": _regex_made,
    "lark": _lark_made,
    "arrays": _arrays_made,
    "bytes": _bytes_made,
}
