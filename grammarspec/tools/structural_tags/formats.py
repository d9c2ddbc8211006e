"""The formats of structural tags as nodes of the grammar builder.

The formats are those of XGrammar 0.2 (``xgrammar/structural_tag.py``): https://xgrammar.mlc.ai/docs/structural_tag.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from grammarspec._compiler import Grammar as Ir
from grammarspec.errors import GrammarError, GrammarSyntaxError, UnsupportedFeature
from grammarspec.frontends.gbnf.dispatch import check_apart, dispatched
from grammarspec.frontends.gbnf.rules import Rules
from grammarspec.frontends.gbnf.text import read as read_gbnf
from grammarspec.frontends.json_schema import language
from grammarspec.frontends.json_schema.spelling.options import Notation, Spelling
from grammarspec.frontends.regex.patterns import lower_pattern
from grammarspec.grammars import marks
from grammarspec.grammars.builder import GrammarBuilder
from grammarspec.tools.formats.arguments import TOJSON
from grammarspec.tools.formats.styles import STYLES
from grammarspec.tools.structural_tags.members import Members

__all__ = ["Formats"]

_COUNTS: Final = "counts of tokens cannot be enforced: bound characters by max_chars, or the whole answer by max_tokens"
_TOKENS: Final = (
    "only special tokens of the model can be named; text is written as const_string, and excluded as excludes"
)
_MOST_BLANKS: Final = 1_000_000_000
_SCHEMA: Final = 2_000
"""Steps for each schema, beside those that grow with it."""


class Formats:
    """Makes nodes of formats.

    Args:
        builder: where the nodes go.
        spelling: how JSON is written.
        names: the special tokens by name, with their numbers as far as they are known.
    """

    def __init__(self, builder: GrammarBuilder, spelling: Spelling, names: Mapping[str, int | None]) -> None:
        self.builder, self.budget, self.spelling = builder, builder.budget, spelling
        self.names = {name: number for name, number in names.items() if name.strip()}
        self.numbers = {number: name for name, number in self.names.items() if number is not None}
        self._makers: dict[str, Callable[[Members, list[str]], int]] = {
            "const_string": lambda one, _: self.text(one.get("value", str)),
            "json_schema": lambda one, _: self._json(one),
            "qwen_xml_parameter": lambda one, _: self._xml(one, "qwen_xml"),
            "any_text": self._any_text,
            "grammar": lambda one, _: self._grammar(one),
            "regex": lambda one, _: self._regex(one),
            "sequence": lambda one, ends: self.builder.seq(*self._elements(one, ends)),
            "or": lambda one, ends: self.builder.alt(*self._elements(one, ends)),
            "tag": lambda one, _: self._tag(one),
            "triggered_tags": self._triggered_tags,
            "tags_with_separator": lambda one, _: self._tags_with_separator(one),
            "dispatch": self._dispatch,
            "optional": lambda one, ends: self._repeated(one, ends, 0, 1),
            "star": lambda one, ends: self._repeated(one, ends, 0, None),
            "plus": lambda one, ends: self._repeated(one, ends, 1, None),
            "repeat": self._counted,
            "token": lambda one, _: self.builder.literal(marks.mark(self._name(one, "token", one.raw("token")))),
            "any_tokens": lambda one, _: self._any_tokens(one),
            "token_triggered_tags": self._token_triggered_tags,
            "token_dispatch": self._token_dispatch,
        }

    def start(self, tag: Members) -> int:
        """The node of a whole structural tag, in either notation.

        Raises:
            GrammarError: as :func:`.structural_tag`.
        """
        if "structures" in tag.value:
            if tag.get("type", str, "structural_tag") != "structural_tag":
                raise GrammarSyntaxError("the type is structural_tag", tag.at("type"))
            tags = [self._structure(one) for one in tag.objects("structures")]
            triggers = tag.texts("triggers")
            tag.end()
            return self._triggered(tag, triggers, tags, [])
        if tag.get("type", str, "structural_tag") != "structural_tag":
            return self.node(tag, [])
        inner = tag.member("format")
        tag.end()
        return self.node(inner, [])

    def node(self, one: Members, ends: list[str]) -> int:
        """The node of a format.

        Args:
            one: the format.
            ends: the texts of which one ends the tag around it; free text does not hold them.

        Raises:
            GrammarError: as :func:`.structural_tag`.
        """
        kind = one.get("type", str)
        if kind not in self._makers:
            hint = f"these are enforced: {', '.join(self._makers)}"
            raise UnsupportedFeature(f"the format {kind!r:.60}", one.where, hint)
        node = self._makers[kind](one, ends)
        one.end()
        return node

    # ------------------------------------------------------------------ texts and tokens
    def text(self, text: str) -> int:
        """A text, in which names of special tokens stand for these."""
        return self.builder.literal(self._marked(text))

    def _marked(self, text: str) -> bytes:
        self.budget.spend(20 + len(self.names) // 8)
        found = sorted((name for name in self.names if name in text), key=len, reverse=True)
        if not found:
            return text.encode()
        pieces = re.split(f"({'|'.join(map(re.escape, found))})", text)
        return b"".join(marks.mark(piece) if at % 2 else piece.encode() for at, piece in enumerate(pieces))

    def _begin(self, text: str) -> str | bytes:
        """What calls a tag: a text; or a mark, if it is the name of a special token."""
        return marks.mark(text) if text in self.names else text

    def _name(self, one: Members, member: str, token: Any) -> str:
        """The name of a special token that is given by its name or its number.

        Raises:
            UnsupportedFeature: it is none.
        """
        name = self.numbers.get(token) if isinstance(token, int) else token
        if not isinstance(name, str) or name not in self.names:
            raise UnsupportedFeature(f"the token {token!r:.60}, which is no special token", one.at(member), _TOKENS)
        return name

    def _names(self, one: Members, member: str) -> list[str]:
        return [self._name(one, member, token) for token in one.get(member, list, [])]

    def _any_text(self, one: Members, ends: list[str]) -> int:
        one.refuse("max_tokens", "max_tokens of any_text", _COUNTS)
        most = one.get("max_chars", int, -1)
        without = [*one.texts("excludes", []), *ends]
        whole = self.builder.any_text(None if most < 0 else most)
        if without:
            builder = self.builder
            holding = builder.seq(builder.anything, builder.words(without), builder.anything)
            whole = builder.both(whole, builder.complement(holding))
        return self.builder.terminal(whole)

    def _any_tokens(self, one: Members) -> int:
        one.refuse("max_tokens", "max_tokens of any_tokens", _COUNTS)
        return self._tokens_but(self._names(one, "exclude_tokens"))

    def _tokens_but(self, without: list[str]) -> int:
        """Any text, with any special tokens in it but some."""
        builder, missing = self.builder, set(without)
        others = [builder.literal(marks.mark(name)) for name in self.names if name not in missing]
        text = builder.terminal(builder.any_text())
        if not others:
            return text
        return builder.seq(text, builder.repeat(builder.seq(builder.alt(*others), text), 0, None))

    # ------------------------------------------------------------------ parts of other notations
    @contextmanager
    def _within(self, place: str) -> Iterator[None]:
        """Errors of a part name the place of it."""
        try:
            yield
        except GrammarError as error:
            where = error.where[1:] if error.where.startswith("#") else f": {error.where}" if error.where else ""
            raise type(error)(error.message, place + where, error.hint) from None

    def _json(self, one: Members) -> int:
        style = one.get("style", str, "json")
        if style != "json":
            return self._xml(one, style)
        spelling, blanks = self.spelling, self._blanks(one)
        if blanks is not None and spelling.separators is None:
            spelling = spelling._replace(blanks=re.compile(f"[ \\n\\r\\t]{{0,{blanks}}}"))
        return self._schema(one, spelling)

    def _blanks(self, one: Members) -> int | None:
        """The most characters of whitespace in one place, if that is asked for."""
        count = one.get("max_whitespace_cnt", int, -1)
        if count < -1 or count > _MOST_BLANKS:
            message = f"a number of characters from 0 to {_MOST_BLANKS:,} is expected, not {count}"
            raise GrammarSyntaxError(message, one.at("max_whitespace_cnt"))
        return None if count < 0 else count

    def _schema(self, one: Members, spelling: Spelling) -> int:
        """The values of a schema, spelled in this way, but for those with a text that is excluded."""
        schema, any_order = one.raw("json_schema"), one.get("any_order", bool, False)
        spelling = spelling._replace(notation=Notation(excluded=tuple(one.texts("excludes", []))))
        self.budget.spend(_SCHEMA, one.where)
        with self._within(one.at("json_schema")):
            ir = language(schema, spelling, any_order=any_order, closed=True, budget=self.budget)
        return self.embedded(ir)

    def embedded(self, ir: Ir) -> int:
        """The language of another grammar."""
        return self.builder.embed(ir)

    def _xml(self, one: Members, style: str) -> int:
        """The members of an object as elements; other values are no arguments."""
        elements = STYLES.get(style)
        if elements is None:
            hint = f"these are enforced: json, {', '.join(STYLES)}"
            raise UnsupportedFeature(f"the style {style!r:.60} of arguments", one.at("style"), hint)
        blanks = self._blanks(one)
        tags = [elements.end, elements.item_end, *(tag for kind in elements.kinds for tag in (kind.member, kind.item))]
        elements = elements._replace(
            blanks=elements.blanks if blanks is None else blanks,
            special=tuple(name for name in self.names if any(name in tag for tag in tags)),
        )
        return self._schema(one, TOJSON._replace(elements=elements))

    def _grammar(self, one: Members) -> int:
        text = one.get("grammar", str)
        self.budget.spend(2 * len(text), one.where)
        with self._within(one.at("grammar")):
            inner = GrammarBuilder(self.budget)
            return self.embedded(inner.build(Rules(read_gbnf(text, self.budget), inner).start("root")))

    def _regex(self, one: Members) -> int:
        one.refuse("excludes", "texts that a regex must not match", "say it in the pattern: (?!...)", unless=[])
        with self._within(one.at("pattern")):
            return self.builder.terminal(lower_pattern(one.get("pattern", str), self.builder))

    # ------------------------------------------------------------------ combinations
    def _elements(self, one: Members, ends: list[str]) -> list[int]:
        nodes = [self.node(element, ends) for element in one.objects("elements")]
        if not nodes:
            raise GrammarSyntaxError("there are no elements", one.at("elements"))
        return nodes

    def _repeated(self, one: Members, ends: list[str], least: int, most: int | None) -> int:
        return self.builder.repeat(self.node(one.member("content"), ends), least, most)

    def _counted(self, one: Members, ends: list[str]) -> int:
        least, most = one.get("min", int), one.get("max", int)
        if least < 0 or most < -1 or 0 <= most < least or max(least, most) >= 2**32 - 1:
            raise GrammarSyntaxError(f"it cannot be repeated {least} to {most} times", one.where)
        return self._repeated(one, ends, least, None if most == -1 else most)

    # ------------------------------------------------------------------ tags
    def _tag(self, one: Members) -> int:
        begin, rest = self._parts(one)
        return self.builder.seq(self.text(begin) if isinstance(begin, str) else self.builder.literal(begin), rest)

    def _parts(self, one: Members) -> tuple[str | bytes, int]:
        """What a tag begins with, a text or the mark of a token, and the node of what follows."""
        if one.get("type", str, "tag") != "tag":
            raise GrammarSyntaxError("a tag is expected", one.at("type"))
        begin: str | bytes
        if isinstance(one.raw("begin"), Mapping):
            begin = marks.mark(self._token(one.member("begin")))
        else:
            begin = one.get("begin", str)
        ends, closing = self._ends(one)
        content = one.member("content")
        texts = [end for end in ends if end and self._marked(end) == end.encode()]
        plain = content.value.get("type") == "any_text" and not content.value.get("max_chars")
        without = content.texts("excludes", []) if plain else []
        apart = not any(excluded in end for excluded in without for end in ends)
        if plain and apart and ends and texts == ends and not content.value.get("max_tokens"):
            # the text up to the first end, which may overlap what stands before it; an end that holds what is excluded
            # (Kimi's <|close|>response<|sep|>, where <|close|> is) stands behind the text, and is no part of it
            content.get("type", str)
            content.refuse("max_tokens", "", "")
            content.get("max_chars", int, 0)
            content.end()
            empty = self.builder.empty
            node = dispatched(self.builder, [(end, empty) for end in ends], without, loops=False, least=1)
        else:
            node = self.builder.seq(self.node(content, texts), closing)
        one.end()
        return begin, node

    def _ends(self, one: Members) -> tuple[list[str], int]:
        """The texts that end a tag, if texts do, and the node of any of its ends."""
        value = one.raw("end")
        if isinstance(value, Mapping):
            return [], self.builder.literal(marks.mark(self._token(one.member("end"))))
        ends = [value] if isinstance(value, str) else one.get("end", list)
        if not ends or not all(isinstance(end, str) for end in ends):
            raise GrammarSyntaxError("a text, or a list of texts, is expected", one.at("end"))
        return ends, self.builder.alt(*map(self.text, ends))

    def _token(self, one: Members) -> str:
        if one.get("type", str, "token") != "token":
            raise GrammarSyntaxError("a token is expected", one.where)
        name = self._name(one, "token", one.raw("token"))
        one.end()
        return name

    def _structure(self, one: Members) -> tuple[str, int]:
        """A tag of the older notation: what it begins with, and the node of what follows."""
        begin, end = one.get("begin", str), one.get("end", str)
        schema = one.raw("schema")
        self.budget.spend(_SCHEMA, one.where)
        with self._within(one.at("schema")):
            ir = language(schema, self.spelling, closed=True, budget=self.budget)
        one.end()
        return begin, self.builder.seq(self.embedded(ir), self.text(end))

    def _triggered_tags(self, one: Members, ends: list[str]) -> int:
        tags = []
        for tag in one.objects("tags"):
            begin, node = self._parts(tag)
            if not isinstance(begin, str):
                hint = "token_triggered_tags has such tags"
                raise UnsupportedFeature("a tag that begins with a token by its number", tag.at("begin"), hint)
            tags.append((begin, node))
        return self._triggered(one, one.texts("triggers"), tags, ends)

    def _triggered(self, one: Members, triggers: list[str], tags: list[tuple[str, int]], ends: list[str]) -> int:
        """Free text with tags that triggers call: each tag belongs to the one trigger that it begins with."""
        of: dict[str, list[int]] = {trigger: [] for trigger in triggers}
        firsts = []
        for begin, node in tags:
            self.budget.spend(10 * len(triggers), one.where)
            calling = [trigger for trigger in of if begin.startswith(trigger)]
            if len(calling) != 1:
                message = f"a tag begins with one of the triggers, and with no other: {begin!r:.60}"
                raise GrammarSyntaxError(message, one.at("triggers"))
            rest = begin[len(calling[0]) :]
            of[calling[0]].append(self.builder.seq(self.text(rest), node))
            firsts.append(self.builder.seq(self.text(begin), node))
        unused = [trigger for trigger, nodes in of.items() if not nodes]
        if unused or not of:
            raise GrammarSyntaxError(f"no tag begins with the trigger {unused[:1]!r:.60}", one.at("triggers"))
        excludes = [*one.texts("excludes", []), *ends]
        return self._free(
            one, [(self._begin(key), self.builder.alt(*nodes)) for key, nodes in of.items()], excludes, firsts
        )

    def _free(self, one: Members, called: list[tuple[str | bytes, int]], excludes: list[str], firsts: list[int]) -> int:
        """Free text with what is called in it. If there is to be at least one tag, the text begins with it."""
        texts = [key for key, _ in called if isinstance(key, str)]
        check_apart([*texts, *excludes], self.budget, "tags", one.where)
        once = one.get("stop_after_first", bool, False)
        if not one.get("at_least_one", bool, False):
            return dispatched(self.builder, called, excludes, loops=not once)
        first = self.builder.alt(*firsts)
        return first if once else self.builder.seq(first, dispatched(self.builder, called, excludes))

    def _tags_with_separator(self, one: Members) -> int:
        tags = self.builder.alt(*map(self._tag, one.objects("tags")))
        separator = one.get("separator", str, "")
        several = tags
        if not one.get("stop_after_first", bool, False):
            further = self.builder.seq(self.text(separator), tags)
            several = self.builder.seq(tags, self.builder.repeat(further, 0, None))
        return several if one.get("at_least_one", bool, False) else self.builder.optional(several)

    def _dispatch(self, one: Members, ends: list[str]) -> int:
        called: list[tuple[str | bytes, int]] = []
        for number, (pattern, inner) in enumerate(self._rules(one)):
            if not isinstance(pattern, str) or not pattern:
                raise GrammarSyntaxError(
                    f"a text of some length is expected, not {pattern!r:.60}", one.at("rules", number)
                )
            called.append((self._begin(pattern), self.node(inner, [])))
        return self._dispatched(one, called, [*one.texts("excludes", []), *ends])

    def _token_dispatch(self, one: Members, ends: list[str]) -> int:
        one.refuse(
            "exclude_tokens",
            "tokens that free text must not hold",
            "special tokens are in no free text anyway",
            unless=[],
        )
        called: list[tuple[str | bytes, int]] = [
            (marks.mark(self._name(one, "rules", token)), self.node(inner, [])) for token, inner in self._rules(one)
        ]
        return self._dispatched(one, called, ends)

    def _dispatched(self, one: Members, called: list[tuple[str | bytes, int]], excludes: list[str]) -> int:
        if not called:
            raise GrammarSyntaxError("there are no rules", one.at("rules"))
        check_apart([*(key for key, _ in called if isinstance(key, str)), *excludes], self.budget, "rules", one.where)
        return dispatched(self.builder, called, excludes, loops=one.get("loop", bool, True))

    def _rules(self, one: Members) -> Iterator[tuple[Any, Members]]:
        for number, rule in enumerate(one.get("rules", list)):
            if not isinstance(rule, list | tuple) or len(rule) != 2:
                raise GrammarSyntaxError(f"a pair is expected, not {rule!r:.60}", one.at("rules", number))
            yield rule[0], Members.of(rule[1], one.at("rules", number, 1), self.budget)

    def _token_triggered_tags(self, one: Members, ends: list[str]) -> int:
        # no free text holds special tokens but those that call a tag
        self._names(one, "exclude_tokens")
        triggers = self._names(one, "trigger_tokens")
        of: dict[bytes, list[int]] = {marks.mark(name): [] for name in triggers}
        for tag in one.objects("tags"):
            begin, node = self._parts(tag)
            if not isinstance(begin, bytes) or begin not in of:
                raise GrammarSyntaxError("a tag begins with one of the trigger tokens", tag.at("begin"))
            of[begin].append(node)
        if not of or not all(of.values()):
            raise GrammarSyntaxError("no tag begins with one of the trigger tokens", one.at("trigger_tokens"))
        called: list[tuple[str | bytes, int]] = [(key, self.builder.alt(*nodes)) for key, nodes in of.items()]
        firsts = [self.builder.seq(self.builder.literal(key), node) for key, node in called]
        return self._free(one, called, ends, firsts)
