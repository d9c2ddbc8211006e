r"""A grammar by hand: telephone numbers, which a few lines of Python count and compare.

    python examples/grammar_phone.py

Numbers of North America are written `(212) 555-0123`, `212-555-0123` or `+1 212 555 0123`: area code and exchange begin
with 2 to 9, neither ends in 11, and the second digit of an area code is no 9. All other numbers are written with a plus
sign and 8 to 15 digits (E.164), between which single blanks or hyphens may stand.

The usual tutorials leave the exercise open. A first attempt, `\d{3}-\d{3}-\d{4}`, takes 000-000-0000 and 911-911-9111,
which nobody can have, digits of other scripts (`\d` is any of Unicode's), and no number from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from common import command, judged, load, table

import grammarspec as gs

RULES = r"""
start: "(" AREA ") " EXCHANGE "-" LINE
     | AREA "-" EXCHANGE "-" LINE
     | "+1 " AREA " " EXCHANGE " " LINE
     | "+" ELSEWHERE

AREA: /(?![0-9]11)[2-9][0-8][0-9]/
EXCHANGE: /(?![0-9]11)[2-9][0-9]{2}/
LINE: /[0-9]{4}/
ELSEWHERE: /[2-9]([ -]?[0-9]){7,14}/
"""
PATTERN = r"\d{3}-\d{3}-\d{4}"

ACCEPTED = ["(212) 555-0123", "212-555-0123", "+1 212 555 0123", "+49 30 901820", "+442079460958", "+33 1-70-18-99-00"]
REJECTED = [
    "",
    "000-000-0000",
    "911-911-9111",
    "211-555-0123",
    "295-555-0123",
    "212-511-0123",
    "212 555 0123",
    "(212 555-0123",
    "+1 112 555 0123",
    "+0 30 901820",
    "+49 30  901820",
    "+49 30 901820-",
    "+49 30 90",
    "+49 30 901820 901820 9",
    "٢١٢-٥٥٥-٠١٢٣",
]
PROMPTS = ["Give me an example of a phone number in New York.", "Give me a phone number in Berlin, with +49."]


def is_number(text: str) -> bool:
    """Whether a text is a telephone number, by taking it to pieces."""
    for opening, middle, last in (("(", ") ", "-"), ("", "-", "-"), ("+1 ", " ", " ")):
        area, found, behind = text.removeprefix(opening).partition(middle)
        exchange, also, line = behind.partition(last)
        if text.startswith(opening) and found and also and _is_american(area, exchange, line):
            return True
    groups = text[1:].replace("-", " ").split(" ")
    digits = "".join(groups)
    return text[:1] == "+" and all(map(_is_digits, groups)) and 8 <= len(digits) <= 15 and digits[0] not in "01"


def _is_american(area: str, exchange: str, line: str) -> bool:
    """Whether three groups of digits are a number of North America."""
    if not (_is_digits(area + exchange + line) and (len(area), len(exchange), len(line)) == (3, 3, 4)):
        return False
    return min(area[0], exchange[0]) >= "2" and area[1] != "9" and "11" not in (area[1:], exchange[1:])


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def grammar() -> gs.Grammar[str]:
    """Telephone numbers."""
    return gs.lark(RULES, lexer="dynamic_complete")


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge texts by the grammar and by Python: some by hand, some drawn at random, some by the model."""
    parser = command(__doc__)
    parser.add_argument("--samples", type=int, default=5, help="texts drawn from the grammar (%(default)s)")
    parser.add_argument("--max-tokens", type=int, default=32)
    options = parser.parse_args(arguments)
    numbers, model = grammar(), load(options)
    groups = {
        "accepted": ACCEPTED,
        "rejected": REJECTED,
        "drawn": [numbers.sample(seed) for seed in range(options.samples)],
        "by the model": [
            model.run(prompt, numbers, max_tokens=options.max_tokens, on_limit="close").text for prompt in PROMPTS
        ],
    }
    print(judged(numbers, is_number, groups), end="\n\n")
    wrong = [[text, "takes it" if found else "refuses it"] for text, found in pattern_errors()]
    print(table(["number", "that pattern"], wrong))


def pattern_errors() -> list[tuple[str, bool]]:
    """Texts of which that pattern says something else than Python, and what it says."""
    verdicts = [(text, re.fullmatch(PATTERN, text) is not None) for text in [*ACCEPTED, *REJECTED]]
    return [(text, found) for text, found in verdicts if found != is_number(text)]


if __name__ == "__main__":
    main()
