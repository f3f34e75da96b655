"""One side of a pair, played: the whole engine on one data set, step by step, with everything that is seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from bursar.answer import Answer
from bursar.core.accounting import Event, Failed, Measured, Mode, Noise, NoiseKind, Opened, Refined, Selected
from bursar.core.extensions.curator import declare_version, seal
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.kernel import Kernel
from bursar.core.ledger.record_codec import encode_record
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.core.source.source import Source
from bursar.errors import BursarError
from bursar.planner.goals import Wanted
from bursar.planner.grant import Grant, new_claim
from bursar.session import Bursar
from harness import plainly
from harness.cells import Numbers
from harness.clock import same_clock
from harness.kernels import history
from harness.people import DOMAIN, History, MakeSource, Pair, plain_source
from harness.player import Player, Run, WatchedLedger, WatchedSource, refused, watched
from harness.small import charter
from harness.steps import Allot, Ask, Choose, Declare, FailSource, LoseCommit, Overtake, Refine, Seal, Squat, Step, Try

CRASHED = "crashed"


@dataclass(frozen=True, kw_only=True)
class Under:
    """What is under test: the engine as it is, or with a fault planted in one of its parts."""

    kernel: type[Kernel] = Kernel
    source: MakeSource = plain_source
    engine: type[Bursar] = Bursar


AS_IT_IS = Under()


def play(pair: Pair, people: History, steps: Sequence[Step], under: Under = AS_IT_IS) -> Run:
    """Play the steps on one of the two data sets of a pair."""
    with same_clock(), ExitStack() as stack:
        stage = _Stage(pair, people, under)
        stage.declare(same_rows=False)
        ann = stack.enter_context(stage.engine("ann"))
        stage.others = {name: stack.enter_context(stage.engine(name)) for name in ("ann", "bob")}
        for step in steps:
            stage.take(step, ann)
            stage.run.seen += [_ended("budget", ann.budget), _ended("log", ann.log)]
        return stage.close(ann)


class _Stage:
    def __init__(self, pair: Pair, people: History, under: Under) -> None:
        self.pair, self.people, self.under = pair, people, under
        self.run = Run()
        self.player = Player(self.run, pair.seed, self._near)
        self.ledger = WatchedLedger(charter(pair.settings), self.player)
        self.others: dict[str, Bursar] = {}  # engines of other processes
        self._version = -1

    def engine(self, analyst: str) -> Bursar:
        door: Any = {"open_source": self._open, "randomness": self.player, "analyst": analyst}
        with patch("bursar.engine.Kernel", watched(self.under.kernel, self.player)):
            return self.under.engine(self.pair.settings, self.ledger, **door)

    def take(self, step: Step, engine: Bursar) -> None:
        match step:
            case Ask():
                self.run.seen.append(_ended("asked", lambda: _answered(engine, step)))
            case Allot():
                self.run.seen.append(_ended("shares", lambda: engine.kernel.allot(dict(step.shares))))
            case Refine():
                self.run.seen.append(_ended("refined", lambda: _refined(engine, step)))
            case Try():
                self.run.seen.append(_ended("tested", lambda: _tested(engine, step)))
            case Choose():
                self.run.seen.append(_ended("chosen", lambda: _chosen(engine, step)))
            case Overtake():
                self.player.overtake = partial(self.take, step.step, self.others[step.analyst])
            case LoseCommit():
                self.player.lose = True
            case FailSource():
                self.player.fail = True
            case Squat():
                self._squat(engine, step.ask)
            case Declare():
                self.declare(same_rows=step.same_rows)
            case Seal():
                self.run.seen.append(_ended("sealed", lambda: self._seal(step.through)))

    def declare(self, *, same_rows: bool) -> None:
        self._version += 1
        declare_version(self.ledger, self._open, self.player, same_rows=same_rows, axis=self._axis())
        key = self.ledger.commit(lambda transaction: transaction.secret("data key"))
        counted = self.under.source(self.pair.settings, self.people[self._version], key)
        self.run.tables.append(counted.table(DOMAIN.names))
        self.run.rows.append(getattr(counted, "rows", ()))
        counted.close()

    def _axis(self) -> PartitionAxis | None:
        return PartitionAxis.of(self.pair.settings.domain, self.pair.settings.unit)

    def _seal(self, through: int) -> int:
        axis = self._axis()
        assert axis is not None
        return seal(self.ledger, self._open, axis=axis, through=through)

    def close(self, engine: Bursar) -> Run:
        tables = self.ledger._medium.tables
        self.run.seen += [
            ("ledger", self.ledger.verify(), *map(encode_record, self.ledger.records())),
            *((name, sorted(tables[name].items())) for name in ("holds", "claims", "answers", "texts")),
            ("secrets", sorted(tables["secrets"])),
        ]
        self.run.log = list(self.ledger.records())
        self.run.charges = [charge.total for _, charge in history(engine.kernel)]
        self.run.book = engine.kernel._accounts.total
        return self.run

    def _open(self, key: bytes) -> Source:
        return WatchedSource(self.under.source(self.pair.settings, self.people[self._version], key), self.player)

    def _near(self, strategy: LinearMap) -> Numbers:
        """What the left data set would answer, in both runs."""
        people = plain_source(self.pair.settings, self.pair.left[self._version], b"near")
        assert isinstance(people, plainly.PeopleSource)
        return plainly.answers(strategy, people.rows, DOMAIN)

    def _squat(self, engine: Bursar, ask: Ask) -> None:
        request = engine.engine.prepare(ask.sql, Wanted(**ask.wanted), ask.key)
        assert ask.key is not None
        claim = new_claim(
            self.player, analyst=engine.analyst, key=ask.key, question=request.asked.question, now=engine.ledger.now()
        )
        self.ledger.commit(lambda transaction: transaction.claim(claim, 0.0))


def _answered(engine: Bursar, ask: Ask) -> tuple[Any, ...]:
    answer = engine.run(ask.sql, Wanted(**ask.wanted), key=ask.key)
    body = answer.to_bytes() if isinstance(answer, Answer) else answer.to_json()
    return type(answer).__name__, body, str(answer)


def _refined(engine: Bursar, step: Refine) -> tuple[Any, ...]:
    """Refine rows as a plan would: from what the log says, priced, under a grant."""
    records = engine.ledger.records()
    blocks = [record for record in records if isinstance(record.event, Measured)]
    if not blocks:
        return ("nothing was measured",)
    block = blocks[-1 - step.block % len(blocks)]
    scales = dict.fromkeys(range(len(block.values)), block.event.noise.scale)
    for record in records:
        if isinstance(record.event, Refined) and record.event.block == block.position:
            scales |= dict.fromkeys(record.event.rows.tolist(), record.event.after.scale)
    rows = [row for row in range(0, len(scales), step.every) if scales[row] == scales[0]]
    kind, old = block.event.noise.kind, scales[0]
    before, after = (Noise(kind=kind, scale=scale) for scale in (old, old / step.factor))
    place: Any = {"block": block.position, "measured": block.event.strategy, "version": block.event.version}
    pieces = [np.array(piece) for piece in np.array_split(rows, min(step.parts, len(rows)))]
    plan = tuple(Refined(**place, rows=piece, before=before, after=after) for piece in pieces)
    price = engine.kernel.charge(plan, engine.analyst).account
    with Grant(engine.kernel, engine.analyst, "finer", plan, price) as grant:
        return tuple(encode_record(grant.refine(block.position, piece.tolist(), after)) for piece in pieces)


def _tested(engine: Bursar, step: Try) -> tuple[Any, ...]:
    """Test as a plan would: open an instance if none is open, and buy the answer where the test is above."""
    kernel, version = engine.kernel, engine.kernel.version()
    live = list(kernel.live(engine.analyst) if step.own else kernel.live("ann") | kernel.live("bob"))
    laws = [Noise(kind=NoiseKind.LAPLACE, scale=scale) for scale in step.scales]
    query = Product(tuple(_mask(name, row) for name, row in step.query))
    scope = Product(tuple(_mask(name, row) for name, row in step.scope))
    event: Event = Opened(scope=scope, cut=step.cut, threshold=laws[0], test=laws[1], version=version)
    instance: Any = event
    if live and not step.anew:
        instance = live[-1]
        event = Failed(instance=instance, query=query, estimate=step.estimate, version=version)
    plan = (event, Measured(strategy=query, noise=laws[1], version=version))
    seen: list[Any] = []
    with Grant(kernel, engine.analyst, "tested", plan, kernel.charge(plan, engine.analyst).account) as grant:
        for _ in range(step.times):
            tested = grant.above(instance, query, step.estimate)
            seen.append(tested)
            instance = tested.instance
            if tested.above:
                seen.append(encode_record(grant.measure(query, laws[1])))
                break
    return tuple(seen)


def _chosen(engine: Bursar, step: Choose) -> tuple[Any, ...]:
    """Select as a release would, and measure the rows that were picked: by itself, or both under a hold."""
    kernel, version = engine.kernel, engine.kernel.version()
    weighted = [
        Product(tuple(Mask((name,), DOMAIN.sizes((name,)), Steps.dense(np.diag(row))) for name, row in rows))
        for rows in step.sets
    ]
    candidates = weighted[0] if len(weighted) == 1 else Stack(tuple(weighted))
    estimates = np.resize(np.array(step.estimates, np.int64), candidates.rows)
    facts: Any = {"count": step.count, "scale": step.scale}
    plan: list[Event] = []
    if step.then_measured is not None:
        plan.append(Selected(candidates=candidates, version=version, **facts))
        kind = NoiseKind.LAPLACE if kernel.budget.mode is Mode.PURE else NoiseKind.GAUSSIAN
        noise = Noise(kind=kind, scale=step.then_measured)
        plan.append(Measured(strategy=weighted[0], noise=noise, version=version))
    with Grant(kernel, engine.analyst, "chosen", plan, 2**60) as grant:
        seen = [encode_record(grant.select(candidates, estimates, **facts, barred=np.array(step.barred, np.int64)))]
        if step.then_measured is not None:
            seen.append(encode_record(grant.measure(weighted[0], noise)))
    return tuple(seen)


def _mask(name: str, row: tuple[int, ...]) -> Mask:
    return Mask((name,), DOMAIN.sizes((name,)), Steps.dense([row]))


def _ended(what: str, work: Callable[[], Any]) -> tuple[Any, ...]:
    """What somebody sees: a result, a refusal, or, which must never be, a crash."""
    try:
        return (what, work())
    except BursarError as refusal:
        return (what, *refused(refusal))
    except Exception as crash:
        return (what, CRASHED, repr(crash))
