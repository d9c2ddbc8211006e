"""Frozen constraints: whole automata as flat arrays, so that a device can step and mask without the host.

``constraint.freeze()`` makes a :class:`FrozenConstraint`; a :class:`FrozenArena` holds many of them in arrays that
never move.
"""

from grammarspec.frozen.arena import ArenaEntry, ArenaRoom, FrozenArena
from grammarspec.frozen.automaton import FrozenConstraint

__all__ = ["ArenaEntry", "ArenaRoom", "FrozenArena", "FrozenConstraint"]
