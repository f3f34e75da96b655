"""Which records of a long log planners look at: an index of it that is saved with a checkpoint.

What a question can reuse of a log does not grow without end: a reconstruction has room for so many rows, and the same
rows measured once more say little. So a new process reads, of each set of columns, the records that say most, and all
that came since they were chosen. What is left out can still be found by its very rows (`measured_before.py`).

Nothing rests on it: what stands at a position is read from the log and checked by its own link, and any choice of
records gives answers whose errors are as stated. A poor choice costs budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.core.accounting import Measured, Refined, Versioned
from bursar.core.extensions.checkpoint import Checkpointed
from bursar.core.extensions.saved_state import decode_tree, encode_tree, int_bytes, ints_of
from bursar.core.ledger import Ledger, Record
from bursar.lazy_dataclass import dataclass
from bursar.views.measured_before import MeasuredBefore, digest_numbers

SAVED = "kept"
"""The name under which a ledger keeps it."""

MOST_RECORDS, MOST_ROWS = 512, 2**15
"""Most records, and rows, that are kept of one set of columns."""

MOST_IN_ALL = 4096
"""Most records that are kept of all sets of columns: reading them takes a few tenths of a second."""

MOST_OTHERS = 1024
"""Most records that are kept beside these: sparse vectors, selections, declarations."""

ENTRY = np.dtype(
    [
        ("position", "<i8"),
        ("block", "<i8"),  # the position of what it measured, or refined
        ("columns", "<i8"),  # the number of its set of columns
        ("rows", "<i8"),
        ("digest", "<u8", 2),
        ("variance", "<f8"),
    ]
)


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptRecords:
    """Measurements and refinements of the present version of the data that are kept, and the last of all others."""

    position: int = 0  # of the last record that was looked at
    version: int = 0
    sets: tuple[tuple[str, ...], ...] = ()  # of columns
    others: Integers = field(default_factory=lambda: np.zeros(0, np.int64))  # positions
    entries: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, ENTRY))  # by position

    @staticmethod
    def saved_in(ledger: Ledger) -> KeptRecords:
        """The index that was saved; an empty one where that cannot be read."""
        body = ledger.saved(SAVED) or b""
        with suppress(ValueError, LookupError, TypeError, RecursionError):
            position, version, sets, others, entries = decode_tree(body)
            index = KeptRecords(
                position=position,
                version=version,
                sets=tuple(tuple(names) for names in sets),
                others=ints_of(others),
                entries=np.frombuffer(entries, ENTRY),
            )
            # A record that is read twice would count twice.
            if len(set(index.positions)) == len(index.positions) and all(
                0 < each <= position for each in index.positions
            ):
                return index
        return KeptRecords()

    def save_in(self, ledger: Ledger) -> None:
        sets, entries = [list(names) for names in self.sets], self.entries.tobytes()
        ledger.save(SAVED, encode_tree([self.position, self.version, sets, int_bytes(self.others), entries]))

    @property
    def positions(self) -> list[int]:
        """Where the records stand that are kept, in the order of the log."""
        return sorted([*self.others.tolist(), *self.entries["position"].tolist()])

    def read(self, ledger: Ledger) -> list[Record]:
        """The records that are kept, in the order of the log."""
        return [ledger.record(position) for position in self.positions]

    def after(self, records: Iterable[Record]) -> KeptRecords:
        """With the records that follow, as far as they are kept."""
        index, new, others, position = self, list[tuple[object, ...]](), list[int](), self.position
        numbers = {names: number for number, names in enumerate(index.sets)}
        for record in records:
            event, position = record.event, record.position
            if isinstance(event, Measured | Refined):
                if event.version == index.version:
                    measured, variance, block = event.looks_at, *_law(event, position)
                    number = numbers.setdefault(tuple(sorted(measured.attrs)), len(numbers))
                    rows = len(event.rows) if isinstance(event, Refined) else measured.rows
                    new.append((position, block, number, rows, digest_numbers(measured.digest), variance))
            elif not isinstance(event, Checkpointed):
                others.append(position)
                if isinstance(event, Versioned):  # what was bought on other data answers nothing now
                    index = replace(index, version=event.version, others=index.others[:0], entries=index.entries[:0])
                    new, others, numbers = [], [position], {}
        entries = np.concatenate([index.entries, np.array(new, ENTRY)])
        entries = entries[np.isin(entries["block"], entries["position"])]  # others refine what was left out
        return replace(
            index,
            position=position,
            sets=tuple(numbers),
            others=_latest(np.concatenate([index.others, np.array(others, np.int64)]), versioned=index.version > 0),
            entries=entries[_chosen(entries)],
        )


def _latest(others: Integers, *, versioned: bool) -> Integers:
    """The last ones, with the declaration of the version, which is the first of them where there is one.

    What ends a test stands behind what began it, so no test seems to go on that has ended.
    """
    if len(others) <= MOST_OTHERS:
        return others
    return np.append(others[:1], others[1 - MOST_OTHERS :]) if versioned else others[-MOST_OTHERS:]


def _law(event: Measured | Refined, position: int) -> tuple[float, int]:
    """The variance that a record's rows have, and the position of what measured them."""
    if isinstance(event, Measured):
        return event.noise.variance(), position
    return event.after.variance(), event.block


