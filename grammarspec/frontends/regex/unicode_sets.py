"""Sets of code points by their Unicode properties: ``\\d``, ``\\p{Lu}``, the other cases of a letter.

The name of a class or property goes in, and a set of code points (:mod:`.charsets`) comes out; it is computed once and
kept. Properties are those of Unicode Technical Standard 18 ("Unicode Regular Expressions", section 1.2), under the
names that ECMA-262 has for them.

The classes of letters, digits and spaces are taken from :mod:`re`, and general categories from :mod:`unicodedata`, so
that patterns mean here what they mean in the running Python. Scripts and binary properties, which the standard library
lacks, are taken from the package ``regex`` (an optional dependency).

A set is found by one scan in C over a *universe*: a text that holds every code point that can differ from its
neighbours (planes 0 to 3 and the start of plane 14), and one representative of each uniform stretch between them
(unassigned or private use). That keeps a first use below 20 ms.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from functools import cache, lru_cache
from itertools import chain

from grammarspec.errors import GrammarSyntaxError, UnsupportedFeature
from grammarspec.frontends.regex.charsets import ALL, Ranges, intersect, normalise, subtract, union

__all__ = [
    "ECMA_SPACE",
    "ascii_class",
    "fold_case",
    "fold_case_by_package",
    "package_set",
    "property_ranges",
    "unicode_class",
]

ECMA_SPACE: Ranges = (
    (0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
"""``\\s`` of ECMA-262: its productions WhiteSpace and LineTerminator."""

_ASCII_CLASSES: dict[str, Ranges] = {
    "d": ((48, 57),),
    "s": ((9, 13), (32, 32)),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
}

# The universe: one position per code point below _DETAILED and in plane 14's used part; one for each uniform stretch.
_DETAILED = 0x40000
_STRETCHES = [
    (0x40000, 0xDFFFF),
    *((c, c) for c in range(0xE0000, 0xE1000)),
    (0xE1000, 0xEFFFF),
    (0xF0000, 0xFFFFD),
    (0xFFFFE, 0xFFFFF),
    (0x100000, 0x10FFFD),
    (0x10FFFE, 0x10FFFF),
]

_CATEGORIES = {
    "L": "Letter", "LC": "Cased_Letter", "Lu": "Uppercase_Letter", "Ll": "Lowercase_Letter", "Lt": "Titlecase_Letter",
    "Lm": "Modifier_Letter", "Lo": "Other_Letter", "M": "Mark", "Mn": "Nonspacing_Mark", "Mc": "Spacing_Mark",
    "Me": "Enclosing_Mark", "N": "Number", "Nd": "Decimal_Number", "Nl": "Letter_Number", "No": "Other_Number",
    "P": "Punctuation", "Pc": "Connector_Punctuation", "Pd": "Dash_Punctuation", "Ps": "Open_Punctuation",
    "Pe": "Close_Punctuation", "Pi": "Initial_Punctuation", "Pf": "Final_Punctuation", "Po": "Other_Punctuation",
    "S": "Symbol", "Sm": "Math_Symbol", "Sc": "Currency_Symbol", "Sk": "Modifier_Symbol", "So": "Other_Symbol",
    "Z": "Separator", "Zs": "Space_Separator", "Zl": "Line_Separator", "Zp": "Paragraph_Separator", "C": "Other",
    "Cc": "Control", "Cf": "Format", "Cs": "Surrogate", "Co": "Private_Use", "Cn": "Unassigned",
}  # fmt: skip
"""Values of General_Category (PropertyValueAliases.txt), short to long."""
_CATEGORY_NAMES = {long: short for short, long in _CATEGORIES.items()} | {
    "Combining_Mark": "M", "digit": "Nd", "punct": "P", "cntrl": "Cc",
}  # fmt: skip

_BINARY_PROPERTIES = frozenset(
    """ASCII_Hex_Digit AHex Alphabetic Alpha Bidi_Control Bidi_C Cased Case_Ignorable CI Dash
    Default_Ignorable_Code_Point DI Deprecated Dep Diacritic Dia Emoji Emoji_Component EComp Emoji_Modifier EMod
    Emoji_Modifier_Base EBase Emoji_Presentation EPres Extended_Pictographic ExtPict Extender Ext Hex_Digit Hex
    ID_Continue IDC ID_Start IDS Ideographic Ideo Join_Control Join_C Lowercase Lower Math Quotation_Mark QMark
    Radical Regional_Indicator RI Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation Term
    Unified_Ideograph UIdeo Uppercase Upper Variation_Selector VS White_Space space XID_Continue XIDC
    XID_Start XIDS""".split()
)
"""Binary properties of ECMA-262, as its table of their aliases names them, that hold or fail for each stretch of the
universe as a whole."""


@cache
def _universe() -> str:
    """One character for each code point or uniform stretch, in ascending order."""
    first_of_stretches = (low for low, _ in _STRETCHES)
    codepoints = array("I", chain(range(_DETAILED), first_of_stretches))
    little = array("I", [1]).tobytes()[0] == 1
    return codepoints.tobytes().decode("utf-32-le" if little else "utf-32-be", "surrogatepass")


def _ranges_of_runs(runs: list[tuple[int, int]]) -> Ranges:
    """The code points of half-open runs of positions in the universe."""

    def first(position: int) -> int:
        return position if position < _DETAILED else _STRETCHES[position - _DETAILED][0]

    def last(position: int) -> int:
        return position if position < _DETAILED else _STRETCHES[position - _DETAILED][1]

    return normalise((first(start), last(end - 1)) for start, end in runs)


def ascii_class(letter: str) -> Ranges:
    """``\\d``, ``\\s`` or ``\\w`` (by the letter) of ASCII characters only, as Python has them."""
    return _ASCII_CLASSES[letter]


@cache
def unicode_class(letter: str) -> Ranges:
    """``\\d``, ``\\s`` or ``\\w`` (by the letter) as Python's ``re`` has them for text."""
    return _ranges_of_runs([m.span() for m in re.finditer(rf"\{letter}+", _universe())])


