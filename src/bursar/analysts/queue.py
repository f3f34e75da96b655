"""The queue: questions wait for their turn, without a daemon.

The board stands in the ledger's file. A client that waits looks at it again and again and runs its own turn; it says
now and then that it is alive, and one that is not heard of any more is passed over. A client that will not wait gets a
ticket, which keeps its analyst's place, and which a later call redeems.

Guarantees: at most one turn is used at a time, by whoever the scheduler says, as long as clocks agree and nobody
sleeps longer than a lease. Where that fails two questions run at once: order is lost, never privacy or money, because
nothing here is asked whether a question may be answered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

from bursar.analysts import queue_state
from bursar.analysts.queue_state import Board, QueueState, Rules, Ticket, first_in_line, settle
from bursar.analysts.scheduler import Randomized, RoundRobin, Scheduler
from bursar.analysts.shares import AnalystSettings
from bursar.core.ledger import Ledger, Transaction
from bursar.errors import AnalystError, LedgerError, Waiting
from bursar.lazy_dataclass import dataclass

LEASE_SECONDS = 30.0
"""How long a client may be silent before it counts as dead. It says that it is alive three times as often."""

POLL_SECONDS = 0.1


class Asks(Protocol):
    """What the queue sees of a question: who asks, and how they stand in line. No word of what is asked."""

    @property
    def analyst(self) -> str:
        """Who asks."""

    @property
    def wait(self) -> bool: ...

    @property
    def ticket(self) -> int | None: ...


@dataclass(frozen=True, kw_only=True)
class QueueStatus:
    """The queue as one analyst may see it: the own tickets, and how many others wait; never who or what."""

    scheduler: str  # "none", "round-robin", "randomized"
    idle: float | None  # seconds, None where turns wait for their owners
    yours: bool  # whether it is this analyst's turn
    stalled: bool  # whether the turn waits for somebody else who has not asked
    had: int  # turns that this analyst has had, of all that were given out
    given: int
    away: bool  # whether this analyst lets turns go
    own: tuple[Ticket, ...]
    others: int  # tickets of others


class Queue(Protocol):
    """Where questions wait for their turn."""

    tell: Callable[[str], None]
    """Hears what a client is waiting for, whenever that changes."""

    def turn(self, asks: Asks) -> AbstractContextManager[None]:
        """Wait for the turn, and hold it while the block runs; Waiting, with a ticket, for one who will not wait."""

    def let_go(self, analyst: str, *, away: bool = False) -> QueueStatus:
        """Let the present or the next turn go; all turns until the next question if `away`."""

    def status(self, analyst: str) -> QueueStatus:
        """Whose turn it is, as an analyst may know it."""


def queue_of(settings: AnalystSettings, ledger: Ledger) -> Queue:
    """The queue that the data owner's settings ask for."""
    if settings.scheduler == "none":
        return NoQueue()
    shares: Mapping[str, Fraction] = dict(settings.shares)
    scheduler: Scheduler = RoundRobin(weights=shares)
    if settings.scheduler == "randomized":
        scheduler = Randomized(weights=shares if settings.probabilities is None else settings.probabilities)
    return TurnQueue(ledger, Rules(scheduler=scheduler, idle=settings.idle), name=settings.scheduler)


class NoQueue:
    """Whoever comes first is served first."""

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = _silent

    def turn(self, asks: Asks) -> AbstractContextManager[None]:
        """Begins at once."""
        if asks.ticket is not None:
            raise AnalystError("nobody waits in turn here, so there are no tickets\ntry: the same without the ticket")
        return nullcontext()

    def let_go(self, analyst: str, *, away: bool = False) -> QueueStatus:
        """There is no turn to let go."""
        raise AnalystError(
            'nobody waits in turn here, so there is no turn to let go\ntry: scheduler = "round-robin" under [analysts]'
        )

    def status(self, analyst: str) -> QueueStatus:
        """That nobody waits."""
        return QueueStatus(
            scheduler="none",
            idle=None,
            yours=True,
            stalled=False,
            had=0,
            given=0,
            away=False,
            own=(),
            others=0,
        )


