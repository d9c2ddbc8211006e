"""How much the property suites compared, said at the end of a run."""

from __future__ import annotations

from typing import Any

from tests.properties.compared import COMPARED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if COMPARED:
        terminalreporter.write_line(f"{sum(COMPARED):,} mask bits compared with acceptance, in {len(COMPARED):,} masks")
