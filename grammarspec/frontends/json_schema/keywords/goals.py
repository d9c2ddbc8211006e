"""The interface through which assertions gather, negate and compare other schemas.

A *goal* is a sequence of subschemas that must hold of one value at once. Assertions such as ``allOf`` apply other
schemas to the same value, so they must gather those schemas, negate them, or make branches exclude each other. That is
implemented in the package ``meaning``, which imports this one; assertions get it as an argument of this type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.keywords.outcomes import Outcome
from grammarspec.grammars.budget import Budget

__all__ = ["Goals"]


class Goals(Protocol):
    """Gathers goals into conjunctions, and derives schemas. Implemented by :class:`.Analysis`.

    Attributes:
        budget: the work that the call may still do.
        comparisons: how many goals have been tested for emptiness, which is limited.
    """

    budget: Budget
    comparisons: int

    def collect(self, schema: Subschema, facts: Conjunction) -> None:
        """Add the constraints of one subschema to a conjunction.

        Raises:
            GrammarError: a keyword is malformed or cannot be enforced.
        """
        ...

    def gather(self, goal: Sequence[Subschema]) -> Conjunction:
        """The conjunction of a goal: the constraints of all its subschemas in one record.

        Raises:
            GrammarError: a keyword is malformed or cannot be enforced.
        """
        ...

    def resolve(self, schema: Subschema, reference: str, keyword: str) -> Subschema:
        """The subschema that a reference points to.

        Raises:
            GrammarError: it points to nothing.
        """
        ...

    def target(self, schema: Subschema, reference: str, keyword: str) -> Subschema:
        """The subschema that a reference points to, after a check that no cycle of references applies to one value.

        Raises:
            GrammarError: it points to nothing, or leads back to itself without descending to a part of the value.
        """
        ...

    def negate(self, schema: Subschema) -> Subschema:
        """A schema for exactly the values that another one refuses.

        Raises:
            GrammarError: the schema is malformed, or its negation cannot be expressed.
        """
        ...

    def exclusive(self, origin: Subschema, branches: Sequence[Subschema]) -> Sequence[Subschema]:
        """Alternatives that together are equivalent to ``oneOf``, and of which at most one holds for any value.

        Raises:
            GrammarError: there are too many branches, or one that overlaps others cannot be negated.
        """
        ...

    def choice(self, alternatives: Sequence[Subschema]) -> Subschema:
        """The schema ``anyOf`` of some alternatives; for the same alternatives, the same object."""
        ...

    def enumerated(self, origin: Subschema, branches: Sequence[Subschema], *, differ: bool) -> Sequence[Subschema]:
        """The branches of ``anyOf`` or ``oneOf``, with one ``enum`` in place of those that only list constants.

        Args:
            differ: whether those that list constants stay as they are if two of them have one in common.
        """
        ...

    def outcomes(self, schema: Subschema) -> Sequence[Outcome]:
        """The outcomes of all keywords but ``unevaluatedProperties`` and ``unevaluatedItems``.

        Exactly one of them holds for a value that satisfies those keywords.

        Raises:
            GrammarError: there are too many, or one cannot be expressed.
        """
        ...

    def no_text(self, wanted: Sequence[str], refused: Sequence[str] = ()) -> bool:
        """Whether it is proved that no text matches all wanted patterns and none of the refused ones.

        Raises:
            LimitExceeded: the budget is used up.
        """
        ...

    def asserts_format(self, name: str) -> bool:
        """Whether a ``format`` of strings is enforced."""
        ...

    def integer_format(self, name: str) -> tuple[int, int] | None:
        """The range of a ``format`` of integers; ``None`` if formats are not enforced or this is none of integers."""
        ...
