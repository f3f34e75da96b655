"""What fault injection shares: engines on a ledger file, named steps where something happens, children that die,
a clock that jumps, and the list of what is wrong afterwards."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from multiprocessing import forkserver
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import bursar
from bursar.answer import Answer
from bursar.core.accounting import Event, Measured, Noise, NoiseKind, Opened, Refined, Selected
from bursar.core.budget import Budget
from bursar.core.extensions.curator import declare_version
from bursar.core.ledger import Record, SqliteLedger, chain, integrity
from bursar.core.ledger.transaction import RowTransaction
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import LinearMap
from bursar.core.tables import Tables
from bursar.errors import BursarError, LedgerError
from bursar.estimation.estimate import Estimate, IndependentRows
from bursar.planner.choose import Preset
from bursar.planner.grant import Grant, Verbs
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.planner import Planner
from bursar.planner.request import PlanningRequest
from bursar.proposers.direct import Direct
from bursar.proposers.reuse import Exact, Reconstruct
from bursar.session import Bursar
from harness.patience import PATIENCE
from harness.small import DOMAIN, TableSource, charter, config, counts, engine

EPSILON = 1.0
HOUR = 3600.0
"""Longer than any lease: what a dead process held is over by then."""


# -- presets ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fixed(Proposer):
    """Measures the question with Laplace noise of a scale that is a power of two, so that prices are exact."""

    scale: float
    name: str = "fixed"

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        wanted, noise = request.workload.map, Noise(kind=NoiseKind.LAPLACE, scale=self.scale)
        law = IndependentRows(noise=noise, rows=wanted.rows)
        events = (Measured(strategy=wanted, noise=noise, version=views.version),)

        def run(verbs: Verbs) -> Estimate:
            return Estimate(values=verbs.measure(wanted, noise).values.astype(float), law=law)

        price = Price(events=events, at_most=views.price(events))
        return [Offer(proposer=self.name, price=price, law=law, run=run, buys=wanted.rows)]


@dataclass(frozen=True)
class RowByRow(Proposer):
    """A plan of several verbs: measures each row by itself under one hold, and may reuse the rows that the log has."""

    scale: float
    reuse: bool
    name: str = "row by row"

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        wanted, noise = request.workload.map, Noise(kind=NoiseKind.LAPLACE, scale=self.scale)
        law = IndependentRows(noise=noise, rows=wanted.rows)
        rows = [wanted.take([row]) for row in range(wanted.rows)]
        known = {row.digest: views.measurements.finest.get(row.digest) if self.reuse else None for row in rows}
        missing = [row for row in rows if known[row.digest] is None]
        events = tuple(Measured(strategy=row, noise=noise, version=views.version) for row in missing)

        def run(verbs: Verbs) -> Estimate:
            bought = {row.digest: verbs.measure(row, noise) for row in missing}
            values = [(known[row.digest] or bought[row.digest]).values for row in rows]
            return Estimate(values=np.concatenate(values).astype(float), law=law)

        price = Price(events=events, at_most=views.price(events))
        return [Offer(proposer=self.name, price=price, law=law, run=run, buys=len(missing))]


PRESETS = {
    "default": Preset("one measurement", (Exact(), Reconstruct(), Direct())),  # what is released stands in the log
    "direct": Preset("direct-only", (Direct(),)),
    "fixed": Preset("fixed", (Fixed(512.0),)),
    "row by row": Preset("row by row", (Exact(), RowByRow(16.0, reuse=True))),
    "row by row, forgetful": Preset("row by row, forgetful", (RowByRow(16.0, reuse=False),)),
}


# -- engines on a ledger file -------------------------------------------------------------------------------


def settings(epsilon: float = EPSILON) -> Any:
    return config(budget=Budget.of(epsilon=epsilon))


def found(place: Path, epsilon: float = EPSILON) -> None:
    """Create a ledger with version 1 of the data declared."""
    ledger = SqliteLedger.create(place, charter(settings(epsilon)))
    declare(ledger)
    ledger.close()


def declare(ledger: SqliteLedger) -> int:
    source = TableSource(counts())
    return declare_version(ledger=ledger, open_source=lambda key: source, randomness=SystemRandomness())


def reopened(
    place: Path,
    *,
    preset: str = "default",
    epsilon: float = EPSILON,
    analyst: str = "ana",
    patience: float = PATIENCE,
) -> Bursar:
    ledger = SqliteLedger.open(place, charter(settings(epsilon)), busy_timeout=patience)
    return engine(settings=settings(epsilon), ledger=ledger, preset=PRESETS[preset], analyst=analyst)


def copied(template: Path, directory: Path) -> Path:
    """The ledger of `template` with everything beside it, in a directory of its own."""
    shutil.copytree(template.parent, directory)
    return directory / template.name


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One question with its key, and how many rows it takes to answer it."""

    key: str | None
    text: str = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
    within: float = 60.0
    rows: int = 2

    def of(self, bursar: Bursar) -> Answer:
        answer = bursar.query(self.text, key=self.key, within=self.within)
        assert isinstance(answer, Answer)
        return answer


