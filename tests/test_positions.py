"""Places in JSON texts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammarspec.positions import excerpt, locate, where
from tests.endings import ends

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('a"\\/~{[,:\n é'), max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("a\"/~0{,:'", max_size=3), inner, max_size=3),
    max_leaves=8,
)


def _places(value: Any, path: str = "#") -> list[tuple[str, Any, Any]]:
    """Every pointer, with the name or index and the value there."""
    found: list[tuple[str, Any, Any]] = []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        below = f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
        found += [(below, key, child), *_places(child, below)]
    return found


@given(VALUES, st.sampled_from([None, 0, 3]), st.booleans())
def test_every_place_is_found(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    starts = []
    for pointer, key, child in _places(value):
        position = locate(text, pointer)
        assert position is not None
        token = text[position.start : position.end]
        if isinstance(key, str):
            assert json.loads(token, strict=False) == key
        else:
            assert token[0] in "[{" if isinstance(child, list | dict) else json.loads(token, strict=False) == child
        assert text.splitlines(keepends=True)[position.line - 1][position.column - 1 :].startswith(token[:1])
        starts.append(position.start)
    assert starts == sorted(set(starts))  # each its own, in the order of the text


@pytest.mark.parametrize(
    ("text", "pointer", "start"),
    [
        ('{"a": 1}', "#", 0),
        ('{"a": 1}', "#/b", None),
        ('{"a": 1}', "#/a/b", None),
        ('{"a": 1}', "http://x/y#/a", None),
        ('[{"a": 1}]', "#/0/a", 2),
        ('{"a": {"b": 1}, "a": {"b": 2}}', "#/a/b", 22),
        ('{"a": {"b": 1}, "a": 3}', "#/a/b", None),
        ('{"\\u0061": 1}', "#/a", 1),
        ('{"": {"": 1}}', "#//", 6),
    ],
)
def test_special_places(text: str, pointer: str, start: int | None) -> None:
    position = locate(text, pointer)
    assert (None if position is None else position.start) == start


def test_deep_and_long_texts() -> None:
    deep = '{"a":' * 50_000 + "[]" + "}" * 50_000
    with ends():
        position = locate(deep, "#" + "/a" * 50_000)
        assert position is not None and position.start == 5 * 49_999 + 1
        assert len(excerpt(deep, position)) < 300


def test_excerpts() -> None:
    text = '{\n\t"a": {"type": 1}\r\n}'
    position = locate(text, "#/a/type")
    assert position is not None
    assert position[:2] == (2, 8)
    assert excerpt(text, position) == '    \t"a": {"type": 1}\n    \t      ^^^^^^'


def test_where_of_an_offset() -> None:
    assert where("a\nb\x07\td", 5) == "line 2, column 4\n    b\N{REPLACEMENT CHARACTER}\td\n      \t^"
    assert where("", 0) == "line 1, column 1\n    \n    ^"
    assert where("ab\r\nc", 2) == "line 1, column 3\n    ab\n      ^"
    head, tail = "x" * 300, "y" * 300
    assert where(head + "(" + tail, 300) == f"line 1, column 301\n    ...{'x' * 50}({'y' * 49}...\n    {' ' * 53}^"
