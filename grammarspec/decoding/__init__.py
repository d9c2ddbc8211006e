"""Speculative decoding under grammar masks: requests in, generations out. Drafts are verified by the target model."""

from grammarspec.errors import needed_by

with needed_by("generating texts"):
    from grammarspec.decoding.conditional import Conditional, Evidence, generate_conditional
    from grammarspec.decoding.loop import generate, generate_batch
    from grammarspec.decoding.metrics import Statistics
    from grammarspec.decoding.requests import Generation, Logprob, Request
    from grammarspec.decoding.sampling import Sampling
    from grammarspec.decoding.targets import Target

__all__ = [
    "Conditional",
    "Evidence",
    "Generation",
    "Logprob",
    "Request",
    "Sampling",
    "Statistics",
    "Target",
    "generate",
    "generate_batch",
    "generate_conditional",
]
