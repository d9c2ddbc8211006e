"""Frozen constraints say what the lazy ones say, bit for bit, are as small as possible, and the same everywhere."""

from __future__ import annotations

import hashlib
import pickle
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from grammarspec import _compiler
from grammarspec.errors import Cancelled, LimitExceeded, UnsupportedFeature
from tests import tiers
from tests.counting import discard, examples
from tests.oracles.freezing import Walker, agree_everywhere, equivalent_states, reachable_states
from tests.properties.strategies import (
    Drawn,
    context_free_grammars,
    parametric_grammars,
    regular_grammars,
    vocabularies,
)
from tests.properties.test_engine import Tokens, compiled, index
from tests.vocabulary.test_characters import GRAMMARS as GRAMMARS_OF_CHARACTERS
from tests.vocabulary.test_characters import vocabularies as vocabularies_of_characters
from tests.vocabulary.test_characters import vocabulary_of

BYTES = gs.Vocabulary.bytes()
STEPS = 1_000_000  # in the tier "all", over all grammars

MARKED = gs.Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(128)), b"ab", b'":', None, None, None],
    [130],
    special_tokens={"<|call|>": 131, "<|end|>": 132},
)


def check(constraint: gs.Constraint, *, most: int = 300) -> gs.FrozenConstraint:
    """Freeze, and compare all that is near the start."""
    frozen = freeze_or_discard(constraint)
    agree_everywhere(constraint, frozen, most)
    check_form(frozen)
    return frozen


def check_form(frozen: gs.FrozenConstraint) -> None:
    """No states or classes too many, and the order that is promised."""
    assert reachable_states(frozen) == frozen.states
    assert equivalent_states(frozen) == frozen.states
    assert len({column.tobytes() for column in frozen.next.T}) == frozen.classes
    _, first = np.unique(frozen.class_of, return_index=True)
    assert (np.diff(first) > 0).all(), "classes are numbered by their lowest tokens"
    order = [0, *frozen.next[frozen.next >= 0].tolist()]
    assert list(dict.fromkeys(order)) == list(range(frozen.states)), "states are numbered as they are met"
    rows = dict.fromkeys(frozen.mask_row.tolist())
    assert list(rows) == list(range(len(frozen.pool))) and len({row.tobytes() for row in frozen.pool}) == len(rows)


def freeze_or_discard(constraint: _compiler.Constraint) -> gs.FrozenConstraint:
    try:
        return constraint.freeze()
    except UnsupportedFeature:
        discard("rules that nest")
    except LimitExceeded:
        discard("too many states")


def check_drawn(drawn: Drawn, tokens: Tokens) -> None:
    constraint = compiled(drawn, index(tokens))
    if constraint is None:
        discard("an empty language")
    frozen = freeze_or_discard(constraint)
    agree_everywhere(constraint, frozen, 60)
    check_form(frozen)


# ---------------------------------------------------------------------- random grammars
@examples(600, kept=0.55)
@given(regular_grammars(), vocabularies())
def test_regular_grammars(drawn: Drawn, tokens: Tokens) -> None:
    check_drawn(drawn, tokens)


@examples(600, kept=0.3)
@given(context_free_grammars(), vocabularies())
def test_grammars_with_rules(drawn: Drawn, tokens: Tokens) -> None:
    check_drawn(drawn, tokens)


@examples(300, kept=0.3)
@given(parametric_grammars(), vocabularies())
def test_grammars_with_parameters(drawn: Drawn, tokens: Tokens) -> None:
    check_drawn(drawn, tokens)


@examples(200, kept=0.5)
@given(vocabularies_of_characters(), st.sampled_from(GRAMMARS_OF_CHARACTERS))
def test_vocabularies_without_single_bytes(tokens: list[bytes], grammar: Any) -> None:
    """Tokens may end inside a character that no tokens complete: there states may be one that bytes tell apart."""
    try:
        constraint = gs.compile(grammar(), vocabulary_of(tokens))
    except (gs.Unsatisfiable, UnsupportedFeature):
        discard("what the vocabulary cannot spell")
    frozen = freeze_or_discard(constraint)
    agree_everywhere(constraint, frozen, 60)
    check_form(frozen)


