"""The last synthetic table of a data set, kept beside its ledger, and what it answers.

A table is made of noisy values alone, so there is nothing secret about it. It belongs to a place in the log, named by
its position and a digest of the record there: after a new version of the data, or beside another ledger, it is no
longer used.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Codes, Reals
from bursar.compile.partwise import PartwiseMap
from bursar.core.accounting import Measured, Versioned
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Stack
from bursar.estimation.estimate import Estimate
from bursar.report.files import written
from bursar.synthetic.marginals.estimates import Consistent, linear_estimate
from bursar.synthetic.marginals.evidence import LogEvidence, evidence_in
from bursar.synthetic.table.fit import cell_numbers
from bursar.tails.marginals import ByVariance

Records = Callable[[int], Sequence[Record]]

MOST_CELLS = 2**24
"""Most joint cells of a question that the table is asked."""


def mark(record: Record) -> str:
    """A digest of a record of the log, which names a place in it."""
    facts = json.dumps([record.position, record.at, record.analyst, record.question])
    return blake2b(facts.encode() + record.values.astype("<i8").tobytes(), digest_size=16).hexdigest()


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredTable:
    """Synthetic rows, how many rows of the data they stand for, and where in the log they come from."""

    domain: Domain
    codes: Codes
    total: float
    position: int  # of the last record that was there
    mark: str
    method: str
    analyst: str | None = None  # whose measurements it was made from; None where everybody's

    def save(self, path: Path) -> None:
        """Write the table as a whole or not at all."""
        facts = {name: getattr(self, name) for name in ("total", "position", "mark", "method", "analyst")}
        text = np.frombuffer(json.dumps({**facts, "domain": self.domain.digest}).encode(), np.uint8)
        beside = path.with_name(f"{path.name}.{os.getpid()}")
        with written(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with beside.open("wb") as file:
                    np.savez_compressed(file, codes=self.codes, facts=text)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)

    @staticmethod
    def load(path: Path, domain: Domain) -> StoredTable | None:
        """The table in a file; None where there is none, or none of this domain that can be read."""
        try:
            # Opened here: numpy leaves a file open that it opened itself and could not read.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                codes, facts = stored["codes"], json.loads(stored["facts"].tobytes())
        except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error):
            return None
        sizes = np.array(domain.sizes(domain.names))
        fits = facts.pop("domain", "") == domain.digest and codes.ndim == 2 and codes.shape[1:] == sizes.shape
        if not fits or codes.dtype != np.int32 or not len(codes) or np.any(codes < 0) or np.any(codes >= sizes):
            return None
        return StoredTable(domain=domain, codes=codes, **facts)


@dataclass
class TableView:
    """The kept table as the log is now, with what is known about its errors; looked at for every question.

    `records` is the log as the asker sees it. Without a table, nothing of the log is read.
    """

    domain: Domain
    path: Path | None  # None: in memory only
    records: Records
    size: int | None  # the number of rows, where that is public
    analyst: str | None  # whose measurements the asker sees; None where everybody's
    _held: StoredTable | None = None
    _stamp: object = None
    _position: int = 0
    _evidence: list[LogEvidence] = field(default_factory=list)
    _rows: TableAnswers | None = None

    def put(self, table: StoredTable) -> None:
        """Keep a table in the place of any other."""
        if self.path is None:
            self._begin(table)
        else:
            table.save(self.path)
            self._stamp = None

    def rows(self) -> TableAnswers | None:
        """The table, if there is one that is of this log and version, and that the asker may see."""
        self._look()
        if self._held is None:
            return None
        new = self.records(self._position)
        for record in new:
            self._take(record)
        if self.analyst is None and self._position < self._held_position():
            return None  # of a longer log than this one
        if self._rows is None and self._held is not None:
            consistent = Consistent(self.domain, self._evidence, size=self.size)
            self._rows = TableAnswers(table=self._held, consistent=consistent)
        return self._rows

    def _held_position(self) -> int:
        return 0 if self._held is None else self._held.position

    def _look(self) -> None:
        """Read the file again where it is another one than before."""
        if self.path is None:
            return
        try:
            status = self.path.stat()
        except OSError:
            self._stamp, self._held, self._rows = None, None, None
            return
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if stamp != self._stamp:
            self._stamp = stamp
            self._begin(StoredTable.load(self.path, self.domain))

    def _begin(self, table: StoredTable | None) -> None:
        mine = table is not None and table.analyst in (None, self.analyst)
        self._held, self._rows, self._position, self._evidence = table if mine else None, None, 0, []

    def _take(self, record: Record) -> None:
        self._position, self._rows = record.position, None
        held = self._held
        if held is not None and record.position == held.position and mark(record) != held.mark:
            self._held = None  # of another ledger
        if isinstance(record.event, Versioned):
            self._evidence = []
            if held is not None and record.position > held.position:
                self._held = None  # of other data
        elif isinstance(record.event, Measured):
            self._evidence += evidence_in([record], self.domain)


@dataclass(frozen=True, kw_only=True, eq=False)
class TableAnswers:
    """What proposers see: answers of the table, and unbiased estimates where measured marginals give them."""

    table: StoredTable
    consistent: Consistent

    @property
    def note(self) -> str:
        table = self.table
        return f"the synthetic table of record {table.position} ({table.method}, {len(table.codes):,} rows)"

    def answers(self, queries: LinearMap) -> Reals | None:
        """The rows of a map on the table, in rows of the data; None where that would take too many joint cells."""
        if isinstance(queries, Stack | PartwiseMap):
            times = queries.times if isinstance(queries, PartwiseMap) and queries.times else (1,) * len(queries.parts)
            parts = [self.answers(part) for part in queries.parts]
            rows = [part * factor for part, factor in zip(parts, times, strict=True) if part is not None]
            return None if len(rows) < len(parts) else np.concatenate([*rows, np.zeros(0)])
        if self.table.domain.cells(queries.attrs) > MOST_CELLS:
            return None
        counts = queries.apply(self._counts)
        return counts.astype(np.float64) * np.float64(self.table.total / len(self.table.codes))

    def _counts(self, names: tuple[str, ...]) -> NDArray[np.int64]:
        domain = self.table.domain
        cells = np.bincount(cell_numbers(domain, self.table.codes, names), minlength=domain.cells(names))
        return cells.reshape(domain.sizes(names)).astype(np.int64)

    def estimate(self, queries: LinearMap) -> Estimate | None:
        """Weighted least squares over everything measured, with the law of its errors; None where some part was not."""
        marginal = linear_estimate(queries, self.consistent)
        if marginal is None:
            return None
        law = ByVariance(variances=marginal.variances, heavy=marginal.heavy, rounding=marginal.rounding_error)
        return Estimate(values=marginal.values, law=law)

    def unmeasured(self, queries: LinearMap) -> tuple[str, ...]:
        """Columns that a question ties together and that were never measured together; none where that is not it."""
        parts: Sequence[LinearMap] = queries.parts if isinstance(queries, Stack | PartwiseMap) else (queries,)
        sets = [self.table.domain.ordered(part.attrs) for part in parts]
        return next((columns for columns in sets if self.consistent.variance(columns) is None), ())
