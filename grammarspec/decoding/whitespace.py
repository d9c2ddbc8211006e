"""How a text has spelled optional whitespace so far, to guess how it will."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

__all__ = ["WHITESPACE", "Spelling"]

WHITESPACE = b" \t\n\r"
_OPENING, _CLOSING = b"{[(", b"}])"


@dataclass(slots=True)
class Spelling:
    """Reads a text with nested brackets, strings in double quotes and free whitespace, such as JSON.

    Attributes:
        depth: brackets open.
        in_string: the text so far ends inside a string.
        last: the last byte that was not whitespace, outside strings.
        run: the whitespace behind it.
    """

    depth: int = 0
    in_string: bool = False
    last: int | None = None
    run: bytes = b""
    _escaped: bool = False
    _literal: dict[str, bytes] = field(default_factory=dict)  # whitespace without line breaks, by where it stood
    _lines: dict[str, bytes] = field(default_factory=dict)  # line break and one step of indentation

    def copy(self) -> Spelling:
        """One that reads on apart; what it learns is shared."""
        return replace(self)

    def read(self, text: bytes) -> None:
        """Read on."""
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
        """The whitespace that will still come before a byte (``None``: before a value); compact if nothing is known."""
        place, depth = self._place(following)
        whole = b""
        if place in self._literal:
            whole = self._literal[place]
        elif lines := self._lines.get(
            place, next(iter(self._lines.values()), b"") if place in ("{", ",", "}") else b""
        ):
            whole = lines[:1] + lines[1:] * depth
        return whole[len(self.run) :] if whole.startswith(self.run) else b""

    def _place(self, following: int | None) -> tuple[str, int]:
        """What whitespace here depends on, and how deep the byte behind it stands."""
        if following is not None and following in _CLOSING:
            return "}", self.depth - 1
        last = "" if self.last is None else chr(self.last)
        if last in "{[(":
            last = "{"
        elif following is not None and chr(following) in ",:":
            last = "before " + chr(following)
        return last, self.depth

    def _learn(self, byte: int) -> None:
        place, depth = self._place(byte)
        if b"\n" not in self.run:
            self._literal[place] = self.run
            self._lines.pop(place, None)
            return
        self._literal.pop(place, None)
        indentation = self.run.rpartition(b"\n")[2]
        step = indentation[: len(indentation) // depth] if depth > 0 else b""
        # Where the depth says nothing about the step, one that is known stands.
        if depth > 0 or place not in self._lines:
            self._lines[place] = b"\n" + step
