"""Trees and captures of texts of ``.lark`` grammars: lark makes them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import grammarspec as gs
from tests.oracles.shipped import NAMES
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


SUMS = """
start: sum
?sum: product | sum "+" product -> add
?product: atom | product "*" atom
?atom: NUMBER | "(" sum ")" | "-" atom -> neg
NUMBER: /[0-9]+/
%ignore " "
"""


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lexer": "dynamic_complete"},
        {"parser": "lalr"},
        {"ambiguity": "explicit"},
        {"tree_class": tuple},
    ],
)
def test_captures_keep_what_encloses_an_inlined_token(options: dict[str, Any]) -> None:
    sums = gs.lark(SUMS, captures=["start", "add", "product", "neg", "NUMBER"], **options)
    assert sums.match(" ((3)) ").captures == {"start": ["((3))"], "add": [], "product": [], "neg": [], "NUMBER": ["3"]}
    assert sums.match("(1) + ( (2)) * (3)").captures == {
        "start": ["(1) + ( (2)) * (3)"], "add": ["(1) + ( (2)) * (3)"], "product": ["( (2)) * (3)"], "neg": [],
        "NUMBER": ["1", "2", "3"],
    }  # fmt: skip
    assert sums.match("((1 + -(2)))").captures == {
        "start": ["((1 + -(2)))"], "add": ["1 + -(2)"], "product": [], "neg": ["-(2)"], "NUMBER": ["1", "2"],
    }  # fmt: skip


def test_captures_of_ambiguous_texts_are_those_of_one_tree() -> None:
    twice = gs.lark('start: x x\nx: "a"*', captures=["x"], ambiguity="explicit")
    assert len(twice.match("aa").captures["x"]) == 2


class Total(lark.Transformer):
    def start(self, children: list[int]) -> int:
        return children[0]

    def add(self, children: list[int]) -> int:
        return children[0] + children[1]

    def product(self, children: list[int]) -> int:
        return children[0] * children[1]

    def neg(self, children: list[int]) -> int:
        if children[0] == 0:
            raise ValueError("no zero has a sign")
        return -children[0]

    def NUMBER(self, token: str) -> int:
        return {"7": 7}[token] if token == "9" else int(token)


class Doubled(Total):
    def start(self, children: list[int]) -> int:
        return 2 * children[0]


class Counting(lark.Transformer):
    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __default_token__(self, token: Any) -> Any:
        self.seen += 1
        return token

    def __default__(self, data: str, children: Any, meta: Any) -> int:
        return self.seen


@pytest.mark.parametrize("options", [{}, {"parser": "lalr"}])
def test_a_text_means_what_a_transformer_makes_of_it(options: dict[str, Any]) -> None:
    text = "(1 + 2) * -4"
    assert gs.lark(SUMS, transformer=Total, **options).parse(text) == -12
    assert gs.lark(SUMS, transformer=Total(), captures=["neg"], **options).match(text).captures == {"neg": ["-4"]}
    assert gs.lark(SUMS, transformer=Doubled() * Total(), **options).parse(text) == -24
    assert ("= " + gs.lark(SUMS, transformer=Total, **options).named("sum")).match("= 5").captures == {"sum": 5}
    counted = gs.lark(SUMS, transformer=Counting, **options)
    assert [counted.parse("1 + 2"), counted.parse("1 + 2")] == [2, 2]  # each text has an instance of its own
    total = gs.lark(SUMS, transformer=Total, **options)
    again = pickle.loads(pickle.dumps(total))
    assert again == total != gs.lark(SUMS, transformer=Doubled, **options)
    assert again.parse(text) == -12


def test_errors_of_transformers() -> None:
    total = gs.lark(SUMS, transformer=Total)
    with pytest.raises(gs.ValidationFailed) as refused:
        total.parse("1 +  -0")
    assert refused.value.text == "1 +  -0"
    assert refused.value.errors == (("#", "no zero has a sign (in neg, line 1, column 6)"),)
    assert isinstance(refused.value.__cause__, ValueError)
    assert str(refused.value).startswith("the text is not valid:\n  no zero has a sign")
    with pytest.raises(gs.ValidationFailed, match=r"KeyError: Token.* \(in NUMBER, line 1, column 1\)") as broken:
        total.parse("9")
    assert isinstance(broken.value.__cause__, KeyError)

    class Needy(lark.Transformer):
        def __init__(self, needed: int) -> None:
            super().__init__()

    with pytest.raises(TypeError, match="needed"):
        gs.lark(SUMS, transformer=Needy)


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
        ({"captures": ["one"]}, ValueError, "have no parts named 'one'"),
        ({"captures": ["COMMA"]}, ValueError, "have no parts named 'COMMA'"),
        ({"tree": "yes"}, TypeError, "tree takes True or False"),
        ({"tree": True, "transformer": lark.Transformer}, ValueError, "give tree or transformer"),
        ({"transformer": str.upper}, TypeError, "takes a lark.Transformer or a class of them"),
        ({"transformer": lark.visitors.Interpreter}, TypeError, "takes a lark.Transformer or a class of them"),
        ({"transformer": lark.Transformer(), "tree_class": tuple}, gs.UnsupportedFeature, "no subclass of lark.Tree"),
        ({"tree": True, "ambiguity": "forest"}, gs.UnsupportedFeature, "ambiguity='forest'"),
        ({"captures": ["start"], "ambiguity": "forest"}, gs.UnsupportedFeature, "ambiguity='forest'"),
        ({"captures": ["start"], "ambiguity": "all"}, gs.GrammarSyntaxError, "invalid ambiguity option"),
        ({"read": "tree"}, TypeError, "no option read"),
    ],
)
def test_refused(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gs.lark('start: _inline one\n_inline: "x" ","\n?one: X | "," one\nX: "x"', **options)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "words.lark").write_text("WORD: /[a-z]+/")
    file = tmp_path / "main.lark"
    file.write_text("start: WORD\n%import .words.WORD\n")
    assert gs.load(file, captures=["WORD"]).match("word").captures == {"WORD": ["word"]}
    with pytest.raises(gs.UnsupportedFeature, match="a text stands beside no files"):
        gs.lark(file.read_text(), tree=True)
    schema = tmp_path / "schema.json"
    schema.write_text("true")
    with pytest.raises(TypeError, match="is a JSON Schema, which has no options tree, captures"):
        gs.load(schema, tree=True, captures=["x"])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.property
def test_every_text_has_a_tree(name: str) -> None:
    grammar = gs.load(name, tree=True, captures=["start"])
    for seed in range(draws(20)):
        found = grammar.match(grammar.sample(seed, max_bytes=40))
        assert isinstance(found.value, lark.Tree)
        if not all(isinstance(child, lark.Token) for child in found.value.children):
            # what stands around it is ignored
            assert grammar.match(found.captures["start"][0]).value == found.value
        else:  # a token stands where it stands, without parentheses around it
            assert found.captures["start"][0] in found.text
