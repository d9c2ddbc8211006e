"""One turn of a model: the messages that go in, the grammar of what the model may write, and how the text is read.

In a plain :class:`Turn` the model answers. In a :class:`ToolTurn` it may call tools instead; some formats also put
markers around the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from grammarspec.errors import GrammarError, Invalid, PromptError, UnsupportedFeature, ValidationFailed
from grammarspec.grammars import marks
from grammarspec.grammars.expressions import Grammar, text
from grammarspec.imports import importing
from grammarspec.models.chat import Prompt, messages_of
from grammarspec.models.messages import to_template_messages
from grammarspec.models.reasoning import gap, marker
from grammarspec.models.results import assistant_message, rejections
from grammarspec.tools.declaration import Declaration
from grammarspec.tools.tool import Tool, ToolCall
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from grammarspec.tools.formats import CallPiece, GrowingCalls, Reply, ToolFormat

__all__ = ["ToolTurn", "Turn", "TurnResult", "VisibleText", "turn_of"]


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The parts of what a model has written in one turn.

    Attributes:
        output: the value of the answer; ``None`` if the model called tools.
        text: the text for the user: the answer, or the text before calls.
        captures: the values of the answer's named parts.
        calls: the calls of tools.
        reasoning: the reasoning that is part of the turn, in formats of replies that have it; else empty.
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
        """The grammar of what the model may write behind its reasoning."""
        return self.answer

    @cached_property
    def _free(self) -> bool:
        """Whether the answer is free text."""
        return self.answer.ir == text().ir

    @cached_property
    def gap(self) -> int:
        """The greatest number of line ends between reasoning and answer that belong to neither."""
        return gap(self.grammar, freely=self._free)

    @property
    def has_reasoning(self) -> bool:
        """Whether the grammar itself has a place for reasoning."""
        return False

    def messages(self, prompt: Prompt, system: str | None) -> list[dict[str, Any]]:
        """The messages that the chat template renders.

        Args:
            prompt: a text of the user, or messages.
            system: a system message before them.

        Raises:
            PromptError, TypeError, UnsupportedFeature: as :func:`grammarspec.models.chat.messages_of`.
        """
        return messages_of(prompt, system)

    def check_prompt(self, rendered: str) -> None:
        """Check that a rendered prompt tells the model of all its tools.

        Args:
            rendered: the prompt as the chat template has written it.

        Raises:
            UnsupportedFeature: the chat template leaves out a tool.
        """

    def template_variables(self, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """The variables of the chat template: those that the caller gave, and the turn's own."""
        return variables

    def visible(self, text: str) -> str:
        """The part of a growing text that is certain to be for the user, and not the beginning of a call."""
        return text

    def growing_calls(self) -> GrowingCalls | None:
        """What reads the calls of a growing text; ``None`` if there can be none."""
        return None

    def read(self, data: bytes) -> TurnResult:
        """Read the text of a turn.

        Args:
            data: a text of :attr:`grammar`, with special tokens marked (:mod:`grammarspec.grammars.marks`).

        Raises:
            ValidationFailed: a validator refuses a value; its places are JSON pointers into the answer, or into the
                assistant's message for arguments of calls.
            NoMatch: ``data`` is no text of the grammar.
            Exception: what a validator raises that is no error about the value.
        """
        with _validators(marks.named(data).decode(), "#"):
            match = self.answer.match_marked(data)
            return TurnResult(match.value, match.text, match.captures)

    def retry_messages(self, data: bytes, error: ValidationFailed) -> list[dict[str, Any]]:
        """The messages that continue a chat after a refused answer: the answer, and what is wrong with it.

        Args:
            data: the text of the turn, as for :meth:`read`.
            error: what :meth:`read` raised.
        """
        return [{"role": "assistant", "content": error.text}, {"role": "user", "content": error.feedback}]


