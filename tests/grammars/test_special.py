"""Special tokens in grammars: one token each, which no text can spell."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from grammarspec.grammars import marks

A, B, END = 256, 257, 258
NAMES = {"<a>": A, "<bé>": B, "<end>": END}
VOCABULARY = gs.Vocabulary.from_tokens(
    [*(bytes([value]) for value in range(256)), None, None, None, b"<a>", b"<a", b"xy"], [END], special_tokens=NAMES
)
TEXT = [number for number in range(VOCABULARY.size) if VOCABULARY.token_bytes(number) is not None]


def allowed(matcher: gs.Matcher) -> set[int]:
    """The tokens of the mask, after seeing that they are those that are accepted."""
    rows = gs.allocate_bitmask(1, VOCABULARY.size)
    matcher.fill_bitmask(rows)
    found = {token for token in range(VOCABULARY.size) if rows[0, token // 32] >> token % 32 & 1}
    assert found == {token for token in range(VOCABULARY.size) if matcher.fork().accept_token(token)}
    return found


PARTS: st.SearchStrategy[gs.Grammar[Any]] = st.recursive(
    st.sampled_from(
        [
            gs.literal("x"),
            gs.literal("<a>"),
            gs.special("<a>"),
            gs.special("<bé>"),
            gs.text(),
            gs.text(until="<a"),
            gs.regex("[^x]{2,20}"),
            gs.json_schema({"type": "string", "maxLength": 3}),
        ]
    ),
    lambda parts: st.one_of(
        st.tuples(parts, parts).map(lambda pair: pair[0] + pair[1]),
        st.tuples(parts, parts).map(lambda pair: pair[0] | pair[1]),
        st.tuples(parts, st.integers(0, 2), st.integers(2, 12)).map(lambda it: it[0].repeat(it[1], it[2], sep="x")),
    ),
    max_leaves=5,
)


@given(PARTS, st.data())
def test_masks_are_what_is_accepted_and_texts_are_read(grammar: gs.Grammar[Any], data: st.DataObject) -> None:
    constraint = gs.compile(grammar, VOCABULARY)
    matcher = constraint.matcher()
    tokens: list[int] = []
    for _ in range(12):
        tokens.append(data.draw(st.sampled_from(sorted(allowed(matcher), key=lambda token: (token < 256, token)))))
        assert matcher.accept_token(tokens[-1])
        if tokens[-1] == END:
            break
    else:
        ending = constraint.shortest_completion(matcher.state)
        assert len(ending) == constraint.tokens_to_end(matcher.state)
        assert matcher.accept_tokens([*ending, END]) == len(ending) + 1
        tokens += ending
    marked = VOCABULARY.marked(tokens)
    assert grammar.match_marked(marked).text.encode() == marks.named(marked)


def test_it_is_that_token_and_no_text() -> None:
    matcher = gs.compile("x" + gs.special("<a>") + "y", VOCABULARY).matcher()
    assert matcher.forced_tokens() == [ord("x"), A, ord("y")]
    assert allowed(matcher) == {ord("x")}
    matcher.accept_token(ord("x"))
    assert allowed(matcher) == {A}
    assert matcher.accept_tokens([A, ord("y"), END]) == 3


def test_text_is_no_special_token() -> None:
    matcher = gs.compile(gs.text() + "!", VOCABULARY).matcher()
    assert matcher.accept_tokens([A]) == 0
    assert matcher.accept_tokens(b"<a>") == 3
    assert not allowed(matcher) & {A, B}


def test_tokens_to_end_counts_them_as_one() -> None:
    constraint = gs.compile(gs.special("<a>") + gs.special("<bé>"), VOCABULARY)
    assert constraint.shortest_completion(constraint.start) == [A, B]
    assert constraint.tokens_to_end(constraint.start) == 2


def test_texts_spell_their_names() -> None:
    grammar = "x" + gs.special("<a>").named("mark") + gs.text(until="q")
    assert grammar.matches("x<a>y") and not grammar.matches("x<bé>y") and not grammar.matches("xy")
    match = grammar.match("x<a>yé")
    assert (match.value, match.captures) == ("x<a>yé", {"mark": "<a>"})
    with pytest.raises(gs.NoMatch, match=r"unexpected 'q'.*\n  at line 1, column 5"):
        grammar.parse("x<a>q")
    with pytest.raises(gs.NoMatch, match=r"unexpected '<'; a special token may stand here\n  at line 1, column 2"):
        grammar.parse("x<bé>")
    assert all(grammar.matches(grammar.sample(seed)) for seed in range(20))


def test_as_values() -> None:
    grammar = gs.special("<a>") + "x"
    assert repr(grammar) == "gs.special('<a>') + gs.literal('x')"
    assert pickle.loads(pickle.dumps(grammar)) == grammar
    assert gs.Grammar.from_bytes(grammar.to_bytes()).matches("<a>x")
    assert gs.special("<a>") != gs.special("<b>")


def test_refused() -> None:
    with pytest.raises(gs.Unsatisfiable, match="no special token '<c>'\n  hint: it has these, among others: <a>"):
        gs.compile(gs.special("<c>") | "x", VOCABULARY)
    with pytest.raises(gs.Unsatisfiable, match="among others: none"):
        gs.compile(gs.special("<c>"), gs.Vocabulary.bytes())
    with pytest.raises(gs.UnsupportedFeature, match="'<end>', which ends texts"):
        gs.compile("x" + gs.special("<end>"), VOCABULARY)
    with pytest.raises(ValueError, match="has a name"):
        gs.special("")
    with pytest.raises(gs.GrammarSyntaxError, match=r"U\+D800"):
        gs.special("<\ud800>")


def test_bytes_of_marks_are_no_text() -> None:
    assert [*range(0xF5), 259, 260, 261] == TEXT
    assert gs.Vocabulary.bytes().token_bytes(255) == b"\xff"  # without special tokens there are no marks


@given(st.lists(st.one_of(st.text(), st.sampled_from(list(NAMES)))))
def test_marks(parts: list[str]) -> None:
    text = "".join(parts)
    marked = marks.with_marks(text, NAMES)
    assert marks.named(marked).decode() == text
    assert marks.marked_names(marked) == {name for name in NAMES if name in text}
    pieces = list(marks.split(marked))
    assert b"".join(piece for piece, _ in pieces) == marked
    assert all(marks.mark(name) == piece for piece, name in pieces if name is not None)


@given(st.text(), st.text())
def test_spelling_goes_around_them(before: str, behind: str) -> None:
    tokens = VOCABULARY.spell(before.encode() + marks.mark("<a>") + behind.encode())
    assert tokens.count(A) == 1
    assert VOCABULARY.marked(tokens) == before.encode() + marks.mark("<a>") + behind.encode()
    assert VOCABULARY.decode(tokens) == (before + behind).encode()


def test_real_vocabularies(smollm2_tokenizer: Any) -> None:
    vocabulary = gs.Vocabulary.from_tokenizer(smollm2_tokenizer)
    assert vocabulary.special_tokens["<|im_start|>"] == 1
    assert vocabulary.special_tokens["<|im_end|>"] in vocabulary.eos_token_ids
    matcher = gs.compile(gs.text() + gs.special("<|im_start|>") + gs.choice(["user", "tool"]), vocabulary).matcher()
    tokens = smollm2_tokenizer.encode("hello<|im_start|>user", add_special_tokens=False)
    assert matcher.accept_tokens(tokens) == len(tokens) and matcher.is_accepting
    assert vocabulary.spell(b"hello" + marks.mark("<|im_start|>") + b"user") == tokens


def test_generated(tiny_model_directory: Path) -> None:
    pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from grammarspec.decoding.proposers import Forced, Lookup

    network = AutoModelForCausalLM.from_pretrained(tiny_model_directory)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model_directory)
    tokenizer.add_tokens(["<call>"], special_tokens=True)
    call = gs.special("<call>")
    item = gs.text(until="a", max_chars=6).named("said") + call + gs.choice(["ab", "b"])
    grammar = item.repeat(2, 3, sep=call)
    closing = gs.Sampling(max_tokens=30, on_limit="close")
    texts = []
    for proposers in ([], [Forced()], [Forced(), Lookup()]):
        model = gs.Model(network, tokenizer, draft=proposers)
        assert model.vocabulary.special_tokens == {"</s>": 256, "<turn>": 257, "<call>": 258}
        found = model.run("ab<call>ab<call>ab", grammar, sampling=closing)
        assert "<call>".join(found.output) == found.text
        assert found.text.count("<call>") == 2 * len(found.output) - 1
        stream = model.stream("ab<call>ab<call>ab", grammar, sampling=closing)
        assert "".join(stream) == found.text == stream.result.text
        texts.append(found.text)
    assert len(set(texts)) == 1
