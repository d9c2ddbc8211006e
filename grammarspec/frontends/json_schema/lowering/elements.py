"""Objects written as XML, as some models write the arguments of calls: an element for each member.

How an element begins may say of which type its value is, and texts are not quoted: a value is lowered once for each
kind of element, as a goal of the types of that kind. Arrays and objects inside are JSON, or elements again.
"""

from __future__ import annotations

from grammarspec.errors import Unsatisfiable, UnsupportedFeature
from grammarspec.frontends.json_schema.json_values import OBJECT
from grammarspec.frontends.json_schema.lowering.goal_lowering import GoalLowering
from grammarspec.frontends.json_schema.normal_form.normal_forms import NormalForms
from grammarspec.frontends.json_schema.normal_form.shapes import Goal, of_types
from grammarspec.frontends.json_schema.spelling.builder import SchemaBuilder
from grammarspec.frontends.json_schema.spelling.json_text import NOT_IN_TAGS, JsonText, Ways
from grammarspec.frontends.json_schema.spelling.options import Elements, Notation, Quotes, Spelling
from grammarspec.frontends.json_schema.spelling.whitespace import BLANKS
from grammarspec.grammars import marks
from grammarspec.grammars.expressions import literal

__all__ = ["ElementLowering"]


class _ElementText(JsonText):
    """The nodes of names, elements and what is between them."""

    not_bare, bare = NOT_IN_TAGS, "in the tag of an element"

    def __init__(self, builder: SchemaBuilder, elements: Elements, excluded: tuple[str, ...]) -> None:
        super().__init__(builder, Spelling(notation=Notation(bare_names=True, excluded=excluded)))
        self.elements = elements
        blanks = builder.terminal(builder.repeat(builder.words(list(BLANKS)), 0, elements.blanks))
        self.blanks = self.comma = self.open_object = self.close_object = self.open_array = self.close_array = blanks
        self.no_members = self.no_items = builder.empty

    def member(self, name: int, values: Ways) -> tuple[int, ...]:
        return self._element(values, self.elements.end, name)

    def undeclared(self, name: int, values: Ways) -> tuple[int, ...]:
        if "$name" in self.elements.end:
            raise UnsupportedFeature(
                "members that are not declared, where elements end with the name that they begin with",
                hint="declare all members, and say additionalProperties: false",
            )
        return self.member(name, values)

    def item_of(self, values: Ways) -> int:
        """An item of an array."""
        return self.builder.seq(*self._element(values, self.elements.item_end)) if values else self.builder.nothing

    def _element(self, values: Ways, end: str, name: int | None = None) -> tuple[int, ...]:
        b, blanks = self.builder, self.blanks
        ways = [b.seq(self._tag(begin, name), blanks, value, blanks) for begin, value in values]
        return (b.alt(*ways), self._tag(end, name))

    def _tag(self, text: str, name: int | None) -> int:
        """A text in which names of special tokens stand for these, and ``$name`` for a name."""
        parts = [self.builder.literal(marks.with_marks(part, self.elements.special)) for part in text.split("$name")]
        if name is None:
            return parts[0]
        return self.builder.seq(parts[0], *(node for part in parts[1:] for node in (name, part)))


class ElementLowering(GoalLowering):
    """Lowers the goals of one document whose values are objects, and these written as elements."""

    in_elements = True

    def __init__(self, forms: NormalForms, builder: SchemaBuilder, text: JsonText, elements: Elements) -> None:
        """Nothing is lowered yet.

        Args:
            forms: the shapes of the document's goals.
            builder: what makes the nodes.
            text: the spellings of values that are written as JSON.
            elements: how others are written.
        """
        excluded = text.spelling.notation.excluded
        self._nodes_of = _ElementText(builder, elements, excluded)
        super().__init__(forms, builder, self._nodes_of)
        unquoted = Notation(quotes=Quotes(literal("").ir, elements.mark), excluded=excluded)
        self._lowerings: dict[str, GoalLowering] = {
            "text": GoalLowering(forms, builder, JsonText(builder, Spelling(notation=unquoted))),
            "json": GoalLowering(forms, builder, text),
            "elements": self,
        }

    def start(self) -> int:
        node = self.lower(of_types(self.forms.start, OBJECT))
        while any(lowering.finish() for lowering in self._lowerings.values()):
            pass  # one may have deferred goals of another
        if node == self.builder.nothing:
            raise Unsatisfiable("no object satisfies the schema, and only the members of one can be written", "#")
        return node

    def values(self, goal: Goal) -> Ways:
        return self._values_of(goal, items=False)

    def item(self, goal: Goal) -> int:
        return self._nodes_of.item_of(self._values_of(goal, items=True))

    def _values_of(self, goal: Goal, *, items: bool) -> Ways:
        ways: dict[str, list[int]] = {}
        for kind in self._nodes_of.elements.kinds:
            lowering = self._lowerings[kind.form]
            node = lowering.lower(of_types(goal, kind.types))
            self.height = max(self.height, lowering.height)
            if node != self.builder.nothing:
                ways.setdefault(kind.item if items else kind.member, []).append(node)
        return [(begin, self.any_of(nodes)) for begin, nodes in ways.items()]
