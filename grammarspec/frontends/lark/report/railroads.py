"""``gs.draw_lark``: railroad diagrams of a ``.lark`` grammar, drawn by the package ``railroad-diagrams``."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from os import PathLike
from typing import Any, Final, Literal, Unpack

from grammarspec.errors import LimitExceeded, needed_by
from grammarspec.frontends.lark.limits import charge_loading
from grammarspec.frontends.lark.loader import Source, read
from grammarspec.frontends.lark.opening import OpeningOptions, opened
from grammarspec.frontends.lark.tree import (
    Alternatives,
    Body,
    Maybe,
    Pattern,
    Repetition,
    Sequence,
    Symbol,
    TemplateUse,
)
from grammarspec.frontends.lark.tree import Literal as StringOrExpression
from grammarspec.grammars.budget import Budget

__all__ = ["draw_lark"]

_TITLE: Final = 30
"""The height of a diagram's title in an SVG."""
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_LONGEST: Final = 100
"""Characters of a string or expression that are shown."""
_STYLE: Final = """
    svg { background-color: white; }
    text.title { font: bold 16px sans-serif; text-anchor: start; }
"""


def draw_lark(
    what: str | PathLike[str], *, format: Literal["svg", "html"] = "svg", **options: Unpack[OpeningOptions]
) -> str:
    """Railroad diagrams of the rules of a ``.lark`` grammar, and of the terminals that it defines itself.

    Rules are boxes, terminals and strings are rounded. The diagrams say what is written in the grammar: neither what
    is ignored between terminals nor how lark's lexer takes them.

    Args:
        what: the grammar, as for :func:`grammarspec.check_lark`.
        format: ``"svg"``: one SVG with all diagrams, one below the other; ``"html"``: a page on which rules are links.
        options: those of :func:`grammarspec.lark`; only ``import_paths`` and ``source_path`` make a difference.

    Returns:
        the SVG or the page.

    Raises:
        OSError: the file cannot be read, or no grammar of the package has this name.
        UnicodeDecodeError: it is not UTF-8.
        GrammarError: lark rejects the grammar, or it is nested too deeply to be drawn.
        MissingPackage: the package ``railroad-diagrams`` or ``lark`` is not installed.
        ValueError: there is no such format.
        TypeError: as :func:`grammarspec.lark`.
    """
    with needed_by("railroad diagrams"):
        import railroad  # noqa: F401
    if format not in ("svg", "html"):
        raise ValueError(f'format must be "svg" or "html", not {format!r:.60}')
    grammar = opened(what, options)
    charge_loading(grammar.text, Budget())
    source = read(grammar.text, grammar.file, grammar.options.folders, grammar.options.given)
    try:
        diagrams = list(_diagrams(source))
        return _svg(diagrams) if format == "svg" else _html(diagrams)
    except RecursionError:
        raise LimitExceeded("the grammar is nested too deeply to be drawn") from None


def _diagrams(source: Source) -> Iterator[tuple[str, Any]]:
    """The title and the diagram of each rule and terminal that the grammar defines."""
    import railroad

    for name, rule in source.rules.items():
        if rule.body is not None:
            title = f"{name}{{{', '.join(rule.parameters)}}}" if rule.parameters else name
            yield title, railroad.Diagram(_item(rule.body))
    for name in source.terminals:
        if source.text.definition(name) and (pattern := source.pattern(name)) is not None:
            yield name, railroad.Diagram(railroad.Terminal(_literal(pattern)))


def _item(body: Body) -> Any:
    """What is drawn of a rule's body, or of a part of it."""
    import railroad

    match body:
        case Alternatives(branches):
            items = [_item(branch) for branch in branches]
            return items[0] if len(items) == 1 else railroad.Choice(0, *items)
        case Sequence(parts):
            return railroad.Sequence(*map(_item, parts)) if parts else railroad.Skip()
        case Maybe(inner):
            return railroad.Optional(_item(inner))
        case Repetition(inner, operator, counts):
            return _repetition(_item(inner), operator, counts)
        case StringOrExpression(pattern):
            return railroad.Terminal(_literal(pattern))
        case TemplateUse():
            return railroad.NonTerminal(_written(body), f"#{body.name}")
        case Symbol(name, is_terminal):
            return railroad.Terminal(name, f"#{name}") if is_terminal else railroad.NonTerminal(name, f"#{name}")


def _repetition(item: Any, operator: str, counts: tuple[str, ...]) -> Any:
    """A part and its operator."""
    import railroad

    if operator == "?":
        return railroad.Optional(item)
    if operator == "*":
        return railroad.ZeroOrMore(item)
    if operator == "+":
        return railroad.OneOrMore(item)
    times = railroad.Comment(f"{' to '.join(counts)} times")
    return railroad.ZeroOrMore(item, times) if counts[0].strip("0") == "" else railroad.OneOrMore(item, times)


def _written(value: Any) -> str:
    """A symbol, a string, or the use of a template, as it is written."""
    match value:
        case TemplateUse(name, arguments):
            return f"{name}{{{', '.join(map(_written, arguments))}}}"
        case StringOrExpression(pattern):
            return _literal(pattern)
    return str(value.name)


def _literal(pattern: Pattern) -> str:
    """A string or expression as it is written, as far as there is room; characters that do not show are escaped."""
    text = pattern.raw or f"/{pattern.regex}/"
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _svg(diagrams: list[tuple[str, Any]]) -> str:
    """One SVG with all diagrams, one below the other."""
    import railroad

    parts: list[str] = []
    height, width = 0.0, 0.0
    for title, diagram in diagrams:
        diagram.format(10)
        diagram.attrs["y"] = str(height + _TITLE)
        parts.append(
            f'<g id="{escape(title.partition("{")[0])}">'
            f'<text class="title" x="10" y="{height + 22}">{escape(title)}</text>'
        )
        diagram.writeSvg(parts.append)
        parts.append("</g>\n")
        height += _TITLE + float(diagram.attrs["height"])
        width = max(width, float(diagram.attrs["width"]), 20 + 10 * len(title))
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    style = f"<style>{railroad.DEFAULT_STYLE}{_STYLE}</style>"
    return f'<svg xmlns="{_SVG}" xmlns:xlink="{_XLINK}" {size}>\n{style}\n{"".join(parts)}</svg>\n'


def _html(diagrams: list[tuple[str, Any]]) -> str:
    """A page with all diagrams."""
    import railroad

    parts: list[str] = []
    for title, diagram in diagrams:
        name = escape(title.partition("{")[0])
        parts.append(f'<h2 id="{name}">{escape(title)}</h2>\n')
        diagram.writeSvg(parts.append)
    style = f"<style>{railroad.DEFAULT_STYLE}</style>"
    return f'<!doctype html>\n<meta charset="utf-8">\n<title>Railroad diagrams</title>\n{style}\n{"".join(parts)}\n'
