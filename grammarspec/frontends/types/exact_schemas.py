"""JSON Schemas of Python types, made exact.

The schemas that Pydantic and msgspec make of types allow texts that these libraries do not read: the year 0000, leap
seconds, arbitrary names of members where keys are numbers, host bits of networks. Here such schemas are narrowed, or
refused, so that every text that satisfies one can be read.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import partial
from typing import Any, cast

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonRef, JsonSchemaValue
from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema, to_json

from grammarspec.errors import GrammarError, UnsupportedType
from grammarspec.frontends.regex.ecma_text import to_ecma262
from grammarspec.frontends.regex.patterns import Dialect
from grammarspec.frontends.types.dates import DATE, TIME, ZONE, dates
from grammarspec.frontends.types.library_functions import added_schema, known_schema
from grammarspec.frontends.types.places import Places
from grammarspec.frontends.types.texts_of_formats import BASE64, OCTET, unchanged_by, url, url_safe, uuid

__all__ = ["ExactSchema", "UntitledSchema", "made_exact", "without_json"]

_SPAN = (
    "-?P(?=[0-9]|T[0-9])(?:[0-9]{1,6}D)?"
    r"(?:T(?=[0-9])(?:[0-9]{1,6}H)?(?:[0-9]{1,6}M)?(?:[0-9]{1,6}(?:\.[0-9]{1,6})?S)?)?"
)
_KEYS = {"int": "^(?:0|-?[1-9][0-9]{0,17})$", "float": r"^-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?$"}


_LARGEST = 1e308  # every text up to it is read as a finite float
_LEAST = 1e-300  # every text from it on is read as a float above 0


def _next(limit: float, beyond: float) -> float:
    """The float after a limit in the direction of ``beyond``; after 0, one that has not too many digits."""
    return math.copysign(_LEAST, beyond) if limit == 0 else math.nextafter(limit, beyond)


def _network() -> str:
    """A pattern of IPv4 networks, in which all bits after the prefix are zero."""
    ways = []
    for prefix in range(33):
        whole, bits = divmod(prefix, 8)
        octets = [OCTET] * whole
        if bits:
            octets.append("(?:" + "|".join(str(value) for value in range(0, 256, 1 << (8 - bits))) + ")")
        ways.append(r"\.".join([*octets, *["0"] * (4 - len(octets))]) + f"/{prefix}")
    return "(?:" + "|".join(ways) + ")"


class UntitledSchema(GenerateJsonSchema):
    """Pydantic's schemas without the titles that only repeat the names of fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class ExactSchema(GenerateJsonSchema):
    """Pydantic's schemas, narrowed to the JSON that Pydantic reads: keys, dates, times, numbers, kinds of texts.

    A part of a type that cannot be enforced becomes a schema that allows anything, and stands in ``refusals``.

    Raises:
        UnsupportedType: (by methods for single kinds of schemas) a constraint cannot be expressed in JSON Schema.
    """

    def __init__(self, *arguments: Any, places: Places, refusals: list[UnsupportedType], **options: Any) -> None:
        """Make a generator of schemas.

        Args:
            places: where the parts of the type stand.
            refusals: a list to which the errors about its parts are added, with their places.
        """
        super().__init__(*arguments, **options)
        self._places, self._refusals = places, refusals
        self._open: list[Any] = []

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        self._open.append(schema)
        try:
            return narrowed(self._generated(schema))
        except UnsupportedType as error:
            refused = error
        except PydanticInvalidForJsonSchema as error:
            if any(part["type"] in ("union", "tagged-union") for part in self._open):
                raise  # Pydantic leaves this alternative out
            refused = without_json(error)
        finally:
            place = self._places.of(self._open)
            self._open.pop()
        self._refusals.append(UnsupportedType(refused.message, place, refused.hint))
        return {}

    def _generated(self, schema: Any) -> JsonSchemaValue:
        """Pydantic's schema, with what functions ask.

        Raises:
            UnsupportedType: a function of a library asks what no schema says.
        """
        if not schema["type"].startswith("function-") or not isinstance(schema.get("function"), dict):
            return super().generate_inner(schema)
        function = schema["function"]["function"]
        known = known_schema(function)
        if known is not None:
            return dict(known)
        found = super().generate_inner(schema)
        if "enum" in found and _reads(schema, found["enum"]):
            return found
        added = added_schema(function, found.get("type"))
        apart = "$ref" not in found and all(found.get(name, asked) == asked for name, asked in added.items())
        return found | added if apart else {"allOf": [found, added]}

    def chain_schema(self, schema: core_schema.ChainSchema) -> JsonSchemaValue:
        if any(step["type"] in ("is-instance", "is-subclass") for step in schema["steps"]):
            raise UnsupportedType("values that are told apart by their class in Python")
        return super().chain_schema(schema)

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonSchemaValue:
        raise UnsupportedType("classes, which JSON has not")

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        """Pydantic looks for the tag before anything else, and asks for it also where the field has a default."""
        if callable(schema["discriminator"]):
            raise UnsupportedType("a Discriminator that is a function", hint="tell the types apart by a field of each")
        found = super().tagged_union_schema(schema)
        tag = found.get("discriminator", {}).get("propertyName")
        if tag is None:
            raise UnsupportedType("a discriminator that is no member of all alternatives")
        found["oneOf"] = [self._with_tag(one, tag) for one in found["oneOf"]]
        return found

    def _with_tag(self, one: JsonSchemaValue, tag: str) -> JsonSchemaValue:
        """An alternative of a union, whose tag has to be there."""
        model = self.get_schema_from_definitions(JsonRef(one["$ref"])) or {} if "$ref" in one else one
        return one if tag in model.get("required", ()) else one | {"required": [*one.get("required", ()), tag]}

    def fraction_schema(self, schema: Any) -> JsonSchemaValue:
        return self._texts("-?[0-9]{1,15}(?:/[1-9][0-9]{0,14})?", schema)

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        schema = cast(core_schema.StringSchema, self._string_settings() | schema)
        found = super().str_schema(schema)
        if pattern := schema.get("pattern"):
            found["pattern"] = self._pattern(pattern)
        patterns = unchanged_by(schema)
        return {"allOf": [found, *({"pattern": pattern} for pattern in patterns)]} if patterns else found

    def _pattern(self, pattern: Any) -> str:
        """A pattern, which Pydantic gives to Rust's ``regex`` or to Python's, as JSON Schema has it."""
        by_python = isinstance(pattern, re.Pattern) or self._config.regex_engine == "python-re"
        return pattern_of(pattern, "python" if by_python else "rust")

    def _string_settings(self) -> dict[str, Any]:
        """What the configuration of the model says of all its strings, by the names that a string has for it."""
        names = ("strip_whitespace", "to_lower", "to_upper", "min_length", "max_length")
        settings = {name: getattr(self._config, f"str_{name}") for name in names}
        return {name: value for name, value in settings.items() if value}

    def json_schema(self, schema: core_schema.JsonSchema) -> JsonSchemaValue:
        raise UnsupportedType("Json, a text that holds JSON", hint="use the type of what it holds in its place")

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        found = super().enum_schema(schema)
        if not _reads(schema, found["enum"]):
            raise UnsupportedType(
                f"the enum {schema['cls'].__qualname__}, whose values Pydantic does not read from JSON"
            )
        return found

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        found = super().literal_schema(schema)
        if not _reads(schema, found.get("enum", [found.get("const")])):
            raise UnsupportedType("a Literal whose values Pydantic does not read from JSON")
        return found

    def url_schema(self, schema: core_schema.UrlSchema) -> JsonSchemaValue:
        return self._url(schema, hosts=False)

    def multi_host_url_schema(self, schema: core_schema.MultiHostUrlSchema) -> JsonSchemaValue:
        return self._url(schema, hosts=True)

    @staticmethod
    def _url(schema: Any, *, hosts: bool) -> JsonSchemaValue:
        found: JsonSchemaValue = {"type": "string", "pattern": url(schema.get("allowed_schemes"), hosts=hosts)}
        if schema.get("max_length") is not None:
            found["maxLength"] = schema["max_length"] - 1  # a slash may be added behind the host before it is counted
        return found

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
        """The schema of strings that match a pattern.

        Raises:
            UnsupportedType: there is a bound or another constraint, which the pattern does not have.
        """
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
        if digits is not None:
            if places is None:
                raise UnsupportedType("max_digits of a Decimal", hint="give decimal_places, too")
            places = min(places, digits)
            also |= {"exclusiveMinimum": -(10 ** (digits - places)), "exclusiveMaximum": 10 ** (digits - places)}
            if places == digits:
                also["not"] = {"const": 0}  # no digit is left for the 0 before the point
        if places is not None:
            also["multipleOf"] = Decimal(1).scaleb(-places)
        return {"allOf": [numbers, also]} if also else numbers

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        """Texts become floats before they are compared with bounds: one near a bound becomes the bound itself."""
        found = super().float_schema(schema)
        least, most = found.pop("exclusiveMinimum", -math.inf), found.pop("exclusiveMaximum", math.inf)
        if math.isfinite(least):
            found["minimum"] = max(_next(least, math.inf), found.get("minimum", -math.inf))
        if math.isfinite(most):
            found["maximum"] = min(_next(most, -math.inf), found.get("maximum", math.inf))
        if not schema.get("allow_inf_nan", self._config.allow_inf_nan):
            also = {"minimum": -_LARGEST, "maximum": _LARGEST}
            found = {"allOf": [found, also]} if also.keys() & found.keys() else found | also
        return found

    def set_schema(self, schema: core_schema.SetSchema) -> JsonSchemaValue:
        self._check_distinct(schema, schema.get("items_schema"))
        return super().set_schema(schema)

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonSchemaValue:
        self._check_distinct(schema, schema.get("items_schema"))
        return super().frozenset_schema(schema)

    def _check_distinct(self, schema: Any, items: Any) -> None:
        """Refuse a least number of items, or of names, if different texts can be read as the same value.

        Raises:
            UnsupportedType: there is one, and they can.
        """
        if (schema.get("min_length") or 0) > 1 and items is not None and not self._is_distinct(items):
            raise UnsupportedType(
                f"min_length beside {items['type']}s, some of which are equal though their texts differ",
                hint="leave out min_length, or use a list",
            )

    def _is_distinct(self, schema: Any) -> bool:
        """Whether different texts are read as different values."""
        kind, function = schema["type"], schema.get("function")
        if isinstance(function, dict) and known_schema(function["function"]) is not None:
            return False
        if "schema" in schema:  # of what may be missing or null, or goes through a function
            return self._is_distinct(schema["schema"])
        if kind == "tuple":
            return all(map(self._is_distinct, schema["items_schema"]))
        if kind == "literal":
            return len(set(schema["expected"])) == len(schema["expected"])
        return kind in ("str", "int", "bool", "none", "date", "enum")

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        written = self._config.val_json_bytes
        if written != "utf8":
            if schema.get("min_length") is not None or schema.get("max_length") is not None:
                raise UnsupportedType(f"the length of bytes that are written as {written}")
            return {"type": "string", "pattern": "^(?:[0-9a-f]{2})*$" if written == "hex" else url_safe(BASE64)}
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
        if kind != "any":
            self._check_distinct(schema, keys)
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
        """Refuse a field whose aliases are all paths into other members: Pydantic's schema names the field instead."""
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
    "ipv4interface": rf"{OCTET}(?:\.{OCTET}){{3}}(?:/(?:3[0-2]|[12]?[0-9]))?",
}
_REFUSED = {"ipv6network": "IPv6 networks", "ipv6interface": "IPv6 interfaces", "regex": "regular expressions"}
_UUIDS = {f"uuid{version}": uuid(version) for version in range(1, 9)}


