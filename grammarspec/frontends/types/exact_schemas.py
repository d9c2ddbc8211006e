"""JSON Schemas of Python types, made exact.

The schemas that Pydantic and msgspec make of types allow texts that these libraries do not read: the year 0000, leap
seconds, arbitrary names of members where keys are numbers, host bits of networks. Here such schemas are narrowed, or
refused, so that every text that satisfies one can be read.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from grammarspec.errors import UnsupportedType
from grammarspec.frontends.types.dates import DATE, TIME, ZONE, dates

__all__ = ["ExactSchema", "UntitledSchema", "made_exact"]

_SPAN = (
    "-?P(?=[0-9]|T[0-9])(?:[0-9]{1,6}D)?"
    r"(?:T(?=[0-9])(?:[0-9]{1,6}H)?(?:[0-9]{1,6}M)?(?:[0-9]{1,6}(?:\.[0-9]{1,6})?S)?)?"
)
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_KEYS = {"int": "^-?(?:0|[1-9][0-9]{0,17})$", "float": r"^-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?$"}


def _network() -> str:
    """A pattern of IPv4 networks, in which all bits after the prefix are zero."""
    ways = []
    for prefix in range(33):
        whole, bits = divmod(prefix, 8)
        octets = [_OCTET] * whole
        if bits:
            octets.append("(?:" + "|".join(str(value) for value in range(0, 256, 1 << (8 - bits))) + ")")
        ways.append(r"\.".join([*octets, *["0"] * (4 - len(octets))]) + f"/{prefix}")
    return "(?:" + "|".join(ways) + ")"


class UntitledSchema(GenerateJsonSchema):
    """Pydantic's schemas without the titles that only repeat the names of fields."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class ExactSchema(GenerateJsonSchema):
    """Pydantic's schemas, narrowed to the JSON that Pydantic reads: keys, dates, times and numbers.

    Raises:
        UnsupportedType: (by its methods) a constraint cannot be expressed in JSON Schema.
    """

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
    "ipv4interface": rf"{_OCTET}(?:\.{_OCTET}){{3}}(?:/(?:3[0-2]|[12]?[0-9]))?",
}
_BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_REFUSED = {"ipv6network": "IPv6 networks", "ipv6interface": "IPv6 interfaces", "regex": "regular expressions"}


def made_exact(schema: Any) -> Any:
    """A schema with patterns instead of the formats that Pydantic or msgspec define, or read differently.

    Raises:
        UnsupportedType: there is a format whose texts no pattern describes.
    """
    if isinstance(schema, list):
        return [made_exact(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = dict(schema)
    for keyword, value in schema.items():
        if keyword in ("properties", "$defs"):
            found[keyword] = {name: made_exact(member) for name, member in value.items()}
        elif keyword in ("items", "prefixItems", "additionalProperties", "propertyNames", "anyOf", "oneOf", "allOf"):
            found[keyword] = made_exact(value)
    if found.get("format") in _REFUSED:
        raise UnsupportedType(_REFUSED[found["format"]])
    if found.get("format") in _FORMATS:
        found["pattern"] = f"^{_FORMATS[found.pop('format')]}$"
    if found.get("contentEncoding") == "base64":
        found["pattern"] = _BASE64
    return found
