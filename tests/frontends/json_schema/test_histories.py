"""Masks where values must differ: unique items, distinct names, numbers of members, on random schemas."""

from __future__ import annotations

import json
import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from tests.counting import discard, examples, tally
from tests.frontends.json_schema.judges import satisfies

GLUED = [
    '","', '"a","a"', '"a","b"', '"a"', '"b"]', '","a"', 'a","', "1,1", "1,2", "1.0,1", ",1,", ".0", ".0]", ",1.0",
    "2]", "]}", "}]", "},{", '{"a":1}', '{"a":1},{"a":1}', ',{"b":2,"a":1}', '{"a":1,"b":2}', '"a":', '"b":', '"a":1',
    ',"a":', ',"a":1', ',"c":1,"c":1', '"c":', '{"c":', "[1],[1]", "[[", "]]", "[]", "[],", "{}", "{},", ",[",
    "[1,2]", "[2,1]", "null", "true", "null,", "true]", ", ", "1, 1", " ", "  ", '": ', '":1,"', '\\"', "\\u0061",
    '":[', "aa", '"aa"', "12", "é", '"é"', ":1}", ":1},",
]  # fmt: skip
TOKENS: list[bytes | None] = [bytes([value]) for value in range(256)]
TOKENS += [text.encode() for text in GLUED]
TOKENS += ["é".encode()[:1] + b"x", b'"\xc3', b'\xa9"', None]
EOS = len(TOKENS) - 1
VOCABULARY = gs.Vocabulary.from_tokens(TOKENS, [EOS])
WORDS = (VOCABULARY.size + 31) // 32

# ---------------------------------------------------------------------- schemas of which texts have histories
NAMES = st.sampled_from(["a", "b", "aa", "c"])
SCALARS = st.sampled_from(
    [
        {"type": "string", "maxLength": 2},
        {"type": "string"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "number", "minimum": 0, "maximum": 3},
        {"enum": ["a", "b", 1, 2.0, None]},
        {"enum": ["a", "aa", "é", ""]},
        {"type": ["boolean", "null"]},
        {"multipleOf": 0.5, "type": "number"},
        {"pattern": "^[ab]+$", "type": "string"},
        {"const": [1, {"a": 1, "b": 2}]},
        True,
    ]
)
COUNT = st.integers(0, 3)