@dataclass(frozen=True)
class ToolTurn(Turn):
    """A turn in which a model may call tools, or whose format puts markers around answers.

    Attributes:
        tools: the tools that the prompt declares to the model.
        allowed: those of them that may be called.
        format: the format of its calls.
        choice, parallel: as for :meth:`grammarspec.tools.formats.ToolFormat.grammar`.
        vocabulary: the model's tokens.
        template_has_tools: whether the chat template declares tools to the model. If not, a system message does, and
            calls and results in the chat so far become plain texts.
    """

    tools: tuple[Tool[..., Any], ...]
    allowed: tuple[Tool[..., Any], ...]
    format: ToolFormat
    choice: str
    parallel: bool
    vocabulary: Vocabulary
    template_has_tools: bool

    @cached_property
    def grammar(self) -> Grammar[Reply[str]]:
        return self.format.grammar(
            map(_unread, self.allowed),  # arguments are read later: calls are known even if one is refused
            choice=self.choice,
            parallel=self.parallel,
            answer=None if self._free else Grammar(self.answer.ir),  # only its text: its value is read later
            markers=partial(marker, self.vocabulary),
        )

    @cached_property
    def gap(self) -> int:
        return gap(self.grammar, freely=self._free and self.choice in ("auto", "none"))

    @property
    def has_reasoning(self) -> bool:
        return self.format.channels

    def messages(self, prompt: Prompt, system: str | None) -> list[dict[str, Any]]:
        messages = messages_of(prompt, system)
        if not self.tools or (self.template_has_tools and not self.format.tools_member):
            return messages
        if not self.template_has_tools:
            messages = _as_text(messages, self.format)
        if self.choice == "none":
            return messages
        instructions = "" if self.template_has_tools else self.format.instructions(self.tools)
        if not self.template_has_tools and not instructions:
            return messages
        first = messages.pop(0) if messages[0]["role"] == "system" else {"role": "system", "content": ""}
        first["content"] = "\n\n".join(part for part in (first["content"], instructions) if part)
        if self.template_has_tools:
            functions = [tool.to_openai()["function"] for tool in self.tools]
            first[self.format.tools_member] = json.dumps(functions, ensure_ascii=False)
        return [first, *messages]

    def check_prompt(self, rendered: str) -> None:
        missing = [tool.name for tool in self.tools if tool.name not in rendered]
        if missing and self.choice != "none":
            hint = "the template may know another way to tell of tools; or tell of them yourself, in a system message"
            raise UnsupportedFeature(f"the chat template leaves out the tools {', '.join(missing)}", hint=hint)

    def template_variables(self, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        own = {"tools": [tool.to_openai() for tool in self.tools]} if self.template_has_tools and self.tools else {}
        return {**own, **variables}

    def visible(self, text: str) -> str:
        return self.format.visible(text, self._callable, answered=not self._free)

    def growing_calls(self) -> GrowingCalls | None:
        with importing:
            from grammarspec.tools.formats import GrowingCalls

        if not self._callable:
            return None
        only = self.choice not in ("auto", "none")
        return GrowingCalls(self.format, only_calls=only, answered=not self._free)

    @property
    def _callable(self) -> tuple[Tool[..., Any], ...]:
        """The tools that may be called in this turn."""
        return () if self.choice == "none" else self.allowed

    def read(self, data: bytes) -> TurnResult:
        reply = self.grammar.match_marked(data).value
        if reply.calls:
            read = {tool.name: tool.read for tool in self.tools}
            calls = []
            for number, call in enumerate(reply.calls):
                with _validators(marks.named(data).decode(), f"#{_CALLS}/{number}/function/arguments"):
                    calls.append(replace(call, args=read[call.name](call.arguments)))
            return TurnResult(None, reply.text, {}, tuple(calls), reply.reasoning)
        text = reply.text if reply.answer is None else reply.answer
        with _validators(text, "#"):
            match = self.answer.match(text)
            return TurnResult(match.value, text, match.captures, (), reply.reasoning)

    def retry_messages(self, data: bytes, error: ValidationFailed) -> list[dict[str, Any]]:
        reply = self.grammar.match_marked(data).value
        if not reply.calls:
            return super().retry_messages(data, error)
        results = ["This was not called: another call is not valid."] * len(reply.calls)
        refused = int(error.errors[0].where.removeprefix(f"#{_CALLS}/").partition("/")[0])
        results[refused] = error.feedback
        return [
            assistant_message(reply.text, reply.calls, reply.reasoning or None),
            *(
                {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": content}
                for call, content in zip(reply.calls, results, strict=True)
            ),
        ]


def _unread(tool: Tool[..., Any]) -> Tool[..., Any]:
    """A tool with the same schema, whose typed arguments are the JSON values themselves."""
    return Tool(tool.name, lambda: Declaration(tool.description, tool.parameters, tool.schema, dict))


@contextmanager
def _validators(text: str, where: str) -> Iterator[None]:
    """Turn errors of validators within the block into :class:`ValidationFailed`, with places below ``where``."""
    try:
        yield
    except GrammarError:
        raise
    except Exception as error:
        errors = rejections(error)
        if errors is None:
            raise
        cause = error.__cause__ if isinstance(error, ValidationFailed) else error
        raise ValidationFailed(text, tuple(Invalid(where + at[1:], message) for at, message in errors)) from cause


_CALLS = "/tool_calls"  # the member of an assistant's message that has the calls


class VisibleText:
    """The visible part of a growing text: pieces of the text go in, pieces for the user come out.

    Args:
        turn: the turn that the text is of.
        split: takes a piece of the text and returns what of it (and of earlier pieces) is not reasoning.
    """

    def __init__(self, turn: Turn, split: Callable[[str], str]) -> None:
        self._turn, self._split = turn, split
        self._text = ""  # the text so far, without reasoning
        self._shown = 0  # how many of its visible characters were returned
        self._calls = turn.growing_calls()

    def __call__(self, piece: str) -> str:
        """The characters that the next piece of the text makes visible."""
        return self._visible(self._split(piece))

    def feed(self, piece: str) -> tuple[str, list[CallPiece]]:
        """What the next piece of the text adds: the characters that become visible, and pieces of calls.

        Calls in formats that cannot be read while they grow have no pieces (:class:`.GrowingCalls`).
        """
        new = self._split(piece)
        return self._visible(new), [] if self._calls is None else self._calls.feed(new)

    def _visible(self, new: str) -> str:
        self._text += new
        visible = self._turn.visible(self._text)
        added, self._shown = visible[self._shown :], max(self._shown, len(visible))
        return added


def _as_text(messages: Sequence[Mapping[str, Any]], written: ToolFormat) -> list[dict[str, Any]]:
    """Messages whose calls and results are plain texts, for chat templates without tools."""
    found: list[dict[str, Any]] = []
    results = False  # whether the last message begins with results
    for one in to_template_messages(messages):
        is_result = one["role"] == "tool"
        message: dict[str, Any] = one
        if is_result:
            message = {"role": "user", "content": f"{one['name']} returned: {one['content']}"}
        if results and message["role"] == "user":  # many chat templates demand that the roles take turns
            found[-1]["content"] += f"\n{message['content']}"
            continue
        results = is_result
        if calls := message.pop("tool_calls", []):
            before = [message["content"]] if message["content"] else []
            message["content"] = "\n".join([*before, written.spell(call["function"] for call in calls)])
        found.append(message)
    return found


def turn_of(
    tokenizer: PreTrainedTokenizerBase,
    vocabulary: Vocabulary,
    answer: Grammar[Any],
    tools: tuple[Tool[..., Any], ...],
    choice: str,
    parallel: bool,
    written: str | ToolFormat | None,
    template: str,
    allowed: tuple[str, ...] | None = None,
) -> Turn:
    """The turn of a model with an answer and tools.

    Args:
        tokenizer, vocabulary: the model's.
        answer: the grammar of the answer.
        tools: the tools that the model is told of; may be empty.
        choice, parallel: as for :meth:`grammarspec.tools.formats.ToolFormat.grammar`.
        written: the format of calls, or its name; ``None``: that of the chat template, or else plain JSON.
        template: the chat template; empty if there is none.
        allowed: the names of the tools that the model may call; ``None``: all of them.

    Raises:
        ValueError: there is no such format.
        PromptError: there are tools, and no chat template.
    """
    with importing:
        from grammarspec.tools.formats import JSON, ToolFormat, detect_format, tool_format

    if not isinstance(written, ToolFormat):
        detected = detect_format(template, getattr(tokenizer, "response_template", None)) or JSON
        written = detected if written is None else tool_format(written)
    if not tools and not (written.frames or written.channels):
        return Turn(answer)
    if tools and not template:
        raise PromptError("the tokenizer has no chat template, which could tell of tools", hint="give it one")
    template_has_tools = "tools" in template and not written.prompt
    callable_tools = tools if allowed is None else tuple(tool for tool in tools if tool.name in allowed)
    choice = choice if tools else "none"
    return ToolTurn(answer, tools, callable_tools, written, choice, parallel, vocabulary, template_has_tools)
