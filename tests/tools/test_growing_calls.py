"""Calls that are read while they are written: the same calls as in the whole text, however the text is cut."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammarspec.tools.formats import FORMATS, CallPiece, GrowingCalls
from grammarspec.tools.tool import Tool
from tests.counting import examples
from tests.tools.declared import tools
from tests.tools.test_tool_formats import WRITTEN

READ = ["hermes", "llama-json", "json", "mistral-v2", "mistral-v11", "mistral-v13", "deepseek-v3", "deepseek-v3.1",
        "phi-4-mini", "granite-3"]  # fmt: skip


def joined(pieces: list[CallPiece]) -> list[list[Any]]:
    """The calls of pieces: name, id, arguments."""
    calls: list[list[Any]] = []
    for piece in pieces:
        if piece.name is not None:
            assert piece.index == len(calls)
            calls.append([piece.name, piece.id, ""])
        assert piece.index == len(calls) - 1
        calls[-1][2] += piece.arguments
    return calls


def read(name: str, text: str, cuts: list[int], **options: Any) -> list[list[Any]]:
    reader = GrowingCalls(FORMATS[name], **{"only_calls": False, "answered": False, **options})
    bounds = [0, *sorted(cuts), len(text)]
    return joined([one for a, b in itertools.pairwise(bounds) for one in reader.feed(text[a:b])])


@pytest.mark.parametrize("name", READ)
@examples(40)
@given(tools=tools(), seed=st.integers(0, 2**32), choice=st.sampled_from(["auto", "required"]))
def test_they_are_those_of_the_whole_text(name: str, tools: list[Tool[..., Any]], seed: int, choice: str) -> None:
    grammar = FORMATS[name].grammar(tools, choice=choice)
    text = grammar.sample(seed)
    draw = random.Random(seed)
    cuts = [draw.randrange(len(text) + 1) for _ in range(draw.randrange(20))] if text else []
    expected = grammar.parse(text).calls
    for at in (cuts, list(range(len(text)))):
        found = read(name, text, at, only_calls=choice == "required")
        assert [(name, json.loads(arguments)) for name, _, arguments in found] == [
            (call.name, call.arguments) for call in expected
        ]
        if FORMATS[name].id_length and "$id" in FORMATS[name].call:
            assert [own for _, own, _ in found] == [call.id for call in expected]


@pytest.mark.parametrize("name", READ)
def test_pieces_come_as_soon_as_they_are_written(name: str) -> None:
    text = WRITTEN[name]
    reader = GrowingCalls(FORMATS[name], only_calls=False, answered=False)
    at = text.index("{", text.index("get_weather")) if "get_weather" in text else 0
    before = [one for letter in text[:at] for one in reader.feed(letter)]
    assert [one.name for one in before] == ["get_weather"]
    arguments = text[at : text.index("}", at) + 1]
    for letter in arguments:
        assert [one.arguments for one in reader.feed(letter)] == [letter]
    assert [one for letter in text[at + len(arguments) :] for one in reader.feed(letter)] == []


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in READ])
def test_other_formats_have_no_pieces(name: str) -> None:
    assert read(name, WRITTEN[name], list(range(len(WRITTEN[name])))) == []


def test_text_that_is_no_call() -> None:
    assert read("llama-json", '<b>{"name": "get_weather", "parameters": {}}</b>', list(range(40))) == []
    assert read("json", 'Say {"name": "get_weather", "arguments": {}}', list(range(40))) == []
    assert read("hermes", "a < b, <tool, <tool_cal", list(range(20))) == []
    assert read("hermes", WRITTEN["hermes"], [], answered=True) == []  # an answer may be written like a call
    assert read("json", WRITTEN["json"], [], answered=True, only_calls=True) != []


def test_arguments_that_hold_what_is_around_them() -> None:
    """Quotes, backslashes, brackets and the texts of the format within strings."""
    value = {"city": 'a"b\\', "more": ["}\n</tool_call>", {"x": '\\"{[}]'}], "é": "\ud83d\ude42"}
    written = json.dumps(value)
    call = f'<tool_call>\n{{"name": "ping", "arguments": {written}}}\n</tool_call>'
    text = f"Well.\n{call}\n{call}"
    for cuts in ([], list(range(len(text))), list(range(0, len(text), 3))):
        assert read("hermes", text, cuts) == [["ping", None, written]] * 2


def test_long_free_text_before_calls_takes_linear_time() -> None:
    reader = GrowingCalls(FORMATS["hermes"], only_calls=False, answered=False)
    for _ in range(20_000):
        assert reader.feed("word ") == []
        assert len(reader._buffer) < 20
    assert [one.name for one in reader.feed(WRITTEN["hermes"])][:1] == ["get_weather"]