def _chosen(always: dict[str, Any], **keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the keywords, up to four."""

    def drawn(names: list[str]) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({name: keywords[name] for name in names}).map(lambda more: {**always, **more})

    return st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True).flatmap(drawn)


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=2)
    arrays = _chosen(
        {"type": "array", "uniqueItems": True},
        items=inner,
        prefixItems=several,
        contains=inner,
        minContains=COUNT,
        minItems=COUNT,
        maxItems=st.integers(1, 4),
        unevaluatedItems=inner,
        uniqueItems=st.booleans(),
    )
    objects = _chosen(
        {"type": "object"},
        properties=st.dictionaries(NAMES, inner, max_size=3),
        additionalProperties=inner,
        patternProperties=st.dictionaries(st.sampled_from(["^a", "c", "^[ab]$"]), inner, max_size=2),
        propertyNames=st.sampled_from([{"maxLength": 2}, {"pattern": "^[a-c]"}, {"enum": ["a", "b", "c", "d"]}]),
        required=st.lists(NAMES, max_size=2, unique=True),
        minProperties=COUNT,
        maxProperties=st.integers(1, 4),
        dependentRequired=st.dictionaries(NAMES, st.lists(NAMES, max_size=1), max_size=1),
        unevaluatedProperties=inner,
        **{
            "not": st.one_of(
                inner.map(lambda schema: {"additionalProperties": schema}),
                inner.map(lambda schema: {"patternProperties": {"^a": schema}}),
                st.just({"propertyNames": {"maxLength": 1}}),
            )
        },
    )
    return arrays | arrays | objects | several.map(lambda schemas: {"anyOf": schemas})


SCHEMAS = st.recursive(SCALARS, _deeper, max_leaves=5).filter(
    lambda schema: "Items" in str(schema) or "Prop" in str(schema)
)
ORDERS = st.sampled_from(["declared", "any"])


def _compiled(schema: Any, **options: Any) -> gs.Constraint:
    said = json.dumps(schema)
    counted = options["property_order"] == "any" and "maxProperties" in said
    if counted or ("contains" in said and "prefixItems" in said):
        discard("a known gap")  # see test_known_gaps.py
    try:
        return gs.compile(gs.json_schema(schema, **options), VOCABULARY, limits=gs.Limits(max_steps=2_000_000))
    except gs.Unsatisfiable:
        discard("an empty language")
    except (gs.UnsupportedFeature, gs.LimitExceeded) as error:
        discard(f"a refusal: {error.code}")


def _bits(row: bytes) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(np.frombuffer(row, np.uint8), bitorder="little")).tolist())


def _text(tokens: list[int]) -> bytes:
    return b"".join(TOKENS[token] or b"" for token in tokens)


LIKELY = set(b'{}[],:"0123.abcetrufalsn')


def _choose(rng: random.Random, allowed: set[int]) -> int:
    """A token, glued ones and those that JSON is made of more often."""
    tokens = sorted(allowed - {EOS})
    kind = rng.random()
    for wanted in (
        [token for token in tokens if token >= 256 and kind < 0.4],
        [token for token in tokens if token in LIKELY and kind < 0.9],
    ):
        if wanted:
            return rng.choice(wanted)
    return rng.choice(tokens)


class Walk:
    """Random steps under the masks of a constraint."""

    def __init__(self, constraint: gs.Constraint, seed: int) -> None:
        self.constraint, self.matcher, self.rng = constraint, constraint.matcher(), random.Random(seed)
        self.tokens: list[int] = []

    def allowed(self) -> set[int]:
        return _bits(self.constraint.mask(self.matcher.state))

    def step(self) -> bool:
        """``False`` if the text can only end."""
        allowed = self.allowed()
        if not allowed - {EOS}:
            return False
        self.tokens.append(_choose(self.rng, allowed))
        assert self.matcher.accept_token(self.tokens[-1])
        return True


@examples(120, kept=0.7)
@given(SCHEMAS, ORDERS, st.integers(0, 2**32))
def test_every_bit_of_the_masks(schema: Any, order: Any, seed: int) -> None:
    """A token is allowed exactly if it is taken, and exactly if its bytes are, one after the other."""
    walk = Walk(_compiled(schema, property_order=order), seed)
    for _ in range(14):
        allowed, matcher = walk.allowed(), walk.matcher
        for token, text in enumerate(TOKENS):
            takes = token in allowed
            assert (matcher.validate_tokens([token]) == 1) == takes, (schema, _text(walk.tokens), text)
            if token >= 256 and text is not None:
                assert (matcher.validate_tokens(list(text)) == len(text)) == takes, (schema, _text(walk.tokens), text)
        assert allowed, (schema, _text(walk.tokens))
        assert (EOS in allowed) == matcher.is_accepting
        if not walk.step():
            break


@examples(150, kept=0.8)
@given(SCHEMAS, ORDERS, st.integers(0, 2**32))
def test_every_state_has_an_end(schema: Any, order: Any, seed: int) -> None:
    """The shortest ending is one, is as long as it is said to be, and what it ends satisfies the schema."""
    walk, ends = Walk(_compiled(schema, property_order=order), seed), tally("ends of states", 0.95)
    for _ in range(25):
        state = walk.matcher.state
        try:
            ending = walk.constraint.shortest_completion(state)
        except gs.LimitExceeded:  # see test_known_gaps.py
            ends.discard("a limit of the search")
            break
        ends.keep()
        assert len(ending) == walk.constraint.tokens_to_end(state), (schema, _text(walk.tokens))
        end = walk.matcher.fork()
        assert end.accept_tokens(ending) == len(ending), (schema, _text(walk.tokens), _text(ending))
        assert end.is_terminated or end.is_accepting, (schema, _text(walk.tokens), _text(ending))
        whole = _text(walk.tokens + ending)
        assert satisfies(schema, whole), (schema, whole)
        if not walk.step():
            break


@examples(100, kept=0.7)
@given(SCHEMAS, ORDERS, st.integers(0, 2**32))
def test_states_do_not_depend_on_the_way(schema: Any, order: Any, seed: int) -> None:
    """Rollbacks, forks, drafts, collections and other spellings in tokens lead to the same states and masks."""
    walk = Walk(_compiled(schema, property_order=order), seed)
    grammar = gs.json_schema(schema, property_order=order)
    other = gs.compile(pickle.loads(pickle.dumps(grammar)), VOCABULARY)
    rng = walk.rng
    for _ in range(14):
        matcher = walk.matcher
        state, mask = matcher.state, walk.constraint.mask(matcher.state)
        said = len(walk.tokens)
        # there and back again
        fork, away = matcher.fork(), 0
        for _ in range(rng.randrange(5)):
            choices = _bits(walk.constraint.mask(fork.state))
            if not choices - {EOS}:
                break
            fork.accept_token(_choose(rng, choices))
            away += 1
        pin = walk.constraint.pin([state]) if rng.random() < 0.5 else None
        if rng.random() < 0.3:
            walk.constraint.collect()
        fork.rollback(away)
        assert fork.state == matcher.state == state
        if pin is not None:
            pin.release()
        back = rng.randint(0, said)
        matcher.rollback(back)
        assert matcher.accept_tokens(walk.tokens[said - back :]) == back
        assert walk.constraint.mask(matcher.state) == mask
        # another constraint, byte by byte
        replayed = other.matcher()
        data = list(_text(walk.tokens))
        assert replayed.accept_tokens(data) == len(data)
        assert other.mask(replayed.state) == mask, (schema, _text(walk.tokens))
        again = walk.constraint.matcher()
        assert again.accept_tokens(data) == len(data)
        assert again.state == matcher.state, (schema, _text(walk.tokens))
        # drafts, of which some end in what is not allowed
        draft = [_choose(rng, set(range(EOS))) if rng.random() < 0.3 else rng.choice(sorted(_bits(mask))) for _ in "ab"]
        count = matcher.validate_tokens(draft)
        rows = np.full((3, WORDS), -1, dtype=np.int32)
        assert matcher.fill_draft_bitmasks(draft, rows) == count == matcher.fork().accept_tokens(draft)
        trial = matcher.fork()
        for n, row in enumerate(rows):
            if 0 < n <= count:
                assert trial.accept_token(draft[n - 1])
            assert row.tobytes() == _row(trial)
        if not walk.step():
            break


def _row(matcher: gs.Matcher) -> bytes:
    row = np.full((1, WORDS), -1, dtype=np.int32)
    matcher.fill_bitmask(row)
    return row.tobytes()


@examples(80, kept=0.8)
@given(SCHEMAS, ORDERS, st.integers(0, 2**32))
def test_what_is_forced_and_what_comes_next(schema: Any, order: Any, seed: int) -> None:
    walk = Walk(_compiled(schema, property_order=order, whitespace="compact"), seed)
    for _ in range(20):
        matcher = walk.matcher
        following, may_end = matcher.next_bytes()
        allowed = walk.allowed()
        assert set(following) == {token for token in allowed if token < 256}, (schema, _text(walk.tokens))
        assert may_end == matcher.is_accepting
        trial = matcher.fork()
        for byte in matcher.forced_bytes():
            assert trial.next_bytes() == (bytes([byte]), False), (schema, _text(walk.tokens))
            assert trial.accept_token(byte)
        if trial.state != matcher.state:
            assert trial.next_bytes() == matcher.next_bytes(matcher.forced_bytes())
        forced = matcher.forced_tokens()
        assert matcher.validate_tokens(forced) == len(forced)
        assert matcher.forced_bytes().startswith(_text(forced))
        if not walk.step():
            break


def test_batches_of_histories() -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"enum": ["a", "b", 1, [1], {"a": 1, "b": 2}]}}
    constraint = gs.compile(gs.json_schema(schema), VOCABULARY)
    walks = [Walk(constraint, seed) for seed in range(24)]
    for _ in range(12):
        rows = np.full((len(walks), WORDS), -1, dtype=np.int32)
        gs.fill_bitmasks([walk.matcher for walk in walks], rows, 2)
        assert [row.tobytes() for row in rows] == [_row(walk.matcher) for walk in walks]
        for walk in walks:
            walk.step()


@pytest.mark.parametrize("count", [300])
def test_long_arrays_of_unique_items(count: int) -> None:
    constraint = gs.compile(gs.json_schema({"uniqueItems": True, "type": "array", "minItems": count}), VOCABULARY)
    matcher = constraint.matcher()
    text = "[" + ",".join(map(str, range(count - 1)))
    assert matcher.accept_tokens(list(text.encode())) == len(text)
    assert matcher.validate_tokens(list(b"]")) == 0
    assert matcher.validate_tokens(list(b",0,")) == 2
    assert matcher.validate_tokens(list(b",0.0,")) == 4
    assert matcher.validate_tokens(list(b",00]")) < 4
    assert matcher.validate_tokens(list(b",300]")) == 5


@pytest.mark.parametrize("indent", [0, 2, "\t"])
@pytest.mark.parametrize("items", [{"type": ["array", "object"]}, {"type": "array", "uniqueItems": True}])
def test_items_that_differ_behind_a_line_break(items: dict[str, Any], indent: int | str) -> None:
    schema = {"type": "array", "uniqueItems": True, "minItems": 3, "items": items}
    constraint = gs.compile(gs.json_schema(schema, indent=indent), VOCABULARY)
    for value in ([[], [0], [[]]], [[[]], [], [[], 0]], [[], {}, {"a": 0}]):
        text = json.dumps(value, indent=indent).encode()
        taken = 0
        matcher = constraint.matcher()
        for byte in text:
            mask = constraint.mask(matcher.state)
            if not mask[byte >> 3] >> (byte & 7) & 1:
                break
            assert matcher.accept_token(byte)
            taken += 1
        assert (taken == len(text) and matcher.is_accepting) == satisfies(schema, text)
