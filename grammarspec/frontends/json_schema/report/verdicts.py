"""The report on a schema: for each keyword whether it is enforced, narrowed, an annotation, or refused, and why.

A schema and the options of :func:`grammarspec.json_schema` come in; a :class:`Report` comes out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Unpack

from grammarspec.constraint import CancelToken, Limits, compile
from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded, Unsatisfiable
from grammarspec.frontends.json_schema import grammar_of
from grammarspec.frontends.json_schema.document.dialects import Dialect
from grammarspec.frontends.json_schema.document.loading import load
from grammarspec.frontends.json_schema.document.resources import Document
from grammarspec.frontends.json_schema.document.subschema import Subschema
from grammarspec.frontends.json_schema.formats.table import FORMATS, INTEGER_FORMATS
from grammarspec.frontends.json_schema.json_values import ALL_TYPES, TYPE_BITS
from grammarspec.frontends.json_schema.keywords.combining import OneOf
from grammarspec.frontends.json_schema.keywords.keyword import Choices, Role
from grammarspec.frontends.json_schema.keywords.narrowing import USUAL
from grammarspec.frontends.json_schema.keywords.tables import keyword, keywords, read
from grammarspec.frontends.json_schema.meaning.analysis import Analysis
from grammarspec.frontends.json_schema.meaning.exclusive import MAX_PAIRS
from grammarspec.frontends.json_schema.meaning.overlaps import optional_tag, overlapping
from grammarspec.frontends.json_schema.options import DEFAULTS, OptionsOfCall, check_options
from grammarspec.frontends.json_schema.relaxing.graph import Graph, parsed
from grammarspec.frontends.json_schema.relaxing.leaving_out import LeftOut, Relaxed, relaxed
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.expressions import Grammar
from grammarspec.positions import pointer_token
from grammarspec.vocabulary import Vocabulary

__all__ = ["Entry", "Report", "Verdict", "check"]

Verdict = Literal["refused", "not enforced", "narrowed", "enforced", "annotation"]
_VERDICTS: tuple[Verdict, ...] = ("refused", "not enforced", "narrowed", "enforced", "annotation")

_MAX_POINTERS = 50_000_000
"""The most characters of all JSON pointers of a report, which grow with the square of the schema's depth."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The verdict on one keyword.

    Attributes:
        pointer: its JSON pointer; that of the subschema where an error does not say which keyword it is about.
        keyword: its name, or ``""``.
        verdict: ``"enforced"``; ``"narrowed"``: enforced, with fewer texts than it allows; ``"annotation"``: it
            constrains nothing; ``"refused"``: it cannot be enforced; ``"not enforced"``: it cannot be enforced, and is
            left out because of ``unsupported="warn"``.
        detail: how it is narrowed, why it constrains nothing, or why it is refused.
        hint: what to do about it, or ``""``.
    """

    pointer: str
    keyword: str
    verdict: Verdict
    detail: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """The verdicts on a schema.

    ``str`` makes a table of them: first what is not enforced as it is written; narrowings that are only about spelling
    and order stand in one line.

    Attributes:
        entries: the verdicts, in the order of the schema.
        notes: narrowings of the whole text, and whether a part of the schema could not be checked.
    """

    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether :func:`grammarspec.json_schema` takes the schema, with the same options."""
        return not self.of("refused")

    def of(self, verdict: Verdict) -> tuple[Entry, ...]:
        """The entries with this verdict."""
        return tuple(entry for entry in self.entries if entry.verdict == verdict)

    def as_dict(self) -> dict[str, Any]:
        """The report in JSON's types: ``ok``, ``entries`` and ``notes``."""
        return {"ok": self.ok, "entries": [asdict(entry) for entry in self.entries], "notes": list(self.notes)}

    def __str__(self) -> str:
        usual = [entry for entry in self.entries if _is_usual(entry)]
        rows = sorted((entry for entry in self.entries if not _is_usual(entry)), key=_rank)
        wide = max((len(entry.pointer) for entry in rows), default=0)
        lines = [
            f"{entry.verdict:12}  {entry.pointer:{min(wide, 60)}}  {' '.join(_said(entry))}".rstrip() for entry in rows
        ]
        if usual:
            said = "; ".join(dict.fromkeys(part for entry in usual for part in entry.detail.split("; ")))
            lines.append(f"{'narrowed':12}  {len(usual)} keywords, in spelling and order only: {said}")
        counts = Counter(entry.verdict for entry in self.entries)
        summary = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _VERDICTS if counts[verdict])
        return "\n".join([*lines, *(f"{'note':12}  {note}" for note in self.notes), summary or "no keywords"])


def _rank(entry: Entry) -> int:
    """A number that is smaller for what a reader looks for: what is not enforced as it is written, and why."""
    found = entry.verdict == "annotation" and entry.detail
    return _VERDICTS.index("narrowed") if found else _VERDICTS.index(entry.verdict)


def _is_usual(entry: Entry) -> bool:
    """Whether it is a narrowing, and only one of spelling and order."""
    return entry.verdict == "narrowed" and all(part.startswith(USUAL) for part in entry.detail.split("; "))


