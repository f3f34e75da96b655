"""Regular expressions over texts that are public, as DuckDB has them: by its own matcher, which takes linear time.

The matcher sees declared values and what a question says, never a row; its database holds nothing and reads no file.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Final

from bursar.errors import QueryError

if TYPE_CHECKING:
    import duckdb

LONGEST_PATTERN: Final = 500
"""Most letters of a regular expression."""

_LOCKED: Final = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "64MB",
    "threads": "1",
}


@functools.cache
def _matcher() -> tuple[duckdb.DuckDBPyConnection, threading.Lock]:
    import duckdb  # most questions have no pattern, and are answered without it

    return duckdb.connect(":memory:", config=_LOCKED), threading.Lock()


@functools.lru_cache(maxsize=4096)
def _matched(call: str, *values: str) -> str | bool:
    import duckdb

    if len(values[1]) > LONGEST_PATTERN:
        raise QueryError(f"a regular expression has at most {LONGEST_PATTERN} letters")
    connection, lock = _matcher()
    try:
        with lock:
            row = connection.execute(f"SELECT {call}", values).fetchone()
    except duckdb.Error:
        raise QueryError("this is no regular expression that can be matched in linear time") from None
    assert row is not None
    result: str | bool = row[0]
    return result


def matches(text: str, pattern: str, *, whole: bool, any_case: bool = False) -> bool:
    """Whether a regular expression matches a text: the whole of it, or some part."""
    name, options = "regexp_full_match" if whole else "regexp_matches", ", 'i'" if any_case else ""
    return bool(_matched(f"{name}(?, ?{options})", text, pattern))


def replaced(text: str, pattern: str, new: str, *, every: bool) -> str:
    """A text with the first match of a regular expression replaced, or with every one."""
    return str(_matched(f"regexp_replace(?, ?, ?{', ' + repr('g') if every else ''})", text, pattern, new))
