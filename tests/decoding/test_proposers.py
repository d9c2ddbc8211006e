"""Where drafts come from: each proposer against the same drafting done by hand."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import grammarspec as gs  # noqa: E402
from grammarspec.decoding import Request, Sampling, generate_batch  # noqa: E402
from grammarspec.decoding.draft import Draft, MaskRows  # noqa: E402
from grammarspec.decoding.lane import Lane  # noqa: E402
from grammarspec.decoding.loop import Batch  # noqa: E402
from grammarspec.decoding.proposers import DraftModel, EarlyExit, Forced, HeadProposer, Lookup  # noqa: E402
from grammarspec.decoding.proposers.head import ResidualHead  # noqa: E402
from grammarspec.decoding.proposers.protocol import propose  # noqa: E402
from grammarspec.decoding.whitespace import WHITESPACE, Spelling  # noqa: E402

BYTES = gs.Vocabulary.bytes()
END = 256
WIDTH = 264
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


def lane(
    tokens: Sequence[int], matcher: Any = None, *, vocabulary: gs.Vocabulary = BYTES, text: Sequence[int] = ()
) -> Lane:
    made = Lane(0, 0, Request(prompt=tokens, matcher=matcher), vocabulary, None, None)
    for token in text:
        assert made.commit(token)
    return made


def draft_for(lanes: Sequence[Lane], room: int | Sequence[int], *, vocabulary: gs.Vocabulary = BYTES) -> Draft:
    rooms = [room] * len(lanes) if isinstance(room, int) else room
    return Draft(lanes, rooms, MaskRows(len(lanes), max(rooms), vocabulary.size), CPU)


def batch_of(lanes: Sequence[Lane], *, vocabulary: gs.Vocabulary = BYTES, end: int = END) -> Any:
    """As much of a batch as proposers without a model look at."""
    return SimpleNamespace(lanes=list(lanes), vocabulary=vocabulary, end_token=end)


def matcher_of(pattern: str, vocabulary: gs.Vocabulary = BYTES) -> Any:
    return gs.compile(gs.regex(pattern), vocabulary).matcher()


def allowed_of(matcher: Any, tokens: Sequence[int]) -> list[int]:
    """The leading tokens that a constraint allows, one by one."""
    if matcher is None:
        return list(tokens)
    fork = matcher.fork()
    taken: list[int] = []
    for token in tokens:
        if fork.is_terminated or not fork.accept_token(token):
            break
        taken.append(token)
    return taken


# Prompt lookup.


def looked_up(proposer: Lookup, row: Lane, room: int = 8) -> str:
    draft = draft_for([row], room)
    proposer.start(batch_of([row]))
    proposer.propose(draft, [0])
    assert draft.sources[0] == ["lookup"] * len(draft.tokens[0])
    assert not any(draft.drawn[0])
    return bytes(draft.tokens[0]).decode()


def test_lookup_takes_the_longest_match() -> None:
    # "bc" came up twice, later the one behind "a"; "abc" only there.
    assert looked_up(Lookup(), lane(b"abcX...zbcY...abc"), 1) == "X"
    assert looked_up(Lookup(longest=2), lane(b"abcX...zbcY...abc"), 1) == "Y"


def test_lookup_takes_the_latest_match() -> None:
    assert looked_up(Lookup(), lane(b" ab1 ab2 ab3 ab"), 1) == "3"
    assert looked_up(Lookup(), lane(b" ab1 ab2 ab3 ab"), 4) == "3 ab"
    # Unless more stands behind an earlier one.
    assert looked_up(Lookup(), lane(b" ab1 ab2 ab3 ab"), 8) == "2 ab3 ab"
    assert looked_up(Lookup(), lane(b" ab1 ab2 ab3 ab"), 20) == "1 ab2 ab3 ab"


def test_lookup_takes_what_the_constraint_allows() -> None:
    text = b" ab12x ab3ab 77yy ab"
    assert looked_up(Lookup(), lane(text), 3) == "3ab"
    assert looked_up(Lookup(), lane(text, matcher_of("[0-9]+y?")), 3) == "12"
    # Of what is allowed as far, the latest.
    assert looked_up(Lookup(), lane(text, matcher_of("[0-9]+")), 1) == "3"
    assert looked_up(Lookup(), lane(text, matcher_of("[z]+"))) == ""
    # A shorter match is looked at where no occurrence of the longer one is allowed.
    assert looked_up(Lookup(), lane(b"..b9 ab1 ab", matcher_of("9[0-9 ]*"))) == "9 "


def test_lookup_looks_no_further_than_it_is_told() -> None:
    text = b" ab1 ab2 ab3 ab"
    assert looked_up(Lookup(tries=2), lane(text, matcher_of("1.*"))) == ""
    assert looked_up(Lookup(tries=3), lane(text, matcher_of("1.*"))) == "1 ab2 ab"
    assert looked_up(Lookup(shortest=3), lane(b"ab1 cab")) == ""
    assert looked_up(Lookup(), lane(b"abcdef")) == ""


def test_lookup_ends_at_the_end_of_a_text() -> None:
    row = lane([*b"ab1", END, *b"xx ab"])
    draft = draft_for([row], 8)
    proposer = Lookup()
    proposer.start(batch_of([row]))
    proposer.propose(draft, [0])
    assert draft.tokens[0] == [*b"1", END]


@pytest.mark.parametrize(("longest", "shortest"), [(3, 0), (0, 0), (2, 3), (3, -1)])
def test_lookup_refuses(longest: int, shortest: int) -> None:
    with pytest.raises(ValueError, match=rf"shortest must be from 1 to longest \({longest}\), not {shortest}"):
        Lookup(longest, shortest)


LETTERS = st.lists(st.sampled_from(b"abc"), max_size=14)


@given(data=st.data())
def test_lookup_equals_a_search(data: st.DataObject) -> None:
    """Over texts that grow, rows that are dropped, and drafts that others began."""
    longest = data.draw(st.integers(1, 4))
    shortest, tries = data.draw(st.integers(1, longest)), data.draw(st.integers(1, 4))
    proposer = Lookup(longest, shortest, tries)
    patterns = data.draw(st.lists(st.sampled_from([None, "[abc]*", "(ab?c?){0,9}", "(a|bc)*"]), min_size=1, max_size=3))
    lanes = [
        lane([ord("a"), *data.draw(LETTERS)], None if pattern is None else matcher_of(pattern)) for pattern in patterns
    ]
    proposer.start(batch_of(lanes))
    batch: Any = proposer._batch
    for _ in range(3):
        draft = draft_for(lanes, [data.draw(st.integers(1, 6)) for _ in lanes])
        for row in range(len(lanes)):
            draft.extend(row, data.draw(LETTERS)[: data.draw(st.integers(0, 3))], "other")
        rows = draft.open()
        begun = [list(tokens) for tokens in draft.tokens]
        forks = [None if row.matcher is None else row.matcher.fork() for row in lanes]
        proposer.propose(draft, rows)
        for row in range(len(lanes)):
            text = lanes[row].tokens + begun[row]
            expected: list[int] = []
            for length in range(longest, shortest - 1, -1):
                ends = [
                    end
                    for end in range(len(lanes[row].tokens) - 1, length - 1, -1)
                    if length <= len(text) and text[end - length : end] == text[len(text) - length :]
                ]
                room = draft._room[row] - len(begun[row])
                found = [allowed_of(forks[row], text[end : end + room]) for end in ends[:tries]]
                expected = max(found, key=len, default=[])
                if expected:
                    break
            assert draft.tokens[row] == begun[row] + (expected if row in rows else [])
            draft.take_back(row)
        for row in lanes:
            for token in allowed_of(row.matcher, data.draw(LETTERS)):
                row.commit(token)
        if len(lanes) > 1 and data.draw(st.booleans()):
            kept = data.draw(st.permutations(range(len(lanes))))[: len(lanes) - 1]
            lanes = batch.lanes = [lanes[row] for row in kept]
            proposer.select(kept)


# How whitespace is spelled.


STRINGS = st.text(alphabet=st.sampled_from('ab {}[](),:"\\\n\té漢'), max_size=6)
SCALARS = st.none() | st.booleans() | st.integers(-100, 100) | st.floats(-1, 1) | STRINGS
VALUES = st.recursive(
    SCALARS,
    lambda values: st.lists(values, min_size=1, max_size=3) | st.dictionaries(STRINGS, values, min_size=1, max_size=3),
    max_leaves=10,
)
STYLES: list[dict[str, Any]] = [
    {"indent": 1},
    {"indent": 2},
    {"indent": 4},
    {"indent": "\t"},
    {"indent": 0},
    {"separators": (",", ":")},
    {"separators": (", ", ": ")},
    {"separators": (" , ", " : ")},
    {"indent": 2, "separators": (",", ":")},
]


def solid_bytes(text: bytes) -> Iterator[tuple[int, int]]:
    """Where the whitespace before a value, a key or a mark begins, and where itself does."""
    in_string = escaped = False
    begin = None
    inside = False  # a number or a name
    for place, byte in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif byte == ord("\\"):
                escaped = True
            elif byte == ord('"'):
                in_string = False
            continue
        if byte in WHITESPACE:
            begin = place if begin is None else begin
            inside = False
            continue
        mark = byte in b'{}[],:"'
        if mark or not inside:
            yield place if begin is None else begin, place
        in_string, inside, begin = byte == ord('"'), not mark, None


@pytest.mark.parametrize("style", STYLES, ids=str)
@given(value=VALUES)
def test_spelling_predicts_what_is_spelled_as_before(style: dict[str, Any], value: Any) -> None:
    """The first lines of the text are those of a small value of the same style; all that follows is predicted."""
    first = {"k": [0, 1], "l": {"m": 0, "n": [[2]]}}
    text = json.dumps([first, value], ensure_ascii=False, **style).encode()
    learnt = len(json.dumps([first], ensure_ascii=False, **style).encode().rstrip(b"]").rstrip()) + 1
    spelling = Spelling()
    read = 0
    for begin, place in solid_bytes(text):
        for at in range(begin, place + 1):
            spelling.read(text[read:at])
            read = at
            if begin < learnt:
                continue
            # Wherever in the whitespace the text stands, the rest of it is known.
            assert not spelling.in_string
            assert spelling.guess(text[place]) == text[at:place], (text[:at], spelling)
            if text[place] not in b"}],:":
                assert spelling.guess(None) == text[at:place]
    spelling.read(text[read:])
    assert (spelling.depth, spelling.in_string) == (0, False)


def test_spelling_is_compact_if_nothing_is_known() -> None:
    spelling = Spelling()
    for byte in b'{"a":[1,2],"b":{"c":"d"}}':
        assert spelling.guess(byte) == b""
        spelling.read(bytes([byte]))


def test_spelling_knows_the_step_from_one_line() -> None:
    """One line is enough for the others, also for those of other depths and for closing brackets."""
    spelling = Spelling()
    spelling.read(b'{\n   "a": [')
    assert spelling.guess(None) == b"\n      "
    assert spelling.guess(ord("]")) == b"\n   "
    spelling.read(b"\n      1")
    assert spelling.guess(ord("]")) == b"\n   "
    assert spelling.guess(ord(",")) == b""
    spelling.read(b",")
    assert spelling.guess(None) == b"\n      "
    spelling.read(b"\n    ")
    assert spelling.guess(None) == b"  "
    spelling.read(b"\n")
    assert spelling.guess(None) == b"", "what stands there is no beginning of what is known"
    spelling.read(b"    2\n   ]")
    assert spelling.guess(ord("}")) == b"\n"
    assert spelling.guess(ord(":")) == b""


def test_spelling_follows_the_latest() -> None:
    spelling = Spelling()
    spelling.read(b'{"a":1,"b": 2,')
    assert spelling.guess(ord('"')) == b""
    spelling.read(b'  "c"')
    assert spelling.guess(ord(":")) == b""
    spelling.read(b":")
    assert spelling.guess(None) == b" "
    spelling.read(b" 3,")
    assert spelling.guess(ord('"')) == b"  "
    spelling.read(b'\n  "d": 4,')
    assert spelling.guess(ord('"')) == b"\n  "
    spelling.read(b'"e": 5,')
    assert spelling.guess(ord('"')) == b""


@pytest.mark.parametrize("text", ['"}]"', '"\\""', '"\\\\"', '"{[ \\" {["', '"a\\\\\\"b}"', '" , : "', '"é\\u00e9"'])
def test_strings_are_not_read_as_structure(text: str) -> None:
    spelling = Spelling()
    spelling.read(b"{\n  ")
    for end in range(1, len(text)):
        part = spelling.copy()
        part.read(text[:end].encode())
        assert part.in_string
        assert part.depth == 1
    spelling.read(text.encode())
    assert (spelling.in_string, spelling.depth, spelling.last, spelling.run) == (False, 1, ord('"'), b"")
    spelling.read(b": 1,")
    assert spelling.guess(ord('"')) == b"\n  "


def test_copies_of_a_spelling_read_on_apart() -> None:
    spelling = Spelling()
    spelling.read(b'{\n  "a": ')
    other = spelling.copy()
    other.read(b'[\n    "x')
    assert (other.depth, other.in_string) == (2, True)
    assert (spelling.depth, spelling.in_string, spelling.last, spelling.run) == (1, False, ord(":"), b" ")
    spelling.read(b'1  ,"b"')
    assert other.in_string
    # What one learns the other knows.
    other.read(b'"')
    assert other.guess(ord(",")) == b"  "


# Text that the grammar forces.


def forced_draft(row: Lane, room: int = 200, *, proposer: Forced | None = None) -> tuple[bytes, list[str], bool]:
    """What is drafted, by whom, and whether the end is."""
    proposer = Forced() if proposer is None else proposer
    draft = draft_for([row], room)
    proposer.start(batch_of([row]))
    proposer.propose(draft, [0])
    draft.take_back(0)
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
@settings(max_examples=30)
@given(data=st.data())
def test_forced_text_is_drafted(pattern: str, data: st.DataObject) -> None:
    """From every place of a text: what every completion begins with."""
    constraint = gs.compile(gs.regex(pattern), BYTES)
    matcher, text = constraint.matcher(), b""
    while True:
        expected, ends = forced_text(matcher)
        for proposer in (Forced(preferred=False), Forced()):
            row = lane([0], matcher)
            said, sources, ended = forced_draft(row, proposer=proposer)
            if set(matcher.next_bytes(expected)[0]) & set(WHITESPACE) and proposer._preferred:
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
    row = lane([0], matcher_of("abcdefgh"))
    assert forced_draft(row, 3) == (b"abc", ["forced"] * 3, False)
    assert forced_draft(row, 8) == (b"abcdefgh", ["forced"] * 8, False)
    assert forced_draft(row, 9) == (b"abcdefgh", ["forced"] * 9, True)


def test_nothing_is_forced_without_a_constraint() -> None:
    lanes = [lane(b"a"), lane(b"a", matcher_of("bc"))]
    draft = draft_for(lanes, 5)
    proposer = Forced()
    proposer.start(batch_of(lanes))
    proposer.propose(draft, [0, 1])
    assert draft.tokens == [[], [*b"bc", END]]


def test_forced_goes_on_behind_what_others_drafted() -> None:
    row = lane([0], matcher_of("(ab|cd)xyz"))
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


@pytest.mark.parametrize("style", STYLES, ids=str)
def test_forced_but_for_whitespace(style: dict[str, Any]) -> None:
    """From every byte of a JSON text in every style, towards that text."""
    value = [RECORD, RECORD, "y", RECORD]
    text = json.dumps(value, **style).encode()
    # What has been read when the first record is over has all kinds of places but the one behind the last element.
    learnt = len(json.dumps(value[:1], **style).encode())
    constraint = gs.compile(gs.json_schema(constants(value)), BYTES)
    row = lane([0], constraint.matcher())
    proposer = Forced()
    proposer.start(batch_of([row]))
    open_choices = {place + 2 for place in range(len(text)) if text[place : place + 3] in (b'"x"', b'"y"')}
    for place in range(len(text) + 1):
        draft = draft_for([row], 600)
        proposer.propose(draft, [0])
        draft.take_back(0)
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
    row = lane([0], gs.compile(gs.json_schema(constants(RECORD)), BYTES).matcher(), text=b'{\n  "kind')
    assert forced_draft(row, proposer=Forced(preferred=False)) == (b'"', ["forced"], False)
    said, sources, _ = forced_draft(row)
    assert said.startswith(b'":"a",\n  "tags":[\n    "b",\n    "{c,"\n  ],\n  "deep":{\n    "one":"x')
    assert sources == ["forced"] + ["preferred"] * (len(said) - 1)


def test_spellings_are_those_of_the_rows() -> None:
    constraint = gs.compile(gs.json_schema(constants(RECORD)), BYTES)
    begun = (b"", b'{\n "kind": "a",', b'{"kind":"a", ')
    lanes = [lane(b'{\n\n\n"', constraint.matcher(), text=text) for text in begun]
    proposer = Forced()
    batch = batch_of(lanes)
    proposer.start(batch)
    expected = [b'{"kind":"a","tags":["b"', b'\n "tags": [\n  "b",\n  "', b'"tags":["b", "{c,"], "deep"']
    for order in ([0, 1, 2], [2, 1], [0]):
        batch.lanes = lanes = [lanes[row] for row in order]
        expected = [expected[row] for row in order]
        proposer.select(order)
        draft = draft_for(lanes, 100)
        proposer.propose(draft, range(len(lanes)))
        for row, text in enumerate(expected):
            assert BYTES.decode(draft.tokens[row]).startswith(text), order
            draft.take_back(row)


def test_a_guess_is_not_forced_through() -> None:
    """Whitespace that the constraint does not allow at a place is not drafted, nor what stands behind it."""
    row = lane([0], matcher_of(r"\[\n 1,[ ]?2\]"), text=b"[\n 1,")
    assert forced_draft(row) == (b"", [], False)
    row = lane([0], matcher_of(r"\[ 1,[ \n]?2\]"), text=b"[ 1,")
    assert forced_draft(row) == (b"2]", ["preferred"] * 3, True)
    # But some may come where what stands behind it is open.
    row = lane([0], matcher_of(r"\[1, 2,[ ]?[34]\]"), text=b"[1, 2,")
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
            row = lane(
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
            assert spelled(rest, text.encode()[:at]) == vocabulary.index.spell(rest, True)
        read += said
    # What stands before matters.
    assert spelled(b"'re here", b"we") == encode("we're here")[1:]
    assert spelled("é".encode()[1:], "é".encode()[:1]) == vocabulary.index.spell("é".encode()[1:], True)
    assert spelled("aé".encode()[:2], b"") == vocabulary.index.spell("aé".encode()[:2], True)
    # A special token's text is no text of tokens; it is spelled by others.
    assert smollm2_tokenizer.eos_token_id not in spelled(smollm2_tokenizer.eos_token.encode())
    assert spelled(b"", b"abc") == []


def test_spell_without_a_tokenizer() -> None:
    vocabulary = gs.Vocabulary.from_tokens([b"a", b"b", b"ab", b"abc", b"c"], [5])
    assert vocabulary.spell(b"abcab") == [3, 2]
    assert vocabulary.spell(b"bcab", before=b"a") == [1, 4, 2]


MERGED = gs.Vocabulary.from_tokens([*(bytes([value]) for value in range(256)), b"ab", b"abc", b"xa", b"12"], [260])
AB, ABC, XA, TWELVE = 256, 257, 258, 259


def round_of(proposer: Forced, row: Lane, chosen: int | None, room: int = 30) -> list[int]:
    """A draft, and how the target took it: up to where it chose another token."""
    draft = draft_for([row], room, vocabulary=MERGED)
    proposer.propose(draft, [0])
    tokens = list(draft.tokens[0])
    draft.take_back(0)
    if chosen is not None:
        at = next(place for place, token in enumerate(tokens) if token in (AB, ABC) and token != chosen)
        for token in [*tokens[:at], chosen]:
            assert row.commit(token)
        proposer.settle(draft, [at])
    return tokens


def test_splits_of_the_target_are_learnt() -> None:
    proposer = Forced()
    row = lane([0], matcher_of(r"(.abc\.abc\.){3}", MERGED), vocabulary=MERGED, text=[ord("-")])
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
    row = lane([0], matcher_of(r"[a-z0-9]abc-.abc[.]", MERGED), vocabulary=MERGED, text=[ord("q")])
    proposer.start(batch_of([row], vocabulary=MERGED, end=260))
    assert round_of(proposer, row, ord("a"))[0] == ABC
    for token in [*b"bc-7"]:
        assert row.commit(token)
    assert round_of(proposer, row, None) == [*b"abc.", 260]
    other = lane([0], matcher_of(r"[ ]abc", MERGED), vocabulary=MERGED, text=[ord(" ")])
    proposer.start(batch_of([other], vocabulary=MERGED, end=260))
    assert round_of(proposer, other, None) == [ABC, 260]


def test_refusals_of_other_proposers_teach_nothing() -> None:
    proposer = Forced()
    row = lane([0], matcher_of(r"abc+\.abc", MERGED), vocabulary=MERGED)
    proposer.start(batch_of([row], vocabulary=MERGED, end=260))
    draft = draft_for([row], 3, vocabulary=MERGED)
    draft.extend(0, [ABC, ord(".")], "lookup")
    draft.take_back(0)
    assert row.commit(AB)
    proposer.settle(draft, [0])
    assert not proposer._habits


def test_splits_are_of_the_vocabulary() -> None:
    """A proposer that served another vocabulary knows nothing of this one."""
    proposer = Forced()
    row = lane([0], matcher_of(r"-abc", MERGED), vocabulary=MERGED, text=[ord("-")])
    proposer.start(batch_of([row], vocabulary=MERGED, end=260))
    assert round_of(proposer, row, AB) == [ABC, 260]
    other = gs.Vocabulary.from_tokens([*(bytes([value]) for value in range(256)), b"zz", b"abc"], [260])
    row = lane([0], matcher_of(r"-abc", other), vocabulary=other, text=[ord("-")])
    proposer.start(batch_of([row], vocabulary=other, end=260))
    draft = draft_for([row], 9, vocabulary=other)
    proposer.propose(draft, [0])
    assert draft.tokens == [[ABC, 260]]


# Models.


def llama(seed: int, layers: int = 2) -> Any:
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=WIDTH,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.6,
        bos_token_id=None,
        eos_token_id=END,
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="module")
def target() -> Any:
    return llama(0, 3)


@pytest.fixture(scope="module")
def small() -> Any:
    return llama(1)


PATTERNS = [r"[a-z]{1,20}", r"(yes|no|maybe)( (yes|no|maybe)){0,5}", r".{0,30}", r"[0-9]+(\.[0-9]+)?e[0-9]{1,9}"]


def requests(*, unconstrained: bool = True, **options: Any) -> list[Request]:
    made = [
        Request(prompt=b"a prompt"[: 3 + number], matcher=matcher_of(pattern), sampling=Sampling(**options))
        for number, pattern in enumerate(PATTERNS)
    ]
    return [*made, Request(prompt=b"free", sampling=Sampling(**options))] if unconstrained else made


Logits = Callable[[list[int]], "torch.Tensor"]


def next_logits(model: Any) -> Logits:
    """The logits behind a text, by a pass over all of it."""

    def logits(text: list[int]) -> torch.Tensor:
        return model(torch.tensor([text]), use_cache=False).logits[0, -1].float()

    return logits


def by_hand(
    logits: Logits, text: list[int], matcher: Any, room: int, *, masked: bool = True, confidence: float = 0.0
) -> list[int]:
    """Greedy drafts, token by token. ``logits``: by the target's token ids."""
    draft: list[int] = []
    fork = None if matcher is None else matcher.fork()
    while len(draft) < room and (not draft or draft[-1] != END):
        scores = logits(text + draft).clone()
        rows = gs.allocate_bitmask(1, BYTES.size)
        rows[:] = -1
        if fork is not None and masked:
            fork.fill_bitmask(rows)
        gs.apply_bitmask(scores, rows)
        if scores.max() == -torch.inf:
            break
        token = int(scores.argmax())
        draft.append(token)
        if (fork is not None and not fork.accept_token(token)) or scores.softmax(-1)[token] < confidence:
            break
    return draft


