"""From the text of a ``.lark`` grammar to its rules and terminals, by lark's own loader.

A text goes in, and a :class:`Source` comes out. Lark's loader is private to lark (``lark.load_grammar``), but nothing
else resolves imports, ``%extend``, ``%override``, the scopes of templates and the escapes of strings exactly as lark
does; a loader of our own would be another dialect. All that grammarspec takes from lark passes through this module:
rules as EBNF trees, which are converted to the records of :mod:`.tree`, and terminals as regular expressions. Lark's
next step, to plain BNF, multiplies out alternatives, which grows without bound: only its LALR parser needs it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence as Several
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grammarspec.errors import GrammarSyntaxError, needed_by
from grammarspec.frontends.lark.errors import lark_errors
from grammarspec.frontends.lark.given_terminals import GivenTerminal, replace_terminals
from grammarspec.frontends.lark.imports import Imports
from grammarspec.frontends.lark.limits import check_terminal, check_text, without_long_gaps
from grammarspec.frontends.lark.text import GrammarText
from grammarspec.frontends.lark.tree import (
    Alternatives,
    Body,
    Literal,
    Maybe,
    Pattern,
    Repetition,
    Rule,
    Sequence,
    Symbol,
    TemplateUse,
    Value,
)

__all__ = ["Source", "read"]


@dataclass(frozen=True, slots=True)
class Source:
    """A grammar that has been loaded, with what it imports.

    Attributes:
        text: the grammar itself, for positions in it.
        rules: the rules and templates by name.
        terminals: lark's tree of each terminal by name, for :meth:`pattern`; ``None`` if it is only declared.
        ignored: the names of the terminals that ``%ignore`` names.
        grammar: what lark's loader has made of it all.
        given: by name the terminals whose texts are those of another grammar; their own patterns mean nothing.
    """

    text: GrammarText
    rules: dict[str, Rule]
    terminals: dict[str, Any]
    ignored: tuple[str, ...]
    grammar: Any
    given: dict[str, GivenTerminal]

    def pattern(self, name: str) -> Pattern | None:
        """The regular expression of a terminal; ``None`` if it is only declared.

        It is made when asked for: a terminal is written out in full, and a grammar may import many that it never uses.

        Raises:
            GrammarSyntaxError: lark rejects the terminal.
            UnsupportedFeature: lark needs a package for it that is not installed.
            LimitExceeded: its expression would be too long, or it is nested too deeply.
        """
        from lark.load_grammar import PrepareLiterals, TerminalTreeToPattern, nr_deepcopy_tree

        tree = self.terminals[name]
        if tree is None:
            return None
        check_terminal(name, tree, self.text)
        with lark_errors(self.text):
            return _pattern((PrepareLiterals() * TerminalTreeToPattern()).transform(nr_deepcopy_tree(tree)))  # type: ignore[no-untyped-call]


def read(
    text: str,
    file: Path | None = None,
    import_paths: Several[Path] = (),
    given: Several[GivenTerminal] = (),
    *,
    keep_all_tokens: bool = False,
) -> Source:
    """Load a grammar with its imports.

    Args:
        file: the file that it was read from, beside which its relative imports stand; ``None``: it is a text.
        import_paths: other folders with grammars that it may import.
        given: terminals that replace its own.
        keep_all_tokens: the option of lark, which shapes trees.

    Raises:
        GrammarSyntaxError: lark rejects the grammar, there is no grammar of an imported name, or no terminal of a given
            one.
        UnsupportedFeature: lark needs a package for it that is not installed; it imports what it must not read; or a
            terminal is made of a given one.
        LimitExceeded: it is nested too deeply, or its terminals are too large.
        MissingPackage: lark is not installed.
        TypeError: lark's loader makes a tree of a kind that is unknown here.
    """
    with needed_by(".lark grammars"):
        from lark.load_grammar import GrammarBuilder, PrepareLiterals, nr_deepcopy_tree

    source = GrammarText(text)
    surrogate = re.search("[\ud800-\udfff]", text)
    if surrogate:
        message = f"a lone surrogate (U+{ord(surrogate[0]):04X}) cannot be spelled in UTF-8"
        raise GrammarSyntaxError(message, source.at(surrogate.start()))
    check_text(source)
    imports = Imports(source, file, import_paths)
    with lark_errors(source):
        builder: Any = GrammarBuilder(keep_all_tokens, [imports])
        builder.load_grammar(without_long_gaps(text), imports.source_name)
        replace_terminals(builder._definitions, given, source)
        grammar = builder.build()
        literals = PrepareLiterals()
        rules = {
            name: Rule(tuple(parameters), tree and _body(literals.transform(nr_deepcopy_tree(tree))))  # type: ignore[no-untyped-call]
            for name, parameters, tree, _ in grammar.rule_defs
        }
    terminals = {name: tree for name, (tree, _) in grammar.term_defs}
    embedded = {one.name: one for one in given if not one.is_expression}
    return Source(source, rules, terminals, tuple(grammar.ignore), grammar, embedded)


def _body(tree: Any) -> Body:
    """A rule's body, or a part of it, from lark's tree."""
    children = tree.children
    match tree.data:
        case "expansions":
            return Alternatives(tuple([_body(child) for child in children]))
        case "expansion":
            return _body(children[0]) if len(children) == 1 else Sequence(tuple([_body(child) for child in children]))
        case "alias":
            return _body(children[0])
        case "maybe":
            return Maybe(_body(children[0]))
        case "expr":
            return Repetition(_body(children[0]), str(children[1]), tuple(map(str, children[2:])))
    return _value(tree)


def _value(tree: Any) -> Value:
    """A symbol, a literal, or the use of a template, from lark's tree or symbol."""
    match getattr(tree, "data", None):
        case None:
            return Symbol(tree.name, tree.is_term)
        case "value":
            return _value(tree.children[0])
        case "pattern":
            return Literal(_pattern(tree.children[0]))
        case "template_usage":
            return TemplateUse(tree.children[0].name, tuple(map(_value, tree.children[1:])))
    raise TypeError(f"lark's loader made a tree of an unknown kind, {tree.data!r}")


def _pattern(pattern: Any) -> Pattern:
    """The record of one of lark's patterns."""
    literal = pattern.value if pattern.type == "str" and not pattern.flags else None
    return Pattern(pattern.to_regexp(), literal, pattern.raw or "", pattern.type == "str")