def _chosen(entries: NDArray[np.void]) -> NDArray[np.bool_]:
    """Which entries are kept: of each set of columns the measurements that say most, with all that was refined of them.

    What a measurement says is its rows over their variance. Measurements of rows that a better one has measured come
    after all others.
    """
    blocks, first, group = np.unique(entries["block"], return_index=True, return_inverse=True)
    records, variance = np.bincount(group, minlength=len(blocks)), np.full(len(blocks), np.inf)
    np.minimum.at(variance, group, entries["variance"])
    rows, columns, digests = entries["rows"][first], entries["columns"][first], entries["digest"][first]
    unsaid = -rows / variance
    again = _rank((digests[:, 0], digests[:, 1]), (unsaid, blocks))
    in_set = _order((columns,), (again, unsaid, blocks))
    fits = (_running(records, columns, in_set) <= MOST_RECORDS) & (_running(rows, columns, in_set) <= MOST_ROWS)
    place = _rank((columns,), (again, unsaid, blocks))
    fits |= place == 0
    order = _order((~fits,), (place, unsaid, blocks))
    fits &= _running(records, np.zeros(len(blocks), np.int64), order) <= MOST_IN_ALL
    return np.asarray(fits[group])


Keys = tuple[NDArray[np.generic], ...]


def _order(groups: Keys, keys: Keys) -> Integers:
    """The order by groups, and within them by keys."""
    return np.lexsort([*reversed(keys), *reversed(groups)])


def _rank(groups: Keys, keys: Keys) -> Integers:
    """The place of each within its group, in the order of the keys, from 0."""
    order = _order(groups, keys)
    new = np.zeros(len(order), bool)
    for each in groups:
        ordered = each[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    starts = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - starts
    return ranks


def _running(amounts: Integers, groups: Integers, order: Integers) -> Integers:
    """The sum of the amounts up to and with each, within its group, where `order` has groups one after the other."""
    total, ordered = np.cumsum(amounts[order]), groups[order]
    new = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
    before = np.repeat((total - amounts[order])[new], np.diff(np.r_[new, len(order)]))
    sums = np.empty(len(order), np.int64)
    sums[order] = total - before
    return sums


def bring_up_to_date(ledger: Ledger, records: Callable[[int], Sequence[Record]] | None = None) -> None:
    """Save what the log has measured, and what counts of it, with what came since that was saved last.

    `records` are those of the ledger after a position, for whoever has decoded some.
    """
    measured, index = MeasuredBefore.saved_in(ledger), KeptRecords.saved_in(ledger)
    news = (records or ledger.records)(min(measured.position, index.position))
    measured.after(record for record in news if record.position > measured.position).save_in(ledger)
    index.after(record for record in news if record.position > index.position).save_in(ledger)
