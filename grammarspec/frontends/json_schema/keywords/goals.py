"""What assertions need of those who gather them.

A *goal* is a sequence of subschemas that must hold at once. Assertions that apply other schemas to the same value need
to gather those as well, to negate them, and to tell branches apart. That stands above them, in the room ``meaning``,
and comes to them as an argument of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.keywords.conjunction import Conjunction
from grammarspec.frontends.json_schema.keywords.outcomes import Outcome

__all__ = ["Goals"]


class Goals(Protocol):
    """Gathers goals.

    Attributes:
        comparisons: how often it was asked whether anything satisfies a goal.
    """

    comparisons: int

    def collect(self, schema: Subschema, facts: Conjunction) -> None:
        """Add what one subschema asks to a conjunction.

        Raises:
            GrammarError: a keyword is malformed or cannot be enforced.
        """
        ...

    def gather(self, goal: Sequence[Subschema]) -> Conjunction:
        """All that the subschemas ask at once.

        Raises:
            GrammarError: a keyword is malformed or cannot be enforced.
        """
        ...

    def resolve(self, schema: Subschema, reference: str, keyword: str) -> Subschema:
        """What a reference in a subschema points to.

        Raises:
            GrammarError: to nothing.
        """
        ...

    def target(self, schema: Subschema, reference: str, keyword: str) -> Subschema:
        """What a reference in a subschema points to, if it does not come back to itself within the same value.

        Raises:
            GrammarError: to nothing, or back to itself without entering the value.
        """
        ...

    def negate(self, schema: Subschema) -> Subschema:
        """A schema for the values that another one refuses.

        Raises:
            GrammarError: that cannot be said.
        """
        ...

    def exclusive(self, origin: Subschema, branches: Sequence[Subschema]) -> Sequence[Subschema]:
        """Alternatives that together are ``oneOf`` of the branches, of which at most one holds for any value.

        Raises:
            GrammarError: the branches cannot be told apart.
        """
        ...

    def choice(self, alternatives: Sequence[Subschema]) -> Subschema:
        """A schema that says that one of these holds: the same one for the same alternatives."""
        ...

    def enumerated(self, origin: Subschema, branches: Sequence[Subschema], *, differ: bool) -> Subschema | None:
        """One ``enum`` for branches that are some constants each; ``None`` if they ask for more.

        Args:
            differ: no two branches may have the same constant.
        """
        ...

    def outcomes(self, schema: Subschema) -> Sequence[Outcome]:
        """The outcomes of all keywords but those about what is unevaluated: exactly one holds for a value.

        Raises:
            GrammarError: they are too many, or cannot be said.
        """
        ...

    def asserts_format(self, name: str) -> bool:
        """Whether a format of strings is enforced."""
        ...

    def integer_format(self, name: str) -> tuple[int, int] | None:
        """The least and the greatest number of a format of integers that is enforced."""
        ...
