"""``.lark`` files that keep a parser, or the making of one, busy: each with what it is aimed at as its name."""

from __future__ import annotations

from string import ascii_lowercase

__all__ = ["BEGINNINGS", "LARK_FILES", "OPTIONS"]


def _rules(count: int, body: str) -> str:
    """Rules ``r0``, ``r1``, ...; in the body ``@`` is the rule's number, ``#`` the next one's, from 0 again at last."""
    return "\n".join(f"r{i}: " + body.replace("@", str(i)).replace("#", str((i + 1) % count)) for i in range(count))


LARK_FILES: dict[str, str] = {
    # ---------------------------------------------------------------- counts
    "counts of rules in counts": 'start: a~1..1000\na: b~1..1000\nb: c~0..1000\nc: "x" | ","',
    "counts of rules in counts, all nullable": 'start: a~0..900\na: b~0..900\nb: c~0..900\nc: "x"?',
    "counts of rules, three levels apart": 'start: (a b~2..50 "," )~1..80\na: (b "-"?)~0..60\nb: "x"~1..40 | "y"',
    "a count of thousands": 'start: a~1..5000\na: "x" b?\nb: "," a',
    "a count of millions": 'start: a~1000000\na: "x" | "yy"',
    "counts of lists": 'start: (list ";")~3..300\nlist: "[" (list ("," list)~0..200)? "]"',
    # ---------------------------------------------------------------- wide and long
    "20,000 rules in one alternative": "start: "
    + " | ".join(f"r{i}" for i in range(20_000))
    + "\n"
    + _rules(20_000, '"x@"'),
    "20,000 rules in a chain": "start: r0\n" + _rules(20_000, '"x" r#'),
    "5,000 terminals": "start: ("
    + " | ".join(f"T{i}" for i in range(5_000))
    + ")+\n"
    + "\n".join(f'T{i}: "t{i};"' for i in range(5_000)),
    "a rule of 10,000 alternatives": "start: a+\na: " + " | ".join(f'"k{i}" a' for i in range(10_000)) + ' | "."',
    "a rule of 20,000 symbols": "start: " + "a " * 20_000 + '\na: "x" | "y"',
    "every rule optional": "start: " + " ".join(f"r{i}?" for i in range(400)) + "\n" + _rules(400, '"a" | "b@"'),
    "a nest of parentheses": "start: " + "(" * 90 + '"a"' + ")*" * 90,
    "a nest of parentheses too deep": "start: " + "(" * 5_000 + '"a"' + ")" * 5_000,
    "terminals twice the size each": "start: T0\n"
    + "\n".join(f"T{i}: T{i + 1} T{i + 1}" for i in range(40))
    + '\nT40: "a"',
    "terminals within terminals": "start: T0\n"
    + "\n".join(f'T{i}: "a" T{i + 1}? "b"' for i in range(300))
    + '\nT300: "c"',
    "a terminal of 20,000 words": "start: W+\nW: " + " | ".join(f'"w{i} "' for i in range(20_000)),
    "templates within templates": "start: " + "t{" * 60 + "a" + "}" * 60 + '\nt{x}: x | "(" x ")"\na: "a"',
    "templates that grow": "start: t{a, b}\nt{x, y}: u{x, y} u{y, x}\n"
    'u{x, y}: (x y)~1..50 | y\na: "a"\nb: "b" t{b, a}?',
    "blank lines": 'start: "a"\n' + "\n" * 200_000 + 'x: "b"',
    "a comment without end": 'start: "a" // ' + "x" * 500_000,
    "backslashes": 'start: "' + "\\\\" * 2_000 + '"',
    "a quote that never ends": 'start: "' + "a" * 200_000,
    # ---------------------------------------------------------------- ambiguity
    "all splits": 'start: s\ns: s s | "a" |',
    "all splits of three": 'start: s\ns: s s s | s s | "a" | "b"',
    "all splits, right": 'start: s\ns: "a" s s | "a" s | "a"',
    "all splits of terminals": "start: (A | B | C)+\nA: /a+/\nB: /[ab]+/\nC: /[a-c]*c/",
    "expressions without precedence": "start: e\ne: "
    + " | ".join(f'e "{o}" e' for o in "+-*/%^&|<>=")
    + ' | "(" e ")" | /[0-9]+/',
    "cycles of rules": "start: r0\n" + _rules(200, 'r# | "x@"'),
    "cycles of nullable rules": "start: r0\n" + _rules(200, 'r# r# | "x"?'),
    "each rule begins with all": "start: r0\n"
    + "\n".join(
        f"r{i}: " + " | ".join(f'r{j} "{ascii_lowercase[(i + j) % 26]}"' for j in range(25)) + f' | "{i}"'
        for i in range(25)
    ),
    "palindromes": "start: p\np: " + " | ".join(f'"{a}" p "{a}"' for a in ascii_lowercase) + " | /[a-z]?/",
    "copies of a count": 'start: x | y\nx: a c\na: "a" a "b" | \nc: "c" c |\ny: d b\nd: "a" d |\nb: "b" b "c" |',
    "dangling else": 'start: s\ns: "if " s | "if " s "else " s | "x "',
    "returns of all depths": 'start: "(" start ")" | "(" start "]" | "(" start | "x" | ',
    # ---------------------------------------------------------------- recursion
    "left recursion": 'start: e\ne: e "+" t | t\nt: t "*" f | f\nf: "(" e ")" | /[a-z]+/',
    "left recursion, hidden": 'start: a\na: b? c? a "x" | "y"\nb: "b"?\nc: "c" a |',
    "left recursion through 300 rules": "start: r0\n" + _rules(300, 'r# "x@" | "y"'),
    "right recursion through 300 rules": "start: r0\n" + _rules(300, '"x" r# | "y"'),
    "recursion in the middle": 'start: s\ns: "a" s "b" s "c" | "d"',
    "recursion on both sides, nullable": 'start: s\ns: s "(" s ")" s | ',
    "no way to end": 'start: a\na: "x" a | "y" b\nb: "z" a',
    "no way to end but one in thousands": "start: r0\n" + _rules(3_000, '"x" r#') + '\nend: "e"\n',
    "deep calls before any text": "start: r0\n"
    + "\n".join(f"r{i}: r{i + 1}" for i in range(5_000))
    + '\nr5000: "x" r0?',
    # ---------------------------------------------------------------- terminals
    "ignored terminals that overlap": 'start: ("a" | B)+\nB: /b+/\n%ignore /[ \\t]+/\n%ignore /( |\\n)+/\n'
    "%ignore / *#[^\\n]*/\n%ignore /\\/\\*(.|\\n)*?\\*\\//",
    "keywords and names": "start: (KEYWORD | NAME)+\nKEYWORD: "
    + " | ".join(f'"key{i}"' for i in range(1_500))
    + "\nNAME: /[a-z0-9]+/\n%ignore / +/",
    "lookaheads in terminals": "start: (T | U)+\nT: /(?!"
    + "|".join(f"w{i}" for i in range(500))
    + ")[a-z0-9]+;/\nU: /x.{9}y(?!z)[^z];/",
    "distances in terminals": "start: ("
    + " | ".join(f"T{i}" for i in range(20))
    + ")+\n"
    + "\n".join(f"T{i}: /[^;]*{a}[^;]{{{i + 9}}};/" for i, a in enumerate(ascii_lowercase[:20])),
    "a range of two characters": 'start: "ab".."c"',  # lark's assertion fails
    "an error that lark fails to explain": "start: (A | B )+\nA: /a+/(A |  | B |+\nA: /?\nB: /[ab]+/\nC: /[a-c]*c/",
    "ways that are merged again and again": 'start: r0 | T\nr0: "b"~0..5 "a" | r1 r2~2 T+ r2\n'
    'r1: "b"* "ab"* "b"* "b"~2 | r1 T | r0 r0? r1+ | "a"~0..5\nr2: r1~0..5 | r0? r2 "b" r1?\nT: /[a-c]+/\n',
    "sixty templates in each other": "start: " + "t{" * 60 + "a" + "}" * 60 + '\nt{x}: x start | "(" x ")"\na: "a"',
    "lazy terminals": "start: (T U V)+\nT: /.*?a/\nU: /.*?b.{3}/\nV: /(.|\\n)+?c/",
}

