"""Reading ``.lark`` texts with lark's own loader.

The loader is private to lark (``lark.load_grammar``), but nothing else resolves imports, ``%extend``, ``%override``,
templates' scopes and string escapes exactly as lark does, and writing it anew would be another dialect. All that
grammarspec takes from it passes through this module: rules as EBNF trees, terminals as regular expressions. Lark's next
step, to plain BNF, is not used: it multiplies out alternatives, which grows without bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any, Final

from grammarspec.errors import GrammarSyntaxError, LimitExceeded, MissingPackage, UnsupportedFeature
from grammarspec.positions import where as place

__all__ = ["Pattern", "Source", "read"]

_MAX_TERMINAL: Final = 1_000_000
"""Characters of one terminal's regular expression, and symbols of all terminals together, written out in full."""

# Where lark's loader itself knows no bounds: two expressions of its lexer backtrack on literals that never end and on
# long runs of blank lines, and terminals that refer to each other are walked as if written out.
_TOKENS = re.compile(
    r"""//[^\n]*|\#[^\n]*|"(?:\\.|[^"\\\n])*"|/(?:\\.|[^/\\])+/|(?P<open>["/])|(?P<name>\w+)|(?P<colon>:)|(?P<line>\n)|.""",
    re.DOTALL,
)
_UNDEFINED = re.compile(
    r"'(?P<rule>\w+)' used but not defined \(in rule (?P<user>\w+)"
    r"|not defined: (?P<terminal>\w+)|Terminals {'(?P<ignored>\w+)"
)
"""What lark says of names that mean nothing. It does not say where they stand."""

_BLANK_LINES = re.compile(r"(?:[ \t\r]*\n){100,}")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A terminal's regular expression in Python's syntax; ``literal`` is the text if it is a plain string."""

    regex: str
    literal: str | None
    raw: str
    """As it stands in the grammar, if it stands there."""


@dataclass(frozen=True, slots=True)
class Source:
    """A grammar as lark's loader gives it.

    Attributes:
        text: the grammar itself, for showing places.
        rules: parameters and body of each rule. A body is a tree of ``expansions``, ``expansion``, ``alias``, ``expr``,
            ``maybe``, ``value`` and ``template_usage``, whose leaves are lark's symbols and ``pattern`` trees; ``None``
            for a rule that is only declared.
        terminals: each terminal's tree, or ``None`` if it is only declared.
        ignored: the names of the terminals that ``%ignore`` names.
    """

    text: str
    rules: dict[str, tuple[tuple[str, ...], Any]]
    terminals: dict[str, Any]
    ignored: list[str]

    def pattern(self, name: str) -> Pattern:
        """The regular expression of a terminal of this grammar."""
        from lark.load_grammar import PrepareLiterals, TerminalTreeToPattern, nr_deepcopy_tree

        tree = self.terminals[name]
        if _written_out(tree) > _MAX_TERMINAL:
            raise LimitExceeded(
                f"the terminal {name} exceeds the limit of {_MAX_TERMINAL} characters", self.where(name)
            )
        with _lark_errors(self.text):
            return _pattern((PrepareLiterals() * TerminalTreeToPattern()).transform(nr_deepcopy_tree(tree)))  # type: ignore[no-untyped-call]

    def where(self, name: str) -> str:
        """The place where a rule or terminal is defined, or ``""`` if it is imported."""
        found = re.search(rf"^[ \t]*(?:%\w+[ \t]+)?[!?]*({re.escape(name)})[ \t]*[.:{{]", self.text, re.MULTILINE)
        return place(self.text, found.start(1)) if found else ""

    def where_statement(self, keyword: str) -> str:
        """The place of the first ``%ignore`` or ``%declare``."""
        found = re.search(rf"^[ \t]*{keyword}\b", self.text, re.MULTILINE)
        return place(self.text, found.start()) if found else ""

    def where_literal(self, raw: str) -> str:
        """The place of a literal, or ``""`` if it is not in this text."""
        offset = self.text.find(raw) if raw else -1
        return place(self.text, offset) if offset >= 0 else ""


def read(text: str, source_name: str) -> Source:
    """Load a grammar with its imports. ``source_name`` is its path, or ``"<string>"``.

    Raises:
        GrammarSyntaxError: lark rejects the grammar.
        LimitExceeded: it is nested too deeply for lark.
        MissingPackage: lark is not installed.
    """
    try:
        from lark.load_grammar import PrepareLiterals, load_grammar, nr_deepcopy_tree
    except ImportError as error:
        raise MissingPackage(".lark grammars need the package lark", hint="pip install 'grammarspec[lark]'") from error

    surrogate = re.search("[\ud800-\udfff]", text)
    if surrogate:
        message = f"a lone surrogate (U+{ord(surrogate[0]):04X}) cannot be spelled in UTF-8"
        raise GrammarSyntaxError(message, place(text, surrogate.start()))
    _check(text)
    compact = _BLANK_LINES.sub(lambda blank: "\n" * min(100, blank[0].count("\n")), text)
    with _lark_errors(text):
        grammar, _ = load_grammar(compact, source_name, [], False)  # type: ignore[no-untyped-call]
        literals = PrepareLiterals()
        rules = {
            name: (tuple(params), tree and literals.transform(nr_deepcopy_tree(tree)))  # type: ignore[no-untyped-call]
            for name, params, tree, _ in grammar.rule_defs
        }
        for _, tree in rules.values():
            for leaf in tree.find_data("pattern") if tree else ():
                leaf.children[0] = _pattern(leaf.children[0])
    terminals = {name: tree for name, (tree, _) in grammar.term_defs}
    return Source(text, rules, terminals, list(grammar.ignore))


def _check(text: str) -> None:
    """Refuse what would keep lark's loader busy without end."""
    references: dict[str, list[str]] = {}
    body, line = list[str](), list[str]()  # names of the definition and of the line that we are in
    for token in _TOKENS.finditer(text):
        if token["name"]:
            line.append(token["name"])
        elif token["line"]:
            body += line
            line = []
        elif token["colon"] and line:
            body = references[line[0]] = []
            line = []
        elif token["open"]:
            line_end = text.find("\n", token.start())
            end = line_end if token["open"] == '"' and line_end >= 0 else len(text)
            if text.count("\\\\", token.start(), end) > 8:
                raise GrammarSyntaxError("malformed grammar: a literal that never ends", place(text, token.start()))
    sizes: dict[str, int] = {}
    for terminal in references:
        if terminal.isupper() and _size(terminal, references, sizes) > _MAX_TERMINAL:
            break
    if sum(sizes.values()) > _MAX_TERMINAL:
        raise LimitExceeded(f"the terminals, written out, exceed the limit of {_MAX_TERMINAL} symbols")


