"""Any bytes as a message of PostgreSQL's wire."""

from __future__ import annotations

import atheris
from target import fuzz

with atheris.instrument_imports(include=["bursar.service.wire"]):
    from fuzz.doors import DOORS

fuzz(DOORS["wire"])
