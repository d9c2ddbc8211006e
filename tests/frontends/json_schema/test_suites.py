"""The official JSON Schema test suite, every draft of it, and the development schemas of MaskBench.

How many verdicts are right is kept in tests/ratchet.json and may only rise. In the suite, where a valid instance is not
taken with its members in their declared order, other orders of them are tried.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from referencing import Registry, Resource
from referencing.jsonschema import specification_with

import grammarspec as gs
from tests import data, fetch_suite, ratchet
from tests.frontends.json_schema.texts import BYTES, dumps, orders

pytestmark = pytest.mark.suite

DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema",
    "draft6": "http://json-schema.org/draft-06/schema",
    "draft7": "http://json-schema.org/draft-07/schema",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


@pytest.fixture(scope="session")
def suite() -> Path:
    if not fetch_suite.DIRECTORY.is_dir():
        pytest.skip("python -m tests.fetch_suite fetches the suite")
    return fetch_suite.DIRECTORY


def _registry(remotes: Path, draft: str) -> Registry[Any]:
    from jsonschema_specifications import REGISTRY

    found = []
    for path in sorted(remotes.rglob("*.json")):
        uri = "http://localhost:1234/" + path.relative_to(remotes).as_posix()
        contents = json.loads(path.read_text(encoding="utf-8"))
        found.append((uri, Resource.from_contents(contents, default_specification=specification_with(DRAFTS[draft]))))
    return REGISTRY.with_resources(found)


def _groups(base: Path, part: str) -> Iterator[tuple[str, dict[str, Any]]]:
    optional = base / "optional"
    for path in sorted((base if part == "required" else optional).rglob("*.json")):
        if (part == "optional") == path.is_relative_to(optional):
            name = path.relative_to(base if part == "required" else optional).as_posix()
            for group in json.loads(path.read_text(encoding="utf-8")):
                yield name, group


def _accepts(constraint: gs.Constraint, value: Any) -> bool:
    data = dumps(value).encode()
    matcher = constraint.matcher()
    return matcher.accept_tokens(list(data)) == len(data) and matcher.is_accepting


def _in_some_order(constraint: gs.Constraint, value: Any) -> bool:
    return any(_accepts(constraint, order) for _, order in zip(range(200), orders(value), strict=False))


@pytest.mark.parametrize("part", ["required", "optional"])
@pytest.mark.parametrize("draft", DRAFTS)
def test_official_suite(draft: str, part: str, suite: Path, pytestconfig: pytest.Config) -> None:
    registry = _registry(suite / "remotes", draft)
    right, refused, wrong = 0, 0, []
    for name, group in _groups(suite / "tests" / draft, part):
        if part == "optional" and name == "content.json":
            continue  # asserts contentMediaType, which later drafts made an annotation
        mode: Any = "assert" if name.startswith("format") and part == "optional" else "annotation"
        constraint = None
        try:
            grammar = gs.json_schema(group["schema"], dialect=draft, registry=registry, format=mode)
            constraint = gs.compile(grammar, BYTES)
        except gs.Unsatisfiable:
            pass
        except gs.GrammarError:
            refused += len(group["tests"])
            continue
        for test in group["tests"]:
            value, valid = test["data"], test["valid"]
            if constraint is None:
                good = not valid
            else:
                good = _in_some_order(constraint, value) if valid else not _accepts(constraint, value)
            right += good
            if not good and not _narrowed(name, test):
                wrong.append((name, group["description"], test["description"]))
    print(f"{right} right, {refused} of schemas that are refused, {len(wrong)} wrong")
    assert wrong == []
    ratchet.check(pytestconfig, f"official suite, {draft}, {part}", {"right": right})


def _narrowed(name: str, test: dict[str, Any]) -> bool:
    """Valid, but outside the documented narrowings: of formats, and large multiples in scientific notation."""
    value = test["data"]
    return test["valid"] and (
        (name in ("format/hostname.json", "format/idn-hostname.json") and "xn--" in value)
        or (name == "format/idn-hostname.json" and len(value) > 40)  # Punycode that only just fits
        or (name == "format/idn-email.json" and "\u0301" in value)  # not NFC: no U-label of RFC 5890
        or (name == "format/ecmascript-regex.json" and "\\k" in value)
        or (name == "float-overflow.json" and value == 1e308)
    )


FAMILIES = (
    "BFCL", "Github_easy", "Github_hard", "Github_medium", "Github_trivial", "Github_ultra", "Glaiveai2K",
    "Handwritten", "JME", "JsonSchemaStore", "Kubernetes", "MCPspec", "Snowplow", "Synthesized", "WashingtonPost",
)  # fmt: skip
"""What the names of MaskBench's files begin with."""


@pytest.fixture(scope="session")
def maskbench(pytestconfig: pytest.Config) -> list[Path]:
    return sorted(data.folder(pytestconfig, "maskbench").glob("*.json"))


def test_development_schemas_are_of_known_families(maskbench: list[Path]) -> None:
    assert [path.name for path in maskbench if not path.name.startswith(FAMILIES)] == []


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("family", FAMILIES)
def test_development_schemas(
    family: str, order: Literal["declared", "any"], maskbench: list[Path], pytestconfig: pytest.Config
) -> None:
    """No invalid instance is accepted; how many schemas compile, and how many valid instances are accepted, is kept."""
    counts = {"compiled": 0, "accepted": 0, "rejected": 0}
    leaks = []
    for path in maskbench:
        if not path.name.startswith(family):
            continue
        case = json.loads(path.read_text(encoding="utf-8"))
        try:
            constraint = gs.compile(gs.json_schema(case["schema"], property_order=order), BYTES)
        except gs.GrammarError:
            continue
        counts["compiled"] += 1
        for test in case["tests"]:
            if not _accepts(constraint, test["data"]):
                counts["rejected"] += not test["valid"]
            elif test["valid"]:
                counts["accepted"] += 1
            else:
                leaks.append((path.name, test["data"]))
    assert leaks == []
    ratchet.check(pytestconfig, f"development schemas, {family}, {order} order", counts)
