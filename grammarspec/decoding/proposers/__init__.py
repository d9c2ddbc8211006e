"""Proposers: where draft tokens come from. Each is a module of its own behind the interface in ``protocol``."""

from grammarspec.decoding.proposers.eagle import Eagle
from grammarspec.decoding.proposers.early_exit import EarlyExit
from grammarspec.decoding.proposers.forced import Forced
from grammarspec.decoding.proposers.head import HeadProposer, HiddenStateHead
from grammarspec.decoding.proposers.lookup import Lookup
from grammarspec.decoding.proposers.model import DraftModel
from grammarspec.decoding.proposers.protocol import BatchView, Proposer

__all__ = [
    "BatchView",
    "DraftModel",
    "Eagle",
    "EarlyExit",
    "Forced",
    "HeadProposer",
    "HiddenStateHead",
    "Lookup",
    "Proposer",
]
