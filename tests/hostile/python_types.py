"""Python types that are large, deep or tangled: each with what it is aimed at as its name."""

from __future__ import annotations

from dataclasses import make_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import reduce
from ipaddress import IPv4Network, IPv6Address
from operator import or_
from typing import Annotated, Any, Literal
from uuid import UUID

from annotated_types import Ge, Le, MultipleOf
from pydantic import Field, create_model
from typing_extensions import TypedDict  # Pydantic wants this one before Python 3.12

__all__ = ["TYPES"]

_KINDS: list[Any] = [int, str, bool, float, date, UUID]

TYPES: dict[str, Any] = {
    "a literal of 20,000 texts": Literal[tuple(f"choice {i}" for i in range(20_000))],
    "an enum of 5,000": Enum("Many", {f"M{i}": f"member {i}" for i in range(5_000)}),
    "a model of 2,000 fields": create_model("Wide", **{f"field{i}": (_KINDS[i % 6], ...) for i in range(2_000)}),
    "a model of 1,000 optional fields": create_model("Open", **{f"field{i}": (int | None, None) for i in range(1_000)}),
    "a dataclass of 1,000 fields": make_dataclass("Record", [(f"field{i}", _KINDS[i % 6]) for i in range(1_000)]),
    "lists in lists": reduce(lambda inner, _: list[inner], range(150), int),
    "options in options": reduce(lambda inner, _: list[inner] | dict[str, inner], range(12), int),
    "a union of 200 models": reduce(
        or_, (create_model(f"M{i}", kind=(Literal[f"m{i}"], ...), value=(int, ...)) for i in range(200))
    ),
    "a union of models that overlap": reduce(
        or_, (create_model(f"O{i}", **{f"f{j}": (int, ...) for j in range(i + 1)}) for i in range(30))
    ),
    "a union told apart by a field": Annotated[
        reduce(or_, (create_model(f"T{i}", kind=(Literal[f"t{i}"], ...)) for i in range(150))),
        Field(discriminator="kind"),
    ],
    "dictionaries of dictionaries": dict[
        Annotated[str, Field(pattern="^[a-z]{1,40}$")], dict[UUID, dict[date, list[Decimal]]]
    ],
    "sets of sets": set[frozenset[int]],
    "a set of few": Annotated[set[Literal[tuple(range(50))]], Field(min_length=48)],
    "a tuple of 500": tuple[tuple(_KINDS[i % 6] for i in range(500))],
    "a long text": Annotated[str, Field(min_length=200_000)],
    "a pattern with lengths": Annotated[str, Field(pattern=r"^(?:[a-z]+-)*[0-9]{3}$", min_length=400, max_length=500)],
    "multiples of a fraction": Annotated[Decimal, MultipleOf(Decimal("0.0000025")), Ge(0), Le(10**12)],
    "numbers of many digits": Annotated[int, Ge(-(10**300)), Le(10**300)],
    "networks and moments": list[IPv4Network | IPv6Address | datetime | UUID | Decimal],
    "typed dictionaries of all of each other": TypedDict(
        "Web", {f"k{i}": dict[str, list[dict[str, int] | None]] for i in range(120)}, total=False
    ),
}
