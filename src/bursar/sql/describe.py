"""DESCRIBE and SHOW: what is declared about a table, in the words of several databases."""

from __future__ import annotations

import re
from enum import Enum

from bursar.sql.names import Name

LONGEST = 400
"""No such statement is longer."""

_TABLE = r"""(?:\w+\.)?(?:"(?P<quoted>[^"]+)"|'(?P<text>[^']+)'|(?P<plain>\w+))"""

_COLUMNS = tuple(
    re.compile(rf"\s*{words}\s*;?\s*", re.IGNORECASE)
    for words in (
        rf"(?:DESCRIBE|DESC)\s+(?:TABLE\s+)?{_TABLE}",
        rf"SHOW\s+(?:COLUMNS|FIELDS)\s+(?:FROM|IN)\s+{_TABLE}",
        rf"PRAGMA\s+(?:table_info|show)\s*\(\s*{_TABLE}\s*\)",
    )
)
_TABLES = re.compile(r"\s*(?:SHOW\s+(?:ALL\s+)?TABLES|DESCRIBE|PRAGMA\s+show_tables)\s*;?\s*", re.IGNORECASE)


class Described(Enum):
    """What is described."""

    TABLES = "tables"
    COLUMNS = "columns"


def described(text: str) -> tuple[Described, Name] | None:
    """What a text asks to be described, with the table, if it names one; None where it is another statement."""
    if len(text) > LONGEST:
        return None
    if _TABLES.fullmatch(text):
        return Described.TABLES, Name(text="")
    for pattern in _COLUMNS:
        if (matched := pattern.fullmatch(text)) is not None:
            (word,) = (word for word in ("quoted", "text", "plain") if matched[word] is not None)
            return Described.COLUMNS, Name(text=matched[word], quoted=word == "quoted", position=matched.start(word))
    return None