_LALR: dict[str, str] = {
    # ---------------------------------------------------------------- tables
    "options in one rule": "start: "
    + " ".join(f"A{i}?" for i in range(11))
    + "\n"
    + "\n".join(f'A{i}: "a{i}"' for i in range(11)),
    "too many options in one rule": "start: "
    + " ".join(f"A{i}?" for i in range(40))
    + "\n"
    + "\n".join(f'A{i}: "a{i}"' for i in range(40)),
    "options within options": "start: " + "(" * 60 + '"x"' + '? "y")' * 60,
    "options that are multiplied out": 'start: ("a"? "b"? "c"? "d"? "e"? "f"?)~2..3 "."',
    "counts in tables": 'start: ("a" "b"~1..9)~1..60 "."',
    "a table of precedences": "start: e0\n"
    + "\n".join(f'e{i}: e{i} "o{i};" e{i + 1} | e{i + 1}' for i in range(60))
    + '\ne60: /[0-9]+/ | "(" e0 ")"',
    "1,000 statements": "start: s+\n?s: "
    + " | ".join(f"s{i}" for i in range(1_000))
    + "\n"
    + "\n".join(f's{i}: "k{i}" NAME "=" NAME ";"' for i in range(1_000))
    + "\nNAME: /[a-z]\\w*/\n%ignore / +/",
    "chains of unit rules": "start: r0\n" + "\n".join(f"r{i}: r{i + 1}" for i in range(400)) + '\nr400: "x" r0?',
    "reductions of all depths": "start: a\n" + 'a: "(" a ")" | "x"',
    "lists right and left": 'start: l | "r" r\nl: l "," X | X\nr: X "," r | X\nX: /x+/',
    "lists of lists with conflicts": "start: l0\n"
    + "".join(f"l{i}: l{i + 1}+ | l{i + 1} l{i + 1} T{i}\n" for i in range(50))
    + 'l50: "a"+\n'
    + "".join(f'T{i}: "t{i};"\n' for i in range(50)),
    "the start in each rule": "start: ("
    + " | ".join(f"x{i}" for i in range(100))
    + ")+\n"
    + "".join(f"x{i}: T{i} start?\n" for i in range(100))
    + "".join(f'T{i}: "t{i % 7};"\n' for i in range(100)),
    "conflicts": 'start: e\ne: e "+" e | e "+" "+" | "(" e ")" | N\nN: /[0-9]+/',
    "a rule of 400 symbols": "start: "
    + " ".join(f"sep{{A{i}, B{i % 7}}}" for i in range(400))
    + "\nsep{x, y}: x (y x)*\n"
    + "\n".join(f'A{i}: "a{i}"' for i in range(400))
    + "\n"
    + "\n".join(f'B{i}: "b{i}"' for i in range(7)),
    "20,000 brackets to be closed": 'start: "(" start ")" | "x"',
    # ---------------------------------------------------------------- lexers
    "words with boundaries": "start: ("
    + " | ".join(f"T{i}" for i in range(80))
    + ")+\n"
    + "\n".join(f"T{i}: /\\bk{i}\\b/" for i in range(80))
    + "\n%ignore / +/",
    "400 ignored expressions": 'start: "a"+\n' + "\n".join(f"%ignore /x{i}+/" for i in range(400)),
    "2,000 terminals by length": "start: ("
    + " | ".join(f"T{i}" for i in range(2_000))
    + ")+\n"
    + "\n".join(f'T{i}: "t{i};"' for i in range(2_000)),
    "300 expressions that overlap": "start: ("
    + " | ".join(f"T{i}" for i in range(300))
    + ")+\n"
    + "\n".join(f"T{i}: /[a-z]+{i}[a-z]*;/" for i in range(300)),
    "1,500 key words and names": "start: (NAME | " + " | ".join(f'"key{i}"' for i in range(1_500)) + ")+\n"
    "NAME: /[a-z0-9]+/\n%ignore / +/",
    "guards of many expressions": "start: ("
    + " | ".join(f"T{i}" for i in range(26))
    + ")+\n"
    + "\n".join(f"T{i}.{i}: /{a}([a-z]*[0-9])?/" for i, a in enumerate(ascii_lowercase))
    + "\n",
    "priorities of prefixes": "start: ("
    + " | ".join(f"T{i}" for i in range(60))
    + ")+\n"
    + "\n".join(f"T{i}.{60 - i}: /a{{{i + 1}}}b?/" for i in range(60)),
    "lookaheads that wait": 'start: (A | B | C)+\nA: /a(?=[^;]*x)/\nB: /b(?=[^;]*y)/\nC: /[^;]/ | ";"',
    "lookaheads that wait long": "start: (A | B)+\nA.2: /a(?=.{40}b)/\nB: /[ab]/",
    "negative lookaheads that wait": "start: (A | B | E)+\nA: /a(?!.*x)/\nB: /b(?![^y]*y.{3}z)/\nE: /[a-z;]/",
    "lookaheads in loops": "start: (A | B)+\nA: /(a(?=[ab]*b)|b(?=[ab]*a))+/\nB: /[ab]+?c/",
    "lazy strings": 'start: (S | T | C | /[a-z]+/)+\nS: /".*?(?<!\\\\)(\\\\\\\\)*?"/\n'
    "T: /\\'\\'\\'.*?\\'\\'\\'/s\nC: /\\/\\*(.|\\n)*?\\*\\//\n%ignore /[ \\n]+/\n%ignore C",
    "lexemes that seldom combine": "start: (A B C)+\nA: /a+/\nB: /[ab]+c?/\nC: /[a-c]+d/",
    "lexemes that never combine": "start: A B\nA: /[a-z]+/\nB: /[a-z]+/",
    "lexemes that combine at last": "start: " + "A " * 40 + "\nA: /a|b+|ca*/",
    "ignored text everywhere": "start: (A | B)+\nA: /a[ \\n]*/\nB: /b/\n%ignore /[ \\n]+/\n%ignore /#.*/\n"
    "%ignore /\\/\\*(.|\\n)*?\\*\\//\n%ignore /\\\\\\n/",
}
"""Those for lark's LALR parser, with its contextual lexer."""

