"""Histograms learnt from the log: learning rates, the readiness heuristic (Boost, section 4.2), open sparse vectors.

A view of the log for the proposer `pmw`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import field
from functools import reduce
from itertools import product as combinations
from typing import Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting import Closed, Failed, Measured, Noise, Opened, Versioned
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Product, Steps
from bursar.lazy_dataclass import dataclass
from bursar.tails import half_width, single_tail
from bursar.views.histograms import MOST_BINS, Factored, Grids, Histogram, HistogramFactor, Names, QueryBins
from bursar.views.measurements import ALL_ROWS, products_of


class Schedule(Protocol):
    """How large a step to take. A value: it keeps no state, and two with equal settings are equal."""

    def rate(self, histogram: Histogram, bins: QueryBins) -> float: ...


@dataclass(frozen=True, kw_only=True)
class Decaying:
    """By the query's least updated bin: `rates` are (below how many updates, rate), then `last`.

    The published run: .25 below 50 updates, .0625 below 100, else .025. The paper prints ".25, decays to .025".
    """

    rates: tuple[tuple[int, float], ...] = ((50, 0.25), (100, 0.0625))
    last: float = 0.025

    def rate(self, histogram: Histogram, bins: QueryBins) -> float:
        least = histogram.least_updates(bins)
        return next((rate for below, rate in self.rates if least < below), self.last)


class Heuristic(Protocol):
    """ISHISTOGRAMREADY and PENALIZE of Algorithm 1. Free, as it looks at the histogram only. A value, as above."""

    @property
    def fewest(self) -> int:
        """How many updates a bin has at least before any query is ready."""

    def ready(self, histogram: Histogram, bins: QueryBins) -> bool:
        """Whether the estimate is likely to pass the test."""

    def failed(self, histogram: Histogram, bins: QueryBins) -> None:
        """A test that was thought to pass came out above."""

    def corrected(self, histogram: Histogram, bins: QueryBins) -> None:
        """The histogram has learnt from the answer that was bought after a failed test."""


@dataclass(frozen=True, kw_only=True)
class Adaptive:
    """Ready where every bin of the query was updated as often as its own threshold says.

    A failed test sets the thresholds of the query's bins to the least number of updates among them, plus `step`, as
    behind the figures of the paper. `first` is its C_0 and `step` its S_0. Thresholds never fall below `first`.

    Differs: Algorithm 1 penalises after the update (line 27); here at the failed test too, which stands in the log even
    if a crash kept the answer from being bought. Thresholds are set anew after the update, so they are the paper's.
    """

    first: int = 100
    step: int = 5

    @property
    def fewest(self) -> int:
        return self.first

    def ready(self, histogram: Histogram, bins: QueryBins) -> bool:
        if histogram.updates is None:
            return self.first <= 0
        if histogram.thresholds is None:
            return histogram.least_updates(bins) >= self.first
        thresholds = np.maximum(bins.of(histogram.thresholds), self.first)
        return bool(np.all(bins.of(histogram.updates) >= thresholds))

    def failed(self, histogram: Histogram, bins: QueryBins) -> None:
        self._raise(histogram, bins)

    def corrected(self, histogram: Histogram, bins: QueryBins) -> None:
        self._raise(histogram, bins)

    def _raise(self, histogram: Histogram, bins: QueryBins) -> None:
        if histogram.thresholds is None:
            histogram.thresholds = np.zeros(histogram.shape, np.int32)
        threshold = histogram.least_updates(bins) + self.step
        bins.put(histogram.thresholds, np.full(bins.of(histogram.thresholds).shape, threshold, np.int32))


MOST_LEARNT_ROWS = 1024
"""Measurements of more rows than this are not learnt from: there are better ways to reuse them."""

RECENT_ANSWERS = 64
"""How many of the last answers say how good the estimates are by now."""

Opening = tuple[Opened, int]
"""A sparse vector that could be opened, and its price."""

UNIFORM = HistogramFactor((), Histogram(()))
"""What is known of columns that were never asked about together."""


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How to learn from an answer R of a query q (Algorithm 1, lines 24 and 33), with n the number of rows.

        s = lr if R > n q(h) + tau alpha; -lr if R < n q(h) - tau alpha; else no update

    The log does not say which error alpha an answer was bought for. It is taken to be the error that the answer's noise
    keeps but for `beta`: with the constants behind the paper's figures that is alpha itself.
    """

    schedule: Schedule
    heuristic: Heuristic
    tau: float = 0.05
    beta: float = 0.001
    most_bins: int = MOST_BINS
    groups: tuple[Names, ...] = ()  # declared; none: columns are grouped as they are asked about

    def together(self, columns: Iterable[str]) -> bool:
        """Whether questions about these columns are learnt from: one declared group has them all, or none is declared.

        Edge cases: a column that no group has is a group by itself.
        """
        names = set(columns)
        return not self.groups or len(names) <= 1 or any(names.issubset(group) for group in self.groups)

    def margin(self, noise: Noise, *, failed: bool) -> float:
        """tau alpha, in rows; the same for an answer that was bought after a failed test."""
        return self.tau * half_width(noise, self.beta)