def check_rounds(
    batch: Batch, logits: Logits | Callable[[Lane, list[int]], Logits], turns: int, gamma: int, **options: Any
) -> list[Draft]:
    """Rounds of a batch whose drafts are those made by hand."""
    drafts = []
    while batch.lanes and len(drafts) < turns:
        before = [
            (list(row.tokens), None if row.matcher is None else row.matcher.fork(), min(gamma, row.room - 1))
            for row in batch.lanes
        ]
        draft = batch.round()
        drafts.append(draft)
        for row, (text, matcher, room) in enumerate(before):
            assert draft.tokens[row] == by_hand(logits, text, matcher, room, **options), (row, text)
    return drafts


def batch_with(model: Any, proposer: Any, gamma: int, what: Sequence[Request] | None = None) -> Batch:
    return Batch(model, what or requests(), BYTES, proposers=[proposer], gamma=gamma)


def test_draft_model(target: Any, small: Any) -> None:
    proposer = DraftModel(small)
    batch = batch_with(target, proposer, 4)
    drafts = check_rounds(batch, next_logits(small), 12, 4)
    assert {source for draft in drafts for sources in draft.sources for source in sources} == {"model"}
    assert not any(any(flags) for draft in drafts for flags in draft.drawn)
    # One pass for each token of the longest draft: what is read together is read in the same pass.
    assert proposer.passes == sum(draft.gamma for draft in drafts)
    assert any(len(draft.lanes) < 5 for draft in drafts), "some rows should have ended before the others"