def _scalars() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.sampled_from([{"type": kind} for kind in ("string", "integer", "number", "boolean", "null")]),
        st.lists(st.sampled_from(["a", "ab", "b", 1, 12, None, True, "é"]), min_size=1, unique_by=repr).map(
            lambda values: {"enum": values}
        ),
        st.builds(lambda least, more: {"type": "string", "minLength": least, "maxLength": least + more},
                  st.integers(0, 3), st.integers(0, 3)),
        st.sampled_from([{"type": "string", "pattern": p} for p in ("^[a-c]+$", "ab", "^é{1,3}$", "^(a|bc)*$")]),
        st.builds(lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more},
                  st.integers(-20, 20), st.integers(0, 200)),
    )  # fmt: skip


def _objects(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from(["a", "ab", "name", "é", 'q"'])
    return st.dictionaries(names, parts, max_size=4).flatmap(
        lambda members: (
            st.lists(st.sampled_from(sorted(members)), unique=True).map(
                lambda required: {"type": "object", "properties": members, "required": required}
            )
            if members
            else st.just({"type": "object"})
        )
    )


SCHEMAS = st.recursive(
    _scalars(),
    lambda parts: st.one_of(
        _objects(parts),
        st.builds(lambda items, most: {"type": "array", "items": items, "maxItems": most}, parts, st.integers(0, 3)),
        st.builds(lambda items: {"type": "array", "items": items}, parts),
        st.lists(parts, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts}),
    ),
    max_leaves=5,
)


@examples(150, kept=0.7)
@given(SCHEMAS, st.sampled_from(["compact", "flexible"]), st.sampled_from([BYTES, MARKED]))
def test_json_schemas(schema: dict[str, Any], whitespace: Any, vocabulary: gs.Vocabulary) -> None:
    try:
        grammar = gs.json_schema(schema, whitespace=whitespace, additional_properties=False)
        constraint = gs.compile(grammar, vocabulary)
    except (gs.Unsatisfiable, UnsupportedFeature):
        discard("a schema without texts")
    check(constraint, most=40)


# ---------------------------------------------------------------------- a real vocabulary
TEXT: dict[str, Any] = {"type": "string"}
PERSON = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b b", "naïve", "日本"]}},
        "address": {"type": "object", "properties": {"city": TEXT, "zip": {"type": "string", "pattern": "^\\d{5}$"}}},
        "note": {"type": "string", "maxLength": 20},
    },
    "required": ["name"],
}
LIST = r"""
start: item (", " item)*
item: NAME "=" value
value: NUMBER | STRING | "[" NUMBER (" " NUMBER)* "]"
NAME: /[a-z_]+/
NUMBER: /-?[0-9]+(\.[0-9]+)?/
STRING: /"[^"\n]*"/
"""
RIGHT = """
start: "x" rest
rest: "," start | ";"
"""
GRAMMARS: dict[str, gs.Grammar[Any]] = {
    "choice": gs.choice(["yes", "no", "maybe", "yesterday"]),
    "any text": gs.regex(r"(?s:.*)"),
    "short text": gs.regex(r".{0,60}"),
    "email": gs.regex(r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}"),
    "nested": gs.regex(r"((([a-z]*[0-9]?)*)*x?)*!"),
    "greek": gs.regex(r"[α-ωa-z]+( [α-ω]+)*!?"),
    "search": gs.regex(r".*(cat|dog|日本).*"),
    "assertions": gs.regex(r"(?=.*[0-9])(?!.*aa)[a-z0-9]{4,12}"),
    "person": gs.json_schema(PERSON, additional_properties=False),
    "compact person": gs.json_schema(PERSON, additional_properties=False, whitespace="compact"),
    "any order": gs.json_schema(
        {"properties": {key: {"type": ["number", "null"]} for key in "abcd"}, "type": "object"},
        property_order="any", additional_properties=False,
    ),
    "numbers": gs.json_schema({"type": "array", "items": {"type": "number", "multipleOf": 0.25}}),
    "enum": gs.json_schema({"enum": [f"option number {i}" for i in range(300)]}),
    "list": gs.lark(LIST),
    "list by LALR": gs.lark(LIST, parser="lalr"),
    "right recursion": gs.lark(RIGHT),
    "semver": gs.load("semver"),
    "date": gs.load("date-time"),
}  # fmt: skip


