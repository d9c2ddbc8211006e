"""Lark's errors as those of grammarspec, with positions."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

from grammarspec.errors import GrammarspecError, GrammarSyntaxError, LimitExceeded, UnsupportedFeature
from grammarspec.frontends.lark.text import GrammarText

__all__ = ["lark_errors", "owner", "too_deep", "unexpected_input"]

_UNDEFINED = re.compile(
    r"'(?P<rule>\w+)' used but not defined \(in rule (?P<user>\w+)"
    r"|not defined: (?P<terminal>\w+)|Terminals {'(?P<ignored>\w+)"
)
"""Lark's messages about names that are not defined, which have no positions."""
_TWICE = re.compile(r"'(\w+)' defined more than once")
_RANGE = re.compile(r"\((-?\d+)\.\.(-?\d+) isn't allowed\)")
_OWNER = re.compile(r"(?: in |\(in (?:rule |terminal |template )?)'?(\w+)'?\)$|Recursion in terminal '(\w+)'")
_POSITION = re.compile(r",? at line (\d+),? column (\d+)")


@contextmanager
def lark_errors(source: GrammarText) -> Iterator[None]:
    """Raise errors of lark's loader, about this text, as errors of grammarspec.

    Raises:
        GrammarSyntaxError: lark rejects the grammar.
        LimitExceeded: it is nested too deeply for lark.
        UnsupportedFeature: lark needs a package for it that is not installed.
    """
    from lark.exceptions import GrammarError, LexError, UnexpectedInput, VisitError

    try:
        yield
    except GrammarspecError:  # of Imports
        raise
    except UnexpectedInput as error:
        raise GrammarSyntaxError("malformed grammar: unexpected input", _place(error, source)) from error
    except (GrammarError, LexError) as error:
        message, position = _with_position(str(error).partition("\n\n")[0].strip(), source)
        raise GrammarSyntaxError(f"malformed grammar: {message}", position) from error
    except RecursionError as error:
        raise too_deep() from error
    except ImportError as error:
        raise UnsupportedFeature(str(error.args[0]), hint="pip install regex") from error
    except _malformed_patterns() as error:
        position = source.literal(f"/{error.pattern}/")
        raise GrammarSyntaxError(f"malformed regular expression: {error.msg}", position) from error
    except VisitError as error:  # of what makes patterns of terminals: an assertion that fails says nothing
        said = str(error.orig_exc) or f"a malformed {error.rule}"
        parts = getattr(error.obj, "children", [])
        first = next((part for part in parts if isinstance(part, str)), "")
        raise GrammarSyntaxError(f"malformed grammar: {said}", source.literal(first)) from error
    except (AssertionError, OSError, ValueError) as error:
        raise GrammarSyntaxError(f"malformed grammar: {str(error) or type(error).__name__}") from error
    except Exception as error:
        unexpected = unexpected_input(error)
        if unexpected is None:
            raise
        # Lark fails while it looks for what to say of an error: its `match_examples` formats a state with %d.
        raise GrammarSyntaxError("malformed grammar: unexpected input", _place(unexpected, source)) from error


def unexpected_input(error: BaseException | None) -> Any:
    """Lark's own error about a text that is not of a grammar's syntax, that an error was raised from; or ``None``."""
    from lark.exceptions import UnexpectedInput

    while error is not None and not isinstance(error, UnexpectedInput):
        for frame, _ in walk_tb(error.__traceback__):
            if frame.f_code is UnexpectedInput.match_examples.__code__:  # raised while an error was to be explained
                return frame.f_locals["self"]
        error = error.__cause__ or error.__context__
    return error


def _place(error: Any, source: GrammarText) -> str:
    """Where lark found what it did not expect."""
    offset = error.pos_in_stream
    return source.at(offset) if isinstance(offset, int) and offset >= 0 else ""


def _malformed_patterns() -> Any:
    """What lark raises for a malformed expression: the errors of ``re``, and of ``regex`` where that is loaded."""
    return tuple([sys.modules[name].error for name in ("re", "regex") if name in sys.modules])


def _with_position(message: str, source: GrammarText) -> tuple[str, str]:
    """A message of lark's without the position in it, and the position."""
    if found := _POSITION.search(message):
        position = source.at_line(int(found[1]), int(found[2]))
        return (message[: found.start()] + message[found.end() :]).strip(), position
    if undefined := _UNDEFINED.search(message):
        name = undefined["rule"] or undefined["terminal"] or undefined["ignored"]
        return message, source.use(name, undefined["user"])
    if twice := _TWICE.search(message):
        return message, source.redefinition(twice[1])
    if counts := _RANGE.search(message):
        return message, source.range(int(counts[1]), int(counts[2]))
    return message, source.definition(owner(message))


def owner(message: str) -> str:
    """The definition in which, as a message of lark's says, something is wrong; ``""`` if it says none."""
    found = _OWNER.search(message)
    return (found[1] or found[2]) if found else ""


def too_deep() -> LimitExceeded:
    """The error for a grammar that nests too deeply."""
    return LimitExceeded("the grammar exceeds the limit on nesting depth")
