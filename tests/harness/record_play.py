"""Record-play: the whole engine on two neighbouring data sets, with noisy answers that an adversary dictates.

The tape knows the exact answers of its own run and returns noise = wanted - exact, so both runs release the same
values. Then everything that can be seen must be the same: verbs, their parameters and order, prices, records, messages,
answers, budget and log; and what is hidden, the exact answers, must differ by exactly q_j of the rows that differ.

It cannot see a wrong law of noise, reused randomness, races or timing: those have their own tests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from bursar.engine import Bursar
from bursar.errors import BursarError, LedgerError, SourceError
from bursar.kernel.accounting import Measured, Mode, Noise, NoiseKind
from bursar.kernel.accounting.noise import UNIT_BITS
from bursar.kernel.curator import declare_version
from bursar.kernel.grant import new_claim
from bursar.kernel.kernel import Kernel
from bursar.kernel.ledger import MemoryLedger, Record, Transaction
from bursar.kernel.ledger.codec import encode_record
from bursar.kernel.sources.source import Source
from bursar.queries import LinearMap, decode, encode
from harness.cells import Numbers, coefficients
from harness.clock import same_clock
from harness.people import DOMAIN, History, MakeSource, Pair, plain_source, table_faults
from harness.small import charter


CRASHED = "crashed"


# ------------------------------------------------------------------------------------------------ what is played


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A question, and what it is asked with."""

    sql: str
    wanted: dict[str, Any] = field(default_factory=dict)
    key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Overtake:
    """Somebody else's question is committed between the plan and the commit of the next verb."""

    ask: Ask


@dataclass(frozen=True)
class LoseCommit:
    """The next commit in which noise is drawn fails after its work was done."""


@dataclass(frozen=True)
class FailSource:
    """The next time that the data are counted, counting fails."""


@dataclass(frozen=True, kw_only=True)
class Squat:
    """Another process has claimed the key of a question and never comes back."""

    ask: Ask


@dataclass(frozen=True, kw_only=True)
class Declare:
    """The data owner declares the next version of the data."""

    same_rows: bool


Step = Ask | Overtake | LoseCommit | FailSource | Squat | Declare


@dataclass(frozen=True, kw_only=True)
class Under:
    """What is under test: the engine as it is, or with a fault planted in one of its parts."""

    kernel: type[Kernel] = Kernel
    source: MakeSource = plain_source
    engine: type[Bursar] = Bursar


# --------------------------------------------------------------------------------------------------- what is seen


@dataclass
class Call:
    """One call of a verb, as the engine made it and as it ended."""

    verb: str
    given: tuple[Any, ...]
    draws: list[tuple[Noise, int]] = field(default_factory=list)
    noise: list[Numbers] = field(default_factory=list)
    wanted: list[Numbers] = field(default_factory=list)
    record: Record | None = None
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
    charges: list[int] = field(default_factory=list)  # per record of the log
    budget: int = 0


class Player:
    """The `Randomness` of a run, and the one who arranges accidents."""

    def __init__(self, run: Run, seed: str, near: Callable[[LinearMap], Numbers]) -> None:
        self.run, self._seed, self._near = run, seed, near
        self._drawn = self._secrets = 0
        self.call: Call | None = None
        self.strategy: LinearMap | None = None
        self.overtake: Callable[[], None] | None = None
        self.lose = self.fail = False

    def draw(self, noise: Noise, size: int) -> Numbers:
        assert self.call is not None and self.strategy is not None, "noise was drawn outside a verb"
        exact = spelt(self.strategy) @ self.run.tables[-1].ravel()
        near = self._near(self.strategy)
        if len(exact) != size:
            exact = near = np.zeros(size, np.int64)  # a fault: the comparison will find it
        wanted = outputs(Random(f"{self._seed}/{self._drawn}"), size, near)
        self._drawn += 1
        self.call.draws.append((noise, size))
        self.call.wanted.append(wanted)
        self.call.noise.append(wanted - exact)
        return wanted - exact

    def secret(self, size: int) -> bytes:
        self._secrets += 1
        return hashlib.shake_256(f"{self._seed}/secret/{self._secrets}".encode()).digest(size)

    def drawn(self) -> int:
        return self._drawn


def outputs(rng: Random, size: int, near: Numbers) -> Numbers:
    """Noisy answers that an adversary would like to see; `near` are plausible ones."""
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


@cache
def _spelt(body: bytes) -> Numbers:
    return coefficients(decode(body), DOMAIN)


def spelt(strategy: LinearMap) -> Numbers:
    """q_j(v) as a matrix; kept, since the same strategies come again and again."""
    return _spelt(encode(strategy))


# ------------------------------------------------------------------------------------------------------- playing


