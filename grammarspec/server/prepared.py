"""Prepares requests for the decoding loop: renders prompts, compiles grammars, and reads tools.

This runs in worker threads, not in the thread that runs the model. Errors in prompts, grammars and tools are found
here, before the request joins the batch.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from grammarspec._compiler import CancelToken
from grammarspec.constraint import Constraint
from grammarspec.decoding import Generation
from grammarspec.decoding import Request as LoopRequest
from grammarspec.errors import GrammarspecError, PromptError, Truncated
from grammarspec.grammars.expressions import Grammar, text
from grammarspec.models.calls import Call, PreparedPrompt
from grammarspec.models.chat import chat_template
from grammarspec.models.generator import Generator
from grammarspec.models.options import Options, resolve
from grammarspec.models.reasoning import Section
from grammarspec.models.turns import ToolTurn, turn_of
from grammarspec.server.bodies import Asked
from grammarspec.server.refusals import Refused, refusal_of
from grammarspec.server.settings import Settings
from grammarspec.serving.cache import GrammarCache
from grammarspec.serving.requests import Lowered
from grammarspec.serving.requests import Request as Declared
from grammarspec.tools.formats import CallPiece
from grammarspec.tools.sources import as_tools
from grammarspec.tools.tool import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from grammarspec.models.model import Model

__all__ = ["Answer", "Preparer", "Work"]

_KEPT = 64  # the number of lowered declarations that are kept
_KNOWN = 1024  # the number of grammars that are known to have been prepared
_MEMBERS = {"role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content", "thinking"}
"""The members of messages that are read. A chat template may read others."""
_ROLES = {"system", "user", "assistant", "tool", "function"}
"""The roles of messages; ``function`` is refused later on, by name. A chat template may have others."""
_PART_MEMBERS = {"type", "text", "image_url", "input_audio", "file", "refusal"}
"""Those of the parts of a content; parts that are no texts are refused by their type."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The parts of a finished text.

    Attributes:
        text: the text for the user; empty if there are calls and no text before them.
        calls: the calls of tools.
        reasoning: the reasoning before the text; ``None`` if there is none.
        finish_reason: OpenAI's name for what ended the text.
        reasoning_tokens: the number of tokens of the reasoning.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    finish_reason: str = "stop"
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """A prompt that is ready for the decoding loop.

    Attributes:
        request: the request for the loop.
        growing: makes, for one text, a function that is called with each piece and returns what of it the user may see,
            and the pieces of calls.
        read: parses a text that has ended; raises the error that ended the text, if one did.
    """

    request: LoopRequest
    growing: Callable[[], Callable[[str], tuple[str, list[CallPiece]]]]
    read: Callable[[Generation], Answer]


class _Compiler(Generator):
    """Gives calls their constraints, from a cache bounded by bytes; different grammars are compiled in parallel."""

    def __init__(self, model: Model, cache: GrammarCache) -> None:
        super().__init__(model.model, model.vocabulary, (), 0, cache.limits)
        self._cache, self._tokens = cache, model.vocabulary

    def constraint(self, grammar: Grammar[Any], section: Section | None, gap: int) -> Constraint:
        whole = section.before(grammar, gap, self._tokens) if section else grammar
        return self._cache.constraint(Lowered(whole.ir))


