"""How whitespace will be spelled, after how it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from grammarspec.decoding.proposers.whitespace import WHITESPACE, WhitespaceStyle  # noqa: E402


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


STRINGS = st.text(alphabet=st.sampled_from('ab {}[](),:"\\\n\té漢'), max_size=6)
SCALARS = st.none() | st.booleans() | st.integers(-100, 100) | st.floats(-1, 1) | STRINGS
VALUES = st.recursive(
    SCALARS,
    lambda values: st.lists(values, min_size=1, max_size=3) | st.dictionaries(STRINGS, values, min_size=1, max_size=3),
    max_leaves=10,
)
STYLES: list[dict[str, Any]] = [
    {"indent": 1},
    {"indent": 2},
    {"indent": 4},
    {"indent": "\t"},
    {"indent": 0},
    {"separators": (",", ":")},
    {"separators": (", ", ": ")},
    {"separators": (" , ", " : ")},
    {"indent": 2, "separators": (",", ":")},
]


def solid_bytes(text: bytes) -> Iterator[tuple[int, int]]:
    """Where the whitespace before a value, a key or a mark begins, and where itself does."""
    in_string = escaped = False
    begin = None
    inside = False  # a number or a name
    for place, byte in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif byte == ord("\\"):
                escaped = True
            elif byte == ord('"'):
                in_string = False
            continue
        if byte in WHITESPACE:
            begin = place if begin is None else begin
            inside = False
            continue
        mark = byte in b'{}[],:"'
        if mark or not inside:
            yield place if begin is None else begin, place
        in_string, inside, begin = byte == ord('"'), not mark, None


@pytest.mark.parametrize("style", STYLES, ids=str)
@given(value=VALUES)
def test_spelling_predicts_what_is_spelled_as_before(style: dict[str, Any], value: Any) -> None:
    """The first lines of the text are those of a small value of the same style; all that follows is predicted."""
    first = {"k": [0, 1], "l": {"m": 0, "n": [[2]]}}
    text = json.dumps([first, value], ensure_ascii=False, **style).encode()
    learnt = len(json.dumps([first], ensure_ascii=False, **style).encode().rstrip(b"]").rstrip()) + 1
    spelling = WhitespaceStyle()
    read = 0
    for begin, place in solid_bytes(text):
        for at in range(begin, place + 1):
            spelling.read(text[read:at])
            read = at
            if begin < learnt:
                continue
            # Wherever in the whitespace the text stands, the rest of it is known.
            assert not spelling.in_string
            assert spelling.guess(text[place]) == text[at:place], (text[:at], spelling)
            if text[place] not in b"}],:":
                assert spelling.guess(None) == text[at:place]
    spelling.read(text[read:])
    assert (spelling.depth, spelling.in_string) == (0, False)


def test_spelling_is_compact_if_nothing_is_known() -> None:
    spelling = WhitespaceStyle()
    for byte in b'{"a":[1,2],"b":{"c":"d"}}':
        assert spelling.guess(byte) == b""
        spelling.read(bytes([byte]))


def test_spelling_knows_the_step_from_one_line() -> None:
    """One line is enough for the others, also for those of other depths and for closing brackets."""
    spelling = WhitespaceStyle()
    spelling.read(b'{\n   "a": [')
    assert spelling.guess(None) == b"\n      "
    assert spelling.guess(ord("]")) == b"\n   "
    spelling.read(b"\n      1")
    assert spelling.guess(ord("]")) == b"\n   "
    assert spelling.guess(ord(",")) == b""
    spelling.read(b",")
    assert spelling.guess(None) == b"\n      "
    spelling.read(b"\n    ")
    assert spelling.guess(None) == b"  "
    spelling.read(b"\n")
    assert spelling.guess(None) == b"", "what stands there is no beginning of what is known"
    spelling.read(b"    2\n   ]")
    assert spelling.guess(ord("}")) == b"\n"
    assert spelling.guess(ord(":")) == b""


def test_spelling_follows_the_latest() -> None:
    spelling = WhitespaceStyle()
    spelling.read(b'{"a":1,"b": 2,')
    assert spelling.guess(ord('"')) == b""
    spelling.read(b'  "c"')
    assert spelling.guess(ord(":")) == b""
    spelling.read(b":")
    assert spelling.guess(None) == b" "
    spelling.read(b" 3,")
    assert spelling.guess(ord('"')) == b"  "
    spelling.read(b'\n  "d": 4,')
    assert spelling.guess(ord('"')) == b"\n  "
    spelling.read(b'"e": 5,')
    assert spelling.guess(ord('"')) == b""


@pytest.mark.parametrize("text", ['"}]"', '"\\""', '"\\\\"', '"{[ \\" {["', '"a\\\\\\"b}"', '" , : "', '"é\\u00e9"'])
def test_strings_are_not_read_as_structure(text: str) -> None:
    spelling = WhitespaceStyle()
    spelling.read(b"{\n  ")
    for end in range(1, len(text)):
        part = spelling.copy()
        part.read(text[:end].encode())
        assert part.in_string
        assert part.depth == 1
    spelling.read(text.encode())
    assert (spelling.in_string, spelling.depth, spelling.last, spelling.run) == (False, 1, ord('"'), b"")
    spelling.read(b": 1,")
    assert spelling.guess(ord('"')) == b"\n  "


def test_copies_of_a_spelling_read_on_apart() -> None:
    spelling = WhitespaceStyle()
    spelling.read(b'{\n  "a": ')
    other = spelling.copy()
    other.read(b'[\n    "x')
    assert (other.depth, other.in_string) == (2, True)
    assert (spelling.depth, spelling.in_string, spelling.last, spelling.run) == (1, False, ord(":"), b" ")
    spelling.read(b'1  ,"b"')
    assert other.in_string
    # What one learns the other knows.
    other.read(b'"')
    assert other.guess(ord(",")) == b"  "
