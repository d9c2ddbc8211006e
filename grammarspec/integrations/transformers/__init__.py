"""For ``generate`` of transformers: a logits processor, and a decoding loop that replaces the one of ``generate``."""

from grammarspec.errors import needed_by

with needed_by("the integration of transformers"):
    from grammarspec.integrations.transformers.generate import speculative_generate
    from grammarspec.integrations.transformers.processor import ConstraintLogitsProcessor

__all__ = ["ConstraintLogitsProcessor", "speculative_generate"]
