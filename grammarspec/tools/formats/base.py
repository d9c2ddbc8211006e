"""What all formats of tool calls share: :class:`ToolFormat`, a description of calls as data, and :class:`Reply`.

Tools go in; the grammar of a reply comes out, which constrains what the model writes and reads what it has written.
"""

from __future__ import annotations

import json
import re
import secrets
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
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
    "CallReader",
    "MarkerGrammar",
    "Reply",
    "ToolFormat",
    "calls_of",
    "free_text",
    "without_end",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

AnyTool = Tool[..., Any]
MarkerGrammar = Callable[[str], Grammar[str]]
"""Makes the grammar of a marker such as ``<tool_call>``: a special token if the vocabulary has it as one, else text."""
Arguments = Callable[[AnyTool, MarkerGrammar], Grammar[dict[str, Any]]]
"""Makes the grammar of the arguments of a tool's calls in a format; the value of a text of it is the JSON values."""

_LETTERS = string.ascii_letters + string.digits
_PART = re.compile(r"\$(name|arguments|id)")


@dataclass(frozen=True, slots=True)
class Reply(Generic[T_co]):
    """The parts of what a model has written in one turn.

    Attributes:
        text: free text; if calls follow, without whitespace at its end.
        answer: the value of the final answer, if its grammar was given and the model answered.
        calls: the calls of tools, in order.
        reasoning: the reasoning, in formats that have a place for it; else empty.
    """

    text: str = ""
    answer: T_co | None = None
    calls: Sequence[ToolCall] = ()
    reasoning: str = ""


def free_text(*without: str) -> Grammar[str]:
    """Any text that contains none of these texts."""
    parts = [text(until=one) for one in without] or [text()]
    return reduce(lambda a, b: a & b, parts)


def marked(constant: str, parts: Sequence[str], markers: MarkerGrammar) -> Grammar[str]:
    """The grammar of a constant text, some parts of which may be special tokens."""
    if not parts:
        return literal(constant)
    pieces = re.split(f"({'|'.join(map(re.escape, parts))})", constant)
    kept = [markers(piece) if number % 2 else literal(piece) for number, piece in enumerate(pieces) if piece]
    return reduce(lambda a, b: a + b, kept) if kept else literal("")