class _Ledger(MemoryLedger):
    """A memory ledger whose commits can be lost after their work was done."""

    player: Player

    def commit(self, work: Callable[[Transaction], Any]) -> Any:
        def perhaps_lost(transaction: Transaction) -> Any:
            before = self.player.drawn()
            result = work(transaction)
            if self.player.lose and self.player.drawn() > before:
                self.player.lose = False
                raise LedgerError("the disk is full; nothing was released")
            return result

        return super().commit(perhaps_lost)


class _Source:
    """A source that can fail, and that shows which tables it was asked for."""

    def __init__(self, inner: Source, player: Player) -> None:
        self._inner, self._player = inner, player
        self.fingerprint, self.content, self.close = inner.fingerprint, inner.content, inner.close

    def table(self, attrs: tuple[str, ...]) -> Numbers:
        self._player.run.seen.append(("counted", attrs))
        if self._player.fail:
            self._player.fail = False
            raise SourceError("the data could not be counted")
        return self._inner.table(attrs)


def _watched(kernel: type[Kernel], player: Player) -> type[Kernel]:
    """The kernel, with every verb and every price written down."""

    class Watched(kernel):  # type: ignore[misc, valid-type]
        def price(self, events: Any) -> int:
            listed = list(events)
            units = super().price(listed)
            player.run.seen.append(("price", [_event(event) for event in listed], units))
            return units

        def measure(self, strategy: LinearMap, noise: Noise, **rest: Any) -> tuple[Record, int]:
            overtake, player.overtake = player.overtake, None
            if overtake is not None:
                overtake()
            call = Call("measure", (encode(strategy), noise, *sorted(rest.items(), key=lambda item: item[0])))
            player.call, player.strategy = call, strategy
            try:
                record, charge = super().measure(strategy, noise, **rest)
                call.record, call.ended = record, (encode_record(record), charge)
                return record, charge
            except BursarError as refusal:
                call.ended = _refused(refusal)
                raise
            finally:
                player.call = player.strategy = None
                player.run.calls.append(call)
                player.run.seen.append(call.seen())

    return Watched


def play(pair: Pair, people: History, steps: Sequence[Step], under: Under = Under()) -> Run:
    """Play the steps on one side of a pair."""
    run = Run(budget=pair.settings.budget.units)

    def near(strategy: LinearMap) -> Numbers:
        """Plausible answers, the same in both runs: the exact ones of the left data set, without any bound."""
        version = min(len(run.tables), len(pair.left)) - 1
        return spelt(strategy) @ plain_source(pair.settings, pair.left[version], b"near").table(DOMAIN.names).ravel()

    player = Player(run, pair.seed, near)
    ledger = _Ledger(charter(pair.settings))
    ledger.player = player
    declared = 0

    def open_source(key: bytes) -> Source:
        return _Source(under.source(pair.settings, people[declared], key), player)

    def declare(same_rows: bool) -> None:
        declare_version(ledger=ledger, open_source=open_source, randomness=player, same_rows=same_rows)
        key = ledger.commit(lambda transaction: transaction.secret("data key"))
        counted = under.source(pair.settings, people[declared], key)
        run.tables.append(counted.table(DOMAIN.names))
        counted.close()

    def engine(analyst: str) -> Bursar:
        door: Any = {"open_source": open_source, "randomness": player, "analyst": analyst}
        with patch("bursar.engine.Kernel", _watched(under.kernel, player)):
            return under.engine(pair.settings, ledger, **door)

    with same_clock(), ExitStack() as stack:
        declare(False)
        ann, bob = (stack.enter_context(engine(name)) for name in ("ann", "bob"))
        for step in steps:
            match step:
                case Ask():
                    run.seen.append(_asked(ann, step))
                case Overtake():
                    player.overtake = lambda ask=step.ask: run.seen.append(("by bob", *_asked(bob, ask)))
                case LoseCommit():
                    player.lose = True
                case FailSource():
                    player.fail = True
                case Squat():
                    _squat(ann, step.ask, player)
                case Declare():
                    declared += 1
                    declare(step.same_rows)
            run.seen.append(_ended("budget", ann.budget))
            run.seen.append(_ended("log", ann.log))
        run.seen.append(("ledger", ledger.verify(), *map(encode_record, ledger.records())))
        run.seen.append(("rows", *(sorted(ledger._medium.tables[name].items()) for name in ("holds", "claims", "answers"))))
        run.charges = [charge for _, charge in ann.kernel.history()]
    return run


def _asked(engine: Bursar, ask: Ask) -> tuple[Any, ...]:
    def answered() -> tuple[Any, ...]:
        answer = engine.query(ask.sql, key=ask.key, **ask.wanted)
        return type(answer).__name__, answer.to_json(), str(answer)

    return _ended("asked", answered)


