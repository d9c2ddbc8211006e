"""Docstrings: their text and the descriptions of parameters, in the styles of Google, NumPy and Sphinx."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

__all__ = ["parse"]


def parse(docstring: str) -> tuple[str, dict[str, str]]:
    """Parse a docstring with Griffe, in whatever style it is.

    Without Griffe, the whole docstring is the text, so that nothing of it is lost.

    Args:
        docstring: as it is written.

    Returns:
        the text before and between its sections, and the descriptions of parameters (or attributes) by name.
    """
    docstring = cleandoc(docstring)
    try:
        from griffe import Docstring, DocstringSectionKind, parse_auto
    except ImportError:
        return docstring, {}
    quiet: Any = {"warnings": False}  # types stand in the signature, and not in the docstring
    found = parse_auto(Docstring(docstring), per_style_options={"google": quiet, "numpy": quiet, "sphinx": quiet})
    kinds = (
        DocstringSectionKind.parameters,
        DocstringSectionKind.other_parameters,
        DocstringSectionKind.attributes,
    )  # fmt: skip
    texts = [section.value for section in found if section.kind is DocstringSectionKind.text]
    described = {one.name: one.description for section in found if section.kind in kinds for one in section.value}
    return "\n\n".join(texts), {name: " ".join(text.split()) for name, text in described.items() if text}
