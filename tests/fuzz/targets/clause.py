"""Any text behind a good question, as its accuracy."""

from __future__ import annotations

import atheris
from target import fuzz

with atheris.instrument_imports(include=["bursar.sql", "bursar.goal", "bursar.planner", "bursar.proposers"]):
    from fuzz.doors import DOORS

fuzz(DOORS["clause"])
