"""The options of a model call: :class:`Options` as callers give them, :class:`CallOptions` with all defaults filled in.

:func:`resolve` makes the second from the first, once for each call, and refuses unknown names and values out of range.
No other module looks at an :class:`Options`; :func:`override` puts one over another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from grammarspec.imports import importing
from grammarspec.models.instructions import INSTRUCTIONS, Instructions

if TYPE_CHECKING:
    from grammarspec.decoding import Sampling
    from grammarspec.decoding.lookahead import Lookahead, RewardLike
    from grammarspec.tools.formats import ToolFormat

__all__ = [
    "CallOptions",
    "Law",
    "ModelOptions",
    "Options",
    "Reasoning",
    "SamplingOptions",
    "override",
    "refuse_unknown",
    "resolve",
    "unforced",
]

Reasoning = Literal["auto"] | bool
"""Whether a model reasons before it answers; ``"auto"`` leaves it to the chat template and the model."""


Law = Literal["masked", "conditional"]
"""The distribution that texts are drawn from: the model's, masked at each token, or given that the whole text is
valid."""

_PARTICLES = 8  # how many particles a text is chosen from, where a call does not say


class SamplingOptions(TypedDict, total=False):
    """The fields of :class:`grammarspec.Sampling`, which may be given one by one; only ``on_limit`` is missing here."""

    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logit_bias: Mapping[int, float]
    seed: int | None
    max_tokens: int
    stop: Sequence[str]
    logprobs: bool
    top_logprobs: int


class ModelOptions(SamplingOptions, total=False):
    """The options of a call that mean the same in :class:`Options` and in ``gs.run_tools``.

    Attributes:
        sampling: how tokens are chosen, and when to stop, in one value; if nothing is said, greedily, and after 512
            tokens.
        system: a system message before the prompt.
        template: variables for the chat template, such as ``{"reasoning_effort": "low"}``.
        instructions: how the model is told of the type of its answer, at the end of the user's last message:
            ``"schema"``, its JSON Schema; ``"compact"``, a shorter form of it; ``None``, not at all. ``"auto"``, the
            default of models, is what was measured to be best, which is nothing.
        reasoning: whether the model thinks before it answers, in a section of free text of its own. With ``True`` it
            must, with ``False`` it cannot; ``"auto"``, the default, leaves it to the chat template, and where that says
            nothing, to the model.
        max_reasoning_chars: the greatest number of code points of that section; then it is closed, and the answer
            begins. The tokens of both count towards ``max_tokens``.
        retries: if a validator of the type refuses a value, tell the model what is wrong and have it answer again, at
            most so many times (the message is :attr:`grammarspec.ValidationFailed.feedback`).
        tool_choice: ``"auto"``, the default, lets the model choose between calls of tools and an answer; with
            ``"required"`` it must call tools, with ``"none"`` it must answer; with the name of a tool (or OpenAI's JSON
            for it) it must call that tool. OpenAI's ``{"type": "allowed_tools", ...}`` tells the model of all tools,
            and allows calls of those alone that it lists.
        parallel: whether the model may call several tools in one turn; it may by default.
        tool_format: the format in which the model writes calls: a value or a name in
            :data:`grammarspec.tools.formats.FORMATS`; by default that of its chat template, or else plain JSON.
    """

    sampling: Sampling | None
    system: str | None
    template: Mapping[str, Any] | None
    instructions: Instructions
    reasoning: Reasoning
    max_reasoning_chars: int | None
    retries: int
    tool_choice: str | Mapping[str, Any]
    parallel: bool
    tool_format: str | ToolFormat | None


class Options(ModelOptions, total=False):
    """The options that may be given with each prompt: those of :class:`ModelOptions`, and the fields of a sampling.

    Attributes:
        on_limit: as in :class:`grammarspec.Sampling`.
        law: the distribution that the answer is drawn from: ``"masked"``, the default, masks and normalises at each
            token; ``"conditional"`` is near the model's distribution given that the whole text is valid, by several
            particles (:mod:`grammarspec.decoding.conditional`).
        particles: with ``law="conditional"``, how many texts are written for each answer; 8 if not given.
        reward, lookahead: have a reward judge what the text would become, as
            :class:`~grammarspec.decoding.lookahead.Lookahead` says; both are given, or none. The texts have another
            distribution than the model's. The reward is a function of the text of the answer, or a
            :class:`~grammarspec.decoding.lookahead.Reward`; ``batch`` takes a list of them too, one for each prompt.
            Not with tools, and not for models that reason before they answer.
    """

    on_limit: Literal["cut", "close", "raise"]
    law: Law
    particles: int
    reward: RewardLike | Sequence[RewardLike] | None
    lookahead: Lookahead | None


_SAMPLING = SamplingOptions.__optional_keys__ | {"on_limit"}  # the fields of a sampling that may be given one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """The options of one call, with every default filled in; see :class:`Options` for what each means.

    Attributes:
        tool_choice: ``"auto"``, ``"required"``, ``"none"`` or the name of a tool that there is.
        allowed_tools: the names of the tools that may be called; ``None``: all that there are.
        particles: 1 with ``law="masked"``.

    Raises:
        TypeError: ``sampling`` is no :class:`grammarspec.Sampling`, ``particles`` is no whole number, ``lookahead`` is
            no :class:`~grammarspec.decoding.lookahead.Lookahead`, or ``reward`` is no reward.
        ValueError: ``instructions``, ``reasoning``, ``max_reasoning_chars``, ``retries``, ``law`` or ``particles`` is
            out of range; one of ``reward`` and ``lookahead`` is given without the other; or the sampling does not go
            with ``law`` or ``lookahead``, or these do not go with each other.
    """

    sampling: Sampling
    system: str | None = None
    template: Mapping[str, Any] = field(default_factory=dict)
    instructions: Instructions = "auto"
    reasoning: Reasoning = "auto"
    max_reasoning_chars: int | None = None
    retries: int = 0
    tool_choice: str = "auto"
    allowed_tools: tuple[str, ...] | None = None
    parallel: bool = True
    tool_format: str | ToolFormat | None = None
    law: Law = "masked"
    particles: int = 1
    reward: RewardLike | Sequence[RewardLike] | None = None
    lookahead: Lookahead | None = None

    def __post_init__(self) -> None:
        with importing:
            from grammarspec.decoding.sampling import Sampling  # with it comes torch

        if not isinstance(self.sampling, Sampling):
            raise TypeError(f"sampling must be a gs.Sampling, not {self.sampling!r}")
        if self.instructions not in INSTRUCTIONS:
            raise ValueError(f"instructions must be 'auto', 'schema', 'compact' or None, not {self.instructions!r}")
        if self.reasoning not in ("auto", True, False):
            raise ValueError(f"reasoning must be 'auto', True or False, not {self.reasoning!r}")
        if self.max_reasoning_chars is not None and self.max_reasoning_chars < 0:
            raise ValueError(f"max_reasoning_chars must be at least 0, not {self.max_reasoning_chars}")
        if self.retries < 0:
            raise ValueError(f"retries={self.retries} must be at least 0")
        if self.law == "conditional":
            with importing:
                from grammarspec.decoding.conditional import check_conditional

            check_conditional(self.sampling, self.particles)
        elif self.law != "masked":
            raise ValueError(f"law must be 'masked' or 'conditional', not {self.law!r}")
        elif self.particles != 1:
            raise ValueError(f"law='masked' writes one text, not particles={self.particles!r}: give law='conditional'")
        if self.lookahead is not None or self.reward is not None:
            self._check_lookahead()

    def _check_lookahead(self) -> None:
        """Check a lookahead and its reward."""
        with importing:
            from grammarspec.decoding.lookahead import Lookahead, Reward, as_reward  # with it comes torch

        if self.law == "conditional":
            raise ValueError(
                "lookaheads choose texts for their reward, and law='conditional' draws them: leave one out"
            )
        if self.lookahead is None:
            raise ValueError("a reward is given, but no lookahead that asks it\n  hint: lookahead=gs.Lookahead()")
        if not isinstance(self.lookahead, Lookahead):
            raise TypeError(f"lookahead must be a gs.Lookahead, not {self.lookahead!r}")
        if self.reward is None:
            raise ValueError("a lookahead is given, but no reward to judge it\n  hint: reward=function of a text")
        several = isinstance(self.reward, Sequence) and not isinstance(self.reward, Reward | str)
        for each in self.reward if several else [self.reward]:  # type: ignore[union-attr]
            as_reward(each)  # type: ignore[arg-type]
        self.lookahead.check_sampling(self.sampling)


def resolve(options: Options, tools: Collection[str] = ()) -> CallOptions:
    """The options of a call from those that were given.

    Args:
        options: those that were given.
        tools: the names of the tools of the call.

    Raises:
        TypeError: there is no such option, or it has a value of another type; or both ``sampling`` and a field of it
            are given.
        ValueError: an option has a value that it cannot have.
    """
    refuse_unknown(options)
    choice, allowed = _tool_choice(options.get("tool_choice", "auto"), tools)
    given: dict[str, Any] = {
        **{name: value for name, value in options.items() if name not in _SAMPLING},
        "sampling": _sampling(options),
        "template": options.get("template") or {},
        "tool_choice": choice,
        "allowed_tools": allowed,
        "particles": options.get("particles", _PARTICLES if options.get("law") == "conditional" else 1),
    }
    return CallOptions(**given)


def _sampling(options: Options) -> Any:
    """The sampling of a call, given as one value or by its fields.

    Raises:
        TypeError: it is given in both ways, or a field has a value of another type.
        ValueError: a field is out of range.
    """
    with importing:
        from grammarspec.decoding.sampling import Sampling  # with it comes torch

    fields: dict[str, Any] = {name: value for name, value in options.items() if name in _SAMPLING}
    whole = options.get("sampling")
    if whole is None:
        return Sampling(**fields)
    if fields:
        names = ", ".join(sorted(fields))
        hint = f"write {names} into gs.Sampling(...), or all of it without sampling="
        raise TypeError(f"sampling= and {names} are given, which cannot stand beside each other\n  hint: {hint}")
    return whole


def override(options: Options, newer: Options) -> Options:
    """Options with newer ones put over them.

    Args:
        options: the older ones.
        newer: replace those of the same names. A new ``sampling`` replaces all that was said about sampling before; new
            fields replace those of an older ``sampling``.

    Raises:
        TypeError, ValueError: a new field does not fit the older ``sampling``.
    """
    older: dict[str, Any] = dict(options)
    fields: dict[str, Any] = {name: value for name, value in newer.items() if name in _SAMPLING}
    if "sampling" in newer:
        older = {name: value for name, value in older.items() if name not in _SAMPLING}
    elif fields and older.get("sampling") is not None:
        older["sampling"] = replace(older["sampling"], **fields)
        newer = cast(Options, {name: value for name, value in newer.items() if name not in _SAMPLING})
    return cast(Options, {**older, **newer})


def refuse_unknown(options: Iterable[str], known: Collection[str] = Options.__optional_keys__) -> None:
    """Raise an error for a name that is no option: a misspelled one would have no effect.

    Args:
        options: the names.
        known: the names of all options.

    Raises:
        TypeError: there is no such option, or not here.
    """
    for name in options:
        if name == "tools":
            hint = "give them to run, arun or stream of a model, or to gs.run_tools, which runs what is called"
            raise TypeError(f"tools cannot be given here: a model that calls some has no value yet\n  hint: {hint}")
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
            raise TypeError(f"there is no option {name}\n  hint: {hint}")


def unforced(choice: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    """A choice of tools that leaves it to the model whether it calls any; which ones may be called stays as it is."""
    if choice in ("auto", "none"):
        return choice
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        within = choice.get("allowed_tools", choice)
        return {**choice, "allowed_tools": {**within, "mode": "auto"}} if isinstance(within, Mapping) else choice
    return "auto"


def _tool_choice(choice: str | Mapping[str, Any], tools: Collection[str]) -> tuple[str, tuple[str, ...] | None]:
    """A choice of tools as one word, and the names of those that may be called, if not all may.

    The word is ``"auto"``, ``"required"``, ``"none"`` or the name of one of the tools.

    Raises:
        ValueError: it is none of these; it is a mapping, but not OpenAI's; it asks for calls, but there are no tools.
    """
    name: Any = choice
    if isinstance(choice, Mapping):
        if choice.get("type") == "allowed_tools":
            return _allowed_tools(choice, tools)
        name = _function_name(choice)
        if name is None:
            known = '{"type": "function", "function": {"name": ...}}'
            raise ValueError(f"a tool is chosen by its name or {known}, not by {choice!r}")
    elif choice in ("auto", "none") or (choice == "required" and tools):
        return choice, None
    if name not in tools:
        there = f"of a tool ({', '.join(tools)})" if tools else "of a tool, of which there are none"
        raise ValueError(f"tool_choice must be 'auto', 'required', 'none' or the name {there}, not {choice!r}")
    return str(name), None


def _allowed_tools(choice: Mapping[str, Any], tools: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """OpenAI's choice among some of the tools: its mode, and their names in the order of the tools.

    Raises:
        ValueError: it is malformed, or names a tool that there is not.
    """
    within = choice.get("allowed_tools", choice)  # without that member it is written for the Responses interface
    if not isinstance(within, Mapping) or within.get("mode") not in ("auto", "required"):
        raise ValueError(f"the mode of allowed_tools must be 'auto' or 'required', in {choice!r}")
    listed = within.get("tools")
    names = [_function_name(one) for one in listed] if isinstance(listed, Sequence) and listed else [None]
    if None in names:
        known = '[{"type": "function", "function": {"name": ...}}, ...]'
        raise ValueError(f"the tools of allowed_tools must be {known}, not {listed!r}")
    if missing := [name for name in names if name not in tools]:
        raise ValueError(f"allowed_tools names {missing[0]!r}, which is no tool of the call ({', '.join(tools)})")
    return within["mode"], tuple(name for name in tools if name in names)


def _function_name(choice: Any) -> str | None:
    """The name in OpenAI's choice of one tool, nested as Chat Completions has it or flat; ``None`` if it is no such."""
    if not isinstance(choice, Mapping) or choice.get("type") != "function":
        return None
    function = choice.get("function", choice)
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else None
