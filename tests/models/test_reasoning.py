"""Reasoning before answers: where tokenizers say that it begins and ends, what may be generated, what is read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import grammarspec as gs
from grammarspec.models.reasoning import Markers, Section, Splitter, gap, marker, markers_of, prepare, split
from tests import tiers

pytest.importorskip("transformers")

QWEN = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}<turn>{% endfor %}[assistant]"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
)
"""As Qwen3 has it: the model opens the section itself, or the template leaves an empty one behind it."""
DEEPSEEK = "{% for m in messages %}{{ m.content.split('</think>')[-1] }}<turn>{% endfor %}{{ '<think>\n' }}"
"""As DeepSeek-R1 has it: the section is open."""
THINK = Markers("<think>", "</think>")


@pytest.fixture(scope="module")
def model(tiny_model_directory: Path) -> gs.Model:
    return gs.Model.from_pretrained(tiny_model_directory)


@pytest.fixture
def with_template(model: gs.Model) -> Any:
    plain = model.tokenizer.chat_template

    def change(template: str | None) -> gs.Model:
        model.tokenizer.chat_template = template
        return model

    yield change
    model.tokenizer.chat_template = plain


def test_markers(with_template: Any) -> None:
    model = with_template("{{ messages[0].content }}")
    tokenizer = model.tokenizer
    assert markers_of(tokenizer, model.vocabulary) is None
    assert markers_of(with_template(QWEN).tokenizer, model.vocabulary) == THINK
    with_template("{{ messages[0].content }}[/THINK]")
    assert markers_of(tokenizer, model.vocabulary) == Markers("[THINK]", "[/THINK]")
    tokenizer.response_template = {"fields": {"thinking": {"open": ["<t>", "<u>"], "close": "</t>"}, "content": {}}}
    try:
        assert markers_of(tokenizer, model.vocabulary) == Markers("<t>", "</t>")
        tokenizer.response_template = {"fields": {"thinking": {"open_pattern": "<t>", "close": "</t>"}}}
        assert markers_of(tokenizer, model.vocabulary) == Markers("[THINK]", "[/THINK]")
    finally:
        tokenizer.response_template = None


def test_sections(with_template: Any) -> None:
    def section(template: str, **options: Any) -> tuple[str, Section | None]:
        model = with_template(template)
        return prepare(model.tokenizer, model.vocabulary, "a", **options)

    assert section(QWEN) == ("[user]a<turn>[assistant]", Section(THINK, optional=True))
    assert section(QWEN, reasoning=True, max_chars=9) == ("[user]a<turn>[assistant]", Section(THINK, max_chars=9))
    closed = "[user]a<turn>[assistant]<think>\n\n</think>\n\n"
    assert section(QWEN, reasoning=False) == (closed, None)
    assert section(QWEN, variables={"enable_thinking": False}) == (closed, None)
    with pytest.raises(ValueError, match="leaves no room for reasoning"):
        section(QWEN, variables={"enable_thinking": False}, reasoning=True)
    for reasoning in ("auto", True):
        assert section(DEEPSEEK, reasoning=reasoning) == ("a<turn><think>\n", Section(THINK, begun=True))
    assert section(DEEPSEEK, reasoning=False) == ("a<turn><think>\n\n</think>\n\n", None)
    assert section("{{ messages[0].content }}", reasoning=False) == ("a", None)
    with pytest.raises(gs.UnsupportedFeature, match="not known to reason"):
        section("{{ messages[0].content }}", reasoning=True)
    with pytest.raises(ValueError, match="reasoning must be 'auto', True or False, not 'yes'"):
        with_template(QWEN).run("a", str, reasoning="yes")
    with pytest.raises(ValueError, match="max_reasoning_chars"):
        with_template(QWEN).run("a", str, max_reasoning_chars=-1)


def test_answers_after_reasoning(with_template: Any) -> None:
    number = gs.regex("[0-9]{2}").map(int).named("n")
    sampling = gs.Sampling(temperature=1.0, seed=1, max_tokens=150)
    options: dict[str, Any] = {"sampling": sampling, "max_reasoning_chars": 20}
    model = with_template(QWEN)
    result = model.run("a", number, reasoning=True, **options)
    assert result.reasoning is not None and len(result.reasoning) <= 20
    assert result.text == f"{result.output:02}"
    assert result.captures == {"n": result.output}
    assert result.message == {"role": "assistant", "content": result.text, "reasoning_content": result.reasoning}
    assert result.usage.completion_tokens - result.usage.reasoning_tokens in (3, 4, 5), "digits, an end, two line ends"
    plain = model.run("a", number, reasoning=False, **options)
    assert (plain.reasoning, plain.usage.reasoning_tokens) == (None, 0)
    assert plain.message == {"role": "assistant", "content": plain.text}
    auto = model.run("a", number, **options)
    assert auto.text == f"{auto.output:02}"
    begun = with_template(DEEPSEEK).run("a", number, **options)
    assert begun.reasoning is not None and begun.text == f"{begun.output:02}"


def test_budgets_close_the_reasoning(with_template: Any) -> None:
    model = with_template(DEEPSEEK)
    sampling = gs.Sampling(max_tokens=40, on_limit="close", temperature=1.0, seed=2)
    result = model.run("a", Literal["yes", "no"], sampling=sampling)
    assert result.output in ("yes", "no")
    assert result.finish_reason == "closed"
    assert result.reasoning is not None
    with pytest.raises(gs.Truncated):
        model.run("a", Literal["yes", "no"], sampling=gs.Sampling(max_tokens=40, temperature=1.0, seed=2))


@pytest.mark.combined
@pytest.mark.parametrize("template", [QWEN, DEEPSEEK])
@pytest.mark.parametrize("type", [Literal["yes", "no"], str, gs.literal("\nx")])
@pytest.mark.property
def test_streams_leave_the_reasoning_out(with_template: Any, template: str, type: Any) -> None:
    model = with_template(template)
    for seed in range(tiers.draws(4, least=2)):
        sampling = gs.Sampling(max_tokens=60, on_limit="close", temperature=1.0, seed=seed)
        stream = model.stream("a", type, sampling=sampling, max_reasoning_chars=15)
        said = "".join(stream)
        assert said == stream.result.text
        result = asyncio.run(model.astream("a", type, sampling=sampling, max_reasoning_chars=15).aresult())
        assert result.text == said == model("a", type, sampling=sampling, max_reasoning_chars=15)


@given(st.text("<think>/ a\n", max_size=30), st.text("a\n<", max_size=6), st.data())
def test_texts_are_told_apart_piece_by_piece(inside: str, answer: str, data: st.DataObject) -> None:
    assume("</think>" not in inside)
    begun, optional = data.draw(st.sampled_from([(False, False), (False, True), (True, False)]))
    section = Section(THINK, begun=begun, optional=optional)
    text = f"{'' if begun else '<think>'}{inside}</think>\n\n{answer}"
    assert split(section, 2, text) == (inside.strip(), answer)
    splitter = Splitter(section, 2)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "".join(map(splitter.feed, pieces)) == answer


def test_texts_without_a_section() -> None:
    section = Section(THINK, optional=True)
    for text in ("", "\n\nyes", "<thin", "yes</think>", "<think>yes"):
        assert split(section, 2, text) == (None, text)
    assert split(Section(THINK), 2, "<think>yes") == ("yes", None)


def test_line_ends_before_answers() -> None:
    assert gap(gs.regex("[0-9]+"), freely=False) == gap(gs.text(), freely=True) == 2
    assert gap(gs.text(), freely=False) == gap(gs.literal("\nx"), freely=False) == 0


def test_markers_in_the_vocabulary() -> None:
    texts = [bytes([value]) for value in range(256)]
    vocabulary = gs.Vocabulary.from_tokens(texts, [256], special_tokens={"<|channel>": 257, "</think>": 258})
    assert marker(gs.Vocabulary.bytes(), "</think>") == gs.literal("</think>")
    assert marker(vocabulary, "<think>") == gs.literal("<think>")
    assert marker(vocabulary, "</think>") == gs.special("</think>")
    assert marker(vocabulary, "<|channel>thought\n") == gs.special("<|channel>") + "thought\n"
    assert Section(THINK).count([1, 2, 258, 3], vocabulary) == 3
