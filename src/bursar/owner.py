"""The data owner's side of an open data set: declaring what is new, sealing, shares, and the health of the ledger."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.compile.open_columns import open_columns
from bursar.config.sections import cell_named
from bursar.core.accounting.kind import ROOT
from bursar.core.domain import Attribute, Dates, Value
from bursar.core.extensions.curator import declare_version, seal
from bursar.core.extensions.open_keys import is_key, normalised
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.ledger import Health
from bursar.engine import Engine
from bursar.errors import AnalystError, ConfigError, QueryError, SourceError
from bursar.report.status import OWNER
from bursar.sources import OWNER_URL, KeptInDatabase, filling

if TYPE_CHECKING:
    from bursar.curate.intake import Taken
    from bursar.planner.discovery import Discovery


class Owner:
    """What only the data owner does with a data set; `db.owner` has it."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._config, self._ledger = engine, engine.config, engine.ledger

    def erase_texts(self) -> int:
        """For the data owner: erase the texts of all questions so far, and say how many; their digests, and what each
        cost, stay in the log. Answers stored under a key keep their question."""
        if self._engine.analyst != OWNER:
            raise AnalystError("only the data owner may erase the texts of questions")
        self._engine.notes.erase()
        return self._ledger.erase_texts()

    def name_keys(self, column: str, texts: Sequence[str]) -> tuple[str, ...]:
        """For the data owner: let texts of an open column be told apart, for everybody; free. Returns all that are.

        Only texts that are known without looking at the rows: which ones are named is seen by all.
        """
        if self._engine.analyst != OWNER:
            raise AnalystError("only the data owner may name keys outside of a question")
        attribute = {each.name: each for each in open_columns(self._config.domain)}.get(column)
        if attribute is None:
            raise ConfigError(f"{column} is no open column of {self._config.table}")
        keys = [normalised(text) for text in texts]
        if unfit := [text for text, key in zip(texts, keys, strict=True) if not is_key(key)]:
            raise QueryError(f"{unfit[0]!r} cannot be told apart: it is called other, or has control characters")
        self._engine.kernel.name_keys([(column, key) for key in keys], analyst=OWNER)
        return tuple(key.text for key in self._engine.kernel.known_keys()[column])

    def discover(self, column: str, *, spend: float, delta: float | None = None, where: str | None = None) -> Discovery:
        """For the data owner: find texts of an open column that enough people have, and let them be told apart.

        `spend` is in rho; `delta`, half of what is left of `delta_keys` unless named, is the chance that a text is
        found which one person alone has. The more of both, the rarer are the texts that are found. `where` is a
        condition as in a question: only rows for which it holds count, so that texts come out that many of these have.
        """
        if self._engine.analyst != OWNER:
            raise AnalystError("only the data owner may look for texts")
        return self._planned(column, spend, delta, where).run()

    def explain_discovery(
        self, column: str, *, spend: float, delta: float | None = None, where: str | None = None
    ) -> Discovery:
        """What `discover` would cost, and how rare the texts are that it would find; nothing is spent."""
        return self._planned(column, spend, delta, where)

    def _planned(self, column: str, spend: float, delta: float | None, where: str | None) -> Discovery:
        from bursar.planner.discovery import plan

        scope = None if where is None else self._engine.scope(where)
        kernel, unit = self._engine.kernel, self._config.unit
        return plan(kernel, unit, column, spend=spend, delta=delta, where=where, scope=scope)

    def declare_version(self, *, same_rows: bool = False, table: str | None = None) -> int:
        """For the data owner: the data have changed, and are what they are now; those of one table, or of all.

        Returns the number of the version that was declared last.
        """
        tables = self._engine.tables
        engines = list(tables) if table is None else [tables.named(table)]
        return max(self._declare(engine, same_rows) for engine in engines)

    def fill_cells(self) -> list[str]:
        """For the data owner: fill the tables of cells that are kept in the database, and say of which tables they are.

        Nothing is declared: SourceError where the rows are not those that were.
        """
        engines = [engine for engine in self._engine.tables if isinstance(engine.open_source, KeptInDatabase)]
        if not engines:
            raise ConfigError('no cells are kept in a database\ntry: [source]\ncells = "kept"', str(self._config.path))
        if not os.environ.get(OWNER_URL):
            raise SourceError(f"{OWNER_URL} names no role that may fill the tables of cells")
        from bursar.curate.ingest import curating

        for engine in engines:
            with curating(engine.config), filling(engine.open_source, engine.kernel.sealed()):
                engine.kernel.close()
                engine.kernel.open_data()
        return [engine.config.table for engine in engines]

    def add_table(self, name: str) -> int:
        """For the data owner: let a private table that the config has be asked about, for the same budget."""
        engine = self._engine.tables.named(name)
        if engine.config.table not in self.not_added():
            raise ConfigError(f"the ledger has the private table {name} already")
        return self._declare(engine, same_rows=False)

    def not_added(self) -> list[str]:
        """The private tables of the config that the ledger does not know yet."""
        added = {ROOT, *self._engine.kernel.tables().values()}
        return [engine.config.table for engine in self._engine.tables if engine.config.relation not in added]

    def _declare(self, engine: Engine, same_rows: bool) -> int:
        config = engine.config
        relations = [each for each in engine.relations if each.table == config.relation != ROOT]
        from bursar.curate.ingest import curating

        with curating(config), filling(engine.open_source, engine.kernel.sealed()):
            return declare_version(
                self._ledger,
                engine.open_source,
                engine.randomness,
                same_rows=same_rows,
                axis=PartitionAxis.of(config.domain, config.unit),
                relation=relations[0] if relations else None,
            )

    def seal(self, through: object | None = None) -> Value:
        """For the data owner: seal the partitions up to a value of the partition column; returns the last sealed one.

        Without a value, all that are over by the calendar, where there is one; else the next one.
        """
        column = self._partition()
        place = self._next(column) if through is None else cell_named(column, str(through))
        return column.label(self._seal(place) - 1)

    def seal_due(self, today: date | None = None) -> int | None:
        """Seal what is over by the calendar, if the config says so; returns how many partitions are sealed.

        Where the data cannot be read, nothing is sealed: what was asked before can still be answered.
        """
        sealed = self._engine.kernel.sealed()
        if sealed is None:
            return None
        due = self._config.sealing.due(self._partition(), today or datetime.now(UTC).date())
        with suppress(SourceError):
            return self._seal(due - 1) if due > sealed else sealed
        return sealed

    def ingest(self, file: str | Path) -> Taken:
        """For the data owner: add the rows of a file, first sealing what is over; the numbers are not for analysts."""
        from bursar.curate.ingest import ingest

        self.seal_due()
        return ingest(self._config, Path(file), self._engine.kernel.sealed)

    def declare_shares(self) -> None:
        """For the data owner: the shares of the config are in force from now on, if they can be given out."""
        self._engine.kernel.allot(self._config.analysts.accounts)

    def verify(self) -> Health:
        """Read the whole ledger and check every byte that means something, a checkpoint included."""
        return self._compared(self._ledger.verify())

    def checkpoint(self) -> int:
        """Save what the log adds up to, so that opening does not begin at its first record; returns how far it goes."""
        return self._engine.checkpoint()

    def recover(self) -> Health:
        """Go on with a ledger whose anchor was lost, after a look at it; see `bursar recover --help`."""
        return self._compared(self._ledger.recover())

    def _compared(self, health: Health) -> Health:
        """What was found of the ledger, and of its checkpoint, if there is one that would be used."""
        position = self._engine.kernel.checkpoint_checked()
        told = () if position is None else (f"the checkpoint at record {position} is what the log adds up to",)
        return replace(health, notes=(*health.notes, *told))

    def _partition(self) -> Attribute:
        if self._config.domain.partition is None:
            days = [column.name for column in self._config.domain.attributes if isinstance(column, Dates)]
            hint = f"a new config that declares them, as in docs/streams.md{f', by {days[0]}' if days else ''}"
            raise ConfigError(f"these data have no partitions to seal\ntry: {hint}", str(self._config.path))
        return self._config.domain[self._config.domain.partition]

    def _next(self, column: Attribute) -> int:
        sealed, due = self._engine.kernel.sealed() or 0, self._config.sealing.due(column, datetime.now(UTC).date())
        if sealed >= column.declared:
            raise QueryError(f"every partition of {column.name} is sealed")
        return max(sealed, due - 1)

    def _seal(self, place: int) -> int:
        axis = PartitionAxis.of(self._config.domain, self._config.unit)
        assert axis is not None
        from bursar.curate.ingest import curating

        open_source = self._engine.open_source
        with curating(self._config), filling(open_source, place + 1):
            return seal(self._ledger, open_source, axis=axis, through=place)