@pytest.fixture(scope="module")
def vocabulary(smollm2_tokenizer: Any) -> gs.Vocabulary:
    return gs.Vocabulary.from_tokenizer(smollm2_tokenizer)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.property
def test_walks_over_a_real_vocabulary(name: str, vocabulary: gs.Vocabulary) -> None:
    """Masks and steps along random texts: in the tier "all", over all grammars, a million steps."""
    constraint = gs.compile(GRAMMARS[name], vocabulary)
    frozen = constraint.freeze()
    check_form(frozen)
    wanted = tiers.draws(STEPS // len(GRAMMARS) + 1)
    walker = Walker(constraint, frozen, random.Random(f"{name}{tiers.seed(0) or ''}"))
    while walker.steps < wanted:
        walker.walk(200)
    assert walker.endings and walker.refusals and walker.bits >= 10 * wanted


@pytest.mark.parametrize("name", ["email", "person", "list by LALR"])
@pytest.mark.property
def test_walks_over_a_vocabulary_of_128_000_tokens(name: str, llama3_directory: Path) -> None:
    from transformers import AutoTokenizer

    vocabulary = gs.Vocabulary.from_tokenizer(AutoTokenizer.from_pretrained(llama3_directory))
    constraint = gs.compile(GRAMMARS[name], vocabulary)
    walker = Walker(constraint, constraint.freeze(), random.Random(tiers.seed(0)))
    while walker.steps < tiers.draws(20_000):
        walker.walk(200)
    assert walker.endings and walker.refusals


# ---------------------------------------------------------------------- ends, special tokens
def test_ends_and_special_tokens() -> None:
    grammar = gs.regex("a*") + gs.special("<|call|>")
    frozen = check(gs.compile(grammar, MARKED))
    assert frozen.step(frozen.start, 132) is None and frozen.step(frozen.start, 130) is None
    after = frozen.step(frozen.start, 131)
    assert after is not None and frozen.is_accepting(after)
    assert frozen.step(after, 130) == frozen.terminated
    assert not frozen.mask(frozen.terminated).any() and frozen.is_accepting(frozen.terminated)
    assert all(frozen.step(frozen.terminated, token) is None for token in range(MARKED.size))


def test_several_end_tokens_are_of_one_class() -> None:
    several = gs.Vocabulary.from_tokens([b"a", None, None, None], [1, 3])
    frozen = check(gs.compile(gs.regex("a+"), several))
    assert frozen.class_of.tolist() == [0, 1, 2, 1]
    assert frozen.next.tolist() == [[1, -1, -1], [1, 2, -1], [-1, -1, -1]]
    assert frozen.pool.tolist() == [[1], [11], [0]] and frozen.mask_row.tolist() == [0, 1, 2]
    assert frozen.accepting.tolist() == [False, True, True] and frozen.terminated == 2


def test_padding_is_never_allowed() -> None:
    padded = gs.Vocabulary.from_tokens([b"a", b"b", None], [2], size=70)
    frozen = check(gs.compile(gs.regex("[ab]*"), padded))
    assert frozen.pool.shape[1] == 3 and not (frozen.pool[:, 1:].any())


# ---------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("grammar", "word"),
    [
        (gs.lark('start: inner\ninner: "(" inner ")" | "a"'), "inner"),
        (gs.lark('start: inner\ninner: "(" inner ")" | "a"', parser="lalr"), "nests"),
        (gs.json_schema({}), "nests"),
        (gs.json_schema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}), "differ"),
    ],
    ids=["recursion", "LALR", "any JSON", "unique items"],
)
def test_endless_states_are_refused(grammar: gs.Grammar[Any], word: str) -> None:
    limits = gs.Limits(max_steps=200_000)  # it is seen long before the default
    with pytest.raises(UnsupportedFeature, match=word):
        gs.compile(grammar, BYTES, limits=limits).freeze()


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"max_states": 100}, r"at least \d{3,} states.*max_states is 100"),
        ({"max_classes": 10}, r"at least 11 classes of tokens; the bound max_classes is 10"),
        ({"max_table": 1000}, r"at least \d{4,} bytes in its table.*max_table is 1000"),
        ({"max_pool": 1000}, r"at least \d{4,} bytes in its mask rows; the bound max_pool is 1000"),
    ],
)
def test_bounds(bounds: dict[str, int], said: str) -> None:
    constraint = gs.compile(gs.json_schema(PERSON, additional_properties=False), BYTES)
    with pytest.raises(LimitExceeded, match=said):
        constraint.freeze(**bounds)
    frozen = constraint.freeze()
    exact = {
        "max_states": frozen.states,
        "max_classes": frozen.classes,
        "max_table": frozen.next.nbytes,
        "max_pool": frozen.pool.nbytes,
    }
    assert constraint.freeze(**exact).states == frozen.states
    for name, value in exact.items():
        with pytest.raises(LimitExceeded):
            constraint.freeze(**{name: value - 1})


