"""Parts that adapters of serving engines share: requests as data, a cache of constraints, masks of a whole batch.

A :class:`Request` is what a client has asked for. Lowering it gives a :class:`Lowered`, its grammar in the compiler's
form, which can be sent to another process as bytes (:mod:`.requests`). A :class:`GrammarCache` makes constraints from
either, and keeps them within a bound in bytes (:mod:`.cache`, :mod:`.disk`). :func:`fill_bitmasks` writes the masks of
a batch, and returns an error for each sequence that fails (:mod:`.batch`). A :class:`GuardedMatcher` follows one text,
and keeps errors instead of raising them (:mod:`.guarded`). The adapters are in :mod:`grammarspec.integrations`.
"""

from grammarspec.serving.batch import fill_bitmasks
from grammarspec.serving.cache import CacheStats, GrammarCache
from grammarspec.serving.guarded import GuardedMatcher
from grammarspec.serving.requests import Lowered, Request

__all__ = ["CacheStats", "GrammarCache", "GuardedMatcher", "Lowered", "Request", "fill_bitmasks"]
