"""Text that the grammar forces, and how it is split into tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import grammarspec as gs  # noqa: E402
from grammarspec.decoding.proposers import Forced, spellings  # noqa: E402
from grammarspec.decoding.proposers.spellings import spellings_of  # noqa: E402
from grammarspec.decoding.proposers.whitespace import WHITESPACE  # noqa: E402
from grammarspec.decoding.sequence_state import SequenceState  # noqa: E402
from grammarspec.grammars import marks  # noqa: E402
from tests import tiers  # noqa: E402
from tests.counting import examples  # noqa: E402
from tests.decoding.test_whitespace import STYLES  # noqa: E402
from tests.oracles.drafting import BYTES, END, batch_of, draft_for, matcher_of, sequence  # noqa: E402


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


def forced_draft(
    row: SequenceState, room: int = 200, *, proposer: Forced | None = None
) -> tuple[bytes, list[str], bool]:
    """What is drafted, by whom, and whether the end is."""
    proposer = Forced() if proposer is None else proposer
    draft = draft_for([row], room)
    proposer.start(batch_of([row]))
    proposer.propose(draft, [0])
    draft.rollback(0)
    tokens = draft.tokens[0]
    assert len(draft.sources[0]) == len(tokens) <= room
    assert not any(draft.drawn[0])
    return BYTES.decode(tokens), draft.sources[0], tokens[-1:] == [END]


def forced_text(matcher: Any) -> tuple[bytes, bool]:
    """Byte by byte: as long as there is one way on."""
    text = b""
    while True:
        following, ends = matcher.next_bytes(text)
        if ends or len(following) != 1:
            return text, ends and not following
        text += following


@pytest.mark.parametrize(
    "pattern",
    [
        "abc",
        "ab(c|d)e",
        "(alpha|alpine) end",
        "[ab]c",
        "x{5}y{0,3}",
        "(yes|yesterday)",
        "é(漢|字)",
        " ( a)?b",
        "a ?b",
        "q|",
    ],
)
@examples(30)
@given(data=st.data())
def test_forced_text_is_drafted(pattern: str, data: st.DataObject) -> None:
    """From every place of a text: what every completion begins with."""
    constraint = gs.compile(gs.regex(pattern), BYTES)
    matcher, text = constraint.matcher(), b""
    while True:
        expected, ends = forced_text(matcher)
        for proposer in (Forced(preferred=False), Forced()):
            row = sequence([0], matcher)
            said, sources, ended = forced_draft(row, proposer=proposer)
            if set(matcher.next_bytes(expected)[0]) & set(WHITESPACE) and proposer.preferred:
                assert said.startswith(expected)
                continue
            assert (said, ended) == (expected, ends)
            assert sources == ["forced"] * (len(said) + ended)
        following, may_end = matcher.next_bytes()
        if not following or (may_end and data.draw(st.booleans())):
            break
        byte = data.draw(st.sampled_from(sorted(following)))
        assert matcher.accept_token(byte)
        text += bytes([byte])


def test_forced_drafts_have_room() -> None:
    row = sequence([0], matcher_of("abcdefgh"))
    assert forced_draft(row, 3) == (b"abc", ["forced"] * 3, False)
    assert forced_draft(row, 8) == (b"abcdefgh", ["forced"] * 8, False)
    assert forced_draft(row, 9) == (b"abcdefgh", ["forced"] * 9, True)


def test_nothing_is_forced_without_a_constraint() -> None:
    sequences = [sequence(b"a"), sequence(b"a", matcher_of("bc"))]
    draft = draft_for(sequences, 5)
    proposer = Forced()
    proposer.start(batch_of(sequences))
    proposer.propose(draft, [0, 1])
    assert draft.tokens == [[], [*b"bc", END]]


def test_a_name_that_is_not_forced_whole_is_not_drafted() -> None:
    """The marks of ``<aa>`` and ``<ab>`` begin alike, and no token says their beginning."""
    tokens = [bytes([value]) for value in range(256)]
    names = {"<aa>": 257, "<ab>": 258}
    vocabulary = gs.Vocabulary.from_tokens(tokens, [END], special_tokens=names, size=259)
    matcher = gs.compile("x" + (gs.special("<aa>") | gs.special("<ab>")), vocabulary).matcher()
    assert marks.whole(matcher.forced_bytes()) == b"x" != matcher.forced_bytes()
    assert matcher.forced_tokens() == [ord("x")]
    assert marks.whole(marks.mark("<aa>") + b"y") == marks.mark("<aa>") + b"y"


def test_forced_goes_on_behind_what_others_drafted() -> None:
    row = sequence([0], matcher_of("(ab|cd)xyz"))
    draft = draft_for([row], 20)
    proposer = Forced()
    proposer.start(batch_of([row]))
    proposer.propose(draft, [0])
    assert draft.tokens == [[]]
    draft.extend(0, [ord("c")], "other")
    proposer.propose(draft, [0])
    assert draft.tokens == [[*b"cdxyz", END]]
    assert draft.sources == [["other"] + ["forced"] * 5]


def constants(value: Any) -> dict[str, Any]:
    """A schema of this very value."""
    if isinstance(value, dict):
        properties = {name: constants(child) for name, child in value.items()}
        return {
            "type": "object",
            "properties": properties,
            "required": [*properties],
            "additionalProperties": False,
        }
    if isinstance(value, list):
        items = [constants(child) for child in value]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    return {"enum": [value, value + "z"]} if value in ("x", "y") else {"const": value}


def squeezed(text: bytes) -> bytes:
    return bytes(byte for byte in text if byte not in WHITESPACE)


RECORD = {"kind": "a", "tags": ["b", "{c,"], "deep": {"one": "x", "two": [["d"], ["e"]]}}


@pytest.mark.parametrize("style", tiers.some(STYLES, least=4), ids=str)
def test_forced_but_for_whitespace(style: dict[str, Any]) -> None:
    """From every byte of a JSON text in every style, towards that text."""
    value = [RECORD, RECORD, "y", RECORD]
    text = json.dumps(value, **style).encode()
    # What has been read when the first record is over has all kinds of places but the one behind the last element.
    learnt = len(json.dumps(value[:1], **style).encode())
    constraint = gs.compile(gs.json_schema(constants(value)), BYTES)
    row = sequence([0], constraint.matcher())
    proposer = Forced()
    proposer.start(batch_of([row]))
    open_choices = {place + 2 for place in range(len(text)) if text[place : place + 3] in (b'"x"', b'"y"')}
    for place in range(len(text) + 1):
        draft = draft_for([row], 600)
        proposer.propose(draft, [0])
        draft.rollback(0)
        said, rest = BYTES.decode(draft.tokens[0]), text[place:]
        forced = draft.sources[0].count("forced")
        ended = draft.tokens[0][-1:] == [END]
        assert draft.sources[0] == ["forced"] * forced + ["preferred"] * (len(draft.tokens[0]) - forced)
        # No guess is in what is forced.
        assert rest.startswith(said[:forced])
        # Nor is anything but whitespace guessed; the strings of this text have none.
        assert squeezed(rest).startswith(squeezed(said))
        assert ended == (len(squeezed(said)) == len(squeezed(rest)))
        if place >= learnt:
            expected = text[place : min([choice for choice in open_choices if choice >= place], default=len(text))]
            assert said == expected[: len(said)]
            # It looks ahead so far at least; where a value is open, up to it.
            assert len(said) >= min(len(expected), 400)
        if place < len(text):
            assert row.commit(text[place])


def test_whitespace_is_guessed_only_if_asked_for() -> None:
    row = sequence([0], gs.compile(gs.json_schema(constants(RECORD)), BYTES).matcher(), text=b'{\n  "kind')
    assert forced_draft(row, proposer=Forced(preferred=False)) == (b'"', ["forced"], False)
    said, sources, _ = forced_draft(row)
    assert said.startswith(b'":"a",\n  "tags":[\n    "b",\n    "{c,"\n  ],\n  "deep":{\n    "one":"x')
    assert sources == ["forced"] + ["preferred"] * (len(said) - 1)


def test_spellings_are_those_of_the_rows() -> None:
    constraint = gs.compile(gs.json_schema(constants(RECORD)), BYTES)
    begun = (b"", b'{\n "kind": "a",', b'{"kind":"a", ')
    sequences = [sequence(b'{\n\n\n"', constraint.matcher(), text=text) for text in begun]
    proposer = Forced()
    batch = batch_of(sequences)
    proposer.start(batch)
    expected = [b'{"kind":"a","tags":["b"', b'\n "tags": [\n  "b",\n  "', b'"tags":["b", "{c,"], "deep"']
    for order in ([0, 1, 2], [2, 1], [0]):
        batch.sequences = sequences = [sequences[row] for row in order]
        expected = [expected[row] for row in order]
        proposer.select(order)
        draft = draft_for(sequences, 100)
        proposer.propose(draft, range(len(sequences)))
        for row, text in enumerate(expected):
            assert BYTES.decode(draft.tokens[row]).startswith(text), order
            draft.rollback(row)


def test_a_guess_is_not_forced_through() -> None:
    """Whitespace that the constraint does not allow at a place is not drafted, nor what stands behind it."""
    row = sequence([0], matcher_of(r"\[\n 1,[ ]?2\]"), text=b"[\n 1,")
    assert forced_draft(row) == (b"", [], False)
    row = sequence([0], matcher_of(r"\[ 1,[ \n]?2\]"), text=b"[ 1,")
    assert forced_draft(row) == (b"2]", ["preferred"] * 3, True)
    # But some may come where what stands behind it is open.
    row = sequence([0], matcher_of(r"\[1, 2,[ ]?[34]\]"), text=b"[1, 2,")
    assert forced_draft(row) == (b" ", ["preferred"], False)


# How text is split into tokens.


def test_text_is_split_as_the_tokenizer_splits_it(smollm2_tokenizer: Any) -> None:
    vocabulary = gs.Vocabulary.from_tokenizer(smollm2_tokenizer)
    end = vocabulary.eos_token_ids[0]

    def encode(text: str) -> list[int]:
        return list(smollm2_tokenizer.encode(text, add_special_tokens=False))

    for prompt in ("The answer:\n", "a"):
        for style in ({}, {"separators": (",", ":")}, {"indent": 2}):
            value = {"first_name": "Zoë", "tags": ["漢字", "a b", "don't"], "n": 12.5}
            text = json.dumps([value, value, value], ensure_ascii=False, **style)
            schema = constants([value] * 3)
            # The target writes one record; the others are drafted.
            at = text.index("Zo", 20 + text.index("Zo"))
            whole, begun = encode(prompt + text), encode(prompt + text[:at])
            begun = [ours for ours, theirs in zip(begun, whole, strict=False) if ours == theirs]
            assert whole[: len(begun)] == begun
            prompted = encode(prompt)
            assert whole[: len(prompted)] == prompted
            row = sequence(
                prompted,
                gs.compile(gs.json_schema(schema), vocabulary).matcher(),
                vocabulary=vocabulary,
                text=begun[len(prompted) :],
            )
            proposer = Forced()
            proposer.start(batch_of([row], vocabulary=vocabulary, end=end))
            draft = draft_for([row], 300, vocabulary=vocabulary)
            proposer.propose(draft, [0])
            assert draft.tokens[0] == [*whole[len(begun) :], end], (prompt, style)


def test_spell_behind_a_context(smollm2_tokenizer: Any) -> None:
    vocabulary = gs.Vocabulary.from_tokenizer(smollm2_tokenizer)

    def encode(text: str) -> list[int]:
        return list(smollm2_tokenizer.encode(text, add_special_tokens=False))

    def spelled(text: bytes, before: bytes = b"") -> list[int]:
        tokens = vocabulary.spell(text, before=before)
        assert vocabulary.decode(tokens) == text
        return tokens

    text = '{"name": "Zoë", "tags": ["x", 12], "多": "漢字"}'
    whole = encode(text)
    assert spelled(text.encode()) == whole
    read = 0
    for count, token in enumerate(whole):
        # At each boundary between tokens the tokenizer's split goes on.
        said = len(vocabulary.token_bytes(token) or b"")
        assert spelled(text.encode()[read:], text.encode()[:read]) == whole[count:]
        # Inside a token, or inside a character, the longest tokens are taken.
        for at in range(read + 1, read + said):
            rest = text.encode()[at:]
            assert spelled(rest, text.encode()[:at]) == vocabulary.index.spell(rest)
        read += said
    # What stands before matters.
    assert spelled(b"'re here", b"we") == encode("we're here")[1:]
    assert spelled("é".encode()[1:], "é".encode()[:1]) == vocabulary.index.spell("é".encode()[1:])
    assert spelled("aé".encode()[:2], b"") == vocabulary.index.spell("aé".encode()[:2])
    # A special token's text is no text of tokens; it is spelled by others.
    assert smollm2_tokenizer.eos_token_id not in spelled(smollm2_tokenizer.eos_token.encode())
    assert spelled(b"", b"abc") == []


def test_spell_without_a_tokenizer() -> None:
    vocabulary = gs.Vocabulary.from_tokens([b"a", b"b", b"ab", b"abc", b"c"], [5])
    assert vocabulary.spell(b"abcab") == [3, 2]
    assert vocabulary.spell(b"bcab", before=b"a") == [1, 4, 2]


MERGED = gs.Vocabulary.from_tokens([*(bytes([value]) for value in range(256)), b"ab", b"abc", b"xa", b"12"], [260])
AB, ABC, XA, TWELVE = 256, 257, 258, 259


def round_of(proposer: Forced, row: SequenceState, chosen: int | None, room: int = 30) -> list[int]:
    """A draft, and how the target took it: up to where it chose another token."""
    draft = draft_for([row], room, vocabulary=MERGED)
    proposer.propose(draft, [0])
    tokens = list(draft.tokens[0])
    draft.rollback(0)
    if chosen is not None:
        at = next(place for place, token in enumerate(tokens) if token in (AB, ABC) and token != chosen)
        for token in [*tokens[:at], chosen]:
            assert row.commit(token)
        proposer.commit(draft, [at])
    return tokens


def test_splits_of_the_target_are_learnt() -> None:
    proposer = Forced()
    row = sequence([0], matcher_of(r"(.abc\.abc\.){3}", MERGED), vocabulary=MERGED, text=[ord("-")])
    proposer.start(batch_of([row], vocabulary=MERGED, end=260))
    dot = ord(".")
    assert round_of(proposer, row, AB) == [ABC, dot, ABC, dot]
    assert MERGED.decode(row.tokens[1:]) == b"-ab"
    # Behind a dash the target splits; behind a dot nothing is known of it.
    assert round_of(proposer, row, None) == [ord("c"), dot, ABC, dot]
    for token in [ord("c"), dot, ABC, dot, ord("-")]:
        assert row.commit(token)
    assert round_of(proposer, row, ABC) == [AB, ord("c"), dot, ABC, dot]
    # And no more, once the target has taken the whole.
    for token in [dot, ABC, dot, ord("-")]:
        assert row.commit(token)
    assert round_of(proposer, row, None) == [ABC, dot, ABC, dot, 260]


def test_kinds_of_places_where_text_is_split() -> None:
    """Behind letters and digits alike."""
    proposer = Forced()
    row = sequence([0], matcher_of(r"[a-z0-9]abc-.abc[.]", MERGED), vocabulary=MERGED, text=[ord("q")])
    proposer.start(batch_of([row], vocabulary=MERGED, end=260))
    assert round_of(proposer, row, ord("a"))[0] == ABC
    for token in [*b"bc-7"]:
        assert row.commit(token)
    assert round_of(proposer, row, None) == [*b"abc.", 260]
    other = sequence([0], matcher_of(r"[ ]abc", MERGED), vocabulary=MERGED, text=[ord(" ")])
    proposer.start(batch_of([other], vocabulary=MERGED, end=260))
    assert round_of(proposer, other, None) == [ABC, 260]


def test_what_the_target_chose_is_remembered_for_the_vocabulary() -> None:
    """In front of the same text behind the same token: by other proposers, in other batches, too."""
    proposer = Forced()
    row = sequence([0], matcher_of(r"-abcabc", MERGED), vocabulary=MERGED)
    proposer.start(batch_of([row], vocabulary=MERGED, end=260))
    assert round_of(proposer, row, AB) == [ord("-"), ABC, ABC, 260]
    other = Forced()
    row = sequence([0], matcher_of(r"-abcabc", MERGED), vocabulary=MERGED)
    other.start(batch_of([row], vocabulary=MERGED, end=260))
    assert round_of(other, row, None) == [ord("-"), AB, ord("c"), ABC, 260]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spellings, "_KEPT", 3)
    known = spellings.Spellings()
    for text in (b"a1", b"a2", b"a3", b"a1", b"a4"):
        known.learn(MERGED, text, [5], ord("a"), None)
    assert [text for _, text in known._chosen] == [b"a3", b"a1", b"a4"], "the oldest are forgotten"
    known.learn(MERGED, b"a5", [5], ord("b"), None)
    known.learn(MERGED, b"a5", [], ord("a"), None)
    assert len(known._chosen) == 3, "only what begins the text, and stands behind a token"


def test_refusals_of_other_proposers_teach_nothing() -> None:
    proposer = Forced()
    row = sequence([0], matcher_of(r"abc+\.abc", MERGED), vocabulary=MERGED)
    proposer.start(batch_of([row], vocabulary=MERGED, end=260))
    draft = draft_for([row], 3, vocabulary=MERGED)
    draft.extend(0, [ABC, ord(".")], "lookup")
    draft.rollback(0)
    assert row.commit(AB)
    proposer.commit(draft, [0])
    assert spellings_of(MERGED).spell(MERGED, b"abc", [0]) == [ABC]


def test_splits_are_of_the_vocabulary() -> None:
    """A proposer that served another vocabulary knows nothing of this one."""
    proposer = Forced()
    row = sequence([0], matcher_of(r"-abc", MERGED), vocabulary=MERGED, text=[ord("-")])
    proposer.start(batch_of([row], vocabulary=MERGED, end=260))
    assert round_of(proposer, row, AB) == [ABC, 260]
    other = gs.Vocabulary.from_tokens([*(bytes([value]) for value in range(256)), b"zz", b"abc"], [260])
    row = sequence([0], matcher_of(r"-abc", other), vocabulary=other, text=[ord("-")])
    proposer.start(batch_of([row], vocabulary=other, end=260))
    draft = draft_for([row], 9, vocabulary=other)
    proposer.propose(draft, [0])
    assert draft.tokens == [[ABC, 260]]
