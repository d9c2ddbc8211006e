"""What the tiers draw."""

from __future__ import annotations

import ast
from argparse import ArgumentTypeError
from itertools import product
from pathlib import Path

import pytest

from tests.tiers import Part, covering


def test_covering() -> None:
    cases = [*product(range(5), "abc", [{}, {"a": 1}, None])]
    chosen = [cases[number] for number in covering(cases)]
    assert len(chosen) == 5, "as few as the values of the first place"
    for place in range(3):
        assert all(any(case[place] == other[place] for other in chosen) for case in cases)
    uses = [sum(case[1] == letter for case in chosen) for letter in "abc"]
    assert max(uses) - min(uses) <= 1, "the other values come alike often"


def test_covering_leaves_out_no_value_of_its_own() -> None:
    assert covering([(1,), (2,), (3,)]) == [0, 1, 2]
    assert covering([("a", False), ("a", True), ("b", False), ("c", False), ("c", True)]) == [0, 2, 4]
    assert covering([(1, 1), (1, 1)]) == [0]
    assert covering([]) == []


# ---------------------------------------------------------------------- the tier long, and parts
def drawing(module: ast.Module) -> set[str]:
    """The names of a module whose values or bodies ask how many examples to draw, or for a seed, be it indirectly."""
    used = {}
    for statement in module.body:
        found = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        found |= {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)}  # fixtures
        found |= {ast.unparse(node) for node in ast.walk(statement) if isinstance(node, ast.Attribute)}
        found |= {f"{ast.unparse(node.func)}()" for node in ast.walk(statement) if isinstance(node, ast.Call)}
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            used[statement.name] = found
        elif isinstance(statement, ast.Assign):
            used.update(dict.fromkeys(map(ast.unparse, statement.targets), found))
    asking = {"draws()", "seed()", "tiers.draws()", "tiers.seed()", "tiers.selected().random"}
    while more := {name for name, found in used.items() if found & asking} - asking:
        asking |= more
    return asking


def test_what_draws_examples_is_run_by_the_tier_long() -> None:
    """Tests of Hypothesis are marked while they are collected."""
    unmarked = []
    for path in Path(__file__).parent.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        module = ast.parse(text if any(asked in text for asked in ("draws(", "seed(", "selected(")) else "")
        names = drawing(module)
        for test in module.body:
            if isinstance(test, ast.FunctionDef) and test.name.startswith("test_") and test.name in names:
                said = [ast.unparse(decorator) for decorator in test.decorator_list]
                if "pytest.mark.property" not in said and not any(one.startswith("given(") for one in said):
                    unmarked.append(f"{path.name}: {test.name}")
    assert not unmarked, "@pytest.mark.property is missing"


def test_hypothesis_draws_what_is_left_to_a_round() -> None:
    """``draws`` is right in the tier ``all``; in the tier ``long`` it is as many times too much as there are rounds."""
    given = [
        f"{path.name}: {ast.unparse(keyword.value)}"
        for path in Path(__file__).parent.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("settings")
        for keyword in call.keywords
        if keyword.arg == "max_examples" and ast.unparse(keyword.value).split("(")[0] != "tiers.each_round"
    ]
    assert not given


def test_parts() -> None:
    parts = [Part.parsed(f"{number}/3").of(range(11)) for number in (1, 2, 3)]
    assert [*map(list, parts)] == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8]]
    assert Part.parsed("1/1").of(range(3)) == range(3)


@pytest.mark.parametrize("text", ["", "3", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/2"])
def test_what_is_no_part(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is no part"):
        Part.parsed(text)
