"""What is said of patterns that no text matches: their smallest part that contradicts itself."""

from __future__ import annotations

import pickle
import re

import pytest

import grammarspec as gs
from tests.endings import ends

CASES = [
    ("(?=a)b", "(?=a)b", "(?=a) contradicts what stands beside it"),
    ("x+(?=a)b+c", "(?=a)b+", "(?=a) contradicts what stands beside it"),
    ("(?:x(?:(?=ab)c){2,}y)", "(?=ab)c", "(?=ab) contradicts what stands beside it"),
    ("(?!a)a|(?<=x)y", "(?!a)a", "(?!a) contradicts what stands beside it"),
    ("abc(?=d)(?=e)f", "(?=d)(?=e)", "(?=d) and (?=e) contradict each other"),
    ("x(?=a)", "(?=a)", "(?=a) can never hold here"),
    ("(?=ab)a", "(?=ab)a", "(?=ab) contradicts what stands beside it"),
    ("a{3}(?<!a)", "a{3}(?<!a)", "(?<!a) contradicts what stands beside it"),
    ("xa^b", "xa^", "^ contradicts what stands beside it"),
    ("ab$c", "$c", "$ contradicts what stands beside it"),
    (r"one\btwo", r"one\btwo", r"\b contradicts what stands beside it"),
    (r"a?[^\s\S]b", r"[^\s\S]", "no character is in this class"),
    (r"a\n(?:(?#c)(?=\d)\D)+b", r"(?=\d)\D", r"(?=\d) contradicts what stands beside it"),
    ("(?x) a # one\n (?=x) y *", "(?=x) y *", "(?=x) contradicts what stands beside it"),
    ("(?i)k(?=[a-c])(?=D).", "(?=[a-c])(?=D)", "(?=[a-c]) and (?=D) contradict each other"),
]


@pytest.mark.parametrize(("pattern", "part", "why"), CASES)
def test_the_smallest_part_is_named(pattern: str, part: str, why: str) -> None:
    with pytest.raises(gs.Unsatisfiable) as caught:
        gs.compile("- " + gs.regex(pattern), gs.Vocabulary.bytes())
    assert caught.value.message == f"no text matches the regular expression: {why}"
    place, _, carets = caught.value.where.split("\n")
    found = re.fullmatch(r"line (\d+), column (\d+)", place)
    assert found
    line = pattern.split("\n")[int(found[1]) - 1]
    begin = int(found[2]) - 1
    assert (line[begin : begin + carets.count("^")], carets.index("^") - 4) == (part, begin)


def test_patterns_of_schemas() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x(?=a)b"}}, "required": ["a"]}
    message = "required property 'a': no string matches the pattern: (?=a) contradicts what stands beside it"
    with pytest.raises(gs.Unsatisfiable, match=re.escape(message)):
        gs.compile(gs.json_schema(schema), gs.Vocabulary.bytes())


def test_what_only_a_vocabulary_cannot_spell_is_no_contradiction() -> None:
    with pytest.raises(gs.Unsatisfiable, match="no text that the vocabulary can spell"):
        gs.compile(gs.regex("a"), gs.Vocabulary.from_tokens([b"b", None], eos_token_ids=[1]))


def test_grammars_stay_values() -> None:
    grammar = pickle.loads(pickle.dumps(gs.regex("(?=a)b")))
    assert grammar == gs.regex("(?=a)b")
    with pytest.raises(gs.Unsatisfiable):
        gs.compile(grammar, gs.Vocabulary.bytes())


def test_a_long_pattern_is_told_in_time() -> None:
    with ends(), pytest.raises(gs.Unsatisfiable, match="no text matches the regular expression"):
        gs.compile(gs.regex("[ab]{1,9}c" * 300 + "(?=a)b" + "(?:x|yz)*w" * 300), gs.Vocabulary.bytes())