def _said(entry: Entry) -> Iterator[str]:
    yield " ".join(entry.detail.split())
    if entry.hint:
        yield f"(hint: {' '.join(entry.hint.split())})"


def check(schema: Mapping[str, Any] | bool | str | bytes, **options: Unpack[OptionsOfCall]) -> Report:
    """The report on a schema: how each keyword is enforced. No vocabulary is needed.

    If several keywords are refused, all that can be found are listed: each one is left out, and the rest is tried
    again. A schema that no value satisfies is refused, too.

    Args:
        schema: as in :func:`grammarspec.json_schema`.
        options: those of :func:`grammarspec.json_schema`. With ``unsupported="warn"`` what would be left out is
            ``"not enforced"``.

    Raises:
        GrammarSyntaxError: the text is not JSON.
        LimitExceeded: the schema is too large for a report.
        Cancelled: the option ``cancel`` was cancelled.
        ValueError: as :func:`grammarspec.json_schema` does.
    """
    root = load(schema)
    chosen: dict[str, Any] = {**DEFAULTS, **options}
    limits, cancel = chosen.pop("limits", None), chosen.pop("cancel", None)
    budget = Budget(limits, cancel)
    spelled = check_options(**chosen)
    warn = chosen["unsupported"] == "warn"
    dialect, registry = chosen["dialect"], chosen["registry"]

    def document(root: Any) -> Document:
        return read(root, dialect, registry, dynamic=False)

    closed = not chosen["additional_properties"]
    found = relaxed(
        root, lambda root: grammar_of(root, spelled, chosen, budget), document, budget, closed=closed, malformed=True
    )
    try:
        graph: Graph | None = Graph(document(root))
    except GrammarError:  # it is among the refusals already
        graph = None
    refusals = _refusals(found, warn)
    if not found.refused or (warn and not any(entry.verdict == "refused" for entry in refusals.values())):
        empty = None if found.grammar is None else _emptiness(found.grammar, limits, cancel)
        if empty is not None:
            refusals[""] = empty
    gone = {item.pointer for item in found.left_out if item.how == "left out"} if warn else set()
    entries = [] if graph is None else list(_Listing(graph, options, refusals, gone, budget).entries())
    entries += refusals.values()  # those outside of all subschemas
    written = options.get("indent") is not None or options.get("separators") is not None
    layout = options.get("whitespace", "flexible")
    notes = [_whitespace(layout, written=written or layout in ("compact", "pretty"))]
    if found.grammar is None:
        notes.append("without what is refused, the rest could not be tried: more may be refused")
    return Report(tuple(entries), tuple(notes))


def _refusals(found: Relaxed, warn: bool) -> dict[str, Entry]:
    """The entries of what is refused or left out, by JSON pointer."""
    refusals: dict[str, Entry] = {}
    soft = warn and found.grammar is not None

    def add(item: LeftOut, verdict: Verdict, detail: str) -> None:
        known = refusals.get(item.pointer)
        if known is None:
            refusals[item.pointer] = Entry(item.pointer, item.keyword, verdict, detail, item.error.hint)

    malformed = [item for item in found.refused if isinstance(item.error, GrammarSyntaxError)]
    for item in malformed if soft else found.refused:
        within = "" if item.error.where.startswith("#") else item.error.where.partition("\n")[0]  # in a pattern
        add(item, "refused", item.error.message + (f" ({within})" if within else ""))
    if soft:
        for item in found.left_out:
            if not isinstance(item.error, GrammarSyntaxError):
                add(item, "not enforced", item.summary)
    return refusals


def _emptiness(grammar: Grammar[Any], limits: Limits | None, cancel: CancelToken | None) -> Entry | None:
    """The entry for a grammar that has no text; ``None`` if it has some."""
    try:
        compile(grammar, Vocabulary.bytes(), limits=limits, cancel=cancel)
    except Unsatisfiable as error:
        return Entry(error.where or "#", "", "refused", error.message, error.hint)
    except GrammarError as error:
        return Entry("#", "", "refused", error.message, error.hint)
    return None


