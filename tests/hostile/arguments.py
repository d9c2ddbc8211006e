"""Arguments and sequences of tokens that were made to hurt; each case makes its calls through a meter."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import reduce
from operator import and_, or_
from typing import Any

import grammarspec as gs
from grammarspec.grammars.builder import GrammarBuilder
from tests.hostile.measuring import Meter

__all__ = ["ARGUMENTS"]

Calls = Callable[[Meter, gs.Vocabulary], Any]

ARGUMENTS: dict[str, Calls] = {}

_ANY_JSON: dict[str, Any] = {}
_NUMBERS = ",".join(str(i) for i in range(100_000))


def _case(name: str) -> Callable[[Calls], Calls]:
    def kept(calls: Calls) -> Calls:
        ARGUMENTS[name] = calls
        return calls

    return kept


def _matcher(grammar: gs.Grammar, vocabulary: gs.Vocabulary, **limits: Any) -> gs.Matcher:
    return gs.compile(grammar, vocabulary, limits=gs.Limits(**limits)).matcher()


# ---------------------------------------------------------------------- tokens and texts
@_case("a million tokens to validate")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    matcher = _matcher(gs.json_schema({}), vocabulary)
    tokens = vocabulary.index.spell(b"[" + _NUMBERS.encode())
    call("validate", matcher.validate_tokens, tokens)
    call("accept", matcher.accept_tokens, tokens)
    call("validate text", matcher.validate_tokens, tokens * 3)


@_case("a draft of 10,000 tokens")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    matcher = _matcher(gs.json_schema({}), vocabulary)
    tokens = vocabulary.index.spell(b'["' + b"a brown fox {} " * 9_000)[:9_999]
    rows = gs.allocate_bitmask(len(tokens) + 1, vocabulary.size)
    call("draft", matcher.fill_draft_bitmasks, tokens, rows)


@_case("a draft of refused tokens")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    matcher = _matcher(gs.literal("a"), vocabulary)
    tokens = list(range(vocabulary.size))
    call("draft", matcher.fill_draft_bitmasks, tokens[:5_000], gs.allocate_bitmask(5_001, vocabulary.size))
    for token in tokens[:3_000]:
        call("accept", matcher.accept_token, token)


@_case("tokens that are none")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    matcher = _matcher(gs.json_schema({}), vocabulary)
    for token in (vocabulary.size, 2**31, 2**32 - 1):
        assert not call("accept", matcher.accept_token, token)
        assert call("validate", matcher.validate_tokens, [token]) == 0
    call("end before the beginning", matcher.accept_tokens, vocabulary.eos_token_ids * 1_000)


@_case("megabytes behind which bytes are asked for")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    matcher = _matcher(gs.regex("[a-z]*(?:xyz)?!"), vocabulary)
    for size in (1_000, 100_000, 3_000_000):
        call("next bytes", matcher.next_bytes, b"ab" * size)
        call("forced bytes", matcher.forced_bytes, b"ab" * size)


@_case("forced text of megabytes")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    matcher = _matcher(gs.literal("forced text, and more " * 100_000), vocabulary)
    for _step in range(5):
        call("forced bytes", matcher.forced_bytes)
        tokens = call("forced tokens", matcher.forced_tokens)
        call("accept", matcher.accept_tokens, tokens)
    call("completion", matcher.constraint.shortest_completion, matcher.state)


@_case("forced text without end")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    matcher = _matcher(gs.lark('start: "ab" start "c" | "ab" start "d"\n') | "x", vocabulary)
    call("accept", matcher.accept_tokens, vocabulary.spell(b"ab" * 10))
    call("forced bytes", matcher.forced_bytes)


@_case("a completion of 100,000 tokens")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    matcher = _matcher(gs.regex("(?:[a-f]{7} ){70000}"), vocabulary)
    call("completion", matcher.constraint.shortest_completion, matcher.state)
    call("length", matcher.constraint.tokens_to_end, matcher.state)


@_case("a completion of nested brackets")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    matcher = _matcher(gs.json_schema({}), vocabulary)
    for _step in range(2_000):
        call("accept", matcher.accept_tokens, vocabulary.index.spell(b'[{"a":' * 5))
    call("completion", matcher.constraint.shortest_completion, matcher.state)


@_case("a text of brackets")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    grammar = gs.json_value()
    call("matches", grammar.matches, "[" * 100_000)
    call("matches closed", grammar.matches, "[" * 900 + "]" * 900)
    call("parse", grammar.parse, "[" + _NUMBERS + "]")


@_case("a text that is read in many ways")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    letters = gs.regex("a*").named("x") + gs.regex("a*").named("y")
    call("parse", letters.repeat(0, None).parse, "a" * 2_000)


@_case("a sample of a large language")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    grammar = gs.json_schema({"type": "array", "minItems": 3_000, "items": {"enum": list(range(3_000))}})
    for seed in range(3):
        call("sample", grammar.sample, seed)


@_case("roll back and forth")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    matcher = _matcher(gs.regex("[a-z ]*"), vocabulary)
    tokens = vocabulary.spell(b"over and over again " * 2_000)
    for _step in range(20):
        call("accept", matcher.accept_tokens, tokens)
        call("roll back", matcher.rollback, len(tokens) // 2)
    forks = call("fork", lambda: [matcher.fork() for _ in range(300)])
    call("drop", forks.clear)


@_case("ten matchers in one fill")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    matchers = [_matcher(gs.regex(f"(?:[a-z]{{{i + 1},90}}[^{i % 10}])*"), vocabulary) for i in range(0, 50, 5)]
    rows = gs.allocate_bitmask(len(matchers), vocabulary.size)
    call("fill", gs.fill_bitmasks, matchers, rows)
    call("fill by many threads", gs.fill_bitmasks, matchers, rows, 1_000)


@_case("pins without number")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    constraint = gs.compile(gs.json_schema({}), vocabulary)
    call("pin", constraint.pin, [constraint.start] * 2_000_000)
    call("collect", constraint.collect)
    for state in (1 << 31, (1 << 32) - 1):
        for use in (constraint.mask, constraint.is_accepting, constraint.shortest_completion):
            _refused(call, use, state)


# ---------------------------------------------------------------------- limits
@_case("limits of one")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    for name in ("max_states", "max_memory", "max_steps", "max_depth"):
        _refused(call, lambda name=name: _walked(gs.json_schema({}), vocabulary, {name: 1}))


@_case("limits without bound")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    largest = dict.fromkeys(("max_states", "max_memory", "max_steps", "max_depth"), 2**63 - 1)
    _refused(call, lambda: _walked(gs.json_schema({}), vocabulary, largest))
    _refused(call, lambda: _walked(gs.json_schema({}), vocabulary, {"max_memory": 2**64}))
    _refused(call, lambda: _walked(gs.json_schema({}), vocabulary, {"timeout": float("nan")}))


def _walked(grammar: gs.Grammar, vocabulary: gs.Vocabulary, limits: dict[str, Any]) -> None:
    matcher = _matcher(grammar, vocabulary, **limits)
    matcher.accept_tokens(vocabulary.spell(b'[{"a": 1}, [2, "c"]]'))
    matcher.fill_bitmask(gs.allocate_bitmask(1, vocabulary.size))


def _refused(call: Meter, use: Callable[..., Any], *arguments: Any) -> None:
    """A call that may end with an error that is fit for its argument."""
    with suppress(gs.GrammarspecError, ValueError, TypeError, OverflowError):
        call(getattr(use, "__name__", "use"), use, *arguments)


# ---------------------------------------------------------------------- grammars as values
@_case("complements of complements")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    grammar = reduce(lambda inner, i: ~inner & gs.regex(f".{{0,{i + 9}}}"), range(40), gs.regex("a.{5}b"))
    constraint = call("compile", lambda: gs.compile(grammar, vocabulary))
    call("mask", constraint.mask, constraint.start)


@_case("a tower of operators")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    for depth in (900, 20_000):
        _refused(call, lambda depth=depth: gs.compile(_tower(depth), vocabulary).matcher().next_bytes())
        _refused(call, lambda depth=depth: hash(_tower(depth)))
        _refused(call, lambda depth=depth: _tower(depth).matches("b"))


def _tower(depth: int) -> gs.Grammar:
    grammar: gs.Grammar = gs.literal("a")
    for _ in range(depth):
        grammar = (grammar + "b").optional()
    return grammar


@_case("intersections of texts without a word")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    grammar = reduce(and_, (gs.text(until=f"word{i}z", max_chars=4_000) for i in range(40)))
    constraint = call("compile", lambda: gs.compile(grammar, vocabulary))
    call("mask", constraint.mask, constraint.start)
    call("accept", constraint.matcher().accept_tokens, vocabulary.spell(b"word word1 word2 wor" * 20))


@_case("a union of a thousand grammars")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    grammar = call("union", lambda: reduce(or_, (gs.regex(f"[a-z]{{{i}}}{i}") for i in range(1_000))))
    constraint = call("compile", lambda: gs.compile(grammar, vocabulary))
    call("mask", constraint.mask, constraint.start)


@_case("repetitions of repetitions")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    grammar = reduce(lambda inner, _: inner.repeat(0, 2_000, sep=","), range(5), gs.literal("a"))
    constraint = call("compile", lambda: gs.compile(grammar, vocabulary))
    call("mask", constraint.mask, constraint.start)
    call("accept", constraint.matcher().accept_tokens, vocabulary.spell(b"a,,a,,,a" * 20))


@_case("texts without number")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    texts = [f"{i * 7919 % 1_000_003:07d}" for i in range(300_000)]
    grammar = call("choice", gs.choice, texts)
    constraint = call("compile", lambda: gs.compile(grammar, vocabulary))
    call("mask", constraint.mask, constraint.start)
    call("compare", lambda: grammar == gs.choice(texts[::-1]))
    call("repr", repr, grammar)


@_case("bytes of a grammar that are damaged")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    data = gs.json_schema({"type": "object"}).to_bytes()
    for place in range(0, len(data), max(1, len(data) // 400)):
        damaged = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
        _refused(call, lambda damaged=damaged: gs.compile(gs.Grammar.from_bytes(damaged), vocabulary))
    for size in (0, 1, 40, len(data) - 1):
        _refused(call, gs.Grammar.from_bytes, data[:size])


# ---------------------------------------------------------------------- the builder
@_case("rules with thousands of bits")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    builder = GrammarBuilder()
    rule = builder.rule("any order")
    members = [
        builder.seq(builder.when_clear([i]), builder.literal(f"m{i};"), builder.call_with(rule, setting=[i]))
        for i in range(3_000)
    ]
    builder.define(rule, builder.alt(builder.empty, *members))
    _used(call, builder, builder.call(rule), vocabulary)


@_case("rules whose end is hard to prove")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    builder = GrammarBuilder()
    rule = builder.rule("subsets")
    steps = [
        builder.seq(builder.literal(f"{i};"), builder.call_with(rule, setting=[i * 3 % 41, i * 7 % 43, 50 + i]))
        for i in range(40)
    ]
    end = builder.seq(builder.when_set(range(0, 40, 3)), builder.when_clear([41, 42, 55]))
    builder.define(rule, builder.alt(*steps, end))
    _used(call, builder, builder.call(rule), vocabulary)


@_case("rules that count")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    builder = GrammarBuilder()
    rule = builder.rule("counters")
    counters = [(at * 32, 32) for at in range(20)]
    steps = [
        builder.seq(builder.literal("abcdefghijklmnopqrst"[i]), builder.call_with(rule, counting=c))
        for i, c in enumerate(counters)
    ]
    end = builder.seq(*(builder.when_count(counter, 3, 4) for counter in counters))
    builder.define(rule, builder.alt(*steps, end))
    _used(call, builder, builder.call(rule), vocabulary)


@_case("rules of all kinds of histories")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    schema = {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "object", "additionalProperties": {"uniqueItems": True}},
    }
    matcher = _matcher(gs.json_schema(schema), vocabulary)
    for i in range(300):
        call(
            "accept",
            matcher.accept_tokens,
            vocabulary.index.spell((f'{"[,"[i > 0]}{{"k{i}":[1,2,{{"x":[3]}}]}}').encode()),
        )
        call("mask", matcher.constraint.mask, matcher.state)


@_case("assertions without end")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    builder = GrammarBuilder()
    letter = builder.bytes_in([(97, 122)])
    node = letter
    for i in range(200):
        node = builder.seq(
            builder.ahead(builder.seq(builder.repeat(letter, i, None), builder.literal("z"), builder.anything)), node
        )
    _used(call, builder, builder.terminal(builder.seq(node, builder.anything)), vocabulary)


def _used(call: Meter, builder: GrammarBuilder, start: int, vocabulary: gs.Vocabulary) -> None:
    grammar = gs.Grammar(call("build", builder.build, start))
    constraint = call("compile", lambda: gs.compile(grammar, vocabulary))
    call("mask", constraint.mask, constraint.start)
    matcher = constraint.matcher()
    for _ in range(40):
        forced, _whole = call("next bytes", matcher.next_bytes)
        if not forced or not call("accept", matcher.accept_tokens, vocabulary.index.spell(forced[-1:])):
            break
        call("mask", constraint.mask, matcher.state)
    call("completion", constraint.shortest_completion, matcher.state)


# ---------------------------------------------------------------------- vocabularies
@_case("tokens of one letter")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    tokens = [bytes([value]) for value in range(256)] + [b"a" * i for i in range(2, 3_000)]
    strange = gs.Vocabulary.from_tokens(tokens, [len(tokens)])
    for pattern in ("a*", "(?:aa)*b", "[ab]{900,2000}", "(?:a|aa){1,700}b", ".*a.{50}"):
        matcher = _matcher(gs.regex(pattern), strange)
        call("mask", matcher.constraint.mask, matcher.state)
        call("accept", matcher.accept_tokens, [900] * 2)
        call("mask", matcher.constraint.mask, matcher.state)


@_case("tokens of a hundred kilobytes")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    tokens = [bytes([value]) for value in range(256)] + [bytes([i]) * 100_000 for i in range(97, 107)]
    strange = call("index", gs.Vocabulary.from_tokens, tokens, [len(tokens)])
    for pattern in ("[a-z]*", "(?:a{1,9}|b)*", "[a-j]{0,120000}", "(?:.*c){3}.*"):
        matcher = _matcher(gs.regex(pattern), strange)
        call("mask", matcher.constraint.mask, matcher.state)
        call("accept", matcher.accept_tokens, [256, 257])
        call("mask", matcher.constraint.mask, matcher.state)


@_case("a vocabulary of the same token")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    tokens = [bytes([value]) for value in range(256)] + [b"same"] * 50_000
    strange = call("index", gs.Vocabulary.from_tokens, tokens, [len(tokens)])
    matcher = _matcher(gs.json_schema({}), strange)
    call("mask", matcher.constraint.mask, matcher.state)
    call("accept", matcher.accept_tokens, strange.index.spell(b'["same'))
    call("mask", matcher.constraint.mask, matcher.state)
    call("pickle", lambda: pickle.loads(pickle.dumps(strange)))


# ---------------------------------------------------------------------- other faces
@_case("a report on a hostile schema")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    wide = {"anyOf": [{"type": "object", "properties": {f"a{i}": {"multipleOf": i + 1}}} for i in range(200)]}
    _refused(call, gs.check, wide)
    _refused(call, gs.check_openai_strict, wide)


@_case("reports on malformed grammars")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    for text in (
        'start: "a"\n' + "x: (\n" * 3_000,
        "start: a b c\n" + 'x: ) "a"\n' * 3_000,
        "start: a\n" + 'a: "b" %%\n' * 3_000,
        "start: a\n" + "".join(f'a{i}: "x{i}\n' for i in range(2_000)),
        "".join(f"a{i} b c\n" for i in range(2_000)),
        "start: a\n" + "%import foo.bar\n" * 2_000,
    ):
        report = call("check", gs.check_lark, text)
        assert not report.ok
        assert len(report.findings) > 1 or "import" in text


@_case("reports on grammars of thousands of names")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    for text, kind, count in (
        ("start: " + " ".join(f"u{i}" for i in range(3_000)), "refused", 100),  # no more are told
        ("start: a\n" + "".join(f'a: "x{i}"\n' for i in range(2_000)), "refused", 1),
        ('start: "a"\n' + "".join(f'u{i}: "x"\n' for i in range(2_500)), "unused", 2_500),
        ('start: "a"\n' + "".join(f'U{i}: "x"\n' for i in range(2_500)), "unused", 2_500),
    ):
        assert len(call("check", gs.check_lark, text).of_kind(kind)) == count


@_case("explanations of ambiguous texts")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    for grammar, text in (
        ('start: s\ns: s s | "a" |', "a" * 300 + "!"),
        ('start: s\ns: s s s | s s | "a" | "b"', "ab" * 100 + "!"),
        ('start: "(" start ")" | "x"', "(" * 3_000 + "!"),
    ):
        assert call("explain", gs.explain_lark, grammar, text).column == len(text)


@_case("values of a const")
def _(call: Meter, vocabulary: gs.Vocabulary) -> None:
    for value in (10**4_000, 1e308, -0.0, "\ud800", "\x00" * 10_000, [[]] * 10_000, {str(i): i for i in range(5_000)}):
        _refused(call, lambda value=value: _walked(gs.json_schema({"const": value}), vocabulary, {}))
