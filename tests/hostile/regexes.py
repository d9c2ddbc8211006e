"""Regular expressions whose automata are large, or costly to make: each with what it is aimed at as its name."""

from __future__ import annotations

from string import ascii_lowercase

__all__ = ["BEGINNINGS", "REGEXES"]


def _each(template: str, letters: str, first: int = 0) -> str:
    """The template for each letter, with a number that grows: ``@`` is the letter, ``#`` the number."""
    return "".join(template.replace("@", a).replace("#", str(first + i)) for i, a in enumerate(letters))


REGEXES: dict[str, str] = {
    # ---------------------------------------------------------------- lookarounds: intersections
    "lookaheads, twenty distances": _each("(?=.*@.{#})", ascii_lowercase[:20], 5) + ".*",
    "lookaheads, nine counts": _each("(?=[^@]*@.{1,40}q)", "abcdefghi") + ".*",
    "lookaheads, one count nine times": "(?=[^a]*a.{1,40}q)" * 9 + ".*",
    "lookaheads, twenty letters": _each("(?=.*@)", ascii_lowercase[:20]) + "[a-z]{20,64}",
    "lookaheads, rules of passwords": r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?=.*[^\w])(?!.*(.)..?x)(?!.*\s).{12,128}",
    "lookaheads that forbid, distances": _each("(?!.*@.{#}@)", "abcdefghijkl", 9) + ".*",
    "lookaheads that forbid, words": "(?!.*(?:" + "|".join(f"w{i}x" for i in range(2_000)) + ")).*",
    "lookaheads within lookaheads": "(?=" * 60 + "a" + ")" * 60 + "a*",
    "lookaheads that forbid within each other": "(?!" * 41 + "a" + ")" * 41 + "[ab]*",
    "lookaheads in a loop": "(?:(?=.{3}a)[ab])*[ab]{3}",
    "lookaheads in a loop, each to the end": "(?:a[abc]*(?![abc]*$))*",
    "lookaheads in a counted loop": "(?:(?=a.{9}b|b.{9}a)[ab]){40}[ab]{10}",
    "lookbehinds in a loop": "(?:[ab](?<=a.{5}b|b.{5}a|^.{0,6}))*",
    "lookbehinds, twenty distances": "[a-z]*" + _each("(?<=@.{#})", ascii_lowercase[:20], 20),
    "lookbehinds that forbid": r"(?:\w+(?<!ing)(?<!ed)(?<!ly) )*\w+",
    "word boundaries in a loop": r"(?:\b\w{1,9}\b\W{1,3})*",
    "both directions": r"(?=.*x.{8}y)[xyz]*(?<=z.{6}x.)",
    "both directions, counts in a loop": r"(?:(?:(?=[a-c]*/)[a-c]*){6}|(?:(?:(?<![a-c])b)*){1,29})+",
    # ---------------------------------------------------------------- subsets: exponential when determinised
    "the nth from the end": "(?:a|b)*a(?:a|b){30}",
    "the nth from the end, any character": ".*a.{300}",
    "the nth from the end, twice": ".*a.{30}b.{30}",
    "the nth from the end, of unions": "(?:"
    + "|".join(f".*{a}.{{{i + 9}}}" for i, a in enumerate(ascii_lowercase))
    + ")",
    "counts of unions that overlap": "(?:[a-m]|[g-z]|[a-z]{2}){5,500}",
    "counts next to each other": "a{0,200}" * 40,
    "counts of classes next to each other": "".join(f"[{a}-z]{{0,99}}" for a in ascii_lowercase),
    "counts in counts": "(?:(?:(?:a{1,30}b?){1,30}c?){1,30}d?){1,30}",
    "counts in counts, all nullable": "(?:(?:(?:a{0,50}){0,50}){0,50}){0,50}",
    "a count of millions": "(?:ab?){1000000,2000000}",
    "a count of billions": "a{4294967294}",
    "a count that is refused": "a{4294967296}",
    "a count of a long word": "(?:" + "abcdefghij" * 100 + "){100}",
    "a count of optional words": "(?:(?:one|two|three)? ?){50,100}",
    "many optional letters": "".join(f"{a}?" for a in ascii_lowercase * 40),
    "many optional letters, then all": "a?" * 500 + "a" * 500,
    # ---------------------------------------------------------------- catastrophes of backtracking
    "stars in stars": "(((((((a*)*)*)*)*)*)*)*b",
    "pluses in pluses": "(?:(?:(?:a+)+)+)+$",
    "alternatives that overlap": "(?:a|a|aa|aaa|ab|ba)*c",
    "alternatives that overlap, in a count": "(?:a|aa|aaa){1,300}b",
    "mail addresses": r"([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+"
    r"[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))",
    "fields between commas": "(?:.*?,){60}P",
    "quoted fields": r'(?:"(?:[^"\\]|\\.)*"|[^",]*)(?:,(?:"(?:[^"\\]|\\.)*"|[^",]*)){0,50}',
    # ---------------------------------------------------------------- sizes
    "40,000 words": "|".join(f"word{i * 7919 % 99_991}" for i in range(40_000)),
    "words that end alike": "|".join(f"{i:05d}" + "z" * 40 for i in range(5_000)),
    "a nest of groups": "(" * 800 + "a" + ")" * 800,
    "a nest of groups too deep": "(" * 50_000 + "a" + ")" * 50_000,
    "a nest of unions": "(?:a|" * 400 + "b" + ")" * 400,
    "a nest of counts": "(?:" * 300 + "a" + "){0,2}" * 300,
    "a long literal": "x" * 300_000,
    "a long sequence of classes": "[ab][bc][cd]" * 10_000,
    "classes of many ranges": "[" + "".join(chr(i) for i in range(0x4E00, 0x9FFF, 2)) + "]{3,40}",
    "all categories": r"[\w\d\s]{2,9}[^\w]{1,4}(?:\w\W){0,9}",
    "case without difference": "(?i:" + "straße|ſtrasse|ΣΊΣΥΦΟΣ|ǆ|K" * 50 + ")*",
    "negated classes in a row": "".join(f"[^{a}]{{1,20}}" for a in ascii_lowercase),
    "beyond the plane": "[\U00010000-\U0010ffff]{5,50}|[^\\x00-\U0010fffe]{5}",
    "a union of thousands of loops": "(?:" + "|".join(f"x{i}y*z" for i in range(3_000)) + ")*",
    "a union of searches": "|".join(f".*{a}{b}.*" for a in ascii_lowercase for b in ascii_lowercase),
    "the empty set, well hidden": "(?=.*a)(?!.*a)[ab]{0,40}",
    "the empty set, by lengths": "(?=(?:.{7})*$)(?=(?:.{11})*$)(?=(?:.{13})*$).{1,1000}",
    "one text, by lengths": "(?=(?:.{7})*$)(?=(?:.{11})*$)(?=(?:.{13})*$)(?:ab|b)+",
}

BEGINNINGS: dict[str, str] = {
    "the nth from the end": "ab" * 400,
    "the nth from the end, any character": "bacab" * 300,
    "lookaheads in a loop": "a" * 40,
    "counts in counts": "ab" * 29 + "c" + "ab" * 20,
    "counts in counts, all nullable": "a" * 3_000,
    "many optional letters, then all": "a" * 700,
    "stars in stars": "a" * 5_000,
    "alternatives that overlap": "ab" * 2_000,
    "fields between commas": ",x" * 40,
    "a long literal": "x" * 100_000,
}
