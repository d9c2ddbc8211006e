"""Reasoning: a section of free text between markers, before the constrained answer.

The markers are those of the tokenizer's response template (transformers), else known ones that occur in its chat
template or vocabulary. The chat template may have opened the section already (DeepSeek-R1), or closed it (Qwen3 with
``enable_thinking=False``). A prompt goes in, its text and :class:`Section` come out; a :class:`Splitter` separates the
reasoning in a generated text from the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from grammarspec.errors import Unsatisfiable, UnsupportedFeature
from grammarspec.grammars.expressions import Grammar, literal, special, text
from grammarspec.models.chat import Prompt, chat_template, render
from grammarspec.models.options import Reasoning
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Markers", "Section", "Splitter", "gap", "marker", "markers_of", "prepare", "split"]

_KNOWN = (
    ("<think>", "</think>"),  # DeepSeek-R1, Qwen3, SmolLM3, GLM-4.5 and many others
    ("[THINK]", "[/THINK]"),  # Magistral
    ("<seed:think>", "</seed:think>"),  # Seed-OSS
    ("<|START_THINKING|>", "<|END_THINKING|>"),  # Command A Reasoning
)
_FIELDS = ("reasoning_content", "thinking", "reasoning")  # names of the section in response templates
_SWITCHES = ("enable_thinking", "thinking")  # variables of chat templates that turn it on and off
_GAP = 2  # line ends that models write between the section and the answer


@dataclass(frozen=True, slots=True)
class Markers:
    """The texts that a section begins and ends with; special tokens by their names."""

    begin: str
    end: str


@dataclass(frozen=True, slots=True)
class Section:
    """The reasoning before one answer.

    Attributes:
        markers: what it begins and ends with.
        begun: whether the prompt ends with the marker of its beginning.
        optional: whether the model may answer without it.
        max_chars: the greatest number of code points between the markers, or ``None``.
    """

    markers: Markers
    begun: bool = False
    optional: bool = False
    max_chars: int | None = None

    def before(self, answer: Grammar[Any], gap: int, vocabulary: Vocabulary) -> Grammar[str]:
        """The grammar of the section, at most ``gap`` line ends, and the answer.

        Args:
            answer: the grammar of the answer.
            gap: see :func:`gap`.
            vocabulary: markers that are special tokens of it are written as such.
        """
        inside = text(until=self.markers.end, max_chars=self.max_chars)
        section = inside + marker(vocabulary, self.markers.end) + literal("\n").repeat(0, gap)
        if not self.begun:
            section = marker(vocabulary, self.markers.begin) + section
        return (section.optional() if self.optional else section) + answer

    def count(self, tokens: Sequence[int], vocabulary: Vocabulary) -> int:
        """The number of tokens of the section, its markers included.

        Args:
            tokens: a text that begins with the section.
            vocabulary: the tokens of the model.
        """
        end = vocabulary.special_tokens.get(self.markers.end)
        if end in tokens:
            return tokens.index(end) + 1
        read = bytearray()
        for number, token in enumerate(tokens, 1):
            read += vocabulary.token_bytes(token) or b""
            if self.markers.end.encode() in read:
                return number
        return 0


def gap(answer: Grammar[Any], *, freely: bool) -> int:
    """How many line ends between a section and an answer belong to neither of them.

    Args:
        answer: the grammar of the answer.
        freely: whether the answer begins with free text; then line ends before it are never counted as its own.

    Returns:
        0 if an answer may begin with a line end of its own, else 2.
    """
    try:
        may_begin, _ = answer.node.byte_constraint.matcher().next_bytes()
    except Unsatisfiable:  # compiling it says why
        return _GAP
    return 0 if b"\n" in may_begin and not freely else _GAP


class Splitter:
    """Splits a growing text into its reasoning and its answer.

    Args:
        section: the section before the answer, if any.
        gap: see :func:`gap`.

    Attributes:
        reasoning: the text of the section so far; ``None`` if there is no section.
        whole: whether the section is over, or known to be absent: what follows is the answer.
    """

    def __init__(self, section: Section | None, gap: int) -> None:
        self._section = section
        self._rest = ""
        self._gap = 0 if section is None else gap
        self._opened = section is not None and section.begun
        self.whole = section is None
        self.reasoning: str | None = "" if self._opened else None

    def feed(self, piece: str, *, last: bool = False) -> str:
        """Take the next piece of the text.

        Args:
            piece: the piece.
            last: whether it is the last one.

        Returns:
            what of it, and of what was held back before, belongs to the answer.
        """
        self._rest += piece
        if self._section is not None and not self.whole:
            self._read_section(self._section.markers, last)
        if not self.whole:
            return ""
        while self._gap and self._rest.startswith("\n"):
            self._rest, self._gap = self._rest[1:], self._gap - 1
        answer, self._rest = self._rest, ""
        if answer:
            self._gap = 0
        return answer

    def _read_section(self, markers: Markers, last: bool) -> None:
        """Read what is held back as the section, or find that there is none."""
        if not self._opened:
            if not last and markers.begin.startswith(self._rest):
                return
            if not self._rest.startswith(markers.begin):
                self.whole, self._gap = True, 0
                return
            self._rest, self._opened = self._rest[len(markers.begin) :], True
        inside, end, rest = self._rest.partition(markers.end)
        self.reasoning = inside
        if end:
            self._rest, self.whole = rest, True


def split(section: Section | None, gap: int, text: str, *, ended: bool = True) -> tuple[str | None, str | None]:
    """Split a finished text.

    Args:
        section, gap: as for :class:`Splitter`.
        text: the text.
        ended: whether the model has ended it; if not, a section that is open at its end was cut short.

    Returns:
        the reasoning and the answer; ``None`` for a part that the text does not have.
    """
    splitter = Splitter(section, gap)
    found = splitter.feed(text, last=True)
    if not splitter.whole and section is not None and section.optional and ended:
        return None, text  # free text that begins like a section
    reasoning = None if splitter.reasoning is None else splitter.reasoning.strip()
    return reasoning, found if splitter.whole else None


def marker(vocabulary: Vocabulary, name: str) -> Grammar[str]:
    """The grammar of a marker: names of special tokens of the vocabulary are these tokens, the rest is text."""
    names = sorted((token for token in vocabulary.special_tokens if token in name), key=len, reverse=True)
    if not names:
        return literal(name)
    parts = [part for part in re.split(f"({'|'.join(map(re.escape, names))})", name) if part]
    return reduce(lambda a, b: a + b, (special(part) if part in names else literal(part) for part in parts))


def markers_of(tokenizer: PreTrainedTokenizerBase, vocabulary: Vocabulary) -> Markers | None:
    """The markers of a model's reasoning, or ``None`` if it is not known to reason."""
    declared = getattr(tokenizer, "response_template", None) or {}
    fields = declared.get("fields", {})
    field = next((fields[name] for name in _FIELDS if name in fields), None)
    if field is not None:
        begin, end = (_first(field.get(name)) for name in ("open", "close"))
        if begin is not None and end is not None:
            return Markers(begin, end)
    template = chat_template(tokenizer)
    for begin, end in _KNOWN:
        if end in template or end in vocabulary.special_tokens:
            return Markers(begin, end)
    return None


