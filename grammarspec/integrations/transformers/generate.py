"""``speculative_generate``: the speculative decoding loop inside ``generate`` of transformers.

The settings, logits processors and stopping criteria that ``generate`` has prepared are translated into requests for
:mod:`grammarspec.decoding`; those that cannot be translated are refused with an error that names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import torch
from transformers.generation import logits_process
from transformers.generation import stopping_criteria as criteria

from grammarspec._compiler import Constraint
from grammarspec.decoding.batch import Batch
from grammarspec.decoding.cache import CACHE_NAMES
from grammarspec.decoding.loop import generate_batch
from grammarspec.decoding.proposers import DraftModel, EarlyExit, Forced, Lookup, Proposer
from grammarspec.decoding.proposers.protocol import runs_model
from grammarspec.decoding.requests import Generation, Request
from grammarspec.decoding.sampling import Sampling
from grammarspec.decoding.targets import can_draft
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import GenerationConfig, LogitsProcessorList, PreTrainedModel, StoppingCriteriaList
    from transformers.generation.streamers import BaseStreamer

__all__ = ["speculative_generate"]


def speculative_generate(
    model: PreTrainedModel,
    input_ids: torch.Tensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: GenerationConfig,
    *,
    vocabulary: Vocabulary,
    constraint: Constraint | Sequence[Constraint | None] | None = None,
    draft_model: PreTrainedModel | None = None,
    proposers: Sequence[Proposer] | None = None,
    gamma: int | None = None,
    stop_strings: str | Sequence[str] = (),
    token_streamer: BaseStreamer | None = None,
    **model_kwargs: Any,
) -> torch.Tensor:
    """The speculative loop of :mod:`grammarspec.decoding`, for ``custom_generate`` of transformers.

    ``model.generate(**inputs, custom_generate=speculative_generate, vocabulary=vocabulary, constraint=constraint)``
    works with greedy search and sampling (``temperature``, ``top_k``, ``top_p``, ``min_p``, ``repetition_penalty``),
    ``num_return_sequences``, ``max_new_tokens`` and batches; the arguments from ``vocabulary`` on are given to
    ``generate`` by keyword. Whatever is drafted, a greedy text is the same as that of ``generate`` with a
    :class:`ConstraintLogitsProcessor` (except for rounding errors), and a sampled text has the same distribution and
    depends on ``torch.manual_seed``. There are two differences: ``top_k`` keeps exactly that number of tokens, where
    ``generate`` also keeps all tokens with the score of the last one; and a text ends where the model's context ends.

    Drafts come from forced text, if there is a constraint; from prompt lookup (``prompt_lookup_num_tokens``); from the
    first layers of the model (``assistant_early_exit``); and from a draft model (``draft_model``). If none of the last
    three is given, but there is a constraint, prompt lookup is used as well. A model that cannot take tokens back (one
    with recurrent layers, say) is run without drafts, unless they are asked for.

    ``generate`` does not pass ``assistant_model`` and ``streamer`` on to this function: use ``draft_model`` and
    ``token_streamer`` instead.

    Args:
        model, input_ids, logits_processor, stopping_criteria, generation_config, model_kwargs: as ``generate`` has
            prepared them; ``input_ids`` are integers ``[rows, length]``.
        vocabulary: the vocabulary of the model, for which the constraints were compiled. Its end-of-text tokens must be
            those at which ``generate`` stops.
        constraint: one for all prompts, or one per prompt, with ``None`` for a prompt whose texts are unconstrained.
        draft_model: a causal language model with the same tokens as the model.
        proposers: the proposers, instead of all those above; with an empty list, nothing is drafted.
        gamma: the largest number of tokens of a draft; by default ``prompt_lookup_num_tokens``, or 16.
        stop_strings: a text ends when it contains one of these. No tokenizer is needed for that; if they are given in a
            ``GenerationConfig`` instead, ``generate`` needs one.
        token_streamer: gets the prompt, and then the tokens of the text after each round; for a single text only.

    Returns:
        ``int64[rows, longest]``: the prompts as they were given, each followed by the generated tokens, and padded on
        the right with ``pad_token_id`` (or, if there is none, with the first ``eos_token_id``).

    Raises:
        TypeError: a constraint has another type.
        ValueError: a setting, logits processor, stopping criterion or input of the model is not supported (the message
            names it); the end-of-text tokens of ``generate`` and of the vocabulary differ; the number of constraints is
            not that of the prompts; there is padding after tokens of a prompt; or as
            :func:`~grammarspec.decoding.generate_batch`.
        UnsupportedFeature: as for :func:`~grammarspec.decoding.generate_batch`.
        LimitExceeded, Cancelled, StateCollected: raised by a constraint while its text was generated.
    """
    mask = model_kwargs.pop("attention_mask", None)
    mask = torch.ones_like(input_ids, dtype=torch.bool) if mask is None else mask != 0
    stops = [stop_strings] if isinstance(stop_strings, str) else list(stop_strings)
    refused = [name for name, unused in _UNSUPPORTED.items() if getattr(generation_config, name, None) not in unused]
    options = _sampling_options(generation_config, logits_processor, mask, refused)
    max_length, ends = _limits(stopping_criteria, stops, refused)
    _check_inputs(model_kwargs, mask, refused)
    if refused:
        raise ValueError(f"speculative_generate does not support {', '.join(dict.fromkeys(refused))}")
    if set(ends) != set(vocabulary.eos_token_ids):
        raise ValueError(
            f"generate stops at eos_token_id={ends}, but the vocabulary's texts end with {vocabulary.eos_token_ids}: "
            "give both the same (eos_token_id=[...] to generate, or eos_token_ids=[...] to the vocabulary)"
        )
    samples: int = generation_config.num_return_sequences or 1
    prompts = _prompts(input_ids, mask)[::samples]  # generate has repeated them
    if token_streamer is not None and len(input_ids) > 1:
        raise ValueError(f"token_streamer takes a single text, but {len(input_ids)} are to be generated")
    constraints = _constraints(constraint, len(prompts))
    sampling = Sampling(max_tokens=max_length - input_ids.shape[1], stop=stops, **options)
    constrained = any(each is not None for each in constraints)
    proposers = _proposers(model, generation_config, proposers, draft_model, constrained)
    # The lengths of drafts depend on measured times. So that set_seed repeats texts for which a model drafts, too, each
    # request gets a seed of its own.
    seeded = sampling.temperature > 0 and any(runs_model(proposer) for proposer in proposers)
    requests = [
        Request(
            prompt=prompt,
            matcher=None if each is None else each.matcher(),
            sampling=replace(sampling, seed=int(torch.randint(1 << 62, ()))) if seeded else sampling,
            n=samples,
        )
        for prompt, each in zip(prompts, constraints, strict=True)
    ]
    if gamma is None:
        gamma = generation_config.prompt_lookup_num_tokens or 16
    if token_streamer is None:
        results = generate_batch(model, requests, vocabulary, proposers=proposers, gamma=gamma)
    else:
        streamer: Any = token_streamer  # its class has no types
        streamer.put(input_ids.cpu())
        results = _stream(streamer, model, requests[0], vocabulary, proposers, gamma)
    generations = [text for texts in results for text in texts]
    for text in generations:
        if text.error is not None:
            raise text.error  # a tensor cannot show which text was cut short
    texts = [text.tokens for text in generations]
    pad = ends[0] if generation_config.pad_token_id is None else generation_config.pad_token_id
    longest = max(map(len, texts))
    padded = torch.tensor([text + [pad] * (longest - len(text)) for text in texts], device=input_ids.device)
    return torch.cat((input_ids, padded), -1)


# Settings for which generate makes no processor or criterion, each with the values for which it has no effect.
_UNSUPPORTED: Final[dict[str, tuple[object, ...]]] = {
    "num_beams": (None, 1),
    "num_beam_groups": (None, 1),
    "constraints": (None,),
    "force_words_ids": (None,),
    "penalty_alpha": (None, 0),
    "dola_layers": (None,),
    "use_mtp": (None, False),
    "assistant_ensemble_weight": (None,),
    "speculation_type": (None,),
    "cache_implementation": (None, "dynamic"),
    "return_dict_in_generate": (None, False),
    "output_scores": (None, False),
    "output_logits": (None, False),
    "output_attentions": (None, False),
    "output_hidden_states": (None, False),
}

# For each supported logits processor: the name of its setting (in transformers and in Sampling), and the attribute of
# the processor with the value.
_SUPPORTED: Final[dict[type, tuple[str, str]]] = {
    logits_process.RepetitionPenaltyLogitsProcessor: ("repetition_penalty", "penalty"),
    logits_process.TemperatureLogitsWarper: ("temperature", "temperature"),
    logits_process.TopKLogitsWarper: ("top_k", "top_k"),
    logits_process.TopPLogitsWarper: ("top_p", "top_p"),
    logits_process.MinPLogitsWarper: ("min_p", "min_p"),
}

# For each processor and criterion that generate makes for another setting: the setting, for errors.
_SETTINGS: Final = {
    "UnbatchedClassifierFreeGuidanceLogitsProcessor": "guidance_scale",
    "SequenceBiasLogitsProcessor": "sequence_bias",
    "EncoderRepetitionPenaltyLogitsProcessor": "encoder_repetition_penalty",
    "NoRepeatNGramLogitsProcessor": "no_repeat_ngram_size",
    "EncoderNoRepeatNGramLogitsProcessor": "encoder_no_repeat_ngram_size",
    "NoBadWordsLogitsProcessor": "bad_words_ids",
    "MinLengthLogitsProcessor": "min_length",
    "MinNewTokensLengthLogitsProcessor": "min_new_tokens",
    "PrefixConstrainedLogitsProcessor": "prefix_allowed_tokens_fn",
    "ForcedBOSTokenLogitsProcessor": "forced_bos_token_id",
    "ForcedEOSTokenLogitsProcessor": "forced_eos_token_id",
    "InfNanRemoveLogitsProcessor": "remove_invalid_values",
    "ExponentialDecayLengthPenalty": "exponential_decay_length_penalty",
    "SuppressTokensLogitsProcessor": "suppress_tokens",
    "SuppressTokensAtBeginLogitsProcessor": "begin_suppress_tokens",
    "TopHLogitsWarper": "top_h",
    "TypicalLogitsWarper": "typical_p",
    "EpsilonLogitsWarper": "epsilon_cutoff",
    "EtaLogitsWarper": "eta_cutoff",
    "WatermarkLogitsProcessor": "watermarking_config",
    "SynthIDTextWatermarkLogitsProcessor": "watermarking_config",
    "MaxTimeCriteria": "max_time",
}

# Inputs of the model that generate has prepared, and that the loop does not need: it makes its own.
_PREPARED: Final = frozenset({*CACHE_NAMES, "position_ids", "cache_position", "logits_to_keep", "use_cache"})


def _sampling_options(
    config: GenerationConfig, processors: LogitsProcessorList, mask: torch.Tensor, refused: list[str]
) -> dict[str, Any]:
    """The options of Sampling with the same effect as the logits processors; others are added to ``refused``."""
    options: dict[str, Any] = {"temperature": 1.0}
    seen = set()
    for processor in processors:
        kind = type(processor)
        setting, attribute = _SUPPORTED.get(kind, ("", ""))
        # A processor whose value differs from the setting is one of the user's; so is one that ignores more than the
        # padding of a prompt.
        own = setting and getattr(processor, attribute) != getattr(config, setting)
        spared = getattr(processor, "prompt_ignore_length", None)
        own = own or (spared is not None and not torch.equal(torch.as_tensor(spared).cpu(), mask.int().argmax(1).cpu()))
        if setting and kind not in seen and not own:
            options[setting] = getattr(processor, attribute)
        elif kind is not logits_process.LogitNormalization:  # which does not change the distribution
            refused.append(_SETTINGS.get(kind.__name__, f"the logits processor {kind.__name__}"))
        seen.add(kind)
    return options if config.do_sample else options | {"temperature": 0.0}


def _limits(stopping: StoppingCriteriaList, stops: list[str], refused: list[str]) -> tuple[int, list[int]]:
    """The number of tokens to stop at, and the end-of-text tokens; stop texts are added to ``stops``."""
    lengths: list[int] = []
    ends: list[int] = []
    for criterion in stopping:
        kind = type(criterion)
        if kind is criteria.MaxLengthCriteria:
            lengths.append(criterion.max_length)
        elif kind is criteria.EosTokenCriteria:
            ends += criterion.eos_token_id.tolist()
        elif kind is criteria.StopStringCriteria:
            stops += criterion.stop_strings
        else:
            refused.append(_SETTINGS.get(kind.__name__, f"the stopping criterion {kind.__name__}"))
    return min(lengths), ends


def _check_inputs(inputs: dict[str, Any], mask: torch.Tensor, refused: list[str]) -> None:
    """Add the inputs of the model that the loop would not pass on to ``refused``."""
    refused += [name for name, value in inputs.items() if value is not None and name not in _PREPARED]
    refused += [name for name in CACHE_NAMES if getattr(inputs.get(name), "_is_user_defined", False)]
    positions = inputs.get("position_ids")
    if positions is not None and bool(((positions != mask.cumsum(-1) - 1) & mask).any()):
        refused.append("position_ids")


def _prompts(input_ids: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
    """The tokens of each row, without the padding before them."""
    if bool((mask[:, :-1] & ~mask[:, 1:]).any()):
        raise ValueError("attention_mask has padding after tokens: pad prompts on the left")
    return [row[seen].tolist() for row, seen in zip(input_ids, mask, strict=True)]


def _constraints(
    constraint: Constraint | Sequence[Constraint | None] | None, prompts: int
) -> Sequence[Constraint | None]:
    """The constraint of each prompt."""
    if constraint is None or isinstance(constraint, Constraint):
        return [constraint] * prompts
    for each in constraint:
        if each is not None and not isinstance(each, Constraint):
            raise TypeError(f"expected a Constraint or None, not {type(each).__name__}")
    if len(constraint) != prompts:
        raise ValueError(f"{len(constraint)} constraints for {prompts} prompts")
    return constraint


def _proposers(
    model: PreTrainedModel,
    config: GenerationConfig,
    proposers: Sequence[Proposer] | None,
    draft_model: PreTrainedModel | None,
    constrained: bool,
) -> Sequence[Proposer]:
    """The proposers that the arguments and the settings ask for.

    Raises:
        ValueError: ``proposers`` are given beside settings that they replace.
    """
    lookup, longest, layers = (
        config.prompt_lookup_num_tokens,
        config.max_matching_ngram_size,
        config.assistant_early_exit,
    )
    asked = {"prompt_lookup_num_tokens": lookup, "assistant_early_exit": layers, "draft_model": draft_model}
    given = [name for name, value in asked.items() if value is not None]
    if proposers is not None:
        if given:
            raise ValueError(f"proposers cannot be combined with {', '.join(given)}: give only one of them")
        return proposers
    usual = constrained and can_draft(model)
    chosen: list[Proposer] = [Forced()] if usual else []
    if lookup is not None or (usual and not given):
        chosen.append(Lookup() if longest is None else Lookup(longest))
    if layers is not None:
        chosen.append(EarlyExit(model, layers))
    if draft_model is not None:
        chosen.append(DraftModel(draft_model))
    return chosen


def _stream(
    streamer: Any,
    model: PreTrainedModel,
    request: Request,
    vocabulary: Vocabulary,
    proposers: Sequence[Proposer],
    gamma: int,
) -> list[list[Generation]]:
    """As ``generate_batch`` for a single text, whose tokens go to the streamer after each round."""
    if gamma < 0:
        raise ValueError(f"gamma must be at least 0, not {gamma}")
    with torch.inference_mode():
        batch = Batch(model, [request], vocabulary, proposers=proposers, gamma=gamma, adaptive=True)
        [sequence] = batch.sequences
        done = sequence.prompt_length
        while batch.sequences:
            batch.round()
            streamer.put(torch.tensor(sequence.tokens[done:]))
            done = len(sequence.tokens)
    streamer.end()
    return batch.results()
