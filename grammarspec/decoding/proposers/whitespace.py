"""The whitespace style of a text: how it has written optional whitespace so far, to guess how it goes on.

Only drafts depend on it: a wrong guess costs time, and changes no text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

__all__ = ["WHITESPACE", "WhitespaceStyle"]

WHITESPACE = b" \t\n\r"
_OPENING, _CLOSING = b"{[(", b"}])"


@dataclass(slots=True)
class WhitespaceStyle:
    """Learns the whitespace of a text with nested brackets, strings in double quotes and free whitespace, such as JSON.

    Attributes:
        depth: the number of open brackets.
        in_string: whether the text so far ends inside a string.
        last: the last byte that was not whitespace, outside strings; ``None`` at the beginning.
        run: the whitespace behind it.
    """

    depth: int = 0
    in_string: bool = False
    last: int | None = None
    run: bytes = b""
    _escaped: bool = False  # the last byte, in a string, was a backslash
    # What was learnt, by the kind of position (see _position): whitespace without line breaks, as it is;
    _inline: dict[str, bytes] = field(default_factory=dict)
    # whitespace with line breaks, as a line break and one step of indentation.
    _breaks: dict[str, bytes] = field(default_factory=dict)

    def copy(self) -> WhitespaceStyle:
        """A copy that reads on independently; what it learns, this one learns as well."""
        return replace(self)

    def read(self, text: bytes) -> None:
        """Learn from the next bytes of the text."""
        for byte in text:
            if self.in_string:
                if self._escaped:
                    self._escaped = False
                elif byte == ord("\\"):
                    self._escaped = True
                elif byte == ord('"'):
                    self.in_string = False
                    self.last, self.run = byte, b""
                continue
            if byte in WHITESPACE:
                self.run += bytes([byte])
                continue
            self._learn(byte)
            self.depth += (byte in _OPENING) - (byte in _CLOSING)
            self.in_string = byte == ord('"')
            self.last, self.run = byte, b""

    def guess(self, following: int | None) -> bytes:
        """The whitespace that is still to come before the next byte.

        Args:
            following: the next byte that is no whitespace; ``None`` if it is not known: a value begins.

        Returns:
            whitespace; none where nothing was learnt yet, or what was learnt does not continue ``run``.
        """
        position, depth = self._position(following)
        whole = b""
        if position in self._inline:
            whole = self._inline[position]
        elif breaks := self._breaks.get(
            position, next(iter(self._breaks.values()), b"") if position in ("{", ",", "}") else b""
        ):
            whole = breaks[:1] + breaks[1:] * depth
        return whole[len(self.run) :] if whole.startswith(self.run) else b""

    def _position(self, following: int | None) -> tuple[str, int]:
        """The kind of position that whitespace depends on, and the depth of the byte behind the whitespace."""
        if following is not None and following in _CLOSING:
            return "}", self.depth - 1
        last = "" if self.last is None else chr(self.last)
        if last in "{[(":
            last = "{"
        elif following is not None and chr(following) in ",:":
            last = "before " + chr(following)
        return last, self.depth

    def _learn(self, byte: int) -> None:
        """Note the whitespace before a byte."""
        position, depth = self._position(byte)
        if b"\n" not in self.run:
            self._inline[position] = self.run
            self._breaks.pop(position, None)
            return
        self._inline.pop(position, None)
        indentation = self.run.rpartition(b"\n")[2]
        step = indentation[: len(indentation) // depth] if depth > 0 else b""
        # At depth 0 there is no indentation to measure a step by: a step that is known is kept.
        if depth > 0 or position not in self._breaks:
            self._breaks[position] = b"\n" + step
