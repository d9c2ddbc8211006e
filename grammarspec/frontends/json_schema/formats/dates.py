"""Dates, times and durations: RFC 3339, and the local times of the OpenAPI Format Registry.

All of RFC 3339 is regular: the days of a month, the years that have a 29th of February, and the leap seconds, which are
at 23:59:60 UTC at the end of June or December. Which years had one is not in the specification.
"""

from __future__ import annotations

from functools import cached_property

from grammarspec.frontends.json_schema.formats.nodes import FormatNodes

__all__ = ["DatesAndTimes"]


class DatesAndTimes(FormatNodes):
    """Dates, times and durations. Those that begin with ``maybe`` take a leap second at any time."""

    # ------------------------------------------------------------------ dates
    @cached_property
    def date(self) -> int:
        """``full-date``: with the days that the month has, in the year."""
        b = self.builder
        digit, zero = self._digit, self._literal("0")
        to_28 = b.alt(
            b.seq(zero, self._range("1", "9")),
            b.seq(self._literal("1"), digit),
            b.seq(self._literal("2"), self._range("0", "8")),
        )
        to_30 = b.alt(to_28, b.words(("29", "30")))
        to_31 = b.alt(to_30, self._literal("31"))
        days = b.alt(
            b.seq(b.words(("01-", "03-", "05-", "07-", "08-", "10-", "12-")), to_31),
            b.seq(b.words(("04-", "06-", "09-", "11-")), to_30),
            b.seq(self._literal("02-"), to_28),
        )
        # the 29th of February: years that 4 divides but not 100, and those that 400 divides
        fours = [f"{n:02d}" for n in range(0, 100, 4)]
        leap_year = b.alt(b.seq(digit, digit, b.words(fours[1:])), b.seq(b.words(fours), self._literal("00")))
        return b.alt(b.seq(self._year, self._literal("-"), days), b.seq(leap_year, self._literal("-02-29")))

    @cached_property
    def _year(self) -> int:
        return self.builder.repeat(self._digit, 4, 4)

    # ------------------------------------------------------------------ times
    @cached_property
    def time(self) -> int:
        """``full-time``; a leap second is at 23:59:60 UTC."""
        return self.builder.alt(self._usual_time, *self._leap_seconds)

    @cached_property
    def maybe_time(self) -> int:
        """``full-time``."""
        return self.builder.alt(self._usual_time, self.builder.seq(self._maybe_leap_time, self._offset))

    @cached_property
    def local_time(self) -> int:
        """``partial-time`` without leap seconds."""
        b = self.builder
        return b.seq(self._hour_minute, self._literal(":"), self._range("0", "5"), self._digit, self._fraction)

    @cached_property
    def maybe_local_time(self) -> int:
        """``partial-time``."""
        return self.builder.alt(self.local_time, self._maybe_leap_time)

    @cached_property
    def _hour_minute(self) -> int:
        b = self.builder
        hour = b.alt(b.seq(self._range("0", "1"), self._digit), b.seq(self._literal("2"), self._range("0", "3")))
        return b.seq(hour, self._literal(":"), self._range("0", "5"), self._digit)

    @cached_property
    def _fraction(self) -> int:
        """``time-secfrac``, or nothing."""
        return self.builder.optional(self.builder.seq(self._literal("."), self._digits))

    @cached_property
    def _zulu(self) -> int:
        return self._one_of("Zz")

    @cached_property
    def _offset(self) -> int:
        """``time-offset``."""
        b = self.builder
        return b.alt(self._zulu, b.seq(self._one_of("+-"), self._hour_minute))

    @cached_property
    def _usual_time(self) -> int:
        """``full-time`` without leap seconds."""
        return self.builder.seq(self.local_time, self._offset)

    @cached_property
    def _leap_seconds(self) -> tuple[int, int]:
        """Times of 23:59:60 UTC, with the offset that makes the local time what it is.

        The first are those where the local date is that of UTC, the second those where it is the day after.
        """
        b = self.builder
        two = b.seq(self._digit, self._digit)
        begin = b.seq(self._literal(":60"), self._fraction)
        minutes = b.alt(
            *(
                b.seq(two, self._literal(f":{minute:02d}"), begin, b.alt(
                    b.seq(self._literal("+"), two, self._literal(f":{(minute + 1) % 60:02d}")),
                    b.seq(self._literal("-"), two, self._literal(f":{59 - minute:02d}")),
                ))
                for minute in range(60)
            )
        )  # fmt: skip
        whole = self._literal(":00")
        broken = b.both(b.seq(self._literal(":"), two), b.complement(whole))
        later, same = [], []
        for hour in range(24):
            local = b.seq(self._literal(f"{hour:02d}:"), two, begin)
            same.append(b.seq(local, self._literal(f"-{23 - hour:02d}:"), two))
            later.append(b.seq(local, self._literal(f"+{hour:02d}"), broken))
            if hour < 23:
                later.append(b.seq(local, self._literal(f"+{hour + 1:02d}"), whole))
        utc = b.seq(self._literal("23:59"), begin, b.alt(self._zulu, self._literal("+00:00")))
        return b.alt(utc, b.both(minutes, b.alt(*same))), b.both(minutes, b.alt(*later))

    @cached_property
    def _maybe_leap_time(self) -> int:
        """A local time with a leap second."""
        b = self.builder
        return b.seq(self._hour_minute, self._literal(":60"), self._fraction)

    # ------------------------------------------------------------------ both
    @cached_property
    def date_time(self) -> int:
        """``date-time``; leap seconds are at the ends of June and December."""
        b = self.builder
        same, later = self._leap_seconds
        leap = b.alt(
            b.seq(b.words(("-06-30", "-12-31")), self._separator, same),
            b.seq(b.words(("-07-01", "-01-01")), self._separator, later),
        )
        return b.alt(b.seq(self._date_and_separator, self._usual_time), b.seq(self._year, leap))

    @cached_property
    def maybe_date_time(self) -> int:
        """``date-time``."""
        return self.builder.seq(self._date_and_separator, self.maybe_time)

    @cached_property
    def local_date_time(self) -> int:
        """``date-time`` without its offset and without leap seconds."""
        return self.builder.seq(self._date_and_separator, self.local_time)

    @cached_property
    def maybe_local_date_time(self) -> int:
        """``date-time`` without its offset."""
        return self.builder.seq(self._date_and_separator, self.maybe_local_time)

    @cached_property
    def _separator(self) -> int:
        return self._one_of("Tt")

    @cached_property
    def _date_and_separator(self) -> int:
        return self.builder.seq(self.date, self._separator)

    # ------------------------------------------------------------------ durations
    @cached_property
    def duration(self) -> int:
        """ISO 8601 durations as in appendix A of RFC 3339: no unit is left out between two others."""
        b = self.builder

        def unit(letter: str, smaller: int | None = None) -> int:
            this = b.seq(self._digits, self._literal(letter))
            return this if smaller is None else b.seq(this, b.optional(smaller))

        second = unit("S")
        minute = unit("M", second)
        time = b.seq(self._literal("T"), b.alt(unit("H", minute), minute, second))
        day = unit("D")
        month = unit("M", day)
        date = b.seq(b.alt(unit("Y", month), month, day), b.optional(time))
        return b.seq(self._literal("P"), b.alt(date, time, unit("W")))