def _size(terminal: str, references: dict[str, list[str]], sizes: dict[str, int]) -> int:
    """How many names a terminal refers to, and those in turn, each as often as it is reached."""
    stack = [terminal]
    while stack:
        name = stack[-1]
        if name not in sizes:
            sizes[name] = 1  # also ends a circle, which lark reports
            stack += [other for other in references.get(name, ()) if other not in sizes]
        else:
            sizes[name] = min(1 + sum(sizes.get(other, 1) for other in references.get(name, ())), 1 << 62)
            stack.pop()
    return sizes[terminal]


def _written_out(tree: Any) -> int:
    """About how long the terminal's expression gets. Its tree shares subtrees, so it may be far smaller."""
    sizes: dict[int, int] = {}
    stack = [tree]
    while stack:
        part = stack[-1]
        inner = [child for child in part.children if hasattr(child, "children")]
        missing = [child for child in inner if id(child) not in sizes]
        if missing:
            stack += missing
            continue
        leaves = sum(len(str(child)) for child in part.children if not hasattr(child, "children"))
        sizes[id(stack.pop())] = min(2 + leaves + sum(sizes[id(child)] for child in inner), 1 << 62)
    return sizes[id(tree)]


def _pattern(pattern: Any) -> Pattern:
    literal = pattern.value if pattern.type == "str" and not pattern.flags else None
    return Pattern(pattern.to_regexp(), literal, pattern.raw or "")


def _use(text: str, name: str, user: str | None) -> str:
    """The place where a name first stands, in the definition of ``user`` or behind it; ``""`` if it is imported."""
    names = dropwhile(lambda token: user not in (None, token["name"]), _TOKENS.finditer(text))
    return next((place(text, token.start()) for token in names if token["name"] == name), "")


@contextmanager
def _lark_errors(text: str) -> Iterator[None]:
    """Lark's errors as ours."""
    from lark.exceptions import GrammarError, UnexpectedInput

    try:
        yield
    except UnexpectedInput as error:
        offset = error.pos_in_stream
        where = place(text, offset) if isinstance(offset, int) else ""
        raise GrammarSyntaxError("malformed grammar: unexpected input", where) from error
    except GrammarError as error:
        message = str(error).partition("\n\n")[0].strip()
        found = re.search(r",? at line (\d+),? column (\d+)", message)
        where = ""
        if found:
            lines = text.splitlines(keepends=True)[: int(found[1]) - 1]
            where = place(text, min(len(text), sum(map(len, lines)) + int(found[2]) - 1))
            message = message[: found.start()] + message[found.end() :]
        elif undefined := _UNDEFINED.search(message):
            name = undefined["rule"] or undefined["terminal"] or undefined["ignored"]
            where = _use(text, name, undefined["user"])
        raise GrammarSyntaxError(f"malformed grammar: {message.strip()}", where) from error
    except RecursionError as error:
        raise LimitExceeded("the grammar exceeds the limit on nesting depth") from error
    except ImportError as error:
        raise UnsupportedFeature(str(error.args[0]), hint="pip install regex") from error
    except (AssertionError, OSError, ValueError) as error:
        raise GrammarSyntaxError(f"malformed grammar: {error or type(error).__name__}") from error
