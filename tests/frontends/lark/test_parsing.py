"""Trees and captures of texts of ``.lark`` grammars: lark makes them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import grammarspec as gs
from grammarspec.frontends.lark.shipped import shipped
from tests.tiers import draws

lark = pytest.importorskip("lark")

QUERY = """
start: "SELECT " columns " FROM " NAME (" WHERE " condition)? ";"
columns: "*" -> all | NAME (", " NAME)*
condition: NAME SIGN NUMBER
NAME: /[a-z_]+/
SIGN: " = " | " < "
%import common.INT -> NUMBER
%ignore /\\n/
"""


def test_a_text_means_its_tree() -> None:
    query = gs.lark(QUERY, tree=True)
    text = "SELECT a, b FROM c WHERE d = 3;"
    tree = query.parse(text)
    assert tree == lark.Lark(QUERY).parse(text)
    (condition,) = tree.find_data("condition")
    assert text[condition.meta.start_pos : condition.meta.end_pos] == "d = 3"
    assert ("> " + query.named("query")).match("> " + text).captures == {"query": tree}
    with pytest.raises(gs.NoMatch):
        query.parse("SELECT")


def test_captures_by_names_of_trees() -> None:
    query = gs.lark(QUERY, captures=["columns", "all", "NAME", "condition", "NUMBER"])
    found = query.match("\nSELECT a, b FROM c WHERE d = 3;")
    assert found.value == "\nSELECT a, b FROM c WHERE d = 3;"
    assert found.captures == {
        "columns": ["a, b"], "all": [], "NAME": ["a", "b", "c", "d"], "condition": ["d = 3"], "NUMBER": ["3"],
    }  # fmt: skip
    assert (query + "\n").repeat(2).match("SELECT * FROM e;\n" * 2).captures == {
        "columns": [[], []], "all": [["*"], ["*"]], "NAME": [["e"], ["e"]], "condition": [[], []], "NUMBER": [[], []],
    }  # fmt: skip
    nested = gs.lark('start: "(" start? ")" | end\nend: [X]\nX: "é"', captures=["start", "end", "X"])
    assert nested.match("((é))").captures == {"start": ["((é))", "(é)", "é"], "end": ["é"], "X": ["é"]}
    assert nested.match("()").captures == {"start": ["()", ""], "end": [""], "X": []}
    template = gs.lark('start: list{X}\nlist{x}: x ("," x)*\nX: "x"', captures=["list"])
    assert template.match("x,x").captures == {"list": ["x,x"]}


def test_as_values() -> None:
    query = gs.lark(QUERY, tree=True, captures=["NAME"])
    again = pickle.loads(pickle.dumps(query))
    assert again == query != gs.lark(QUERY)
    assert eval(repr(query), {"gs": gs}) == query
    assert again.match("SELECT * FROM c;") == query.match("SELECT * FROM c;")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"captures": ["no"]}, ValueError, "have no parts named 'no'"),
        ({"captures": ["_inline"]}, ValueError, "have no parts named '_inline'"),
        ({"captures": "NAME"}, TypeError, "captures takes a sequence of names"),
        ({"read": "trees"}, ValueError, "read must be"),
    ],
)
def test_refused(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gs.lark('start: _inline\n_inline: "x"', **options)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "words.lark").write_text("WORD: /[a-z]+/")
    file = tmp_path / "main.lark"
    file.write_text("start: WORD\n%import .words.WORD\n")
    assert gs.load(file, captures=["WORD"]).match("word").captures == {"WORD": ["word"]}
    with pytest.raises(gs.UnsupportedFeature, match="a text stands beside no files"):
        gs.lark(file.read_text(), tree=True)
    schema = tmp_path / "schema.json"
    schema.write_text("true")
    with pytest.raises(TypeError, match="is a JSON Schema, which has no options read, captures"):
        gs.load(schema, tree=True, captures=["x"])


@pytest.mark.parametrize("name", [entry.name for entry in shipped().values() if not entry.missing])
@pytest.mark.property
def test_every_text_has_a_tree(name: str) -> None:
    grammar = gs.load(name, tree=True, captures=["start"])
    for seed in range(draws(20)):
        found = grammar.match(grammar.sample(seed, max_bytes=40))
        assert isinstance(found.value, lark.Tree)
        if not all(isinstance(child, lark.Token) for child in found.value.children):
            assert found.captures["start"][0].strip() == found.text.strip()
        else:  # a token stands where it stands, without parentheses around it
            assert found.captures["start"][0] in found.text
