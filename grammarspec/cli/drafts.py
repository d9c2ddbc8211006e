"""Reads the option ``--draft``: from its text to functions that make proposers.

Names are checked and files with heads are read before the model is loaded, as loading may take minutes. Proposers are
made afterwards, since they need the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from grammarspec.cli.files import about

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from grammarspec.decoding.proposers import Proposer
    from grammarspec.vocabulary import Vocabulary

    Make: TypeAlias = Callable[[PreTrainedModel, Vocabulary], Proposer]

__all__ = ["read_drafts"]

_EAGLE, _LAYERS = "eagle:", "layers:"


def read_drafts(sources: str) -> list[Make]:
    """Read the option ``--draft``.

    Args:
        sources: the text of the option.

    Returns:
        for each proposer, a function that makes it for a target and its vocabulary. The function raises the errors of
        :func:`grammarspec.models.loading.load_draft` and :class:`grammarspec.decoding.proposers.Eagle`.

    Raises:
        ValueError: ``none`` is given together with other names, a name is empty, or ``layers:`` names no number.
        DraftMismatch: a file does not contain a head.
        MissingPackage: torch or transformers is missing.
        OSError: a file does not exist, or cannot be read.
    """
    from grammarspec.decoding.proposers import Forced, Lookup

    makers: list[Make] = []
    for source in map(str.strip, sources.split(",")):
        match source:
            case "none" if sources.strip() == source:
                pass
            case "forced":
                makers.append(lambda model, vocabulary: Forced())
            case "lookup":
                makers.append(lambda model, vocabulary: Lookup())
            case _ if source.startswith(_LAYERS):
                makers.append(_first_layers(source.removeprefix(_LAYERS)))
            case _ if source.startswith(_EAGLE):
                makers.append(_head(source.removeprefix(_EAGLE).strip()))
            case "none":
                raise ValueError(f"--draft {sources}: 'none' cannot stand beside others")
            case "":
                raise ValueError(f"--draft {sources}: a name is empty")
            case _:
                makers.append(_model(source))
    return makers


def _head(path: str) -> Make:
    """Makes a proposer with the head in a file; for errors see :func:`read_drafts`."""
    from grammarspec.decoding.proposers import Eagle

    if not path:
        raise ValueError(f"--draft {_EAGLE} names no file, as eagle:head.safetensors does")
    saved = Eagle.load(path)

    def make(model: PreTrainedModel, vocabulary: Vocabulary) -> Proposer:
        with about(path):
            return Eagle(saved.head, model, saved.tokens, card=saved.card)

    return make


def _first_layers(count: str) -> Make:
    """A proposer with the target's own first layers; arguments and errors are those of :func:`read_drafts`."""
    from grammarspec.decoding.proposers import EarlyExit

    if not count.strip().isdecimal():
        raise ValueError(f"--draft {_LAYERS}{count} names no number of layers, as layers:8 does")
    return lambda model, vocabulary: EarlyExit(model, int(count))


def _model(name: str) -> Make:
    """Makes a proposer with a smaller model; for errors see :func:`read_drafts`."""
    from grammarspec.decoding.proposers import DraftModel
    from grammarspec.models.loading import load_draft, located

    located(name)
    return lambda model, vocabulary: DraftModel(load_draft(name, vocabulary))
