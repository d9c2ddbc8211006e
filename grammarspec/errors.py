"""The errors that grammarspec raises, one hierarchy.

Every error says *where* (a JSON pointer, ``line:column`` with a caret, or the rule's name) and, where there is
something to do about it, a hint. Each class has a code that does not change, and a section of ``docs/errors.md``. What
is wrong with an argument alone is a plain ``TypeError`` or ``ValueError``, as everywhere in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

__all__ = [
    "BudgetTooSmall",
    "Cancelled",
    "DraftMismatch",
    "GrammarError",
    "GrammarSyntaxError",
    "GrammarspecError",
    "InternalError",
    "InvalidLogits",
    "LimitExceeded",
    "MissingPackage",
    "NoMatch",
    "NoModel",
    "NotEnforced",
    "PromptError",
    "StateCollected",
    "Truncated",
    "Unsatisfiable",
    "UnsupportedFeature",
    "UnsupportedModel",
    "UnsupportedTokenizer",
    "UnsupportedType",
    "ValidationFailed",
    "needed_by",
]

_NAMED = 6  # rules of a cycle that an error names


class GrammarspecError(Exception):
    """The base of all errors of grammarspec; each subclass is also a ``ValueError``, a ``RuntimeError`` or the like.

    Attributes:
        code: the kind of error, for programs: the same in all releases.
        message: what is wrong, without the place.
        where: the place: a JSON pointer (``"#/properties/a"``), ``"line 3, column 7"``, or ``""``.
        hint: what to do about it, or ``""``.
        index: where several answers were asked for together, the number of the one that failed, from 0; or ``None``.
    """

    code: ClassVar[str] = "error"
    index: int | None = None

    def __init__(self, message: str, where: str = "", hint: str = "") -> None:
        self.message, self.where, self.hint = message, where, hint
        text = f"{message}\n  at {where}" if where else message
        super().__init__(f"{text}\n  hint: {hint}" if hint else text)

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.index is None else f"answer {self.index} (counted from 0): {text}"

    @property
    def docs(self) -> str:
        """The page of the documentation about this kind of error, in the sources, and the section there."""
        return f"docs/errors.md#{self.code}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.where, self.hint), vars(self)


# ---------------------------------------------------------------------- grammars
class GrammarError(GrammarspecError, ValueError):
    """A grammar, schema or pattern cannot be used, or a text is not in its language."""

    code = "grammar"


class GrammarSyntaxError(GrammarError):
    """The text of a grammar, schema or pattern is malformed."""

    code = "syntax"


class UnsupportedFeature(GrammarError):
    """A feature that grammarspec knows and cannot enforce (yet); nothing is ever ignored silently."""

    code = "unsupported-feature"


class UnsupportedType(UnsupportedFeature):
    """A Python type that has no JSON, or whose constraints cannot be enforced while generating."""

    code = "unsupported-type"


class UnsupportedTokenizer(UnsupportedFeature):
    """A tokenizer of an unknown kind, or one in which the text of a token depends on its neighbours."""

    code = "unsupported-tokenizer"


class UnsupportedModel(UnsupportedFeature):
    """A model that the decoding loop cannot drive."""

    code = "unsupported-model"


class InternalError(GrammarspecError, RuntimeError):
    """A defect of grammarspec itself; what it worked on cannot be used any more."""

    code = "internal"


class Unsatisfiable(GrammarError):
    """No text at all (or none that the vocabulary can spell) belongs to the language."""

    code = "unsatisfiable"

    @classmethod
    def of_cycle(cls, rules: Sequence[str], place: str) -> Unsatisfiable:
        """The error for rules each of which always needs the next one, and the last one the first again.

        Args:
            rules: their names; at least one.
            place: where the first one is defined.
        """
        rule, *others = rules
        by = ", ".join(others[:_NAMED]) + (", ..." if len(others) > _NAMED else "")
        again = f"itself again, by {by}" if others else "itself"
        message = f"no text belongs to the grammar: the rule {rule} always needs {again}"
        return cls(message, place, f"give it an alternative without {rule}")


class LimitExceeded(GrammarError):
    """A limit on work or memory was hit; the message names which one (see ``grammarspec.Limits``)."""

    code = "limit-exceeded"


class NoMatch(GrammarError):
    """A text that a grammar should read is not in its language."""

    code = "no-match"


class NotEnforced(UserWarning):
    """A keyword was left out of a grammar because it cannot be enforced, as ``unsupported="warn"`` asks."""

    code: ClassVar[str] = "not-enforced"


# ---------------------------------------------------------------------- models
class PromptError(GrammarspecError, ValueError):
    """A prompt that cannot be given to the model: empty, too long, or refused by the chat template."""

    code = "prompt"


class BudgetTooSmall(GrammarspecError, ValueError):
    """With ``on_limit="close"``: the grammar has no text that is complete within the budget of tokens."""

    code = "budget-too-small"


class Truncated(GrammarspecError, RuntimeError):
    """The budget of tokens, or the model's context, ran out before the text was complete.

    Attributes:
        partial: the text so far.
    """

    code = "truncated"

    def __init__(self, partial: str) -> None:
        self.partial = partial
        hint = 'raise max_tokens, or have texts closed in time: on_limit="close"'
        super().__init__(f"the text was cut short after {partial[-60:]!r}", hint=hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.partial,), vars(self)


class Invalid(NamedTuple):
    """An error that a validator raised.

    Attributes:
        where: the place as a JSON pointer into the answer (``"#/age"``); ``"#"`` for the whole.
        message: what is wrong.
    """

    where: str
    message: str


class ValidationFailed(GrammarspecError, ValueError):
    """A validator of the answer's type refused the value, in every attempt.

    Attributes:
        text: the last answer.
        errors: the errors of the validators about it.
        attempts: the number of answers; 0 for a text that no model was asked for.
    """

    code = "validation-failed"

    def __init__(self, text: str, errors: tuple[Invalid, ...], attempts: int = 1) -> None:
        self.text, self.errors, self.attempts = text, errors, attempts
        listed = "\n".join(f"  {message}\n    at {where}" for where, message in errors)
        hint = "retries=2 gives the model two more attempts, and tells it what is wrong" if attempts == 1 else ""
        what = f"the answer is not valid (after {attempts} attempt{'s' * (attempts > 1)})"
        super().__init__(f"{what if attempts else 'the text is not valid'}:\n{listed}", hint=hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.errors, self.attempts), vars(self)

    @property
    def feedback(self) -> str:
        """The message that tells the model of the errors before it answers again: one line for each, with its place."""
        listed = "\n".join(
            f"- {message}" if where == "#" else f"- {where}: {message}" for where, message in self.errors
        )
        return f"Your answer is not valid:\n{listed}\nAnswer again with this corrected."


class NoModel(GrammarspecError, LookupError):
    """A function of ``gs.output`` was called and has no model to ask."""

    code = "no-model"


class DraftMismatch(GrammarspecError, ValueError):
    """What should draft for a model is not made for it: it has other tokens, or its file holds something else."""

    code = "draft-mismatch"


class InvalidLogits(GrammarspecError, ArithmeticError):
    """The model's logits are NaN or infinite where a token is to be chosen."""

    code = "invalid-logits"


