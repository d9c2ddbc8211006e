"""Constrained decoding: sampling under masks, and the loop that drives a model."""

from grammarspec.decoding.loop import Generation, generate
from grammarspec.decoding.metrics import Statistics
from grammarspec.decoding.sampling import Sampling

__all__ = ["Generation", "Sampling", "Statistics", "generate"]
