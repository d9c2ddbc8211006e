"""Models that think before they answer: a section of free text, between markers, before the constrained answer.

Where a section begins and ends is taken from the tokenizer: from its response template (transformers), else from the
markers that its chat template or vocabulary knows. The chat template may have opened the section already (DeepSeek-R1),
or closed it (Qwen3 with ``enable_thinking=False``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

from grammarspec.errors import UnsupportedFeature
from grammarspec.grammars.expressions import Grammar, literal, special, text
from grammarspec.models.chat import Prompt, chat_template, render
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Markers", "Reasoning", "Section", "Splitter", "gap", "marker", "markers_of", "prepare", "split"]

Reasoning = Literal["auto"] | bool
"""Whether a model is to think before it answers; ``"auto"``: as it and its chat template like."""

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
    """What a section begins and ends with, special tokens by their names."""

    begin: str
    end: str


@dataclass(frozen=True, slots=True)
class Section:
    """The reasoning before one answer.

    Attributes:
        markers: what it begins and ends with.
        begun: the prompt ends with the marker of its beginning.
        optional: the model may do without.
        max_chars: code points that it may have, or ``None``.
    """

    markers: Markers
    begun: bool = False
    optional: bool = False
    max_chars: int | None = None

    def before(self, answer: Grammar[Any], gap: int, vocabulary: Vocabulary) -> Grammar[str]:
        """The section, so many line ends at most, and then the answer."""
        inside = text(until=self.markers.end, max_chars=self.max_chars)
        section = inside + marker(vocabulary, self.markers.end) + literal("\n").repeat(0, gap)
        if not self.begun:
            section = marker(vocabulary, self.markers.begin) + section
        return (section.optional() if self.optional else section) + answer

    def count(self, tokens: Sequence[int], vocabulary: Vocabulary) -> int:
        """How many tokens of a text that has the section belong to it, its markers included."""
        end = vocabulary.special_tokens.get(self.markers.end)
        if end in tokens:
            return tokens.index(end) + 1
        said = bytearray()
        for number, token in enumerate(tokens, 1):
            said += vocabulary.token_bytes(token) or b""
            if self.markers.end.encode() in said:
                return number
        return 0


def gap(answer: Grammar[Any], *, freely: bool) -> int:
    """So many line ends before an answer at most belong to no part: none, where they could be the answer's own.

    Args:
        freely: the answer begins with free text, which does without line ends at its beginning.
    """
    may_begin, _ = answer.node.byte_constraint.matcher().next_bytes()
    return 0 if b"\n" in may_begin and not freely else _GAP


class Splitter:
    """Tells a text that grows apart into its reasoning and its answer.

    Attributes:
        reasoning: the text of the section so far; ``None`` if there is none.
        whole: the answer has begun.
    """

    def __init__(self, section: Section | None, gap: int) -> None:
        self._section = section
        self._rest = ""
        self._gap = 0 if section is None else gap
        self._opened = section is not None and section.begun
        self.whole = section is None
        self.reasoning: str | None = "" if self._opened else None

    def feed(self, piece: str, *, last: bool = False) -> str:
        """Take a piece of the text; what of it (and of what was held back) belongs to the answer.

        Args:
            last: nothing comes behind it.
        """
        self._rest += piece
        if self._section is not None and not self.whole:
            self._read_section(self._section.markers, last)
        if not self.whole:
            return ""
        while self._gap and self._rest.startswith("\n"):
            self._rest, self._gap = self._rest[1:], self._gap - 1
        said, self._rest = self._rest, ""
        if said:
            self._gap = 0
        return said

    def _read_section(self, markers: Markers, last: bool) -> None:
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


def split(section: Section | None, gap: int, said: str) -> tuple[str | None, str | None]:
    """The reasoning in a whole text, and the answer; ``None`` for what is not there."""
    splitter = Splitter(section, gap)
    found = splitter.feed(said, last=True)
    if not splitter.whole and section is not None and section.optional:
        return None, said  # free text that begins like a section
    reasoning = None if splitter.reasoning is None else splitter.reasoning.strip()
    return reasoning, found if splitter.whole else None


def marker(vocabulary: Vocabulary, name: str) -> Grammar[str]:
    """A marker as the model writes it: special tokens of the vocabulary as such, the rest as text."""
    names = sorted((token for token in vocabulary.special_tokens if token in name), key=len, reverse=True)
    if not names:
        return literal(name)
    parts = [part for part in re.split(f"({'|'.join(map(re.escape, names))})", name) if part]
    said = [special(part) if part in names else literal(part) for part in parts]
    return reduce(lambda before, part: before + part, said)


def markers_of(tokenizer: PreTrainedTokenizerBase, vocabulary: Vocabulary) -> Markers | None:
    """The markers of a model's reasoning, if it is known to have any."""
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
    """Response templates have one text, or several that mean the same; none where they have a pattern."""
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
    """A prompt's text, and the section that comes before the answer, if any.

    Args:
        prompt, system, variables: as for :func:`grammarspec.models.chat.render`.
        reasoning: ``"auto"`` leaves it to the chat template whether the model thinks, and to the model where that says
            nothing. With ``True`` it has to, with ``False`` it cannot: what the chat template knows as
            ``enable_thinking`` or ``thinking`` is set, and a section that it opens nevertheless is closed.
        max_chars: code points that the section may have, or ``None``.
        apart: the section stands before the answer; if not, what the answer may be has a place for it.

    Raises:
        UnsupportedFeature: ``reasoning`` is ``True``, and it is not known how the model writes it; what the answer may
            be has a place for it, and an option says more of it than that the model may.
        ValueError, TypeError: as :func:`.chat.render`; ``reasoning`` or ``max_chars`` is none of these.
    """
    if reasoning not in ("auto", True, False):
        raise ValueError(f"reasoning must be 'auto', True or False, not {reasoning!r}")
    if max_chars is not None and max_chars < 0:
        raise ValueError(f"max_reasoning_chars must be at least 0, not {max_chars}")
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