def test_a_model_drafts_its_own_text(target: Any) -> None:
    """All of what the target itself drafts is accepted, however tokens are chosen."""
    for options in ({}, {"temperature": 1.0, "seed": 1}, {"temperature": 1.0, "top_k": 9}):
        for sampled in generate_batch(
            target, requests(max_tokens=40, **options), BYTES, proposers=[DraftModel(target)], gamma=3
        ):
            statistics = sampled[0].statistics
            assert statistics.accepted == statistics.proposed


def test_draft_model_without_masks(target: Any, small: Any) -> None:
    batch = batch_with(target, DraftModel(small, masked=False), 4)
    drafts = check_rounds(batch, next_logits(small), 8, 4, masked=False)
    refused = [(draft, row) for draft in drafts for row in draft.refused]
    assert refused
    assert all(draft.room(row) == 0 for draft, row in refused)


@pytest.mark.parametrize("known", [120, 257, 263, 265, 300])
def test_draft_model_of_another_width(target: Any, small: Any, known: int) -> None:
    """Narrower, the draft never proposes the others; wider, what the target does not have is cut off."""
    other = copy.copy(small)
    other._modules = dict(small._modules)
    torch.manual_seed(known)
    other.lm_head = torch.nn.Linear(32, known, bias=False)

    def logits(text: list[int]) -> torch.Tensor:
        found = next_logits(other)(text)
        assert len(found) == known
        padding = found.new_full((max(WIDTH - known, 0),), -torch.inf)
        return torch.cat((found, padding))[:WIDTH]

    drafts = check_rounds(batch_with(target, DraftModel(other), 3), logits, 8, 3)
    assert max(token for draft in drafts for tokens in draft.tokens for token in tokens) < min(known, WIDTH)


