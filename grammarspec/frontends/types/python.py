"""Python types: the JSON texts of their values, and back.

Pydantic says what a type looks like in JSON and makes values of it (msgspec does for its own structs and for attrs).
Their schemas are wider than what they read, in places; here they are made exact, or refused, so that whatever is
generated becomes a value. Only validators of one's own run after generation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, reduce
from inspect import isclass
from operator import or_
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from grammarspec.errors import MissingPackage, UnsupportedType
from grammarspec.frontends.json_schema import json_schema
from grammarspec.frontends.types.dates import DATE, TIME, ZONE, dates
from grammarspec.frontends.types.decorator import stored_options
from grammarspec.grammars.expressions import Grammar, choice, text

try:
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
    from pydantic_core import core_schema
except ImportError as missing:
    raise MissingPackage(f"Python types: {missing}", hint="pip install 'grammarspec[types]'") from missing

if TYPE_CHECKING:
    from typing_extensions import TypeForm

__all__ = ["Adapter", "grammar", "known_adapter", "new_adapter"]

T = TypeVar("T")


def grammar(type: TypeForm[T], **options: Any) -> Grammar[T]:
    """The JSON texts of a type's values; ``parse`` makes them values again.

    At the top level, texts are written without quotes: of ``str``, and of a ``Literal`` or ``Enum`` of texts only.
    Objects have the declared fields only, unless the type says that it takes others.

    Args:
        type: whatever Pydantic knows: its models, dataclasses, ``TypedDict``, ``NamedTuple``, enums, ``Literal``,
            unions, containers, ``Annotated`` with constraints, dates and times, and so on; or a struct of msgspec, or
            an attrs class.
        options: those of :func:`grammarspec.json_schema`; they go before those of ``@gs.schema``.

    Raises:
        UnsupportedType: a type that has no JSON, or a constraint that cannot be enforced while generating.
        MissingPackage: Pydantic (or msgspec) is not installed.
    """
    if isinstance(type, Grammar):
        return type
    if get_origin(type) is Union and any(isinstance(part, Grammar) for part in get_args(type)):
        # typing makes one of `Literal["a"] | g`, before the grammar is asked
        return reduce(or_, [grammar(part, **options) for part in get_args(type)])
    options = {**stored_options(type), **options}
    call = f"gs.grammar({', '.join([_name(type), *(f'{name}={value!r}' for name, value in options.items())])})"
    schema = known_adapter(type).schema
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if schema.keys() <= {"type"} and schema.get("type") == "string":
        free = text()
        return Grammar(free.ir, read=_Read(type, quoted=False), call=call)
    if values is not None and "$defs" not in schema and all(isinstance(value, str) for value in values):
        return Grammar(choice(values).ir, read=_Read(type, quoted=False), call=call)
    options = {"additional_properties": False, "numbers": "plain", **options}
    return Grammar(json_schema(schema, **options).ir, read=_Read(type, quoted=True), call=call)


@dataclass(frozen=True)
class _Read:
    """From a text to a value of a type."""

    type: Any
    quoted: bool

    def __call__(self, text: str) -> Any:
        return known_adapter(self.type).read(text if self.quoted else json.dumps(text))


@dataclass(frozen=True)
class Adapter:
    """What a type is in JSON.

    Attributes:
        schema: its exact JSON Schema.
        read: makes a value of a JSON text.
        told: makes the JSON Schema that the library itself has for the type, wider in places, and shorter: for readers.
    """

    schema: dict[str, Any]
    read: Callable[[str], Any]
    told: Callable[[], dict[str, Any]]


def known_adapter(type: Any) -> Adapter:
    """The adapter of a type, which is kept for good."""
    try:
        hash(type)
    except TypeError:  # constraints in Annotated may be anything
        return new_adapter(type)
    return _known_adapter(type)


def new_adapter(type: Any) -> Adapter:
    """The adapter of a type.

    Raises:
        UnsupportedFeature: as :func:`grammar`.
    """
    if hasattr(type, "__struct_fields__") or hasattr(type, "__attrs_attrs__"):
        return _of_msgspec(type)
    try:
        adapter = TypeAdapter(type)
        schema = _mended(adapter.json_schema(schema_generator=_Narrower))
        return Adapter(schema, adapter.validate_json, lambda: adapter.json_schema(schema_generator=_Untitled))
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        with suppress(ImportError, TypeError):  # it may hold structs
            return _of_msgspec(type)
        reason = str(error).splitlines()[0].partition(". Set `")[0]  # what else Pydantic could do, JSON cannot
        raise UnsupportedType(f"the type has no JSON: {reason}", _place(type)) from None
    except UnsupportedType as error:
        raise UnsupportedType(error.message, where=_place(type), hint=error.hint) from None


_known_adapter = cache(new_adapter)


def _name(type: Any) -> str:
    return str(type.__qualname__) if isclass(type) else repr(type)


def _place(type: Any) -> str:
    """Which type it is, for errors: without what ``Annotated`` adds, which can be long."""
    with suppress(Exception):  # a name in quotes may mean nothing here
        type = get_type_hints(SimpleNamespace(__annotations__={"type": type}))["type"]
    return f"the type {_name(type).replace('typing.', '')}"


def _of_msgspec(type: Any) -> Adapter:
    try:
        import msgspec
    except ImportError as missing:
        raise MissingPackage(f"{_place(type)}: {missing}", hint="pip install msgspec") from missing
    told = msgspec.inspect
    for part in _parts(told.type_info(type), set()):
        if isinstance(part, told.DateTimeType | told.TimeType) and not part.tz:
            hint = "Annotated[datetime, msgspec.Meta(tz=True)] has a time zone"
            raise UnsupportedType("msgspec's times without time zones", _place(type), hint)
        if isinstance(part, told.DictType) and not isinstance(part.key_type, told.StrType):
            raise UnsupportedType("msgspec's names of members other than str", _place(type))
    read = msgspec.json.Decoder(type).decode
    return Adapter(_mended(msgspec.json.schema(type)), read, lambda: msgspec.json.schema(type))


def _parts(info: Any, seen: set[int]) -> Iterator[Any]:
    """A type of msgspec's, as it describes it, and all that it is made of."""
    if id(info) in seen:
        return
    seen.add(id(info))
    yield info
    inner = info if isinstance(info, list | tuple) else [getattr(info, name) for name in info.__struct_fields__]
    for part in inner:
        if isinstance(part, list | tuple) or hasattr(part, "__struct_fields__"):
            yield from _parts(part, seen)


