"""The options of a model call: :class:`Options` as callers give them, :class:`CallOptions` with all defaults filled in.

:func:`resolve` makes the second from the first, once for each call, and refuses unknown names and values out of range.
No other module looks at an :class:`Options`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from grammarspec.decoding import Sampling
    from grammarspec.tools.formats import ToolFormat

__all__ = ["CallOptions", "Options", "Reasoning", "refuse_unknown", "resolve"]

Reasoning = Literal["auto"] | bool
"""Whether a model reasons before it answers; ``"auto"`` leaves it to the chat template and the model."""


class Options(TypedDict, total=False):
    """The options that may be given with each prompt.

    Attributes:
        sampling: how tokens are chosen, and when to stop; if not given, greedily, and after 512 tokens.
        system: a system message before the prompt.
        template: variables for the chat template, such as ``{"reasoning_effort": "low"}``.
        reasoning: whether the model thinks before it answers, in a section of free text of its own. With ``True`` it
            must, with ``False`` it cannot; ``"auto"``, the default, leaves it to the chat template, and where that says
            nothing, to the model.
        max_reasoning_chars: the greatest number of code points of that section; then it is closed, and the answer
            begins. The tokens of both count towards ``max_tokens``.
        retries: if a validator of the type refuses a value, tell the model what is wrong and have it answer again, at
            most so many times (the message is :attr:`grammarspec.ValidationFailed.feedback`).
        tool_choice: ``"auto"``, the default, lets the model choose between calls of tools and an answer; with
            ``"required"`` it must call tools, with ``"none"`` it must answer; with the name of a tool (or OpenAI's JSON
            for it) it must call that tool.
        parallel: whether the model may call several tools in one turn; it may by default.
        tool_format: the format in which the model writes calls: a value or a name in
            :data:`grammarspec.tools.formats.FORMATS`; by default that of its chat template, or else plain JSON.
    """

    sampling: Sampling | None
    system: str | None
    template: Mapping[str, Any] | None
    reasoning: Reasoning
    max_reasoning_chars: int | None
    retries: int
    tool_choice: str | Mapping[str, Any]
    parallel: bool
    tool_format: str | ToolFormat | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """The options of one call, with every default filled in; see :class:`Options` for what each means.

    Attributes:
        tool_choice: ``"auto"``, ``"required"``, ``"none"`` or the name of a tool that there is.

    Raises:
        TypeError: ``sampling`` is no :class:`grammarspec.Sampling`.
        ValueError: ``reasoning``, ``max_reasoning_chars`` or ``retries`` is out of range.
    """

    sampling: Sampling
    system: str | None = None
    template: Mapping[str, Any] = field(default_factory=dict)
    reasoning: Reasoning = "auto"
    max_reasoning_chars: int | None = None
    retries: int = 0
    tool_choice: str = "auto"
    parallel: bool = True
    tool_format: str | ToolFormat | None = None

    def __post_init__(self) -> None:
        from grammarspec.decoding.sampling import Sampling  # with it comes torch

        if not isinstance(self.sampling, Sampling):
            raise TypeError(f"sampling must be a gs.Sampling, not {self.sampling!r}")
        if self.reasoning not in ("auto", True, False):
            raise ValueError(f"reasoning must be 'auto', True or False, not {self.reasoning!r}")
        if self.max_reasoning_chars is not None and self.max_reasoning_chars < 0:
            raise ValueError(f"max_reasoning_chars must be at least 0, not {self.max_reasoning_chars}")
        if self.retries < 0:
            raise ValueError(f"retries={self.retries} must be at least 0")


def resolve(options: Options, tools: Collection[str] = ()) -> CallOptions:
    """The options of a call from those that were given.

    Args:
        options: those that were given.
        tools: the names of the tools of the call.

    Raises:
        TypeError: there is no such option, or ``sampling`` is no :class:`grammarspec.Sampling`.
        ValueError: an option has a value that it cannot have.
    """
    from grammarspec.decoding.sampling import Sampling  # with it comes torch

    refuse_unknown(options)
    given: dict[str, Any] = {
        **options,
        "sampling": Sampling() if options.get("sampling") is None else options.get("sampling"),
        "template": options.get("template") or {},
        "tool_choice": _tool_choice(options.get("tool_choice", "auto"), tools),
    }
    return CallOptions(**given)


def refuse_unknown(options: Iterable[str]) -> None:
    """Raise an error for a name that is no option: a misspelled one would have no effect.

    Args:
        options: the names.

    Raises:
        TypeError: there is no such option, or not here.
    """
    for name in options:
        if name == "tools":
            hint = "give them to run, arun or stream of a model, or to gs.run_tools, which runs what is called"
            raise TypeError(f"tools cannot be given here: a model that calls some has no value yet\n  hint: {hint}")
        if name not in Options.__optional_keys__:
            near = get_close_matches(name, Options.__optional_keys__, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(Options.__optional_keys__))}"
            raise TypeError(f"there is no option {name}\n  hint: {hint}")


def _tool_choice(choice: str | Mapping[str, Any], tools: Collection[str]) -> str:
    """A choice of tools as one word: ``"auto"``, ``"required"``, ``"none"`` or the name of one of the tools.

    Raises:
        ValueError: it is none of these; it is a mapping, but not OpenAI's; it asks for calls, but there are no tools.
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