@pytest.mark.parametrize("seed", [0, 1])
def test_draft_model_with_tokens_of_its_own(target: Any, small: Any, seed: int) -> None:
    """A draft that knows some of the target's tokens, in another order."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(257, generator=generator)[:90]
    other = copy.copy(small)
    other._modules = dict(small._modules)
    other.lm_head = torch.nn.Linear(32, 90, bias=False)
    other.lm_head.weight = torch.nn.Parameter(small.lm_head.weight[chosen])

    def logits(text: list[int]) -> torch.Tensor:
        found = torch.full((WIDTH,), -torch.inf)
        found[chosen] = next_logits(small)(text)[chosen]
        return found

    drafts = check_rounds(batch_with(target, DraftModel(other, draft_to_target=chosen), 3), logits, 10, 3)
    assert {token for draft in drafts for tokens in draft.tokens for token in tokens} <= set(chosen.tolist())


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 1.0}, {"temperature": 1.0, "seed": 3}, {"temperature": 1.0, "top_p": 0.5}]
)
@pytest.mark.parametrize("confidence", [0.0, 0.5])
def test_draft_model_that_knows_no_token_of_the_text(
    target: Any, small: Any, options: dict[str, Any], confidence: float
) -> None:
    """Nothing is drafted where nothing may come, next to a row where something may."""
    other = copy.copy(small)
    other._modules = dict(small._modules)
    other.lm_head = torch.nn.Linear(32, 10, bias=False)
    digits = torch.tensor(list(b"0123456789"))
    proposer = DraftModel(other, draft_to_target=digits, confidence=confidence)
    wanted = Sampling(**options)
    what = [Request(prompt=b"ab", matcher=matcher_of(p), sampling=wanted) for p in ("[a-z]{9}", "[0-9]{9}")]
    batch = batch_with(target, proposer, 4, what)
    for _ in range(2):
        draft = batch.round()
        assert draft.tokens[0] == []
        assert draft.tokens[1]


@pytest.mark.parametrize("confidence", [0.3, 0.6, 1.0])
def test_confidence_ends_a_draft(target: Any, small: Any, confidence: float) -> None:
    """Behind the token that was not sure; the token stays."""
    drafts = check_rounds(
        batch_with(target, DraftModel(small, confidence=confidence), 5),
        next_logits(small),
        12,
        5,
        confidence=confidence,
    )
    lengths = {len(tokens) for draft in drafts for tokens in draft.tokens}
    assert 1 in lengths
    assert len(lengths) > 1, "text that is forced is sure"


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan")])
def test_draft_model_refuses(small: Any, confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence must be from 0 to 1"):
        DraftModel(small, confidence=confidence)


def test_drawn_tokens_come_with_their_law(target: Any, small: Any) -> None:
    what = requests(temperature=0.7, top_k=20)
    what[1] = Request(prompt=b"abc", matcher=matcher_of(PATTERNS[1]), sampling=Sampling())
    what[2] = Request(prompt=b"abc", matcher=matcher_of(PATTERNS[2]), sampling=Sampling(temperature=1.0, seed=1))
    batch = batch_with(target, DraftModel(small), 3, what)
    for _ in range(5):
        before = [(list(row.tokens), None if row.matcher is None else row.matcher.fork()) for row in batch.lanes]
        kinds = [(row.sampling.temperature, row.sampling.seed) for row in batch.lanes]
        draft = batch.round()
        for row, (text, matcher) in enumerate(before):
            temperature, seed = kinds[row]
            drawn = temperature > 0 and seed is None
            assert draft.drawn[row] == [drawn] * len(draft.tokens[row])
            for place, token in enumerate(draft.tokens[row]):
                if not drawn:
                    continue
                scores = next_logits(small)(text + draft.tokens[row][:place])
                rows = gs.allocate_bitmask(1, BYTES.size)
                rows[:] = -1
                if matcher is not None:
                    matcher.fill_bitmask(rows)
                    matcher.accept_token(token)
                gs.apply_bitmask(scores, rows)
                scores[scores < scores.topk(20)[0][-1]] = -torch.inf
                assert draft.laws is not None
                assert torch.allclose(draft.laws[row, place], (scores / 0.7).softmax(-1), atol=1e-4)
                assert draft.laws[row, place, token] > 0


def test_draft_model_at_the_end_of_its_context(target: Any) -> None:
    """It reads as far as it can; where it cannot, it says nothing."""
    short = llama(1)
    short.config.max_position_embeddings = 12
    proposer = DraftModel(short)
    what = [Request(prompt=b"a" * length, sampling=Sampling(max_tokens=30)) for length in (3, 8, 14)]
    batch = batch_with(target, proposer, 4, what)
    longest = [0, 0, 0]
    for _ in range(6):
        if len(batch.lanes) < 3:
            break
        before = [len(row.tokens) for row in batch.lanes]
        draft = batch.round()
        for row, length in enumerate(before):
            expected = max(min(4, 13 - length), 0)
            ended = draft.tokens[row][-1:] == [END]
            assert len(draft.tokens[row]) == expected or ended
            longest[row] = max(longest[row], length)
        assert draft.tokens[2] == []


def test_a_stop_inside_an_accepted_draft_teaches_no_split(target: Any) -> None:
    """All of the draft is as the target would say it; the text only ends inside."""
    vocabulary = gs.Vocabulary.from_tokens(
        [*(bytes([value]) for value in range(256)), b"ab", b"abc"], [END + 2], size=WIDTH
    )
    wanted = Sampling(stop=["-ab"], logit_bias={ord("-"): 90.0, AB: 90.0, ABC: 99.0})
    what = Request(prompt=[1], matcher=matcher_of("-ababcab", vocabulary), sampling=wanted)
    proposer = Forced()
    batch = Batch(target, [what], vocabulary, proposers=[proposer], gamma=6)
    assert batch.round().tokens == [[ord("-"), AB, ABC, AB, END + 2]]
    [[text]] = batch.results()
    assert (text.tokens, text.finish_reason) == ([ord("-"), AB], "stop")
    assert not proposer._habits


# Self-speculation.


def truncated(model: Any, layers: int) -> Any:
    """A model of the first layers, built anew and loaded with their weights."""
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]
    short = type(model)(config).eval()
    found = short.load_state_dict(model.state_dict(), strict=False)
    assert not found.missing_keys
    assert found.unexpected_keys
    return short


def family(name: str) -> Any:
    torch.manual_seed(0)
    settings: dict[str, Any] = {
        "vocab_size": WIDTH,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 128,
        "initializer_range": 0.5,
        "pad_token_id": 0,
        "bos_token_id": None,
        "eos_token_id": END,
    }
    special: dict[str, dict[str, Any]] = {
        "gemma2": {"sliding_window": 6},
        "mistral": {"sliding_window": 6},
        "gpt2": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 128},
        "opt": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    }
    config = transformers.AutoConfig.for_model(name, **settings, **special.get(name, {}))
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


@pytest.mark.parametrize("name", ["llama", "gemma2", "mistral", "gpt2", "opt"])
@pytest.mark.parametrize("layers", [1, 2])
def test_early_exit_equals_a_model_of_the_first_layers(name: str, layers: int) -> None:
    model = family(name)
    kept = {key: value.clone() for key, value in model.state_dict().items()}
    proposer = EarlyExit(model, layers)
    check_rounds(batch_with(model, proposer, 3), next_logits(truncated(model, layers)), 8, 3)
    assert proposer.passes > 8
    assert proposer.model.get_input_embeddings() is model.get_input_embeddings()
    # The target is what it was.
    assert model.config.num_hidden_layers == 3
    assert all(torch.equal(value, kept[key]) for key, value in model.state_dict().items())
    alone = generate_batch(model, requests(max_tokens=25), BYTES)
    drafted = generate_batch(model, requests(max_tokens=25), BYTES, proposers=[EarlyExit(model, layers)], gamma=3)
    assert [text.tokens for [text] in alone] == [text.tokens for [text] in drafted]
    assert {source for [text] in drafted for source in text.statistics.proposed} == {"early-exit"}


def test_early_exit_without_masks_and_with_confidence(target: Any) -> None:
    short = truncated(target, 2)
    check_rounds(batch_with(target, EarlyExit(target, 2, masked=False), 4), next_logits(short), 5, 4, masked=False)
    check_rounds(batch_with(target, EarlyExit(target, 2, confidence=0.5), 4), next_logits(short), 5, 4, confidence=0.5)


def test_early_exit_behind_other_proposers(target: Any) -> None:
    """It goes on behind what others drafted, and does not ask them to have read it."""
    short = truncated(target, 2)
    what = requests(unconstrained=False)
    batch = Batch(target, what, BYTES, proposers=[Forced(), EarlyExit(target, 2)], gamma=5)
    for _ in range(6):
        before = [(list(row.tokens), row.matcher.fork()) for row in batch.lanes]
        draft = batch.round()
        for row, (text, matcher) in enumerate(before):
            for place, (token, source) in enumerate(zip(draft.tokens[row], draft.sources[row], strict=True)):
                if source == "early-exit":
                    assert [token] == by_hand(next_logits(short), text + draft.tokens[row][:place], matcher, 1)
                matcher.accept_token(token)


@pytest.mark.parametrize("layers", [0, -1, 3, 4])
def test_early_exit_refuses_layers(target: Any, layers: int) -> None:
    with pytest.raises(ValueError, match=f"layers must be from 1 to 2, not {layers}"):
        EarlyExit(target, layers)


def test_early_exit_refuses_what_it_does_not_find(target: Any) -> None:
    model = copy.copy(target)
    model._modules = {**target._modules, "more": torch.nn.ModuleList(torch.nn.Identity() for _ in range(3))}
    with pytest.raises(ValueError, match="the layers of LlamaForCausalLM are not found"):
        EarlyExit(model, 1)


def test_early_exit_is_of_its_target(target: Any, small: Any) -> None:
    with pytest.raises(ValueError, match="drafts for the model that it was made of only"):
        batch_with(target, EarlyExit(small, 1), 3)


# Heads.


def head_for(model: Any, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    head = ResidualHead(model, 16)
    torch.nn.init.normal_(head.outer.weight, std=0.7)
    torch.nn.init.normal_(head.outer.bias, std=0.3)
    return head.eval()


def head_logits(model: Any, head: Any, known: int) -> Logits:
    """What a head says behind a text of which the target has read the first ``known`` tokens."""

    def logits(text: list[int]) -> torch.Tensor:
        read = model(torch.tensor([text[:known]]), use_cache=False, output_hidden_states=True)
        hidden = read.hidden_states[-1][:, -1]
        for token in text[known:]:
            found, hidden = head(hidden, torch.tensor([token]))
        return found[0].float()

    return logits


@pytest.mark.parametrize(
    "options", [{}, {"masked": False}, {"confidence": 0.5}], ids=["plain", "unmasked", "confidence"]
)
def test_head_proposer(target: Any, options: dict[str, Any]) -> None:
    head = head_for(target)
    proposer = HeadProposer(head, **options)
    batch = batch_with(target, proposer, 4)
    assert batch.round().tokens == [[]] * 5, "nothing is known before the first pass of the target"
    steps = 0
    accepted = 0
    for _ in range(8):
        before = [
            (list(row.tokens), None if row.matcher is None else row.matcher.fork(), row.room - 1) for row in batch.lanes
        ]
        draft = batch.round()
        steps += draft.gamma
        for row, (text, matcher, room) in enumerate(before):
            logits = head_logits(target, head, len(text) - 1)
            assert draft.tokens[row] == by_hand(logits, text, matcher, min(4, room), **options)
            accepted += len(draft.lanes[row].tokens) - len(text) - 1
        assert all(source == "head" for sources in draft.sources for source in sources)
    assert proposer.passes == steps
    assert accepted, "no round should mean that states behind accepted drafts were never used"


def test_head_steps_through_what_others_draft(target: Any) -> None:
    head = head_for(target)
    what = [*requests(unconstrained=False), Request(prompt=b"xx", matcher=matcher_of("[ab](cdefg[hi]){9}"))]
    batch = Batch(target, what, BYTES, proposers=[Forced(), HeadProposer(head)], gamma=6)
    batch.round()
    seen = set()
    for _ in range(6):
        before = [(list(row.tokens), row.matcher.fork()) for row in batch.lanes]
        draft = batch.round()
        for row, (text, matcher) in enumerate(before):
            logits = head_logits(target, head, len(text) - 1)
            for place, (token, source) in enumerate(zip(draft.tokens[row], draft.sources[row], strict=True)):
                if source == "head":
                    assert [token] == by_hand(logits, text + draft.tokens[row][:place], matcher, 1)
                    seen.add("forced" in draft.sources[row][:place])
                matcher.accept_token(token)
    assert seen == {False, True}


def test_head_with_tokens_of_its_own(target: Any) -> None:
    """As EAGLE's checkpoints have."""
    whole = head_for(target)
    chosen = torch.randperm(257, generator=torch.Generator().manual_seed(1))[:100]

    class Some:
        draft_to_target = chosen

        def __call__(self, hidden: torch.Tensor, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            logits, hidden = whole(hidden, tokens)
            return logits[:, chosen], hidden

    batch = batch_with(target, HeadProposer(Some()), 3)
    batch.round()
    for _ in range(6):
        before = [(list(row.tokens), None if row.matcher is None else row.matcher.fork()) for row in batch.lanes]
        draft = batch.round()
        for row, (text, matcher) in enumerate(before):
            every = head_logits(target, whole, len(text) - 1)

            def logits(text: list[int], every: Logits = every) -> torch.Tensor:
                return torch.full((WIDTH,), -torch.inf).scatter(0, chosen, every(text)[chosen])

            assert draft.tokens[row] == by_hand(logits, text, matcher, 3)


def test_residual_head_begins_as_the_target(target: Any) -> None:
    """Untrained, it hands the hidden state on; what it shares with the target is none of its parameters."""
    head = ResidualHead(target, 16)
    hidden = torch.randn(3, 32, generator=torch.Generator().manual_seed(0))
    logits, following = head(hidden, torch.tensor([1, 2, 3]))
    assert torch.equal(following, hidden)
    assert torch.equal(logits, target.lm_head(hidden))
    assert {name for name, _ in head.named_parameters()} == {"inner.weight", "inner.bias", "outer.weight", "outer.bias"}
    assert head.draft_to_target is None
    bfloat = ResidualHead(copy.deepcopy(target).to(torch.bfloat16), 16)
    assert bfloat(hidden.bfloat16(), torch.tensor([1, 2, 3]))[1].dtype == torch.bfloat16


# Several proposers.


class Scripted:
    """Says what it was told to say behind a text."""

    hidden_layers: Sequence[int] = ()
    passes = 0

    def __init__(self, name: str, script: Callable[[int, list[int]], Sequence[int]]) -> None:
        self.name = name
        self._script = script
        self.asked: list[list[int]] = []

    def start(self, batch: Batch) -> None: ...

    def select(self, rows: Sequence[int]) -> None: ...

    def settle(self, draft: Draft, accepted: Sequence[int]) -> None: ...

    def propose(self, draft: Draft, rows: Sequence[int]) -> None:
        self.asked.append(sorted(rows))
        for row in rows:
            draft.extend(row, list(self._script(row, draft.tokens[row])), self.name)


def test_the_first_proposer_with_something_to_say_is_heard() -> None:
    """At each place anew."""
    one = Scripted("one", lambda row, text: b"1" if len(text) == row else b"")
    two = Scripted("two", lambda row, text: b"22" if len(text) < 3 else b"")
    three = Scripted("three", lambda row, text: b"" if row == 2 else b"3")
    draft = draft_for([lane(b"a"), lane(b"b"), lane(b"c")], [4, 5, 6])
    propose([one, two, three], draft)
    assert [bytes(tokens) for tokens in draft.tokens] == [b"1223", b"22223", b"221"]
    assert draft.sources == [["one", "two", "two", "three"], ["two"] * 4 + ["three"], ["two", "two", "one"]]
    # Only for rows that nobody before has said anything of, and only as long as there is room.
    assert one.asked == [[0, 1, 2]] * 3
    assert two.asked == [[1, 2], [0, 1], [0, 1, 2]]
    assert three.asked == [[0, 1, 2]]


def test_no_proposer_is_asked_where_there_is_no_room() -> None:
    everything = Scripted("everything", lambda row, text: b"xyz")
    nothing = Scripted("nothing", lambda row, text: b"")
    draft = draft_for([lane(b"a"), lane(b"b"), lane(b"c")], [0, 3, 4])
    propose([nothing, everything, nothing], draft)
    assert [bytes(tokens) for tokens in draft.tokens] == [b"", b"xyz", b"xyzx"]
    assert everything.asked == [[1, 2], [2]]
    draft = draft_for([lane(b"a")], [3])
    propose([], draft)
    propose([nothing], draft)
    assert draft.tokens == [[]]


def test_what_is_refused_is_not_heard() -> None:
    """Certain tokens that the constraint does not allow are not drafted; the next proposer is asked."""
    wrong = Scripted("wrong", lambda row, text: b"z")
    right = Scripted("right", lambda row, text: b"ab")
    draft = draft_for([lane([0], matcher_of("(ab)*c?"))], [5])
    propose([wrong, right], draft)
    assert draft.sources == [["right"] * 5]
    assert bytes(draft.tokens[0]) == b"ababa"
    ends = Scripted("ends", lambda row, text: [*b"ab", END, ord("a")])
    draft = draft_for([lane([0], matcher_of("(ab)*c?")), lane(b"a")], [8, 8])
    propose([ends, right], draft)
    assert draft.tokens == [[*b"ab", END]] * 2


@given(data=st.data())
def test_rows_are_drafted_for_each_on_its_own(data: st.DataObject) -> None:
    """A row's draft is what it would be if it were alone."""
    rows = data.draw(st.integers(1, 3))
    table = data.draw(
        st.lists(
            st.dictionaries(st.tuples(st.integers(0, rows - 1), st.integers(0, 5)), st.binary(min_size=1, max_size=3)),
            max_size=3,
        )
    )
    rooms = data.draw(st.lists(st.integers(0, 6), min_size=rows, max_size=rows))

    def scripted(number: int) -> Scripted:
        return Scripted(str(number), lambda row, text: table[number].get((row, len(text)), b""))

    draft = draft_for([lane(b"a")] * rows, [*rooms])
    propose([scripted(number) for number in range(len(table))], draft)
    for row, room in enumerate(rooms):
        expected: list[int] = []
        while len(expected) < room:
            said = next((entry[row, len(expected)] for entry in table if (row, len(expected)) in entry), b"")
            if not said:
                break
            expected += said[: room - len(expected)]
        assert draft.tokens[row] == expected
