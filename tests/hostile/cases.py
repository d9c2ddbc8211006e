"""The corpus: every grammar of this room by its name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import jsonschema

import grammarspec as gs
from tests.hostile import lark_files, notations, python_types, regexes, schemas

__all__ = ["CASES", "Case"]


@dataclass(frozen=True)
class Case:
    """A declaration that was made to hurt.

    Attributes:
        make: calls the front-end.
        begin: a text of the language, or the beginning of one, that the walk starts with.
        judge: what another implementation says of a text of the language; ``None`` if it does not know the declaration.
    """

    make: Callable[[], gs.Grammar]
    begin: str
    judge: Callable[[str], bool | None]


def _schema(name: str) -> Case:
    schema, options = schemas.SCHEMAS[name], schemas.OPTIONS.get(name, {})
    validator = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema)
    return Case(
        lambda: gs.json_schema(schema, **options),
        schemas.BEGINNINGS.get(name, ""),
        lambda text: None if name in schemas.UNJUDGED else validator.is_valid(json.loads(text)),
    )


def _regex(name: str) -> Case:
    pattern = regexes.REGEXES[name]

    def judge(text: str) -> bool | None:
        try:
            return re.fullmatch(pattern, text) is not None
        except re.error:  # re has no lookbehinds of several widths
            return None

    return Case(lambda: gs.regex(pattern), regexes.BEGINNINGS.get(name, ""), judge)


def _lark(name: str) -> Case:
    import lark

    text, options = lark_files.LARK_FILES[name], dict[str, Any](lark_files.OPTIONS.get(name, {}))
    if "postlex" in options:
        options["postlex"] = getattr(import_module("lark.indenter"), options["postlex"])()

    def judge(found: str) -> bool:
        try:
            lark.Lark(text, **options).parse(found)
        except lark.exceptions.UnexpectedInput:
            return False
        return True

    return Case(lambda: gs.lark(text, **options), lark_files.BEGINNINGS.get(name, ""), judge)


def _gbnf(name: str) -> Case:
    return Case(lambda: gs.gbnf(notations.GBNF[name]), notations.BEGINNINGS.get(name, ""), lambda text: None)


def _llguidance(name: str) -> Case:
    text = notations.LLGUIDANCE[name]
    return Case(lambda: gs.llguidance(text), notations.BEGINNINGS.get(name, ""), lambda text: None)


def _type(name: str) -> Case:
    def make() -> gs.Grammar:
        return gs.grammar(python_types.TYPES[name])

    return Case(make, "", lambda text: make().parse(text) is not None)  # which asks Pydantic


_KINDS: dict[str, tuple[dict[str, Any], Callable[[str], Case]]] = {
    "schema": (schemas.SCHEMAS, _schema),
    "regex": (regexes.REGEXES, _regex),
    "lark": (lark_files.LARK_FILES, _lark),
    "gbnf": (notations.GBNF, _gbnf),
    "llguidance": (notations.LLGUIDANCE, _llguidance),
    "type": (python_types.TYPES, _type),
}

CASES: dict[str, Callable[[], Case]] = {
    f"{kind}: {name}": (lambda make=make, name=name: make(name))
    for kind, (names, make) in _KINDS.items()
    for name in names
}
