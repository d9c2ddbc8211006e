"""Speculative decoding on the device, without the host in the loop: rounds of tensor operations of static shapes.

Draft tokens, states of frozen constraints, masks, the target's pass, verification and commit are one function of
tensors (:mod:`~grammarspec.decoding.device.round`), which is captured as a CUDA graph where there is CUDA. The host
launches rounds and reads what came of them one round late (:class:`DeviceBatch`).
"""

from grammarspec.decoding.device.loop import DeviceBatch

__all__ = ["DeviceBatch"]
