"""Importing grammarspec is cheap, and brings in none of the large libraries it can work with."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import grammarspec

PROBE = """
import sys
before = set(sys.modules)
import grammarspec
print(*sorted(set(sys.modules) - before))
"""


def test_import_is_light() -> None:
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    modules = {name.partition(".")[0] for name in run.stdout.split()}
    assert "grammarspec" in modules
    assert modules - {"grammarspec"} <= sys.stdlib_module_names
    assert len(run.stdout.split()) < 80  # each costs a quarter of a millisecond, more or less


def test_public_names() -> None:
    for name in grammarspec.__all__:
        assert getattr(grammarspec, name) is not None, name
    assert set(grammarspec.__all__) <= set(dir(grammarspec))
    with pytest.raises(AttributeError, match="no_such_name"):
        grammarspec.no_such_name  # noqa: B018


def test_names_imported_on_first_use_are_those_that_type_checkers_see() -> None:
    tree = ast.parse(Path(grammarspec.__file__).read_text("utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    checked = {}
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom)
        checked |= {name.name: f"{statement.module}" for name in statement.names}
    assert checked.pop("types") == "grammarspec"  # a module of the package
    assert checked == {name: f"grammarspec.{module}" for name, module in grammarspec._LATER.items()}


def test_errors_are_found_on_their_base() -> None:
    assert grammarspec.GrammarError.UnsupportedFeature is grammarspec.UnsupportedFeature  # type: ignore[attr-defined]
    error = grammarspec.UnsupportedFeature("no such thing", "#/a", "do another")
    assert str(error) == "no such thing\n  at #/a\n  hint: do another"
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.args, copy.where, copy.hint) == (type(error), error.args, "#/a", "do another")


def test_grammars_are_values() -> None:
    one, same, other = (grammarspec.choice(texts) for texts in (["a", "b"], ["a", "b"], ["a", "c"]))
    assert one == same != other
    assert len({one, same, other}) == 2
    assert repr(one) == repr(same) != repr(other)
    assert pickle.loads(pickle.dumps(one)) == one
    assert grammarspec.Grammar.from_bytes(one.to_bytes()) == one
    with pytest.raises(AttributeError):
        one.ir = other.ir  # type: ignore[misc]
    with pytest.raises(grammarspec.GrammarError):
        grammarspec.Grammar.from_bytes(b"not a grammar")


def test_choice_is_exactly_its_texts() -> None:
    texts = ["", "ab", "a", "ä", "\x00"]
    constraint = grammarspec.compile(grammarspec.choice(texts), grammarspec.Vocabulary.bytes())
    for text in [*texts, "b", "aba", "a\x00"]:
        matcher = constraint.matcher()
        data = text.encode()
        assert (matcher.accept_tokens(data) == len(data) and matcher.is_accepting) == (text in texts)


def test_choice_refuses() -> None:
    with pytest.raises(grammarspec.Unsatisfiable, match="no texts"):
        grammarspec.choice([])
    with pytest.raises(TypeError, match="single"):
        grammarspec.choice("abc")
    with pytest.raises(TypeError, match="element 1 is of type int"):
        grammarspec.choice(["a", 1])  # type: ignore[list-item]
    with pytest.raises(grammarspec.GrammarSyntaxError, match=r"U\+D800") as caught:
        grammarspec.choice(["a", "b\ud800"])
    assert caught.value.where == "text 1, character 1"


@pytest.mark.parametrize(
    "limits",
    [{"max_states": 0}, {"max_memory": -1}, {"max_steps": 0}, {"max_depth": 0}, {"timeout": 0.0}, {"timeout": -1.0}],
)
def test_limits_are_positive(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        grammarspec.Limits(**limits)


def walk(**options: Any) -> None:
    """Compile a large grammar, and go as far into it as needs all kinds of work."""
    vocabulary = grammarspec.Vocabulary.bytes()
    matcher = grammarspec.compile(grammarspec.choice(map(str, range(100_000))), vocabulary, **options).matcher()
    matcher.fill_bitmask(grammarspec.allocate_bitmask(1, vocabulary.size))
    assert matcher.accept_tokens(b"12345") == 5


@pytest.mark.parametrize("limits", [{"max_steps": 10}, {"max_memory": 10}, {"max_states": 1}, {"timeout": 1e-9}])
def test_limits_are_kept(limits: dict[str, Any]) -> None:
    walk()
    with pytest.raises(grammarspec.LimitExceeded, match=next(iter(limits))):
        walk(limits=grammarspec.Limits(**limits))


def test_cancelled_work_stops() -> None:
    cancel = grammarspec.CancelToken()
    cancel.cancel()
    with pytest.raises(grammarspec.Cancelled, match="cancelled"):
        walk(cancel=cancel)
