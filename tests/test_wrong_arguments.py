"""What is given in place of a grammar, a type, a text or a schema: taken where its meaning is clear, else refused."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, TypeAdapter

import grammarspec as gs

VOCABULARY = gs.Vocabulary.bytes()


class Point(BaseModel):
    x: int


class Pair(NamedTuple):
    x: int


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gs.compile(int, VOCABULARY), r"compile\(\) takes a grammar.*hint: gs.grammar\(int\)"),
        (lambda: gs.compile(gs.literal("a"), "gpt2"), r"takes a gs.Vocabulary, not 'gpt2'.*from_tokenizer"),
        (lambda: gs.grammar(r"\d+"), r"is no type.*gs.regex\('\\\\d\+'\) takes a pattern"),
        (lambda: gs.grammar({"type": "integer"}), r"is no type.*gs.json_schema"),
        (lambda: gs.grammar(["a", "b"]), r"is no type.*gs.choice"),
        (lambda: gs.grammar(b"a"), r"is no type.*grammars are text"),
        (lambda: gs.grammar(5), r"5 is no type.*Literal"),
        (lambda: gs.grammar(Path("x.json")), r"is no type.*gs.load"),
        (lambda: gs.grammar(TypeAdapter(int)), r"is no type.*the type that the TypeAdapter is for"),
        (lambda: gs.grammar(re.compile("a"), whitespace="compact"), "has no options whitespace"),
        (lambda: gs.regex(b"a"), r"regex\(\) takes a pattern of text, not b'a'"),
        (lambda: gs.regex(re.compile(b"a")), r"regex\(\) takes a pattern of text, not b'a'"),
        (lambda: gs.text(until=["a", "b"]), r"until is one text, not \['a', 'b'\].*gs.text\(until=a\) & gs.text"),
        (lambda: gs.text(max_chars="9"), "max_chars is a whole number, not '9'"),
        (lambda: gs.special(b"<s>"), r"special\(\) takes the name of a token, not b'<s>'"),
        (lambda: gs.lark(b"start: x"), r"lark\(\) takes the text of a grammar.*gs.load"),
        (lambda: gs.json_schema(int), r"not <class 'int'>.*gs.grammar\(int\)"),
        (lambda: gs.json_schema(BaseModel), "has no schema of its own.*derived from it"),
        (lambda: gs.json_schema(Pair), r"gs.grammar\(Pair\) makes the grammar of a type"),
        (lambda: gs.load("x.json", start="x"), "is a JSON Schema, which has no options start"),
        (lambda: gs.load("x.lark", whitespace="compact"), "has no options whitespace"),
        (lambda: gs.compile(gs.regex("a"), gs.Vocabulary.bytes(), limits=3), "limits must be a gs.Limits, not 3"),
        (lambda: gs.regex("a", limits={}), r"limits must be a gs.Limits, not \{\}"),
        (lambda: gs.json_schema({}, limits={"timeout": 1}), "limits must be a gs.Limits"),
        (lambda: gs.json_schema({}, cancel=True), "cancel must be a gs.CancelToken, not True"),
        (lambda: gs.regex("a").matches(b"a"), r"matches\(\) takes a text, not b'a'"),
        (lambda: gs.regex("a").parse(None), r"parse\(\) takes a text, not None"),
        (lambda: gs.regex("a").match(["a"]), r"match\(\) takes a text, not \['a'\]"),
        (lambda: gs.regex("a").match_marked("a"), r"match_marked\(\) takes bytes, not 'a'"),
        (lambda: gs.regex("a").sample("a"), "seed is a whole number, not 'a'"),
        (lambda: gs.regex("a").sample(max_bytes=None), "max_bytes is a whole number, not None"),
        (lambda: gs.regex("a").repeat("2"), "least is a whole number, not '2'"),
        (lambda: gs.regex("a").repeat(1, 2.5), "most is a whole number, not 2.5"),
        (lambda: gs.types.date(ge="2024-01-01"), "ge is a datetime.date, not '2024-01-01'"),
        (lambda: gs.types.date(lt=datetime(2024, 1, 1)), r"lt is a datetime.date, not datetime.datetime\("),
    ],
)
def test_refused(call: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert re.search(said, str(caught.value), re.DOTALL), str(caught.value)


def test_compiled_patterns() -> None:
    for made in (gs.regex(re.compile("a.b", re.I | re.S)), gs.grammar(re.compile("a.b", re.I | re.S))):
        assert made.matches("A\nb") and not made.matches("A\nc")
        assert made == gs.regex("a.b", flags=re.I | re.S) and eval(repr(made)) == made
    assert gs.regex(re.compile("(?i)a")).matches("A")
    assert not gs.regex(re.compile(r"\d", re.ASCII)).matches("٣")
    assert ("<" + gs.literal("a") + re.compile("B", re.I)).matches("<ab")
    assert (gs.literal("x") | re.compile("y")).parse("y") == "y"
    assert gs.literal("x").repeat(2, 2, sep=re.compile("[,;]")).matches("x;x")
    with pytest.raises(ValueError, match="a compiled pattern has its own flags"):
        gs.regex(re.compile("a"), flags=re.I)


def test_schemas_of_files_and_of_pydantic(tmp_path: Path) -> None:
    file = tmp_path / "point.json"
    file.write_text(json.dumps(Point.model_json_schema()), "utf-8")
    expected = gs.json_schema(Point.model_json_schema())
    for given in (file, Point, TypeAdapter(Point)):
        made = gs.json_schema(given)
        assert made.parse('{"x": 1}') == {"x": 1}
        assert made.matches('{"x": 1}') and not made.matches('{"x": "1"}')
    assert gs.json_schema(Point) == expected
    assert gs.load(file).matches('{"x": 1}')
    assert not gs.load(str(file), whitespace="compact").matches('{"x": 1}')
    assert gs.check(file).ok
    with pytest.raises(FileNotFoundError):
        gs.json_schema(tmp_path / "none.json")
    file.write_bytes(b'"\xff"')
    with pytest.raises(gs.GrammarSyntaxError, match="byte 1 is not UTF-8"):
        gs.json_schema(file)


def test_all_errors_are_in_gs() -> None:
    from grammarspec import errors

    assert {name for name in errors.__all__ if name[0].isupper()} <= set(gs.__all__)
    assert {"ToolLimitExceeded", "ValidationFailed", "arun_tools"} <= set(gs.__all__)