@dataclass(frozen=True, kw_only=True)
class ToolFormat:
    """How a family of models writes calls of tools.

    Attributes:
        name: the name that users choose it by.
        call: one call, with ``$name`` for the tool, ``$arguments`` and, if calls have an id, ``$id``.
        begin, separator, end: what is written before, between and after calls.
        markers: the parts of all these that vocabularies may have as special tokens. Calls begin with the first of
            them; text before calls cannot contain it, and streams of text stop before it.
        starts: what calls begin with in a format without markers. A reply is then either calls or free text, and free
            text cannot begin with any of these, whitespace aside.
        single: whether a reply has at most one call.
        arguments: makes the grammar of the arguments of a call.
        id_length: the length of the ids of calls, letters and digits. With 0, ids are not written: a call gets a new
            one, ``call_`` and 24 letters and digits.
        id_form: what ids look like instead, with ``$name`` for the tool and ``$number`` for a number.
        signs: regular expressions that are all found in the chat templates of the family; none: it is never detected.
        not_signs: regular expressions none of which is found in them.
        frames: pairs of markers one of which may stand around free text and answers.
        channels: whether a reply is a sequence of messages to channels, one of which is for reasoning.
        tools_member: the member of the system message that the chat template reads tools from, as JSON; empty: it reads
            them from a variable, as most do.
        prompt: a message that explains the format to models that have not learned it, with ``$tools`` for the tools;
            empty: there is none.
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
    id_form: str = ""
    signs: tuple[str, ...] = ()
    not_signs: tuple[str, ...] = ()
    frames: tuple[tuple[str, str], ...] = ()
    channels: bool = False
    tools_member: str = ""
    prompt: str = ""
    source: str = ""

    def detects(self, template: str) -> bool:
        """Whether a chat template is of this family, by its signs."""
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
        markers: MarkerGrammar = literal,
    ) -> Grammar[Reply[T]]:
        """The grammar of what a model may write in one turn; it reads a :class:`Reply`.

        Args:
            tools: the tools that may be called.
            choice: ``"auto"``: free text and then calls, if any; or, if ``answer`` is given, an answer or calls.
                ``"required"``: calls and nothing before them. ``"none"``: an answer, or free text that cannot be
                mistaken for calls. The name of a tool: one call of it and nothing before it.
            parallel: whether several calls may come in one turn, if the format allows that.
            answer: the grammar of the final answer; ``None``: free text.
            markers: makes the grammar of a marker.

        Raises:
            ValueError: calls are required but there are no tools, ``choice`` names no tool, or two tools have one name.
            GrammarError: a schema cannot be enforced in this format, or at all.
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
        """The system message that explains tools and format to a model; empty if the format has no :attr:`prompt`.

        Args:
            tools: the tools that the model may call.
        """
        return self.prompt.replace("$tools", "\n".join(json.dumps(tool.to_openai()["function"]) for tool in tools))

    def spell(self, calls: Iterable[Mapping[str, Any]]) -> str:
        """Calls as text, for chat templates that cannot render calls.

        Args:
            calls: each with a ``name``, and ``arguments`` that are JSON values.

        Raises:
            UnsupportedFeature: the format does not write arguments as JSON.
        """
        if self.arguments is not json_arguments:
            hint = "choose another, such as tool_format='json'"
            raise UnsupportedFeature(f"calls in the format {self.name} without a chat template for them", hint=hint)
        written = (
            self.call.replace("$id", self.id_form.replace("$number", str(number)) or "0" * self.id_length)
            .replace("$name", call["name"])
            .replace("$arguments", json.dumps(call["arguments"], ensure_ascii=False))
            for number, call in enumerate(calls)
        )
        return self.begin + self.separator.join(written) + self.end

    def visible(self, text: str, tools: Iterable[AnyTool], *, answered: bool) -> str:
        """The part of a growing text that is certain to be for the user: the text before calls, or the answer.

        Args:
            text: the text so far.
            tools: the tools that may be called.
            answered: whether a grammar of the answer was given.
        """
        text = self._unframed(text)
        if answered or self.starts:
            begin = text if answered else text.lstrip()
            starts = self.openings(tools) if answered else self.starts
            return "" if any(begin.startswith(start) or start.startswith(begin) for start in starts) else text
        first = self.markers[0]
        before, found, _ = text.partition(first)
        return (before if found else without_end(before, first)).rstrip()  # whitespace before calls is not text

    def _unframed(self, text: str) -> str:
        """A growing text without the markers around it; nothing while it may be the beginning of the first of them."""
        for begin, end in self.frames:
            if text.startswith(begin):
                inside, found, _ = text[len(begin) :].partition(end)
                return inside if found else without_end(inside, end)
        return "" if any(begin.startswith(text) for begin, _ in self.frames) else text

    def openings(self, tools: Iterable[AnyTool]) -> list[str]:
        """What calls of these tools may begin with, up to the first part that varies: arguments or id."""
        call = self.begin + self.call
        return [re.split(r"\$(?:arguments|id)", call.replace("$name", tool.name), maxsplit=1)[0] for tool in tools]

    # ------------------------------------------------------------------ parts
    def reply(
        self, calls: Grammar[Any] | None, answer: Grammar[T] | None, *, required: bool, markers: MarkerGrammar
    ) -> Grammar[Reply[T]]:
        """The grammar of one turn. Its parts named ``reply.text``, ``reply.answer`` and ``reply.calls`` make the reply.

        Args:
            calls: the grammar of calls; ``None``: there are none.
            answer: the grammar of the final answer; ``None``: free text.
            required: whether there must be calls.
            markers: makes the grammar of a marker.
        """
        other: Grammar[Any]  # what may come instead of, or before, calls
        if answer is not None:
            other = answer.named("reply.answer")
        elif self.starts:
            starts = "|".join(map(re.escape, self.starts))
            other = regex(rf"(?!\s*(?:{starts}))(?s:.)*").named("reply.text")
        else:
            other = free_text(*self.markers[:1], *chain.from_iterable(self.frames)).named("reply.text")
        other = reduce(or_, (self.part(a, markers) + other + self.part(b, markers) for a, b in self.frames), other)
        whole: Grammar[Any]
        if calls is None:
            whole = other
        elif required:
            whole = calls
        elif answer is not None or self.starts:
            whole = calls | other
        else:
            whole = other + calls.optional()
        return whole.fields().map(_reply)

    def calls(self, tools: Sequence[AnyTool], *, parallel: bool, markers: MarkerGrammar) -> Grammar[list[ToolCall]]:
        """The grammar of one or more calls, with what is written around them.

        Raises:
            GrammarError: as :meth:`arguments_of`.
        """
        one = reduce(or_, (self.one_call(tool, markers) for tool in tools))
        most = None if parallel and not self.single else 1
        several = one.repeat(1, most, sep=self.part(self.separator, markers)).named("calls")
        whole = self.part(self.begin, markers) + several + self.part(self.end, markers)
        return whole.fields().map(calls_of)

    def one_call(self, tool: AnyTool, markers: MarkerGrammar) -> Grammar[ToolCall]:
        """The grammar of a call of this tool.

        Raises:
            GrammarError: as :meth:`arguments_of`.
        """
        parts: list[Grammar[Any]] = []
        for number, part in enumerate(_PART.split(self.call)):
            if number % 2 == 0:
                parts.append(self.part(part, markers))
            elif part == "name":
                parts.append(literal(tool.name))
            elif part == "id":
                parts.append(self._id(tool).named("id"))
            else:
                parts.append(self.arguments_of(tool, markers).named("arguments"))
        return reduce(lambda a, b: a + b, parts).fields().map(CallReader(tool, self.id_length))

    def _id(self, tool: AnyTool) -> Grammar[str]:
        """The grammar of the id of a call of this tool."""
        if self.id_form:
            return regex(re.escape(self.id_form.replace("$name", tool.name)).replace(r"\$number", "[0-9]{1,6}"))
        return regex(f"[a-zA-Z0-9]{{{self.id_length}}}")

    def arguments_of(self, tool: AnyTool, markers: MarkerGrammar) -> Grammar[dict[str, Any]]:
        """The grammar of the arguments of a call of this tool.

        Raises:
            GrammarError: the tool's schema cannot be enforced in this format; the error names the tool.
        """
        try:
            return self.arguments(tool, markers)
        except GrammarError as error:
            message, hint = error.message, error.hint
            if isinstance(error, UnsupportedFeature):
                message = f"{message}, in tool calls of the format {self.name}"
                hint = hint or "choose another format, such as plain JSON, or a simpler schema"
            raise type(error)(message, f"the tool {tool.name}, {error.where or '#'}", hint) from None

    def part(self, part: str, markers: MarkerGrammar) -> Grammar[str]:
        """The grammar of a constant part of the format, whose markers may be special tokens."""
        return marked(part, (*self.markers, *chain.from_iterable(self.frames)), markers)


@dataclass(frozen=True)
class CallReader:
    """Makes a call of a tool from the values of the parts named ``arguments`` and ``id``; without an id, a new one.

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
    """A growing text without those last characters that may be the beginning of ``end``."""
    return text[: len(text) - max(n for n in range(len(end)) if text.endswith(end[:n]))]


def calls_of(found: dict[str, Any]) -> list[ToolCall]:
    """The value of the part named ``calls``."""
    calls: list[ToolCall] = found["calls"]
    return calls


def _reply(found: dict[str, Any]) -> Reply[Any]:
    calls = found.get("reply.calls", [])
    text = found.get("reply.text", "")
    return Reply(text.rstrip() if calls else text, found.get("reply.answer"), calls)
