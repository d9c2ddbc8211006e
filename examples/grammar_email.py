r"""A grammar by hand: e-mail addresses, which Python's `email` package reads.

    python examples/grammar_email.py

What the usual tutorials get wrong: their pattern `[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}` takes addresses that
there are none of (dots in a row or at an end, labels that begin with a hyphen), and refuses some that there are
(an apostrophe before the @, a top domain such as `xn--p1ai`). The table shows both. The grammar has the part of
RFC 5322 that is in use, hosts as RFC 1123 has them, and the lengths of RFC 5321, which are an intersection (`&`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from email.errors import MessageError
from email.headerregistry import Address

from common import command, judged, load, table

import grammarspec as gs

RULES = r"""
start: WORD ("." WORD)* "@" (LABEL ".")+ TOP

WORD: /[A-Za-z0-9!#$%&'*+\/=?^_`{|}~-]+/
LABEL: /[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?/
TOP: /[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])/
"""
LENGTHS = r"(?=.{3,254}$)[^@]{1,64}@.{1,253}"
PATTERN = r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}"

ACCEPTED = ["ada@example.org", "first.last+tag@mail.example.co.uk", "o'brien@example.ie", "i@xn--e1afmkfd.xn--p1ai"]
REJECTED = [
    "",
    "ada",
    "ada@",
    "@example.org",
    "a@b@example.org",
    "a..b@example.org",
    ".a@example.org",
    "a.@example.org",
    "a@-b.org",
    "a@b-.org",
    "a@b..org",
    "a b@example.org",
    "a@exa_mple.org",
    f"{'a' * 65}@example.org",
    f"a@{'b' * 64}.org",
    f"a@{'.'.join(['b' * 60] * 5)}.example",
]
LEFT_OUT = ['"a b"@example.org', "a@[192.0.2.1]", "root@localhost"]
PROMPTS = [
    "Write to Ada at ada@example.org. What is Ada's address?",
    "Orders go to the shop: info@books.example. What is the address of the shop?",
]


def is_address(text: str) -> bool:
    """Whether the `email` package reads an address, and its host is one that could be."""
    try:
        read = Address(addr_spec=text)
    except (MessageError, ValueError, IndexError):
        return False
    local, host = read.username, read.domain
    if read.addr_spec != text or not text.isascii() or len(text) > 254 or len(local) > 64:
        return False
    return host.startswith("[") or all(
        0 < len(label) < 64 and label.replace("-", "").isalnum() and label[0] != "-" and label[-1] != "-"
        for label in host.split(".")
    )


def grammar() -> gs.Grammar[str]:
    """Addresses."""
    return gs.lark(RULES, lexer="dynamic_complete") & gs.regex(LENGTHS)


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge texts by the grammar and by the `email` package: some by hand, some drawn at random, some by the model."""
    parser = command(__doc__)
    parser.add_argument("--samples", type=int, default=5, help="texts drawn from the grammar (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=32)
    options = parser.parse_args(arguments)
    addresses, model = grammar(), load(options)
    groups = {
        "accepted": ACCEPTED,
        "rejected": REJECTED,
        "left out": LEFT_OUT,
        "drawn": [addresses.sample(seed, max_bytes=40) for seed in range(options.samples)],
        "by the model": [
            model.run(prompt, addresses, max_tokens=options.max_tokens, on_limit="close").text for prompt in PROMPTS
        ],
    }
    print(judged(addresses, is_address, groups), end="\n\n")
    wrong = [[text, "takes it" if found else "refuses it"] for text, found in pattern_errors()]
    print(table(["address", "the tutorials' pattern"], wrong))


def pattern_errors() -> list[tuple[str, bool]]:
    """Texts of which the tutorials' pattern says something else than the `email` package, and what it says."""
    verdicts = [(text, re.fullmatch(PATTERN, text) is not None) for text in [*ACCEPTED, *REJECTED]]
    return [(text, found) for text, found in verdicts if found != is_address(text)]


if __name__ == "__main__":
    main()
