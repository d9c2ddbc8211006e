"""Rewards: what a text is worth, as a number. Texts go in, numbers go out.

Any function of a text is a reward (:func:`as_reward`); here are those of the usual tasks. They see beginnings of texts
as well as whole ones: what has been written so far, and a lookahead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from grammarspec.grammars.expressions import Grammar

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = [
    "Classifier",
    "Coverage",
    "InGrammar",
    "Keywords",
    "Length",
    "Mean",
    "Reward",
    "RewardLike",
    "Searched",
    "as_reward",
    "inflections",
    "scored",
]


@runtime_checkable
class Reward(Protocol):
    """What texts are worth. It is asked for several texts at once, so that a model can judge them together."""

    def score(self, texts: Sequence[str]) -> Sequence[float]:
        """The reward of each text: a finite number, usually from 0 to 1; more is better.

        Args:
            texts: what was generated so far, without the prompt; usually with a lookahead, so not always whole.
        """
        ...


RewardLike: TypeAlias = Reward | Callable[[str], float]
"""A reward, or a function of one text."""


@dataclass(frozen=True, slots=True)
class _Function:
    function: Callable[[str], float]

    def score(self, texts: Sequence[str]) -> list[float]:
        return [self.function(text) for text in texts]


def as_reward(reward: RewardLike) -> Reward:
    """A reward, of a function of one text too.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(reward, type) or not (isinstance(reward, Reward) or callable(reward)):
        raise TypeError(f"a reward has a method score(texts), or is a function of a text, which {reward!r} is not")
    return reward if isinstance(reward, Reward) else _Function(reward)


def scored(reward: Reward, texts: Sequence[str]) -> list[float]:
    """What a reward says of texts, checked.

    Raises:
        TypeError: it gives something else than numbers.
        ValueError: it gives another number of values, or one that is not finite.
    """
    values = list(reward.score(texts))
    if len(values) != len(texts):
        raise ValueError(f"{reward!r} gives {len(values)} values for {len(texts)} texts")
    found = []
    for value, text in zip(values, texts, strict=True):
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise TypeError(f"{reward!r} gives {value!r}, which is no number, for the text {text!r}") from None
        if not math.isfinite(number):
            raise ValueError(f"{reward!r} gives {number}, which is not finite, for the text {text!r}")
        found.append(number)
    return found


_VOWELS = "aeiou"