class Preparer:
    """Prepares requests for the decoding loop. Thread-safe.

    Args:
        model: its tokenizer, chat template and vocabulary are used; the model itself is not run.
        settings: the settings of the server.

    Attributes:
        cache: the compiled constraints.
    """

    def __init__(self, model: Model, settings: Settings) -> None:
        self._tokenizer, self._vocabulary = model.tokenizer, model.vocabulary
        self._settings = settings
        self.cache = GrammarCache(model.vocabulary, max_bytes=settings.cache_bytes, limits=settings.limits)
        self._compiler = _Compiler(model, self.cache)
        self._lock = Lock()
        self._lowered: OrderedDict[bytes, Lowered] = OrderedDict()
        self._prepared: OrderedDict[bytes, None] = OrderedDict()  # the keys of requests that have been prepared

    def is_known(self, asked: Asked) -> bool:
        """Whether a request has no grammar, or one that has been prepared before."""
        return not (asked.answer or asked.tools) or _key(asked) in self._prepared

    def prepare(self, asked: Asked, cancel: CancelToken, *, chat: bool) -> list[Work]:
        """Prepare a request.

        Args:
            asked: the request.
            cancel: cancelling it stops the front-end.
            chat: whether the prompts are messages; if not, they are texts or tokens, which the model continues.

        Returns:
            one for each prompt.

        Raises:
            Refused: a prompt, the grammar, a tool or an option cannot be used.
        """
        works = self._works(asked, cancel, chat)
        with self._lock:
            self._prepared[_key(asked)] = None
            if len(self._prepared) > _KNOWN:
                self._prepared.popitem(last=False)
        return works

    def _works(self, asked: Asked, cancel: CancelToken, chat: bool) -> list[Work]:
        size = self._vocabulary.size
        if wrong := [token for token in asked.sampling.logit_bias if token >= size]:
            raise Refused(f"logit_bias names the token {wrong[0]}, but the model has only {size} tokens", "logit_bias")
        answer = text() if asked.answer is None else self._step(asked.answer_field, self._grammar, asked.answer, cancel)
        if not chat:
            return [
                self._step("prompt", self._continued, asked, prompt, answer, budget_field=asked.budget_field)
                for prompt in asked.prompts
            ]
        [messages] = asked.prompts
        tools = self._step("tools", as_tools, _checked_tools(asked.tools))
        options: dict[str, Any] = {"tool_choice": asked.tool_choice, "sampling": asked.sampling}
        options |= {"parallel": asked.parallel, "template": self._variables(asked)}
        resolved = self._step("tool_choice", resolve, cast(Options, options), tools)
        template = chat_template(self._tokenizer, tools=bool(tools))
        _check_members(messages, template)
        turn = self._step("tools" if tools else "messages", turn_of, self._tokenizer, self._vocabulary, answer,
                          tuple(tools.values()), resolved.tool_choice, resolved.parallel, None, template,
                          resolved.allowed_tools)  # fmt: skip
        if tools:
            self._step("tools", lambda: turn.grammar)
        call = Call(self._compiler, self._tokenizer, self._vocabulary, answer, turn, resolved)
        prepared: PreparedPrompt = self._step(
            "messages", call.prepare, messages, asked.n, budget_field=asked.budget_field
        )
        return [
            Work(prepared.request, lambda: call.visible_text(prepared).feed, lambda found: _chat(call, prepared, found))
        ]

    def _step(
        self, param: str | None, work: Callable[..., Any], *arguments: Any, budget_field: str = "max_tokens"
    ) -> Any:
        """Do a part of the work; errors name the field ``param``, or ``budget_field`` if they are about the budget.

        Raises:
            Refused: the work fails.
        """
        try:
            return work(*arguments)
        except Exception as error:
            refused = refusal_of(error, param, budget_field=budget_field)
            raise (error if refused.status >= 500 and not isinstance(error, GrammarspecError) else refused) from error

    def _grammar(self, declared: Declared, cancel: CancelToken) -> Grammar[str]:
        """The grammar of a declaration. The most recently used ones are kept."""
        key = declared.key
        with self._lock:
            found = self._lowered.pop(key, None)
            if found is not None:
                self._lowered[key] = found
        if found is None:
            found = declared.lower(self._vocabulary, limits=self._settings.limits, cancel=cancel)
            with self._lock:
                self._lowered[key] = found
                if len(self._lowered) > _KEPT:
                    self._lowered.popitem(last=False)
        return found.grammar

    def _variables(self, asked: Asked) -> dict[str, Any]:
        given, template = dict(asked.template or {}), chat_template(self._tokenizer, tools=bool(asked.tools))
        fields = {name: f"chat_template_kwargs.{name}" for name in given}
        if asked.reasoning_effort is not None:
            given["reasoning_effort"], fields["reasoning_effort"] = asked.reasoning_effort, "reasoning_effort"
        for name, field in fields.items():
            if name not in template:
                raise Refused(f"the model's chat template has no variable {name}", field)
        return given

    def _continued(self, asked: Asked, prompt: str | list[int], answer: Grammar[str]) -> Work:
        tokens = list(prompt) if isinstance(prompt, list) else self._encoded(prompt)
        size = self._vocabulary.size
        if wrong := [token for token in tokens if not 0 <= token < size]:
            raise PromptError(f"the prompt has the token {wrong[0]}, but the model has only {size} tokens")
        matcher = self._compiler.constraint(answer, None, 0).matcher()
        request = LoopRequest(prompt=tokens, matcher=matcher, sampling=asked.sampling, n=asked.n)
        self._compiler.check(request)
        return Work(request, lambda: lambda piece: (piece, []), _continuation)

    def _encoded(self, prompt: str) -> list[int]:
        """The tokens of a prompt, with the special tokens that the tokenizer adds (such as one for the beginning)."""
        try:
            prompt.encode()
        except UnicodeEncodeError:
            raise PromptError("the prompt holds a lone surrogate, which cannot be spelled in UTF-8") from None
        return list(self._tokenizer.encode(prompt))


