"""Checks what the loop on the device supports, and makes its drafters; anything else is refused with its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import torch

from grammarspec.decoding.device.cache import StaticCache
from grammarspec.decoding.device.drafters import (
    Drafter,
    ForcedDrafter,
    HeadDrafter,
    LookupDrafter,
    ModelDrafter,
    PreferredDrafter,
)
from grammarspec.decoding.device.runner import StaticRunner
from grammarspec.decoding.proposers import DraftModel, EarlyExit, Forced, HeadProposer, Lookup
from grammarspec.decoding.proposers.protocol import Proposer
from grammarspec.decoding.requests import Request
from grammarspec.decoding.targets import Target, context_length
from grammarspec.decoding.windows import no_rollback, unwrapped
from grammarspec.errors import UnsupportedFeature, UnsupportedModel
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["check", "drafters_for", "ends_of"]

_HINT: Final = "device_loop=False decodes on the host; device_loop='auto' does so by itself where it has to"


def check(
    model: PreTrainedModel | Target, requests: Sequence[Request], proposers: Sequence[Proposer], *, feed: bool
) -> None:
    """Refuse what the loop on the device does not support.

    Args:
        model: the target.
        requests: the requests.
        proposers: the proposers.
        feed: whether forced text is to be appended without running the target (``forced="feed"``).

    Raises:
        UnsupportedFeature: a request or a proposer is not supported; the message says what of it.
        UnsupportedModel: the target, or the model of a proposer, is not a model of transformers, or cannot roll back.
        TypeError: the target is not a model.
    """
    _check_model(model, "the target")
    if feed:
        raise _refusal("forced='feed'")
    for proposer in proposers:
        if type(proposer) not in (Forced, Lookup, DraftModel, EarlyExit, HeadProposer):
            raise _refusal(f"the proposer {type(proposer).__name__}")
        if isinstance(proposer, DraftModel):
            _check_model(proposer.model, "the draft model")
    for number, request in enumerate(requests):
        where = f"requests[{number}]"
        if request.sampling.on_limit == "close":
            raise _refusal("on_limit='close'", where)
        if request.sampling.logprobs:
            raise _refusal("logprobs=True", where)
        matcher = request.matcher
        if matcher is not None and matcher.state != matcher.constraint.start:
            raise _refusal("a matcher that has accepted tokens", where)


def _check_model(model: Any, what: str) -> None:
    inner = unwrapped(model)
    if inner is None:
        raise UnsupportedModel(f"{what} of the loop on the device has to be a model of transformers", hint=_HINT)
    if (refusal := no_rollback(inner)) is not None:
        raise refusal


def _refusal(what: str, where: str = "") -> UnsupportedFeature:
    return UnsupportedFeature(f"the loop on the device does not know {what}", where, _HINT)


def drafters_for(
    proposers: Sequence[Proposer],
    target: StaticRunner,
    vocabulary: Vocabulary,
    *,
    rows: int,
    capacity: int,
    longest: int,
) -> list[Drafter]:
    """The drafters that correspond to the proposers, in the same order; for :class:`Forced` there are up to three.

    Args:
        proposers: the proposers, which :func:`check` has accepted.
        target: the target.
        vocabulary: the tokens of the target.
        rows: the greatest number of rows.
        capacity: the number of slots of caches.
        longest: the greatest number of tokens of a text that a draft model may have to read.

    Raises:
        UnsupportedFeature: the context of a draft model is shorter than that.
        DraftMismatch, UnsupportedModel, ValueError: as the proposers raise when a batch begins.
    """
    found: list[Drafter] = []
    for proposer in proposers:
        if isinstance(proposer, Forced):
            found.append(ForcedDrafter())
            if proposer.preferred:
                found.append(PreferredDrafter(anywhere=False))
        elif isinstance(proposer, Lookup):
            found.append(LookupDrafter(proposer.lengths[0], proposer.lengths[-1]))
        elif isinstance(proposer, DraftModel):
            context = context_length(proposer.model)
            if context is not None and context < longest:
                raise _refusal(f"a draft model with a context of {context} tokens, where texts have up to {longest}")
            proposer.check(vocabulary, target.width)
            shared = isinstance(proposer, EarlyExit)
            if isinstance(proposer, EarlyExit):
                proposer.check_target(target.model)
            cache = target.cache if shared else StaticCache(rows, capacity)
            model: Any = proposer.model
            runner = StaticRunner(model, cache, looks=target.looks)
            found.append(ModelDrafter(proposer.name, runner, proposer.sampler, target.width, shared=shared))
        elif isinstance(proposer, HeadProposer):
            proposer.sampler.check(target.width)
            found.append(HeadDrafter(proposer.head, proposer.sampler, target.width, target.device))
    if any(isinstance(each, PreferredDrafter) for each in found):
        # A guess, but better than none where no model drafts.
        place = next((number for number, each in enumerate(found) if each.runs_model), len(found))
        found.insert(place, PreferredDrafter(anywhere=True))
    return found


def ends_of(tokens: Sequence[int], width: int, device: torch.device) -> torch.Tensor:
    """``bool[width]``, true for the tokens that end texts."""
    ends = torch.zeros(width, dtype=torch.bool)
    ends[torch.tensor(list(tokens))] = True
    return ends.to(device)
