"""One shape for everything that a server refuses: what went wrong, where, and what would work instead.

A text of a BursarError is made from public facts, and is sent. Of any other error nobody outside learns more than the
id of the request.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field
from starlette.responses import Response

from bursar.errors import (
    AnalystError,
    BudgetError,
    BursarError,
    ConfigError,
    GoalError,
    KeyConflict,
    LedgerError,
    QueryError,
    SourceError,
    Unsupported,
    Waiting,
)

STATUS: dict[type[BursarError], tuple[int, str]] = {
    QueryError: (422, "question"),
    GoalError: (422, "goal"),
    ConfigError: (422, "config"),
    Unsupported: (422, "unsupported"),
    BudgetError: (402, "budget"),
    AnalystError: (403, "analyst"),
    KeyConflict: (409, "key"),
    Waiting: (409, "waiting"),
    SourceError: (503, "source"),
    LedgerError: (503, "ledger"),
}
"""The status and the code of every kind of error; a kind that is not here has those of the kind above it."""


class Fault(BaseModel):
    """Why a request was refused."""

    code: str = Field(description="What kind of refusal it is; it stays the same between versions.")
    text: str = Field(description="What went wrong, in a sentence.")
    position: int | None = Field(default=None, description="Where in the SQL, counted from 0.")
    sql: str | None = Field(default=None, description="Which question it is about, beside `position`.")
    rewrite: str | None = Field(default=None, description="What would be accepted instead.")
    differs: str | None = Field(
        default=None, description="In what `rewrite` is another question; absent where it means the same."
    )
    left: float | None = Field(default=None, description="What is left of the budget, where that is why.")
    asked: float | None = Field(default=None, description="What the question would have cost, where that is why.")
    unit: str | None = Field(default=None, description='"epsilon" or "rho", beside `left` and `asked`.')
    limit: str | None = Field(default=None, description="Whose limit it is, beside `left`.")
    spent: str | None = Field(default=None, description="What was spent all the same, in words, beside `left`.")
    ticket: int | None = Field(default=None, description="Keeps your place where questions wait for their turn.")
    situation: str | None = Field(default=None, description="What the queue waits for, beside `ticket`.")
    request_id: str = Field(default="", description="Names this request in the log of the server.")


@dataclass
class Refusal(Exception):
    """A request that is refused by the server itself, with its status."""

    status: int
    fault: Fault
    headers: dict[str, str] | None = None


def refused(status: int, code: str, text: str, **headers: str) -> Refusal:
    """A refusal in a sentence. A header is written with _ for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Refusal(status, Fault(code=code, text=text), named)


_FOLDERS = re.compile(r"""(?<![\w.)/\]])(?:/[^\s/:"']+)+/(?=[^\s/])""")
"""What stands before the name of a file in its path."""


def outside(error: BursarError) -> str:
    """The text of an error for whoever asks from outside: where files lie on the machine is not their affair."""
    if isinstance(error, ConfigError):
        return _FOLDERS.sub("", error.reason)
    return _FOLDERS.sub("", str(error)) if isinstance(error, LedgerError | SourceError) else str(error)


def refusal_of(error: BursarError) -> Refusal:
    """What a client is told about an error of the engine."""
    status, code = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    text, _, rewrite = outside(error).partition("\ntry: ")
    fault = Fault(code=code, text=text, rewrite=rewrite or None)
    match error:
        case QueryError():
            place = error.position if error.position >= 0 else None
            about = {"text": error.reason, "position": place, "sql": error.text or None}
            offered = {"rewrite": error.rewrite or None, "differs": error.differs or None}
            fault = fault.model_copy(update={**about, **offered})
        case BudgetError():
            money = {"left": error.left, "asked": error.asked, "unit": error.unit}
            fault = fault.model_copy(update={**money, "limit": error.limit, "spent": error.spent})
        case Waiting():
            told = f"your turn has not come: ticket {error.ticket} keeps your place; {error.situation}"
            again = {"text": told, "rewrite": f'the same again with "ticket": {error.ticket}'}
            waiting = {"ticket": error.ticket, "situation": error.situation}
            return Refusal(status, fault.model_copy(update={**again, **waiting}), {"Retry-After": "1"})
    return Refusal(status, fault)


def internal() -> Refusal:
    """What a client is told about an error that nobody has thought of."""
    return refused(500, "internal", "something went wrong inside; the log of the server has it under the request id")


def response(refusal: Refusal, request_id: str) -> Response:
    """A refusal as it is sent."""
    body = refusal.fault.model_copy(update={"request_id": request_id}).model_dump()
    text = json.dumps(body, allow_nan=False)
    return Response(text, refusal.status, headers=refusal.headers, media_type="application/json")


def without_paths(refusal: Refusal, folders: tuple[str, ...]) -> Refusal:
    """The same without the folders of the server's machine, which concern nobody else."""
    text, rewrite = refusal.fault.text, refusal.fault.rewrite
    for folder in folders:
        text = text.replace(f"{folder}/", "")
        rewrite = None if rewrite is None else rewrite.replace(f"{folder}/", "")
    return replace(refusal, fault=refusal.fault.model_copy(update={"text": text, "rewrite": rewrite}))
