"""What chooses the tokens of a round: whole batches as tensors, or, on the CPU, row by row as far as needed."""

from __future__ import annotations

from grammarspec.decoding.host_chooser import HostChooser, row_by_row
from grammarspec.decoding.processing import Processing

__all__ = ["Choices", "choices_for"]

Choices = Processing | HostChooser
"""Both have ``verify_logits`` and ``propose_logits``, and choose the same tokens."""


def choices_for(processing: Processing, *, looks: bool) -> Choices:
    """What chooses the tokens of a batch.

    Args:
        processing: the sampling options of the rows.
        looks: whether the host may read values of tensors.
    """
    on_host = looks and row_by_row(processing.width, processing.chosen.device)
    return HostChooser(processing) if on_host else processing
