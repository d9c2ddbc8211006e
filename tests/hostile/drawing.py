"""Random declarations, drawn quickly and without end: for soaking and fuzzing, where nothing is to be made smaller."""

from __future__ import annotations

import random
from typing import Any

__all__ = ["lark_file", "regex", "schema"]

_NAMES = ["a", "b", "id", "name", "a b", "naïve"]
_PATTERNS = ["^a", "b$", "a.*b", "^[a-z]{2,9}$", "(ab|c)+", "^(?!a)"]
_FORMATS = ["date", "date-time", "uuid", "ipv4", "email", "uri", "hostname"]


def schema(draw: random.Random, depth: int = 3) -> Any:
    """A schema that is mostly satisfiable."""
    kind = draw.choice(["string", "number", "enum", "object", "object", "array", "union"][: None if depth else 3])
    match kind:
        case "string":
            asked = [{}, {"maxLength": draw.randint(1, 30)}, {"pattern": draw.choice(_PATTERNS)}]
            return {"type": "string", **draw.choice([*asked, {"format": draw.choice(_FORMATS)}])}
        case "number":
            low = draw.randint(-50, 500)
            asked = [{}, {"minimum": low}, {"minimum": low, "maximum": low + draw.randint(0, 10**6)}, {"multipleOf": 3}]
            return {"type": draw.choice(["integer", "number"]), **draw.choice(asked)}
        case "enum":
            return {"enum": [draw.choice([f"v{i}", i, None, [i], {"k": i}]) for i in range(draw.randint(1, 30))]}
        case "object":
            return _object(draw, depth - 1)
        case "array":
            size = draw.randint(0, 4)
            asked = [{}, {"minItems": size}, {"maxItems": size + 2}, {"uniqueItems": True}]
            return {"type": "array", "items": schema(draw, depth - 1), **draw.choice(asked)}
    return {draw.choice(["anyOf", "anyOf", "oneOf"]): [schema(draw, depth - 1) for _ in range(draw.randint(1, 3))]}


def _object(draw: random.Random, depth: int) -> dict[str, Any]:
    names = draw.sample(_NAMES, draw.randint(0, len(_NAMES)))
    asked: dict[str, Any] = {"required": draw.sample(names, draw.randint(0, len(names)))}
    if draw.random() < 0.3:
        asked["patternProperties"] = {draw.choice(_PATTERNS): schema(draw, 0)}
    if draw.random() < 0.4:
        asked["additionalProperties"] = draw.choice([False, schema(draw, 0)])
    return {"type": "object", "properties": {name: schema(draw, depth) for name in names}, **asked}


def regex(draw: random.Random, depth: int = 4) -> str:
    """A pattern of Python's ``re``."""
    if depth == 0:
        return draw.choice(["a", "b", "[a-c]", ".", r"\d", r"\w", "[^a]", "é", "ab", r"\.", r"\b", "^", "$"])
    inner = [regex(draw, depth - 1) for _ in range(draw.randint(1, 3))]
    low = draw.randint(0, 9)
    counted = ["*", "+", "?", f"{{{low},{low + draw.randint(0, 30)}}}", f"{{{low}}}", f"{{{low},}}"]
    looking = draw.choice(["(?=", "(?!", "(?<=", "(?<!"])
    return draw.choice(
        [
            "".join(inner),
            f"(?:{'|'.join(inner)})",
            f"(?:{inner[0]}){draw.choice(counted)}",
            f"{looking}{inner[0]}){inner[-1]}",
        ]
    )


def lark_file(draw: random.Random) -> str:
    """A grammar of a few rules that call each other."""
    names = [f"r{i}" for i in range(draw.randint(1, 6))]
    symbols = [*names, '"a"', '"b"', '"ab"', "T", "U"]

    def symbol() -> str:
        return draw.choice(symbols) + draw.choice(["", "", "", "?", "*", "+", "~2", "~0..5"])

    def body() -> str:
        return " | ".join(" ".join(symbol() for _ in range(draw.randint(0, 4))) for _ in range(draw.randint(1, 4)))

    rules = [f"{name}: {body()}" for name in names]
    return "\n".join(
        ["start: r0 | T", *rules, f"T: /{draw.choice(['[a-c]+', 'x.*y', '[0-9]{2,5}'])}/", 'U: "u" | "uu"', ""]
    )
