"""A ledger in memory: the same behaviour without durability, for simulations and benchmarks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from bursar.core.extensions.carried import TAKEN, Carried, first_record
from bursar.core.extensions.checkpoint import Checkpointed
from bursar.core.ledger import chain
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.integrity import drop_expired, erase_all_texts
from bursar.core.ledger.keyed_answers import stored_answer
from bursar.core.ledger.ledger import Charter, Health, Purpose, Record, Transaction
from bursar.core.ledger.transaction import TABLES, GroupCommit
from bursar.core.queries import LinearMap
from bursar.errors import LedgerError

T = TypeVar("T")


class MemoryMedium:
    """Rows in dicts. A transaction stages its changes; `commit` moves them over in one step that readers see whole."""

    def __init__(self, charter_hash: bytes) -> None:
        self.log: list[Record] = []
        self.head = charter_hash
        self.tables: dict[str, dict[str, bytes]] = {table: {} for table in TABLES}
        self.visible = threading.Lock()
        self._strategies: dict[str, LinearMap] = {}
        self._fence = 0
        self.begin()

    def begin(self) -> None:
        self._staged: dict[tuple[str, str], bytes | None] = {}
        self._pending: list[Record] = []
        self._chain = self.head

    def mark(self) -> None:
        self._marked = (dict(self._staged), len(self._pending), self._chain)

    def restore(self) -> None:
        self._staged, length, self._chain = self._marked
        del self._pending[length:]

    def keep(self) -> None:
        """Nothing to do: the next mark forgets this one."""

    def commit(self) -> None:
        with self.visible:
            for (table, name), body in self._staged.items():
                if body is None:
                    self.tables[table].pop(name, None)
                else:
                    self.tables[table][name] = body
            self.log += self._pending
            self.head = self._chain

    def abort(self) -> None:
        self.begin()

    @property
    def rows(self) -> MemoryMedium:
        return self

    def read(self, table: str, name: str) -> bytes | None:
        place = (table, name)
        return self._staged[place] if place in self._staged else self.durable(table, name)

    def durable(self, table: str, name: str) -> bytes | None:
        return self.tables[table].get(name)

    def write(self, table: str, name: str, body: bytes) -> None:
        self._staged[table, name] = body

    def erase(self, table: str, name: str) -> None:
        self._staged[table, name] = None

    def scan(self, table: str) -> Sequence[tuple[str, bytes]]:
        staged = {name: body for (place, name), body in self._staged.items() if place == table}
        merged = self.tables[table] | staged
        return [(name, body) for name, body in merged.items() if body is not None]

    def store(self, strategy: LinearMap) -> None:
        if strategy.digest not in self._strategies:
            codec.encode_strategy(strategy)  # refuses what another ledger could not store
            self._strategies[strategy.digest] = strategy

    def strategy(self, digest: str) -> LinearMap:
        return self._strategies[digest]

    def last(self) -> int:
        return len(self.log) + len(self._pending)

    def append(self, record: Record, body: bytes) -> None:
        self._pending.append(record)
        self._chain = chain.link(self._chain, body)

    def committed(self, after: int) -> Sequence[Record]:
        return self.log[max(after, 0) :]

    def pending(self) -> Sequence[Record]:
        return tuple(self._pending)

    def next_fence(self) -> int:
        self._fence += 1
        return self._fence


class MemoryLedger:
    """`Ledger` that is forgotten with the process; safe for threads, not shared with a fork."""

    warnings = ()

    def __init__(self, charter: Charter, *, carried: Carried | None = None) -> None:
        text = codec.to_json(charter)
        self._charter: Charter = MappingProxyType(codec.from_json(text))
        self._start = chain.genesis(text)
        self._medium = MemoryMedium(self._start)
        self._group = GroupCommit(self._medium)
        self._saved: dict[str, bytes] = {}
        self._closed = False
        if carried is not None:
            first = first_record(carried)
            purpose, values = Purpose(TAKEN, first.proposer), first.values
            self.commit(lambda t: t.append(analyst=first.analyst, purpose=purpose, event=carried, values=values))

    @property
    def charter(self) -> Charter:
        return self._charter

    def now(self) -> float:
        return time.time()

    def records(self, after: int = 0) -> Sequence[Record]:
        self._check_open()
        return self._medium.committed(after)

    def record(self, position: int) -> Record:
        self._check_open()
        return self._medium.log[position - 1]

    def resume(self, event: Checkpointed) -> bool:
        return any(record.event == event for record in self.records(event.position))

    def save(self, name: str, body: bytes) -> None:
        self._saved[name] = body

    def save_at(self, name: str, place: int, body: bytes) -> None:
        self._saved[name] = self._saved.get(name, b"")[:place].ljust(place, b"\0") + body

    def saved(self, name: str) -> bytes | None:
        return self._saved.get(name)

    def commit(self, work: Callable[[Transaction], T]) -> T:
        self._check_open()
        return self._group.commit(work)

    def while_waiting(self, work: Callable[[], object]) -> None:
        """There is one process."""

    def answered(self, *, analyst: str, key: str, question: str) -> bytes | None:
        self._check_open()
        with self._medium.visible:
            return stored_answer(self._medium.durable, analyst=analyst, key=key, question=question)

    def queue(self) -> Mapping[str, bytes]:
        self._check_open()
        with self._medium.visible:
            return dict(self._medium.tables["queue"])

    def texts(self, questions: Collection[str] | None = None) -> Mapping[str, str]:
        self._check_open()
        with self._medium.visible:
            texts = self._medium.tables["texts"]
            some = texts.keys() if questions is None else texts.keys() & set(questions)
            return {question: codec.from_json(texts[question]) for question in some}

    def erase_texts(self) -> int:
        return self.commit(lambda _: erase_all_texts(self._medium))

    def verify(self) -> Health:
        self._check_open()
        with self._medium.visible:
            log, head = list(self._medium.log), self._medium.head
            answers, holds = len(self._medium.tables["answers"]), len(self._medium.tables["holds"])
        computed = self._start
        for record in log:
            computed = chain.link(computed, codec.encode_record(record))
        if computed != head:
            raise LedgerError("a record was changed in memory")
        return Health(records=len(log), answers=answers, holds=holds, head=head.hex())

    def recover(self, now: float | None = None) -> Health:
        moment = self.now() if now is None else now
        dropped = self.commit(lambda _: drop_expired(self._medium, moment))
        return replace(self.verify(), notes=dropped)

    def close(self) -> None:
        with self._group.running:
            self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise LedgerError("the ledger is closed")