@cache
def _category_letters() -> str:
    """The two letters of the general category of each position of the universe, one after the other."""
    return "".join(map(unicodedata.category, _universe()))


@cache
def _category(name: str) -> Ranges:
    """A general category, by its short name."""
    wanted = {"LC": "L[ult]"}.get(name, name if len(name) == 2 else f"{name}[a-z]")
    runs = [m.span() for m in re.finditer(f"(?:{wanted})+", _category_letters())]
    return _ranges_of_runs([(start // 2, end // 2) for start, end in runs])


@lru_cache(maxsize=512)
def property_ranges(text: str) -> Ranges:
    """The code points of ``\\p{text}``.

    Raises:
        GrammarSyntaxError: there is no such property or value.
        UnsupportedFeature: it needs the package ``regex``, which is not installed.
    """
    if text == "Any":
        return ALL
    if text == "ASCII":
        return ((0, 127),)
    if text == "Assigned":
        return subtract(ALL, _category("Cn"))
    name, equals, value = text.partition("=")
    if not equals or name in ("General_Category", "gc"):
        category = value if equals else name
        short = category if category in _CATEGORIES else _CATEGORY_NAMES.get(category)
        if short is not None:
            return _category(short)
    if equals and name in ("Script", "sc", "Script_Extensions", "scx") and value.isidentifier():
        return _from_regex_package(text)
    if not equals and name in _BINARY_PROPERTIES:
        return _from_regex_package(text)
    raise GrammarSyntaxError(
        f"unknown Unicode property {text!r}",
        hint="known are general categories (L, Lu, Letter, ...), Script=..., Script_Extensions=... and ECMA-262's "
        "binary properties; names are case-sensitive",
    )


def _from_regex_package(text: str) -> Ranges:
    """The code points of ``\\p{text}``, by the package ``regex``."""
    try:
        return package_set(rf"\p{{{text}}}")
    except ImportError:
        raise UnsupportedFeature(
            f"the Unicode property {text!r} needs tables that the standard library lacks", hint="pip install regex"
        ) from None
    except GrammarSyntaxError:
        raise GrammarSyntaxError(f"unknown Unicode property {text!r}") from None


@lru_cache(maxsize=512)
def package_set(item: str, *, ascii_only: bool = False, ignore_case: bool = False) -> Ranges:
    """The code points that a class or an escape matches by the package ``regex``.

    Args:
        item: the class or escape.
        ascii_only: whether the flag ``ASCII`` is on.
        ignore_case: whether ``IGNORECASE`` is, which matters to properties as ``\\p{Lu}``, too.

    Raises:
        GrammarSyntaxError: the package has no such set.
        ImportError: the package is not installed.
    """
    import regex

    try:
        pattern = regex.compile(f"{item}+", regex.ASCII * ascii_only | regex.IGNORECASE * ignore_case)
    except regex.error:
        raise GrammarSyntaxError(f"unknown set {item!r}") from None
    return _ranges_of_runs([m.span() for m in pattern.finditer(_universe())])


@cache
def _cased() -> tuple[str, Ranges]:
    """The characters that have another case, as a text and as a set: all that ``re.IGNORECASE`` can matter to."""
    text, found = _universe(), []
    for start in range(0, len(text), 256):  # most blocks hold none: looked at as a whole
        block = text[start : start + 256]
        if block.lower() != block or block.upper() != block:
            found += [c for c in block if c.lower() != c or c.upper() != c]
    return "".join(found), normalise((ord(c), ord(c)) for c in found)


@lru_cache(maxsize=4096)
def fold_case(ranges: Ranges, *, ascii_only: bool) -> Ranges:
    """All code points that a class matches under ``re.IGNORECASE``, with or without ``re.ASCII``.

    ``re`` itself is asked, because its rules have exceptions (the Kelvin sign, dotless i, long s, ligatures) that
    differ between versions of Python.
    """
    if ascii_only:
        lower, upper = intersect(ranges, ((97, 122),)), intersect(ranges, ((65, 90),))
        shifted = [(low - 32, high - 32) for low, high in lower] + [(low + 32, high + 32) for low, high in upper]
        return union(ranges, normalise(shifted)) if shifted else ranges
    characters, cased_ranges = _cased()
    cased = intersect(ranges, cased_ranges)
    if not cased:
        return ranges
    return union(ranges, _of_characters(re.findall(_spelled(cased), characters, re.IGNORECASE)))


@lru_cache(maxsize=4096)
def fold_case_by_package(ranges: Ranges, *, ascii_only: bool) -> Ranges:
    """As :func:`fold_case`, by the rules of the package ``regex``, which has to be there."""
    import regex

    characters, cased_ranges = _cased()
    cased = intersect(ranges, cased_ranges)
    if not cased:
        return ranges
    flags = regex.IGNORECASE | (regex.ASCII if ascii_only else 0)
    return union(ranges, _of_characters(regex.findall(_spelled(cased), characters, flags)))


def _spelled(ranges: Ranges) -> str:
    """A set as a class of a pattern."""
    return "[" + "".join(rf"\U{low:08x}-\U{high:08x}" for low, high in ranges) + "]"


def _of_characters(characters: list[str]) -> Ranges:
    return normalise((ord(c), ord(c)) for c in characters)