_BASIC: dict[str, str] = {
    "names and 1,500 key words by the basic lexer": _LALR["1,500 key words and names"],
    "guards of many by the basic lexer": _LALR["guards of many expressions"],
    "all splits by the basic lexer": 'start: s\ns: s s | A | B\nA: "a"\nB: /b+/\n%ignore " "',
    "lookaheads that wait by the basic lexer": _LALR["lookaheads that wait"],
}
"""Those for Earley's parser with the basic lexer."""

_LINES = "\n_NEWLINE: /(\\r?\\n[\\t ]*)+/\n%declare _INDENT _DEDENT\n"
_INDENTED: dict[str, str] = {
    "blocks that cannot be closed": 'start: x "c"\nx: "a" "b" _NEWLINE _INDENT x _DEDENT x "c" |' + _LINES,
    "blocks that only open": 'start: x "b"\nx: "a" _NEWLINE _INDENT x | "a"' + _LINES,
    "all splits of lines": 'start: s\ns: s s | "a" _NEWLINE | "b" _NEWLINE _INDENT s _DEDENT' + _LINES,
    "all splits, and reductions in a circle": 'start: s\ns: s s | t\nt: s | t | "a" | "(" s ")"\n' + _LINES,
}
"""Those for Earley's parser with the basic lexer and the tokens of Python's indentation."""

