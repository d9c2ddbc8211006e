"""How lookaheads are made: :class:`Lookahead` as callers give it, :class:`Plan` with all defaults filled in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from grammarspec.decoding.proposers import DraftModel, EarlyExit, Proposer
from grammarspec.decoding.sampling import Sampling
from grammarspec.decoding.targets import Target

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    Draft: TypeAlias = PreTrainedModel | Target | int | Proposer | Sequence[Proposer]

__all__ = ["Lookahead", "Method", "Plan", "Rollouts", "Verify"]

Method = Literal["cdsl", "cdlh", "greedy"]
Verify = Literal["hard", "sampling"]
Rollouts = Literal["target", "draft"]

_INTEGERS, _NUMBERS = ("d", "k"), ("acceptance", "reward", "weight")
_DEFAULTS: dict[str, Any] = {
    "d": 6, "k": 5, "weight": 10.0, "acceptance": 0.5, "reward": 0.5, "verify": "hard"
}  # fmt: skip
_USED = {
    "cdsl": {"d", "k", "weight", "acceptance", "reward", "verify", "draft", "rollouts"},
    "cdlh": {"d", "k", "weight", "draft", "rollouts"},
    "greedy": set[str](),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookahead:
    """Decoding with lookaheads that a reward judges. It bends the distribution of texts: that is what it is for.

    In a round of ``"cdsl"`` (constrained decoding with speculative lookaheads, arXiv:2412.10418), a draft makes ``d``
    tokens, and one pass of the target verifies them. Two numbers decide: the acceptance score, the fraction of the
    draft that the target accepts; and the reward of the text with the accepted tokens and the token that the target
    puts behind them.

    * Both reach their thresholds: these tokens are committed.
    * The acceptance does not: the draft is of no use, and the target looks ahead by itself. Each of its ``k`` most
      probable next tokens is continued greedily for ``d`` tokens by the target, and the token with the greatest
      ``log p(token) + weight * reward`` is committed, with the reward of the continued text.
    * Only the reward does not: one such token is committed as well, but the draft continues the candidates, as it is
      known to be near the target.

    ``"cdlh"`` (constrained decoding with lookahead heuristics) chooses all tokens in the second way, and is what the
    other is compared with; with ``rollouts="draft"``, in the third. ``"greedy"`` takes the most probable tokens, and
    only computes the reward of the text.

    All of them work under the mask of a grammar, which holds for the draft, the target and all continuations.

    Attributes:
        method: ``"cdsl"``, ``"cdlh"`` or ``"greedy"``. The other attributes that a method does not use cannot be given.
        d: tokens of a lookahead, at least 0; 6 if not given.
        k: candidates, at least 1; 5 if not given.
        weight: of the reward among candidates, in nats; 10 if not given.
        acceptance: the threshold of the acceptance score, from 0 to 1; 0.5 if not given.
        reward: the threshold of the reward; 0.5 if not given.
        verify: how the draft is verified. ``"hard"``, the default, accepts its longest beginning that the target
            would choose greedily (temperature 0). ``"sampling"`` is speculative sampling, for a temperature above 0;
            with a seed, draft and target share the noise that chooses tokens. Candidates are compared greedily in
            both.
        draft: what drafts: a smaller model with the same tokens, a number of the target's first layers
            (:class:`~grammarspec.decoding.proposers.EarlyExit`), or proposers. ``None``: the draft of the
            :class:`grammarspec.Model`, if it has one.
        rollouts: what continues the candidates (in ``"cdsl"``: those of a low reward): the target, or the draft, which
            must be a model then. Not given, it is the draft in ``"cdsl"`` if that is a model, else the target.

    Raises:
        TypeError: an attribute has a value of another type.
        ValueError: one is out of range, or is not used by the method.
    """

    method: Method = "cdsl"
    d: int | None = None
    k: int | None = None
    weight: float | None = None
    acceptance: float | None = None
    reward: float | None = None
    verify: Verify | None = None
    draft: Draft | None = None
    rollouts: Rollouts | None = None

    def __post_init__(self) -> None:
        if self.method not in _USED:
            raise ValueError(f"method must be 'cdsl', 'cdlh' or 'greedy', not {self.method!r}")
        for name in (*_INTEGERS, *_NUMBERS):
            value = getattr(self, name)
            kinds, what = (int, "a whole number") if name in _INTEGERS else (int | float, "a number")
            if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
                raise TypeError(f"{name} must be {what}, not {value!r}")
        for name in ("d", "k", "weight", "acceptance", "reward", "verify", "draft", "rollouts"):
            if getattr(self, name) is not None and name not in _USED[self.method]:
                raise ValueError(f"{name} means nothing to the method {self.method!r}: leave it out")
        if self.d is not None and self.d < 0:
            raise ValueError(f"d must be at least 0, not {self.d}")
        if self.k is not None and self.k < 1:
            raise ValueError(f"k must be at least 1, not {self.k}")
        if self.weight is not None and not 0 <= self.weight < math.inf:
            raise ValueError(f"weight must be at least 0 and finite, not {self.weight}")
        if self.acceptance is not None and not 0 <= self.acceptance <= 1:
            raise ValueError(f"acceptance must be from 0 to 1, not {self.acceptance}")
        if self.reward is not None and not math.isfinite(self.reward):
            raise ValueError(f"reward, the threshold, must be finite, not {self.reward}")
        if self.verify not in (None, "hard", "sampling"):
            raise ValueError(f"verify must be 'hard' or 'sampling', not {self.verify!r}")
        if self.rollouts not in (None, "target", "draft"):
            raise ValueError(f"rollouts must be 'target' or 'draft', not {self.rollouts!r}")
        if isinstance(self.draft, str):
            raise TypeError(f"draft takes a model that is loaded, not {self.draft!r}")
        if self.method == "cdlh" and self.draft is not None and self.rollouts != "draft":
            raise ValueError("the method 'cdlh' uses a draft with rollouts='draft' only")

    def check_sampling(self, sampling: Sampling) -> None:
        """Refuse sampling options that do not fit.

        Raises:
            ValueError: a temperature is given for what is chosen greedily, or none for ``verify="sampling"``; or
                log-probabilities are asked for.
        """
        if self.verify == "sampling" and sampling.temperature == 0:
            raise ValueError("verify='sampling' needs a temperature above 0: at 0 it is what 'hard' does")
        if self.verify != "sampling" and sampling.temperature != 0:
            means = "verify='hard'" if self.method == "cdsl" else f"the method {self.method!r}"
            hint = "; verify='sampling' draws tokens" if self.method == "cdsl" else ""
            raise ValueError(
                f"{means} takes the best tokens, and temperature={sampling.temperature} would change nothing{hint}"
            )
        if sampling.logprobs:
            raise ValueError("logprobs are those of the masked model's own choices: they are not kept with lookaheads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A :class:`Lookahead` for one target, with all defaults filled in; see there for what each means.

    Attributes:
        proposers: what drafts.
        draft: the draft model that continues candidates; ``None``: the target does.
    """

    method: Method
    d: int
    k: int
    weight: float
    acceptance: float
    reward: float
    proposers: Sequence[Proposer]
    draft: DraftModel | None

    @classmethod
    def of(cls, lookahead: Lookahead, model: PreTrainedModel | Target, otherwise: Sequence[Proposer] = ()) -> Plan:
        """The plan for a target.

        Args:
            lookahead: what the caller gave.
            model: the target.
            otherwise: what drafts if the caller gave no draft.

        Raises:
            TypeError: the draft is none; or it is layers of a target that is no model of transformers.
            ValueError: there is no draft, or none that can continue candidates; or it has a number of layers that the
                target does not have.
        """
        filled = {name: _filled(lookahead, name) for name in ("d", "k", "weight", "acceptance", "reward")}
        cdsl = lookahead.method == "cdsl"
        asked = (cdsl and filled["d"] > 0) or lookahead.rollouts == "draft"
        proposers = _proposers(lookahead.draft, model, otherwise) if asked else []
        if asked and not proposers:
            raise ValueError(
                "there is no draft to look ahead: give Lookahead(draft=...) a smaller model with the same tokens, "
                "or a number of the target's first layers"
            )
        models = [each for each in proposers if isinstance(each, DraftModel)]
        if lookahead.rollouts == "draft" and not models:
            raise ValueError("rollouts='draft' needs a draft that is a model or the target's first layers")
        by_draft = models and (lookahead.rollouts or "draft" if cdsl else lookahead.rollouts) == "draft"
        return cls(method=lookahead.method, proposers=proposers, draft=models[0] if by_draft else None, **filled)


def _filled(lookahead: Lookahead, name: str) -> Any:
    value = getattr(lookahead, name)
    if value is None:
        return 0 if lookahead.method == "greedy" and name == "d" else _DEFAULTS[name]
    return value


def _proposers(draft: Any, model: PreTrainedModel | Target, otherwise: Sequence[Proposer]) -> list[Proposer]:
    """What drafts, as proposers.

    Raises:
        TypeError, ValueError: as :meth:`Plan.of`.
    """
    if draft is None:
        return list(otherwise)
    if isinstance(draft, Sequence):
        return list(cast("Sequence[Proposer]", draft))
    found: Any = draft
    if isinstance(draft, int) and not isinstance(draft, bool):
        found = EarlyExit(cast(Any, model), draft)
    elif not callable(getattr(draft, "propose", None)):
        found = DraftModel(cast(Any, draft))
    return [found]
