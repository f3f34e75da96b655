"""Any text as a question."""

from __future__ import annotations

import atheris
from target import fuzz

with atheris.instrument_imports(include=["bursar.sql", "bursar.compile"]):
    from fuzz.doors import DOORS

fuzz(DOORS["sql"])
