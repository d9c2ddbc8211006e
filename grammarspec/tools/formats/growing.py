"""Reads calls from a growing text, for streams: the name of a call, and the pieces of its arguments as they come.

The text is known to be a text of the format's grammar so far, since the masks have made it so; nothing is checked here.
Only formats that write arguments as JSON, with no id after them or of a form of its own, are read so. In others, a call
is known when it is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from grammarspec.tools.formats.arguments import json_arguments
from grammarspec.tools.formats.base import ToolFormat

__all__ = ["CallPiece", "GrowingCalls"]

_PART: Final = re.compile(r"\$(name|arguments|id)")
_NAME: Final = re.compile(r"[A-Za-z0-9_./-]*")
_STRUCTURE: Final = re.compile(r'[{}\[\]"]')
_STRING: Final = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A piece of a call.

    Attributes:
        index: the number of the call in its reply, from 0.
        name: the name of the tool, in the first piece of a call; in the others ``None``.
        id: the id that the model has written, in the first piece; ``None`` if the format writes none.
        arguments: the next characters of the arguments, which are JSON; may be empty.
    """

    index: int
    name: str | None = None
    id: str | None = None
    arguments: str = ""


class GrowingCalls:
    """The calls in one growing text.

    Args:
        format: the format of the calls.
        only_calls: whether the text has nothing but calls: a call is required, or the tool is named.
        answered: whether the text may instead be an answer with a grammar of its own.
    """

    def __init__(self, format: ToolFormat, *, only_calls: bool, answered: bool) -> None:
        self._format, self._only_calls, self._answered = format, only_calls, answered
        parts = _PART.split(format.call)
        self._opening = parts[0]  # what each call begins with
        self._buffer = ""
        self._steps = self._read() if self._readable(parts[1::2]) else None
        self._found: list[CallPiece] = []
        if self._steps is not None:
            next(self._steps)

    def _readable(self, parts: list[str]) -> bool:
        """Whether calls can be told from other text, and arguments from what is around them, while they grow."""
        form = self._format
        plain = form.arguments is json_arguments and not form.frames and not form.channels and not form.id_form
        return plain and parts[-1] == "arguments" and (self._only_calls or not self._answered)

    def feed(self, piece: str) -> list[CallPiece]:
        """The pieces of calls that the next piece of the text completes; always empty if a call cannot be read so.

        Args:
            piece: the next characters of the text, without reasoning.
        """
        if self._steps is None or not piece:
            return []
        self._buffer += piece
        next(self._steps)
        found, self._found = self._found, []
        return found

    # ------------------------------------------------------------------ a machine that waits for text at each yield
    def _read(self) -> Iterator[None]:
        yield from self._to_calls()
        number = 0
        while True:
            yield from self._call(number)
            number += 1
            yield from self._until(self._format.separator + self._opening)

    def _to_calls(self) -> Iterator[None]:
        """Read up to the inner side of the opening of the first call."""
        form = self._format
        if not self._only_calls and form.starts:
            while any(one.startswith(begin := self._buffer.lstrip()) and begin != one for one in form.starts):
                yield
            if not begin.startswith(form.starts):
                yield from self._end()
        elif not self._only_calls:
            yield from self._until(form.markers[0], kept=True)
        yield from self._until(form.begin + self._opening)

    def _call(self, number: int) -> Iterator[None]:
        """Read a call, from behind its opening to the end of its arguments."""
        name = own = None
        for at, part in enumerate(_PART.split(self._format.call)[1:]):
            if at % 2:
                yield from self._until(part)
            elif part == "id":
                while len(self._buffer) < self._format.id_length:
                    yield
                own, self._buffer = self._buffer[: self._format.id_length], self._buffer[self._format.id_length :]
            elif part == "name":
                while (end := _NAME.match(self._buffer).end()) == len(self._buffer):  # type: ignore[union-attr]
                    yield
                name, self._buffer = self._buffer[:end], self._buffer[end:]
            else:
                self._found.append(CallPiece(number, name, own))
                yield from self._arguments(number)

    def _arguments(self, number: int) -> Iterator[None]:
        """Read a JSON object, and report its pieces."""
        depth, inside = 0, False  # how many objects and arrays are open; whether a string is
        while True:
            at, text = 0, self._buffer
            while at < len(text):
                if inside:
                    at = _STRING.match(text, at).end()  # type: ignore[union-attr]
                    if at == len(text) or text[at] == "\\":  # a backslash is read with the character behind it
                        break
                    inside, at = False, at + 1
                    continue
                found = _STRUCTURE.search(text, at)
                if found is None:
                    at = len(text)
                    break
                at = found.end()
                if found[0] == '"':
                    inside = True
                else:
                    depth += 1 if found[0] in "{[" else -1
                    if depth == 0:
                        break
            if at:
                self._found.append(CallPiece(number, arguments=text[:at]))
            self._buffer = text[at:]
            if at and not depth:
                return
            yield

    def _until(self, text: str, *, kept: bool = False) -> Iterator[None]:
        """Read up to the end of a text; if it is to be kept, up to its beginning."""
        while (at := self._buffer.find(text)) < 0:
            self._buffer = self._buffer[max(len(self._buffer) - len(text) + 1, 0) :]
            yield
        self._buffer = self._buffer[at if kept else at + len(text) :]

    def _end(self) -> Iterator[None]:
        """Read no more."""
        while True:
            self._buffer = ""
            yield
