"""Requests: what each kind is lowered to, and bytes of lowered requests that were damaged or made to do harm."""

from __future__ import annotations

import random
from typing import Any

import pytest

import grammarspec as gs
from grammarspec.serving import GrammarCache, Lowered, Request
from tests import tiers

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TAG = {
    "type": "structural_tag",
    "format": {"type": "tag", "begin": "<b>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</b>"},
}
KINDS: dict[str, tuple[Request, str, str]] = {  # a request, a text of it, and a text that is none
    "schema": (Request.json_schema({"type": "integer"}), "12", "1.5"),
    "schema as text": (Request.json_schema('{"enum": [1.50]}'), "1.50", "1.6"),
    "schema with options": (
        Request.json_schema({"type": "array"}, whitespace="compact", separators=[", ", ": "]),
        "[1, 2]",
        "[1,2]",
    ),
    "whitespace": (Request.json_schema({"type": "array"}, whitespace_pattern=" ?"), "[ 1]", "[\n1]"),
    "object": (Request.json_object(), '{"a": []}', "[]"),
    "regex": (Request.regex("[a-z]{3}"), "abc", "ab"),
    "choice": (Request.choice(["yes", "no"]), "no", "maybe"),
    "lark": (Request.grammar('start: "a"+ NUMBER\nNUMBER: /[0-9]/'), "aa1", "1"),
    "gbnf": (Request.grammar('root ::= "a" [0-9]'), "a1", "b1"),
    "llguidance": (Request.grammar('start: "a" %json {"type": "integer"}'), "a12", "a"),
    "llguidance by name": (Request.grammar("start: /a+/", language="llguidance"), "aa", "b"),
    "structural tag": (Request.structural_tag(TAG), "<b>12</b>", "<b></b>"),
    "tools": (
        Request.tools([WEATHER], tool_format="hermes", choice="required"),
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
        "It rains.",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_goes_to_another_process_as_bytes(kind: str) -> None:
    request, member, other = KINDS[kind]
    lowered = request.lower()
    there = Lowered.from_bytes(lowered.to_bytes())
    assert there.ir == lowered.ir
    assert there.grammar.matches(member) and not there.grammar.matches(other)
    again = Request.lowered(lowered.to_bytes()).lower()
    assert again == lowered and again.key == lowered.key == Request.lowered(lowered.to_bytes()).key


def test_requests_are_found_by_content() -> None:
    assert Request.choice(["a"]) == Request.choice(iter(["a"]))
    keys = {request.key for request, _, _ in KINDS.values()}
    assert len(keys) == len(KINDS)
    assert Request.json_schema({"a": 1}).key != Request.json_schema({"a": 1}, whitespace="compact").key


def test_the_head_of_another_request_is_no_key_to_what_is_behind_it() -> None:
    first, second = (gs.literal(text).ir for text in "ab")
    head, content = Lowered(first).to_bytes(), Lowered(second).to_bytes()
    forged = Request.lowered(head[:41] + content[41:])
    assert forged.key == Lowered(first).key != Lowered(second).key
    cache = GrammarCache(gs.Vocabulary.bytes())
    for _ in range(2):
        with pytest.raises(gs.GrammarSyntaxError, match="damaged"):
            cache.constraint(forged)
    constraint = cache.constraint(Lowered(first))
    assert cache.constraint(Request.lowered(head)) is cache.constraint(forged) is constraint


def test_options_go_with_a_lowered_request() -> None:
    lowered = Lowered(gs.literal("a").ir, {"end": [1, 2], "name": "ä"})
    assert Lowered.from_bytes(lowered.to_bytes()).options == {"end": [1, 2], "name": "ä"}
    with pytest.raises(TypeError, match="JSON"):
        Lowered(lowered.ir, {"a": object()}).to_bytes()


@pytest.mark.parametrize(
    ("request_", "error", "said"),
    [
        (Request.json_schema({"properties": {"a": {"$ref": "#/b"}}}), gs.GrammarSyntaxError, "#/properties/a/.ref"),
        (Request.json_schema({"not": {}}), gs.Unsatisfiable, "#"),
        (Request.json_schema("{"), gs.GrammarSyntaxError, "line 1"),
        (Request.json_schema(b"{}"), TypeError, "JSON text, not b"),  # type: ignore[arg-type]
        (Request.json_schema({}, whitespace="wide"), ValueError, "whitespace"),
        (Request.json_schema({}, whitespace_pattern="("), gs.GrammarSyntaxError, "whitespace_pattern"),
        (Request.json_schema({}, colour=1), TypeError, "colour"),
        (Request.regex("("), gs.GrammarSyntaxError, "column"),
        (Request.regex(r"(a)\1"), gs.UnsupportedFeature, "backreference"),
        (Request.regex(5), TypeError, "text"),  # type: ignore[arg-type]
        (Request.regex("a$b"), gs.Unsatisfiable, "no text"),
        (Request.choice([]), gs.Unsatisfiable, "text"),
        (Request.choice("ab"), TypeError, "single"),
        (Request.choice(["a", 5]), TypeError, "element 1"),  # type: ignore[list-item]
        (Request.grammar("start: x"), gs.GrammarSyntaxError, "x"),
        (Request.grammar("root ::= ("), gs.GrammarSyntaxError, "line 1"),
        (Request.grammar("start: /a/", language="bnf"), ValueError, "bnf"),
        (Request.grammar("start: /a/", import_paths=["/"]), ValueError, "cannot read files"),
        (Request.grammar("%import .secret (X)\nstart: X"), gs.GrammarError, "secret"),
        (Request.grammar(7), TypeError, "must be a string"),  # type: ignore[arg-type]
        (Request.structural_tag({"type": "structural_tag"}), gs.GrammarSyntaxError, "format"),
        (Request.tools([WEATHER], tool_format="nonsense"), ValueError, "nonsense"),
        (Request.tools([WEATHER, WEATHER], tool_format="hermes"), ValueError, "weather"),
        (Request.tools([], tool_format="hermes", choice="required"), ValueError, "no tools"),
        (Request("lowered", "zzzz"), gs.GrammarSyntaxError, "not a lowered request"),
        (Request.lowered("a!"), gs.GrammarSyntaxError, "base64"),
        (Request.lowered("ä==="), gs.GrammarSyntaxError, "base64"),
        (Request("lowered", 5), gs.GrammarSyntaxError, "base64"),
    ],
)
def test_what_cannot_be_answered_is_refused(request_: Request, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        request_.lower()


def test_a_request_has_limits_and_can_be_cancelled() -> None:
    nested = Request.regex("(((((a{0,99}){0,99}){0,99}){0,99}b){0,99}){3}(?=.*c).*")
    with pytest.raises(gs.LimitExceeded, match="max_steps"):
        nested.lower(limits=gs.Limits(max_steps=100))
    cancelled = gs.CancelToken()
    cancelled.cancel()
    with pytest.raises(gs.Cancelled):
        Request.json_schema({"properties": {str(i): {"type": "integer"} for i in range(3000)}}).lower(cancel=cancelled)


def test_the_vocabulary_must_have_the_special_tokens() -> None:
    request = Request.structural_tag(
        {"type": "structural_tag", "format": {"type": "const_string", "value": "<x>a"}}, special_tokens=["<x>"]
    )
    assert request.lower().grammar.node.special_tokens == {"<x>"}
    with pytest.raises(gs.Unsatisfiable, match="no special token '<x>'"):
        request.lower(gs.Vocabulary.bytes())


@pytest.mark.property
def test_damaged_bytes_are_an_error() -> None:
    data = Request.json_schema({"properties": {"a": {"type": "string"}}}).lower().to_bytes()
    draw = random.Random(tiers.seed(1))
    for _ in range(tiers.draws(2000)):
        damaged = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        if damaged == data:
            continue
        with pytest.raises(gs.GrammarError):
            Lowered.from_bytes(bytes(damaged))
    for length in (0, 4, 5, 40, 41, len(data) // 2, len(data) - 1):
        with pytest.raises(gs.GrammarError):
            Lowered.from_bytes(data[:length])
    with pytest.raises(gs.GrammarError):
        Lowered.from_bytes(data + b"x")
    with pytest.raises(gs.GrammarError, match="version 2"):
        Lowered.from_bytes(data[:4] + b"\x02" + data[5:])
    with pytest.raises(TypeError):
        Lowered.from_bytes("text")  # type: ignore[arg-type]


@pytest.mark.property
def test_hostile_bytes_are_an_error_or_a_grammar() -> None:
    """The digest is made anew each time, so that what is behind it has to take whatever comes."""
    from grammarspec.serving.requests import _HEAD, _MAGIC, _digest

    ir = Request.grammar('root ::= "a" (root | [0-9]{2,5})? "b"*').lower().ir.to_bytes()
    draw = random.Random(tiers.seed(2))
    outcomes = {"refused": 0, "a grammar": 0}
    for _ in range(tiers.draws(3000)):
        changed = bytearray(ir)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(changed))
            changed[at] = draw.choice((0, 1, 255, changed[at] ^ 1, draw.randrange(256)))
        content = b"{}" + bytes(changed)
        try:
            lowered = Lowered.from_bytes(_HEAD.pack(_MAGIC, _digest(2, content), 2) + content)
            gs.compile(lowered.grammar, gs.Vocabulary.bytes(), limits=gs.Limits(max_steps=100_000)).matcher()
        except (gs.GrammarError, gs.Unsatisfiable):
            outcomes["refused"] += 1
        else:
            outcomes["a grammar"] += 1
    assert min(outcomes.values()) > 0, outcomes
    for options in (b"[]", b"{", b"[" * 5000):
        content = options + ir
        with pytest.raises(gs.GrammarSyntaxError, match="options"):
            Lowered.from_bytes(_HEAD.pack(_MAGIC, _digest(len(options), content), len(options)) + content)


def test_declarations_that_are_no_json_are_refused() -> None:
    bad: list[Any] = [{"a": {1, 2}}, {"a": object()}]
    for schema in bad:
        with pytest.raises(TypeError):
            _ = Request.json_schema(schema).key