class MissingPackage(GrammarspecError, ImportError):
    """A package that only this feature needs is not installed."""

    code = "missing-package"


_INSTALLED_BY = {
    "lark": "'grammarspec[lark]'",
    "llama_cpp": "'grammarspec[llama-cpp]'",
    "matplotlib": "'grammarspec[plots]'",
    "msgspec": "msgspec",
    "numpy": "numpy",
    "prometheus_client": "'grammarspec[server]'",
    "pydantic": "'grammarspec[types]'",
    "pydantic_core": "'grammarspec[types]'",
    "railroad": "'grammarspec[railroads]'",
    "referencing": "referencing",
    "safetensors": "'grammarspec[frozen]'",
    "starlette": "'grammarspec[server]'",
    "torch": "'grammarspec[transformers]'",
    "transformers": "'grammarspec[transformers]'",
    "uvicorn": "'grammarspec[server]'",
}
"""What pip is told to install, by the name of the module that is missing."""


@contextmanager
def needed_by(what: str) -> Iterator[None]:
    """Turn the ``ImportError`` of an optional package within the block into :class:`MissingPackage`.

    Args:
        what: what the package is needed for, as the beginning of a sentence.

    Raises:
        MissingPackage: it is not installed; the hint is the command that installs it.
    """
    try:
        yield
    except MissingPackage:
        raise
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _INSTALLED_BY:
            raise
        hint = f"pip install {_INSTALLED_BY[package]}"
        raise MissingPackage(f"{what}: the package {package} is missing ({error})", hint=hint) from error


# ---------------------------------------------------------------------- while it runs
class Cancelled(GrammarspecError, RuntimeError):
    """The work was cancelled by its ``grammarspec.CancelToken``."""

    code = "cancelled"


class StateCollected(GrammarspecError, RuntimeError):
    """A state id was used after its state had been collected; hold ids with ``constraint.pin``."""

    code = "state-collected"


GrammarError.SyntaxError = GrammarSyntaxError  # type: ignore[attr-defined]
GrammarError.UnsupportedFeature = UnsupportedFeature  # type: ignore[attr-defined]
GrammarError.Unsatisfiable = Unsatisfiable  # type: ignore[attr-defined]
GrammarError.LimitExceeded = LimitExceeded  # type: ignore[attr-defined]

FAILURES = (LimitExceeded, Cancelled, StateCollected)
"""What using a constraint may raise long after it was compiled."""