# ---------------------------------------------------------------------- what Pydantic takes, exactly
_SPAN = (
    "-?P(?=[0-9]|T[0-9])(?:[0-9]{1,6}D)?"
    r"(?:T(?=[0-9])(?:[0-9]{1,6}H)?(?:[0-9]{1,6}M)?(?:[0-9]{1,6}(?:\.[0-9]{1,6})?S)?)?"
)
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_KEYS = {"int": "^-?(?:0|[1-9][0-9]{0,17})$", "float": r"^-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?$"}


def _network() -> str:
    """IPv4 networks: after the bits of the prefix, all are zero."""
    ways = []
    for prefix in range(33):
        whole, bits = divmod(prefix, 8)
        octets = [_OCTET] * whole
        if bits:
            octets.append("(?:" + "|".join(str(value) for value in range(0, 256, 1 << (8 - bits))) + ")")
        ways.append(r"\.".join([*octets, *["0"] * (4 - len(octets))]) + f"/{prefix}")
    return "(?:" + "|".join(ways) + ")"


class _Untitled(GenerateJsonSchema):
    """Pydantic's schemas without titles that only repeat the names of fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class _Narrower(GenerateJsonSchema):
    """Pydantic's schemas without what it does not validate; keys, dates and numbers as it reads them."""

    def date_schema(self, schema: core_schema.DateSchema) -> JsonSchemaValue:
        pattern = dates(ge=schema.get("ge"), gt=schema.get("gt"), le=schema.get("le"), lt=schema.get("lt"))
        return self._texts(pattern, {"now_op": schema.get("now_op")})

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonSchemaValue:
        return self._texts(TIME + self._zone(schema), schema)

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        return self._texts(f"{DATE}T{TIME}{self._zone(schema)}", schema)

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        return self._texts(_SPAN, schema)

    @staticmethod
    def _zone(schema: Any) -> str:
        constraint = schema.get("tz_constraint")
        return "" if constraint == "naive" else ZONE if constraint == "aware" else f"{ZONE}?"

    @staticmethod
    def _texts(pattern: str, schema: Any) -> JsonSchemaValue:
        """Texts that match, if there are no bounds, which a pattern does not have."""
        for name in ("le", "ge", "lt", "gt", "now_op", "multiple_of"):
            if schema.get(name) is not None:
                raise UnsupportedType(f"the constraint {name} on dates and times")
        return {"type": "string", "pattern": f"^{pattern}$"}

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        numbers: JsonSchemaValue = {"type": "number"}
        for name, keyword in (
            ("multiple_of", "multipleOf"), ("ge", "minimum"), ("gt", "exclusiveMinimum"),
            ("le", "maximum"), ("lt", "exclusiveMaximum"),
        ):  # fmt: skip
            if schema.get(name) is not None:
                numbers[keyword] = schema[name]  # type: ignore[literal-required]
        places, digits = schema.get("decimal_places"), schema.get("max_digits")
        also: JsonSchemaValue = {}
        if places is not None:
            also["multipleOf"] = Decimal(1).scaleb(-places)
        if digits is not None:
            if places is None:
                raise UnsupportedType("max_digits of a Decimal", hint="give decimal_places, too")
            also |= {"exclusiveMinimum": -(10 ** (digits - places)), "exclusiveMaximum": 10 ** (digits - places)}
        return {"allOf": [numbers, also]} if also else numbers

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        found: JsonSchemaValue = {"type": "string"}
        for name, keyword in (("min_length", "minLength"), ("max_length", "maxLength")):
            if schema.get(name) is not None:
                found[keyword] = schema[name]  # type: ignore[literal-required]
                found["pattern"] = "^[\0-\x7f]*$"  # one byte each
        return found

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        found: JsonSchemaValue = {"type": "object", "additionalProperties": True}
        if "values_schema" in schema:
            found["additionalProperties"] = self.generate_inner(schema["values_schema"])
        for name, keyword in (("min_length", "minProperties"), ("max_length", "maxProperties")):
            if schema.get(name) is not None:
                found[keyword] = schema[name]  # type: ignore[literal-required]
        keys = schema.get("keys_schema", {"type": "any"})
        kind = keys["type"]
        if kind in _KEYS and len(keys) == 1:
            found["propertyNames"] = {"pattern": _KEYS[kind]}
        elif kind == "bool":
            found["propertyNames"] = {"enum": ["true", "false"]}
        elif kind not in ("any", "str", "date", "datetime", "time", "uuid", "literal", "enum"):
            raise UnsupportedType(f"names of members that are of the kind {kind}")
        elif kind in ("literal", "enum") and not all(isinstance(value, str) for value in self._names(keys)):
            raise UnsupportedType("names of members that are constants and no texts")
        else:
            found["propertyNames"] = self.generate_inner(keys)
        return found

    @staticmethod
    def _names(keys: Any) -> list[Any]:
        return keys["expected"] if keys["type"] == "literal" else [member.value for member in keys["members"]]

    def model_field_schema(self, schema: core_schema.ModelField) -> JsonSchemaValue:
        self._check_alias(schema)
        return super().model_field_schema(schema)

    def dataclass_field_schema(self, schema: core_schema.DataclassField) -> JsonSchemaValue:
        self._check_alias(schema)
        return super().dataclass_field_schema(schema)

    def typed_dict_field_schema(self, schema: core_schema.TypedDictField) -> JsonSchemaValue:
        self._check_alias(schema)
        return super().typed_dict_field_schema(schema)

    @staticmethod
    def _check_alias(schema: Any) -> None:
        """Refuse fields that are only read from within other members: Pydantic's schemas have them by their names."""
        alias = schema.get("validation_alias", "")
        paths = [alias] if isinstance(alias, str) or isinstance(alias[0], str) else alias
        if not any(isinstance(path, str) or len(path) == 1 for path in paths):
            path = ".".join(map(str, paths[0]))
            raise UnsupportedType(f"the alias {path}, which is a path", hint="use a model for what is within")

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonSchemaValue:
        raise UnsupportedType("complex numbers, which JSON has not")


