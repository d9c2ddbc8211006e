"""The generator of a model: requests go in, generated texts come out; constraints are compiled once and kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from grammarspec._compiler import Grammar as CompiledGrammar
from grammarspec.constraint import Constraint, compile
from grammarspec.decoding import Generation, Request, generate_batch
from grammarspec.decoding.conditional import Conditional, generate_conditional
from grammarspec.decoding.lookahead import generate_with_lookahead
from grammarspec.decoding.proposers import Proposer
from grammarspec.decoding.proposers.protocol import runs_model
from grammarspec.decoding.targets import context_length
from grammarspec.grammars.engine import Limits
from grammarspec.grammars.expressions import Grammar
from grammarspec.models.reasoning import Section
from grammarspec.models.streaming import Stopped
from grammarspec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from grammarspec.decoding.lookahead import Lookahead, RewardLike

__all__ = ["KEPT", "Generator"]

KEPT = 64
"""How many compiled constraints, and how many turns with tools, a model keeps: those that were used last."""


class Generator:
    """A loaded model with its proposers and its compiled constraints. Threads that use it take turns.

    Args:
        model: the target.
        vocabulary: its tokens.
        proposers, gamma: as for :func:`grammarspec.decoding.generate_batch`.
        limits: of each constraint; see :func:`grammarspec.compile`.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        vocabulary: Vocabulary,
        proposers: Sequence[Proposer],
        gamma: int,
        limits: Limits,
    ) -> None:
        self._model, self._vocabulary, self._proposers, self._gamma = model, vocabulary, proposers, gamma
        self._limits = limits
        self._constraints: OrderedDict[tuple[CompiledGrammar, Section | None], Constraint] = OrderedDict()
        self._lock = threading.Lock()

    def constraint(self, grammar: Grammar[Any], section: Section | None, gap: int) -> Constraint:
        """The constraint of an answer, compiled on first use.

        Args:
            grammar: of the answer.
            section: the reasoning before it, if any.
            gap: the greatest number of line ends between the two.

        Raises:
            GrammarError: the grammar cannot be enforced.
        """
        key = (grammar.ir, section)
        with self._lock:
            constraint = self._constraints.pop(key, None)
            if constraint is None:
                whole = section.before(grammar, gap, self._vocabulary) if section else grammar
                constraint = compile(whole, self._vocabulary, limits=self._limits)
            self._constraints[key] = constraint
            if len(self._constraints) > KEPT:
                self._constraints.popitem(last=False)
            return constraint

    def check(self, request: Request) -> None:
        """Refuse a request that does not fit the model's context or its own budget, before anything is generated.

        Raises:
            PromptError, BudgetTooSmall, LimitExceeded: as :meth:`grammarspec.decoding.Request.budget`.
        """
        request.budget(context_length(self._model))

    def generate(
        self,
        requests: Sequence[Request],
        stop: threading.Event | None = None,
        on_text: Callable[[bytes], None] | None = None,
        *,
        lookahead: Lookahead | None = None,
        rewards: Sequence[RewardLike] = (),
    ) -> list[Generation]:
        """Generate the texts of requests together.

        Args:
            requests: what to generate.
            stop: generation stops when it is set.
            on_text: called with the next bytes of a text as it grows; for a single text.
            lookahead, rewards: generate with lookaheads, which a reward for each request judges. Without a draft of its
                own, a lookahead takes the model's draft.

        Returns:
            the texts of all requests, in order.

        Raises:
            Stopped: ``stop`` was set.
            ValueError, UnsupportedFeature: as :func:`grammarspec.decoding.generate_batch`.
            TypeError: a draft of a lookahead is none.
        """

        def report(_request: int, _sample: int, data: bytes) -> None:
            if stop is not None and stop.is_set():
                raise Stopped
            if on_text is not None:
                on_text(data)

        with self._lock:
            if stop is not None and stop.is_set():
                raise Stopped
            if lookahead is not None:
                texts = generate_with_lookahead(
                    self._model,
                    requests,
                    self._vocabulary,
                    reward=rewards,
                    lookahead=lookahead,
                    proposers=[each for each in self._proposers if runs_model(each)],
                    on_text=report,
                )
            else:
                texts = generate_batch(
                    self._model,
                    requests,
                    self._vocabulary,
                    proposers=self._proposers,
                    gamma=self._gamma,
                    on_text=report,
                )
        return [text for samples in texts for text in samples]

    def conditional(
        self, requests: Sequence[Request], particles: int, stop: threading.Event | None = None
    ) -> list[Conditional]:
        """Generate the texts of requests together, towards the model's distribution given that they are valid.

        Args:
            requests, stop: as for :meth:`generate`.
            particles: how many texts each is chosen from.

        Returns:
            the texts of all requests, in order.

        Raises:
            Stopped: ``stop`` was set.
            ValueError, UnsupportedFeature: as :func:`grammarspec.decoding.conditional.generate_conditional`.
        """

        def check() -> None:
            if stop is not None and stop.is_set():
                raise Stopped

        with self._lock:
            check()
            texts = generate_conditional(
                self._model,
                requests,
                self._vocabulary,
                particles=particles,
                proposers=self._proposers,
                gamma=self._gamma,
                between=check,
            )
        return [text for samples in texts for text in samples]
