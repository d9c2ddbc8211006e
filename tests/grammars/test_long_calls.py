"""Calls with many tokens, and grammars with long texts: what they may take, and what their errors say."""

from __future__ import annotations

import json
import re

import pytest

import grammarspec as gs

BYTES = gs.Vocabulary.bytes()


def test_many_tokens_are_one_call() -> None:
    """A text of few bytes, all dear: each is within the limit by itself, and they are not together."""
    names = [f"p{i}" for i in range(40)]
    pairs = zip(names[::2], names[1::2], strict=True)
    schema = {
        "properties": {name: {"type": "integer"} for name in names},
        "allOf": [{"oneOf": [{"required": [one]}, {"required": [other]}]} for one, other in pairs],
    }
    text = json.dumps(dict.fromkeys(names[::2], 1)).encode()
    constraint = gs.compile(gs.json_schema(schema), BYTES, limits=gs.Limits(max_steps=300_000))
    matcher = constraint.matcher()
    assert matcher.accept_tokens(text[:2]) == 2
    before = matcher.state
    with pytest.raises(gs.LimitExceeded, match=r"max_steps \(limit 300000\)") as caught:
        matcher.accept_tokens(text[2:])
    assert re.match(r"token \d+ of the call, which begins at byte \d+ ", caught.value.where)
    assert matcher.state == before, "some of the tokens were accepted"
    with pytest.raises(gs.LimitExceeded, match="max_steps"):
        constraint.matcher().validate_tokens(text)
    for at in range(2, len(text), 20):
        part = text[at : at + 20]
        assert matcher.accept_tokens(part) == len(part), "in parts, it is accepted"
    assert matcher.is_accepting


def test_long_texts_may_take_what_many_calls_may() -> None:
    """The steps of a call grow with what it has accepted."""
    text = b"[" + b",".join(b'{"k%d": [%d]}' % (i, i) for i in range(800)) + b"]"
    grammar = gs.json_schema({"type": "array", "uniqueItems": True, "items": {"type": "object"}})
    matcher = gs.compile(grammar, BYTES, limits=gs.Limits(max_steps=20_000)).matcher()
    assert matcher.validate_tokens(text) == len(text)
    assert matcher.accept_tokens(text) == len(text)


def test_the_clock_is_looked_at_while_the_budget_grows() -> None:
    constraint = gs.compile(gs.json_schema({}), BYTES, limits=gs.Limits(timeout=1e-6))
    with pytest.raises(gs.LimitExceeded, match="timeout"):
        constraint.matcher().accept_tokens(b"[" + b"1," * 300_000)


@pytest.mark.parametrize("call", ["fill", "forced", "next"])
def test_errors_of_limits_say_where(call: str) -> None:
    text = "é long text, " * 20_000
    grammar = gs.literal("<") + gs.literal(text).named("middle")
    constraint = gs.compile(grammar, BYTES, limits=gs.Limits(max_steps=500))
    matcher = constraint.matcher()
    assert matcher.accept_token(ord("<"))
    calls = {
        "fill": lambda: matcher.fill_bitmask(gs.allocate_bitmask(1, BYTES.size)),
        "forced": matcher.forced_bytes,
        "next": lambda: matcher.next_bytes(text.encode()),
    }
    with pytest.raises(gs.LimitExceeded, match="max_steps") as caught:
        calls[call]()
    assert "rule" in caught.value.where


# ---------------------------------------------------------------------- long texts
TEXT = "".join(f"{i} é漢 " for i in range(800))
DATA = TEXT.encode()


def _vocabulary(*, characters: bool) -> gs.Vocabulary:
    """Tokens of one to twelve bytes of the text, from everywhere in it; with or without single bytes."""
    if characters:
        parts = {TEXT[at : at + size] for at in range(0, len(TEXT), 7) for size in (1, 2, 5)} | set(TEXT)
        tokens = [part.encode() for part in sorted(parts)]
    else:
        tokens = [bytes([value]) for value in range(256)]
        tokens += sorted({DATA[at : at + size] for at in range(0, len(DATA), 5) for size in (2, 3, 12)})
    return gs.Vocabulary.from_tokens([*tokens, None], eos_token_ids=[len(tokens)])


@pytest.mark.parametrize("characters", [False, True], ids=["bytes", "characters"])
@pytest.mark.parametrize("form", ["literal", "in a sequence", "in a terminal"])
def test_masks_of_long_texts(form: str, *, characters: bool) -> None:
    """Also where the pieces of a text meet, exactly the tokens are allowed that go on with it."""
    vocabulary = _vocabulary(characters=characters)
    texts = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
    grammar = {
        "literal": lambda: gs.literal(TEXT),
        "in a sequence": lambda: gs.literal(TEXT[:1]) + (gs.literal(TEXT[1:]) | gs.literal(TEXT[1:] + "0")),
        "in a terminal": lambda: gs.lark(f'start: T\nT: "{TEXT}"'),
    }[form]()
    matcher, at = gs.compile(grammar, vocabulary).matcher(), 0
    row = gs.allocate_bitmask(1, vocabulary.size)
    tokens = vocabulary.spell(DATA)
    for number, token in enumerate(tokens):
        if number % 7 == 0 or at % 4096 > 4060 or at % 4096 < 20 or 2000 < at % 4096 < 2060:
            matcher.fill_bitmask(row)
            allowed = {t for t in range(vocabulary.size) if row[0, t // 32] >> t % 32 & 1}
            ahead = DATA[at : at + 16]
            assert allowed == {t for t, text in enumerate(texts) if text and ahead.startswith(text)}, at
        assert matcher.accept_token(token)
        at += len(texts[token] or b"")
    assert at == len(DATA) and matcher.is_accepting


def test_long_texts_are_equal_however_they_are_made() -> None:
    grammar = gs.literal(TEXT)
    assert grammar == gs.Grammar.from_bytes(grammar.to_bytes())
    assert hash(grammar) == hash(gs.literal(TEXT))
    assert grammar.matches(TEXT) and not grammar.matches(TEXT[:-1]) and not grammar.matches(TEXT + " ")
    assert grammar.sample(0) == TEXT


def test_forced_text_makes_little_of_a_long_text() -> None:
    constraint = gs.compile(gs.literal("forced text, and more " * 100_000), BYTES)
    assert len(constraint.matcher().forced_bytes()) == 1 << 16
    assert constraint.stats()["memory"] < 16 << 20
