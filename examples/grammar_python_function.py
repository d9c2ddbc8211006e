"""A grammar by hand: definitions of Python functions, which `ast.parse` reads.

    python examples/grammar_python_function.py

The grammar has parameters with types and defaults, a docstring, and statements up to three levels deep; by lark's rules
with parameters one rule is enough for all depths of indentation. A name is a pattern and no key word (`&` and `~` of
grammars). It is a part of Python: what it leaves out is refused though Python reads it. (`gs.load("python")` is a
grammar of nearly all of Python.)

The usual tutorials leave the exercise open. A first attempt, `"def" NAME "(" args ")" ":" body` with `NAME: /[a-z_]+/`,
takes key words for names, and lets parameters without defaults follow those with. What no grammar says is that two
parameters have different names: `ast.parse` lets that pass as well, Python's compiler does not.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Sequence

from common import command, judged, load

import grammarspec as gs

RULES = r"""
start: "def " NAME "(" parameters? ")" (" -> " type)? ":\n" docstring? body{ONE, body{TWO, body{THREE, deepest}}}

parameters: plain (", " plain)* (", " optional)* (", " rest)?
          | optional (", " optional)* (", " rest)?
          | rest
plain: NAME (": " type)?
optional: NAME "=" value | NAME ": " type " = " value
rest: "*" NAME (", **" NAME)? | "**" NAME
type: NAME ("[" type (", " type)* "]")? (" | " type)?

docstring: ONE "\"\"\"" PROSE "\"\"\"\n"

// The statements of a block, all of which stand behind the same blanks.
body{indent, inner}: (indent (simple "\n" | compound{indent, inner}))+
compound{indent, inner}: "if " value ":\n" inner (indent "elif " value ":\n" inner)* (indent "else:\n" inner)?
                       | "for " NAME " in " value ":\n" inner
                       | "while " value ":\n" inner
deepest: "            " "    " simple "\n"
simple: "return" (" " value)? | "pass" | "raise " call | call
      | NAME (": " type)? " = " value | NAME " " AUGMENTED " " value

value: "not "? term (" " OPERATOR " " term)*
term: NUMBER | STRING | NAME | call | "-" term | "(" value ")" | "[" list? "]" | NAME ("." NAME)+ | NAME "[" value "]"
call: NAME ("." NAME)* "(" list? ")"
list: value (", " value)*

ONE: "    "
TWO: "        "
THREE: "            "
AUGMENTED: "+=" | "-=" | "*=" | "/="
OPERATOR: "+" | "-" | "*" | "/" | "//" | "%" | "**" | "==" | "!=" | "<=" | ">=" | "<" | ">" | "and" | "or" | "in"
NUMBER: /(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?/
STRING: /"[ !#-\[\]-~]{0,60}"/ | /'[ -&(-\[\]-~]{0,60}'/
PROSE: /[A-Z][ !#-\[\]-~]{0,90}/
%declare NAME
"""

ACCEPTED = [
    "def add(a, b):\n    return a + b\n",
    'def greet(name: str = "you", *words) -> str:\n    """Say hello."""\n    return "hello " + name\n',
    "def f(x):\n    for i in range(x):\n        if i % 2 == 0:\n            print(i)\n    return x\n",
    "def iffy(iff, **options):\n    pass\n",
]
REJECTED = [
    "def add(a, b):\nreturn a + b\n",
    "def add(a=1, b):\n    return a\n",
    "def if(a):\n    pass\n",
    "def f(x):\n    if x:\n    return 1\n",
    "def f(x)\n    return x\n",
    "def f(x):\n    return 01\n",
    "x = 1\n",
]
LEFT_OUT = ["def f(x): return x\n", "def f(x):\n  return x\n", "async def f():\n    pass\n"]
PROMPTS = [
    "Write a Python function that adds two numbers.",
    "Write a Python function that counts the vowels of a text.",
]


def is_function(text: str) -> bool:
    """Whether Python reads one definition of a function in a text, and nothing else."""
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError):
        return False
    return len(statements) == 1 and isinstance(statements[0], ast.FunctionDef | ast.AsyncFunctionDef)


def grammar() -> gs.Grammar[str]:
    """Definitions of functions."""
    name = gs.regex("[A-Za-z_][A-Za-z0-9_]{0,30}") & ~gs.choice(keyword.kwlist)
    return gs.lark(RULES, lexer="dynamic_complete", terminals={"NAME": name})


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge texts by the grammar and by Python: some by hand, some drawn at random, some by the model."""
    parser = command(__doc__)
    parser.add_argument("--samples", type=int, default=5, help="texts drawn from the grammar (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=64)
    options = parser.parse_args(arguments)
    functions, model = grammar(), load(options)
    written = [model.run(prompt, functions, max_tokens=options.max_tokens, on_limit="close").text for prompt in PROMPTS]
    groups = {
        "accepted": ACCEPTED,
        "rejected": REJECTED,
        "left out": LEFT_OUT,
        "drawn": [functions.sample(seed) for seed in range(options.samples)],
        "by the model": written,
    }
    print(judged(functions, is_function, groups), end="\n\n")
    print("\n".join(written))


if __name__ == "__main__":
    main()