_FORMATS = {
    "date": DATE,
    "date-time": f"{DATE}T{TIME}{ZONE}",
    "time": f"{TIME}{ZONE}",
    "duration": _SPAN,
    "decimal": r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?",
    "ipv4network": _network(),
    "ipv4interface": rf"{_OCTET}(?:\.{_OCTET}){{3}}(?:/(?:3[0-2]|[12]?[0-9]))?",
}
_BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_REFUSED = {"ipv6network": "IPv6 networks", "ipv6interface": "IPv6 interfaces", "regex": "regular expressions"}


def _mended(schema: Any) -> Any:
    """The schema with patterns for formats that are the libraries' own, or that they read otherwise."""
    if isinstance(schema, list):
        return [_mended(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = dict(schema)
    for keyword, value in schema.items():
        if keyword in ("properties", "$defs"):
            found[keyword] = {name: _mended(member) for name, member in value.items()}
        elif keyword in ("items", "prefixItems", "additionalProperties", "propertyNames", "anyOf", "oneOf", "allOf"):
            found[keyword] = _mended(value)
    if found.get("format") in _REFUSED:
        raise UnsupportedType(_REFUSED[found["format"]])
    if found.get("format") in _FORMATS:
        found["pattern"] = f"^{_FORMATS[found.pop('format')]}$"
    if found.get("contentEncoding") == "base64":
        found["pattern"] = _BASE64
    return found
