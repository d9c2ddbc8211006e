"""Turns with tools: what a stream shows of them."""

from __future__ import annotations

from typing import Literal

import pytest

import grammarspec as gs
from grammarspec.models.turns import ToolTurn, VisibleText
from grammarspec.tools.formats import FORMATS


@gs.tool
def weather(city: Literal["Oslo", "Madrid"]) -> str:
    return city


ANSWER = gs.json_schema({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
CALL = '{"name": "weather", "arguments": {"city": "Oslo"}}'


def shown(said: str, answer: gs.Grammar[object], written: str, choice: str = "auto") -> list[str]:
    """What is shown of a text that comes byte by byte."""
    turn = ToolTurn(answer, (weather,), (weather,), FORMATS[written], choice, True, gs.Vocabulary.bytes(), False)
    assert turn.grammar.matches(said)
    show = VisibleText(turn, lambda piece: piece)
    return [piece for piece in map(show, said) if piece]


@pytest.mark.parametrize(
    ("said", "written"), [(CALL, "json"), (f"{CALL}\n{CALL}", "json"), (f"<tool_call>\n{CALL}\n</tool_call>", "hermes")]
)
@pytest.mark.parametrize("answer", [ANSWER, gs.text()])
def test_calls_are_not_shown(said: str, written: str, answer: gs.Grammar[object]) -> None:
    for choice in ("auto", "required"):
        assert shown(said, answer, written, choice) == []


def test_answers_are_shown_when_they_can_be_no_calls() -> None:
    assert shown('{"name": "west"}', ANSWER, "json") == ['{"name": "wes', "t", '"', "}"]
    assert shown('{"name": "w"}', ANSWER, "hermes") == list('{"name": "w"}')
    assert shown(CALL[:-1] + "}", ANSWER, "json", "none") == list(CALL)
    assert shown("west", gs.text(), "json") == list("west")


def test_prompts_get_no_empty_system_message() -> None:
    untold = ToolTurn(ANSWER, (weather,), (weather,), FORMATS["hermes"], "auto", True, gs.Vocabulary.bytes(), False)
    assert untold.messages("Who?", None) == [{"role": "user", "content": "Who?"}]
    told = ToolTurn(ANSWER, (weather,), (weather,), FORMATS["json"], "auto", True, gs.Vocabulary.bytes(), False)
    assert [message["role"] for message in told.messages("Who?", None)] == ["system", "user"]