LARK_FILES |= _LALR | _BASIC | _INDENTED

OPTIONS: dict[str, dict[str, str]] = {
    **{key: {"parser": "lalr"} for key in _LALR},
    **{key: {"parser": "earley", "lexer": "basic"} for key in _BASIC},
    **{key: {"parser": "earley", "lexer": "basic", "postlex": "PythonIndenter"} for key in _INDENTED},
}
"""The options of lark, where they are not its own; of ``postlex``, the name of a class of ``lark.indenter``."""

BEGINNINGS: dict[str, str] = {
    "counts of rules in counts": "," * 44,
    "counts of rules in counts, all nullable": "x" * 60,
    "counts of lists": "[" * 200,
    "all splits": "a" * 300,
    "all splits of three": "ab" * 150,
    "all splits, right": "a" * 300,
    "all splits of terminals": "ab" * 300,
    "expressions without precedence": "1+2*3-" * 60 + "(" * 60,
    "palindromes": "abc" * 60,
    "returns of all depths": "(" * 500,
    "left recursion": "a+b*" * 200 + "(" * 100,
    "left recursion, hidden": "bcbc",
    "recursion in the middle": "a" * 300,
    "recursion on both sides, nullable": "(" * 300 + ")" * 200,
    "dangling else": "if " * 200,
    "20,000 rules in a chain": "x" * 2_000,
    "a table of precedences": "(1o0;2o59;" * 30,
    "reductions of all depths": "(" * 500,
    "20,000 brackets to be closed": "(" * 20_000,
    "lists right and left": "r" + "x," * 300,
    "lookaheads that wait": "abc" * 40,
    "lookaheads in loops": "ab" * 100,
    "lexemes that combine at last": "abca",
    "all splits of lines": "".join(" " * depth + "b\n" for depth in range(60)) + " " * 60 + "a\n",
    "all splits, and reductions in a circle": "a(" * 100 + "a" * 100,
}
