"""The parts of an engine in record-play: a tape that dictates outputs; a kernel, ledger and source that are watched.

A new verb gets a method in `watched`: it opens `player.verb` with the rows that the verb is about to answer, so that
the tape knows their exact answers, and says how the call ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from bursar.core.accounting import Book, Event, Failed, Measured, Noise, Opened, Refined, Selected
from bursar.core.accounts import Charge
from bursar.core.kernel import Kernel
from bursar.core.ledger import Charter, MemoryLedger, Record, Transaction
from bursar.core.ledger.record_codec import encode_record
from bursar.core.queries import Distinct, LinearMap, PerPerson, Predicate, encode
from bursar.core.source.source import Source
from bursar.errors import BursarError, LedgerError, SourceError
from harness import plainly
from harness.cells import Numbers
from harness.people import DOMAIN


@dataclass
class Call:
    """One call of a verb, as the engine made it and as it ended."""

    verb: str
    given: tuple[Any, ...]
    strategy: LinearMap
    draws: list[tuple[Any, int]] = field(default_factory=list)  # the law, or the laws before and after, of how many
    current: list[Numbers] = field(default_factory=list)  # the noise that a refinement was drawn under
    noise: list[Numbers] = field(default_factory=list)
    wanted: list[Numbers] = field(default_factory=list)
    record: Record | None = None
    scores: list[Numbers] = field(default_factory=list)  # that a selection was drawn by
    expected: Numbers | None = None  # what these have to be
    tested: tuple[int, int] | None = None  # the instance and the exact distance of a test
    told: bool | None = None  # how the test has to come out
    ended: tuple[Any, ...] = ()

    def seen(self) -> tuple[Any, ...]:
        return (self.verb, *self.given, tuple(self.draws), *self.ended)

    @property
    def inputs(self) -> Numbers:
        """The exact answers that the kernel used: what was released, less the noise that it was given."""
        assert self.record is not None
        return self.record.values - self.noise[-1]


@dataclass
class Run:
    """One run: what anybody sees, in order, and what only the harness knows."""

    seen: list[tuple[Any, ...]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    tables: list[Numbers] = field(default_factory=list)  # the exact counts, per version
    rows: list[plainly.Rows] = field(default_factory=list)  # per version, where the source shows them
    charges: list[int] = field(default_factory=list)  # per record of the log
    log: list[Record] = field(default_factory=list)
    book: Book | None = None

    def exact(self, strategy: LinearMap, version: int) -> Numbers:
        """The exact answers on a version of the data, by its place."""
        if plainly.is_sum(strategy):
            return spelt(strategy) @ self.tables[version].ravel()
        return plainly.answers(strategy, self.rows[version], DOMAIN)


class Player:
    """The `Randomness` of a run, and the one who arranges accidents.

    `near` gives plausible answers, the same in both runs of a pair.
    """

    def __init__(self, run: Run, seed: str, near: Callable[[LinearMap], Numbers]) -> None:
        self.run, self._seed, self._near = run, seed, near
        self._secrets = 0
        self._call: Call | None = None
        self.thresholds: dict[int, int] = {}  # noisy, by instance
        self.drawn = 0
        self.overtake: Callable[[], None] | None = None
        self.lose = self.fail = False

    @property
    def in_verb(self) -> bool:
        return self._call is not None

    def draw(self, noise: Noise, size: int) -> Numbers:
        if self._call is not None and self._call.verb in ("open", "test"):
            return self._for_sparse_vector(self._call, noise, size)
        return self._dictated(noise, size)

    def _for_sparse_vector(self, call: Call, noise: Noise, size: int) -> Numbers:
        """Thresholds are dictated as they are; tests by how they come out, often by a hair."""
        rng = Random(f"{self._seed}/{self.drawn}")
        self.drawn += 1
        if call.verb == "open":
            value = rng.choice([0, 1, -1, rng.randint(-9, 9), 10**4, -(10**4), 2**45, -(2**45)])
        else:
            assert call.tested is not None
            instance, distance = call.tested
            short = rng.choice([-1, -1, -1, 0, 0, -(10**6), -(10**6), 10**6])
            call.told = short >= 0
            value = self.thresholds[instance] + short - distance
        call.draws.append((noise, size))
        call.noise.append(np.full(size, value))
        return np.full(size, value)

    def select(self, scores: Numbers, *, count: int, scale: float) -> Numbers:
        """Dictated are the rows, the same in both runs: any of those that are not barred."""
        assert self._call is not None
        rng = Random(f"{self._seed}/{self.drawn}")
        self.drawn += 1
        wanted = np.array(rng.sample(np.flatnonzero(scores >= 0).tolist(), count), np.int64)
        self._call.draws.append((scale, count))
        self._call.wanted.append(wanted)
        self._call.scores.append(scores)
        return wanted

    def refine(self, current: Numbers, before: Noise, after: Noise) -> Numbers:
        dictated = self._dictated((before, after), len(current))
        assert self._call is not None
        self._call.current.append(current)
        return dictated

    def _dictated(self, law: Any, size: int) -> Numbers:
        """wanted - exact, so that what is released is what is wanted."""
        call = self._call
        if call is None:
            raise AssertionError("noise was drawn outside a verb")
        exact = self.run.exact(call.strategy, -1)
        near = self._near(call.strategy)
        if len(exact) != size:
            exact = near = np.zeros(size, np.int64)  # a fault, and the comparison will find it
        wanted = outputs(Random(f"{self._seed}/{self.drawn}"), size, near)
        self.drawn += 1
        call.draws.append((law, size))
        call.wanted.append(wanted)
        call.noise.append(wanted - exact)
        return wanted - exact

    def secret(self, size: int) -> bytes:
        self._secrets += 1
        return hashlib.shake_256(f"{self._seed}/secret/{self._secrets}".encode()).digest(size)

    @contextmanager
    def verb(self, name: str, strategy: LinearMap, *given: Any) -> Iterator[Call]:
        """Draws inside are for the rows of this strategy; the call is written down when it has ended."""
        around = self._call
        self._call = call = Call(name, (encode(strategy), *given), strategy)
        try:
            yield call
        except BursarError as refusal:
            call.ended = refused(refusal)
            raise
        finally:
            self._call = around
            self.run.calls.append(call)
            self.run.seen.append(call.seen())


def outputs(rng: Random, size: int, near: Numbers) -> Numbers:
    """Noisy answers that an adversary would like to see."""
    match rng.choice(["near", "near", "zero", "ties", "negative", "tail", "huge", "mixed"]):
        case "near":
            values = [int(x) + rng.randint(-2, 2) for x in near]
        case "zero":
            values = [0] * size
        case "ties":
            values = [rng.randint(-1, 4)] * size
        case "negative":
            values = [-rng.randint(1, 9) for _ in range(size)]
        case "tail":
            values = [int(x) + rng.choice([-1, 1]) * rng.randint(10**3, 10**6) for x in near]
        case "huge":
            values = [rng.choice([-1, 1]) * (2**45 + rng.randrange(2**45)) for _ in range(size)]
        case _:
            values = [rng.choice([0, 1, -1, int(x), 10**5, -(2**40)]) for x in near]
    return np.array(values, np.int64)


def spelt(strategy: LinearMap) -> Numbers:
    """q_j(v) as a matrix over all cells."""
    return plainly.spelt(strategy, DOMAIN)


def refused(refusal: BursarError) -> tuple[Any, ...]:
    """All that a refusal shows."""
    return ("refused", type(refusal).__name__, str(refusal), repr(vars(refusal)), str(refusal.__cause__))


class WatchedLedger(MemoryLedger):
    """A memory ledger where others can be faster, and whose commits can be lost after their work was done."""

    def __init__(self, charter: Charter, player: Player) -> None:
        super().__init__(charter)
        self.player = player

    def commit(self, work: Callable[[Transaction], Any]) -> Any:
        if self.player.in_verb and not work.__qualname__.startswith("Kernel._secrets"):  # which are read before it
            overtake, self.player.overtake = self.player.overtake, None
            if overtake is not None:
                overtake()

        def perhaps_lost(transaction: Transaction) -> Any:
            before = self.player.drawn
            result = work(transaction)
            if self.player.lose and self.player.drawn > before:
                self.player.lose = False
                raise LedgerError("the disk is full; nothing was released")
            return result

        return super().commit(perhaps_lost)


class WatchedSource:
    """A source that can fail, and that shows which tables it was asked for."""

    def __init__(self, inner: Source, player: Player) -> None:
        self._inner, self._player = inner, player
        self.content, self.close = inner.content, inner.close

    def table(self, attrs: tuple[str, ...]) -> Numbers:
        self._player.run.seen.append(("counted", attrs))
        if self._player.fail:
            self._player.fail = False
            raise SourceError("the data could not be counted")
        return self._inner.table(attrs)

    def count(self, predicate: Predicate) -> int:
        self._player.run.seen.append(("counted", predicate.digest))
        if self._player.fail:
            self._player.fail = False
            raise SourceError("the data could not be counted")
        return self._inner.count(predicate)

    def distinct(self, distinct: Distinct) -> Numbers:
        self._player.run.seen.append(("counted", distinct.digest))
        if self._player.fail:
            self._player.fail = False
            raise SourceError("the data could not be counted")
        return self._inner.distinct(distinct)

    def per_person(self, people: PerPerson) -> Numbers:
        self._player.run.seen.append(("counted", people.digest))
        if self._player.fail:
            self._player.fail = False
            raise SourceError("the data could not be counted")
        return self._inner.per_person(people)


def watched(kernel: type[Kernel], player: Player) -> type[Kernel]:
    """The kernel, with every verb and every price written down."""

    class Watched(kernel):  # type: ignore[misc, valid-type]
        def price(self, events: Iterable[Event]) -> int:
            listed = list(events)
            units = super().price(listed)
            player.run.seen.append(("price", [_facts(event) for event in listed], units))
            return units

        def charge(self, events: Iterable[Event], analyst: str) -> Charge:
            listed = list(events)
            units = super().charge(listed, analyst)
            player.run.seen.append(("charge", [_facts(event) for event in listed], units))
            return units

        def measure(self, strategy: LinearMap, noise: Noise, **rest: Any) -> tuple[Record, Charge]:
            with player.verb("measure", strategy, noise, *sorted(rest.items())) as call:
                record, charge = super().measure(strategy, noise, **rest)
                call.record, call.ended = record, (encode_record(record), charge)
            return record, charge

        def refine(self, block: int, rows: Sequence[int], noise: Noise, **rest: Any) -> tuple[Record, Charge]:
            measured = self.ledger.records(block - 1)[0].event.strategy
            given = (block, *map(int, rows), noise, *sorted(rest.items()))
            with player.verb("refine", measured.take(rows), *given) as call:
                record, charge = super().refine(block, rows, noise, **rest)
                call.record, call.ended = record, (encode_record(record), charge)
            return record, charge

        def select(self, candidates: LinearMap, estimates: Numbers, **rest: Any) -> tuple[Record, Charge]:
            given = ((name, value.tolist() if name == "barred" else value) for name, value in sorted(rest.items()))
            with player.verb("select", candidates, *estimates.tolist(), *given) as call:
                record, charge = super().select(candidates, estimates, **rest)
                call.record, call.ended = record, (encode_record(record), charge)
                exact = spelt(candidates) @ player.run.tables[-1].ravel()
                call.expected = np.abs(exact - estimates)
                call.expected[rest["barred"]] = -1
            return record, charge

        def open(self, event: Opened, **rest: Any) -> tuple[Record, Charge]:
            with player.verb("open", event.scope, *_facts(event), *sorted(rest.items())) as call:
                record, charge = super().open(event, **rest)
                call.record, call.ended = record, (encode_record(record), charge)
                player.thresholds[record.position] = event.cut + int(call.noise[-1][0])
            return record, charge

        def test(self, instance: int, query: LinearMap, estimate: int, **rest: Any) -> bool:
            with player.verb("test", query, instance, estimate, *sorted(rest.items())) as call:
                exact = int((spelt(query) @ player.run.tables[-1].ravel())[0])
                call.tested = (instance, abs(exact - estimate))
                above = bool(super().test(instance, query, estimate, **rest))
                call.ended = (above,)
            return above

    return Watched


def _facts(event: Event) -> tuple[Any, ...]:
    if isinstance(event, Opened):
        return (event.scope.digest, event.cut, event.threshold, event.test, event.version)
    if isinstance(event, Failed):
        return (event.instance, event.query.digest, event.estimate, event.version)
    if isinstance(event, Selected):
        return (event.candidates.digest, event.count, event.scale, event.estimates, event.barred, event.version)
    assert isinstance(event, Measured | Refined)
    if isinstance(event, Refined):
        return (event.block, *map(int, event.rows), event.before, event.after, event.version)
    return (event.strategy.digest, event.noise, event.version)
