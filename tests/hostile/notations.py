"""Texts in GBNF and in llguidance's variant of lark's syntax that keep a reader of them, or the engine, busy."""

from __future__ import annotations

from string import ascii_lowercase

__all__ = ["BEGINNINGS", "GBNF", "LLGUIDANCE"]

GBNF: dict[str, str] = {
    "a nest of parentheses": "root ::= " + "(" * 200 + '"a"' + ")*" * 200,
    "a nest of 50,000 parentheses": "root ::= " + "(" * 50_000 + '"a"' + ")" * 50_000,
    "100,000 stars": 'root ::= "a"' + "*" * 100_000,
    "100,000 question marks": 'root ::= ("a" | "b")' + "?" * 100_000,
    "counts of counts": "root ::= (((([a-z]{1,90}){1,90} [0-9]){1,90}){1,90} [.]){1,90}",
    "a count of millions": 'root ::= ("a" | "bc"){1000000}',
    "a count without end": 'root ::= "a"{' + "9" * 50_000 + "}",
    "20,000 rules in a chain": "root ::= r0\n"
    + "\n".join(f'r{i} ::= "x" r{i + 1}' for i in range(20_000))
    + '\nr20000 ::= "."',
    "rules twice the size each": "root ::= r0\n"
    + "\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(60))
    + '\nr60 ::= "a"',
    "rules twice the size each, recursive": "root ::= r0\n"
    + "\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(60))
    + '\nr60 ::= "a" | "(" root ")"',
    "20,000 alternatives": "root ::= (" + " | ".join(f'"k{i};"' for i in range(20_000)) + ")+",
    "cycles of rules": "root ::= r0\n" + "\n".join(f'r{i} ::= r{(i + 1) % 200} | "x{i}"' for i in range(200)),
    "left recursion, hidden": 'root ::= a\na ::= b? c? a "x" | "y"\nb ::= "b"?\nc ::= "c" a | ""',
    "all splits": 'root ::= s\ns ::= s s | "a" | ""',
    "a class of 20,000 characters": "root ::= [" + "".join(chr(0x4E00 + i) for i in range(20_000)) + "]+",
    "a class that never ends": "root ::= [" + "a" * 200_000,
    "a comment of megabytes": "# " + "x" * 2_000_000 + '\nroot ::= "a"',
    "a literal that never ends": 'root ::= "' + "\\\\" * 100_000,
    "blank lines": "root ::= (\n" + "\n" * 200_000 + '"a")',
}

LLGUIDANCE: dict[str, str] = {
    "a nest of parentheses": "start: " + "(" * 200 + '"a"' + ")*" * 200,
    "a nest of 50,000 parentheses": "start: " + "(" * 50_000 + '"a"' + ")" * 50_000,
    "100,000 stars": 'start: "a"' + "*" * 100_000,
    "100,000 tildes": "start: A\nA: " + "~" * 100_000 + '"a"',
    "terminals twice the size each": "start: T0\n"
    + "\n".join(f"T{i}: T{i + 1} T{i + 1}" for i in range(60))
    + '\nT60: "a"',
    "terminals of complements": "start: T0\n"
    + "\n".join(f"T{i}: ~T{i + 1} & /[a-z]*{a}[a-z]*/" for i, a in enumerate(ascii_lowercase))
    + '\nT26: "a"',
    "intersections of distances": "start: T\nT: "
    + " & ".join(f"/[a-z]*{a}[a-z]{{{i + 3}}}/" for i, a in enumerate(ascii_lowercase[:12])),
    "20,000 rules in a chain": "start: r0\n"
    + "\n".join(f'r{i}: "x" r{i + 1}' for i in range(20_000))
    + '\nr20000: "."',
    "lazy lexemes": "start: (a | b | c)+\n" + "\n".join(f"{a}[lazy]: /[a-z;]*{a};/" for a in "abc"),
    "suffixes": "start: (a | b)+\n" + 'a[suffix=";"]: /[a-z]*/\nb[suffix="--"]: /(?s:.*)/',
    "a lexeme beside 200 others": "start: (l | "
    + " | ".join(f"T{i}" for i in range(200))
    + ")+\nl[lazy]: /[a-z]*;/\n"
    + "\n".join(f"T{i}: /[a-z]*{i},/" for i in range(200)),
    "schemas in schemas": "start: "
    + " ".join(['%json {"type": "object", "properties": {"a": {"type": "array"}}}'] * 200),
    "a schema that never ends": 'start: %json {"enum": [' + "[" * 100_000,
    "an expression that never ends": "start: /" + "(" * 100_000,
    "a quote that never ends": 'start: "' + "a" * 200_000,
}

BEGINNINGS: dict[str, str] = {
    "all splits": "a" * 300,
    "left recursion, hidden": "bcbc",
    "rules twice the size each, recursive": "(" * 200,
}
