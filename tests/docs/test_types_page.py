"""docs/types.md, which is made of the cases of test_types.py. ``make written`` writes it anew."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import grammarspec as gs
import tests.frontends.types.test_types as cases
from grammarspec.frontends.types.adapters import known_adapter

PAGE = Path(__file__).parents[2] / "docs" / "types.md"
SOURCE = Path(cases.__file__).read_text(encoding="utf-8")
WIDTH = 160  # characters of a schema that are shown

HEAD = """\
# Types

`gs.grammar(T)` is the grammar of a Python type: the JSON texts of its values, of which `parse` makes values. The table
below has {count} types: their JSON Schemas, how many of a schema's keywords are enforced while generating, texts that
look alike and are never written, and the types of the values that texts are read back as. In the tests, random choices
among the allowed bytes write texts of each type; every text becomes a value of the type, and the JSON of that value is
in the language again.

At the top level, the texts of `str`, and of a `Literal` or `Enum` of texts only, have no quotes. Titles, descriptions
and defaults of schemas are left out here, and long cells are cut short (…).

Where a type changes the texts that it reads (`strip_whitespace`, `to_lower`), they are written as they are afterwards.
Of URLs, mail addresses and the like, a part is written that every reader takes: hosts are names of letters, digits and
hyphens, or IPv4 addresses.

Patterns are read as the library reads them: in Rust's syntax; or in Python's if they are compiled, with Pydantic's
`regex_engine="python-re"`, and with msgspec. Numbers have no exponents. Members have their alias as their name, the
first of several.

| Type | JSON Schema | Enforced | Never written | Read back as |
|---|---|---|---|---|
"""
REWRITTEN = """
\\* Pydantic writes these values in another way than they are generated: as a text, with years, with exponents.

## Refused

Types without JSON, and constraints that could only be checked afterwards, are refused: also types of libraries that
validate in a function of their own. Functions of yours (`AfterValidator`, `@field_validator`) run after generation. The
error says where in the type the refused part stands (`Order.lines[].price`), and `gs.check` lists all such parts:

| Type | Why |
|---|---|
"""
CLASSES = """
## The classes

"""


def page() -> str:
    types = [type_ for type_, _ in cases.TYPES]
    names = [ast.unparse(pair.elts[0]) for pair in listed("TYPES") if isinstance(pair, ast.Tuple)]
    unsupported = [ast.unparse(element) for element in listed("UNSUPPORTED")]
    text = HEAD.format(count=len(types))
    for name, type_ in zip(names, types, strict=True):
        never = ", ".join(map(code, cases.NEVER_WRITTEN.get(type_, [])))
        text += row(code(name), code(shown(known_adapter(type_).schema)), enforced(type_), never, read_back(type_))
    text += REWRITTEN
    for name, type_ in zip(unsupported, cases.UNSUPPORTED, strict=True):
        with pytest.raises(gs.UnsupportedFeature) as caught:
            gs.grammar(type_)
        text += row(code(name), caught.value.message)
    return f"{text}{CLASSES}```python classes.py\n{definitions()}\n```\n"


def row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def code(text: str) -> str:
    return f"`{text}`"


# ---------------------------------------------------------------------- what the page says of a type
def enforced(type_: Any) -> str:
    """How many keywords of the schema hold while generating; of the rest none says anything about values."""
    report = gs.check(known_adapter(type_).schema)
    held = len(report.of("enforced")) + len(report.of("narrowed"))
    assert held + len(report.of("annotation")) == len(report.entries), report
    return f"all {held}" if held > 1 else "yes"


def read_back(type_: Any) -> str:
    grammar = gs.grammar(type_)
    values = [grammar.parse(cases._written(grammar, seed)) for seed in range(20)]
    names = sorted({type(value).__name__ for value in values})
    anew = type_ in cases.REWRITTEN or names == ["Decimal"]
    return " or ".join(map(code, names)) + ("\\*" if anew else "")


def shown(schema: Any) -> str:
    text = json.dumps(short(schema), ensure_ascii=False, default=float)
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def short(schema: Any) -> Any:
    """A schema without what says nothing of values; members of objects may be named so."""
    if isinstance(schema, dict):
        notes = ("title", "description", "default")
        return {name: short(value) for name, value in schema.items() if name not in notes or isinstance(value, dict)}
    if isinstance(schema, list):
        return [short(item) for item in schema]
    return schema[:40] + "…" if isinstance(schema, str) and len(schema) > 41 else schema


# ---------------------------------------------------------------------- the source of the cases
def listed(name: str) -> list[ast.expr]:
    """The elements of a list in test_types.py."""
    for node in ast.parse(SOURCE).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            assert isinstance(node.value, ast.List)
            return node.value.elts
    raise AssertionError(name)


def definitions() -> str:
    """The classes of test_types.py, as they stand there."""
    return "\n\n\n".join(segments())


def segments() -> Iterator[str]:
    lines = SOURCE.splitlines()
    for node in ast.parse(SOURCE).body:
        if isinstance(node, ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield "\n".join(lines[first - 1 : node.end_lineno])
        elif isinstance(node, ast.Assign) and ast.unparse(node.value).startswith(("NewType", "TypeAliasType")):
            yield "\n".join(lines[node.lineno - 1 : node.end_lineno])


# ---------------------------------------------------------------------- tests
def test_the_page_is_that_of_the_cases(pytestconfig: pytest.Config) -> None:
    text = page()
    if pytestconfig.option.write:
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "make written writes the page anew"
    assert len(cases.TYPES) >= 60
