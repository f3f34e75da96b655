"""The planner: views of the log, a preset, and the choice between offers. Shared by the threads of a process.

One thread plans at a time: views are advanced as they are looked at. What is free does not wait for it (`FreeViews`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import partial
from itertools import takewhile
from typing import Protocol, TypeVar

from bursar.core.accounting import Book, Event, Measured, Mode, from_units
from bursar.core.accounting.kind import ROOT
from bursar.core.accounts import Account, Charge
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap
from bursar.errors import GoalError
from bursar.goal import Goal, GoalKind, Horizon
from bursar.lazy_dataclass import dataclass
from bursar.planner.admit import NO_MEASURED_SIZE, admit
from bursar.planner.choose import Preset, choose, refusal
from bursar.planner.explain import Explanation, explain
from bursar.planner.offer import Offer, SyntheticRows, Views
from bursar.planner.request import PlanningRequest
from bursar.threads import one_thread
from bursar.views.baseline import Baseline, Comparison, Investing
from bursar.views.learner import Histograms
from bursar.views.measurements import ALL_ROWS, Measurements, Reconstructions, Rents, measured_size
from bursar.views.nodes import Nodes
from bursar.views.partition_measurements import PartitionViews
from bursar.views.question_notes import AskedQuestion, Columns, MemoryNotes, QuestionNotes

Planned = TypeVar("Planned")

REMEMBERED = 2**14
"""Most things that are remembered of a log until it grows, and most questions that are known to be noted."""


class Prices(Protocol):
    """What the planner asks the kernel: prices and what is left, functions of the log; and a book to add up in."""

    def price(self, events: Iterable[Event]) -> int: ...

    def left(self) -> int: ...

    def spent(self) -> int: ...

    def shares(self) -> Mapping[str, Fraction]:
        """The analysts' shares of the budget; none where all spend from one."""

    def account(self, analyst: str) -> Account: ...

    def charge(self, events: Iterable[Event], analyst: str) -> Charge: ...

    def carried(self) -> int:
        """What of `spent` stands for another ledger about the same people."""

    def further(self) -> Mapping[str, Domain]:
        """The private tables beside the first."""

    def spent_by_table(self) -> Mapping[str, int]:
        """What is spent on each private table; what was carried over counts for the first."""

    @property
    def table(self) -> str:
        """The private table that is asked about."""

    def empty_book(self) -> Book:
        """A book as it was when nothing had been spent, to add up what some events cost by themselves."""

    def sealed(self) -> int | None:
        """How many partitions can be asked about; None where the data have none."""


class Promised(Protocol):
    """What a policy promises between analysts."""

    @property
    def short(self) -> str:
        """In one line."""


@dataclass
class FreeViews:
    """What free answers are made of, read from the log a second time where several threads plan at once.

    Guarantees: no thread waits here for one that plans a purchase; only for others whose answers are free.
    """

    measurements: Measurements
    reconstructions: Reconstructions
    position: int = 0
    remembered: dict[tuple[object, ...], object] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def beside(reconstructions: Reconstructions) -> FreeViews:
        """Views of their own that need not work out what the planner's reconstructions know, nor the other way."""
        measurements = Measurements(reconstructions.domain)
        shared = reconstructions.shared
        return FreeViews(measurements, Reconstructions(reconstructions.domain, measurements, shared))

    def advance(self, log: Callable[[int], Sequence[Record]]) -> None:
        """Read on; only for whoever has the lock."""
        records = log(self.position)
        if records or len(self.remembered) > REMEMBERED:
            self.remembered = {}
        self.measurements.advance(records)
        self.position = records[-1].position if records else self.position

    def instead_of(self, views: Views) -> Views:
        """The same public facts with these views of the log."""
        return replace(
            views,
            version=self.measurements.version,
            position=self.position,
            measurements=self.measurements,
            reconstructions=self.reconstructions,
            remembered=self.remembered,
        )


