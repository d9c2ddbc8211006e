"""The options of ``lark.Lark`` that decide what a grammar means: its parser and its lexer.

Which texts a ``.lark`` grammar accepts depends on these options. The names that lark knows are listed here with those
that grammarspec can enforce. Supporting another one begins with this table.
"""

from __future__ import annotations

from typing import Final

from grammarspec.errors import UnsupportedFeature

__all__ = ["check_options"]

_KNOWN: Final = {
    "parser": ("earley", "lalr", "cyk"),
    "lexer": ("dynamic_complete", "auto", "basic", "contextual", "dynamic"),
}
"""The values of each option that lark has; the first is the one that is supported, and the default."""


def check_options(**options: str | None) -> None:
    """Check that the options ``parser`` and ``lexer`` have values that are supported (``None``: the default).

    Raises:
        ValueError: lark has no such value.
        UnsupportedFeature: lark has it, and it is not supported.
    """
    for option, value in options.items():
        known = _KNOWN[option]
        if value is not None and value not in known:
            raise ValueError(f"{option} must be one of {', '.join(known)}, or None, not {value!r}")
        if value is not None and value != known[0]:
            raise UnsupportedFeature(
                f"{option}={value!r} of lark is not supported",
                hint=f"{option}={known[0]!r} is what is available: no lexer pass, terminals where they are expected",
            )
