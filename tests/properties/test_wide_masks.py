"""Masks over a vocabulary wide enough for every shortcut that the engine takes: each bit against acceptance.

Acceptance advances byte by byte and takes none of them. What both share, the transitions by byte, is compared with an
oracle in ``test_engine.py``.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from grammarspec import _compiler
from grammarspec.grammars.builder import GrammarBuilder
from tests.counting import compared, discard, examples
from tests.properties.strategies import Drawn
from tests.properties.test_engine import compiled

WORDS = ["name", "na", "names", "id", "the", "he", "The", "value", "x", "alpha", "beta", "ünï", "日本", "π", "🙂", "é"]
PUNCTUATION = [
    '"', '",', '":', '": "', '","', "\\", '\\"', "\\n", "\\u00", "}", "},", "]", " ", "  ", "\n", "\t", "a,b",
]  # fmt: skip


def _tokens() -> list[bytes | None]:
    """Every byte, words, punctuation glued to words, cut characters, long runs; an EOS token that looks like text."""
    rng = random.Random(5)
    pieces = [w.encode() for w in WORDS + PUNCTUATION]
    tokens: set[bytes] = set(pieces) | {b" " * n for n in range(2, 40)} | {b"a" * n for n in range(2, 30)}
    tokens |= {b"a" * n + end for n in (8, 20, 21, 27) for end in (b'"', b'",', b"-", "é".encode(), b"a\xc3")}
    ends = ["", '"', ",", ",x", ',x"', " a", ' a"', ":", " a:"]
    tokens |= {f" {word}{end}".encode() for word in WORDS for end in ends}
    tokens |= {b'a","' * n + end for n in (1, 2, 3, 5, 9, 13, 20, 30) for end in (b"", b"a", b'"]')}
    while len(tokens) < 3500:
        token = b"".join(rng.choice(pieces) for _ in range(rng.randint(1, 4)))
        tokens.add(token[rng.randint(0, 1) : rng.randint(2, 14)] or b"zz")
    return [bytes([b]) for b in range(256)] + sorted(tokens) + [None, b"the end of the text"]


TOKENS = _tokens()
INDEX = _compiler.VocabularyIndex(TOKENS, [len(TOKENS) - 1], [], len(TOKENS))
CHARACTERS = [(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)]


@st.composite
def _terminal(draw: st.DrawFn, b: GrammarBuilder) -> int:
    escape = b.seq(b.literal("\\"), b.alt(b.bytes_in([(34, 34), (92, 92), (110, 110)]), b.literal("u00")))
    character = b.alt(b.codepoints(CHARACTERS), escape)
    quote = b.literal('"')
    least = draw(st.integers(0, 3))
    most = draw(st.none() | st.integers(least, 50))
    match draw(st.integers(0, 15)):
        case 0:
            return b.terminal(b.seq(quote, b.repeat(character, least, most), quote))
        case 1:
            return b.terminal(b.repeat(b.codepoints(CHARACTERS), least, most))
        case 2:
            return b.terminal(b.repeat(b.codepoints([(97, 122)]), least, most))
        case 3:
            return b.terminal(b.repeat(b.codepoints([(0, 9), (11, 0x10FFFF)]), least, most))
        case 4:
            keys = b.words([f'"{w}"' for w in draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))])
            any_key = b.seq(quote, b.repeat(character, 0, None), quote)
            return b.terminal(b.both(any_key, b.complement(keys)))
        case 5:
            return b.words([f'"{w}":' for w in draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))])
        case 6:
            return b.repeat(b.bytes_in([(32, 32), (9, 10)]), least, most)
        case 7:
            return b.terminal(b.repeat(b.bytes_in([(48, 57)]), max(least, 1), most))
        case 8:  # behind each letter another residual, as a range may begin there
            ranges = [b.bytes_in([(letter, letter)]) for letter in b"abehlnptu"]
            ends = [b.repeat(b.seq(b.literal("_"), b.bytes_in([(letter, 122)])), 0, 1) for letter in b"abehlnptu"]
            others = b.codepoints([*CHARACTERS[:2], (0x5D, 0x5E), (0x60, 0x60), (0x7B, 0x10FFFF)])
            return b.terminal(b.seq(quote, b.repeat(b.alt(*map(b.seq, ranges, ends), others), 0, None), quote))
        case 9:  # what may come first is less, or more, than what may follow
            first = b.codepoints(draw(st.sampled_from([[(0x21, 0x21), (0x23, 0x5B)], [(0x20, 0x5D)]])))
            return b.terminal(b.seq(quote, first, b.repeat(character, 0, None), quote))
        case 10:  # what may not come last
            letter, inner = b.codepoints([(97, 122)]), b.codepoints([(0x2C, 0x2C), (97, 122)])
            return b.terminal(b.seq(quote, letter, b.repeat(inner, 0, None), letter, quote))
        case 11:  # something must come before there are too many
            some = b.codepoints(
                draw(st.sampled_from([[(97, 122)], [(0x65E5, 0x65E5)], [(0x20, 0x20), (0xE9, 0x10FFFF)]]))
            )
            anything = b.repeat(character, 0, None)
            return b.terminal(
                b.seq(quote, b.both(b.repeat(character, least, most), b.seq(anything, some, anything)), quote)
            )
        case 12:  # what may come first is less than what is counted; and few characters are none of them
            counted = b.codepoints(draw(st.sampled_from([[(48, 57), (97, 122)], [(0x23, 0xE8), (0xEA, 0x10FFFF)]])))
            return b.terminal(b.seq(b.codepoints([(97, 122)]), b.repeat(counted, 9 * least, most and 9 * most), quote))
        case 13:  # so many words, and so many characters
            blank, letter = b.codepoints([(0x20, 0x20), (0xFC, 0xFC)]), b.codepoints([(0x21, 0x21), (0x23, 0xE9)])
            word = b.repeat(letter, 1, None)
            words = b.seq(b.repeat(b.seq(word, b.repeat(blank, 1, None)), 0, draw(st.integers(1, 5))), word)
            characters = b.repeat(character, 0, draw(st.integers(9, 200)))
            return b.terminal(b.seq(quote, b.both(words, characters), quote))
        case 14:  # counts within what is counted
            label = b.repeat(b.codepoints([(0x23, 0x5B), (97, 122)]), 1, draw(st.integers(2, 40)))
            labels = b.repeat(b.seq(label, b.literal(" ")), 1, draw(st.integers(1, 20)))
            ending = b.complement(b.seq(b.repeat(character, 0, None), b.literal("the ")))
            characters = b.repeat(character, 1, draw(st.integers(9, 200)))
            return b.terminal(b.seq(quote, b.both(labels, characters, ending), quote))
        case _:
            return b.literal(draw(st.sampled_from(PUNCTUATION)))


@st.composite
def _expression(draw: st.DrawFn, b: GrammarBuilder, rules: list[int], depth: int) -> int:
    kind = draw(st.integers(0, 5)) if depth else 0
    parts = [draw(_expression(b, rules, depth - 1)) for _ in range(draw(st.integers(1, 3)))] if kind else []
    match kind:
        case 0:
            return draw(_terminal(b))
        case 1 | 2:
            return b.seq(*parts)
        case 3:
            return b.alt(*parts)
        case 4:
            return b.repeat(parts[0], 0, draw(st.none() | st.integers(1, 60)))
        case _:
            return b.seq(b.literal("["), b.call(draw(st.sampled_from(rules))), b.literal("]"))


@st.composite
def wide_grammars(draw: st.DrawFn) -> Drawn:
    drawn = Drawn()
    rules = [drawn.builder.rule(f"r{i}") for i in range(2)]
    for rule in rules:
        body = draw(_expression(drawn.builder, rules, 2))
        drawn.builder.define(rule, drawn.builder.alt(drawn.builder.literal("."), body))
    drawn.start = draw(_expression(drawn.builder, rules, 3))
    return drawn


def _every_bit(matcher: Any) -> Any:
    """The mask of a matcher, each bit of which has been compared with acceptance: booleans, one for each token."""
    rows = np.zeros((1, (len(TOKENS) + 31) // 32), dtype=np.int32)
    matcher.fill_bitmask(rows)
    bits = np.unpackbits(rows.view(np.uint8), bitorder="little")[: len(TOKENS)].astype(bool)
    takes = np.array([matcher.validate_tokens([token]) == 1 for token in range(len(TOKENS))])
    compared(len(TOKENS))
    wrong = np.flatnonzero(bits != takes)
    assert not wrong.size, [(int(t), TOKENS[t], bool(bits[t])) for t in wrong[:5]]
    return bits


@examples(120)
@given(wide_grammars(), st.integers(0, 2**32))
def test_every_bit(drawn: Drawn, seed: int) -> None:
    constraint = compiled(drawn, INDEX)
    if constraint is None:
        discard("an empty language")
    rng, matcher = random.Random(seed), constraint.matcher()
    for _ in range(8):
        choices = np.flatnonzero(_every_bit(matcher)[:-1])
        if not choices.size:
            break
        # long tokens and single bytes alike
        token = int(rng.choice(choices)) if rng.random() < 0.7 else int(choices[0])
        assert matcher.accept_token(token)


@pytest.mark.parametrize(
    "pattern",
    [
        "[a-z][a-z0-9]{21,60}-x",
        "[a-z][^é日]{3,15}x?", "[a-z][^\\x00-\\x1f]{3,15}", "[^é日]{3,15}x?", "[a-z0-9]{2,9}(-[a-z]{2,30})?,",
        "[^/]{1,30}/[^/]{1,9}",
    ],
)  # fmt: skip
def test_stretches_of_characters(pattern: str) -> None:
    """Behind each beginning: characters that are counted, with some that are none of them."""
    _go_on_with("aaaaa", gs.regex(pattern))


@pytest.mark.parametrize(
    "pattern",
    [
        " [a-z ]*[n-p][a-z]*", " [a-z]*(?::|[n-p][a-z ]*)", " [a-z,]*[a-z]", " (?:[a-z ]+,)?[a-z]+",
        " (?:[a-z]+,|[a-z]+x)*",
    ],
)  # fmt: skip
def test_several_ways_to_loop(pattern: str) -> None:
    """A letter leads back, but for what else it, or another character, begins."""
    _go_on_with(" naa", gs.regex(pattern + '"'))
    strings = gs.json_schema({"type": "array", "items": {"type": "string", "pattern": f"^{pattern}$"}})
    _go_on_with('[" naa', strings)


def _go_on_with(text: str, grammar: gs.Grammar) -> None:
    matcher = gs.compile(grammar, gs.Vocabulary(INDEX)).matcher()
    for byte in text.encode():
        _every_bit(matcher)
        assert matcher.accept_token(byte)


_WORDS = {"type": "string", "pattern": r"^(?:\S+\s+){0,9}\S+$", "maxLength": 90}
_LABELS = r"^(?!.*://)(?=.{1,70}$)((.{1,33}\.){1,40}(?![0-9]*$)[a-z0-9-]+\.?)$"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {**_WORDS, "maxLength": 150}, "maxItems": 12},
        {"type": "array", "items": _WORDS, "maxItems": 20},
        {"type": "array", "items": {**_WORDS, "maxLength": 60}, "maxItems": 4, "minItems": 2},
        {"type": "string", "pattern": _LABELS},
        {"type": "string", "pattern": r"^(?!-)[A-Za-z0-9-]{1,33}(?<!-)(\.(?!-)[a-z-]{1,12}(?<!-))*$", "maxLength": 70},
        {"type": "string", "pattern": r"^[-a-z0-9.]{1,40}\.[a-z()]{1,6}\b([-a-z0-9.?/]*)$", "maxLength": 60},
        {"type": "array", "items": {"type": "string", "pattern": r"^(\w{1,20}\b.?){1,9}\b.{0,30}$"}, "maxItems": 12},
        {"type": "string", "pattern": r"^([^,]{1,25})(,\s*[^,]{1,25}){0,9}$", "maxLength": 80},
        {"type": "string", "oneOf": [{"pattern": word} for word in ("na", "name", "the", "al", "bet", "x")]},
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_counts_together(schema: dict[str, object], seed: int) -> None:
    """Several counts in one string, on the way to all of their limits."""
    matcher = gs.compile(gs.json_schema(schema, whitespace="flexible"), gs.Vocabulary(INDEX)).matcher()
    rng = random.Random(seed)
    for _ in range(60):
        choices = [int(t) for t in np.flatnonzero(_every_bit(matcher)[:-1])]
        going_on = [t for t in choices if b'"' not in (TOKENS[t] or b"") and b"\\" not in (TOKENS[t] or b"")]
        if not choices:
            break
        assert matcher.accept_token(rng.choice(going_on or choices))


@pytest.mark.parametrize("most", [12, 20])
def test_counts_of_strings_and_in_them(most: int) -> None:
    """Long tokens end many strings: too many, although the words in these are few."""
    b = GrammarBuilder()
    quote, word = b.literal('"'), b.repeat(b.codepoints([(97, 122)]), 1, None)
    words = b.seq(b.repeat(b.seq(word, b.repeat(b.literal(" "), 1, None)), 0, 9), word)
    string = b.terminal(b.seq(quote, b.both(words, b.repeat(b.codepoints(CHARACTERS), 0, 300)), quote))
    grammar = b.build(b.repeat(b.seq(string, b.literal(",")), 0, most))
    matcher = _compiler.compile(grammar, INDEX, 100_000, 1 << 28, 20_000_000, 10_000, None, None).matcher()
    for byte in b'"a","a"':
        assert matcher.accept_token(byte)
        _every_bit(matcher)


def test_the_end_token_has_no_length() -> None:
    """A count forbids tokens that are too long; the EOS token, whose text is longer than any here, is none of them."""
    builder = GrammarBuilder()
    grammar = builder.build(builder.repeat(builder.bytes_in([(9, 10), (32, 32)]), 0, 10))
    matcher = _compiler.compile(grammar, INDEX, 100_000, 1 << 28, 20_000_000, 10_000, None, None).matcher()
    end, rows = len(TOKENS) - 1, np.zeros((1, (len(TOKENS) + 31) // 32), dtype=np.int32)
    for _ in range(10):
        matcher.fill_bitmask(rows)
        assert rows[0, end // 32] >> end % 32 & 1
        assert matcher.accept_token(TOKENS.index(b"\t"))
