"""What a server does with a grammar, call by call, each of them measured."""

from __future__ import annotations

import random
import signal
from dataclasses import dataclass
from typing import Any

import numpy as np

import grammarspec as gs
from tests.hostile.cases import Case
from tests.hostile.measuring import Cost, Meter, memory

__all__ = ["Walk"]

_TOKENS = 60  # of a walk
_AT_ONCE = 10_000  # tokens of an ending that are accepted by one call
_EACH = 12  # tokens between the calls that are not made for every token
_PATIENCE = 3  # seconds for the other implementation, which may be slow where ours must not be


class Wrong(Exception):
    """A mask or a text that should not be."""


@dataclass
class Walk:
    """A grammar is made, compiled, walked at random, and its text completed."""

    case: Case
    vocabulary: gs.Vocabulary
    meter: Meter
    random: random.Random

    def run(self) -> bool | None:
        """Make all calls. Whether the text that was written was judged, too; ``None`` if there was no time for that.

        Raises:
            Wrong: a mask was empty, a token of a mask was refused, or the text is not of the language.
            Exception: what a call raised.
        """
        call = self.meter
        grammar = call("front-end", self._made)
        before = memory("VmRSS")
        constraint = call("compile", self._compiled, grammar)
        matcher = constraint.matcher()
        rows = gs.allocate_bitmask(1, self.vocabulary.size)
        written = self._begin(matcher)
        call("first mask", matcher.fill_bitmask, rows)
        while len(written) < _TOKENS + len(self.case.begin) and (token := self._chosen(rows[0])) is not None:
            if not call("accept", matcher.accept_token, token):
                raise Wrong(f"token {token} of the mask is refused")
            written.append(token)
            call("mask", matcher.fill_bitmask, rows)
            if len(written) % _EACH == 0:
                self._asides(matcher)
        call.costs.append(Cost("all of the walk", 0, memory("VmRSS") - before))
        self._drafted(grammar, written)
        ending = call("completion", constraint.shortest_completion, matcher.state)
        for first in range(0, len(ending), _AT_ONCE):
            some = ending[first : first + _AT_ONCE]
            if call("accept an ending", matcher.accept_tokens, some) != len(some):
                raise Wrong("the shortest completion is refused")
        if not matcher.is_accepting:
            raise Wrong("the shortest completion is no ending")
        return self._judged(self.vocabulary.decode(written + ending))

    def _made(self) -> gs.Grammar:
        grammar = self.case.make()
        _ = grammar.ir  # which a combined grammar makes when it is asked for
        return grammar

    def _compiled(self, grammar: gs.Grammar) -> gs.Constraint:
        return gs.compile(grammar, self.vocabulary, cancel=gs.CancelToken())  # so that it is not found again

    def _begin(self, matcher: gs.Matcher) -> list[int]:
        """Walk what the case begins with."""
        tokens = self.vocabulary.spell(self.case.begin.encode()) if self.case.begin else []
        for first in range(0, len(tokens), _EACH):
            some = tokens[first : first + _EACH]
            if (taken := self.meter("accept a beginning", matcher.accept_tokens, some)) != len(some):
                raise Wrong(f"the beginning is refused at {self.vocabulary.token_bytes(some[taken])!r}")
        return tokens

    def _chosen(self, row: Any) -> int | None:
        """A random token of a mask that goes on, rather a long one; ``None`` if there is none but the end."""
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: self.vocabulary.size]
        allowed = np.flatnonzero(bits)
        if not len(allowed):
            raise Wrong("an empty mask")
        some = self.random.choices(allowed.tolist(), k=3)
        return max((t for t in some if t not in self.vocabulary.eos_token_ids), key=self._length, default=None)

    def _length(self, token: int) -> int:
        return len(self.vocabulary.token_bytes(token) or b"")

    def _asides(self, matcher: gs.Matcher) -> None:
        call = self.meter
        call("forced bytes", matcher.forced_bytes)
        call("forced tokens", matcher.forced_tokens)
        call("next bytes", matcher.next_bytes)
        call("fork and roll back", lambda: matcher.fork().rollback(_EACH))

    def _drafted(self, grammar: gs.Grammar, tokens: list[int]) -> None:
        """The last tokens as the draft of a new constraint that knows nothing yet."""
        before, draft = tokens[:-_TOKENS], tokens[-_TOKENS:]
        matcher = self.meter("compile again", self._compiled, grammar).matcher()
        if self.meter("accept all", matcher.accept_tokens, before) != len(before):
            raise Wrong("accepted one by one, refused together")
        if self.meter("validate", matcher.validate_tokens, draft) != len(draft):
            raise Wrong("accepted, but not valid")
        rows = gs.allocate_bitmask(len(draft) + 1, self.vocabulary.size)
        if self.meter("draft", matcher.fill_draft_bitmasks, draft, rows) != len(draft) or not rows.any(axis=1).all():
            raise Wrong("the draft is refused, or one of its masks empty")

    def _judged(self, text: bytes) -> bool | None:
        """What the other implementation says, if it says it in time."""

        def late(*_: object) -> None:
            raise TimeoutError

        signal.signal(signal.SIGALRM, late)
        signal.alarm(_PATIENCE)
        try:
            verdict = self.case.judge(text.decode())
        except (TimeoutError, RecursionError):
            return None
        finally:
            signal.alarm(0)
        if verdict is False:
            raise Wrong(f"not of the language: {text[:200]!r}")
        return verdict
