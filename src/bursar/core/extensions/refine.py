"""Refinement: finer Laplace noise for rows that were measured before; see `refine.proof.md`.

Event, price, the state of refined rows, the verb, and the sampler "noise down". Writing a_i = exp(-1/b_i) for a scale
b1 and a smaller one b2, noise of scale b1 is noise of scale b2 plus something independent of it. What is drawn is the
noise of scale b2, given their sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.accounting.kind import Fields, Measured, PaidEvent, Versioned, typed
from bursar.core.accounting.profile import FINER_BITS, LOW_BITS, Footprint, fine_units
from bursar.core.extensions.relations import Versions
from bursar.core.extensions.saved_state import Tree, int_bytes, ints_of
from bursar.core.noise.exact_sampler import TABLES_KEPT, Cuts, Geometric, Words, agreed, exp_between, system_words
from bursar.core.noise.law import UNIT_BITS, Noise, NoiseKind
from bursar.core.queries import Distinct, LinearMap, PerPerson, Product, Stack, Thresholds, Transform
from bursar.errors import LedgerError, QueryError, Stale, Unsupported

if TYPE_CHECKING:
    from bursar.core.accounting.accountant import Accountant
    from bursar.core.accounts import Charge
    from bursar.core.kernel import Kernel, PaymentTerms
    from bursar.core.ledger import Record, Transaction


@dataclass(frozen=True, kw_only=True, eq=False)
class Refined(PaidEvent):
    """Some rows of a measurement got finer noise under the noise that they had: a row's noises are one process.

    Guarantees: `rows` is a copy that cannot be written to.
    Edge cases: refused are rows that are not there or do not rise, noise that is not Laplace or does not get finer by
    at least 2^-50 in 1/scale, and the rounded answers of a transform, which another machine may round differently.
    """

    kind = "refined"
    block: int  # the position of the measurement in the log
    measured: LinearMap  # its strategy
    rows: NDArray[np.int64]
    before: Noise
    after: Noise
    version: int

    def __post_init__(self) -> None:
        rows = np.array(self.rows)
        if rows.dtype != np.int64 or rows.ndim != 1 or rows.size == 0:
            raise QueryError("the rows to refine are a list of whole numbers")
        if rows[0] < 0 or rows[-1] >= self.measured.rows or np.any(np.diff(rows) <= 0):
            raise QueryError("the rows to refine rise, and are rows of the measurement")
        rows.setflags(write=False)
        object.__setattr__(self, "rows", rows)
        if any(noise.kind is not NoiseKind.LAPLACE for noise in (self.before, self.after)):
            raise Unsupported("only Laplace noise can be refined; buy a fresh row instead: precisions add")
        if isinstance(self.measured, Transform | Distinct | PerPerson):
            raise Unsupported("transforms and counts of people cannot be refined; measure them again")
        if 1 / Fraction(self.after.scale) - 1 / Fraction(self.before.scale) < Fraction(1, 1 << UNIT_BITS):
            raise QueryError("a refinement makes noise finer, by no less than 2^-50 in 1/scale")

    @cached_property
    def strategy(self) -> LinearMap:
        """The map of exactly these rows."""
        return rows_of(self.measured, self.rows)

    @cached_property
    def priced(self) -> LinearMap:
        """The same rows in another order, which is quicker to price."""
        return gathered(self.measured, self.rows)

    @property
    def looks_at(self) -> LinearMap:
        return self.measured

    @property
    def answers(self) -> int:
        return len(self.rows)

    @property
    def purchase(self) -> Hashable:
        laws = (self.before, self.after, self.version)
        return self.kind, self.block, self.measured.digest, self.rows.tobytes(), *laws

    def footprints(self, accountant: Accountant, filed: Hashable) -> tuple[Footprint, ...]:
        """What its rows did not lose yet, filed under the block that is refined."""
        units, finer = accountant.difference(self.before, self.after)
        return accountant.over_rows(self.priced, units=units, finer=finer, version=self.version, block=self.block)

    def fields(self) -> dict[str, object]:
        place = {"block": self.block, "strategy": self.measured.digest, "rows": _runs(self.rows)}
        laws = {"before": self.before.scale.hex(), "after": self.after.scale.hex()}
        return {"kind": self.kind, "version": self.version, **place, **laws}

    @staticmethod
    def read(fields: Fields) -> Refined:
        measured = fields.strategy()
        return Refined(
            block=fields.take("block", int),
            measured=measured,
            rows=_rows(fields.take("rows", list), measured.rows),
            before=fields.laplace("before"),
            after=fields.laplace("after"),
            version=fields.take("version", int),
        )


def difference(accountant: Accountant, before: Noise, after: Noise) -> tuple[int, int]:
    """What a row of the finer noise is charged beyond what the same row was charged for the coarser one.

    Both are taken in the units of the coarser, which are no coarser than those of the finer, so the difference is
    exact. In units finer than 2^-50 it may have too many digits; then it is rounded up to units that suit.
    """
    if accountant.power != 1:
        raise Unsupported("rows are refined under a budget in epsilon alone; buy a fresh row: precisions add")
    coarse, finer = fine_units(partial(accountant.units, before))
    fine, coarser = fine_units(partial(accountant.units, after))
    units = (fine << (finer - coarser)) - coarse
    while finer > 0 and units >= 2**LOW_BITS:
        units, finer = -(-units >> FINER_BITS), finer - FINER_BITS
    return units, finer


def _runs(rows: Integers) -> list[int]:
    """Rising numbers as the ends of their runs: first, last + 1, first, last + 1, ..."""
    apart = np.flatnonzero(np.diff(rows) != 1)
    firsts, lasts = rows[np.append(0, apart + 1)], rows[np.append(apart, len(rows) - 1)]
    ends: list[int] = np.stack([firsts, lasts + 1], axis=1).ravel().tolist()
    return ends


def _rows(runs: list[object], most: int) -> Integers:
    """The numbers of runs that rise without touching and stay below `most`, so that damage cannot fill the memory."""
    ends = [typed(end, int) for end in runs]
    if len(ends) % 2 or any(low >= high for low, high in pairwise([-1, *ends, most + 1])):
        raise LedgerError("the rows of a refinement cannot be read")
    return np.concatenate([np.arange(first, end) for first, end in zip(ends[::2], ends[1::2], strict=True)])


def rows_of(linear_map: LinearMap, rows: Integers) -> LinearMap:
    """The given rows, which rise, as a map of their own: its row i is row rows[i] of the map."""
    return _taken(linear_map, rows, ordered=True)


def gathered(linear_map: LinearMap, rows: Integers) -> LinearMap:
    """The given rows, which rise, in whatever order takes the fewest products: to price them, order does not matter."""
    return _taken(linear_map, rows, ordered=False)


def _taken(linear_map: LinearMap, rows: Integers, *, ordered: bool) -> LinearMap:
    if len(rows) == linear_map.rows:
        return linear_map
    if not isinstance(linear_map, Product | Stack | Thresholds):
        raise Unsupported(f"rows of a map of kind {type(linear_map).__name__} cannot be taken by themselves")
    parts = linear_map.parts if isinstance(linear_map, Stack) else (linear_map,)
    ends = np.cumsum([part.rows for part in parts])
    products: list[Product | Thresholds] = []
    for part, end, part_rows in zip(parts, ends, np.split(rows, np.searchsorted(rows, ends[:-1])), strict=True):
        if len(part_rows) == 0:
            continue
        if len(part_rows) == part.rows:
            products.append(part)
        elif isinstance(part, Thresholds):
            products.append(part.take(part_rows - (end - part.rows)))
        else:
            products += _products(part, part_rows - (end - part.rows), ordered=ordered)
    return products[0] if len(products) == 1 else Stack(tuple(products))


def _products(product: Product, rows: Integers, *, ordered: bool) -> list[Product]:
    """Rows of a product, those that differ in one mask only together; in order, if that is the fastest mask."""
    counts = [mask.rows for mask in product.masks]
    places = np.unravel_index(rows, counts)
    several = [axis for axis, count in enumerate(counts) if count > 1]
    apart = {axis: rows - places[axis] * math.prod(counts[axis + 1 :]) for axis in several}  # but for that mask
    axis = several[-1] if ordered else min(several, key=lambda axis: len(np.unique(apart[axis])))
    order = np.argsort(apart[axis], kind="stable")
    products = []
    for group in np.split(order, np.flatnonzero(np.diff(apart[axis][order])) + 1):
        picks = [place[group] if at == axis else place[group[:1]] for at, place in enumerate(places)]
        products.append(Product(tuple(mask.take(pick) for mask, pick in zip(product.masks, picks, strict=True))))
    return products


def _no_record(position: int) -> Record:
    raise LedgerError(f"there is no record {position}")


@dataclass
class Blocks:
    """The measurements of the present version of each table, advanced record by record.

    Guarantees: a lookup costs as much as it asks for rows, whatever the log has seen.
    """

    read: Callable[[int], Record] = _no_record  # a record of the log by its position, checked by its own link
    versions: Versions = field(default_factory=Versions)  # of the tables
    earlier: int = 0  # the position up to which records are read again where they are needed
    records: dict[int, Record] = field(default_factory=dict)  # measurements and refinements that were added here
    refined: dict[int, tuple[Reals, Integers]] = field(default_factory=dict)
    """Of measurements that were ever refined: the scale that each row has now, and the position of its record."""

    def add(self, record: Record) -> None:
        """Edge cases: a refinement of rows that the log has otherwise raises LedgerError, and changes nothing."""
        event = record.event
        self.versions.add(event)
        if type(event) is Versioned:
            self.records = {at: older for at, older in self.records.items() if self._present_at(at)}
            self.refined = {block: rows for block, rows in self.refined.items() if self._present_at(block)}
        elif isinstance(event, Measured):
            self.records[record.position] = record
        elif isinstance(event, Refined):
            try:
                self.values(event)
            except Stale as fault:
                raise LedgerError(f"record {record.position} refines rows that the log has otherwise") from fault
            self.records[record.position] = record
            scales, positions = self.refined[event.block] = self._present(event.block)
            scales[event.rows], positions[event.rows] = event.after.scale, record.position

    def find(self, block: int) -> Measured:
        """The measurement at a position of the log, of the present version of the data."""
        event = self._record(block).event if block in self.records or 0 < block <= self.earlier else None
        if not isinstance(event, Measured) or event.version not in self.versions:
            raise Stale("the measurement to refine is not of the present version of the data")
        return event

    def values(self, event: Refined, pending: Iterable[Record] = ()) -> Integers:
        """The values that the rows of a refinement have; `pending` are records that come before it, not added yet.

        Guarantees: each value comes from the record that showed it.
        Edge cases: Stale where the rows are not the ones of the event, or one of them has not the noise it had there.
        """
        measured = self.find(event.block)
        present = (measured.strategy.digest, measured.version, measured.noise.kind)
        scales, positions = self._present(event.block)
        scales, positions = scales[event.rows], positions[event.rows]
        values = np.empty(len(event.rows), np.int64)
        for position in np.unique(positions).tolist():
            here = positions == position
            values[here] = _shown(self._record(position), event.rows[here])
        for record in pending:
            if isinstance(record.event, Refined) and record.event.block == event.block:
                shared = np.intersect1d(event.rows, record.event.rows, assume_unique=True, return_indices=True)
                scales[shared[1]], values[shared[1]] = record.event.after.scale, record.values[shared[2]]
        if present != (event.measured.digest, event.version, event.before.kind) or np.any(scales != event.before.scale):
            raise Stale("the rows to refine have become finer meanwhile")
        return values

    def state(self) -> Tree:
        """What refinements have changed, as plain values; what was shown stays in the log."""
        refined = self.refined.items()
        return [[block, scales.tobytes(), int_bytes(at)] for block, (scales, at) in refined]

    def restore(self, state: Tree, earlier: int) -> None:
        """Make this the state of a log up to the position `earlier`."""
        self.earlier = earlier
        self.refined = {block: (np.frombuffer(scales).copy(), ints_of(at).copy()) for block, scales, at in state}

    def _present(self, block: int) -> tuple[Reals, Integers]:
        """Of each row of a measurement: its scale, and the position of the record that showed it last."""
        if block in self.refined:
            return self.refined[block]
        measured = self.find(block)
        return np.full(measured.strategy.rows, measured.noise.scale), np.full(measured.strategy.rows, block)

    def _present_at(self, position: int) -> bool:
        """Whether a measurement or refinement is of the present version of its table."""
        event = self._record(position).event
        return isinstance(event, Measured | Refined) and event.version in self.versions

    def _record(self, position: int) -> Record:
        return self.records.get(position) or self.read(position)


def _shown(record: Record, rows: Integers) -> Integers:
    """What a measurement, or a refinement, showed of rows of the measurement."""
    event = record.event
    return record.values[np.searchsorted(event.rows, rows) if isinstance(event, Refined) else rows]


def refine(
    kernel: Kernel, block: int, rows: Sequence[int], noise: Noise, *, before: Noise, **terms: Unpack[PaymentTerms]
) -> tuple[Record, Charge]:
    """Finer noise for rows of the measurement at a position of the log, one commit; with what it was charged.

    `before` is the noise that all of the rows have now, and the new noise is drawn under it. Stale is raised, and
    nothing charged, where a row has another noise by then, and where `measure` raises it.
    """
    version = kernel.version()
    with kernel._lock:
        record = kernel._blocks.find(block)
    if record.version != version:
        raise Stale("the measurement to refine is of another table")
    measured = record.strategy
    event = Refined(block=block, measured=measured, rows=np.array(rows), before=before, after=noise, version=version)
    exact = kernel._answers(event, measured)[event.rows]

    def work(transaction: Transaction) -> tuple[Record, Charge]:
        with kernel._lock:
            kernel._advance(transaction.committed(kernel._position))
            shown = kernel._blocks.values(event, transaction.pending())
        charge = kernel._admit(transaction, event, **terms)
        values = exact + kernel._randomness.refine(shown - exact, before, noise)
        return kernel._append(transaction, event, values, **terms), charge

    return kernel.ledger.commit(work)


def noise_down(current: Integers, *, before: float, after: float, words: Words = system_words) -> Integers:
    """One draw of the noise of scale `after` for each number of `current`, which are noise of scale `before`.

    Let x >= 0 be the present noise (the other sign is its mirror image), r = a2/a1, K, G independent and geometric with
    ratios r and a1 a2. With probability a2 (a1 - a2)/(1 - a2^2) the result is -1 - G; else it is K where K <= x;
    else, with probability a1 (a1 - a2)/(1 - a1 a2), x + 1 + G; else x.

    Guarantees: if `current` has the law of `before`, what is returned has the law of `after`, and the law of `current`
    given the result does not depend on anything else; exact where 1/after - 1/before >= 2^-50. Nothing is rejected and
    every draw is made for every number, so the work done hardly depends on the values.
    Edge cases: no numbers give none.
    Differs: the four cases of the usual form (keep, other side, between, beyond) have probabilities that depend on x;
    here only K is compared with x.
    """
    tables = _tables(before, after)
    size = current.size
    return placed(
        current,
        across=tables.across.draw(size, words) == 0,
        along=tables.along.draw(size, words),
        leaps=tables.leaps.draw(size, words) == 0,
        beyond=tables.beyond.draw(size, words),
    )


def placed(
    current: Integers, *, across: NDArray[np.bool_], along: Integers, leaps: NDArray[np.bool_], beyond: Integers
) -> Integers:
    """The finer noise that the independent draws lead to."""
    distance = np.abs(current)
    outside = distance + np.where(leaps, 1 + beyond, 0)
    finer = np.where(across, -1 - beyond, np.where(along <= distance, along, outside))
    mirrored: Integers = np.where(current < 0, -finer, finer)
    return mirrored


def cut_floors(start: Fraction, before: Fraction, after: Fraction, bits: int) -> list[int]:
    """floor(2^bits F), F = s (a1 - a2)/(1 - s a2), with s, a1, a2 = exp(-start), exp(-before), exp(-after).

    One cut: a uniform lies below it with probability F. Needs start > 0 and 0 < before < after.
    """

    def bounds(guard: int) -> tuple[list[int], list[int]]:
        unit = 1 << 2 * (bits + guard)
        s, a1, a2 = (exp_between(rate, bits + guard) for rate in (start, before, after))
        low = (s[0] * (a1[0] - a2[1]) << bits) // (unit - s[0] * a2[0])
        high = (s[1] * (a1[1] - a2[0]) << bits) // (unit - s[1] * a2[1])
        return [low], [high]

    return agreed(bounds, bits)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tables:
    """What one pair of scales needs."""

    across: Cuts  # 0: the finer noise is on the other side of zero
    along: Geometric
    leaps: Cuts  # 0: it is larger than the coarser noise
    beyond: Geometric


@lru_cache(maxsize=TABLES_KEPT)
def _tables(before: float, after: float) -> _Tables:
    coarse, fine = 1 / Fraction(before), 1 / Fraction(after)
    return _Tables(
        across=Cuts.of(partial(cut_floors, fine, coarse, fine)),
        along=Geometric.of(fine - coarse),
        leaps=Cuts.of(partial(cut_floors, coarse, coarse, fine)),
        beyond=Geometric.of(fine + coarse),
    )
