"""The characters of internationalised labels, by the classes that IDNA 2008 has rules for (RFC 5892, RFC 5893).

They are derived from :mod:`unicodedata`, once per process, when first asked for. Scripts and joining types, which the
standard library lacks, are written out for the few blocks where a rule needs them; outside of these blocks, characters
that the rule would allow are left out.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Final

from grammarspec.frontends.regex.charsets import Ranges, subtract, union

__all__ = ["GREEK", "HEBREW", "JAPANESE", "JOINS_BOTH", "JOINS_RIGHT", "Classes", "classes"]

GREEK: Final[Ranges] = ((0x0370, 0x03E1), (0x03F0, 0x03FF), (0x1F00, 0x1FFF))
HEBREW: Final[Ranges] = ((0x05D0, 0x05EA), (0x05EF, 0x05F2))
JAPANESE: Final[Ranges] = (
    (0x3005, 0x3005), (0x3007, 0x3007), (0x3041, 0x3096), (0x309D, 0x309E), (0x30A1, 0x30FA), (0x30FD, 0x30FE),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
)  # fmt: skip
"""Hiragana, Katakana and Han."""
JOINS_BOTH: Final[Ranges] = (
    (0x0620, 0x0620), (0x0626, 0x0626), (0x0628, 0x0628), (0x062A, 0x062E), (0x0633, 0x063F), (0x0641, 0x0647),
    (0x0649, 0x064A), (0x0678, 0x0687), (0x069A, 0x06BF), (0x06C1, 0x06C2), (0x06CC, 0x06CC), (0x06CE, 0x06CE),
    (0x06D0, 0x06D1),
)  # fmt: skip
"""Arabic letters of Joining_Type=Dual_Joining."""
JOINS_RIGHT: Final[Ranges] = (
    (0x0622, 0x0625), (0x0627, 0x0627), (0x0629, 0x0629), (0x062F, 0x0632), (0x0648, 0x0648), (0x0671, 0x0673),
    (0x0688, 0x0699), (0x06C0, 0x06C0), (0x06C3, 0x06CB), (0x06CD, 0x06CD), (0x06CF, 0x06CF), (0x06D2, 0x06D3),
)  # fmt: skip
"""Arabic letters of Joining_Type=Right_Joining."""

_EXCEPTIONS: Final = "\u00df\u03c2\u06fd\u06fe\u0f0b\u3007"
"""Characters that are valid although the general rules refuse them (RFC 5892, section 2.6)."""
_DISALLOWED: Final[Ranges] = (
    (0x0640, 0x0640), (0x07FA, 0x07FA), (0x302E, 0x302F), (0x3031, 0x3035), (0x303B, 0x303B),  # section 2.6
    (0x0660, 0x0669), (0x06F0, 0x06F9),  # CONTEXTO: host_names.py has rules for them
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164),  # ignorable, section 2.3
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0100, 0xE01EF),
    (0x20D0, 0x20FF), (0x1D100, 0x1D1FF), (0x1D200, 0x1D24F),  # section 2.4
    (0x1100, 0x11FF), (0xA960, 0xA97F), (0xD7B0, 0xD7FF),  # old Hangul, section 2.9
)  # fmt: skip
_LAST_PLANE = 0x40000  # no letters beyond
_NUKTA = 7  # combining class; marks of the classes 1 to 6 could come between one and its letter, so they are left out


@dataclass(frozen=True, slots=True)
class Classes:
    """Sets of code points. All are valid in labels on their own (PVALID) and may stand in NFC text.

    Attributes:
        starters: Those of canonical combining class 0.
        marks: Those of each other class, in ascending order of the class.
        viramas: Those of class 9, after which a joiner may stand.
        first: Those that may begin a label: no combining marks.
        composing: Pairs of sets that must not touch, because NFC would make one character of them.
        right_to_left: Those of the bidirectional classes R and AL.
        left_to_right: Those of the class L.
        numbers: Those of the class EN.
        arabic_numbers: Those of the class AN.
        nonspacing: Those of the class NSM.
        neutral: Those of ES, CS, ET and ON.
    """

    starters: Ranges
    marks: tuple[Ranges, ...]
    viramas: Ranges
    first: Ranges
    composing: tuple[tuple[Ranges, Ranges], ...]
    right_to_left: Ranges
    left_to_right: Ranges
    numbers: Ranges
    arabic_numbers: Ranges
    nonspacing: Ranges
    neutral: Ranges


def _ranges(characters: Iterable[str]) -> Ranges:
    """The set of characters that come in ascending order."""
    found: list[tuple[int, int]] = []
    low = last = -2
    for code in map(ord, characters):
        if code != last + 1:
            if low >= 0:
                found.append((low, last))
            low = code
        last = code
    return (*found, (low, last)) if low >= 0 else ()


def _within(ranges: Ranges) -> Iterator[str]:
    """The characters of a set."""
    return map(chr, chain.from_iterable(range(low, high + 1) for low, high in ranges))


def _letters_and_digits() -> list[str]:
    """LetterDigits: category A of RFC 5892, section 2.1."""
    wanted = {"Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"}
    return [c for c in map(chr, range(_LAST_PLANE)) if unicodedata.category(c) in wanted]


def _stable(characters: list[str]) -> list[str]:
    """Those that case folding and NFKC leave as they are; the others are Unstable (RFC 5892, section 2.2)."""
    # all at once, each on a line of its own, for speed
    text = "\n".join(characters)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return [c for c, other in zip(characters, folded.split("\n"), strict=True) if c == other]


def _compositions() -> dict[str, list[str]]:
    """For each second character of a canonical composition, the first characters that it composes with."""
    found = defaultdict(list)
    # none between but those of Hangul, whose parts are not valid anyway, and none after
    for c in map(chr, chain(range(0x3400), range(0xF900, 0x12000), range(0x16000, 0x20000))):
        parts = unicodedata.decomposition(c).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (chr(int(part, 16)) for part in parts)
            if unicodedata.normalize("NFC", first + second) == c:
                found[second].append(first)
    return found


def _grouped(characters: Iterable[str], key: Callable[[str], Any]) -> dict[Any, list[str]]:
    """Characters by their key."""
    groups = defaultdict(list)
    for c in characters:
        groups[key(c)].append(c)
    return groups


@cache
def classes() -> Classes:
    """The sets, for the Unicode version of the running Python."""
    disallowed = set(_within(_DISALLOWED))
    letters = [c for c in _stable(_letters_and_digits()) if c not in disallowed]
    pvalid = sorted({*letters, *_EXCEPTIONS, "-"})
    compositions = _compositions()
    by_class = {
        combining: members
        for combining, group in sorted(_grouped(pvalid, unicodedata.combining).items())
        if combining == 0 or combining >= _NUKTA
        if (members := [c for c in group if combining <= _NUKTA or c not in compositions])
    }
    kept = sorted(chain.from_iterable(by_class.values()))
    present = set(kept)
    composing = []
    for second in sorted(present & compositions.keys()):
        firsts = _ranges(sorted(present.intersection(compositions[second])))
        if firsts:
            composing.append((firsts, _ranges(second)))
    direction = {name: _ranges(group) for name, group in _grouped(kept, unicodedata.bidirectional).items()}

    def of(*names: str) -> Ranges:
        return union(*(direction.get(name, ()) for name in names))

    marks = _ranges(c for c in kept if unicodedata.category(c).startswith("M"))
    return Classes(
        starters=_ranges(by_class[0]),
        marks=tuple(_ranges(group) for combining, group in by_class.items() if combining),
        viramas=_ranges(by_class[9]),
        first=subtract(_ranges(kept), union(marks, ((0x2D, 0x2D),))),
        composing=tuple(composing),
        right_to_left=of("R", "AL"),
        left_to_right=of("L"),
        numbers=of("EN"),
        arabic_numbers=of("AN"),
        nonspacing=of("NSM"),
        neutral=of("ES", "CS", "ET", "ON"),
    )
