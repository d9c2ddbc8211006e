"""The speculative decoding loop: requests go in, generations come out.

Rounds of draft, verify and commit are made by :class:`~grammarspec.decoding.batch.Batch` on the host, or on the device
by :class:`~grammarspec.decoding.device.DeviceBatch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch

from grammarspec._compiler import Matcher
from grammarspec.decoding.batch import Batch, end_token_of
from grammarspec.decoding.device import DeviceBatch
from grammarspec.decoding.proposers.protocol import Proposer
from grammarspec.decoding.requests import Generation, Request, check_requests
from grammarspec.decoding.sampling import Sampling
from grammarspec.decoding.targets import Target, width_of
from grammarspec.decoding.windows import unwrapped
from grammarspec.errors import LimitExceeded, UnsupportedFeature
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["generate", "generate_batch", "on_cuda"]


def generate(
    model: PreTrainedModel | Target,
    prompt: Sequence[int],
    matcher: Matcher | None,
    vocabulary: Vocabulary,
    *,
    sampling: Sampling | None = None,
    proposers: Sequence[Proposer] = (),
    gamma: int = 16,
    adaptive: bool = True,
    forced: Literal["sample", "feed"] = "sample",
    device_loop: bool | Literal["auto"] = "auto",
    on_text: Callable[[bytes], None] | None = None,
) -> Generation:
    """Generate one text.

    Args:
        model, vocabulary, proposers, gamma, adaptive, forced, device_loop: as for :func:`generate_batch`.
        prompt, matcher: as for :class:`Request`.
        sampling: greedy, and at most 512 tokens, if not given.
        on_text: called with the bytes of the text as it grows; a character may be split between calls.

    Raises:
        LimitExceeded, Cancelled, StateCollected: raised by the constraint while the text was generated.
        InvalidLogits: the model's logits are NaN or infinite.
        Truncated: the text was cut short (``on_limit="raise"``).
        ValueError, UnsupportedFeature: as :func:`generate_batch`.
    """
    request = Request(prompt=prompt, matcher=matcher, sampling=sampling or Sampling())
    report = None if on_text is None else lambda _request, _sample, text: on_text(text)
    [[result]] = generate_batch(
        model,
        [request],
        vocabulary,
        proposers=proposers,
        gamma=gamma,
        adaptive=adaptive,
        forced=forced,
        device_loop=device_loop,
        on_text=report,
    )
    if result.error is not None:
        raise result.error
    return result


def generate_batch(
    model: PreTrainedModel | Target,
    requests: Sequence[Request],
    vocabulary: Vocabulary,
    *,
    proposers: Sequence[Proposer] = (),
    gamma: int = 16,
    adaptive: bool = True,
    forced: Literal["sample", "feed"] = "sample",
    device_loop: bool | Literal["auto"] = "auto",
    on_text: Callable[[int, int, bytes], None] | None = None,
) -> list[list[Generation]]:
    """Generate the texts of several requests together.

    The distribution of the texts is that of the masked model alone, whatever is drafted. Greedily, or with a seed, the
    texts themselves are the same, but for rounding in batches of other shapes.

    Args:
        model: the target: a causal language model of transformers, or a :class:`Target`.
        requests: what to generate.
        vocabulary: the target's tokens, for which the matchers' constraints were compiled.
        proposers: where draft tokens come from, in order of priority: at each position, the first that has tokens for
            it appends them. With none, the target chooses each token alone.
        gamma: the greatest number of draft tokens of a row in a round.
        adaptive: draft as many tokens as are expected to pay, up to ``gamma`` and down to none, by the costs and the
            acceptance measured so far in this process (:mod:`grammarspec.decoding.adaptive`). Otherwise drafts are as
            long as proposers make them.
        forced: ``"sample"`` scores every token. ``"feed"`` appends text that the grammar forces, tokenised by
            ``matcher.forced_tokens()``, without scoring it: the same texts are possible, but their probabilities are
            not those of the masked model, which may prefer another tokenisation.
        device_loop: where rounds are made. ``True``: by tensor operations on the model's device, without the host
            (:mod:`grammarspec.decoding.device`); what that loop does not know is an error. ``False``: by the host.
            ``"auto"``: on CUDA devices by the device, as far as it knows all that is asked for; else by the host. The
            texts are the same, or have the same distribution.
        on_text: called with the numbers of request and sample, and the next bytes of that text.

    Returns:
        the ``n`` texts of each request. If the constraint of a text raises an error while it is generated, or the
        model's logits for it are NaN or infinite, that text ends with the error, and the others go on.

    Raises:
        ValueError: a prompt is empty, fills the model's context or has a token that the model does not, a constraint
            is for another vocabulary, the vocabulary is larger than the model's, a matcher is at the end of a text or
            is given to two requests, no whole text fits a budget (``on_limit="close"``), or an argument is out of
            range; or the model returns other numbers of logits than it says.
        DraftMismatch: a proposer drafts what is no token of the target, or draws from another number of tokens.
        TypeError: the model is no target.
        UnsupportedModel: there are proposers, but the model keeps a state that cannot be rolled back, or cannot read a
            ragged batch; or the model cannot be run.
        UnsupportedFeature, LimitExceeded, Cancelled: (``device_loop=True``) the loop on the device does not know what
            is asked for, has no room for so many constraints, or freezing one was cancelled.
    """
    if gamma < 0:
        raise ValueError(f"gamma must be at least 0, not {gamma}")
    if forced not in ("sample", "feed"):
        raise ValueError(f"forced must be 'sample' or 'feed', not {forced!r}")
    if device_loop not in (True, False, "auto"):
        raise ValueError(f"device_loop must be True, False or 'auto', not {device_loop!r}")
    if not requests:
        return []
    if device_loop:
        on_device = _on_device(
            model,
            requests,
            vocabulary,
            device_loop is True,
            proposers=proposers,
            gamma=gamma,
            adaptive=adaptive,
            feed=forced == "feed",
            on_text=on_text,
        )
        if on_device is not None:
            try:
                return on_device.run()
            except UnsupportedFeature:
                # Where the first round could not be captured in a graph, nothing has been generated yet.
                if device_loop is True or on_device.rounds:
                    raise
    with torch.inference_mode():
        batch = Batch(
            model,
            requests,
            vocabulary,
            proposers=proposers if gamma else (),
            gamma=gamma if proposers else 0,
            adaptive=adaptive,
            feed=forced == "feed",
            on_text=on_text,
        )
        while batch.sequences:
            batch.round()
    return batch.results()


def _on_device(
    model: PreTrainedModel | Target, requests: Sequence[Request], vocabulary: Vocabulary, anyway: bool, **options: Any
) -> DeviceBatch | None:
    """The batch of the loop on the device; ``None`` if the loop on the host is to be taken.

    Args:
        model, requests, vocabulary, options: as for :class:`~grammarspec.decoding.device.DeviceBatch`.
        anyway: take it on any device, and raise what is not supported.

    Raises:
        as :class:`~grammarspec.decoding.device.DeviceBatch`, but for what is not supported where that is no error.
    """
    inner = unwrapped(model)
    if not anyway and not on_cuda(inner):
        return None
    check_requests(requests, vocabulary, width_of(model))
    try:
        return DeviceBatch(model, requests, vocabulary, end_token=end_token_of(model, vocabulary), **options)
    except (UnsupportedFeature, LimitExceeded):
        if anyway:
            raise
        return None


def on_cuda(model: PreTrainedModel | None) -> bool:
    """Whether a model is one of transformers on a CUDA device, and on no other device too."""
    if model is None or model.device.type != "cuda":
        return False
    return len(set(getattr(model, "hf_device_map", {}).values())) < 2
