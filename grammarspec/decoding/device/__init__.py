"""Speculative decoding on the device: rounds of tensor operations with static shapes, which do not wait for the host.

A round drafts tokens, steps states of frozen constraints, applies masks, runs the target, verifies and commits. It is
one function of tensors (:mod:`~grammarspec.decoding.device.round`), which is captured as a CUDA graph on CUDA. The host
launches rounds, and reads the report of each round one round later (:class:`DeviceBatch`).
"""

from grammarspec.decoding.device.loop import DeviceBatch

__all__ = ["DeviceBatch"]
