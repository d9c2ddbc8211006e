"""Kernels in Triton for CUDA devices, and the choice between them and their references.

A function of tensors whose speed on a device matters is written twice: in plain torch, in the module to which it
belongs (masks in :mod:`grammarspec.bitmask`, noise and verification in :mod:`grammarspec.decoding`), and here in
Triton. The version in torch is the **reference**: it defines the right result, and runs wherever torch runs.
:mod:`~grammarspec.kernels.dispatch` makes one operator of ``torch.library`` from the two (namespace ``grammarspec``).
It runs the kernel on CUDA devices where Triton is installed, and the reference elsewhere. Callers use the same function
in both cases.

No kernel needs the host while it runs, and grids depend on shapes only, so launches can be captured in a CUDA graph
(after one call, in which Triton compiles). All sums are computed in a fixed order, without atomic additions: equal
inputs give equal results.

:mod:`~grammarspec.kernels.dispatch` is the only module of this package that can be imported without Triton.
"""
