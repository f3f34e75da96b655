"""Libraries that only some people need: imported at their first use, and named where they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from bursar.errors import Unsupported


def library(name: str, *, extra: str, what: str) -> Any:
    """The module of this name; where it is not installed, an error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        needed = name.partition(".")[0]
        way = f"pip install {needed}, or pip install '.[{extra}]' in a checkout of Bursar"
        raise Unsupported(f"{what} needs {needed}\ntry: {way}") from None
