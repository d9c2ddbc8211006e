"""Decoding with lookaheads that a reward judges; it is not lossless, and says so.

A grammar says which texts are possible. Some wishes no grammar can state: that a text mentions some concepts, is
harmless, rhymes. Here a reward, any function of a text, is asked about what the text would become, and decides with the
target model which tokens are taken. The texts are still texts of the grammar, but their distribution is another than
the model's: who wants that one uses :func:`grammarspec.decoding.generate_batch`.

The method is CDSL, constrained decoding with speculative lookaheads (Nakshatri et al. 2024, arXiv:2412.10418), beside
what it is compared with: CDLH, constrained decoding with lookahead heuristics, in the form of NeuroLogic A*esque (Lu
et al. 2022, arXiv:2112.08726), and greedy decoding. **The text of the paper was not at hand**: this follows its
abstract and summaries by others. They give the two scores, the two ways to verify, the four states and what is done in
each. They do not give, and this project has chosen:

* that the reward is that of the whole text so far with the verified tokens and the target's next one;
* that an unaccepted draft is followed by one token, chosen among ``k`` candidates with continuations by the target, and
  that an accepted one of low reward is followed by one token, too, chosen with continuations by the draft;
* that candidates are compared by ``log p + weight * reward`` with greedy continuations of ``d`` tokens;
* all values of thresholds, lengths and weights;
* how it runs under grammars and in batches, which the paper leaves open.
"""

from grammarspec.decoding.lookahead.batch import LookaheadBatch, State, generate_with_lookahead
from grammarspec.decoding.lookahead.options import Lookahead
from grammarspec.decoding.lookahead.rewards import (
    Classifier,
    Coverage,
    InGrammar,
    Keywords,
    Length,
    Mean,
    Reward,
    RewardLike,
    Searched,
    as_reward,
)

__all__ = [
    "Classifier",
    "Coverage",
    "InGrammar",
    "Keywords",
    "Length",
    "Lookahead",
    "LookaheadBatch",
    "Mean",
    "Reward",
    "RewardLike",
    "Searched",
    "State",
    "as_reward",
    "generate_with_lookahead",
]
