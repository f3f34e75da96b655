"""What everybody may know: functions of the log, the holds, the charter and the clock. Nothing here reads data."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from bursar.core.accounting import Accountant, AddRemove, Book, Event, Profile, ReplaceOne
from bursar.core.accounting.kind import ROOT
from bursar.core.accounts import Charge
from bursar.core.budget import Budget
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.extensions.carried import carried
from bursar.core.extensions.charges import Charges, book_of, charged
from bursar.core.extensions.checkpoint import (
    Checkpointed,
    checkpoint,
    checkpoint_checked,
    checkpoint_due,
    resume,
    state,
)
from bursar.core.extensions.discovery import KeyDeltas, delta_spent
from bursar.core.extensions.open_keys import KeyLists, known_keys
from bursar.core.extensions.partitions import PartitionAxis, Seals, sealed, sizes, spent_by_partition
from bursar.core.extensions.refine import Blocks
from bursar.core.extensions.relations import (
    Relation,
    TableTerms,
    Versions,
    added_tables,
    check_relations,
    empty_book,
    further_domains,
    spent_by_table,
    tables_of_versions,
)
from bursar.core.extensions.sequential import Sequential
from bursar.core.extensions.shares import REST, SharedAccounts, account, shares_now
from bursar.core.extensions.sparse_vector import SparseVectors, check_test, live
from bursar.core.ledger import Ledger, Record
from bursar.core.queries import LinearMap
from bursar.core.source.source import check_strategy
from bursar.errors import ConfigError


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
        self._deltas, self._charges = KeyDeltas(), Charges()
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

    def left(self) -> int:
        """What the profile may still grow by, in units of 2^-50; holds are not counted, admission does that."""
        return max(self.budget.units - self.spent(), 0)

    def held(self, analyst: str | None = None) -> int:
        """What plans that are running have set aside, in units of 2^-50: all of them, or one analyst's account."""
        holds = self.ledger.commit(lambda transaction: transaction.holds(self.ledger.now()))
        events = [event for hold in holds if analyst in (None, hold.analyst) for event in hold.events]
        return self.price(events) if analyst is None else self.charge(events, analyst).account

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

    shares, account, live, carried = shares_now, account, live, carried
    added, further, tables, spent_by_table = added_tables, further_domains, tables_of_versions, spent_by_table
    sealed, sizes, known_keys, delta_spent = sealed, sizes, known_keys, delta_spent
    charged, book_of, empty_book, spent_by_partition = charged, book_of, empty_book, spent_by_partition
    state, checkpoint, checkpoint_due, checkpoint_checked = state, checkpoint, checkpoint_due, checkpoint_checked
    """What the log says about extensions: a closed list."""

    def check(self, strategy: LinearMap) -> None:
        """Refuse, from public sizes alone, what could overflow or not fit in memory."""
        check_strategy(strategy, self.domain, self.max_rows)

    check_test = check_test

    # -- the log -------------------------------------------------------------------------------------------------

    def _profile_of(self, domain: Domain, unit: Unit) -> Profile:
        def own() -> Profile:
            around = AddRemove(domain)
            return ReplaceOne(domain, around) if unit.neighbours is Neighbours.REPLACE_ONE else around

        return Sequential(own) if self._sequential else own()

    def _terms(self, relation: Relation) -> TableTerms:
        accountant = replace(self._accountant, unit=relation.unit)
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
            self._charges.add(record, self._accounts.play(record))
            self._seals.add(record.event)
            self._keys.add(record)
            self._deltas.add(record)
            if type(record.event) is Checkpointed and not at_opening:
                self._checkpointed = record.event.position
            self._position = record.position
