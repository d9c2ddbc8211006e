"""What serving engines need beside masks: requests as data, a cache of constraints, masks of a whole batch.

A :class:`Request` is what a client sent. Lowered, it is the compiler's form of its grammar, as bytes that may go to
another process (:mod:`.requests`). A :class:`GrammarCache` makes constraints of both and keeps them, within so many
bytes (:mod:`.cache`, :mod:`.disk`). :func:`fill_bitmasks` writes the masks of a batch, each with an error of its own
(:mod:`.batch`), and a :class:`GuardedMatcher` follows one text without ever raising (:mod:`.guarded`). The engines
themselves are in :mod:`grammarspec.integrations`.
"""

from grammarspec.serving.batch import fill_bitmasks
from grammarspec.serving.cache import CacheStats, GrammarCache
from grammarspec.serving.guarded import GuardedMatcher
from grammarspec.serving.requests import Lowered, Request

__all__ = ["CacheStats", "GrammarCache", "GuardedMatcher", "Lowered", "Request", "fill_bitmasks"]
