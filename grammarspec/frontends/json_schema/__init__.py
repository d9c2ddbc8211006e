"""JSON Schema: drafts 4, 6, 7, 2019-09 and 2020-12, to grammars of the JSON texts that satisfy a schema."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any, Literal, Unpack

from grammarspec._compiler import CancelToken
from grammarspec._compiler import Grammar as Ir
from grammarspec.errors import GrammarError, GrammarSyntaxError, LimitExceeded, NotEnforced
from grammarspec.frontends.json_schema.document.loading import json_of, load
from grammarspec.frontends.json_schema.keywords.tables import read
from grammarspec.frontends.json_schema.lowering.elements import ElementLowering
from grammarspec.frontends.json_schema.lowering.goal_lowering import GoalLowering
from grammarspec.frontends.json_schema.meaning.analysis import Analysis
from grammarspec.frontends.json_schema.normal_form.normal_forms import NormalForms
from grammarspec.frontends.json_schema.options import OptionsOfCall, check_options
from grammarspec.frontends.json_schema.relaxing.contradictions import contradiction
from grammarspec.frontends.json_schema.relaxing.leaving_out import relaxed
from grammarspec.frontends.json_schema.spelling.options import Escapes, Numbers, Spelling, Whitespace
from grammarspec.frontends.json_schema.spelling.prelude import prelude
from grammarspec.grammars.budget import Budget
from grammarspec.grammars.engine import Limits
from grammarspec.grammars.expressions import Grammar
from grammarspec.grammars.operators import Call
from grammarspec.positions import lone_surrogate

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping
    from os import PathLike

    import referencing
    from pydantic import TypeAdapter

    from grammarspec.frontends.json_schema.document.resources import Document

__all__ = ["grammar_of", "json_schema", "json_value", "language"]


def json_schema(
    schema: Mapping[str, Any] | bool | str | bytes | PathLike[str] | type[Any] | TypeAdapter[Any],
    *,
    dialect: str | None = None,
    registry: referencing.Registry[Any] | None = None,
    format: Literal["assert", "annotation"] = "assert",
    property_order: Literal["declared", "any"] = "declared",
    additional_properties: bool = True,
    whitespace: Whitespace | re.Pattern[str] = "flexible",
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    ensure_ascii: bool = False,
    escapes: Escapes = "any",
    numbers: Numbers = "any",
    unsupported: Literal["error", "warn"] = "error",
    limits: Limits | None = None,
    cancel: CancelToken | None = None,
) -> Grammar[Any]:
    """The JSON texts that satisfy a schema.

    Every keyword is enforced exactly or refused with its place; ``docs/json-schema.md`` lists which, and the deliberate
    narrowings (the order of properties, the spelling of keys, bounded whitespace), which only ever remove outputs. All
    options from ``property_order`` on choose among the texts of a value, or narrow further.

    Args:
        schema: a dict, a boolean, or JSON text; the path of a file with JSON text; or a model or ``TypeAdapter`` of
            Pydantic, which give their own JSON Schema (:func:`grammarspec.grammar` knows more about types). Numbers of
            JSON text are taken exactly, floats of a dict as ``repr`` writes them.
        dialect: ``"draft2020-12"``, ``"draft2019-09"``, ``"draft7"``, ``"draft6"`` or ``"draft4"``; by default what
            ``$schema`` says, or the latest.
        registry: documents that ``$ref`` may point to. Nothing is fetched but by this registry.
        format: ``"assert"`` enforces the formats of the specification; ``"annotation"`` none.
        property_order: ``"declared"``: declared properties come in the order of ``properties``, others anywhere.
        additional_properties: whether an object that has ``properties`` may have others, if the schema says nothing.
        whitespace: ``"flexible"``: where JSON allows it, up to a limit; ``"compact"``: none but that of ``separators``,
            which are ``(",", ":")`` by default; ``"pretty"``: every member and item on a line of its own, with an
            ``indent`` of 2 by default; a pattern (``re.compile(r"[ \n]?")``): what it matches, wherever JSON allows it.
        indent: as in ``json.dumps``: the number of spaces that each level is indented by, or the text. Then whitespace
            is exactly what ``json.dumps`` writes, with at most 32 objects and arrays inside one another.
        separators: as in ``json.dumps``: what stands between members or items, and between a name and its value, such
            as ``(", ", ": ")``. Then whitespace is exactly what ``json.dumps`` writes.
        ensure_ascii: as in ``json.dumps``: characters beyond ASCII are spelled as ``\\u`` escapes everywhere.
        escapes: ``"any"``: strings that no keyword constrains may use all escapes of JSON; ``"minimal"``: those that
            ``json.dumps`` writes, so that every string has one spelling.
        numbers: ``"any"``: all spellings that ``docs/json-schema.md`` lists; ``"plain"``: no exponents, and integers
            without a fraction.
        unsupported: ``"error"`` refuses what is not enforced; ``"warn"`` leaves it out with a warning
            (:class:`~grammarspec.errors.NotEnforced`) for each such keyword. Then the grammar has texts that the schema
            refuses, and still all others. :func:`grammarspec.check` lists both beforehand.
        limits: what the call may use: ``max_steps`` and ``timeout`` of them. The default is half a second to a second
            of work beyond what grows with the schema alone.
        cancel: stops the work when it is cancelled.

    Raises:
        GrammarSyntaxError: the text is not JSON, a keyword's value is malformed, or a reference points to nothing.
        UnsupportedFeature: a keyword that is not enforced, or not in this combination; ``where`` is its JSON pointer.
        LimitExceeded: the schema nests too deeply, or asks for more work than the limits allow.
        Cancelled: ``cancel`` was cancelled.
        ValueError: an option cannot have such a value, or two options contradict each other.
        TypeError: ``schema`` is a class of another kind.
        OSError: the file cannot be read.
    """
    schema = json_of(schema)
    options: dict[str, Any] = {
        "dialect": dialect, "registry": registry, "format": format, "property_order": property_order,
        "additional_properties": additional_properties, "whitespace": whitespace, "indent": indent,
        "separators": separators, "ensure_ascii": ensure_ascii, "escapes": escapes, "numbers": numbers,
        "unsupported": unsupported,
    }  # fmt: skip
    spelled = check_options(**options)
    budget = Budget(limits, cancel)

    def attempt(root: Any) -> Grammar[Any]:
        return grammar_of(root, spelled, options, budget, schema)

    root = load(schema)
    if unsupported == "error":
        return attempt(root)

    def document(root: Any) -> Document:
        return read(root, dialect, registry, dynamic=False)

    found = relaxed(root, attempt, document, budget, closed=not additional_properties)
    if found.grammar is None:
        raise found.refused[-1].error
    for left_out in found.left_out:
        warnings.warn(f"{left_out.pointer}: {left_out.summary}", NotEnforced, stacklevel=2)
    return found.grammar


def grammar_of(
    root: Any, spelled: Spelling, options: Mapping[str, Any], budget: Budget, declared: Any = None
) -> Grammar[Any]:
    """The grammar of a schema that has been read.

    Args:
        root: the schema as Python values.
        spelled: how values are spelled, as ``options`` say.
        options: those of :func:`json_schema`.
        budget: the work that may be done.
        declared: the schema as it was given, for ``repr``; ``None``: ``root``.

    Raises:
        GrammarError, Cancelled: as :func:`json_schema`.
    """

    def ir(root: Any, budget: Budget) -> Ir:
        return language(
            root,
            spelled,
            dialect=options["dialect"],
            registry=options["registry"],
            assert_formats=options["format"] == "assert",
            any_order=options["property_order"] == "any",
            closed=not options["additional_properties"],
            budget=budget,
        )

    call = Call(json_schema, (root if declared is None else declared,), dict(options))
    return Grammar(ir(root, budget), read=json.loads, call=call, why_empty=lambda: contradiction(root, ir))


def language(
    root: Any,
    spelled: Spelling,
    *,
    dialect: str | None = None,
    registry: referencing.Registry[Any] | None = None,
    assert_formats: bool = True,
    any_order: bool = False,
    closed: bool = False,
    budget: Budget | None = None,
) -> Ir:
    """The texts of the values that satisfy a schema, spelled in this way; see :func:`json_schema`.

    Args:
        closed: objects that have ``properties`` have no others, if the schema says nothing.
        budget: the work that may be done; one with the limits' defaults if not given.

    Raises:
        GrammarError, Cancelled: as :func:`json_schema`.
    """
    budget = budget or Budget()

    def forms(*, narrow: bool) -> NormalForms:
        document = read(root, dialect, registry)
        budget.allow(document.size)
        goals = Analysis(document, budget, assert_formats=assert_formats, narrow=narrow)
        return NormalForms(goals, any_order=any_order, closed=closed)

    def lowered(forms: NormalForms) -> Ir:
        elements = spelled.elements
        builder, text = prelude(spelled._replace(elements=None) if elements else spelled)
        builder.budget = budget
        lowering = ElementLowering(forms, builder, text, elements) if elements else GoalLowering(forms, builder, text)
        return builder.build(lowering.start())

    try:
        exact = forms(narrow=False)
        try:
            return lowered(exact)
        except GrammarError:
            if not exact.take_less_if_narrowed:
                raise
        finally:
            budget.take_back()
        return lowered(forms(narrow=True))
    except RecursionError:
        raise LimitExceeded("the nesting depth of the schema", "#") from None
    except UnicodeEncodeError as error:
        raise GrammarSyntaxError(lone_surrogate(error), "#") from None


def json_value(**options: Unpack[OptionsOfCall]) -> Grammar[Any]:
    """Any JSON text; the options are those of :func:`json_schema`."""
    return json_schema(True, **options)
