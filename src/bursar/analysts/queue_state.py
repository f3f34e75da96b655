"""The board of the queue: who waits, whose turn it is, who is away. Plain values and pure functions of the time.

A turn belongs to an analyst and is used by one of the analyst's tickets. It ends when the question is answered or
refused, when its owner lets it go, when the client that uses it dies (its lease runs out), or by the idle rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from enum import StrEnum

from bursar.analysts.scheduler import Scheduler
from bursar.core.ledger import Transaction
from bursar.errors import LedgerError
from bursar.lazy_dataclass import dataclass


class QueueState(StrEnum):
    """What a ticket is doing."""

    WAITING = "waiting"  # a client stands there and takes the turn when it comes
    PARKED = "parked"  # a place in line; nobody stands there until the ticket is redeemed
    RUNNING = "running"  # the turn is being used


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """A place in line. It has no word of the question: whoever redeems it brings that along."""

    number: int
    analyst: str
    state: QueueState
    at: float  # when it was drawn; seconds since 1970
    expires: float  # when its client counts as dead, unless it is heard of before; a parked ticket has none


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The scheduler, and after how many seconds without a question an analyst is passed over; None: never."""

    scheduler: Scheduler
    idle: float | None = None

    @property
    def analysts(self) -> frozenset[str]:
        """Everybody who has turns."""
        return frozenset(self.scheduler.weights)


@dataclass(frozen=True, kw_only=True)
class Board:
    """The state of the queue at one moment."""

    weights: str = ""  # of the scheduler that counted the turns, as text; with others, counting begins anew
    begun: float = 0.0
    last: int = 0  # the last ticket number given out
    turn: str | None = None
    since: float = 0.0  # when the turn came
    turns: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, float] = field(default_factory=dict)  # when each last asked or was answered
    passing: frozenset[str] = frozenset()  # who lets the next turn go
    away: frozenset[str] = frozenset()  # who lets every turn go until asking again
    tickets: tuple[Ticket, ...] = ()  # in the order of their numbers

    def ticket(self, number: int) -> Ticket | None:
        """The ticket of that number, if it is there."""
        return next((ticket for ticket in self.tickets if ticket.number == number), None)

    def of(self, analyst: str, *states: QueueState) -> tuple[Ticket, ...]:
        """An analyst's tickets in one of these states."""
        return tuple(t for t in self.tickets if t.analyst == analyst and t.state in states)

    @property
    def running(self) -> Ticket | None:
        """The ticket that uses the turn, if one does."""
        return next((ticket for ticket in self.tickets if ticket.state is QueueState.RUNNING), None)

    def put(self, ticket: Ticket) -> Board:
        """The board with a ticket added or replaced."""
        others = tuple(other for other in self.tickets if other.number != ticket.number)
        return replace(self, tickets=tuple(sorted((*others, ticket), key=lambda each: each.number)))

    def drop(self, *gone: Ticket) -> Board:
        """The board without some tickets."""
        return replace(self, tickets=tuple(ticket for ticket in self.tickets if ticket not in gone))

    def heard(self, analyst: str, now: float) -> Board:
        """A sign of life: the idle rule counts from here, and whoever was away is back."""
        seen = {**self.seen, analyst: now}
        return replace(self, seen=seen, passing=self.passing - {analyst}, away=self.away - {analyst})


def settle(board: Board, rules: Rules, now: float) -> Board:
    """The board as it stands now: turns that are over have ended, and somebody has the turn if anybody can.

    Guarantees: while a client waits, somebody has the turn, and it moves on unless its owner is idle and the idle rule
    is to wait. A dead client uses up one turn at most.
    """
    board = _under(board, rules, now)
    running = board.running
    if running is not None:
        if running.expires > now:
            return board
        board = replace(board.drop(running), turn=None)
    if board.turn is not None:
        who = board.turn
        if not _lets_go(board, rules, who, now):
            return _without_dead(board, who, now)
        board = _turn_over(board, rules, who, now)
    return _choose(board, rules, now)


