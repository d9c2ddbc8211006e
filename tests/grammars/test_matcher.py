"""The contract of constraints and matchers that outside tools rely on."""

from __future__ import annotations

import gc
import itertools
import pickle

import numpy as np
import pytest

import grammarspec as gs
from grammarspec import _compiler
from grammarspec.grammars.builder import UNBOUNDED, GrammarBuilder

VOCABULARY = gs.Vocabulary.bytes()
EOS = 256


def grammar_of(text: str) -> gs.Grammar:
    return gs.choice([text])


def letters(most: int | None) -> gs.Grammar:
    b = GrammarBuilder()
    return gs.Grammar(b.build(b.terminal(b.repeat(b.bytes_in([(97, 122)]), 0, most))))


def test_a_whole_walk() -> None:
    matcher = gs.compile(gs.choice(["cat", "car", "dog"]), VOCABULARY).matcher()
    rows = np.full((3, 9), -1, dtype=np.int32)
    matcher.fill_bitmask(rows, 2)
    assert (rows[:2] == -1).all()
    bits = np.unpackbits(rows[2].view(np.uint8), bitorder="little")
    assert set(np.flatnonzero(bits)) == {ord("c"), ord("d")}
    assert not matcher.accept_token(ord("x"))
    assert matcher.accept_tokens(list(b"caq")) == 2
    assert matcher.validate_tokens([ord("t"), EOS, EOS]) == 2
    assert matcher.accepting_prefixes([ord("t"), EOS, EOS]) == [1, 2]
    assert not matcher.is_accepting
    assert matcher.accept_token(ord("t")) and matcher.is_accepting and not matcher.is_terminated
    assert matcher.accept_token(EOS) and matcher.is_terminated
    assert not matcher.accept_token(EOS)
    matcher.fill_bitmask(rows)
    assert not rows[0].any()
    matcher.rollback(2)
    assert matcher.accept_token(ord("r"))
    with pytest.raises(ValueError, match="only 3"):
        matcher.rollback(4)


def test_masks_of_a_draft() -> None:
    matcher = gs.compile(gs.choice(["cat", "car", "dog"]), VOCABULARY).matcher()
    rows = np.full((4, 9), -1, dtype=np.int32)
    assert matcher.fill_draft_bitmasks(list(b"ca"), rows, 1) == 2
    assert (rows[0] == -1).all()
    allowed = [np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist() for row in rows[1:]]
    assert allowed == [[ord("c"), ord("d")], [ord("a")], [ord("r"), ord("t")]]
    assert matcher.fill_draft_bitmasks(list(b"cxt"), rows) == 1
    assert (rows[1:] == rows[1]).all() and rows[1, ord("a") >> 5] == 1 << (ord("a") & 31)  # never stale, never empty
    with pytest.raises(IndexError, match="row 4 of 4 rows"):
        matcher.fill_draft_bitmasks(list(b"cat"), rows, 1)
    matcher.accept_tokens([*b"cat", EOS])
    assert matcher.fill_draft_bitmasks([], rows) == 0 and not rows[0].any()


