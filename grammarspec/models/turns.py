"""One turn of a model: what it is told, what it may say, and what that means. With tools, it may call these."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from grammarspec.errors import GrammarError, PromptError, UnsupportedFeature
from grammarspec.grammars import marks
from grammarspec.grammars.expressions import Grammar, text
from grammarspec.models.chat import Prompt, messages_of
from grammarspec.models.reasoning import gap, marker
from grammarspec.models.results import Invalid, ValidationFailed, assistant_message, rejections
from grammarspec.tools.messages import to_template_messages
from grammarspec.tools.tool import Declaration, Tool, ToolCall
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

    @cached_property
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
        """The messages that the model is to go on from; raises as :func:`grammarspec.models.chat.messages_of`."""
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
        """What a text, in which special tokens are marked, means.

        Raises:
            ValidationFailed: a validator refuses it.
        """
        with _validators(marks.named(data).decode(), "#"):
            match = self.answer.match_marked(data)
            return Said(match.value, match.text, match.captures)

    def again(self, data: bytes, error: ValidationFailed) -> list[dict[str, Any]]:
        """The messages that a chat goes on with where that text was refused: it, and what is wrong with it."""
        return [{"role": "assistant", "content": error.text}, {"role": "user", "content": error.feedback}]


@dataclass(frozen=True)
class ToolTurn(Turn):
    """A turn in which a model may call tools, or whose format frames answers.

    Attributes:
        tools: those that the model is told of.
        format: how it writes calls.
        choice, parallel: as for :meth:`grammarspec.tools.formats.ToolFormat.grammar`.
        vocabulary: its tokens.
        told: the chat template tells the model of tools; if not, a system message does, and calls and results of the
            chat so far are told as texts.
    """

    tools: tuple[Tool[..., Any], ...]
    format: ToolFormat
    choice: str
    parallel: bool
    vocabulary: Vocabulary
    told: bool

    @cached_property
    def grammar(self) -> Grammar[Reply[str]]:
        return self.format.grammar(
            map(_unread, self.tools),  # their arguments are read apart, so that there are calls if one is refused
            choice=self.choice,
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
        if not self.told and not instructions:
            return messages
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

    def visible(self, said: str) -> str:
        return self.format.visible(said, self._callable, answered=not self._free)

    @property
    def _callable(self) -> tuple[Tool[..., Any], ...]:
        return () if self.choice == "none" else self.tools

    def read(self, data: bytes) -> Said:
        reply = self.grammar.match_marked(data).value
        if reply.calls:
            read = {tool.name: tool.read for tool in self.tools}
            calls = []
            for number, call in enumerate(reply.calls):
                with _validators(marks.named(data).decode(), f"#{_CALLS}/{number}/function/arguments"):
                    calls.append(replace(call, args=read[call.name](call.arguments)))
            return Said(None, reply.text, {}, tuple(calls), reply.reasoning)
        text = reply.text if reply.answer is None else reply.answer
        with _validators(text, "#"):
            match = self.answer.match(text)
            return Said(match.value, text, match.captures, (), reply.reasoning)

    def again(self, data: bytes, error: ValidationFailed) -> list[dict[str, Any]]:
        reply = self.grammar.match_marked(data).value
        if not reply.calls:
            return super().again(data, error)
        told = ["This was not called: another call is not valid."] * len(reply.calls)
        refused = int(error.errors[0].where.removeprefix(f"#{_CALLS}/").partition("/")[0])
        told[refused] = error.feedback
        return [
            assistant_message(reply.text, reply.calls, reply.reasoning or None),
            *(
                {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": content}
                for call, content in zip(reply.calls, told, strict=True)
            ),
        ]


def _unread(tool: Tool[..., Any]) -> Tool[..., Any]:
    """A tool with the same schema, whose arguments stay as they are."""
    return Tool(tool.name, lambda: Declaration(tool.description, tool.parameters, tool.schema, dict))


@contextmanager
def _validators(text: str, where: str) -> Iterator[None]:
    """What validators say here of a text is said of this place in the answer."""
    try:
        yield
    except GrammarError:
        raise
    except Exception as error:
        errors = rejections(error)
        if errors is None:
            raise
        raise ValidationFailed(text, tuple(Invalid(where + at[1:], said) for at, said in errors)) from error


_CALLS = "/tool_calls"  # where calls stand in an assistant's message


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
    results = False  # the last message begins with results
    for one in to_template_messages(messages):
        is_result = one["role"] == "tool"
        message: dict[str, Any] = one
        if is_result:
            message = {"role": "user", "content": f"{one['name']} returned: {one['content']}"}
        if results and message["role"] == "user":  # in many chat templates the roles have to take turns
            found[-1]["content"] += f"\n{message['content']}"
            continue
        results = is_result
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
    template: str,
) -> Turn:
    """The turn of a model with these tools, of which there may be none.

    Args:
        written: the format of calls, or its name; ``None``: that of the chat template, or else plain JSON.
        template: the chat template; empty if there is none.

    Raises:
        ValueError: there is no such format.
        PromptError: there are tools, and no chat template.
    """
    from grammarspec.tools.formats import JSON, ToolFormat, detect_format, tool_format

    if not isinstance(written, ToolFormat):
        detected = detect_format(template, getattr(tokenizer, "response_template", None)) or JSON
        written = detected if written is None else tool_format(written)
    if not tools and not written.frames:
        return Turn(answer)
    if tools and not template:
        raise PromptError("the tokenizer has no chat template, which could tell of tools", hint="give it one")
    told = "tools" in template and not written.prompt
    return ToolTurn(answer, tools, written, choice if tools else "none", parallel, vocabulary, told)


def choice_of(choice: str | Mapping[str, Any], tools: Collection[str]) -> str:
    """A choice of tools as one word: ``"auto"``, ``"required"``, ``"none"`` or a tool's name.

    Args:
        tools: their names.

    Raises:
        ValueError: it is none of these; it is a mapping, and not as OpenAI has it; it asks for calls without tools.
    """
    name: Any = choice
    if isinstance(choice, Mapping):
        function = choice.get("function", choice)
        name = function.get("name") if isinstance(function, Mapping) else None
        if choice.get("type") != "function" or not isinstance(name, str):
            known = '{"type": "function", "function": {"name": ...}}'
            raise ValueError(f"a tool is chosen by its name or {known}, not by {choice!r}")
    elif choice in ("auto", "none") or (choice == "required" and tools):
        return choice
    if name not in tools:
        there = f"of a tool ({', '.join(tools)})" if tools else "of a tool, of which there are none"
        raise ValueError(f"tool_choice must be 'auto', 'required', 'none' or the name {there}, not {choice!r}")
    return str(name)