def inflections(word: str) -> frozenset[str]:
    """The regular English forms of a word in lower case: plural, third person, past, and with -ing."""
    word = word.lower()
    forms = {word, word + "s", word + "es", word + "ed", word + "ing"}
    if word.endswith("e"):
        forms |= {word + "d", word[:-1] + "ing"}
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        forms |= {word[:-1] + "ies", word[:-1] + "ied"}
    if word[-1:].isalpha() and word[-1:] not in _VOWELS + "wxy" and word[-2:-1] and word[-2:-1] in _VOWELS:
        forms |= {word + word[-1] + "ed", word + word[-1] + "ing"}  # run, running
    return frozenset(forms)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+(?:['’-]\w+)*", text.lower())


@dataclass(frozen=True)
class Coverage:
    """How many of some concepts a text mentions, as in CommonGen (Lin et al. 2020).

    Attributes:
        concepts: the concepts, each a word, or several words of which one is enough. Case does not matter; words match
            as a whole, in any of their regular English forms (:func:`inflections`).
        hard: 1 if all are mentioned, else 0; otherwise the fraction of those that are.

    Raises:
        TypeError: ``concepts`` is a text.
        ValueError: there are no concepts, or one has no word.
    """

    concepts: Sequence[str | Sequence[str]]
    hard: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.concepts, str):
            raise TypeError("concepts takes several words, not a single text: write Coverage([word])")
        object.__setattr__(self, "concepts", tuple(self.concepts))
        forms = [(one,) if isinstance(one, str) else tuple(one) for one in self.concepts]
        if not forms or not all(one and all(word.strip() for word in one) for one in forms):
            raise ValueError(f"Coverage takes concepts of at least one word each, not {self.concepts!r}")
        found = [frozenset().union(*map(inflections, one)) for one in forms]
        object.__setattr__(self, "_forms", found)

    def score(self, texts: Sequence[str]) -> list[float]:
        """See :meth:`Reward.score`: from 0 to 1."""
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> float:
        forms: list[frozenset[str]] = self._forms  # type: ignore[attr-defined]  # made with the object
        words = set(_words(text))
        covered = sum(not words.isdisjoint(each) for each in forms)
        return float(covered == len(forms)) if self.hard else covered / len(forms)


@dataclass(frozen=True)
class Keywords:
    """The fraction of wishes that a text fulfils: some strings that are to be in it, and some that are not.

    Attributes:
        present, absent: the strings; case does not matter, and they may be parts of words.

    Raises:
        TypeError: one of them is a text instead of several.
        ValueError: there are none, or one is empty.
    """

    present: Sequence[str] = ()
    absent: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.present, str) or isinstance(self.absent, str):
            raise TypeError("Keywords takes several strings, not a single text: write Keywords([word])")
        for name in ("present", "absent"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not (self.present or self.absent) or not all((*self.present, *self.absent)):
            raise ValueError("Keywords takes at least one string, and no empty one")

    def score(self, texts: Sequence[str]) -> list[float]:
        """See :meth:`Reward.score`: from 0 to 1."""
        return [self._one(text.lower()) for text in texts]

    def _one(self, text: str) -> float:
        kept = sum(word.lower() in text for word in self.present)
        kept += sum(word.lower() not in text for word in self.absent)
        return kept / (len(self.present) + len(self.absent))


@dataclass(frozen=True, slots=True)
class Length:
    """1 for a text whose length is in a range; less, the further it is outside.

    Attributes:
        least, most: the range; ``None``: no bound.
        unit: what is counted.

    Raises:
        ValueError: there is no bound, one is below 0, or no length is in the range.
    """

    least: int | None = None
    most: int | None = None
    unit: Literal["words", "characters"] = "words"

    def __post_init__(self) -> None:
        bounds = [bound for bound in (self.least, self.most) if bound is not None]
        if not bounds or min(bounds) < 0 or bounds != sorted(bounds):
            raise ValueError(f"Length takes a range of lengths, not from {self.least} to {self.most}")
        if self.unit not in ("words", "characters"):
            raise ValueError(f"unit must be 'words' or 'characters', not {self.unit!r}")

    def score(self, texts: Sequence[str]) -> list[float]:
        """See :meth:`Reward.score`: above 0 and at most 1, but 0 for a text without any length that must have some."""
        return [self._one(len(_words(text)) if self.unit == "words" else len(text)) for text in texts]

    def _one(self, length: int) -> float:
        if self.least is not None and length < self.least:
            return length / self.least
        if self.most is not None and length > self.most:
            return (self.most + 1) / (length + 1)
        return 1.0


@dataclass(frozen=True, slots=True)
class Searched:
    """1 for a text in which a regular expression matches somewhere (``re.search``), else 0.

    Attributes:
        pattern: in Python's syntax.
        flags: those of :mod:`re`.

    Raises:
        re.error: the pattern is malformed.
    """

    pattern: str | re.Pattern[str]
    flags: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", re.compile(self.pattern, self.flags))

    def score(self, texts: Sequence[str]) -> list[float]:
        """See :meth:`Reward.score`: 0 or 1."""
        return [float(re.search(self.pattern, text) is not None) for text in texts]


@dataclass(frozen=True, slots=True)
class InGrammar:
    """1 for a text of a grammar, else 0; a wish where a mask would be a rule.

    Attributes:
        grammar: the grammar.

    Raises:
        TypeError: it is none.
    """

    grammar: Grammar[Any]

    def __post_init__(self) -> None:
        if not isinstance(self.grammar, Grammar):
            raise TypeError(f"InGrammar takes a gs.Grammar, not {self.grammar!r}")

    def score(self, texts: Sequence[str]) -> list[float]:
        """See :meth:`Reward.score`: 0 or 1."""
        return [float(self.grammar.matches(text)) for text in texts]


class Mean:
    """The mean of several rewards, with weights.

    Args:
        rewards: the rewards.
        weights: of each; ``None``: all alike.

    Raises:
        TypeError: one is no reward.
        ValueError: there are none; or other numbers of weights, one below 0, or none above 0.
    """

    def __init__(self, rewards: Sequence[RewardLike], weights: Sequence[float] | None = None) -> None:
        self.rewards = [as_reward(reward) for reward in rewards]
        self.weights = [1.0] * len(self.rewards) if weights is None else list(weights)
        right = len(self.weights) == len(self.rewards) and all(0 <= weight < math.inf for weight in self.weights)
        if not right or not sum(self.weights):
            raise ValueError(f"Mean takes a weight of at least 0 for each reward, and one above 0, not {self.weights}")

    def score(self, texts: Sequence[str]) -> list[float]:
        """See :meth:`Reward.score`.

        Raises:
            TypeError, ValueError: as :func:`scored`.
        """
        columns = [scored(reward, texts) for reward in self.rewards]
        total = sum(self.weights)
        return [
            sum(weight * value for weight, value in zip(self.weights, row, strict=True)) / total
            for row in zip(*columns, strict=True)
        ]


class Classifier:
    """The probability that a classifier of transformers gives to a label: that a text is harmless, say.

    Args:
        model: a model for the classification of sequences, of one label for each text.
        tokenizer: its tokenizer.
        label: the label's number, or its name in the model's configuration.
        batch: how many texts are judged at once.

    Raises:
        ValueError: the model has no such label, or ``batch`` is below 1.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, label: int | str, *, batch: int = 16
    ) -> None:
        names: dict[Any, str] = {**(model.config.id2label or {})}
        found = [number for number, name in names.items() if label in (number, name)]
        if len(found) != 1:
            raise ValueError(f"the classifier has no label {label!r}; there are {sorted(names.values())}")
        if batch < 1:
            raise ValueError(f"batch must be at least 1, not {batch}")
        judge: Any = model  # the modules of transformers have no types
        self._model, self._tokenizer, self._label, self._batch = judge.eval(), tokenizer, found[0], batch

    def score(self, texts: Sequence[str]) -> list[float]:
        """See :meth:`Reward.score`: from 0 to 1."""
        import torch

        found: list[float] = []
        for begin in range(0, len(texts), self._batch):
            # An empty text has no tokens, which classifiers do not take.
            part = [text or " " for text in texts[begin : begin + self._batch]]
            inputs = self._tokenizer(part, return_tensors="pt", padding=True, truncation=True)
            with torch.inference_mode():
                logits = self._model(**inputs.to(self._model.device)).logits.float()
            found += logits.softmax(-1)[:, self._label].tolist()
        return found