class _Listing:
    """Lists the keywords of a document."""

    def __init__(
        self,
        graph: Graph,
        options: OptionsOfCall,
        refusals: dict[str, Entry],
        left_out: Collection[str],
        budget: Budget,
    ) -> None:
        self.reached = graph.reached_without(left_out) if left_out else graph.reached
        self.graph, self.refusals = graph, refusals
        self._owners = {refused: _owner(graph, refused) for refused in refusals}
        """For each refusal, the innermost subschema that contains it; ``None`` if none does."""
        self.asserting = options.get("format", "assert") == "assert"
        self.choices = Choices(
            any_order=options.get("property_order") == "any",
            closed=not options.get("additional_properties", True),
            plain=options.get("numbers") == "plain",
            minimal=options.get("escapes") == "minimal",
            ensure_ascii=options.get("ensure_ascii", False),
            draft_4=graph.document.main.dialect.year == 4,
        )
        self.negated = graph.negated()
        budget.allow(graph.document.size)
        self.goals = Analysis(graph.document, budget, assert_formats=self.asserting)

    def entries(self) -> Iterator[Entry]:
        """One entry for each keyword, and one for each refusal in it; these are removed from ``refusals``."""
        size = 0
        for schema in self.graph.edges:
            base = schema.pointer
            size += len(base) * (1 + len(schema.keywords))
            if size > _MAX_POINTERS:
                raise LimitExceeded("the size of the report: the schema nests too deeply")
            if base in self.refusals:
                yield self.refusals.pop(base)
            for name, value in schema.keywords.items():
                pointer = f"{base}/{pointer_token(name)}"
                inside = [other for other in self.refusals if other == pointer or other.startswith(pointer + "/")]
                yield from (self.refusals.pop(other) for other in inside if self._own(other, schema, pointer))
                if pointer not in inside:
                    verdict, detail = self._verdict(schema, name, value)
                    yield Entry(pointer, str(name), verdict, detail)

    def _own(self, refused: str, schema: Subschema, pointer: str) -> bool:
        """Whether a refusal inside a keyword is about the keyword itself, and not about a subschema that it holds."""
        return refused == pointer or self._owners[refused] is schema

    def _verdict(self, schema: Subschema, name: str, value: Any) -> tuple[Verdict, str]:
        dialect = schema.resource.dialect
        record = keyword(name, dialect)
        if record is not None and record.role is Role.ANNOTATION:
            return "annotation", ""
        if name == dialect.id_keyword or (record is not None and record.role is Role.IDENTIFIER and name != "id"):
            return "enforced", dialect.name if name == "$schema" else ""
        if schema not in self.graph.reached:
            return "annotation", "nothing refers to this subschema"
        if schema not in self.reached:
            return "not enforced", "within what is left out"
        if dialect.ref_stands_alone and "$ref" in schema.keywords and name != "$ref":
            return "annotation", f"ignored beside $ref in {dialect.name}"
        if name == "format":
            ignored = self._format(value)
            if ignored:
                return "annotation", ignored
        if name == "oneOf":
            tag = self._tag(schema)
            return ("narrowed", f"the property {tag!r} is required, to tell overlapping branches apart") if tag else (
                "enforced", "")  # fmt: skip
        unread = _unread(name, schema, dialect)
        if unread or record is None:
            return "annotation", unread
        try:
            possible = _is_possible(record.about, schema.keywords.get("type"))
            found = record.narrowings(value, schema.keywords, self.choices, schema in self.negated)
            narrowed = "; ".join(found) if possible else ""
        except (TypeError, AttributeError):  # a malformed value where no value of the type is possible
            narrowed = ""
        return ("narrowed", narrowed) if narrowed else ("enforced", "")

    def _tag(self, schema: Subschema) -> str | None:
        """The property that becomes required in a ``oneOf`` whose branches overlap (see ``exclusive.py``)."""
        try:
            branches = next((each.branches for each in schema.assertions if isinstance(each, OneOf)), ())
            if len(branches) < 3:
                return None
            overlaps = overlapping(self.goals, branches, MAX_PAIRS)
            overlaps = overlaps if overlaps and len(overlaps) > 2 else {}
            return optional_tag(self.goals, [branches[i] for i in overlaps]) if overlaps else None
        except (GrammarError, RecursionError):  # the first is listed as refused
            return None

    def _format(self, name: Any) -> str:
        if not self.asserting:
            return 'format="annotation"'
        known = isinstance(name, str) and (name in FORMATS or name in INTEGER_FORMATS)
        return "" if known else "a format that is not known"


def _owner(graph: Graph, pointer: str) -> Subschema | None:
    path = parsed(pointer)
    found = None if path is None else graph.split(path)
    return None if found is None else found[0]


def _is_possible(about: int, types: Any) -> bool:
    """Whether ``type`` allows a value of one of the types ``about`` (bits)."""
    if about == ALL_TYPES or not isinstance(types, str | list):
        return True
    names = [types] if isinstance(types, str) else types
    return any(TYPE_BITS.get(name, 0) & about for name in names if isinstance(name, str))


def _unread(name: str, schema: Subschema, dialect: Dialect) -> str:
    """The reason why a keyword has no effect in a schema; empty if it has one."""
    record = keywords(dialect).get(name)
    if record is None:
        return f"no keyword of {dialect.name}"
    among = schema.keywords
    if name == "if" and not {"then", "else"} & among.keys():
        return "nothing without then or else"
    if name == "additionalItems" and (dialect.year < 2020 or dialect.assumed):
        return "" if isinstance(among.get("items"), list) else "nothing without an array of items"
    if record.read_with and not any(other in among for other in record.read_with):
        return f"nothing without {record.read_with[0]}"
    return ""


def _whitespace(layout: object, *, written: bool) -> str:
    """The narrowing of whitespace.

    Args:
        layout: the option ``whitespace``.
        written: whether whitespace is exactly what ``json.dumps`` writes.
    """
    if written:
        return "whitespace is exactly what json.dumps writes"
    if layout == "flexible":
        return (
            "whitespace where JSON allows it: up to 8 blanks, or a line break and up to 120; none around the document"
        )
    return "whitespace where JSON allows it is what the pattern matches; none around the document"