def _first(texts: Any) -> str | None:
    """The text in a field of a response template, the first if there are several; ``None`` for a pattern."""
    found = texts[0] if isinstance(texts, list) and texts else texts
    return found if isinstance(found, str) else None


def prepare(
    tokenizer: PreTrainedTokenizerBase,
    vocabulary: Vocabulary,
    prompt: Prompt,
    *,
    system: str | None = None,
    variables: Mapping[str, Any] | None = None,
    reasoning: Reasoning = "auto",
    max_chars: int | None = None,
    apart: bool = True,
) -> tuple[str, Section | None]:
    """Render a prompt, and find the section of reasoning before its answer.

    Args:
        tokenizer, vocabulary: the model's.
        prompt, system, variables: as for :func:`grammarspec.models.chat.render`.
        reasoning, max_chars: the options ``reasoning`` and ``max_reasoning_chars`` of a call. ``reasoning`` sets the
            variable ``enable_thinking`` or ``thinking`` of chat templates that have one; with ``False``, a section that
            the chat template opens nevertheless is closed.
        apart: whether the section comes before the answer. If not, the grammar of the answer has a place for it.

    Returns:
        the text of the prompt, and the section, or ``None`` if there is none.

    Raises:
        UnsupportedFeature: ``reasoning`` is ``True``, but how the model writes it is not known; or the grammar of the
            answer has the place for it, and an option demands or bounds it.
        PromptError, TypeError, ValueError: as :func:`grammarspec.models.chat.render`; or the chat template has closed
            the section that ``reasoning=True`` asks for.
    """
    template = chat_template(tokenizer)
    if reasoning != "auto":
        switches = {name: reasoning for name in _SWITCHES if re.search(rf"\b{name}\b", template)}
        variables = {**switches, **(variables or {})}
    written = render(tokenizer, prompt, system, variables)
    if not apart:
        option = f"{reasoning=}" if reasoning != "auto" else "max_reasoning_chars" if max_chars is not None else ""
        if option:
            hint = 'it may know other options, such as template={"reasoning_effort": "low"}'
            raise UnsupportedFeature(f"{option} in this model's format", hint=hint)
        return written, None
    markers = markers_of(tokenizer, vocabulary)
    if markers is None:
        if reasoning is True:
            hint = "the chat template and the vocabulary have none of the known markers, such as <think>"
            raise UnsupportedFeature("reasoning of a model that is not known to reason", hint=hint)
        return written, None
    begun = written.rstrip().endswith(markers.begin.strip())
    if reasoning is False:
        return (f"{written.rstrip()}\n\n{markers.end}\n\n" if begun else written), None
    if written.rstrip().endswith(markers.end.strip()):
        if reasoning is True:
            raise ValueError(f"the chat template ends the prompt with {markers.end}: it leaves no room for reasoning")
        return written, None
    return written, Section(markers, begun, reasoning == "auto" and not begun, max_chars)