def without_json(error: Exception) -> UnsupportedType:
    """The refusal of a type of which Pydantic says that it has no JSON."""
    reason = str(error).splitlines()[0].partition(". Set `")[0]  # Pydantic's own advice does not help here
    return UnsupportedType(f"the type has no JSON: {reason}")


def _reads(schema: Any, values: list[Any]) -> bool:
    """Whether Pydantic reads each of the values from JSON."""
    try:
        validator = SchemaValidator(schema)
        for value in values:
            validator.validate_json(to_json(value))
    except (ValidationError, SchemaError):
        return False
    return True


def pattern_of(pattern: str | re.Pattern[str], dialect: Dialect) -> str:
    """A pattern of a type as JSON Schema has it.

    Raises:
        UnsupportedType: the pattern cannot be decided while texts are generated.
    """
    try:
        return to_ecma262(pattern, dialect)
    except GrammarError as error:
        raise UnsupportedType(f"the pattern of a string: {error.message}", hint=error.hint) from None


def made_exact(schema: Any, *, python_patterns: bool = False) -> Any:
    """A schema with patterns instead of the formats that Pydantic or msgspec define, or read differently.

    Args:
        schema: the schema.
        python_patterns: whether its patterns are Python's; else they are those of JSON Schema.

    Raises:
        UnsupportedType: there is a format whose texts no pattern describes, or a pattern that cannot be decided.
    """
    exact = partial(made_exact, python_patterns=python_patterns)
    if isinstance(schema, list):
        return [exact(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = dict(schema)
    for keyword, value in schema.items():
        if keyword in ("properties", "$defs"):
            found[keyword] = {name: exact(member) for name, member in value.items()}
        elif keyword in ("items", "prefixItems", "additionalProperties", "propertyNames", "anyOf", "oneOf", "allOf"):
            found[keyword] = exact(value)
        elif keyword == "pattern" and python_patterns:
            found[keyword] = pattern_of(value, "python")
    return narrowed(found)


def narrowed(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with a pattern in place of its format, if it has one of those; the schemas in it stay as they are.

    Raises:
        UnsupportedType: no pattern describes the texts of its format.
    """
    found = dict(schema)
    form = found.get("format")
    if form in _REFUSED:
        raise UnsupportedType(_REFUSED[form])
    if form in _FORMATS:
        found["pattern"] = f"^{_FORMATS[found.pop('format')]}$"
    elif form in _UUIDS:
        found["pattern"] = _UUIDS[found.pop("format")]
    if found.get("contentEncoding") == "base64":
        found["pattern"] = BASE64
    return found
