"""Files with heads of the EAGLE kind: safetensors, whose metadata tell of the head's shape and of how it was made.

A path comes in, and a head with its tokens comes out; or the other way round. A file may come from anywhere: it is
checked before memory is taken for what it tells of.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch

from grammarspec.decoding.proposers.eagle_head import EagleConfig, EagleHead
from grammarspec.errors import DraftMismatch

__all__ = ["SavedHead", "load_head", "save_head"]

_FLOATS, _INTEGERS = ("F16", "BF16", "F32", "F64"), ("I32", "I64")  # as safetensors names dtypes


@dataclass(frozen=True, slots=True)
class SavedHead:
    """A head as it is in a file.

    Attributes:
        head: the head, in float32.
        tokens: ``int64[selected]``, the tokens that it can draft.
        card: what is known about it.
    """

    head: EagleHead
    tokens: torch.Tensor
    card: Mapping[str, Any]


def load_head(path: str | Path) -> SavedHead:
    """What is in a file.

    Args:
        path: a file that :func:`save_head` has written.

    Raises:
        OSError: there is no such file.
        DraftMismatch: it is no head.
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not stat.S_ISREG(path.stat().st_mode):
        raise DraftMismatch(f"{path} is no file of weights, as it is no regular file")
    try:
        with safe_open(path, "pt") as file:
            return _read(file)
    except SafetensorError as error:
        raise DraftMismatch(f"{path} is no file of weights: {error}") from None
    except (TypeError, ValueError) as error:
        raise DraftMismatch(f"{path} has no head of the EAGLE kind: {error}") from None


def save_head(path: str | Path, head: EagleHead, tokens: torch.Tensor, card: Mapping[str, Any]) -> None:
    """Save a head: its weights in float16, its shape and its card.

    Args:
        path: the file, of the format safetensors.
        head: the head.
        tokens: ``int64[selected]``, the tokens that it can draft.
        card: what is known about it; JSON.
    """
    from safetensors.torch import save_file

    weights = {name: weight.detach().to("cpu", torch.float16) for name, weight in head.state_dict().items()}
    weights["tokens"] = tokens.to("cpu", torch.int32)
    told = {"eagle": json.dumps(asdict(head.config)), "card": json.dumps(card)}
    save_file({name: weight.contiguous() for name, weight in weights.items()}, path, told)


def _read(file: Any) -> SavedHead:
    """The head in an open file of safetensors.

    Raises:
        ValueError, TypeError: there is none.
    """
    told = file.metadata() or {}
    if "eagle" not in told:
        raise ValueError("its metadata tell of none")
    config, card = _config(told["eagle"]), _json_object(told.get("card", "{}"), "card")
    names = list(file.keys())
    with torch.device("meta"):  # shapes without memory: nothing has compared them with the file yet
        shapes = {name: list(weight.shape) for name, weight in EagleHead(config).state_dict().items()}
    _check_names(names, [*shapes, "tokens"])
    for name in names:
        described = file.get_slice(name)
        _check_tensor(name, described.get_dtype(), described.get_shape(), shapes.get(name))
    weights = {name: file.get_tensor(name).float() for name in shapes}
    if broken := [name for name, weight in weights.items() if not weight.isfinite().all()]:
        raise ValueError(f"{broken[0]} holds numbers that are not finite")
    tokens = file.get_tensor("tokens").long()
    if int(tokens.min()) < 0 or len(tokens.unique()) < len(tokens):
        raise ValueError("tokens holds a negative number, or the same one twice")
    head = EagleHead(config)
    head.load_state_dict(weights)
    return SavedHead(head, tokens, card)


def _config(text: str) -> EagleConfig:
    """The shape of a head that metadata tell of.

    Raises:
        ValueError, TypeError: they tell of none.
    """
    given = _json_object(text, "eagle")
    if unknown := sorted(given.keys() - {field.name for field in fields(EagleConfig)}):
        raise ValueError(f"eagle of its metadata has the unknown entry {unknown[0]!r}")
    if missing := [field.name for field in fields(EagleConfig) if field.default is MISSING and field.name not in given]:
        raise ValueError(f"eagle of its metadata lacks {missing[0]!r}")
    return EagleConfig(**given)


def _json_object(text: str, name: str) -> dict[str, Any]:
    """The JSON object that an entry of the metadata is.

    Raises:
        ValueError: it is something else.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} of its metadata is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{name} of its metadata must be a JSON object")
    return value


def _check_names(found: list[str], wanted: list[str]) -> None:
    """Check which tensors a file has.

    Raises:
        ValueError: one is missing, or there is another.
    """
    if missing := [name for name in wanted if name not in found]:
        raise ValueError(f"it lacks the tensor {missing[0]!r}")
    if unknown := [name for name in found if name not in wanted]:
        raise ValueError(f"it has the tensor {unknown[0]!r}, which no such head has")


def _check_tensor(name: str, dtype: str, shape: list[int], wanted: list[int] | None) -> None:
    """Check what a file tells of a tensor.

    Args:
        name: the tensor.
        dtype, shape: what the file tells of it.
        wanted: its shape by the shape of the head; ``None`` for the tokens.

    Raises:
        ValueError: it should be different.
    """
    known = _INTEGERS if wanted is None else _FLOATS
    if dtype not in known:
        raise ValueError(f"{name} has the dtype {dtype}, which should be one of {', '.join(known)}")
    if wanted is None and (len(shape) != 1 or not shape[0]):
        raise ValueError(f"{name} has the shape {shape}, which should be one of some tokens")
    if wanted is not None and shape != wanted:
        raise ValueError(f"{name} has the shape {shape}, which should be {wanted}")
