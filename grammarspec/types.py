"""Primitives as grammars, ``gs.types``: the public face of :mod:`grammarspec.frontends.types.texts`."""

from grammarspec.frontends.types.texts import (
    boolean,
    date,
    datetime,
    email,
    hostname,
    integer,
    ipv4,
    ipv6,
    number,
    string,
    time,
    uri,
    uuid,
)

__all__ = [
    "boolean",
    "date",
    "datetime",
    "email",
    "hostname",
    "integer",
    "ipv4",
    "ipv6",
    "number",
    "string",
    "time",
    "uri",
    "uuid",
]
