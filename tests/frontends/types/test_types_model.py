"""Python types with a real model: whatever SmolLM2 answers is a value of the type."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Ge, Le, Len

import grammarspec as gs
from tests import tiers
from tests.frontends.types.test_types import Attrs, Bounded, Cat, Color, Dog, Movie, Pair, Person, Point, Struct, Tree

TYPES: list[tuple[Any, Callable[[Any], bool]]] = [
    (bool, lambda value: isinstance(value, bool)),
    (Annotated[int, Ge(3), Le(9)], lambda value: 3 <= value <= 9),
    (Literal["red", "green", 3], lambda value: value in ("red", "green", 3)),
    (Color, lambda value: isinstance(value, Color)),
    (datetime.date, lambda value: type(value) is datetime.date),
    (uuid.UUID, lambda value: isinstance(value, uuid.UUID)),
    (decimal.Decimal, lambda value: isinstance(value, decimal.Decimal)),
    (Annotated[set[int], Len(2, 3)], lambda value: isinstance(value, set) and 2 <= len(value) <= 3),
    (dict[str, int], lambda value: all(type(number) is int for number in value.values())),
    (Person | None, lambda value: value is None or isinstance(value, Person)),
    (Cat | Dog, lambda value: isinstance(value, Cat | Dog)),
    (Bounded, lambda value: 0 < value.share < 1 and 1 <= len(value.parts) <= 2),
    (Tree, lambda value: isinstance(value, Tree)),
    (Point, lambda value: isinstance(value, Point)),
    (Movie, lambda value: type(value["year"]) is int),
    (Pair, lambda value: isinstance(value, Pair)),
    (Struct, lambda value: isinstance(value, Struct) and len(value.b) <= 3),
    (Attrs, lambda value: isinstance(value, Attrs)),
]
ASKED = tiers.some(TYPES)


@pytest.fixture(scope="module")
def model(smollm2_directory: Path) -> gs.Model:
    return gs.Model.from_pretrained(smollm2_directory)


@pytest.mark.parametrize(("type_", "holds"), ASKED, ids=[repr(type_)[:60] for type_, _ in ASKED])
def test_answers_are_values(type_: Any, holds: Callable[[Any], bool], model: gs.Model) -> None:
    sampling = gs.Sampling(temperature=1.0, seed=7, max_tokens=45, on_limit="close")
    assert holds(model("Give me an example.", type_, sampling=sampling))