def test_limits_of_the_constraint() -> None:
    constraint = gs.compile(gs.regex("[a-z]{1,3000}x"), BYTES, limits=gs.Limits(max_steps=5_000))
    with pytest.raises(LimitExceeded, match="max_steps"):
        constraint.freeze()
    constraint = gs.compile(gs.regex("[a-z]{1,30000}x"), BYTES, limits=gs.Limits(max_memory=1 << 20))
    with pytest.raises(LimitExceeded, match="max_memory"):
        constraint.freeze()
    with pytest.raises(ValueError, match="max_classes"):
        constraint.freeze(max_classes=40_000)


def test_cancelling() -> None:
    cancel = gs.CancelToken()
    limits = gs.Limits(max_steps=1 << 40, max_memory=1 << 34)
    constraint = gs.compile(gs.regex("(.{0,400}a.{0,400}b)*"), BYTES, limits=limits, cancel=cancel)
    timer = threading.Timer(0.2, cancel.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        constraint.freeze(max_states=1 << 30)
    timer.join()


def test_a_constraint_can_be_used_after_freezing() -> None:
    constraint = gs.compile(gs.regex("[a-z]{1,5000}x"), BYTES)
    matcher = constraint.matcher()
    matcher.accept_tokens(list(b"abc"))
    assert constraint.freeze().states > 5000
    assert matcher.accept_tokens(list(b"defx")) == 4


# ---------------------------------------------------------------------- the same everywhere
PROBE = """
import hashlib
import grammarspec as gs
frozen = gs.compile(gs.json_schema({schema!r}, additional_properties=False), gs.Vocabulary.bytes()).freeze()
print(hashlib.sha256(b"".join(array.tobytes() for array in frozen.arrays().values())).hexdigest())
"""


def _digest(frozen: gs.FrozenConstraint) -> str:
    return hashlib.sha256(b"".join(array.tobytes() for array in frozen.arrays().values())).hexdigest()


def test_bytes_do_not_depend_on_the_process_or_on_what_was_done_before() -> None:
    constraint = gs.compile(gs.json_schema(PERSON, additional_properties=False), BYTES)
    fresh = _digest(constraint.freeze())
    for text in (b'{"name": "a"', b'{"name": "b", "age": 3'):
        constraint.matcher().accept_tokens(list(text))
    assert _digest(constraint.freeze()) == fresh
    run = subprocess.run(
        [sys.executable, "-c", PROBE.format(schema=PERSON)], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == fresh


def test_equal_languages_freeze_to_equal_bytes() -> None:
    one = gs.compile(gs.regex("(a|b)*abb"), BYTES).freeze()
    other = gs.compile(gs.lark('start: /[ab]/* "abb"', lexer="dynamic_complete"), BYTES).freeze()
    assert _digest(one) == _digest(other)


def test_copies_and_errors() -> None:
    frozen = gs.compile(gs.regex("a+"), BYTES).freeze()
    again = pickle.loads(pickle.dumps(frozen))
    assert _digest(again) == _digest(frozen) and again.vocabulary == frozen.vocabulary
    assert frozen.is_for(BYTES) and not frozen.is_for(MARKED)
    assert "3 states, 3 classes, 3 masks" in repr(frozen) and frozen.nbytes > 0
    assert not any(array.flags.writeable for array in frozen.arrays().values())
    for wrong in (-1, frozen.states):
        with pytest.raises(IndexError):
            frozen.mask(wrong)
        with pytest.raises(IndexError):
            frozen.step(wrong, 97)
    with pytest.raises(IndexError):
        frozen.step(0, -1)
    tensors = frozen.tensors()
    assert all(np.array_equal(tensors[name].numpy(), array) for name, array in frozen.arrays().items())
