"""One turn of a model: what it is told, what it may say, and what that means. With tools, it may call these."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from grammarspec import marks
from grammarspec.chat import Prompt, chat_template, messages_of
from grammarspec.errors import PromptError, UnsupportedFeature
from grammarspec.expressions import Grammar, text
from grammarspec.reading import match_marked
from grammarspec.reasoning import gap, marker
from grammarspec.tools.messages import to_template_messages
from grammarspec.tools.tool import Tool, ToolCall
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from grammarspec.tools.formats import Reply, ToolFormat

__all__ = ["Said", "Shown", "ToolTurn", "Turn", "choice_of", "tool_turn"]


@dataclass(frozen=True, slots=True)
class Said:
    """What a model has said in one turn.

    Attributes:
        output: the answer's value; ``None`` where it called tools.
        text: what it said to the user: the answer, or what stands before calls.
        captures: the values of the answer's named parts.
        calls: of tools.
        reasoning: in formats that have a place for it; else empty.
    """

    output: Any
    text: str
    captures: dict[str, Any]
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True)
class Turn:
    """A turn in which a model answers.

    Attributes:
        answer: the grammar of the answer.
    """

    answer: Grammar[Any]

    @cached_property
    def grammar(self) -> Grammar[Any]:
        """All that may be said behind the reasoning."""
        return self.answer

    @property
    def _free(self) -> bool:
        return self.answer.ir == text().ir

    @cached_property
    def gap(self) -> int:
        """So many line ends between the reasoning and the answer at most belong to neither."""
        return gap(self.grammar, freely=self._free)

    @property
    def reasons(self) -> bool:
        """The grammar has a place for reasoning of its own."""
        return False

    def prompt(self, prompt: Prompt, system: str | None) -> list[dict[str, Any]]:
        """The messages that the model is to go on from; raises as :func:`grammarspec.chat.messages_of`."""
        return messages_of(prompt, system)

    def check(self, written: str) -> None:
        """See that a prompt, as the chat template has written it, says all that the model has to know.

        Raises:
            UnsupportedFeature: tools are left out.
        """

    def variables(self, variables: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """What the chat template is to know."""
        return variables or {}

    def visible(self, said: str) -> str:
        """Of what is said so far, what is surely said to the user."""
        return said

    def read(self, data: bytes) -> Said:
        """What a text, in which special tokens are marked, means."""
        match = match_marked(self.answer, data)
        return Said(match.value, match.text, match.captures)


@dataclass(frozen=True)
class ToolTurn(Turn):
    """A turn in which a model may call tools, or whose format frames answers.

    Attributes:
        tools: those that the model is told of.
        format: how it writes calls.
        choice, parallel: as for :meth:`grammarspec.tools.formats.ToolFormat.grammar`.
        vocabulary: its tokens.
        told: the chat template tells the model of tools; if not, a system message does.
    """

    tools: tuple[Tool[..., Any], ...]
    format: ToolFormat
    choice: str
    parallel: bool
    vocabulary: Vocabulary
    told: bool

    @cached_property
    def grammar(self) -> Grammar[Reply[str]]:
        return self._grammar(self.choice)

    def _grammar(self, choice: str) -> Grammar[Reply[str]]:
        return self.format.grammar(
            self.tools,
            choice=choice,
            parallel=self.parallel,
            answer=None if self._free else Grammar(self.answer.ir),  # its text, which is read apart
            markers=partial(marker, self.vocabulary),
        )

    @cached_property
    def gap(self) -> int:
        return gap(self.grammar, freely=self._free and self.choice in ("auto", "none"))

    @property
    def reasons(self) -> bool:
        return self.format.frames

    def prompt(self, prompt: Prompt, system: str | None) -> list[dict[str, Any]]:
        messages = messages_of(prompt, system)
        if not self.tools or (self.told and not self.format.tools_member):
            return messages
        if not self.told:
            messages = _as_text(messages, self.format)
        if self.choice == "none":
            return messages
        instructions = "" if self.told else self.format.instructions(self.tools)
        said = messages.pop(0) if messages[0]["role"] == "system" else {"role": "system", "content": ""}
        said["content"] = "\n\n".join(part for part in (said["content"], instructions) if part)
        if self.told:
            told = [tool.to_openai()["function"] for tool in self.tools]
            said[self.format.tools_member] = json.dumps(told, ensure_ascii=False)
        return [said, *messages]

    def check(self, written: str) -> None:
        missing = [tool.name for tool in self.tools if tool.name not in written]
        if missing and self.choice != "none":
            hint = "the template may know another way to tell of tools; or tell of them yourself, in a system message"
            raise UnsupportedFeature(f"the chat template leaves out the tools {', '.join(missing)}", hint=hint)

    def variables(self, variables: Mapping[str, Any] | None) -> Mapping[str, Any]:
        told = {"tools": [tool.to_openai() for tool in self.tools]} if self.told and self.tools else {}
        return {**told, **(variables or {})}

    @cached_property
    def _calls(self) -> Grammar[Any]:
        return self._grammar("required" if self.choice == "auto" else self.choice)

    def visible(self, said: str) -> str:
        if self._free or self.format.frames:
            return self.format.visible(said)
        if self.choice == "none":
            return said
        data = marks.with_marks(said, self._calls._special)
        may_be_calls = self._calls._bytes.matcher().accept_tokens(data) == len(data)
        return "" if may_be_calls else said

    def read(self, data: bytes) -> Said:
        reply = match_marked(self.grammar, data).value
        if reply.calls:
            return Said(None, reply.text, {}, tuple(reply.calls), reply.reasoning)
        if self._free:
            return Said(self.answer.parse(reply.text), reply.text, {}, (), reply.reasoning)
        match = self.answer.match(reply.answer or "")
        return Said(match.value, match.text, match.captures, (), reply.reasoning)


class Shown:
    """Of a text that grows, piece by piece what is said to the user."""

    def __init__(self, turn: Turn, split: Callable[[str], str]) -> None:
        """The text is that of a turn, behind the reasoning that ``split`` takes from its pieces."""
        self._turn, self._split = turn, split
        self._said, self._shown = "", 0

    def __call__(self, piece: str) -> str:
        self._said += self._split(piece)
        visible = self._turn.visible(self._said)
        new, self._shown = visible[self._shown :], max(self._shown, len(visible))
        return new


def _as_text(messages: Sequence[Mapping[str, Any]], written: ToolFormat) -> list[dict[str, Any]]:
    """Messages without calls and results, for chat templates that know none: as what the model wrote, and was told."""
    found: list[dict[str, Any]] = []
    results = False  # the last message is one of results
    for message in to_template_messages(messages):
        if message["role"] == "tool":
            result = f"{message['name']} returned: {message['content']}"
            if results:
                found[-1]["content"] += f"\n{result}"
            else:
                found.append({"role": "user", "content": result})
            results = True
            continue
        results = False
        if calls := message.pop("tool_calls", []):
            said = [message["content"]] if message["content"] else []
            message["content"] = "\n".join([*said, written.spell(call["function"] for call in calls)])
        found.append(message)
    return found


def tool_turn(
    tokenizer: PreTrainedTokenizerBase,
    vocabulary: Vocabulary,
    answer: Grammar[Any],
    tools: tuple[Tool[..., Any], ...],
    choice: str,
    parallel: bool,
    written: str | ToolFormat | None,
) -> Turn:
    """The turn of a model with these tools, of which there may be none.

    Args:
        written: the format of calls, or its name; ``None``: that of the chat template, or else plain JSON.

    Raises:
        ValueError: there is no such format; two tools have one name.
    """
    from grammarspec.tools.formats import JSON, ToolFormat, detect_format, tool_format

    template = chat_template(tokenizer)
    if not isinstance(written, ToolFormat):
        detected = detect_format(template, getattr(tokenizer, "response_template", None)) or JSON
        written = detected if written is None else tool_format(written)
    if not tools and not written.frames:
        return Turn(answer)
    if tools and not template:
        raise PromptError("the tokenizer has no chat template, which could tell of tools", hint="give it one")
    return ToolTurn(answer, tools, written, choice if tools else "none", parallel, vocabulary, "tools" in template)


def choice_of(choice: str | Mapping[str, Any]) -> str:
    """A choice of tools as one word: ``"auto"``, ``"required"``, ``"none"`` or a tool's name.

    Raises:
        ValueError: it is a mapping, and not as OpenAI has it.
    """
    if isinstance(choice, str):
        return choice
    function = choice.get("function", choice)
    name = function.get("name") if isinstance(function, Mapping) else None
    if choice.get("type") != "function" or not isinstance(name, str):
        raise ValueError(f'a tool is chosen by {{"type": "function", "function": {{"name": ...}}}}, not by {choice!r}')
    return name