def first_in_line(board: Board) -> Ticket | None:
    """The ticket that may use the turn, if its client stands there and nobody is at it already."""
    if board.turn is None or board.running is not None:
        return None
    return next(iter(board.of(board.turn, QueueState.WAITING)), None)


def _under(board: Board, rules: Rules, now: float) -> Board:
    """Begin to count anew where shares or scheduler are not what they were; tickets keep their places."""
    scheduler = rules.scheduler
    weights = f"{type(scheduler).__name__} " + ", ".join(f"{n!r} {w}" for n, w in sorted(scheduler.weights.items()))
    if board.weights == weights:
        return board
    tickets = tuple(ticket for ticket in board.tickets if ticket.analyst in rules.analysts)
    return Board(weights=weights, begun=now, last=board.last, seen=board.seen, away=board.away, tickets=tickets)


def _lets_go(board: Board, rules: Rules, who: str, now: float) -> bool:
    return who in board.passing or _passed_over(board, rules, who, now) or _dead_only(board, who, now)


def _turn_over(board: Board, rules: Rules, who: str, now: float) -> Board:
    """The turn has not been used. A parked ticket that nobody came to redeem in time has lapsed."""
    lapsed = _passed_over(board, rules, who, now) and who not in board.away
    board = board.drop(*board.of(who, QueueState.PARKED)) if lapsed else board
    return replace(_without_dead(board, who, now), turn=None, passing=board.passing - {who})


def _choose(board: Board, rules: Rules, now: float) -> Board:
    while ready := [who for who in rules.analysts if not _passed_over(board, rules, who, now)]:
        who, turns = rules.scheduler.next(board.turns, ready)
        board = replace(board, turns=turns, turn=who, since=now)
        if not _lets_go(board, rules, who, now):
            return _without_dead(board, who, now)
        board = _turn_over(board, rules, who, now)
    return board


def _passed_over(board: Board, rules: Rules, who: str, now: float) -> bool:
    """Whether no turn is to wait for this analyst: away, or without a question for longer than the idle rule allows.

    A parked ticket is given that long from when its turn came, since nobody can know that beforehand.
    """
    if who in board.away:
        return True
    if rules.idle is None or board.of(who, QueueState.WAITING, QueueState.RUNNING):
        return False
    heard = board.seen.get(who, board.begun)
    if board.of(who, QueueState.PARKED):
        heard = max(heard, board.since if board.turn == who else now)
    return now - heard >= rules.idle


def _dead_only(board: Board, who: str, now: float) -> bool:
    """Whether nobody stands there but clients that have died."""
    waiting = board.of(who, QueueState.WAITING)
    return bool(waiting) and all(ticket.expires <= now for ticket in waiting) and not board.of(who, QueueState.PARKED)


def _without_dead(board: Board, who: str, now: float) -> Board:
    return board.drop(*(ticket for ticket in board.of(who, QueueState.WAITING) if ticket.expires <= now))


SCHEDULE = "schedule"


def read(rows: Mapping[str, bytes]) -> Board:
    """The board; an empty one where there are no rows yet."""
    try:
        stored = {name: json.loads(body) for name, body in rows.items()}
        fields = stored.pop(SCHEDULE, {})
        tickets = [Ticket(**{**ticket, "state": QueueState(ticket["state"])}) for ticket in stored.values()]
        passing, away = frozenset(fields.pop("passing", ())), frozenset(fields.pop("away", ()))
        tickets.sort(key=lambda ticket: ticket.number)
        return Board(**fields, passing=passing, away=away, tickets=tuple(tickets))
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
        schedule = {key: value for key, value in vars(board).items() if key != "tickets"}
        transaction.put_in_queue(SCHEDULE, _bytes({**schedule, **sets}))


def _name(ticket: Ticket) -> str:
    return f"ticket {ticket.number}"


def _bytes(fields: Mapping[str, object]) -> bytes:
    return json.dumps(fields, sort_keys=True).encode("ascii")
