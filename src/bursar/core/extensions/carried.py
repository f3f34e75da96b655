"""Carrying over: what was spent under one config counts in the ledger of another config about the same people.

A ledger is bound to its charter for life, so a config that declares other columns, or a larger budget, needs a ledger
of its own. The old one then keeps all that it had left for the new one, in one commit, and the new one begins with what
the old one had spent: between them the two never spend more than the budget of the new one. See `carried.proof.md`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bursar.core.accounting.kind import EventKind, Fields
from bursar.core.noise.law import DELTA_BITS, from_units
from bursar.errors import ConfigError, LedgerError, QueryError

if TYPE_CHECKING:
    from bursar.core.budget import Budget
    from bursar.core.kernel import Kernel
    from bursar.core.ledger import Charter, Record, Transaction
    from bursar.core.ledger.database import Database
    from bursar.core.public import Public

HANDED = "kept what was left for a new config"
TAKEN = "carried over what was spent under an earlier config"

SAME = (("privacy", "unit"), ("privacy", "neighbours"), ("budget", "mode"), ("budget", "order"))
"""What two charters must have in common, or a loss under one would be no loss under the other."""


@dataclass(frozen=True, kw_only=True)
class Carried(EventKind):
    """Loss that is added to every cell: what another ledger about the same people has spent, or may yet spend.

    `onward` says that this is the old one of the two: what it had left is kept for the ledger whose charter has the
    hash `ledger`. In the new one, `ledger` is the hash of the last record of the old one.
    Edge cases: refused is what would lower a loss.
    """

    kind = "carried"
    units: int  # of 2^-50
    delta: int  # of delta_keys, in units of 2^-100
    ledger: str
    onward: bool

    def __post_init__(self) -> None:
        whole = all(type(number) is int and number >= 0 for number in (self.units, self.delta))
        if not whole or re.fullmatch("[0-9a-f]{64}", self.ledger) is None:
            raise QueryError("what is carried over from a ledger is named by its hash, and is not below 0")

    def fields(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in ("kind", "units", "delta", "ledger", "onward")}

    @staticmethod
    def read(fields: Fields) -> Carried:
        units, delta = fields.take("units", int), fields.take("delta", int)
        return Carried(units=units, delta=delta, ledger=fields.take("ledger", str), onward=fields.take("onward", bool))


def hand_over(kernel: Kernel, charter: Charter, budget: Budget, *, promised: int = 0) -> Carried:
    """Keep all that a ledger has left for a new one with this charter and budget, one commit; what the new one begins
    with. `promised` is what the shares of the new one give out of its budget, in units of 2^-50.

    Guarantees: from then on the old ledger admits nothing that would raise what it has spent. Done again for the same
    charter, as after a crash, it gives the same numbers.
    Edge cases: refused, and nothing is written, where the new one protects other people or counts otherwise, has too
    small a budget, or where the ledger was handed over to another charter before.
    """
    from bursar.core.ledger import Purpose, chain, record_codec  # the ledger knows every kind of event

    _check(kernel.ledger.charter, charter)
    target = chain.genesis(record_codec.to_json(dict(charter))).hex()

    def work(transaction: Transaction) -> tuple[int, int]:
        accounts = kernel._accounts_with(transaction)
        log = [*transaction.committed(0), *transaction.pending()]
        before = [record.event for record in log if isinstance(record.event, Carried) and record.event.onward]
        if any(event.ledger != target for event in before):
            raise LedgerError("what this ledger had left was kept for another config before, and cannot be had twice")
        units, delta = kernel.budget.units, kernel.budget.key_units
        if before:
            return units - sum(event.units for event in before), delta - sum(event.delta for event in before)
        with kernel._lock:
            spent, used = accounts.spent(), kernel._deltas.after(transaction.pending())
        if spent > budget.units - promised:
            shares = ", beside its shares," if promised else ""
            told = f"{budget.mode.unit} {from_units(spent):.6g}"
            raise ConfigError(f"the budget of the new config{shares} is smaller than what was spent, {told}")
        if used > budget.key_units:
            told = f"{used / 2**DELTA_BITS:.3g}"
            raise ConfigError(
                f"looking for texts has used up {told} of delta, and the new config keeps less for it\n"
                f"try: delta_keys = {told} under [budget], or a little more"
            )
        event = Carried(units=units - spent, delta=delta - used, ledger=target, onward=True)
        values = np.zeros(0, np.int64)
        transaction.append(analyst="owner", purpose=Purpose(HANDED, "owner"), event=event, values=values)
        return spent, used

    units, delta = kernel.ledger.commit(work)
    return Carried(units=units, delta=delta, ledger=kernel.ledger.verify().head, onward=False)


def _check(old: Charter, new: Charter) -> None:
    """Refuse two charters whose losses do not add up."""
    for section, name in SAME:
        before, after = old[section], new[section]
        assert isinstance(before, Mapping)
        assert isinstance(after, Mapping)
        if before.get(name) != after.get(name):
            raise ConfigError(
                "what was spent is carried over to a config that protects the same people and counts in the same way: "
                f"{name}, under [{section}], is another one"
            )


def first_record(event: Carried) -> Record:
    """The record with which the new ledger begins."""
    from bursar.core.ledger import Record, chain

    return Record(
        position=1,
        at=time.time(),
        analyst="owner",
        question=chain.question(TAKEN),
        proposer="owner",
        run=1,
        event=event,
        values=np.zeros(0, np.int64),
    )


def carried(public: Public) -> int:
    """What of `spent` stands for another ledger about the same people, in units of 2^-50."""
    with public._lock:
        return public._advanced().total.carried


def begin_with(database: Database, event: Carried) -> tuple[int, int, bytes]:
    """Write the first record of a new ledger in a database; the last fence, the last position and its hash after it."""
    from bursar.core.ledger import chain, record_codec

    record = first_record(event)
    body = record_codec.encode_record(record)
    head = chain.link(database.charter_hash, body)
    database.append(record.position, body, head)
    database.write("texts", record.question, record_codec.to_json(TAKEN))
    return record.run, record.position, head
