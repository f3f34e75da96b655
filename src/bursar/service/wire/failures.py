"""Refusals as PostgreSQL words them: an SQLSTATE, a text, and where there are any a detail, a hint and a position."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from bursar.errors import (
    AnalystError,
    BudgetError,
    BursarError,
    GoalError,
    QueryError,
    Unsupported,
    Waiting,
)
from bursar.service.errors import outside
from bursar.service.wire import protocol

SYNTAX, UNAVAILABLE, NO_COLUMN, NO_TABLE = "42601", "0A000", "42703", "42P01"
CANCELLED, FAILED_TRANSACTION, READ_ONLY, BAD_SETTING = "57014", "25P02", "25006", "22023"
INTERNAL, BAD_PASSWORD = "XX000", "28P01"


@dataclass(eq=False)
class WireError(Exception):
    """What a client is told. Nothing in it depends on data."""

    code: str
    text: str
    detail: str = ""
    hint: str = ""
    position: int = -1  # offset of the first offending character of the statement
    severity: str = field(default="ERROR", kw_only=True)

    def message(self) -> bytes:
        """The bytes of it."""
        return protocol.report(b"E", self.fields())

    def fields(self) -> dict[str, str]:
        """By the letters that PostgreSQL has for them."""
        place = str(self.position + 1) if self.position >= 0 else ""
        return {
            "S": self.severity,
            "V": self.severity,
            "C": self.code,
            "M": self.text,
            "D": self.detail,
            "H": self.hint,
            "P": place,
        }


def fatal(code: str, text: str, hint: str = "") -> WireError:
    """An error after which the connection ends."""
    return WireError(code, text, hint=hint, severity="FATAL")


def notice(text: str, detail: str = "", *, severity: str = "NOTICE", code: str = "00000") -> bytes:
    """Something to know that is no error."""
    return protocol.report(b"N", replace(WireError(code, text, detail), severity=severity).fields())


_COLUMN = re.compile(r"there is no column (.+?); .*", re.DOTALL)
_UNREADABLE = ("expecting ", "the question cannot be ", "there is no question", "this question cannot be read")

_SETTINGS = "SET bursar.error = '50' is the accuracy of all further questions of this connection"

_CODES: tuple[tuple[type[BursarError], str], ...] = (
    (BudgetError, "53400"),
    (GoalError, BAD_SETTING),
    (AnalystError, "42501"),
    (Waiting, "55P03"),
    (Unsupported, UNAVAILABLE),
)


def refusal(error: BursarError) -> WireError:
    """What an error of the engine is on the wire; a rewrite, or whatever else can be tried, is the hint."""
    if isinstance(error, QueryError):
        if (column := _COLUMN.fullmatch(error.reason)) is not None:
            text, detail, code = f'column "{column[1]}" does not exist', error.reason, NO_COLUMN
        else:
            text, detail = error.reason, ""
            code = SYNTAX if error.reason.startswith(_UNREADABLE) else UNAVAILABLE
        other = f" (another question: it {error.differs})" if error.rewrite and error.differs else ""
        return WireError(code, text, detail, error.rewrite + other, error.position)
    text, _, hint = outside(error).partition("\ntry: ")
    code = next((code for kind, code in _CODES if isinstance(error, kind)), "58000")
    return WireError(code, text, hint=hint or (_SETTINGS if isinstance(error, GoalError) else ""))
