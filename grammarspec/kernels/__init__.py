"""Kernels for devices, and what decides where they run.

A function of tensors whose speed on a device matters is written once in plain torch, where its meaning belongs (masks
in :mod:`grammarspec.bitmask`, noise and verification in :mod:`grammarspec.decoding`), and once here in Triton. The
first is the **reference**: it says what is right, and runs wherever torch runs. :mod:`~grammarspec.kernels.dispatch`
makes an operator of ``torch.library`` of the two (namespace ``grammarspec``) and, where kernels are asked for, takes
the kernel where there is one: on CUDA devices, if Triton is installed. Callers do not know the difference.

No kernel waits for the host or makes a decision on it: grids follow from shapes alone, so that launches can be captured
in a CUDA graph (after one call, in which Triton compiles). All sums are taken in a fixed order, without atomic
additions: equal inputs have equal results.

:mod:`~grammarspec.kernels.dispatch` is the only module here that is imported where there is no Triton.
"""