class TurnQueue:
    """`Queue` over rows of the ledger, for any number of threads and processes."""

    def __init__(
        self,
        ledger: Ledger,
        rules: Rules,
        *,
        name: str = "",
        lease: float = LEASE_SECONDS,
        poll: float = POLL_SECONDS,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.tell: Callable[[str], None] = _silent
        self._ledger, self._rules, self._name = ledger, rules, name
        self._lease, self._poll, self._clock = lease, poll, ledger.now if clock is None else clock

    @contextmanager
    def turn(self, asks: Asks) -> Iterator[None]:
        """Waits for the turn, and ends it with the block."""
        ticket, has_turn = self._enter(asks)
        try:
            if not has_turn:
                self._stand_in_line(ticket)
            with self._alive(ticket):
                yield
        finally:
            # The lease clears up where the ledger cannot be written now; what the block did or raised counts.
            with suppress(LedgerError):
                self._change(lambda board, now: _left(board, ticket, now))

    def let_go(self, analyst: str, *, away: bool = False) -> QueueStatus:
        """Passes on the turn, or all of them while `away`."""
        self._check(analyst)

        def passed(board: Board, now: float) -> Board:
            if away:
                return replace(board, away=board.away | {analyst})
            return replace(board, passing=board.passing | {analyst})

        return self._seen_by(analyst, self._change(passed))

    def status(self, analyst: str) -> QueueStatus:
        """Whose turn it is, as an analyst may know it."""
        return self._seen_by(analyst, settle(queue_state.read(self._ledger.queue()), self._rules, self._clock()))

    # -- a client's way through the queue -------------------------------------------------------------------

    def _enter(self, asks: Asks) -> tuple[Ticket, bool]:
        """Draw or redeem a ticket; says whether its turn is there. Raises Waiting for one who would have to wait."""
        self._check(asks.analyst)
        drawn: list[Ticket] = []

        def enter(board: Board, now: float) -> Board:
            ticket = Ticket(number=board.last + 1, analyst=asks.analyst, state=QueueState.WAITING, at=now, expires=now)
            if asks.ticket is not None:
                ticket = _redeemed(board, asks.analyst, asks.ticket)
            drawn.append(ticket)
            board = replace(board, last=max(board.last, ticket.number)).heard(asks.analyst, now)
            board = self._stand(board, ticket, now)
            stays = asks.wait or _uses_turn(board, ticket)
            return board if stays else board.put(replace(ticket, state=QueueState.PARKED))

        board = self._change(enter)
        ticket = drawn[-1]
        has_turn = _uses_turn(board, ticket)
        if not has_turn and not asks.wait:
            raise Waiting(ticket.number, self._situation(board, asks.analyst))
        return ticket, has_turn

    def _stand_in_line(self, ticket: Ticket) -> None:
        """Look at the board until the turn has come."""
        said, renew = "", self._clock() + self._lease / 3
        while True:
            now = self._clock()
            board = settle(stored := queue_state.read(self._ledger.queue()), self._rules, now)
            first = first_in_line(board)
            mine = first is not None and first.number == ticket.number
            if mine or now >= renew or board != stored or board.ticket(ticket.number) is None:
                board = self._change(lambda board, now: self._stand(board, ticket, now))
                renew = now + self._lease / 3
            if _uses_turn(board, ticket):
                return
            if (text := self._situation(board, ticket.analyst)) != said:
                self.tell(said := text)
            time.sleep(self._poll)

    def _stand(self, board: Board, ticket: Ticket, now: float) -> Board:
        """Say that the client is there, and take the turn if it has come. A ticket that was given up for dead comes
        back to its place."""
        here = replace(ticket, state=QueueState.WAITING, expires=now + self._lease)
        board = settle(board.put(here), self._rules, now)
        return board.put(replace(here, state=QueueState.RUNNING)) if first_in_line(board) == here else board

    @contextmanager
    def _alive(self, ticket: Ticket) -> Iterator[None]:
        """Renew the lease of the running turn from a thread of its own, as long as the block runs."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(self._lease / 3):
                with suppress(LedgerError):
                    self._change(lambda board, now: _renewed(board, ticket, now + self._lease))

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    # -- the board ------------------------------------------------------------------------------------------

    def _change(self, change: Callable[[Board, float], Board]) -> Board:
        """Change the board in one commit; before the change and after it, what is over has ended."""

        def work(transaction: Transaction) -> Board:
            now = self._clock()
            stored = queue_state.read(transaction.queue())
            board = settle(change(settle(stored, self._rules, now), now), self._rules, now)
            queue_state.write(transaction, stored, board)
            return board

        return self._ledger.commit(work)

    def _check(self, analyst: str) -> None:
        if analyst not in self._rules.analysts:
            raise AnalystError(f"{analyst!r} has no share of this budget, and only analysts who have one take turns")

    def _seen_by(self, analyst: str, board: Board) -> QueueStatus:
        tickets = tuple(ticket for ticket in board.tickets if ticket.analyst == analyst)
        return QueueStatus(
            scheduler=self._name,
            idle=self._rules.idle,
            yours=board.turn == analyst,
            stalled=_stalled(board) and board.turn != analyst,
            had=board.turns.get(analyst, 0),
            given=sum(board.turns.values()),
            away=analyst in board.away,
            own=tickets,
            others=len(board.tickets) - len(tickets),
        )

    def _situation(self, board: Board, analyst: str) -> str:
        """What a client waits for, and what would help. Nobody else is named."""
        others = len({ticket.analyst for ticket in board.tickets} - {analyst})
        line = f"{others} other analyst{'s' if others != 1 else ''} in line" if others else "nobody else in line"
        if board.turn == analyst:
            return f"it is your turn, and another question of yours is before this one; {line}"
        if not _stalled(board):
            return f"it is another analyst's turn; {line}"
        reason = f"it is the turn of an analyst who has not asked; {line}"
        if self._rules.idle is not None:
            return f"{reason}; they are passed over after {self._rules.idle:g} seconds without a question"
        remedy = 'they can run: bursar pass; the data owner can set idle = "skip-after 10m" under [analysts]'
        return f"{reason}\ntry: {remedy}"


def _redeemed(board: Board, analyst: str, number: int) -> Ticket:
    ticket = board.ticket(number)
    if ticket is None or ticket.analyst != analyst:
        raise AnalystError(
            f"{analyst!r} has no ticket {number}: it was never drawn, was used, or its turn came and nobody took it\n"
            "try: the same without the ticket; bursar queue shows the tickets there are"
        )
    if ticket.state is not QueueState.PARKED:
        raise AnalystError(f"ticket {number} is in use: another client stands in line with it")
    return ticket


def _uses_turn(board: Board, ticket: Ticket) -> bool:
    return board.running is not None and board.running.number == ticket.number


def _left(board: Board, ticket: Ticket, now: float) -> Board:
    """The question was answered or refused, or its client goes away: the ticket is used up, and so is its turn."""
    turn = None if _uses_turn(board, ticket) else board.turn
    tickets = tuple(other for other in board.tickets if other.number != ticket.number)
    return replace(board, turn=turn, tickets=tickets, seen={**board.seen, ticket.analyst: now})


def _renewed(board: Board, ticket: Ticket, expires: float) -> Board:
    running = board.running
    if running is None or running.number != ticket.number:
        return board
    return board.put(replace(running, expires=expires))


def _stalled(board: Board) -> bool:
    """Whether the turn belongs to somebody who is not there."""
    return board.turn is not None and board.running is None and not board.of(board.turn, QueueState.WAITING)


def _silent(text: str) -> None:
    """Nobody listens."""