def _ended(what: str, work: Callable[[], Any]) -> tuple[Any, ...]:
    """What somebody sees: a result, a refusal, or, which must never be, a crash."""
    try:
        return (what, work())
    except BursarError as refusal:
        return (what, *_refused(refusal))
    except Exception as crash:
        return (what, CRASHED, repr(crash))


def _refused(refusal: BursarError) -> tuple[Any, ...]:
    return ("refused", type(refusal).__name__, str(refusal), repr(vars(refusal)), str(refusal.__cause__))


def _squat(engine: Bursar, ask: Ask, player: Player) -> None:
    from bursar.planner.goals import Wanted

    request = engine.prepare(ask.sql, Wanted(**ask.wanted), ask.key)
    assert ask.key is not None
    claim = new_claim(player, analyst=engine.analyst, key=ask.key, question=request.question)
    engine.ledger.commit(lambda transaction: transaction.claim(claim, 0.0))


def _event(event: object) -> tuple[Any, ...]:
    assert isinstance(event, Measured)
    return (event.strategy.digest, event.noise, event.version)


# ----------------------------------------------------------------------------------------------------- comparing


def faults(pair: Pair, steps: Sequence[Step], under: Under = Under()) -> list[str]:
    """Everything that record-play finds wrong with one pair of neighbours; empty where nothing is."""
    left, right = play(pair, pair.left, steps, under), play(pair, pair.right, steps, under)
    found = _differences(left, right)
    for tables, people in zip(zip(left.tables, right.tables, strict=True), zip(pair.left, pair.right, strict=True), strict=False):
        found += table_faults(pair.settings.unit, *people, tables)
    found += [fault for run in (left, right) for fault in _not_as_told(run)]
    if found:
        return found
    return _wrong_inputs(left, right) + _underpriced(pair, left, right)


def _differences(left: Run, right: Run) -> list[str]:
    """The first thing that can be seen in one run and not in the other."""
    for place, (here, there) in enumerate(zip(left.seen, right.seen, strict=False)):
        if here != there:
            return [f"the runs can be told apart at {place}:\n  {here}\n  {there}"]
    return [] if len(left.seen) == len(right.seen) else ["one run shows more than the other"]


def _not_as_told(run: Run) -> list[str]:
    """Every record has one draw of its own noise, and its values are those that the adversary wanted."""
    found = [f"the engine crashed: {seen[-1]}" for seen in run.seen if CRASHED in seen]
    for call in run.calls:
        if call.record is None:
            continue
        event = call.record.event
        if not isinstance(event, Measured) or call.draws != [(event.noise, event.strategy.rows)]:
            found.append("a record does not have exactly one draw of its own noise for each of its rows")
        elif not np.array_equal(call.record.values, call.wanted[-1]):
            found.append("a record does not hold exact answers plus the noise that was drawn")
    return found


def _measured(run: Run) -> list[Call]:
    return [call for call in run.calls if call.record is not None]


def _wrong_inputs(left: Run, right: Run) -> list[str]:
    """The exact answers behind the records must differ by q_j of the rows that differ."""
    for here, there in zip(_measured(left), _measured(right), strict=True):
        event = here.record.event
        assert isinstance(event, Measured)
        change = right.tables[event.version - 1] - left.tables[event.version - 1]
        if not np.array_equal(there.inputs - here.inputs, spelt(event.strategy) @ change.ravel()):
            return ["the exact answers do not differ by q_j(v)"]
    return []


def _underpriced(pair: Pair, left: Run, right: Run) -> list[str]:
    """At no time may this very pair be told apart better than what was charged until then."""
    mode = pair.settings.budget.mode
    charged = dict(enumerate(np.cumsum(np.array(left.charges, object)), start=1))
    loss = Fraction(0)
    for here, there in zip(_measured(left), _measured(right), strict=True):
        event = here.record.event
        assert isinstance(event, Measured)
        loss += _loss(event.noise, there.inputs - here.inputs, mode)
        if loss > Fraction(int(charged[here.record.position]), 2**UNIT_BITS):
            return ["the pair can be told apart better than was paid for"]
    return [] if sum(left.charges) <= left.budget else ["more was charged than the budget allows"]


def _loss(noise: Noise, shift: Numbers, mode: Mode) -> Fraction:
    """sum_j |d_j| / b, or sum_j d_j^2 / (2 sigma^2), of independent rows whose answers are shifted by d_j."""
    scale = Fraction(noise.scale)
    if mode is Mode.PURE:
        assert noise.kind is NoiseKind.LAPLACE
        return Fraction(int(np.abs(shift).sum())) / scale
    return Fraction(int(np.square(shift).sum())) / (2 * scale**2)
