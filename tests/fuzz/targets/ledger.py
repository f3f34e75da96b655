"""Any bytes as a row of a ledger."""

from __future__ import annotations

import atheris
from target import fuzz

with atheris.instrument_imports(include=["bursar.core.queries", "bursar.core.ledger"]):
    from fuzz.doors import DOORS

fuzz(DOORS["ledger"])
