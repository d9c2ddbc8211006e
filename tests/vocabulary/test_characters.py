"""Vocabularies of characters: some bytes are no token of their own, and stand inside longer tokens only."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from grammarspec.errors import Unsatisfiable, UnsupportedFeature
from tests.counting import compared, examples
from tests.oracles.spelling import Speller, spells

ASCII = [bytes([byte]) for byte in range(0x20, 0x7F)]
WIDE = [character.encode() for character in "éüā€₿漢😊😘"]

REGEXES = [
    "né+b?",
    "[éüā]{1,3}€?",
    "(?!é)[^b]{0,3}a",
    "a(é|ü|😊)*a",
    ".{0,2}é",
    "(a|é|😘)*(?<=é)b",
    "[^a]*a",
    r"\w+(, \w+)*",
    ".*(漢|😊)",
    "(?=.*é)(?=.*ü).{2,4}",
]
SCHEMAS: list[Any] = [
    {"type": "string"},
    {"type": "string", "minLength": 2, "maxLength": 3},
    {"type": "string", "pattern": "é.$", "maxLength": 4},
    {"type": "string", "pattern": "[éa]"},
    {"enum": ["é", "ü€", "ab", 1]},
    {"not": {"enum": ["é", "ü"]}, "type": "string"},
    {"type": "object", "properties": {"é": {"enum": ["ü", "a"]}}, "additionalProperties": False},
    {"type": "object", "properties": {"é": {"const": 0}}, "additionalProperties": {"const": 1}, "maxProperties": 2},
    {"type": "array", "uniqueItems": True, "items": {"enum": ["é", "ü", "a"]}, "minItems": 1},
    {"type": "array", "items": {"type": ["string", "null"]}},
]
LARK = [
    'start: "é" start "ü" | /[a€]+/',
    "start: word (\",\" word)*\nword: WORD\nWORD: /[éü😊]{1,2}/",
]  # fmt: skip

GRAMMARS: list[Callable[[], gs.Grammar[Any]]] = [
    *(cache(lambda pattern=pattern: gs.regex(pattern)) for pattern in REGEXES),
    *(cache(lambda schema=schema: gs.json_schema(schema, whitespace="compact")) for schema in SCHEMAS),
    *(cache(lambda text=text: gs.lark(text)) for text in LARK),
    cache(lambda: ~gs.regex("é|a.*")),
    cache(lambda: gs.regex("[aé]*") & ~gs.regex(".*éa.*")),
]


@st.composite
def vocabularies(draw: st.DrawFn) -> list[bytes]:
    """Characters as tokens, as their bytes, or inside longer tokens; parts of characters; longer tokens of these."""
    tokens = [byte for byte in ASCII if byte != b"b"]
    pieces = [b"a", b'"']
    for character in [b"b", *WIDE]:
        way = draw(st.sampled_from(["token", "token", "bytes", "both", "parts", "hidden", "absent"]))
        cut = draw(st.integers(1, max(1, len(character) - 1)))
        if way in ("token", "both"):
            tokens.append(character)
        if way in ("bytes", "both"):
            tokens += [bytes([byte]) for byte in character]
        if way == "parts":
            tokens += [character[:cut], character[cut:]]
        if way != "absent":
            pieces += [character, character, character[:cut], character[cut:]]
    tokens += draw(st.lists(st.lists(st.sampled_from(pieces), min_size=1, max_size=3).map(b"".join), max_size=8))
    return draw(st.permutations([token for token in dict.fromkeys(tokens) if token]))


def vocabulary_of(tokens: list[bytes], **options: Any) -> gs.Vocabulary:
    return gs.Vocabulary.from_tokens([*tokens, None], [len(tokens)], **options)


def compiled(grammar: gs.Grammar[Any], vocabulary: gs.Vocabulary) -> gs.Constraint | UnsupportedFeature | Unsatisfiable:
    """The constraint, or why there is none."""
    try:
        return gs.compile(grammar, vocabulary)
    except (UnsupportedFeature, Unsatisfiable) as error:
        return error


def allowed(matcher: gs.Matcher, vocabulary: gs.Vocabulary) -> set[int]:
    row = gs.allocate_bitmask(1, vocabulary.size)
    matcher.fill_bitmask(row)
    return {token for token in range(vocabulary.size) if row[0, token // 32] >> token % 32 & 1}


def check_mask(matcher: gs.Matcher, vocabulary: gs.Vocabulary, speller: Speller, so_far: bytes) -> set[int]:
    """A bit is set if and only if tokens complete a text behind it: those of the shortest ending, or any few."""
    bits = allowed(matcher, vocabulary)
    for token in range(vocabulary.size - 1):
        text = so_far + (vocabulary.token_bytes(token) or b"")
        assert (matcher.validate_tokens([token]) == 1) == (token in bits), (so_far, token)
        if token in bits:
            matcher.accept_token(token)
            ending = vocabulary.decode(matcher.constraint.shortest_completion(matcher.state))
            matcher.rollback(1)
            assert speller.accepts(text + ending), (text, ending)
        else:
            assert not speller.completes(text, 2), text
    compared(vocabulary.size)
    assert matcher.is_accepting == speller.accepts(so_far) == (vocabulary.size - 1 in bits)
    return bits - {vocabulary.size - 1}


@pytest.mark.slow
@examples(400)
@given(vocabularies(), st.sampled_from(GRAMMARS), st.integers(0, 99))
def test_masks(tokens: list[bytes], grammar: Callable[[], gs.Grammar[Any]], seed: int) -> None:
    speller, vocabulary = Speller(grammar(), tokens), vocabulary_of(tokens)
    constraint = compiled(grammar(), vocabulary)
    if isinstance(constraint, Unsatisfiable):
        assert not speller.completes(b"", 3)
        return
    if isinstance(constraint, UnsupportedFeature):
        # what it names is in longer tokens, and cannot be spelled alone
        hidden = [character for character in [b"b", *WIDE] if not speller.has(character)]
        assert any(repr(character.decode()) in str(constraint) for character in hidden), constraint
        return
    rng, matcher, so_far = random.Random(seed), constraint.matcher(), b""
    for _ in range(6):
        bits = check_mask(matcher, vocabulary, speller, so_far)
        forced = matcher.forced_tokens()
        assert matcher.validate_tokens(forced) == len(forced)
        if not bits:
            break
        wide = [token for token in bits if not (vocabulary.token_bytes(token) or b"").isascii()]
        token = rng.choice(sorted(wide if wide and rng.random() < 0.7 else bits))
        assert matcher.accept_token(token)
        so_far += vocabulary.token_bytes(token) or b""


@examples(200)
@given(vocabularies(), st.text("ab€é漢😊", max_size=6))
def test_spelling(tokens: list[bytes], text: str) -> None:
    spelled = b"".join(character for character in (c.encode() for c in text) if spells(tokens, character))
    vocabulary = vocabulary_of(tokens)
    assert vocabulary.decode(vocabulary.spell(spelled)) == spelled
    assert vocabulary.decode(vocabulary.spell(spelled + b"\x00")) == spelled  # as much of it as tokens spell


CHARACTERS = [*ASCII, *WIDE, "né".encode(), b'": ', "a漢".encode(), "™x".encode()]


def test_what_only_longer_tokens_have() -> None:
    vocabulary = vocabulary_of(CHARACTERS)
    with pytest.raises(UnsupportedFeature, match=r"longer tokens only.*'™' \(E2 84 A2\)$"):
        gs.compile(gs.choice(["a™", "b"]), vocabulary)
    with pytest.raises(UnsupportedFeature, match="'™'"):
        gs.compile(gs.regex("[™é]"), vocabulary)
    # a class of very many characters goes without it, and so does one of those that no token has
    for pattern in (".", "[^a]", "[é☃]"):
        constraint = gs.compile(gs.regex(pattern), vocabulary)
        assert allowed(constraint.matcher(), vocabulary)
    matcher = gs.compile(gs.choice(["a☃", "b"]), vocabulary).matcher()
    assert matcher.forced_bytes() == b"b"
    with pytest.raises(Unsatisfiable):
        gs.compile(gs.choice(["a☃", "☃"]), vocabulary)


def test_a_grammar_of_other_bytes_is_compiled_as_ever() -> None:
    vocabulary = vocabulary_of([b"a", b"b", b"\xc3", b"ab", b"a\xa9", b"zz"])
    matcher = gs.compile(gs.regex("[ab]+"), vocabulary).matcher()
    assert allowed(matcher, vocabulary) == {0, 1, 3}


def test_special_tokens() -> None:
    tokens: list[bytes] = [*CHARACTERS]
    special = len(tokens) + 1
    vocabulary = vocabulary_of(tokens, special_tokens={"<call>": special})
    grammar = gs.text(until="ü") + gs.special("<call>") + gs.regex("é+") + gs.special("<call>")
    matcher = gs.compile(grammar, vocabulary).matcher()
    first = allowed(matcher, vocabulary)
    assert {special, tokens.index("漢".encode())} <= first
    assert matcher.accept_tokens([tokens.index("漢".encode()), special]) == 2
    assert allowed(matcher, vocabulary) == {tokens.index("é".encode())}
    assert matcher.accept_tokens([tokens.index("é".encode()), special]) == 2
    assert matcher.is_accepting


def test_behind_a_byte_that_another_character_begins_with() -> None:
    """``é`` is a token and ``ÿ`` is spelled by its bytes, so that behind the byte that both begin with only one is."""
    tokens = [b"a", b"\xc3", b"\xbf", "é".encode(), b"a\xc3", b"\xbfa"]
    vocabulary = vocabulary_of(tokens)
    assert allowed(gs.compile(gs.regex("é|aé"), vocabulary).matcher(), vocabulary) == {0, 3}
    constraint = gs.compile(gs.regex("[éÿ]a"), vocabulary)
    matcher = constraint.matcher()
    assert allowed(matcher, vocabulary) == {1, 3}
    assert matcher.accept_token(1)
    assert allowed(matcher, vocabulary) == {2, 5}
    assert constraint.shortest_completion(matcher.state) == [5]


def test_states_survive_collection() -> None:
    vocabulary = vocabulary_of(CHARACTERS)
    constraint = gs.compile(gs.json_schema({"type": "array", "items": {"type": "string"}}), vocabulary)
    matcher = constraint.matcher()
    matcher.accept_tokens(vocabulary.spell('["né漢'.encode()))
    before = allowed(matcher, vocabulary)
    constraint.collect()
    assert allowed(matcher, vocabulary) == before
    assert matcher.accept_tokens(vocabulary.spell('é"]'.encode())) == 3
    assert matcher.is_accepting


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_trained_tokenizer_without_bytes(kind: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    texts = ['né à Besançon, ¿qué? 漢字 Привет 0123456789 {"name": [true, false, null], "a": -1.5}'] * 5
    special = ["<unk>", "</s>"]
    if kind == "unigram":
        tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram())
        trainer = tokenizers.trainers.UnigramTrainer(vocab_size=120, special_tokens=special, unk_token="<unk>")
    else:
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
        trainer = tokenizers.trainers.BpeTrainer(vocab_size=160, special_tokens=special)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    tokenizer.train_from_iterator(texts, trainer)
    vocabulary = gs.Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[1])
    grammar = gs.json_schema({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
    matcher = gs.compile(grammar, vocabulary).matcher()
    tokens = vocabulary.spell('{"name": "né à 漢字"}'.encode())
    assert vocabulary.decode(tokens) == '{"name": "né à 漢字"}'.encode()
    assert matcher.accept_tokens(tokens) == len(tokens)
    assert matcher.is_accepting


@pytest.mark.parametrize("forced", ["draft", "feed"])
def test_generation(forced: str) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from grammarspec.decoding import Request, Sampling, generate_batch
    from grammarspec.decoding.proposers import Forced
    from tests.oracles.noise_model import NoiseModel

    vocabulary = vocabulary_of(CHARACTERS)
    schema = {
        "type": "object",
        "properties": {"é漢": {"type": "string", "maxLength": 8}, "né": {"enum": ["ü😊", "a"]}},
        "required": ["é漢", "né"],
        "additionalProperties": False,
    }
    grammar = gs.json_schema(schema)
    constraint = gs.compile(grammar, vocabulary)
    with torch.inference_mode():
        requests = [
            Request(
                prompt=[1],
                matcher=constraint.matcher(),
                sampling=Sampling(temperature=1.0, seed=seed, max_tokens=60, on_limit="close"),
            )
            for seed in range(8)
        ]
        options: dict[str, Any] = {"proposers": [Forced()]} if forced == "draft" else {"forced": "feed"}
        found = [each for (each,) in generate_batch(NoiseModel(vocabulary.size), requests, vocabulary, **options)]
    for generation in found:
        assert grammar.matches(generation.text), generation.text
    assert len({generation.text for generation in found}) == len(found)
