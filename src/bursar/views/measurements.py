"""Measurements by strategy and by column set, reconstructions over them, and rents: views of the log.

Views are built lazily, advanced record by record, and free.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace

import numpy as np

from bursar.arrays import Integers
from bursar.core.accounting import Book, Measured, Noise, Refined, Versioned
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.queries import Distinct, LinearMap, Mask, PerPerson, Predicate, Product, Stack, Transform
from bursar.errors import QueryError
from bursar.estimation.estimate import Estimate, meets
from bursar.estimation.least_squares import Block, Finer, Reconstruction
from bursar.estimation.sine_columns import SineColumn
from bursar.goal import Goal
from bursar.lazy_dataclass import dataclass
from bursar.tails import half_width

Columns = tuple[str, ...]

MOST_RECONSTRUCTION_BYTES = 1024 * 2**20
"""How much memory reconstructions may take; those not asked for longest go first. With less, two sets of columns of a
long log drive each other out, and each question adds up the log anew."""

MOST_STATE_BYTES = MOST_RECONSTRUCTION_BYTES // 2
"""How much those of one set of columns may take, so that two sets have room: the oldest that do not fit go first."""

MOST_COLUMN_SETS = 4
"""How many column sets, the smallest first, are tried for one question."""

INVESTS = "invest"
"""The proposer whose rows are for all questions about some columns."""

MOST_EARLIER = 8
"""How many records after a question was planned may be its own; and how many of its own are looked at, the latest."""

REMEMBERED_EARLIER = 256
"""Most answers of an earlier log that are remembered: they do not change."""

MOST_FURTHER = 8
"""How many reconstructions there are of what does not fit into that of everything, the latest ones."""


@dataclass
class Measurements:
    """What has been measured on the current version of the data, by strategy and by column set."""

    domain: Domain
    finest: dict[str, Record] = field(default_factory=dict)  # strategy digest -> its most accurate measurement
    partly_finer: dict[str, Record] = field(default_factory=dict)  # as bought; some of their rows were refined since
    blocks: dict[Columns, list[Block | Finer]] = field(default_factory=dict)
    lines: dict[str, dict[str, SineColumn]] = field(default_factory=dict)  # column -> transform digest -> the finest
    bought_for: dict[str, list[int]] = field(default_factory=dict)  # digest of a question's text -> its records
    version: int = 0
    seen: int = 0  # how many records there were
    above: dict[Columns, list[Columns]] = field(default_factory=dict)  # what `sets_above` has found in these records

    def advance(self, records: Iterable[Record]) -> None:
        for record in records:
            event, self.seen = record.event, self.seen + 1
            self.above.clear()
            if isinstance(event, Versioned):
                self.version = event.version
                self.finest.clear()  # rows are reused within their version only
                self.partly_finer.clear()
                self.blocks.clear()
                self.lines.clear()
                self.bought_for.clear()
            elif isinstance(event, Measured | Refined) and event.version == self.version:
                self.bought_for.setdefault(record.question, []).append(record.position)
                if isinstance(event, Measured):
                    self._take(event, record)
                else:
                    self._refine(event, record)

    def with_records(self, records: Iterable[Record]) -> Measurements:
        """These and some more, in an object of its own."""
        longer = Measurements(
            self.domain,
            finest=dict(self.finest),
            partly_finer=dict(self.partly_finer),
            blocks={columns: list(blocks) for columns, blocks in self.blocks.items()},
            lines={column: dict(lines) for column, lines in self.lines.items()},
            bought_for={question: list(positions) for question, positions in self.bought_for.items()},
            version=self.version,
            seen=self.seen,
        )
        longer.advance(records)
        return longer

    def _take(self, event: Measured, record: Record) -> None:
        digest = event.strategy.digest
        finest = self.finest.get(digest)
        if finest is None or event.noise.variance() < noise_of(finest).variance():
            self.finest[digest] = record
            line = SineColumn.of(record) if isinstance(event.strategy, Transform) else None
            if line is not None:
                self.lines.setdefault(line.transform.column, {})[digest] = line
        start = 0
        for product in products_of(event.strategy):
            columns = self.domain.ordered(product.attrs)
            values = record.values[start : start + product.rows]
            block = Block(product, values, event.noise, record.position, start, record.proposer == INVESTS)
            self.blocks.setdefault(columns, []).append(block)
            start += product.rows

    def _refine(self, event: Refined, record: Record) -> None:
        digest = event.measured.digest
        finest, partly = self.finest.get(digest), self.partly_finer.get(digest)
        if finest is not None and finest.position == event.block:
            if len(event.rows) == event.measured.rows:
                whole = Measured(strategy=event.measured, noise=event.after, version=event.version)
                self.finest[digest] = replace(finest, event=whole, values=record.values)
            else:  # its rows have different noise now: least squares knows them
                self.partly_finer[digest] = _with_finer(self.finest.pop(digest), event.rows, record.values)
        elif partly is not None and partly.position == event.block:
            self.partly_finer[digest] = _with_finer(partly, event.rows, record.values)
        start = 0
        for product in products_of(event.measured):
            inside = (start <= event.rows) & (event.rows < start + product.rows)
            if np.any(inside):
                finer = Finer(event.block, event.rows[inside], record.values[inside], event.after, record.position)
                self.blocks.setdefault(self.domain.ordered(product.attrs), []).append(finer)
            start += product.rows

    @property
    def total(self) -> int | None:
        """The number of rows, where the log has it with next to no noise."""
        record = self.finest.get(ALL_ROWS.digest)
        exact = record is not None and Block(ALL_ROWS, record.values, noise_of(record)).exact_total
        return int(record.values[0]) if record is not None and exact else None

    def sets_above(self, columns: Columns) -> list[Columns]:
        """Column sets whose joint cells could determine a question on `columns`, the smallest domain first."""
        if columns not in self.above:
            names_asked = set(columns)
            above = [measured for measured in self.blocks if names_asked.issubset(measured)]
            ordered = sorted(dict.fromkeys([columns, *above]), key=lambda names: (self.domain.cells(names), names))
            self.above[columns] = ordered
        return self.above[columns]


@dataclass
class ReconstructionState:
    """A reconstruction, and how much of the log is in it.

    What does not fit, because the cells that everything together tells apart are too many, stands by itself: a question
    that was paid for must be free when it is asked again, whatever else was measured.
    """

    version: int
    reconstruction: Reconstruction
    further: list[Reconstruction] = field(default_factory=list)  # of what did not fit, the latest last
    taken: dict[Columns, int] = field(default_factory=dict)  # blocks by column set
    seen: int = 0  # records of the log

    def take(self, news: Sequence[Block | Finer]) -> None:
        """Take in what the log has next."""
        untaken = news
        for reconstruction in (self.reconstruction, *self.further[-1:]):
            untaken = _left(untaken, reconstruction.take(untaken))
        for reconstruction in self.further[:-1]:
            reconstruction.refine([finer for finer in news if isinstance(finer, Finer)])
        while blocks := sum(isinstance(each, Block) for each in untaken):
            reconstruction = Reconstruction(self.reconstruction.domain, self.reconstruction.columns)
            left_out = reconstruction.take(untaken)
            if len(left_out) == blocks:
                break
            self.further = [*self.further, reconstruction][-MOST_FURTHER:]
            untaken = _left(untaken, left_out)
        while self.further and self.bytes > MOST_STATE_BYTES:
            self.further = self.further[1:]

    def copy(self) -> ReconstructionState:
        """A state of its own that knows the same; cheap, since arrays are shared."""
        further = [each.copy() for each in self.further]
        return ReconstructionState(self.version, self.reconstruction.copy(), further, dict(self.taken), self.seen)

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return self.reconstruction.bytes + sum(each.bytes for each in self.further)


def _since(block: Block | Finer) -> int:
    """The position of the record that tells it."""
    return block.since if isinstance(block, Finer) else block.position


def _left(news: Sequence[Block | Finer], left_out: Sequence[Block]) -> list[Block | Finer]:
    """Blocks that were left out, in their order, and whatever makes blocks finer."""
    identities = set(map(id, left_out))
    return [each for each in news if isinstance(each, Finer) or id(each) in identities]


@dataclass
class Reconstructions:
    """One reconstruction per column set in use, each advanced only when it is asked.

    Where two threads have reconstructions of one log, what one of them has taken in the other need not: `shared` has a
    copy of each state that is never changed.
    """

    domain: Domain
    measurements: Measurements
    shared: dict[Columns, ReconstructionState] = field(default_factory=dict)
    states: OrderedDict[Columns, ReconstructionState] = field(default_factory=OrderedDict)
    sizes: dict[Columns, int] = field(default_factory=dict)  # about how much memory they take
    remembered: dict[tuple[object, ...], Estimate | None] = field(default_factory=dict)  # what `earlier` has found

    def earlier(
        self, queries: LinearMap, goal: Goal, *, bought_at: Sequence[int], asked_at: Sequence[int]
    ) -> Estimate | None:
        """What keeps a goal of what the log said after each record bought for the queries, or when they were asked.

        Least squares over more rows has less variance, and yet sometimes a larger tail: what kept a goal once may not
        keep it with all that was measured since, or beside it. What the first rows say alone is as right as it was.
        """
        key = (self.measurements.version, queries.digest, goal, tuple(bought_at), tuple(asked_at))
        if key not in self.remembered:
            if len(self.remembered) >= REMEMBERED_EARLIER:
                self.remembered.clear()
            sets = self.measurements.sets_above(self.domain.ordered(queries.attrs))[:MOST_COLUMN_SETS]
            estimates = (estimate for names in sets for estimate in self._earlier(queries, names, bought_at, asked_at))
            self.remembered[key] = next(
                (each for each in estimates if each is not None and meets(each.law, goal)), None
            )
        return self.remembered[key]

    def _earlier(
        self, queries: LinearMap, names: Columns, bought_at: Sequence[int], asked_at: Sequence[int]
    ) -> Iterator[Estimate | None]:
        within = [some for columns, some in self.measurements.blocks.items() if set(columns) <= set(names)]
        blocks = sorted((block for some in within for block in some), key=_since)
        places = np.array([_since(block) for block in blocks], np.int64)
        ends = set(np.searchsorted(places, bought_at[-MOST_EARLIER:], side="right").tolist())
        positions = set(bought_at)
        for end in np.searchsorted(places, asked_at[-MOST_EARLIER:], side="right").tolist():
            last = min(end + MOST_EARLIER, len(blocks))
            ends.update(range(end, last + 1))
            positions.update(places[end:last].tolist())
        bought = [block for block in blocks if isinstance(block, Block) and block.position in positions]
        state, start = ReconstructionState(self.measurements.version, Reconstruction(self.domain, names)), 0
        for end in sorted(ends - {0}):
            state.take(blocks[start:end])
            yield from (reconstruction.answer(queries) for reconstruction in (state.reconstruction, *state.further))
            start = end
        # what was bought may fit elsewhere as well
        for reconstruction in (Reconstruction(self.domain, names), *state.further):
            here = set(reconstruction.origins[:, 0].tolist())
            reconstruction.take([block for block in bought if block.position not in here])
            yield reconstruction.answer(queries)

    def over_log(self, measurements: Measurements) -> Reconstructions:
        """Reconstructions of a log that begins with this one; these stay as they are."""
        return Reconstructions(self.domain, measurements, dict(self.shared))

    def over(self, queries: LinearMap) -> Iterator[Reconstruction]:
        """Reconstructions that might determine the queries."""
        columns = self.domain.ordered(queries.attrs)
        for names in self.measurements.sets_above(columns)[:MOST_COLUMN_SETS]:
            for reconstruction in (self.on(names), *self.states[names].further):
                if reconstruction.noises:
                    yield reconstruction

    def on(self, names: Columns) -> Reconstruction:
        """What is known about the joint cells of these columns; to be copied by those who want to change it."""
        state, log = self._latest(names), self.measurements
        self.states.move_to_end(names)
        if state.seen == log.seen:
            return state.reconstruction
        below = [columns for columns in log.blocks if set(columns).issubset(names)]
        state.take([block for columns in below for block in log.blocks[columns][state.taken.get(columns, 0) :]])
        state.taken = {columns: len(log.blocks[columns]) for columns in below}
        state.seen = log.seen
        self.shared[names], self.sizes[names] = state.copy(), state.bytes
        while len(self.states) > 1 and sum(self.sizes.values()) > MOST_RECONSTRUCTION_BYTES:
            oldest, _ = self.states.popitem(last=False)
            del self.sizes[oldest]
            self.shared.pop(oldest, None)
        return state.reconstruction

    def _latest(self, names: Columns) -> ReconstructionState:
        """The own state, or that of the other thread where it knows more of this log; an empty one where there is none.

        Edge cases: one that knows more than the own measurements is not for this thread yet.
        """
        state, log, other = self.states.get(names), self.measurements, self.shared.get(names)
        seen = -1 if state is None or state.version != log.version else state.seen
        if other is not None and other.version == log.version and seen < other.seen <= log.seen:
            self.states[names] = other.copy()
            self.sizes[names] = other.bytes
        elif seen < 0:
            self.states[names] = ReconstructionState(log.version, Reconstruction(self.domain, names))
            self.sizes[names] = 0
        return self.states[names]


def products_of(strategy: LinearMap) -> tuple[Product, ...]:
    """The products that a strategy is made of; none where it has rows of another kind too."""
    parts = strategy.parts if isinstance(strategy, Stack) else (strategy,)
    products = tuple(part for part in parts if isinstance(part, Product))
    return products if len(products) == len(parts) else ()


def joined(maps: Iterable[LinearMap]) -> Stack:
    """The products of all of the maps, each once.

    Edge cases: a predicate cannot be joined with anything, and is refused.
    """
    maps = list(maps)
    for queries in maps:
        if isinstance(queries, Distinct | PerPerson):
            raise QueryError("what counts people or values once is asked by itself, not in a batch")
        if isinstance(queries, Predicate):
            raise QueryError(
                f"a count that ties {' and '.join(queries.attrs)} together is asked by itself, not in a batch"
            )
    products = {product.digest: product for each in maps for product in products_of(each)}
    return Stack(tuple(products.values()))


def _with_finer(record: Record, rows: Integers, values: Integers) -> Record:
    """A measurement some of whose rows are known more exactly than its noise says."""
    whole = record.values.copy()
    whole[rows] = values
    return replace(record, values=whole)


def noise_of(record: Record) -> Noise:
    """The noise of a record that is a measurement."""
    assert isinstance(record.event, Measured)
    return record.event.noise


ALL_ROWS = Product(())
"""The one query that counts everything."""


def measured_size(measurements: Measurements, reconstructions: Reconstructions, beta: float) -> float | None:
    """A number that the true size falls short of with probability at most beta; None where nothing tells it."""
    record = measurements.finest.get(ALL_ROWS.digest)
    if record is not None:
        return float(record.values[0]) - half_width(noise_of(record), beta)
    estimates = [reconstruction.answer(ALL_ROWS) for reconstruction in reconstructions.over(ALL_ROWS)]
    determined = [estimate for estimate in estimates if estimate is not None]
    if not determined:
        return None
    best = min(determined, key=lambda estimate: estimate.law.mean_square())
    return float(best.values[0] - best.law.half_widths(beta)[0])


Rule = Callable[[LinearMap], bool]


@dataclass
class Rents:
    """What questions about some columns have cost since rows for more than one question were bought (ski rental).

    A view of the log: per column set, the loss of the events on these columns or fewer, taken by themselves.
    """

    domain: Domain
    empty_book: Callable[[], Book]
    events: list[tuple[frozenset[str], Measured | Refined, str]] = field(default_factory=list)  # with who bought them
    books: dict[tuple[Columns, str], tuple[int, Book]] = field(default_factory=dict)
    rises: dict[Columns, tuple[int, Book, int]] = field(default_factory=dict)
    exact_books: dict[Columns, tuple[int, Book]] = field(default_factory=dict)
    said: dict[tuple[Rule, str], bool] = field(default_factory=dict)  # by rules, of strategies that were measured
    measured: dict[frozenset[str], None] = field(default_factory=dict)  # the column sets, in the order of the log

    def advance(self, records: Iterable[Record]) -> None:
        for record in records:
            if isinstance(record.event, Versioned):
                self.events.clear()  # what was bought on other data answers nothing now
                self.books.clear()
                self.rises.clear()
                self.exact_books.clear()
                self.measured.clear()
            elif isinstance(record.event, Measured | Refined):
                columns = frozenset(record.event.strategy.attrs)
                self.events.append((columns, record.event, record.proposer))
                self.measured[columns] = None

    def sets(self) -> list[frozenset[str]]:
        """The column sets that were ever measured on this version."""
        return list(self.measured)

    def since(self, columns: Columns, name: str, owned: Rule, shared: Rule | None = None) -> int:
        """What was spent on the columns since rows that are `owned` were last bought on them, in units of 2^-50.

        Rows that are `shared` are no rent: they were bought for more than one question themselves. Nor are counts of
        every value of fewer columns: they leave nothing to ask about those, and tell nothing about more columns.
        One name stands for one pair of rules: what was counted under it is not counted again.
        """
        start, book = self.books.get((columns, name), (0, None))
        book = self.empty_book() if book is None else book
        for measured, event, _ in self.events[start:]:
            if not measured.issubset(columns):
                continue
            if owned(event.strategy):
                book = self.empty_book()
            elif len(measured) < len(columns) and self._says(self._every_value, event.strategy):
                continue
            elif shared is None or not self._says(shared, event.strategy):
                book.add(event)
        self.books[columns, name] = (len(self.events), book)
        return book.spent()

    def spent_on(self, columns: Columns) -> int:
        """What was spent on exactly these columns, as if nothing else had been bought, in units of 2^-50."""
        start, book = self.exact_books.get(columns) or (0, self.empty_book())
        for measured, event, _ in self.events[start:]:
            if len(measured) == len(columns) and measured.issubset(columns):
                book.add(event)
        self.exact_books[columns] = (len(self.events), book)
        return book.spent()

    def risen(self, columns: Columns, shared: Rule) -> int:
        """By how much single questions raised what is spent on the columns since rows for many were bought on them.

        Unlike `since`, what fitted into the slack of earlier purchases is no rent.
        """
        start, book, rent = self.rises.get(columns) or (0, self.empty_book(), 0)
        for measured, event, proposer in self.events[start:]:
            if not measured.issubset(columns):
                continue
            before = book.spent()
            book.add(event)
            if proposer == INVESTS and len(measured) == len(columns):
                rent = 0
            elif not self._says(shared, event.strategy):
                rent += book.spent() - before
        self.rises[columns] = (len(self.events), book, rent)
        return rent

    def _says(self, rule: Rule, strategy: LinearMap) -> bool:
        """What a rule says of a strategy, which may have been measured many times."""
        key = (rule, strategy.digest)
        if key not in self.said:
            self.said[key] = rule(strategy)
        return self.said[key]

    def _every_value(self, strategy: LinearMap) -> bool:
        """Whether a measurement has as many rows as its columns have values, or combinations, and tells all apart."""

        def complete(mask: Mask) -> bool:
            values = math.prod(self.domain[name].declared for name in mask.attrs)
            return min(mask.rows, len(mask.steps.breaks())) >= values

        return any(
            set(product.attrs) == set(strategy.attrs) and all(map(complete, product.masks))
            for product in products_of(strategy)
        )
