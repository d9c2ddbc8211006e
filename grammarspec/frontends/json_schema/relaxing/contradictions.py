"""Why no value satisfies a schema: the smallest subschema that allows nothing, and the keywords in it that contradict.

A document that no value satisfies goes in, with a test that says whether a document is of that kind; a place and a
sentence come out. The document is tried again with parts of it left out: a part that allows nothing by itself, and
without which the rest has values, is the cause, and is looked into in the same way; where there is none, the keywords
without which there are still no values are left out, and those that remain contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from grammarspec._compiler import Grammar as Ir
from grammarspec.errors import GrammarError, Unsatisfiable
from grammarspec.frontends.json_schema.keywords.tables import children
from grammarspec.frontends.regex.contradictions import contradiction as contradiction_of_regex
from grammarspec.frontends.regex.patterns import parser_of
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.engine import Limits, byte_index, compile_ir
from grammarspec.positions import pointer_token

__all__ = ["contradiction"]

_STEPS: Final = 2_500_000  # after which what is known so far is told: about half a second
_TRIAL: Final = Limits(max_steps=250_000)  # of the engine, for each document that is tried
_DEFINITIONS = ("$schema", "$id", "id", "$defs", "definitions")
_BOUNDS = (
    ("minimum", "maximum"), ("exclusiveMinimum", "maximum"), ("minimum", "exclusiveMaximum"),
    ("exclusiveMinimum", "exclusiveMaximum"), ("minLength", "maxLength"), ("minItems", "maxItems"),
    ("minProperties", "maxProperties"), ("minContains", "maxContains"), ("minContains", "maxItems"),
)  # fmt: skip

_Path = tuple[str, ...]


class _UsedUp(Exception):
    """The steps for the search are used up."""


def contradiction(root: Any, ir: Callable[[Any, Budget], Ir]) -> Unsatisfiable:
    """The error that says why no value satisfies a document.

    Args:
        root: the document, as it was read.
        ir: makes the grammar of a document, within a budget; it raises a ``GrammarError`` where it cannot.
    """
    return _Search(root, ir).error()


class _Search:
    """The search in one document."""

    def __init__(self, root: Any, ir: Callable[[Any, Budget], Ir]) -> None:
        self.root, self.ir = root, ir
        self.budget = Budget(Limits(max_steps=_STEPS))

    def is_empty(self, document: Any) -> bool:
        """Whether no value satisfies a document; not, if it cannot be told.

        Raises:
            _UsedUp: the steps are used up.
        """
        try:
            self.budget.spend(_TRIAL.max_steps // 10)
            compile_ir(self.ir(document, self.budget), byte_index(), _TRIAL)
        except Unsatisfiable:
            return True
        except (GrammarError, RecursionError):
            if self.budget.is_used_up:
                raise _UsedUp from None
        return False

    def error(self) -> Unsatisfiable:
        """The error about the smallest part that is found."""
        path: _Path = ()
        said = ""
        try:
            while (inner := self.cause(path)) is not None:
                path = inner
            said = _sentence(self.core(self.at(path)))
        except _UsedUp:
            pass
        *_, holder, last = ("", "", *path)
        name = f"required property {last!r}: " if holder == "properties" else ""
        message = f"no value satisfies the schema: {name}{said or 'its keywords contradict each other'}"
        return Unsatisfiable(message, "#" + "".join(f"/{pointer_token(token)}" for token in path))

    def at(self, path: _Path) -> Any:
        found = self.root
        for token in path:
            found = found[_key(found, token)]
        return found

    def alone(self, schema: Any) -> Any:
        """A document that asks what a part of this one asks."""
        root = self.root if isinstance(self.root, dict) else {}
        return {**{name: root[name] for name in _DEFINITIONS if name in root}, "allOf": [schema]}

    def cause(self, path: _Path) -> _Path | None:
        """The part of a schema that allows nothing and without which the schema has values, if there is one."""
        schema = self.at(path)
        if not isinstance(schema, dict):
            return None
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            target = self.target(reference)
            if target is not None and target != path[: len(target)] and self.is_empty(self.alone(self.at(target))):
                return target
        for inner in _parts(schema):
            part = self.at((*path, *inner))
            if part not in (True, {}) and self.is_empty(self.alone(part)):
                without = _replaced(schema, inner)
                if not self.is_empty(without if path == () else self.alone(without)):
                    return (*path, *inner)
        return None

    def target(self, reference: str) -> _Path | None:
        """The path to which a reference within the document points."""
        found, path = self.root, list[str]()
        for token in reference[2:].split("/"):
            name = token.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or name not in found:
                return None
            found = found[name]
            path.append(name)
        return tuple(path)

    def core(self, schema: Any) -> Any:
        """The schema without the keywords, branches and members that the contradiction does not need."""
        if not isinstance(schema, dict):
            return schema
        kept = dict(schema)
        for name in schema:
            if name not in _DEFINITIONS:
                kept = self.without(kept, (name,))
        for inner in _parts(kept):
            if inner[0] in ("properties", "allOf"):
                kept = self.without(kept, inner)
        return {name: value for name, value in kept.items() if name not in _DEFINITIONS}

    def without(self, schema: dict[str, Any], path: _Path) -> dict[str, Any]:
        """The schema without a keyword or part, if there are still no values; otherwise as it is."""
        shorter = {name: value for name, value in schema.items() if name != path[0]}
        if len(path) > 1:
            shorter = _replaced(schema, path)
        return shorter if self.is_empty(self.alone(shorter)) else schema


def _parts(schema: dict[str, Any]) -> Iterator[_Path]:
    """The paths to the schemas directly within a schema, but for what is only defined there, or negated.

    A keyword whose own value is ``false`` is left out, too: it is told with the keywords beside it.
    """
    for keyword, path, part in children(schema):
        if keyword not in _DEFINITIONS and keyword != "not" and (len(path) > 1 or part is not False):
            yield path


def _replaced(schema: Any, path: _Path) -> Any:
    """A schema in which the part at a path asks nothing."""
    if not path:
        return {}
    copy = list(schema) if isinstance(schema, list) else dict(schema)
    key = _key(copy, path[0])
    copy[key] = _replaced(copy[key], path[1:])
    return copy


def _key(holder: Any, token: str) -> Any:
    """The index or the name that a token of a path stands for."""
    return int(token) if isinstance(holder, list) else token


# ---------------------------------------------------------------------- sentences
def _sentence(core: Any) -> str:
    """What contradicts in a schema of which every keyword is needed for that."""
    if core is False:
        return "false allows no value"
    if not isinstance(core, dict):
        return ""
    said = _of_bounds(core) or _of_constants(core) or _of_members(core) or _of_pattern(core)
    if said:
        return said
    asked = [name for name, value in core.items() if name != "allOf"]
    branches = [(index, part) for index, part in enumerate(core.get("allOf", ())) if part not in (True, {})]
    merged = dict(core)
    merged.pop("allOf", None)
    for _, part in branches:
        if not isinstance(part, dict) or merged.keys() & part.keys():
            break
        merged |= part
    else:
        if branches and (said := _of_bounds(merged) or _of_constants(merged) or _of_members(merged)):
            return said
    asked += [f"allOf/{index}" for index, _ in branches]
    if len(asked) == 1:
        return f"{asked[0]} allows no value"
    return f"{', '.join(asked[:-1])} and {asked[-1]} contradict each other" if asked else ""


def _of_bounds(core: dict[str, Any]) -> str:
    for low, high in _BOUNDS:
        least, most = core.get(low), core.get(high)
        if not isinstance(least, int | float) or not isinstance(most, int | float):
            continue
        if least > most:
            return f"{low} ({least}) is greater than {high} ({most})"
        if least == most and "exclusive" in low + high:
            return f"no number is within {low} ({least}) and {high} ({most})"
    return ""


def _of_constants(core: dict[str, Any]) -> str:
    keyword = next((name for name in ("enum", "const") if name in core), None)
    others = [name for name in core if name != keyword]
    if keyword is None:
        return ""
    none = "none of its enum is" if keyword == "enum" else "its const is not"
    if core.get("enum") == []:
        return "its enum is empty"
    if others == ["type"] and isinstance(core["type"], str):
        kind = core["type"]
        return f"{none} null" if kind == "null" else f"{none} {'an' if kind[0] in 'aeio' else 'a'} {kind}"
    if not others:
        return ""
    return f"{'none of its enum satisfies' if keyword == 'enum' else 'its const fails'} {' and '.join(others)}"


def _of_members(core: dict[str, Any]) -> str:
    required = core.get("required")
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    most = core.get("maxProperties")
    if isinstance(most, int) and len(set(names)) > most:
        return f"{len(set(names))} properties are required, and maxProperties is {most}"
    if names and core.get("additionalProperties") is False:
        declared = core.get("properties", {})
        undeclared = [name for name in names if name not in declared]
        if undeclared and "patternProperties" not in core:
            return f"required property {undeclared[0]!r}: additionalProperties forbids it"
    return ""


def _of_pattern(core: dict[str, Any]) -> str:
    """Why no string matches a pattern, where the pattern alone is at fault."""
    if core.keys() != {"type", "pattern"} or core["type"] != "string":
        return ""
    parser = parser_of(core["pattern"], 0, "ecma262")
    return contradiction_of_regex(parser, "no string matches the pattern", anywhere=True).message
