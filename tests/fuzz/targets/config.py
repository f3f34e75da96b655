"""Any bytes as a config file."""

from __future__ import annotations

import atheris
from target import fuzz

with atheris.instrument_imports(include=["bursar.config", "tomllib"]):
    from fuzz.doors import DOORS

fuzz(DOORS["config"])