def refusal(action: Callable[[], object]) -> str | None:
    """The text of the LedgerError that an action meets, None where it succeeds. Stale and Busy must stay inside."""
    met: LedgerError | None = None
    try:
        action()
    except LedgerError as error:
        met = error
    assert met is None or type(met) is LedgerError, met
    return None if met is None else str(met)


# -- steps --------------------------------------------------------------------------------------------------

SEAMS: tuple[tuple[Any, str], ...] = (
    (SqliteLedger, "answered"),
    (SqliteLedger, "records"),
    (Planner, "choose"),
    (Grant, "__enter__"),
    (Tables, "counts"),
    (SqliteLedger, "commit"),
    (RowTransaction, "claim"),
    (RowTransaction, "holds"),
    (RowTransaction, "put_hold"),
    (RowTransaction, "drop_hold"),
    (SystemRandomness, "draw"),
    (SystemRandomness, "refine"),
    (SystemRandomness, "select"),
    (RowTransaction, "append"),
    (RowTransaction, "put_secret"),
    (RowTransaction, "drop_secret"),
    (RowTransaction, "answer"),
    (integrity, "advance_anchor"),
    (Grant, "store"),
    (Grant, "__exit__"),
    (SqliteLedger, "close"),
)
"""Where the flow can be interrupted, before and after each of these, besides every SQL statement that writes."""

WRITING = ("BEGIN", "SAVEPOINT", "CREATE", "INSERT", "DELETE", "ROLLBACK", "RELEASE", "COMMIT")


EVERY = 1 if "BURSAR_SOAK" in os.environ else 10
"""Heavy tests act at every tenth step, from a random one on; `make soak`, which sets BURSAR_SOAK, at every step."""


def steps_to_kill(count: int) -> list[int]:
    """Of the steps 1 to `count`, those at which a heavy test kills, or does something else."""
    return list(range(random.randint(1, EVERY), count + 1, EVERY))


class Steps:
    """Counts the steps of a flow, and acts at one of them: the nth (0 is never), or the first of a name."""

    def __init__(self, at: int | str, act: Callable[[], None]) -> None:
        self.passed: list[str] = []
        self._at, self._act = at, act

    def __call__(self, name: str) -> None:
        self.passed.append(name)
        if self._at == len(self.passed) or (self._at == name and name not in self.passed[:-1]):
            self._act()

    def install(self, set_attribute: Callable[[Any, str, Any], None]) -> None:
        """Put a step before and after every seam; with `monkeypatch.setattr` it ends with the test."""
        for home, name in SEAMS:
            label = f"{home.__name__.rpartition('.')[2]}.{name}"
            set_attribute(home, name, self._around(label, getattr(home, name)))
        set_attribute(SqliteLedger, "factory", self._connection())

    def _around(self, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*arguments: Any, **named: Any) -> Any:
            self(f"before {label}")
            result = function(*arguments, **named)
            self(f"after {label}")
            return result

        return stepping

    def _connection(self) -> type[sqlite3.Connection]:
        step = self

        class Stepping(sqlite3.Connection):
            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                word = sql.split(maxsplit=1)[0]
                if word not in WRITING:
                    return super().execute(sql, *parameters)
                step(f"before {word}")
                cursor = super().execute(sql, *parameters)
                step(f"after {word}")
                return cursor

        return Stepping


