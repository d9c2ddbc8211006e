"""Prompts: messages checked with their places, rendered by chat templates of several kinds, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import grammarspec as gs
from grammarspec.models.chat import encode, messages_of, render

pytest.importorskip("transformers")


@pytest.fixture
def tokenizer(tiny_model_directory: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(tiny_model_directory)


def test_messages() -> None:
    assert messages_of("a", "b") == [{"role": "system", "content": "b"}, {"role": "user", "content": "a"}]
    parts = [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}, "c"]
    assert messages_of([{"role": "user", "content": parts}]) == [{"role": "user", "content": "abc"}]
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    assert messages_of([call]) == [call]


@pytest.mark.parametrize(
    ("prompt", "error", "said"),
    [
        ("", ValueError, "the prompt is empty"),
        ([], ValueError, "the prompt has no messages"),
        (None, TypeError, "not NoneType"),
        (7, TypeError, "not int"),
        (b"a", TypeError, "not bytes"),
        ({"role": "user", "content": "a"}, TypeError, "not dict"),
        (["a"], ValueError, "of type str\n  at #/0$"),
        ([{"content": "a"}], ValueError, "must have a role.*\n  at #/0/role$"),
        ([{"role": 1, "content": "a"}], ValueError, "at #/0/role$"),
        ([{"role": "user", "content": "a"}, {"role": "user"}], ValueError, "has none\n  at #/1/content$"),
        ([{"role": "user", "content": 3}], ValueError, "one of type int\n  at #/0/content$"),
        ([{"role": "user", "content": [3]}], ValueError, "of type int\n  at #/0/content/0$"),
        ([{"role": "user", "content": [{"type": "text"}]}], ValueError, "must have a text\n  at #/0/content/0/text$"),
    ],
)
def test_malformed_messages(prompt: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        messages_of(prompt)


@pytest.mark.parametrize(
    "kind", ["image", "image_url", "input_image", "audio", "input_audio", "video", "file", "refusal", None]
)
def test_what_is_no_text_is_refused(kind: Any) -> None:
    text = {"type": "text", "text": "What is this?"}
    with pytest.raises(gs.UnsupportedFeature, match="only texts are read") as error:
        messages_of([{"role": "user", "content": "a"}, {"role": "user", "content": [text, {"type": kind}]}])
    assert repr(kind) in error.value.message
    assert error.value.where == "#/1/content/1"


def test_system_messages(tokenizer: Any) -> None:
    assert render(tokenizer, "a", "b") == "b<turn>a<turn>"
    with pytest.raises(TypeError, match="system must be a text, not list"):
        render(tokenizer, "a", ["b"])  # type: ignore[arg-type]
    tokenizer.chat_template = "{% for m in messages if m.role == 'user' %}{{ m.content }}<turn>{% endfor %}"
    assert render(tokenizer, "a") == "a<turn>"
    with pytest.raises(gs.UnsupportedFeature, match="leaves the system message out"):
        render(tokenizer, "a", "b")
    tokenizer.chat_template = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    with pytest.raises(ValueError, match="refuses these messages: no system role\n  hint: put what") as error:
        render(tokenizer, "a", "b")
    assert not isinstance(error.value, gs.GrammarError)


def test_variables_of_the_template(tokenizer: Any) -> None:
    tokenizer.chat_template = "{{ effort or 'none' }}: {{ messages[0].content }}"
    assert render(tokenizer, "a") == "none: a"
    assert render(tokenizer, "a", variables={"effort": "low"}) == "low: a"


def test_without_a_template(tokenizer: Any) -> None:
    tokenizer.chat_template = None
    assert render(tokenizer, "a", "b") == "b\n\na"
    assert encode(tokenizer, "ab") == tokenizer.encode("ab")
    with pytest.raises(ValueError, match="no chat template: the prompt must be a text"):
        render(tokenizer, [{"role": "user", "content": "a"}])
    with pytest.raises(ValueError, match="no chat template that variables"):
        render(tokenizer, "a", variables={"effort": "low"})
