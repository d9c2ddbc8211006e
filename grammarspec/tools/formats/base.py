"""What the formats of tool calls have in common: replies, and the grammar of one made of the grammar of a call."""

from __future__ import annotations

import json
import re
import secrets
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Generic, Literal, TypeVar

from grammarspec.errors import GrammarError, UnsupportedFeature
from grammarspec.frontends.regex import regex
from grammarspec.grammars.expressions import Grammar, literal, text
from grammarspec.tools.formats.arguments import json_arguments
from grammarspec.tools.tool import Tool, ToolCall

__all__ = [
    "AnyTool",
    "Arguments",
    "Markers",
    "NewCall",
    "Reply",
    "ToolFormat",
    "free_text",
    "only_calls",
    "without_end",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

AnyTool = Tool[..., Any]
Markers = Callable[[str], Grammar[str]]
"""The grammar of a marker such as ``<tool_call>``: a special token where the vocabulary has it as one."""
Arguments = Callable[[AnyTool, Markers], Grammar[dict[str, Any]]]
"""How a format writes the arguments of a tool's call."""

_LETTERS = string.ascii_letters + string.digits
_PART = re.compile(r"\$(name|arguments|id)")


@dataclass(frozen=True, slots=True)
class Reply(Generic[T_co]):
    """What a model says in one turn.

    Attributes:
        text: free text; before calls, without whitespace at its end.
        answer: the value of the final answer, where its grammar was given and it came.
        calls: calls of tools, in order.
        reasoning: what the model thought aloud, in formats that have a place for it; else empty.
    """

    text: str = ""
    answer: T_co | None = None
    calls: Sequence[ToolCall] = ()
    reasoning: str = ""


def free_text(*without: str) -> Grammar[str]:
    """Any text that holds none of these."""
    parts = [text(until=one) for one in without] or [text()]
    return reduce(lambda a, b: a & b, parts)


@dataclass(frozen=True, kw_only=True)
class ToolFormat:
    """How a family of models writes calls of tools.

    Attributes:
        name: what it is chosen by.
        call: one call, with ``$name``, ``$arguments`` and, if it has one, ``$id`` in the places of these.
        begin, separator, end: what stands before, between and after calls.
        markers: the parts of all these that vocabularies may have as special tokens.
        starts: what calls may begin with where no marker tells them from text: there is no text before calls, and no
            free text that begins so, whitespace aside.
        single: there is one call at most.
        arguments: how the arguments of a call are written.
        id_length: of the ids of calls, letters and digits; 0: ``call_`` and 24 of them.
        signs: regular expressions, all of which are found in the chat templates of the family.
        not_signs: regular expressions, none of which is.
        frames: answers are framed, too, with a place for reasoning.
        tools_member: the member of the system message in which the chat template takes tools, as JSON; empty: it takes
            them beside the messages, as most do.
        prompt: for models that know no format: what tells them of this one; ``$tools`` stands for the tools.
        source: where the format is published.
    """

    name: str
    call: str
    begin: str = ""
    separator: str = ""
    end: str = ""
    markers: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    single: bool = False
    arguments: Arguments = json_arguments
    id_length: int = 0
    signs: tuple[str, ...] = ()
    not_signs: tuple[str, ...] = ()
    frames: bool = False
    tools_member: str = ""
    prompt: str = ""
    source: str = ""

    def detects(self, template: str) -> bool:
        """Whether a chat template is one of this family."""
        if not self.signs or any(re.search(sign, template) for sign in self.not_signs):
            return False
        return all(re.search(sign, template) for sign in self.signs)

    def grammar(
        self,
        tools: Iterable[AnyTool],
        *,
        choice: Literal["auto", "required", "none"] | str = "auto",
        parallel: bool = True,
        answer: Grammar[T] | None = None,
        markers: Markers = literal,
    ) -> Grammar[Reply[T]]:
        """What a model may say in one turn, read as a :class:`Reply`.

        Args:
            tools: those that may be called.
            choice: ``"auto"``: free text, and then calls if any; or, if ``answer`` is given, either that or calls.
                ``"required"``: calls, at once. ``"none"``: an answer, or free text that cannot be taken for calls. The
                name of a tool: one call of it, at once.
            parallel: several calls may come in one turn, if the format has that.
            answer: the grammar of the final answer; ``None``: free text.
            markers: makes the grammar of a marker, which is a special token in some vocabularies.

        Raises:
            ValueError: there are no tools where calls are asked for, ``choice`` names none, or two have one name.
            UnsupportedFeature: a schema cannot be enforced in this format.
        """
        tools = list(tools)
        known = {tool.name: tool for tool in tools}
        if len(known) < len(tools):
            raise ValueError("two tools have the same name")
        if choice not in ("auto", "required", "none"):
            if choice not in known:
                there = ", ".join(known) or "there are none"
                raise ValueError(
                    f'choice must be "auto", "required", "none" or the name of a tool ({there}): {choice!r}'
                )
            known, parallel = {choice: known[choice]}, False
        elif choice == "required" and not known:
            raise ValueError('choice is "required", but there are no tools')
        calls = None
        if known and choice != "none":
            calls = self.calls(list(known.values()), parallel=parallel, markers=markers).named("reply.calls")
        return self.reply(calls, answer, required=choice not in ("auto", "none"), markers=markers)

    def instructions(self, tools: Iterable[AnyTool]) -> str:
        """What to tell a model that does not know the format, in a system message; empty: its chat template does."""
        return self.prompt.replace("$tools", "\n".join(json.dumps(tool.to_openai()["function"]) for tool in tools))

    def spell(self, calls: Iterable[Mapping[str, Any]]) -> str:
        """Calls as text, for chat templates that know none.

        Args:
            calls: each with a ``name``, and ``arguments`` that are JSON values.

        Raises:
            UnsupportedFeature: the format does not write arguments as JSON.
        """
        if self.arguments is not json_arguments:
            hint = "choose another, such as tool_format='json'"
            raise UnsupportedFeature(f"calls in the format {self.name} without a chat template for them", hint=hint)
        said = (
            self.call.replace("$id", "0" * self.id_length)
            .replace("$name", call["name"])
            .replace("$arguments", json.dumps(call["arguments"], ensure_ascii=False))
            for call in calls
        )
        return self.begin + self.separator.join(said) + self.end

    def visible(self, said: str, tools: Iterable[AnyTool], *, answered: bool) -> str:
        """Of what a model has said so far, what is surely said to the user: the text before calls, or the answer.

        Args:
            tools: those that may be called.
            answered: a grammar of the answer was given.
        """
        if answered or self.starts:
            begin = said if answered else said.lstrip()
            starts = self.openings(tools) if answered else self.starts
            return "" if any(begin.startswith(start) or start.startswith(begin) for start in starts) else said
        first = self.markers[0]
        text, found, _ = said.partition(first)
        return (text if found else without_end(text, first)).rstrip()  # whitespace before calls is no text

    def openings(self, tools: Iterable[AnyTool]) -> list[str]:
        """What calls of these tools may begin with, up to the first part that is not always the same."""
        call = self.begin + self.call
        return [re.split(r"\$(?:arguments|id)", call.replace("$name", tool.name), maxsplit=1)[0] for tool in tools]

    # ------------------------------------------------------------------ parts
    def reply(
        self, calls: Grammar[Any] | None, answer: Grammar[T] | None, *, required: bool, markers: Markers
    ) -> Grammar[Reply[T]]:
        """One turn, made of the grammars of all calls and of the answer; reads what parts named ``reply.…`` mean."""
        said: Grammar[Any]
        if answer is not None:
            said = answer.named("reply.answer")
        elif self.starts:
            starts = "|".join(map(re.escape, self.starts))
            said = regex(rf"(?!\s*(?:{starts}))(?s:.)*").named("reply.text")
        else:
            said = free_text(*self.markers[:1]).named("reply.text")
        whole: Grammar[Any]
        if calls is None:
            whole = said
        elif required:
            whole = calls
        elif answer is not None or self.starts:
            whole = calls | said
        else:
            whole = said + calls.optional()
        return whole.fields().map(_reply)

    def calls(self, tools: Sequence[AnyTool], *, parallel: bool, markers: Markers) -> Grammar[list[ToolCall]]:
        """One call or more, with what stands around them."""
        one = reduce(or_, (self.one_call(tool, markers) for tool in tools))
        most = None if parallel and not self.single else 1
        several = one.repeat(1, most, sep=self.spelled(self.separator, markers)).named("calls")
        whole = self.spelled(self.begin, markers) + several + self.spelled(self.end, markers)
        return whole.fields().map(only_calls)

    def one_call(self, tool: AnyTool, markers: Markers) -> Grammar[ToolCall]:
        """A call of this tool."""
        parts: list[Grammar[Any]] = []
        for number, part in enumerate(_PART.split(self.call)):
            if number % 2 == 0:
                parts.append(self.spelled(part, markers))
            elif part == "name":
                parts.append(literal(tool.name))
            elif part == "id":
                parts.append(regex(f"[a-zA-Z0-9]{{{self.id_length}}}").named("id"))
            else:
                parts.append(self.told(tool, markers).named("arguments"))
        return reduce(lambda a, b: a + b, parts).fields().map(NewCall(tool, self.id_length))

    def told(self, tool: AnyTool, markers: Markers) -> Grammar[dict[str, Any]]:
        """The arguments of a call; what goes wrong with them names the tool."""
        try:
            return self.arguments(tool, markers)
        except GrammarError as error:
            message, hint = error.message, error.hint
            if isinstance(error, UnsupportedFeature):
                message = f"{message}, in tool calls of the format {self.name}"
                hint = hint or "choose another format, such as plain JSON, or a simpler schema"
            raise type(error)(message, f"the tool {tool.name}, {error.where or '#'}", hint) from None

    def spelled(self, part: str, markers: Markers) -> Grammar[str]:
        """A part of the format with its markers."""
        if not self.markers:
            return literal(part)
        pieces = re.split(f"({'|'.join(map(re.escape, self.markers))})", part)
        kept = [markers(piece) if number % 2 else literal(piece) for number, piece in enumerate(pieces) if piece]
        return reduce(lambda a, b: a + b, kept) if kept else literal("")


@dataclass(frozen=True)
class NewCall:
    """Makes a call of a tool of what its parts named ``arguments`` and ``id`` mean; without an id, it gets a new one.

    Attributes:
        tool: the tool.
        id_length: see :attr:`ToolFormat.id_length`.
    """

    tool: AnyTool
    id_length: int = 0

    def __call__(self, found: dict[str, Any]) -> ToolCall:
        own = found.get("id") or self._fresh()
        return ToolCall(own, self.tool.name, found["arguments"], self.tool.read(found["arguments"]))

    def _fresh(self) -> str:
        letters = "".join(secrets.choice(_LETTERS) for _ in range(self.id_length or 24))
        return letters if self.id_length else f"call_{letters}"


def without_end(text: str, end: str) -> str:
    """A text without what may be the beginning of its end."""
    return text[: len(text) - max(n for n in range(len(end)) if text.endswith(end[:n]))]


def only_calls(found: dict[str, Any]) -> list[ToolCall]:
    """Of what named parts mean, the one named ``calls``."""
    calls: list[ToolCall] = found["calls"]
    return calls


def _reply(found: dict[str, Any]) -> Reply[Any]:
    calls = found.get("reply.calls", [])
    said = found.get("reply.text", "")
    return Reply(said.rstrip() if calls else said, found.get("reply.answer"), calls)