KILLED = -signal.SIGKILL
"""The exit code of a child that was killed."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# -- children -----------------------------------------------------------------------------------------------

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["bursar.session", "bursar.presets", "pytest", "harness.faults"])


@cache
def _serve() -> None:
    """Begin the process that children are forked from, with the harness on its path: it loads it by itself."""
    paths = (Path(__file__).parents[1], Path(bursar.__file__).parents[1])  # the tests, and the tree that they test
    with patch.dict(os.environ, PYTHONPATH=os.pathsep.join(map(str, paths))):
        forkserver.ensure_running()


def start(target: Callable[..., None], *arguments: Any) -> Any:
    """A child process: forked from one that has imported everything and has no threads."""
    _serve()
    child = _CONTEXT.Process(target=target, args=arguments)
    child.start()
    return child


def exit_code(child: Any) -> int:
    child.join()
    code = child.exitcode
    child.close()
    assert isinstance(code, int)
    return code


def run(target: Callable[..., None], *arguments: Any) -> int:
    """The exit code of a child that does nothing but this."""
    return exit_code(start(target, *arguments))


def ask_and_die(place: Path, preset: str, asks: Sequence[Ask], at: int | str) -> None:
    """Open, ask, write down what was released, close; killed at the given step."""
    steps = Steps(at, die)
    steps.install(setattr)
    with reopened(place, preset=preset) as bursar:
        for ask in asks:
            note(place, ask, ask.of(bursar))
    (place.parent / "steps").write_text("\n".join(steps.passed))


def steps_of(target: Callable[..., None], place: Path, *arguments: Any) -> list[str]:
    """The names of the steps that a child passes if nobody kills it."""
    assert run(target, place, *arguments, 0) == 0
    return (place.parent / "steps").read_text().splitlines()


def killed_at(
    steps: Iterable[int],
    template: Path,
    home: Path,
    target: Callable[..., None],
    *arguments: Any,
    complaints: Callable[[Path], list[str]],
) -> dict[int, list[str]]:
    """Kill a child at each of the steps, each on a fresh copy; what is found wrong afterwards, by step."""
    wrong = {}
    for step in steps:
        place = copied(template, home / f"step {step}")
        assert run(target, place, *arguments, step) == KILLED
        if found_wrong := complaints(place):
            wrong[step] = found_wrong
    return wrong


def note(place: Path, ask: Ask, answer: Answer) -> None:
    """What an analyst has seen: written at once, kept whatever happens to the process."""
    line = json.dumps([ask.key, answer.to_bytes().decode()]) + "\n"
    with open(place.parent / "released", "a") as file:
        file.write(line)


def released(place: Path) -> dict[str, set[bytes]]:
    """What was released under each key. A line without an end is of a process that was killed while it wrote it."""
    seen: dict[str, set[bytes]] = {}
    notes = place.parent / "released"
    whole = notes.read_text().rpartition("\n")[0] if notes.exists() else ""
    for line in whole.splitlines():
        key, body = json.loads(line)
        seen.setdefault(key, set()).add(body.encode())
    return seen


# -- the clock ----------------------------------------------------------------------------------------------


class Clock:
    """The wall clock, off by so many seconds."""

    def __init__(self) -> None:
        self.off = 0.0
        self._true = time.time

    def __call__(self) -> float:
        return self._true() + self.off

    @contextmanager
    def running(self) -> Iterator[Clock]:
        time.time, before = self, time.time  # type: ignore[assignment]
        try:
            yield self
        finally:
            time.time = before


@contextmanager
def later(seconds: float) -> Iterator[None]:
    clock = Clock()
    clock.off = seconds
    with clock.running():
        yield


# -- what must hold -----------------------------------------------------------------------------------------


def loss(events: Sequence[Event]) -> int:
    """What the events reveal, in units of 2^-50, worked out apart from the engine: for every cell v of the small
    domain the sum over rows of |q_j(v)| / b_j at their finest noise, rounded up per row, D(v) (1/b_T + 2/b_Q) of
    sparse vectors, and 2n/g of n picks, or 4/g of those of one draw, among candidates of 0 and 1 that count everybody;
    then the largest."""
    total = np.zeros(DOMAIN.cells(DOMAIN.names), dtype=object)
    for event in events:
        if isinstance(event, Measured):
            total += _units(event.noise) * _columns(event.strategy).astype(object)
        elif isinstance(event, Refined):
            total += (_units(event.after) - _units(event.before)) * _columns(event.strategy).astype(object)
        elif isinstance(event, Opened):
            rate = 1 / Fraction(event.threshold.scale) + 2 / Fraction(event.test.scale)
            total += math.ceil(2**50 * rate) * _columns(event.scope).astype(object)
        elif isinstance(event, Selected):
            assert _columns(event.candidates).all()
            total += math.ceil(2**51 * event.count / Fraction(event.scale))
    return int(total.max(initial=0))


def _units(noise: Noise) -> int:
    return math.ceil(Fraction(2**50) / Fraction(noise.scale))


def _columns(strategy: LinearMap, known: dict[str, np.ndarray] = {}) -> np.ndarray:  # noqa: B006
    """sum_j |q_j(v)| for every cell v, from the answers on data of one person each."""
    digest = strategy.digest
    if digest not in known:
        shape = DOMAIN.sizes(DOMAIN.names)
        sums = []
        for cell in range(DOMAIN.cells(DOMAIN.names)):
            alone = np.zeros(shape, np.int64)
            alone.flat[cell] = 1
            sums.append(np.abs(strategy.apply(TableSource(alone).table)).sum())
        known[digest] = np.array(sums)
    return known[digest]


def measured(records: Sequence[Record], text: str) -> list[Record]:
    return [r for r in records if r.question == chain.question(text) and isinstance(r.event, Measured)]


def complaints(place: Path, asks: Sequence[Ask], *, preset: str = "default", epsilon: float = EPSILON) -> list[str]:
    """Everything that is wrong with a ledger after a fault and with the retry of all its questions an hour later.

    Checked: it opens and verifies; spent is what the log says, and within the budget; every answer that was seen
    came from the log and is still the stored one; every retry gives an answer, always the same, and charges only
    what the log did not have; no row was measured twice; no hold is left.
    """
    try:
        with later(HOUR), reopened(place, preset=preset, epsilon=epsilon) as bursar:
            return [*_standing(bursar, place, asks), *_retried(bursar, place, asks)]
    except BursarError as error:
        return [f"{type(error).__name__}: {error}"]


def _standing(bursar: Bursar, place: Path, asks: Sequence[Ask]) -> Iterator[str]:
    bursar.owner.verify()
    records = bursar.ledger.records()
    spent = bursar.kernel.spent()
    if spent != loss([record.event for record in records]):
        yield "spent is not what the log says"
    if spent > bursar.config.budget.units:
        yield "more was spent than there is"
    for ask in asks:
        for body in released(place).get(str(ask.key), set()):
            values = {value for line in Answer.from_bytes(body).values for value in line}
            logged = {float(value) for record in measured(records, ask.text) for value in record.values}
            if not values <= logged:
                yield f"{ask.key}: a value was released that is not in the log"


def _retried(bursar: Bursar, place: Path, asks: Sequence[Ask]) -> Iterator[str]:
    for ask in asks:
        had = sum(len(record.values) for record in measured(bursar.ledger.records(), ask.text))
        before = bursar.kernel.spent()
        bodies = {ask.of(bursar).to_bytes(), ask.of(bursar).to_bytes(), *released(place).get(str(ask.key), set())}
        if len(bodies) != 1:
            yield f"{ask.key}: two answers to one key"
        if had == ask.rows and bursar.kernel.spent() != before:
            yield f"{ask.key}: charged although the log had it"
        if sum(len(record.values) for record in measured(bursar.ledger.records(), ask.text)) != ask.rows:
            yield f"{ask.key}: rows were measured twice or not at all"
    if bursar.kernel.spent() != loss([record.event for record in bursar.ledger.records()]):
        yield "spent is not what the log says, after the retry"
    if bursar.kernel.spent() > bursar.config.budget.units:
        yield "the retry spent more than there is"
    if bursar.owner.recover().holds:
        yield "a hold was left behind"
