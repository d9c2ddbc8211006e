"""Constrained decoding: what drafts, verifies and commits tokens under masks."""

from grammarspec.decoding.lane import Generation, Logprob, Request
from grammarspec.decoding.loop import generate, generate_batch
from grammarspec.decoding.metrics import Statistics
from grammarspec.decoding.sampling import Sampling

__all__ = ["Generation", "Logprob", "Request", "Sampling", "Statistics", "generate", "generate_batch"]
