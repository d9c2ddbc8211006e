"""What comes of writing a grammar in another notation."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Converted", "Lost"]


@dataclass(frozen=True, slots=True)
class Lost:
    """Something that a notation cannot say, so that the text written has more texts than the grammar.

    Attributes:
        feature: what it is.
        where: the rule that it stands in.
        reason: why it could not be written.
    """

    feature: str
    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.feature} in the rule {self.where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Converted:
    """A grammar in another notation; ``str`` of it is the text.

    Attributes:
        text: the grammar. It has every text of the language that it was made of.
        lost: what the notation cannot say. If it is empty, the text has the very language; else a larger one.
    """

    text: str
    lost: tuple[Lost, ...]

    def __str__(self) -> str:
        return self.text