def test_whitespace_before_what_may_be_empty() -> None:
    """What follows the whitespace begins a text, too, where neither has to be there."""
    b = GrammarBuilder()
    blanks = b.repeat(b.bytes_in([(32, 32), (9, 10)]), 0, None)
    grammar = gs.Grammar(b.build(b.seq(blanks, b.repeat(b.words(['"name":']), 0, None))))
    matcher = gs.compile(grammar, VOCABULARY).matcher()
    rows = np.zeros((1, 9), dtype=np.int32)
    matcher.fill_bitmask(rows)
    bits = np.unpackbits(rows.view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == [9, 10, 32, ord('"'), EOS]


def test_long_texts_pass_through_a_bounded_table() -> None:
    """What was gone through is forgotten on the way, but not the place."""
    text = b"".join(b"%06d" % i for i in range(5000))
    matcher = gs.compile(gs.choice([text.decode()]), VOCABULARY).matcher()
    assert matcher.validate_tokens([*text, EOS]) == len(text) + 1
    assert matcher.validate_tokens([*text[:-1], ord("x")]) == len(text) - 1
    assert matcher.forced_bytes() == text


def test_forced_text() -> None:
    vocabulary = gs.Vocabulary.from_tokens([b"h", b"e", b"l", b"o", b"he", b"llo", b"lloyd", b"!", b"?"], [9])
    matcher = gs.compile(gs.choice(["hello!", "hello?"]), vocabulary).matcher()
    assert matcher.forced_bytes() == b"hello"
    assert matcher.forced_tokens() == [4]  # "llo" could still become "lloyd" for all that the text says
    matcher.accept_tokens([4, 5])
    assert matcher.forced_bytes() == b""


def test_shortest_completion() -> None:
    b = GrammarBuilder()
    value = b.rule("value")
    b.define(value, b.alt(b.seq(b.literal("["), b.call(value), b.literal("]")), b.literal("xyz"), b.literal("0")))
    constraint = gs.compile(gs.Grammar(b.build(b.call(value))), VOCABULARY)
    matcher = constraint.matcher()
    matcher.accept_tokens(list(b"[[["))
    assert bytes(constraint.shortest_completion(matcher.state)) == b"0]]]"
    assert constraint.tokens_to_end(matcher.state) == 4


def test_states_are_integers() -> None:
    constraint = gs.compile(gs.choice(["ab", "ac"]), VOCABULARY)
    state = constraint.step(constraint.start, ord("a"))
    assert isinstance(state, int)
    matcher = constraint.matcher()
    matcher.accept_token(ord("a"))
    assert matcher.state == state
    assert constraint.step(state, ord("x")) is None
    rows = np.zeros((1, 9), dtype=np.int32)
    matcher.fill_bitmask(rows)
    assert constraint.mask(state) == rows.tobytes()


def test_collection_never_reuses_an_id() -> None:
    constraint = gs.compile(letters(None), VOCABULARY)
    nested = gs.compile(gs.choice(["abcdef"]), VOCABULARY)
    states = [nested.start]
    for byte in b"abc":
        following = nested.step(states[-1], byte)
        assert following is not None
        states.append(following)
    pin = nested.pin(states[1:2])
    assert nested.collect() == 2
    assert nested.is_accepting(states[1]) is False
    for gone in states[2:]:
        with pytest.raises(gs.StateCollected, match=str(gone)):
            nested.step(gone, ord("d"))
    again = nested.step(states[1], ord("b"))
    assert again is not None and again not in states
    pin.release()
    nested.collect()
    with pytest.raises(gs.StateCollected):
        nested.mask(states[1])
    assert constraint.matcher().accept_tokens(list(b"zzz")) == 3


def test_memory_is_bounded() -> None:
    """Ten thousand counts, each a state: those left behind are collected when the limit is near."""
    limits = gs.Limits(max_memory=4 * 1024 * 1024)
    constraint = gs.compile(letters(10_000), VOCABULARY, limits=limits)
    for _ in range(3):
        matcher = constraint.matcher()
        for _ in range(3):
            assert matcher.accept_tokens([97] * 200) == 200
        del matcher
        gc.collect()
    assert constraint.stats()["memory"] <= limits.max_memory
    small = gs.compile(letters(10_000), VOCABULARY, limits=gs.Limits(max_states=50))
    with pytest.raises(gs.LimitExceeded, match="max_states"):
        small.matcher().accept_tokens([97] * 100)


def test_rows_that_fill_the_memory_are_dropped_and_found_again() -> None:
    """On a large vocabulary rows alone can reach half of the limit: they are collected when the next call begins."""
    side = range(ord("0"), ord("0") + 43)
    tokens = [bytes([b]) for b in range(256)] + [bytes(text) for text in itertools.product(side, repeat=3)]
    vocabulary = _compiler.VocabularyIndex([*tokens, None], [len(tokens)], [], len(tokens) + 1)
    b = GrammarBuilder()
    names = [f"#{i}:" for i in range(64)]
    loops = []
    for i, name in enumerate(names):
        letter = b.bytes_in([(48 + i % 8, 60 + i % 8), (65 + i // 8, 70 + i // 8)])
        loops.append(b.seq(b.literal(name), b.repeat(letter, 1, None)))
    grammar = b.build(b.alt(*loops))

    def masks(max_memory: int) -> tuple[list[bytes], int]:
        constraint = _compiler.compile(grammar, vocabulary, 1000, max_memory, 10**7, 100, None, None)
        found, matchers, dropped = [], [], 0
        for name in names:
            matcher = constraint.matcher()
            before = constraint.stats()["row_bytes"]
            assert matcher.accept_tokens(list(name.encode())) == len(name)
            found.append(constraint.mask(matcher.state))
            dropped += constraint.stats()["row_bytes"] < before
            matchers.append(matcher)
        return found, dropped

    (wide, never), (narrow, sometimes) = masks(1 << 28), masks(600_000)
    assert narrow == wide
    assert never == 0
    assert sometimes > 0


def test_work_is_bounded_and_cancelled() -> None:
    b = GrammarBuilder()
    letter = b.bytes_in([(97, 98)])

    def there(text: str) -> int:
        """Texts with this letter 25 letters before their end."""
        return b.seq(b.repeat(letter, 0, None), b.literal(text), b.repeat(letter, 24, 24))

    # empty, which only a search through 2**25 residuals could tell
    grammar = gs.Grammar(b.build(b.both(there("a"), there("b"))))
    with pytest.raises(gs.LimitExceeded, match="max_steps"):
        gs.compile(grammar, VOCABULARY, limits=gs.Limits(max_steps=1_000))
    cancel = gs.CancelToken()
    cancel.cancel()
    with pytest.raises(gs.Cancelled):
        gs.compile(grammar, VOCABULARY, cancel=cancel)


def test_bytes_inside_longer_tokens_only() -> None:
    """What such a vocabulary could be left with might be impossible to spell: refused, naming the bytes."""
    vocabulary = gs.Vocabulary.from_tokens([b"a", b"ab"], [2])
    with pytest.raises(gs.UnsupportedFeature, match="62"):
        gs.compile(gs.choice(["ab"]), vocabulary)
    assert gs.compile(gs.choice(["aa"]), vocabulary).matcher().accept_tokens([0, 0, 2]) == 3


def test_rows_are_checked() -> None:
    matcher = gs.compile(grammar_of("a"), VOCABULARY).matcher()
    with pytest.raises(IndexError):
        matcher.fill_bitmask(np.zeros((2, 9), dtype=np.int32), 2)
    with pytest.raises(ValueError, match="narrow"):
        matcher.fill_bitmask(np.zeros((2, 8), dtype=np.int32))
    for wrong in (np.zeros((2, 9), dtype=np.int64), [[0] * 9], np.zeros((9, 2), dtype=np.int32).T):
        with pytest.raises(TypeError):
            matcher.fill_bitmask(wrong)
    frozen = np.zeros((2, 9), dtype=np.int32)
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        matcher.fill_bitmask(frozen)
    wide = np.full((2, 12), -1, dtype=np.int32)
    matcher.fill_bitmask(wide)
    assert not wide[0, 9:].any()


def test_torch_rows() -> None:
    torch = pytest.importorskip("torch")
    matcher = gs.compile(grammar_of("a"), VOCABULARY).matcher()
    rows = torch.full((3, 9), -1, dtype=torch.int32)
    matcher.fill_bitmask(rows, 1)
    expected = np.zeros((1, 9), dtype=np.int32)
    matcher.fill_bitmask(expected)
    assert (rows[1].numpy() == expected[0]).all() and (rows[0] == -1).all()


def test_grammars_travel() -> None:
    b = GrammarBuilder()
    rule = b.rule("räule")
    b.define(
        rule,
        b.alt(b.seq(b.literal("("), b.call(rule), b.literal(")")), b.words(["x", "yy"]), b.codepoints([(955, 960)])),
    )
    grammar = gs.Grammar(b.build(b.call(rule)))
    for copy in (pickle.loads(pickle.dumps(grammar)), gs.Grammar.from_bytes(grammar.to_bytes())):
        assert copy == grammar and hash(copy) == hash(grammar)
        matcher = gs.compile(copy, VOCABULARY).matcher()
        assert matcher.accept_tokens(list("((π))".encode())) == 6 and matcher.is_accepting
    data = grammar.to_bytes()
    for damaged in (b"", data[:20], b"x" + data[1:], data[:8] + b"\xff" + data[9:]):
        with pytest.raises(gs.GrammarError):
            gs.Grammar.from_bytes(damaged)


def test_special_tokens_are_never_text() -> None:
    vocabulary = gs.Vocabulary.from_tokens([b"<", b"s", b">", None, b"<s>"], [3])
    matcher = gs.compile(letters(None), vocabulary).matcher()
    assert matcher.validate_tokens([1]) == 1
    assert matcher.validate_tokens([4]) == 0
    matcher = gs.compile(grammar_of("<s>"), vocabulary).matcher()
    assert matcher.validate_tokens([4, 3]) == 2
    assert matcher.validate_tokens([3]) == 0
    for token in (5, 1_000_000):
        assert matcher.validate_tokens([token]) == 0 and not matcher.accept_token(token)


def test_next_bytes() -> None:
    matcher = gs.compile(gs.regex(r"ab(c|d{2})?"), gs.Vocabulary.bytes()).matcher()
    assert matcher.next_bytes() == (b"a", False)
    assert matcher.forced_bytes(b"a") == b"b"
    assert matcher.next_bytes(b"ab") == (b"cd", True)
    assert matcher.forced_bytes(b"ab") == b""
    assert matcher.forced_bytes(b"abd") == b"d"
    assert matcher.next_bytes(b"abdd") == (b"", True)
    assert matcher.next_bytes(b"x") == (b"", False)
    assert matcher.forced_bytes(b"x") == b""
    assert matcher.accept_tokens(b"ab") == 2
    assert matcher.next_bytes() == (b"cd", True)
    assert matcher.next_bytes(b"d") == (b"d", False)
    assert matcher.accept_token(256)
    assert matcher.next_bytes() == (b"", False)


@pytest.mark.parametrize("never", ['start: a~0 "c"\na: "b"? start\n', 'start: x "c"\nx: a~0\na: "b"? start\n'])
def test_what_is_repeated_zero_times_is_not_begun(never: str) -> None:
    matcher = gs.compile(gs.lark(never), gs.Vocabulary.bytes()).matcher()
    assert matcher.next_bytes() == (b"c", False)


def test_parsers_have_any_numbers_for_symbols() -> None:
    b = GrammarBuilder()
    terminal, symbol, end = 4_000_000_000, 3_999_999_999, UNBOUNDED
    states = [
        (0, [(terminal, 0, 1)], [(symbol, 2)]),
        (0, [(terminal, 0, 1), (end, 1, 0)], [(symbol, 3)]),
        (0, [], []),
        (0, [(end, 1, 1)], []),
    ]
    node = b.parser(
        "lists",
        start=0,
        end=2,
        rules=[(symbol, [terminal]), (symbol, [terminal, symbol])],
        ignored=[],
        refused=[(1, 0, [terminal])],
        modes=[[(terminal, b.lexeme(b.literal("a")), 0)]],
        states=states,
    )
    matcher = gs.compile(gs.Grammar(b.build(node)), VOCABULARY).matcher()
    assert matcher.accept_tokens(list(b"aab")) == 2 and matcher.is_accepting


def test_lexemes_of_parsers_are_regular() -> None:
    b = GrammarBuilder()
    recursive = b.rule("recursive")
    b.define(recursive, b.alt(b.seq(b.literal("("), b.call(recursive), b.literal(")")), b.literal("x")))
    states = [(0, [(0, 0, 1)], [(1, 2)]), (0, [(UNBOUNDED, 1, 0)], []), (0, [], [])]
    node = b.parser(
        "lists", start=0, end=2, rules=[(1, [0])], ignored=[], modes=[[(0, b.call(recursive), 0)]], states=states
    )
    with pytest.raises(gs.UnsupportedFeature, match="`parser` takes regular expressions only"):
        b.build(node)