@dataclass(frozen=True, eq=False)
class _Answer:
    """One row of a product that was measured."""

    product: Product
    row: int
    value: int
    noise: Noise
    failed: bool


@dataclass(eq=False)
class Learner:
    """The histogram of one node, here of all the data: advanced record by record, in the order of the log.

    Guarantees: depends on `Measured`, `Failed` and `Versioned` records only, never on a test that passed, so it is the
    same after a restart. `live` are the sparse vectors that are open as far as the log tells.
    Edge cases: as long as nothing says how many rows there are, answers wait; they are learnt from in their order as
    soon as something does. Queries with negative values, of more columns than one histogram can hold, of columns of
    several declared groups, and blocks of more than 1,024 rows are not learnt from.
    """

    domain: Domain
    learning: Learning
    version: int = 0
    size: float | None = None  # the finest count of all rows
    live: dict[int, Opened] = field(default_factory=dict)
    recent: deque[tuple[float, Noise]] = field(
        default_factory=lambda: deque(maxlen=RECENT_ANSWERS)
    )  # |R - n q(h)|, R's noise
    openings: dict[Hashable, Opening] = field(default_factory=dict)  # of a planner, forgotten when the log grows
    misses: dict[int, float] = field(default_factory=dict)  # what `missed` has found, forgotten likewise
    grids: Grids = field(default_factory=dict)  # where the bins of queries are found; nodes of a tree share them
    _size_noise: Noise | None = None
    _waiting: list[_Answer] = field(default_factory=list)
    _failed: set[str] = field(default_factory=set)  # queries whose answer is still to come

    def __post_init__(self) -> None:
        self.histogram = Factored(self.domain, self.learning.most_bins, self.grids)

    def advance(self, records: Iterable[Record]) -> None:
        self.openings.clear()
        self.misses.clear()
        for record in records:
            match record.event:
                case Versioned(version=version):
                    self._forget(version)
                case Opened(version=self.version) as opened:
                    self.live[record.position] = opened
                case Failed(version=self.version, instance=instance, query=query):
                    self.live.pop(instance, None)
                    self.failed(query)
                case Closed(instance=instance):
                    self.live.pop(instance, None)
                case Measured(version=self.version) as measured:
                    self._take(measured, record)

    def count(self, query: Product) -> int:
        """The estimated count n q(h), a whole number; 0 as long as it is not known how many rows there are."""
        return round(max(self.size or 0.0, 0.0) * query.largest() * self.histogram.estimate(query))

    def ready(self, query: Product) -> bool:
        """What the heuristic says; a question that spans groups which were never asked together has not been learnt."""
        if not self.learning.together(query.attrs):
            return False
        factor = self.histogram.single(query.attrs)
        if factor is None:
            return self.learning.heuristic.ready(UNIFORM.histogram, UNIFORM.bins(ALL_ROWS))
        return self.learning.heuristic.ready(factor.histogram, factor.bins(query))

    def learn(self, answers: Iterable[tuple[Product, int]], noise: Noise) -> None:
        """The rows of one measurement; they wait where it is not known yet how many rows there are."""
        for query, value in answers:
            self._wait(query, [value], noise)
        self._learn_waiting()

    def failed(self, query: LinearMap) -> None:
        """A test that was above: the heuristic is told now, and what is bought next for the query is known for it."""
        self._failed.add(query.digest)
        factor = self._joined(query) if isinstance(query, Product) else None
        if factor is not None and isinstance(query, Product):
            self.learning.heuristic.failed(factor.histogram, factor.bins(query))

    def missed(self, error: int) -> float:
        """How often an estimate is off by `error` or more, going by the last answers that were bought; never 0 or 1.

        Of the k answers, with m of them so far from their estimates: (1 + (m - e)/(1 - e/k)) / (2 + k), with e the
        number that would be so far by their own noise alone.
        """
        if error not in self.misses:
            count = len(self.recent)
            alone = sum(single_tail(noise, error - 1) for _, noise in self.recent)
            beyond = sum(gap >= error for gap, _ in self.recent)
            excess = max(beyond - alone, 0.0) / (1 - alone / count) if alone < count else 0.0
            self.misses[error] = (1 + excess) / (2 + count)
        return self.misses[error]

    def _forget(self, version: int) -> None:
        """What was learnt of other data, and the sparse vectors over them, are of no use for a new version."""
        self.version = version
        self.size, self._size_noise = None, None
        self.histogram = Factored(self.domain, self.learning.most_bins, self.grids)
        for collection in (self.live, self.recent, self._waiting, self._failed):
            collection.clear()

    def _take(self, event: Measured, record: Record) -> None:
        finer = self._size_noise is None or event.noise.variance() <= self._size_noise.variance()
        if event.strategy.digest == ALL_ROWS.digest and finer:
            self.size, self._size_noise = float(record.values[0]), event.noise
        if event.strategy.rows <= MOST_LEARNT_ROWS:
            start, values = 0, record.values.tolist()
            for part in products_of(event.strategy):
                self._wait(part, values[start : start + part.rows], event.noise)
                start += part.rows
        self._learn_waiting()

    def _joined(self, query: Product) -> HistogramFactor | None:
        """The factor that learns from a query; None where none can, or groups are declared that it spans."""
        if not (learnable(query) and self.learning.together(query.attrs)):
            return None
        return self.histogram.join(query.attrs)

    def _wait(self, product: Product, values: Sequence[int], noise: Noise) -> None:
        """The rows of a product that can be learnt from wait until it is known how many rows of data there are."""
        rows = learnable_rows(product) if self.learning.together(product.attrs) else []
        if rows and self.histogram.join(product.attrs) is not None:
            self._waiting += [_Answer(product, row, values[row], noise, self._was_failed(product, row)) for row in rows]

    def _learn_waiting(self) -> None:
        if self.size is not None:
            for answer in self._waiting:
                self._learn(answer, self.size)
            self._waiting.clear()

    def _learn(self, answer: _Answer, size: float) -> None:
        factor = self.histogram.single(answer.product.attrs)
        assert factor is not None  # joined when it was taken
        bins, heuristic = factor.bins_of_rows(answer.product)[answer.row], self.learning.heuristic
        gap = answer.value - max(size, 0.0) * bins.largest * factor.histogram.estimate(bins)
        self.recent.append((abs(gap), answer.noise))
        if abs(gap) > self.learning.margin(answer.noise, failed=answer.failed):
            rate = self.learning.schedule.rate(factor.histogram, bins)
            factor.histogram.update(bins, math.copysign(rate, gap))
        if answer.failed:
            heuristic.corrected(factor.histogram, bins)

    def _was_failed(self, product: Product, row: int) -> bool:
        digest = product.row(row).digest if self._failed else ""
        if digest not in self._failed:
            return False
        self._failed.remove(digest)
        return True


