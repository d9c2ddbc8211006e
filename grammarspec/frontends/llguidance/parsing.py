"""From the tokens of a grammar to its rules, terminals and statements."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from grammarspec.errors import GrammarSyntaxError, LimitExceeded, UnsupportedFeature
from grammarspec.frontends.llguidance.common import COMMON
from grammarspec.frontends.llguidance.tokens import Token, tokens, unquoted
from grammarspec.frontends.llguidance.tree import (
    And,
    Choice,
    Json,
    Literal,
    Name,
    Node,
    Not,
    Pattern,
    Range,
    Repeat,
    Rule,
    Sequence,
    Special,
    Substring,
)
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.builder import UNBOUNDED
from grammarspec.positions import where

__all__ = ["Source", "read"]

_STEPS: Final = 70
"""Steps for each part of a rule."""
_MOST_NESTED: Final = 100
_END: Final = Token("end", "the end of the text", 0, 0)
_CLOSING: Final = frozenset((")", "]", "}", "|", "->", "line", "end"))
_COUNTS: Final = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_REFUSED_KEYWORDS: Final = {
    "%declare": "a terminal that is only declared",
    "%extend": "an extension of a rule",
    "%lark": "a grammar within a grammar",
    "%override": "an override of a rule",
}
_REFUSED_ATTRIBUTES: Final = {
    "max_tokens": "tokens cannot be counted in a language; count characters: /(?s:.){0,80}/",
    "stop": "suffix= keeps the text that ends the rule, instead of taking it back from the model",
    "stop_capture": "name a rule for what the suffix is",
    "temperature": "it is an option of the call that generates",
}
_WORDS = re.compile(r"\w+|[^\w\s]+|\s+")


@dataclass(slots=True)
class Source:
    """A grammar.

    Attributes:
        text: its text.
        rules: its rules, by their names.
        terminals: its terminals, by their names, those imported among them.
        ignored: what ``%ignore`` names.
        initial_skip: whether that may stand at the start of a text, too.
    """

    text: str
    rules: dict[str, Rule] = field(default_factory=dict)
    terminals: dict[str, Rule] = field(default_factory=dict)
    ignored: list[Node] = field(default_factory=list)
    initial_skip: bool = False

    def fail(self, message: str, place: int, hint: str = "") -> NoReturn:
        """Say that the grammar is malformed.

        Raises:
            GrammarSyntaxError: always.
        """
        raise GrammarSyntaxError(f"malformed grammar: {message}", where(self.text, place), hint)

    def refuse(self, feature: str, place: int, hint: str = "") -> NoReturn:
        """Say that the grammar uses what is not supported.

        Raises:
            UnsupportedFeature: always.
        """
        raise UnsupportedFeature(f"{feature} is not supported", where(self.text, place), hint)


def read(text: str, budget: Budget) -> Source:
    """The rules, terminals and statements of a grammar.

    Raises:
        GrammarSyntaxError: the grammar is malformed.
        UnsupportedFeature: it uses what is refused.
        LimitExceeded: it is nested too deeply, a count is too large, or the budget is used up.
        Cancelled: the work was cancelled.
    """
    return _Parser(text, budget).read()


class _Parser:
    """One parse of one grammar. All methods raise the errors of :func:`read`."""

    def __init__(self, text: str, budget: Budget) -> None:
        self.text, self.budget = text, budget
        self.source = Source(text)
        self.tokens = tokens(text, budget)
        self.at = 0
        self.depth = 0

    # Tokens.

    @property
    def token(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    @property
    def place(self) -> int:
        """Where that token stands; at the end of the text, its last character."""
        return self.token.begin if self.at < len(self.tokens) else max(0, len(self.text) - 1)

    def accept(self, kind: str) -> Token | None:
        """Read a token of this kind, if it comes next."""
        token = self.token
        if token.kind != kind or token is _END:
            return None
        self.at += 1
        return token

    def expect(self, *kinds: str) -> Token:
        """Read a token, which must be of one of these kinds."""
        token = self.token
        if token.kind not in kinds:
            self.unexpected(f"{' or '.join(kinds)} is expected")
        self.at += 1
        return token

    def unexpected(self, hint: str = "") -> NoReturn:
        """Say that what comes next cannot stand here."""
        ends = {"line": "the line ends here", "end": "the text ends here"}
        message = ends.get(self.token.kind) or f"an unexpected {self.token.text:.60}"
        self.source.fail(message, self.place, hint)

    # Statements and rules.

    def read(self) -> Source:
        """Read the whole grammar."""
        while self.at < len(self.tokens):
            if self.accept("line"):
                continue
            if self.token.kind in ("rule", "terminal"):
                self.rule()
            else:
                self.statement()
            if self.at < len(self.tokens):
                self.expect("line")
        return self.source

    def rule(self) -> None:
        """Read a rule or a terminal."""
        token = self.expect("rule", "terminal")
        name = token.text.lstrip("!?")
        if self.token.kind == "{":
            self.source.refuse("a template", token.begin, "write a rule for each use")
        if self.token.kind == ".":
            self.source.refuse("a priority", token.begin)
        if self.token.kind == "::":
            self.source.refuse("a rule with a parameter", token.begin)
        kept = self.attributes(token) if self.token.kind == "[" and token.kind == "rule" else {}
        if self.token.kind == "::":
            self.source.refuse("a rule with a parameter", token.begin)
        self.expect(":")
        rule = Rule(name, self.choice(), token.begin, **kept)
        known = self.source.rules if token.kind == "rule" else self.source.terminals
        if name in known:
            self.source.fail(f"{name} is defined a second time", token.begin)
        known[name] = rule

    def attributes(self, rule: Token) -> dict[str, Any]:
        """Read the attributes of a rule."""
        kept: dict[str, Any] = {}
        self.expect("[")
        while not self.accept("]"):
            name = self.expect("rule")
            if name.text in _REFUSED_ATTRIBUTES:
                self.source.refuse(f"the attribute {name.text}", name.begin, _REFUSED_ATTRIBUTES[name.text])
            if name.text == "lazy":
                kept["lazy"] = True
            elif name.text == "suffix":
                self.expect("=")
                kept["suffix"], kept["lazy"] = self.value(), True
            elif name.text == "capture":
                token = self.expect("literal") if self.accept("=") else None
                kept["capture"] = unquoted(self.text, token) if token else rule.text.lstrip("!?")
            else:
                self.source.fail(f"there is no attribute {name.text:.60}", name.begin)
            if not self.accept(","):
                self.expect("]")
                break
        return kept

    def statement(self) -> None:
        """Read a statement."""
        token = self.expect("%ignore", "%import", "%llguidance", *_REFUSED_KEYWORDS)
        if token.kind == "%ignore":
            self.source.ignored.append(self.choice())
        elif token.kind == "%import":
            self.imports()
        elif token.kind == "%llguidance":
            self.options(token)
        else:
            self.source.refuse(_REFUSED_KEYWORDS[token.kind], token.begin)

    def imports(self) -> None:
        """Read what is imported: terminals of llguidance's ``common``."""
        path = self.expect("rule", "terminal", ".")
        if path.text != "common":
            self.source.refuse(f"an import from {path.text:.60}", path.begin, "terminals of common can be imported")
        if self.accept("("):
            names = [self.expect("terminal")]
            while self.accept(","):
                names.append(self.expect("terminal"))
            self.expect(")")
            for name in names:
                self.imported(name, name.text)
            return
        self.expect(".")
        name = self.expect("terminal", "rule")
        self.imported(name, self.expect("terminal").text if self.accept("->") else name.text)

    def imported(self, token: Token, name: str) -> None:
        """Define a terminal as one of those of ``common``."""
        if token.text not in COMMON:
            self.source.fail(f"common has no terminal {token.text:.60}", token.begin, f"it has {', '.join(COMMON)}")
        if name in self.source.terminals:
            self.source.fail(f"{name} is defined a second time", token.begin)
        body = Pattern(COMMON[token.text], "", token.begin)
        self.source.terminals[name] = Rule(name, body, token.begin)

    def options(self, token: Token) -> None:
        """Read the options of ``%llguidance``, of which most are about speed."""
        options = json.loads(token.value)
        if not isinstance(options, dict):
            self.source.fail("the options are no object of JSON", token.begin)
        for name, value in options.items():
            if not isinstance(value, bool) or name not in ("no_forcing", "allow_initial_skip", "allow_invalid_utf8"):
                self.source.refuse(f"the option {name!r:.60} with the value {value!r:.60}", token.begin)
            if name == "allow_initial_skip":
                self.source.initial_skip = value
            elif name == "allow_invalid_utf8" and value:
                self.source.refuse("text that is not UTF-8", token.begin)

    # Expressions.

    def choice(self) -> Node:
        """Read alternatives, which may begin on lines of their own."""
        branches = [self.conjunction()]
        while self.another():
            branches.append(self.conjunction())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def another(self) -> bool:
        """Read ``|``, on this line or at the beginning of the next one."""
        begin = self.at
        while self.accept("line"):
            pass
        if self.accept("|"):
            return True
        self.at = begin
        return False

    def conjunction(self) -> Node:
        """Read what stands between two ``|``, and its alias."""
        place = self.place
        parts = [self.sequence()]
        while self.accept("&"):
            parts.append(self.sequence())
        if self.accept("->"):
            self.expect("rule")
        return parts[0] if len(parts) == 1 else And(tuple(parts), place)

    def sequence(self) -> Node:
        """Read what stands one after the other."""
        parts = []
        while self.token.kind not in _CLOSING and self.token.kind != "&":
            parts.append(self.repeated())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def repeated(self) -> Node:
        """Read one part and the operator behind it."""
        self.budget.spend(_STEPS)
        node = self.part()
        place = self.place
        if sign := self.accept("*") or self.accept("+") or self.accept("?"):
            return Repeat(node, *_COUNTS[sign.kind])
        if self.token.kind == "~" and self.tokens[self.at + 1 : self.at + 2] and self.follows("number"):
            self.at += 1
            least = self.number()
            return self.counted(node, least, self.number() if self.accept("..") else least, place)
        if self.token.kind == "{" and (self.follows("number") or self.follows(",")):
            self.at += 1
            least = 0 if self.token.kind == "," else self.number()
            most: int | None = least
            if self.accept(","):
                most = None if self.token.kind == "}" else self.number()
            self.expect("}")
            return self.counted(node, least, most, place)
        return node

    def counted(self, node: Node, least: int, most: int | None, place: int) -> Node:
        """A part with counts."""
        if most is not None and most < least:
            self.source.fail("the least count is above the most", place)
        return Repeat(node, least, most)

    def follows(self, kind: str) -> bool:
        """Whether the token behind the next one is of this kind."""
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].kind == kind

    def number(self) -> int:
        """Read a count."""
        token = self.expect("number")
        if not token.text.isdigit():
            self.source.fail(f"{token.text:.60} is no count", token.begin)
        if len(token.text) > 12 or int(token.text) >= UNBOUNDED:
            place = where(self.text, token.begin, token.end)
            raise LimitExceeded(f"a repetition count must be below the limit {UNBOUNDED}", place)
        return int(token.text)

    def part(self) -> Node:
        """Read one part: a group, ``~`` and a part, or a value."""
        self.depth += 1
        if self.depth > _MOST_NESTED:
            place = where(self.text, self.place)
            raise LimitExceeded(f"the nesting depth of the grammar is above the limit {_MOST_NESTED}", place)
        begin = self.place
        node: Node
        if self.accept("~"):
            node = Not(self.part(), begin)
        elif self.accept("("):
            node = self.group(")")
        elif self.accept("["):
            node = Repeat(self.group("]"), 0, 1)
        else:
            node = self.value()
        self.depth -= 1
        return node

    def group(self, end: str) -> Node:
        """Read alternatives and the sign that ends them."""
        node = self.choice()
        while self.accept("line"):
            pass
        self.expect(end)
        return node

    def value(self) -> Node:
        """Read one value."""
        token = self.token
        place = token.begin
        match token.kind:
            case "literal":
                return self.literal()
            case "pattern":
                end = token.text.rindex("/")
                node: Node = Pattern(token.text[1:end], token.text[end + 1 :], place)
            case "rule" | "terminal":
                if self.follows("{") and not self.is_count():
                    self.source.refuse("a template", place, "write a rule for each use")
                if self.follows("::"):
                    self.source.refuse("a rule with a parameter", place)
                node = Name(token.text, place)
            case "special" if token.text.startswith("<["):
                hint = "write tokens by their names, <|eot|>"
                self.source.refuse(f"{token.text:.60}, tokens by their numbers,", place, hint)
            case "special":
                node = Special(token.text, place)
            case "%json":
                node = Json(token.value, place)
            case "%regex":
                node = Substring(self.pieces(token), place)
            case "grammar" | "@{":
                self.source.refuse("another grammar (@)", place, "+ and | combine grammars in Python")
            case "%lark":
                self.source.refuse(_REFUSED_KEYWORDS["%lark"], place)
            case _:
                self.unexpected()
        self.at += 1
        return node

    def is_count(self) -> bool:
        """Whether the brace behind the next token begins a count."""
        behind = self.tokens[self.at + 2].kind if self.at + 2 < len(self.tokens) else ""
        return behind in ("number", ",")

    def literal(self) -> Node:
        """Read a literal, or two with ``..`` between them."""
        token = self.expect("literal")
        ignore_case = token.text.endswith("i")
        text = unquoted(self.text, token)
        if not self.accept(".."):
            return Literal(text, ignore_case, token.begin)
        other = self.expect("literal")
        last = unquoted(self.text, other)
        if len(text) != 1 or len(last) != 1 or last < text or ignore_case or other.text.endswith("i"):
            self.source.fail("a range goes from one character up to another", token.begin)
        return Range(text, last, token.begin)

    def pieces(self, token: Token) -> tuple[str, ...]:
        """The pieces that ``%regex`` names."""
        value = json.loads(token.value)
        pieces: tuple[str, ...] = ()
        match value:
            case {"substring_chunks": list(chunks)} if len(value) == 1 and all(isinstance(c, str) for c in chunks):
                pieces = tuple(chunks)
            case {"substring_words": str(words)} if len(value) == 1:
                pieces = tuple(_WORDS.findall(words))
            case {"substring_chars": str(chars)} if len(value) == 1:
                pieces = tuple(chars)
            case _:
                hint = "it takes one of substring_chunks, substring_words and substring_chars"
                self.source.refuse(f"%regex with {token.value!r:.60}", token.begin, hint)
        return pieces
