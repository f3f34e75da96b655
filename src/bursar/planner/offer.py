"""Offers: a price, an error to expect, and a plan that calls kernel verbs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import field, replace
from typing import ClassVar, Generic, Protocol, TypeVar, cast

import numpy as np

from bursar.answer import OfferFacts
from bursar.arrays import Integers, Reals
from bursar.compile.open_columns import tells_no_more
from bursar.core.accounting import Event, Measured, Mode, Selected
from bursar.core.domain import Domain
from bursar.core.extensions.open_keys import OpenText
from bursar.core.extensions.partitions import looked_at
from bursar.core.queries import LinearMap, Stack
from bursar.errors import BudgetError
from bursar.estimation.estimate import ErrorLaw, Estimate, error_bars, meets
from bursar.estimation.least_squares import EXACT_TOTAL, EXACT_TOTAL_GAUSSIAN
from bursar.goal import Goal, GoalKind
from bursar.lazy_dataclass import dataclass
from bursar.planner.grant import Verbs
from bursar.planner.request import PlanningRequest
from bursar.views.baseline import Investing
from bursar.views.learner import Histograms
from bursar.views.measurements import ALL_ROWS, Measurements, Reconstructions, Rents
from bursar.views.nodes import Nodes
from bursar.views.partition_measurements import PartitionViews
from bursar.views.question_notes import Columns


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a plan would add to what is spent: its events, and bounds in units of 2^-50."""

    events: tuple[Event, ...] = ()
    at_most: int = 0  # of the payer: the analyst's account under shares, else the data set
    total: int | None = None  # of the data set, where an account pays