def _key(asked: Asked) -> bytes:
    """A digest of what the grammar of a request depends on; empty if it cannot be prepared at all."""
    try:
        told = json.dumps([asked.tools, asked.tool_choice, asked.parallel, asked.template, asked.reasoning_effort])
        return hashlib.sha256(told.encode() + (asked.answer.key if asked.answer else b"")).digest()
    except (ValueError, RecursionError):
        return b""


def _check_members(messages: Sequence[dict[str, Any]], template: str) -> None:
    """Refuse roles of messages, and members of them and of their parts, that nothing reads.

    Raises:
        Refused: there is one, and the chat template has no such name either.
    """
    for at, message in enumerate(messages):
        role = message.get("role")
        if isinstance(role, str) and role not in _ROLES and role not in template:
            raise Refused(f"the role {role!r:.40} is not supported", f"messages[{at}].role")
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        read = [("", message, _MEMBERS), *((f".content[{n}]", part, _PART_MEMBERS) for n, part in enumerate(parts))]
        for where, value, known in read:
            for name in value if isinstance(value, dict) else ():
                if name not in known and name not in template:
                    field = f"messages[{at}]{where}.{name}"
                    raise Refused(f"the field {field} is not supported", field, "unsupported_field")


def _checked_tools(tools: Sequence[Any]) -> list[Any]:
    for at, one in enumerate(tools):
        where = f"tools[{at}]"
        if not isinstance(one, dict) or one.get("type") != "function" or not isinstance(one.get("function"), dict):
            raise Refused(f'{where} must be {{"type": "function", "function": {{"name": ..., ...}}}}', where)
        unknown = one.keys() - {"type", "function"} | one["function"].keys() - {
            "name", "description", "parameters", "strict",
        }  # fmt: skip
        if unknown:
            raise Refused(f"{where} has the unknown member {min(unknown)!r}", where, "unsupported_field")
    return list(tools)


def _reason(generation: Generation) -> str:
    """OpenAI's finish reason. A text that was closed within its budget is complete: its reason is ``stop``."""
    return "length" if generation.finish_reason == "length" else "stop"


def _chat(call: Call, prepared: PreparedPrompt, generation: Generation) -> Answer:
    """Parse the text of a chat completion.

    Raises:
        GrammarspecError: the error that ended the text, such as a limit that was exceeded.
    """
    if generation.error is not None:
        raise generation.error
    if generation.whole and isinstance(call.turn, ToolTurn):  # without tools, the text itself is the answer
        try:
            result = call.result(prepared, generation)
        except Truncated:
            pass
        else:
            reason = "tool_calls" if result.tool_calls else _reason(generation)
            tokens = result.usage.reasoning_tokens
            return Answer(result.text, result.tool_calls, result.reasoning, reason, tokens)
    reasoning, shown = call.shown(prepared, generation)
    section = prepared.section if reasoning is not None else None
    tokens = section.count(generation.tokens, call.vocabulary) if section else 0
    return Answer(shown, (), reasoning, _reason(generation), tokens)


def _continuation(generation: Generation) -> Answer:
    """Read the text of a completion.

    Raises:
        GrammarspecError: the error that ended the text.
    """
    if generation.error is not None:
        raise generation.error
    return Answer(generation.text, finish_reason=_reason(generation))
