"""What the layers of a model see: whether it can read ragged batches and forget tokens, and how far each layer looks.

Models of transformers are looked at here, within wrappers of PEFT and ``torch.compile`` too. What a layer sees is
decided by the text decoder, which may be a part of a larger model: by its configuration, as is the cache that
transformers makes for it, and by its code. Where the two disagree, the model is refused.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from grammarspec.errors import UnsupportedModel

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

__all__ = ["SHARED_KEYS", "attention_windows", "decoder_of", "no_rollback", "unwrapped"]

# For each kind of attention that looks back a limited number of tokens: the entry of the configuration that has the
# number, and the function of transformers that makes masks of this kind.
_LIMITED: Final = {
    "sliding_attention": ("sliding_window", "create_sliding_window_causal_mask"),
    "chunked_attention": ("attention_chunk_size", "create_chunked_causal_mask"),
}
_FULL: Final = "full_attention"

SHARED_KEYS: Final = "grammarspec_shared_keys"
"""The name in transformers of :mod:`grammarspec.decoding.attention`, which replaces ``sdpa`` during a pass."""


def unwrapped(model: Any) -> PreTrainedModel | None:
    """The model of transformers that is called in the end: itself, or within ``torch.compile`` or adapters of PEFT.

    Args:
        model: any object.

    Returns:
        ``None`` if it is no model of transformers.

    Raises:
        UnsupportedModel: an adapter puts tokens of its own before the prompt, or it is an encoder-decoder model.
    """
    from transformers import PreTrainedModel

    while not isinstance(model, PreTrainedModel):
        if hasattr(model, "get_base_model"):
            if model.active_peft_config.is_prompt_learning:
                name = type(model.active_peft_config).__name__
                hint = "adapters that change weights (LoRA and its like) are supported"
                raise UnsupportedModel(f"the adapter {name} puts tokens of its own before the prompt", hint=hint)
            model = model.get_base_model()
        elif hasattr(model, "_orig_mod"):
            model = model._orig_mod
        else:
            return None
    if model.config.is_encoder_decoder:
        hint = "only decoder-only models are supported"
        raise UnsupportedModel(f"{type(model).__name__} is an encoder-decoder model", hint=hint)
    return model


def decoder_of(model: PreTrainedModel) -> PreTrainedModel:
    """The part of a model that reads tokens of text: the innermost one that has their embedding.

    Args:
        model: as :func:`unwrapped` returns it.
    """
    from transformers import PreTrainedModel

    try:
        embedding = model.get_input_embeddings()
    except NotImplementedError:
        return model
    parts = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    return next((part for part in reversed(parts) if any(each is embedding for each in part.modules())), model)


def no_rollback(model: PreTrainedModel) -> UnsupportedModel | None:
    """Why a model cannot take tokens back in a batch of rows of different lengths, or ``None`` if it can.

    Args:
        model: as :func:`unwrapped` returns it.
    """
    name, config = type(model).__name__, decoder_of(model).config.get_text_config()
    hint = "it can only be a target, and without drafts: proposers=[] (draft=[] for gs.Model)"
    unknown = [kind for kind, _ in _layers(config) if kind != _FULL and kind not in _LIMITED]
    if unknown or model._is_stateful:
        kind = unknown[0] if unknown else "recurrent"
        return UnsupportedModel(f"{name} has layers of the kind {kind!r}, whose state cannot be set back", hint=hint)
    if "position_ids" not in inspect.signature(model.forward).parameters or getattr(config, "alibi", False):
        return UnsupportedModel(f"{name} cannot be told at which positions it reads", hint=hint)
    if not model._can_compile_fullgraph:
        why = "transformers does not run it with a static cache (its class has _can_compile_fullgraph = False)"
        return UnsupportedModel(f"{name} does not read a batch of different lengths: {why}", hint=hint)
    return None


def attention_windows(model: PreTrainedModel) -> dict[str, int]:
    """The kinds of attention layers of a model, and how many tokens each looks back (0: all of them).

    Args:
        model: as :func:`unwrapped` returns it.

    Raises:
        UnsupportedModel: the model cannot take tokens back; its attention is implemented in a way that takes no masks;
            or its configuration names windows that its code does not know.
    """
    if (refusal := no_rollback(model)) is not None:
        raise refusal
    decoder = decoder_of(model)
    config = decoder.config.get_text_config()
    if config._attn_implementation not in ("eager", "sdpa", SHARED_KEYS):
        what = f"{type(model).__name__} with the attention implementation {config._attn_implementation!r}"
        raise UnsupportedModel(what, hint="load it with attn_implementation='sdpa' (or 'eager')")
    sizes: dict[str, set[int | None]] = {}
    for kind, layer in _layers(config):
        sizes.setdefault(kind, set()).add(_looks_back(layer, kind))
    return {kind: _window(decoder, kind, found) for kind, found in sizes.items()}


def _layers(config: PretrainedConfig) -> list[tuple[str, PretrainedConfig]]:
    """The kind and the configuration of each layer of a decoder, as for the cache that transformers makes for it."""
    different = getattr(config, "is_heterogeneous", False)
    configs = list(config.per_layer_config) if different else [config]
    kinds = getattr(config, "layer_types", None) or [_kind(each) for each in configs]
    return list(zip(kinds, configs if different else configs * len(kinds), strict=True))


def _kind(config: PretrainedConfig) -> str:
    """The kind of a layer whose configuration does not name it."""
    return next((kind for kind in _LIMITED if _looks_back(config, kind) is not None), _FULL)


def _looks_back(config: PretrainedConfig, kind: str) -> int | None:
    """How many tokens a layer looks back, if its configuration says so."""
    return getattr(config, _LIMITED[kind][0], None) if kind in _LIMITED else 0


def _window(decoder: PreTrainedModel, kind: str, sizes: set[int | None]) -> int:
    """How many tokens the layers of a kind look back.

    Args:
        decoder: the decoder.
        kind: the kind.
        sizes: what the configurations of these layers say.

    Raises:
        UnsupportedModel: that is not clear.
    """
    if kind not in _LIMITED:
        return 0
    entry, function = _LIMITED[kind]
    size, *more = sizes
    name = type(decoder).__name__
    if more or size is None:
        found = "none" if not more else "several"
        raise UnsupportedModel(f"{name} has layers of the kind {kind!r}, and for them {found} of {entry}")
    if not any(function in _names_used(parent) for parent in type(decoder).__mro__):
        what = f"the configuration of {name} names a window ({entry}={size}), but its code makes no masks for it"
        raise UnsupportedModel(what, hint=f"if the model was trained without it, set {entry} = None there")
    return size


def _names_used(kind: type) -> set[str]:
    """The names that the ``forward`` of a class uses, with the functions inside it; not counting what is inherited."""
    forward = inspect.unwrap(vars(kind)["forward"]) if "forward" in vars(kind) else None
    found: set[str] = set()
    codes = [forward.__code__] if inspect.isfunction(forward) else []
    while codes:
        code = codes.pop()
        found.update(code.co_names)
        codes += [inner for inner in code.co_consts if inspect.iscode(inner)]
    return found
