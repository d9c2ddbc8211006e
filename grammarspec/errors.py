"""The errors that grammarspec raises, one hierarchy.

Every error says *where* (a JSON pointer, ``line:column`` with a caret, or the rule's name) and, where there is
something to do about it, a hint.
"""

from __future__ import annotations

__all__ = [
    "Cancelled",
    "GrammarError",
    "GrammarSyntaxError",
    "LimitExceeded",
    "NoMatch",
    "NotEnforced",
    "StateCollected",
    "Truncated",
    "Unsatisfiable",
    "UnsupportedFeature",
]


class GrammarError(ValueError):
    """A grammar, schema or pattern that cannot be used.

    Attributes:
        message: what is wrong, without the place.
        where: the place: a JSON pointer (``"#/properties/a"``), ``"line 3, column 7"``, or ``""``.
        hint: what to do about it, or ``""``.
    """

    def __init__(self, message: str, where: str = "", hint: str = "") -> None:
        self.message, self.where, self.hint = message, where, hint
        text = f"{message}\n  at {where}" if where else message
        super().__init__(f"{text}\n  hint: {hint}" if hint else text)

    def __reduce__(self) -> tuple[type[GrammarError], tuple[str, str, str]]:
        return type(self), (self.message, self.where, self.hint)


class GrammarSyntaxError(GrammarError):
    """The text of a grammar, schema or pattern is malformed."""


class UnsupportedFeature(GrammarError):
    """A feature that grammarspec knows and cannot enforce (yet); nothing is ever ignored silently."""


class Unsatisfiable(GrammarError):
    """No text at all (or none that the vocabulary can spell) belongs to the language."""


class LimitExceeded(GrammarError):
    """A limit on work or memory was hit; the message names which one (see ``grammarspec.Limits``)."""


class NoMatch(GrammarError):
    """A text is not in the language that it was to be read by."""


class NotEnforced(UserWarning):
    """A keyword was left out of a grammar because it cannot be enforced, as ``unsupported="warn"`` asks."""


class Truncated(RuntimeError):
    """The budget of tokens, or the model's context, ran out before the text was whole.

    Attributes:
        partial: the text so far.
    """

    def __init__(self, partial: str) -> None:
        self.partial = partial
        hint = 'raise max_tokens of gs.Sampling, or have texts closed in time: on_limit="close"'
        super().__init__(f"the text was cut short after {partial[-60:]!r}\n  hint: {hint}")

    def __reduce__(self) -> tuple[type[Truncated], tuple[str]]:
        return type(self), (self.partial,)


class Cancelled(RuntimeError):
    """The work was cancelled by its ``grammarspec.CancelToken``."""


class StateCollected(RuntimeError):
    """A state id was used after its state had been collected; hold ids with ``constraint.pin``."""


GrammarError.SyntaxError = GrammarSyntaxError  # type: ignore[attr-defined]
GrammarError.UnsupportedFeature = UnsupportedFeature  # type: ignore[attr-defined]
GrammarError.Unsatisfiable = Unsatisfiable  # type: ignore[attr-defined]
GrammarError.LimitExceeded = LimitExceeded  # type: ignore[attr-defined]

#: What using a constraint may raise long after it was compiled.
FAILURES = (LimitExceeded, Cancelled, StateCollected)
