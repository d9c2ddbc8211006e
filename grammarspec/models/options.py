"""What may be said to a model with each prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypedDict

from grammarspec.models.reasoning import Reasoning

if TYPE_CHECKING:
    from grammarspec.decoding import Sampling
    from grammarspec.tools.formats import ToolFormat

__all__ = ["Options", "refuse_unknown"]


class Options(TypedDict, total=False):
    """What may be said with each prompt.

    Attributes:
        sampling: how tokens are chosen, and when to stop; greedily, and after 512 tokens, if not given.
        system: a system message before the prompt.
        template: variables for the chat template, such as ``{"reasoning_effort": "low"}``.
        reasoning: whether the model thinks before it answers, in a section of its own of free text. ``"auto"``, the
            default, leaves that to the chat template, and to the model where it says nothing; with ``True`` the model
            has to, with ``False`` it cannot.
        max_reasoning_chars: code points that the section may have; then it is closed, and the answer begins. The
            tokens of both count towards ``max_tokens``.
        retries: where a validator of the type refuses a value, tell the model what is wrong, and have it answer again,
            up to so many times (:attr:`grammarspec.ValidationFailed.feedback` is what it is told).
        tool_choice: of tools: ``"auto"``, the default, leaves it to the model whether it calls some; ``"required"`` has
            it call, ``"none"`` answer; the name of a tool (or what OpenAI has for it) has it call that one.
        parallel: it may call several tools in one turn; it may if this is not given.
        tool_format: how it writes calls, a name in :data:`grammarspec.tools.formats.FORMATS`; by default as its chat
            template does, or in plain JSON.
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


def refuse_unknown(options: Iterable[str]) -> None:
    """See that there are such options: what is misspelled would be ignored.

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
