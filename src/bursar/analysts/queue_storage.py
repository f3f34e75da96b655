"""The board as rows of the ledger: one for each ticket, and one for everything else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from bursar.analysts.queue_state import Board, State, Ticket
from bursar.errors import LedgerError
from bursar.core.ledger import Transaction

SCHEDULE = "schedule"


def read(rows: Mapping[str, bytes]) -> Board:
    """The board; an empty one where there are no rows yet."""
    try:
        stored = {name: json.loads(body) for name, body in rows.items()}
        fields = stored.pop(SCHEDULE, {})
        tickets = [Ticket(**{**ticket, "state": State(ticket["state"])}) for ticket in stored.values()]
        sets: Any = {key: frozenset(fields.pop(key, ())) for key in ("passing", "away")}
        return Board(**fields, **sets, tickets=tuple(sorted(tickets, key=lambda ticket: ticket.number)))
    except (ValueError, TypeError, LookupError, AttributeError) as fault:
        raise LedgerError("the queue was written by another release of Bursar") from fault


def write(transaction: Transaction, stored: Board, board: Board) -> None:
    """Store what has changed, and nothing where nothing has."""
    before, after = ({_name(ticket): ticket for ticket in each.tickets} for each in (stored, board))
    for name in before.keys() - after.keys():
        transaction.drop_from_queue(name)
    for name, ticket in after.items():
        if before.get(name) != ticket:
            transaction.put_in_queue(name, _bytes(asdict(ticket)))
    if replace(stored, tickets=()) != replace(board, tickets=()):
        sets = {"passing": sorted(board.passing), "away": sorted(board.away)}
        rest = {key: value for key, value in vars(board).items() if key != "tickets"}
        transaction.put_in_queue(SCHEDULE, _bytes({**rest, **sets}))


def _name(ticket: Ticket) -> str:
    return f"ticket {ticket.number}"


def _bytes(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True).encode("ascii")