class Planner:
    """Sees the log and the prices, never the data."""

    def __init__(
        self,
        domain: Domain,
        mode: Mode,
        preset: Preset,
        prices: Prices,
        records: Callable[[int], Sequence[Record]],
        *,
        synthetic: Callable[[], SyntheticRows | None] = lambda: None,
        promised: Promised | None = None,
        notes: QuestionNotes | None = None,
        horizon: Horizon = Horizon.SOME,
        before: Callable[[LinearMap], Measurements | None] | None = None,
        kept: Callable[[int], Sequence[Record]] | None = None,
    ) -> None:
        """`synthetic` looks for the table that is kept; `promised` is what analysts can rely on where there are
        shares, for EXPLAIN; `notes` are of all questions that were asked; `horizon` is for requests that name none;
        `before` knows measurements of a map without reading the log; `kept` leaves out what counts little of a long
        one."""
        self.preset, self.promised, self._synthetic = preset, promised, synthetic
        self._domain, self._mode, self._prices, self._records = domain, mode, prices, records
        self._measurements = Measurements(domain)
        self._reconstructions = Reconstructions(domain, self._measurements)
        self._rents = Rents(domain, prices.empty_book)
        self._nodes = Nodes(domain)
        self._histograms = Histograms()
        self._partition_views = PartitionViews(domain, prices.empty_book)
        self._notes: QuestionNotes = MemoryNotes() if notes is None else notes
        self._horizon = horizon
        self._baselines: dict[str | None, Baseline] = {}  # by who pays
        self._noted: set[tuple[str, str, Goal]] = set()  # questions of this process, which need not be noted again
        self._before = before
        self._kept = records if kept is None else kept
        self._position = 0
        self._remembered: dict[tuple[object, ...], object] = {}
        self._lasting: dict[tuple[object, ...], object] = {}
        self._views: dict[tuple[str, int], Views] = {}  # of the log as it is, by analyst and what is left
        self._lock = threading.Lock()
        self._free = FreeViews.beside(self._reconstructions)
        self._unnoted: deque[tuple[PlanningRequest, Views]] = deque()  # answered while somebody else was planning

    @one_thread()
    def choose(self, request: PlanningRequest) -> Offer:
        """The offer to take; raises the refusal, which names a goal that would fit, where there is none."""
        if self.preset.family is not None:
            admit(self.preset.family, request)
        if self._lock.locked() and (free := self._free_meanwhile(request)) is not None:
            return free
        with self._lock:
            if (unread := self._known_unread(request)) is not None:
                return unread
            views = self._views_for(request)
            offer = choose(self.preset, request, views)
            if offer is None or not views.payable(offer):
                raise refusal(self.preset, request, views, offer)
            if not offer.same_rows:  # else it was noted when they were bought, or they were bought for something else
                self._note(request, views)
            return offer

    def _free_meanwhile(self, request: PlanningRequest) -> Offer | None:
        """What answers for nothing, found without waiting for whoever plans now: what would be chosen after that, too.

        Only proposers before all others are asked: a free offer of theirs ends every search.
        """
        first = tuple(takewhile(lambda proposer: proposer.reads_rows, self.preset.proposers))
        if not first or request.goal.kind is GoalKind.SPEND:
            return None
        if (unread := self._known_unread(request)) is not None:
            return unread
        with self._free.lock:
            self._free.advance(self._kept)
            views = self._free.instead_of(self._new_views(request.analyst, self._prices.left()))
            offer = choose(replace(self.preset, proposers=first), request, views)
        if offer is None or not offer.free:
            return None
        if not offer.same_rows and self.preset.plain is not None:
            self._unnoted.append((request, views))
        return offer

    def _known_unread(self, request: PlanningRequest) -> Offer | None:
        """What is found without reading the log: that the very rows of a question were measured before."""
        proposer, measurements = next(iter(self.preset.proposers), None), self._unread(request.workload.map)
        if measurements is None or proposer is None or not proposer.same_rows:
            return None
        views = replace(self._new_views(request.analyst, self._prices.left()), measurements=measurements, remembered={})
        offer = choose(replace(self.preset, proposers=(proposer,)), request, views)
        return offer if offer is not None and offer.free else None

    def _unread(self, queries: LinearMap) -> Measurements | None:
        """The measurements of one map, where the log has not been read yet, and something else knows them."""
        return None if self._before is None or self._position else self._before(queries)

    @one_thread()
    def explain(self, request: PlanningRequest) -> Explanation:
        if self.preset.family is not None:
            admit(self.preset.family, request)
        with self._lock:
            explanation = self._explained(replace(request, asked=replace(request.asked, explain=True)))
        if self.promised is None or not self._prices.shares():
            return explanation
        return replace(explanation, sharing=self.promised.short)

    @one_thread()
    def look(self, analyst: str, plan: Callable[[Views], Planned]) -> Planned:
        """What somebody else plans from the log as it is now, such as a synthetic table."""
        with self._lock:
            return plan(self.views(analyst))

    def _explained(self, request: PlanningRequest) -> Explanation:
        return explain(self.preset, request, self._views_for(request))

    def comparison(self, analyst: str | None) -> Comparison:
        """What is spent by the payer of the analyst's questions, and what plain noise would have spent on them.

        For the data owner, None, on everybody's. Without shares both are of this table alone.
        """
        with self._lock:
            baseline = self._baseline(analyst)
            return Comparison(
                questions=baseline.questions,
                spent=from_units(self._spent(analyst)),
                plain=from_units(baseline.apart),
                cached=from_units(baseline.spent()),
            )

    def save_baselines(self) -> None:
        """Keep what the questions so far add up to, so that a new process does not read all of them."""
        if self.preset.plain is not None:
            with self._lock:
                for payer in self._baselines or (None,):
                    self._baseline(payer).save()

    @one_thread()
    def measured_size(self, beta: float) -> float | None:
        """A number of rows that the truth falls short of with probability at most beta, if the log tells one."""
        if self.preset.family is not None:
            raise GoalError(NO_MEASURED_SIZE)
        if self._lock.locked():
            with self._free.lock:
                self._free.advance(self._kept)
                return measured_size(self._free.measurements, self._free.reconstructions, beta)
        with self._lock:
            unread = self._unread(ALL_ROWS)
            if unread is not None and ALL_ROWS.digest in unread.finest:
                return measured_size(unread, self._reconstructions, beta)
            self._advance()
            return measured_size(self._measurements, self._reconstructions, beta)

    def views(self, analyst: str = "") -> Views:
        """The log as it is now, ready for proposers, with the prices that the analyst would pay."""
        self._advance()
        # What is left falls also with purchases of others that this planner may not look at.
        key = (analyst, self._prices.left())
        if key not in self._views:
            self._views[key] = self._new_views(*key)
        return self._views[key]

    def _views_for(self, request: PlanningRequest) -> Views:
        """The views with what may be bought for later questions, if this one is asked now."""
        views = self.views(request.analyst)
        horizon = self._horizon if request.asked.horizon is None else request.asked.horizon
        if self.preset.plain is None or horizon is Horizon.MANY:
            return views
        investing = Investing(
            baseline=partial(self._baseline, request.analyst),
            question=partial(self._plainly, request, views),
            spent=partial(self._spent, request.analyst),
            one_off=horizon is Horizon.ONE_OFF,
        )
        return replace(views, investing=investing)

    def _plainly(self, request: PlanningRequest, views: Views, baseline: Baseline) -> AskedQuestion:
        """The question as plain noise would measure it."""
        plain = self.preset.plain
        return AskedQuestion(
            analyst=request.analyst,
            columns=self._domain.ordered(request.workload.map.attrs),
            plain=() if plain is None else baseline.cheapest(plain.measurements(request, views)),
            position=views.position,
        )

    def _note(self, request: PlanningRequest, views: Views) -> None:
        """Note a question that is answered, if plain noise would have measured anything for it."""
        identity = (request.analyst, request.workload.map.digest, request.goal)
        if self.preset.plain is None or identity in self._noted:
            return
        baseline = self._baseline(request.analyst)
        question = self._plainly(request, views, baseline)
        if baseline.missing(question.plain):
            self._notes.add(question)
        if len(self._noted) >= REMEMBERED:
            self._noted.clear()
        self._noted.add(identity)

    def _spent(self, analyst: str | None) -> int:
        """By the payer of what the analyst asks, in units of 2^-50: an account with a share, or the data set.

        Of the data set what questions about this table have spent, which is what the baseline is compared with.
        """
        prices = self._prices
        if analyst is not None and prices.shares():
            return prices.account(analyst).spent
        if not prices.further():
            return prices.spent() - prices.carried()
        own = prices.spent_by_table()[prices.table]
        return own - prices.carried() if prices.table == ROOT else own

    def _baseline(self, analyst: str | None) -> Baseline:
        """The baseline of the payer of what the analyst asks: an account, or the data set."""
        while self._unnoted:
            self._note(*self._unnoted.popleft())
        payer = analyst if self._prices.shares() else None
        if payer not in self._baselines:
            self._baselines[payer] = Baseline(self._prices.empty_book, self.preset.names, payer)
        self._baselines[payer].catch_up(self._notes, self._records)
        return self._baselines[payer]

    def _recently(self, analyst: str, columns: Columns) -> list[Measured]:
        """How plain noise would measure the last questions of the payer about exactly these columns."""
        return [] if self.preset.plain is None else self._baseline(analyst).recently(columns)

    def _new_views(self, analyst: str, left: int) -> Views:
        prices = self._prices
        views = Views(
            left=left,
            price=prices.price,
            domain=self._domain,
            mode=self._mode,
            version=self._measurements.version,
            position=self._position,
            measurements=self._measurements,
            reconstructions=self._reconstructions,
            rents=self._rents,
            nodes=self._nodes,
            sealed=prices.sealed() or 0,
            histograms=self._histograms,
            partition_measurements=self._partition_views,
            synthetic=self._synthetic,
            asked_at=self._notes.asked_at,
            recently=partial(self._recently, analyst),
            remembered=self._remembered,
            lasting=self._lasting,
        )
        if not prices.shares():
            return views
        return replace(
            views,
            analyst=analyst,
            left=prices.account(analyst).left,
            price=lambda events: prices.charge(events, analyst).account,
            total_left=left,
            total=lambda events: prices.charge(events, analyst).total,
        )

    def _advance(self) -> None:
        records = self._kept(self._position)
        if records or max(len(self._remembered), len(self._views)) > REMEMBERED:
            self._remembered, self._views = {}, {}
        for view in (self._measurements, self._rents, self._nodes, self._histograms):
            view.advance(records)
        if self._domain.partition is not None:
            self._partition_views.advance(records)
        self._position = records[-1].position if records else self._position
