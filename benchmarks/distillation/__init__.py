"""Train the draft of the demo's model on texts that the model writes itself: ``python -m benchmarks.distillation``.

In three steps, each of which can be left out if it is done already: the model answers prompts, half of them under a
grammar (:mod:`.answers`; the prompts are made of templates, :mod:`.prompts`, and :mod:`.words`); a head learns to
predict its distributions and hidden states (:mod:`.training`, of :mod:`.texts`; EAGLE: Li et al. 2024); and what it has
learnt is measured on answers to other prompts (:mod:`.evaluation`).
"""
