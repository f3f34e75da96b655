"""What everybody may know: functions of the log, the holds, the charter and the clock. Nothing here reads data."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from bursar.core.accounting import (
    Accountant,
    Added,
    AddRemove,
    Book,
    Event,
    Profile,
    ReplaceOne,
    Sequential,
)
from bursar.core.accounting.kind import ROOT
from bursar.core.accounts import Account, Charge
from bursar.core.budget import Budget
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.extensions.checkpoint import Checkpointed, checkpoint, checkpoint_checked, checkpoint_due, resume
from bursar.core.extensions.discovery import KeyDeltas
from bursar.core.extensions.open_keys import KeyedText, KeyLists
from bursar.core.extensions.partitions import PartitionAxis, Seals
from bursar.core.extensions.refine import Blocks
from bursar.core.extensions.relations import Relation, TableTerms, Versions, check_relations
from bursar.core.extensions.shares import REST, SharedAccounts
from bursar.core.extensions.sparse_vector import SparseVectors, check_test, live
from bursar.core.ledger import Ledger, Record
from bursar.core.limits import check_strategy
from bursar.core.queries import LinearMap
from bursar.errors import ConfigError

if TYPE_CHECKING:
    from bursar.core.accounting.state import Tree
    from bursar.core.extensions.shares import Entry


class Public:
    """The log of a data set, read as far as it goes, and what it says about the budget."""

    def __init__(
        self,
        *,
        domain: Domain,
        unit: Unit,
        budget: Budget,
        max_rows: int,
        ledger: Ledger,
        sequential: bool = False,
        table: str = ROOT,
        relations: Sequence[Relation] = (),
        resumes: bool = True,
    ) -> None:
        """`sequential` charges every measurement its largest loss, as the published systems do; `resumes` says whether
        a checkpoint counts. Where people have rows in several tables, `relations` are all of them, and `table` names
        the one that is looked at here: its are the domain, the unit and the most rows."""
        self.domain, self.budget, self.max_rows, self.ledger = domain, budget, max_rows, ledger
        this_table = Relation(table=table, domain=domain, unit=unit, max_rows=max_rows)
        self.table, self._relations = table, tuple(relations) or (this_table,)
        check_relations(self._relations)
        if this_table not in [replace(relation, joined=()) for relation in self._relations]:
            raise ConfigError(f"{table or 'the first table'} is declared in two ways")
        self._accountant = Accountant(mode=budget.mode, unit=unit, order=budget.order)
        self._sequential = sequential
        self._versions = Versions()
        self._accounts = self._empty_accounts()
        self._blocks, self._vectors = Blocks(ledger.record, self._versions), SparseVectors(versions=self._versions)
        self._axis, self._seals = PartitionAxis.of(domain, unit), Seals()
        self._keys = KeyLists.of({relation.table: relation.domain for relation in self._relations})
        self._deltas = KeyDeltas()
        self._position = 0
        self._lock = threading.RLock()  # guards what was read of the log; works take it, so no holder of it may commit
        self._checkpointed = 0  # how far the last checkpoint goes
        self.begun = 0  # the position of the checkpoint that this process began with
        if resumes and not sequential:
            resume(self)

    def price(self, events: Iterable[Event]) -> int:
        """What the events would add to what is spent, in units of 2^-50; looks at the log only."""
        return self.charge(events, REST).total

    def charge(self, events: Iterable[Event], analyst: str) -> Charge:
        """What the events would add to what is spent, and to what the analyst has caused; looks at the log only."""
        with self._lock:
            accounts = self._advanced()
            return accounts.price(analyst, accounts.total.all_footprints(events))

    def spent(self) -> int:
        """The bound of the profile over everything in the log, in units of 2^-50."""
        with self._lock:
            return self._advanced().spent()

    def spent_by_partition(self) -> list[int]:
        """What is spent on the rows of each partition of the first table, in units of 2^-50; one number where there are
        none."""
        with self._lock:
            return self._advanced().total.spent_by_partition()

    def spent_by_table(self) -> dict[str, int]:
        """What is spent on each private table, in units of 2^-50, which add up to what is spent."""
        with self._lock:
            return self._advanced().total.spent_by_table()

    def left(self) -> int:
        """What the profile may still grow by, in units of 2^-50; holds are not counted, admission does that."""
        return max(self.budget.units - self.spent(), 0)

    def held(self, analyst: str | None = None) -> int:
        """What plans that are running have set aside, in units of 2^-50: all of them, or one analyst's account."""
        holds = self.ledger.commit(lambda transaction: transaction.holds(self.ledger.now()))
        events = [event for hold in holds if analyst in (None, hold.analyst) for event in hold.events]
        return self.price(events) if analyst is None else self.charge(events, analyst).account

    def shares(self) -> dict[str, Fraction]:
        """The fractions of the budget that analysts have, as the log declares them; none where all spend together."""
        with self._lock:
            return dict(self._advanced().shares)

    def account(self, analyst: str) -> Account:
        """What the analyst may spend and has spent; AnalystError where there are shares, and none for this one."""
        with self._lock:
            return self._advanced().account(analyst)

    def history(self) -> list[tuple[Record, Charge]]:
        """Every record with what it was charged: the log played again from the start."""
        accounts = self._empty_accounts()
        return [(record, accounts.play(record)) for record in self.ledger.records()]

    def empty_book(self) -> Book:
        """A book as it was when nothing had been spent, to add up what some events cost by themselves."""
        book = self._new_book()
        book.versions = self._versions.copy()
        return book

    def position(self) -> int:
        """The position of the last record of the log."""
        with self._lock:
            self._advanced()
            return self._position

    def version(self) -> int:
        """The version of the table that verbs run on: the last one declared."""
        with self._lock:
            self._advanced()
            return self._version

    @property
    def _version(self) -> int:
        return self._versions.present.get(self.table, 0)

    def added(self) -> list[Added]:
        """The events that add the private tables beside the first, as they are known here."""
        return [relation.added for relation in self._relations if relation.table != ROOT]

    def further(self) -> dict[str, Domain]:
        """The domains of the private tables beside the first, by name."""
        return {relation.table: relation.domain for relation in self._relations if relation.table != ROOT}

    def tables(self) -> dict[int, str]:
        """The table of each version of the data that the log declares."""
        with self._lock:
            self._advanced()
            return dict(self._versions.tables)

    def sealed(self) -> int | None:
        """How many partitions, from the first one on, can be asked about; None where the data have no partitions."""
        with self._lock:
            self._advanced()
            return None if self._axis is None else self._seals.sealed

    def known_keys(self) -> dict[str, tuple[KeyedText, ...]]:
        """The texts of each open column that have cells, in the order of these."""
        with self._lock:
            self._advanced()
            return {name: tuple(keys) for (table, name), keys in self._keys.keys.items() if table == self.table}

    def delta_spent(self) -> int:
        """What looking for texts has used up of delta, in units of 2^-100."""
        with self._lock:
            self._advanced()
            return self._deltas.spent

    def carried(self) -> int:
        """What of `spent` stands for another ledger about the same people, in units of 2^-50."""
        with self._lock:
            return self._advanced().total.carried

    def sizes(self) -> tuple[int, ...]:
        """The numbers of rows of the sealed partitions, where these are public; else nothing."""
        with self._lock:
            self._advanced()
            return self._seals.sizes

    live = live

    def check(self, strategy: LinearMap) -> None:
        """Refuse, from public sizes alone, what could overflow or not fit in memory."""
        check_strategy(strategy, self.domain, self.max_rows)

    check_test = check_test

    # -- checkpoints ---------------------------------------------------------------------------------------------

    checkpoint, checkpoint_due, checkpoint_checked = checkpoint, checkpoint_due, checkpoint_checked

    def state(self) -> Tree:
        """Everything that is added up of the log, as plain values; nothing of holds, nor of what is not durable."""
        parts = (self._versions, self._accounts, self._blocks, self._vectors, self._seals, self._keys, self._deltas)
        return [self._position, *(part.state() for part in parts)]

    def restore(self, state: Tree) -> None:
        """Take over the state of a checkpoint instead of the records that it was added up of."""
        self._position, versions, accounts, blocks, vectors, seals, keys, deltas = state
        self._versions.restore(versions)
        self._accounts.restore(accounts, partial(self._entries, self._position))
        self._blocks.restore(blocks, self._position)
        self._vectors.restore(vectors, self.ledger.record)
        self._seals.restore(seals)
        self._keys.restore(keys)
        self._deltas.restore(deltas)
        self._checkpointed = self.begun = self._position

    def _nothing_read(self) -> Public:
        """The same before a record of the log was read."""
        return Public(
            domain=self.domain,
            unit=self._accountant.unit,
            budget=self.budget,
            max_rows=self.max_rows,
            ledger=self.ledger,
            sequential=self._sequential,
            table=self.table,
            relations=self._relations,
            resumes=False,
        )

    def _entries(self, end: int) -> Iterable[Entry]:
        records = self.ledger.records()
        return ((record.position, record.analyst, record.event) for record in records if record.position <= end)

    # -- the log -------------------------------------------------------------------------------------------------

    def _new_profile(self) -> Profile:
        return self._profile_of(self.domain, self._accountant.unit)

    def _profile_of(self, domain: Domain, unit: Unit) -> Profile:
        def own() -> Profile:
            around = AddRemove(domain)
            return ReplaceOne(domain, around) if unit.neighbours is Neighbours.REPLACE_ONE else around

        return Sequential(own) if self._sequential else own()

    def _terms(self, relation: Relation) -> TableTerms:
        if relation.table == self.table:
            return TableTerms(accountant=self._accountant, new_profile=self._new_profile, relation=relation)
        accountant = Accountant(mode=self.budget.mode, unit=relation.unit, order=self.budget.order)
        new_profile = partial(self._profile_of, relation.domain, relation.unit)
        return TableTerms(accountant=accountant, new_profile=new_profile, relation=relation)

    def _new_book(self) -> Book:
        terms = {relation.table: self._terms(relation) for relation in self._relations}
        first = terms.pop(ROOT)
        return Book(first.accountant, first.new_profile, further=terms)

    def _empty_accounts(self) -> SharedAccounts:
        return SharedAccounts(self.budget, self._new_book, self._new_book())

    def _advanced(self) -> SharedAccounts:
        self._advance(self.ledger.records(self._position))
        return self._accounts

    def _advance(self, records: Sequence[Record]) -> None:
        at_opening = self._position == self.begun  # a checkpoint that was there, and was not taken, cannot be used here
        for record in records:
            self._versions.add(record.event)
            self._blocks.add(record)
            self._vectors.add(record)
            self._accounts.add(record)
            self._seals.add(record.event)
            self._keys.add(record)
            self._deltas.add(record)
            if type(record.event) is Checkpointed and not at_opening:
                self._checkpointed = record.event.position
            self._position = record.position