def rows_of(strategy: LinearMap) -> list[Product]:
    """The rows of a strategy that is made of products, each by itself."""
    return [row for part in products_of(strategy) for row in _rows(part)]


def _rows(part: Product) -> list[Product]:
    """The rows of a product; those that share a row of a mask share the mask, which is made once."""
    if part.rows == 1:
        return [part]
    masks = [[mask] if mask.rows == 1 else [mask.take([row]) for row in range(mask.rows)] for mask in part.masks]
    return [Product(picked) for picked in combinations(*masks)]


def most_updates(strategy: LinearMap) -> int:
    """More often than this no bin is updated by what is learnt from a measurement."""
    return 0 if strategy.rows > MOST_LEARNT_ROWS else sum(norm.largest() for norm in strategy.norms(1))


def learnable(query: Product) -> bool:
    """Whether a query of one row can be learnt from."""
    return bool(learnable_rows(query))


def learnable_rows(product: Product) -> list[int]:
    """The rows that have values of one sign, not all zero: divided by the largest they lie in [0, 1]."""
    if product.attrs == ():
        return []
    good = reduce(np.logical_and.outer, [_one_sign(mask.steps) for mask in product.masks])
    rows: list[int] = np.flatnonzero(good).tolist()
    return rows


def _one_sign(steps: Steps) -> NDArray[np.bool_]:
    """Of each row, whether it has values above zero, and none below."""
    lowest, highest = np.zeros((2, steps.rows), np.int64)
    np.minimum.at(lowest, steps.owner, steps.levels)
    np.maximum.at(highest, steps.owner, steps.levels)
    return np.asarray((lowest >= 0) & (highest > 0))


class Advanced(Protocol):
    """A view of the log."""

    def advance(self, records: Iterable[Record]) -> None: ...


View = TypeVar("View", bound=Advanced)


@dataclass
class Histograms:
    """Learnt histograms by their settings, advanced when they are asked for.

    Keeps the records of the current version and advances a view only when it is asked for.

    Guarantees: a view has seen every record of the version, in the order of the log, whenever it was first asked for.
    """

    records: list[Record] = field(default_factory=list)
    views: dict[Hashable, tuple[int, Advanced]] = field(default_factory=dict)  # each with how many records it has seen
    counted: tuple[int, int] = (0, 0)  # how often a bin may have been updated by so many records

    def advance(self, records: Iterable[Record]) -> None:
        for record in records:
            if isinstance(record.event, Versioned):
                self.records.clear()  # what was learnt of other data is of no use
                self.views.clear()
                self.counted = (0, 0)
            self.records.append(record)

    def most_updates(self, enough: int) -> int:
        """More often than this no bin of any view was updated, or at least `enough`; found without learning."""
        seen, updates = self.counted
        while seen < len(self.records) and updates < enough:
            event, seen = self.records[seen].event, seen + 1
            updates += most_updates(event.strategy) if isinstance(event, Measured) else 0
        self.counted = (seen, updates)
        return updates

    def of(self, key: Hashable, make: Callable[[], View]) -> View:
        """The view that stands under a key, made if there is none; equal keys mean equal views."""
        seen, standing = self.views.get(key, (0, None))
        view = make() if standing is None else cast(View, standing)  # equal keys mean equal views, of one kind
        if seen < len(self.records):
            view.advance(self.records[seen:])
        self.views[key] = (len(self.records), view)
        return view
