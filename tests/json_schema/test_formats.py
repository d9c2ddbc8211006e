"""Formats, against the standard library and by the cases of their specifications."""

from __future__ import annotations

import calendar
import ipaddress
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_schema.texts import Case, acceptor, check, corpus

import grammarspec as gs


@pytest.mark.parametrize("case", corpus("formats.txt"), ids=lambda case: json.loads(case.schema)["format"])
def test_format(case: Case) -> None:
    check(json.loads(case.schema), case)


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
        for offset in range(0, 24 * 60, 30):
            local = (23 * 60 + 59 + sign * offset) % (24 * 60)
            for minute in (local, (local + 1) % 1440, (local + 60) % 1440):
                time = f"{minute // 60:02d}:{minute % 60:02d}:60"
                text = f'"{time}{"+" if sign > 0 else "-"}{offset // 60:02d}:{offset % 60:02d}"'
                assert accepts(text) == (minute == local), text


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


def test_exact_formats_can_be_negated_and_the_others_are_refused() -> None:
    accepts = acceptor({"type": "string", "not": {"format": "ipv4"}})
    assert accepts('"1.2.3"')
    assert not accepts('"1.2.3.4"')
    with pytest.raises(gs.UnsupportedFeature, match="format 'hostname' inside not") as caught:
        gs.json_schema({"type": "string", "not": {"format": "hostname"}})
    assert caught.value.where == "#/not/format"


@pytest.mark.parametrize("name", ["regex", "idn-email", "idn-hostname"])
def test_refused_formats(name: str) -> None:
    with pytest.raises(gs.UnsupportedFeature, match=name) as caught:
        gs.json_schema({"properties": {"a": {"format": name}}})
    assert caught.value.where == "#/properties/a/format"
    assert acceptor({"format": name}, format="annotation")('"x"')
    assert acceptor({"format": name, "type": "integer"})("1")  # no string is possible there