Result = TypeVar("Result", covariant=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class PricedPlan(ABC, Generic[Result]):
    """One way to do what is asked. `run` is given the kernel's verbs; a free plan calls none."""

    proposer: str
    price: Price
    run: Callable[[Verbs], Result]
    reuses: int = 0  # rows of the log
    buys: int = 0  # rows to be measured
    note: str = ""
    credit: int = 0  # units of 2^-50 that it may bid below its price, for what it will save later
    rows_for_later: int = 0  # that its credit is for; 0 where that is for something else

    @property
    def free(self) -> bool:
        """Whether it uses up nothing: no account's budget, and not the data set's."""
        return self.price.at_most == 0 and self.price.total in (None, 0)

    @property
    def bid(self) -> int:
        """What the offer competes with, in units of 2^-50; below zero where the credit exceeds the price."""
        return self.price.at_most - self.credit

    @property
    def label(self) -> str:
        """What EXPLAIN calls it."""
        return self.proposer

    @abstractmethod
    def widest(self, goal: Goal) -> float:
        """The largest error to expect, in the words of the goal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Offer(PricedPlan[Estimate]):
    """One way to answer a request."""

    law: ErrorLaw
    by_name: bool = False  # taken only where the asker names it: what it promises is not what a goal asks for
    same_rows: bool = False  # whether the very rows of the question were measured before, as exactly

    def widest(self, goal: Goal) -> float:
        """The largest half-width of its error bars at the goal's confidence.

        Where rows have wider bars than the goal, and yet what they are for is exact enough, what was asked for.
        """
        widest = float(error_bars(self.law, goal).max(initial=0.0))
        return goal.amount if goal.derived is not None and widest > goal.amount and meets(self.law, goal) else widest

    @property
    def facts(self) -> OfferFacts:
        """What an answer says about where it came from."""
        return {"source": self.proposer, "note": self.note, "reused": self.reuses, "bought": self.buys}


def from_log(estimate: Estimate, verbs: Verbs) -> Estimate:
    """The run of an offer that buys nothing: what it answers with follows from the log."""
    return estimate


Remembered = TypeVar("Remembered")
AnyOffer = TypeVar("AnyOffer", bound=PricedPlan[object])


@dataclass(frozen=True, kw_only=True)
class Views:
    """What a proposer may look at: public facts and the log. Never the data."""

    domain: Domain
    mode: Mode
    version: int
    position: int  # of the last record of the log
    left: int  # what the payer may still spend, in units of 2^-50
    measurements: Measurements
    reconstructions: Reconstructions
    rents: Rents
    nodes: Nodes
    histograms: Histograms
    partition_measurements: PartitionViews
    price: Callable[[tuple[Event, ...]], int]  # what the payer would be charged
    analyst: str | None = None  # whose account pays; None where there are no shares, and the data set pays
    total_left: int = 0  # what the data set may still spend, where an account pays
    total: Callable[[tuple[Event, ...]], int] | None = None  # what the data set would be charged, where an account pays
    synthetic: Callable[[], SyntheticRows | None] = lambda: None  # the synthetic table that is kept, if there is one
    asked_at: Callable[[str, str], Sequence[int]] = lambda analyst, digest: ()  # where in the log a map was asked about
    recently: Callable[[Columns], Sequence[Measured]] = (
        lambda columns: ()
    )  # how plain noise would measure what was asked
    sealed: int = 0  # how many partitions can be asked about, where the data have any
    investing: Investing | None = None  # what may be bought for later questions; None where anything may
    rivals: Sequence[Offer] = ()  # what others have offered so far that keeps the goal; none where all is to be seen
    remembered: dict[tuple[object, ...], object] = field(default_factory=dict)  # by what was computed of this very log
    lasting: dict[tuple[object, ...], object] = field(default_factory=dict)  # what is the same however the log grows

    def slack(self, events: tuple[Event, ...], more: tuple[Event, ...]) -> bool:
        """Whether `more` costs nothing beside the events: neither the payer, nor the data set."""
        both = (*events, *more)
        spare = self.total is None or self.total(both) <= self.total(events)
        return spare and self.price(both) <= self.price(events)

    def free_total(self) -> Measured | None:
        """The exact number of rows as a purchase, where it is public and so costs nothing; None elsewhere.

        The kernel's price decides: it is zero where rows are replaced, and epsilon 64 or rho 512 where they are not.
        That does not change with the log: the loss is the same in every cell, so it raises the largest by all of it.
        Edge cases: None where the log has it already, and where partitions hide it.
        """
        if self.measurements.total is not None or self.domain.partition is not None:
            return None
        noise = EXACT_TOTAL if self.mode is Mode.PURE else EXACT_TOTAL_GAUSSIAN
        event = Measured(strategy=ALL_ROWS, noise=noise, version=self.version)
        key = Views.free_total, self.analyst
        if key not in self.lasting:
            self.lasting[key] = self._costs_nothing(event)
        return event if self.lasting[key] else None

    def _costs_nothing(self, event: Measured) -> bool:
        try:
            return self.price((event,)) == 0 and (self.total is None or self.total((event,)) == 0)
        except BudgetError:  # dearer than any budget, so by no means free
            return False

    def remember(self, key: tuple[object, ...], compute: Callable[[], Remembered]) -> Remembered:
        """What was computed of this very log under the same key before, or else what is computed now."""
        if key not in self.remembered:
            self.remembered[key] = compute()
        return cast(Remembered, self.remembered[key])

    def public_total(self) -> PublicTotal | None:
        """None where the log does not have the number of rows and it would cost something, as under add-remove."""
        value, event = self.measurements.total, self.free_total()
        return None if value is None and event is None else PublicTotal(value=value, event=event)

    def credit(self, price: int, credit: int) -> int:
        """What an offer may bid below its price: nothing, where the price may not be spent for later questions."""
        return credit if self.investing is None or self.investing.allows(price) else 0

    def buying_nothing_ahead(self) -> Views:
        """The same where nothing may be bought for later questions."""
        return self if self.investing is None else replace(self, investing=replace(self.investing, one_off=True))

    def payable(self, offer: PricedPlan[object]) -> bool:
        """Whether what is left can pay for an offer: of the account, and of the data set."""
        price = offer.price
        return price.at_most <= self.left and (price.total is None or price.total <= self.total_left)

    def price_share(self, offer: PricedPlan[object]) -> float:
        """About the price of an offer over what is left, of the account or of the data set, whichever is more."""
        pairs = ((offer.price.at_most, self.left), (offer.price.total or 0, self.total_left))
        return max(needed / left if left > 0 else math.inf if needed else 0.0 for needed, left in pairs)

    def possible(self, offer: PricedPlan[object], queries: LinearMap | None = None) -> bool:
        """Whether an offer looks at sealed partitions only, and tells no texts of open columns apart but those that the
        queries tell apart; the kernel refuses anything else."""
        events = offer.price.events
        maps = [event.strategy for event in events if isinstance(event, Measured)]
        maps += [event.candidates for event in events if isinstance(event, Selected)]
        sealed = all(looked_at(strategy, self.domain) <= self.sealed for strategy in maps)
        if queries is None or not any(isinstance(column, OpenText) for column in self.domain.attributes):
            return sealed
        return sealed and tells_no_more(maps, queries, self.domain)

    def completed(self, offer: AnyOffer) -> AnyOffer:
        """The offer with the data set's price beside the account's."""
        if self.total is None:
            return offer
        return replace(offer, price=replace(offer.price, total=self.total(offer.price.events)))


@dataclass(frozen=True, kw_only=True)
class PublicTotal:
    """The exact number of rows, where everybody may know it: as it stands in the log, or a free purchase."""

    value: int | None
    event: Measured | None

    @property
    def events(self) -> tuple[Measured, ...]:
        """What has to be bought, for nothing."""
        return () if self.event is None else (self.event,)

    def values(self, verbs: Verbs) -> Integers:
        """The number, bought where it has to be."""
        if self.event is not None:
            return verbs.measure(self.event.strategy, self.event.noise).values
        return np.array([self.value], np.int64)


class SyntheticRows(Protocol):
    """A table made of noisy values alone. What it answers costs nothing; how exact that is, is another matter."""

    @property
    def note(self) -> str:
        """Which table it is."""

    def answers(self, queries: LinearMap) -> Reals | None:
        """The rows of a map on the table, in rows of the data; None where it cannot be asked that."""

    def estimate(self, queries: LinearMap) -> Estimate | None:
        """What measured marginals say themselves, where they say it."""

    def unmeasured(self, queries: LinearMap) -> tuple[str, ...]:
        """Columns that a question ties together and that were never measured together."""


ACCURACIES = (GoalKind.ERROR, GoalKind.RMSE)
GAUSSIAN_MODES = (Mode.CONCENTRATED, Mode.RENYI)


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What a proposer can answer at all, told by the request and public facts: about anything else it is not asked."""

    goals: Collection[GoalKind] = tuple(GoalKind)
    modes: Collection[Mode] = tuple(Mode)
    partitions: bool = False  # only where the data are in partitions
    above_cells: int = 0  # only about columns of more joint cells than this
    several: bool = False  # only several questions at once, or one of several parts or numbers
    kept_table: bool = False  # only where a synthetic table is kept

    def covers(self, request: PlanningRequest, views: Views) -> bool:
        """Whether a request is one that the proposer may have offers for."""
        queries = request.workload.map
        return (
            request.goal.kind in self.goals
            and views.mode in self.modes
            and (not self.partitions or views.domain.partition is not None)
            and (not self.above_cells or views.domain.cells(queries.attrs) > self.above_cells)
            and (not self.several or request.several or isinstance(queries, Stack))
            and (not self.kept_table or views.synthetic() is not None)
        )


class Proposer(Protocol):
    """One way to answer questions. `offers` may return nothing."""

    name: str
    scope: Scope = Scope()
    any_map: ClassVar[bool] = False  # asked about thresholds and about very many numbers too
    same_rows: ClassVar[bool] = False  # looks at nothing but records that measured the very rows of a question
    reads_rows: ClassVar[bool] = False  # looks at nothing but measurements and reconstructions, and has no state
    by_name: ClassVar[bool] = False  # the only one that is asked where the asker wants the synthetic table
    design: str | None = None  # the strategy that it is for, which nobody gets who does not name it

    @abstractmethod
    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        """What it would do about a question, for which price and with which error; computed from the log alone."""


class PlainNoise(Protocol):
    """Measures the question itself: what rows for later questions are held against."""

    @abstractmethod
    def measurements(self, request: PlanningRequest, views: Views) -> list[tuple[Measured, ...]]:
        """The measurements of each way to do so. They are not priced: a free answer is noted with them as well."""
