"""The verb `refine`: under which noise, at which price, and what it refuses."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Event, Measured, Noise, NoiseKind, Refined, Versioned
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.extensions.refine import Blocks
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose, Record, SqliteLedger, chain
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import BudgetError, BursarError, LedgerError, QueryError, Stale, Unsupported
from bursar.planner.grant import Grant
from bursar.report.status import log_lines
from bursar.session import Bursar
from harness.kernels import history
from harness.small import TableSource, charter, config, counts, engine

BY_AGE = Product((Mask(("age",), (10,), Steps.identity(10)),))
TRUTH = counts().sum(axis=(1, 2))
ONE = 2**50
PLENTY = 2**60


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


class Told:
    """Noise as it was told, and what it was asked for."""

    def __init__(self) -> None:
        self.next = 5
        self.asked: list[tuple[list[int], float, float]] = []
        self.secret = SystemRandomness().secret

    def draw(self, noise: Noise, size: int) -> np.ndarray:
        return np.full(size, self.next)

    def refine(self, current: np.ndarray, before: Noise, after: Noise) -> np.ndarray:
        self.asked.append((current.tolist(), before.scale, after.scale))
        return np.full(len(current), self.next)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def db(told: Told) -> Bursar:
    return engine(settings=config(budget=Budget.of(epsilon=4.0)), randomness=told)


def measure(kernel: Kernel, scale: float = 8.0, strategy: Product = BY_AGE) -> Record:
    return kernel.measure(strategy, laplace(scale), analyst="ana", purpose=Purpose("why", "test"), at_most=PLENTY)[0]


def refine(
    kernel: Kernel, block: int, rows: Sequence[int], before: float, after: float, **rest: Any
) -> tuple[Record, int]:
    facts = {
        "before": laplace(before),
        "analyst": "ana",
        "purpose": Purpose("finer", "test"),
        "at_most": PLENTY,
        **rest,
    }
    record, charge = kernel.refine(block, rows, laplace(after), **facts)
    return record, charge.total


def test_finer_noise_is_drawn_under_the_noise_that_was_shown(db: Bursar, told: Told) -> None:
    block = measure(db.kernel).position
    told.next = -2
    record, charge = refine(db.kernel, block, [1, 4], 8.0, 4.0)
    assert told.asked == [([5, 5], 8.0, 4.0)]
    assert record.values.tolist() == (TRUTH[[1, 4]] - 2).tolist()
    assert charge == ONE // 8
    told.next = 1
    refine(db.kernel, block, [4], 4.0, 1.0)
    refine(db.kernel, block, [0, 2, 3], 8.0, 2.0)
    assert told.asked[1:] == [([-2], 4.0, 1.0), ([5, 5, 5], 8.0, 2.0)]
    assert db.kernel.spent() == ONE
    assert [charge.total for _, charge in history(db.kernel)] == [0, ONE // 8, ONE // 8, ONE * 3 // 4, 0]


def test_the_record_says_what_was_refined(db: Bursar) -> None:
    block = measure(db.kernel).position
    record, _ = refine(db.kernel, block, [1, 4], 8.0, 4.0)
    stored = db.ledger.records()[-1]
    assert isinstance(stored.event, Refined)
    assert (stored.event.block, stored.event.rows.tolist(), stored.event.version) == (block, [1, 4], 1)
    assert (stored.event.before, stored.event.after, stored.event.measured) == (laplace(8.0), laplace(4.0), BY_AGE)
    assert (stored.values.tolist(), stored.question) == (record.values.tolist(), chain.question("finer"))
    assert stored.event.strategy.apply(db.kernel._opened()[1].counts).tolist() == TRUTH[[1, 4]].tolist()
    line = log_lines(history(db.kernel), {})[-1]
    assert (line.kind, line.rows, line.noise, line.charge) == ("refined #2", 2, "laplace 8 -> 4", 1 / 8)
    db.ledger.verify()


@pytest.mark.parametrize(("rows", "before"), [([1], 8.0), ([4], 8.0), ([1, 2], 4.0), ([1, 2], 8.0), ([2], 4.0)])
def test_a_stale_plan_meets_stale(db: Bursar, told: Told, rows: list[int], before: float) -> None:
    block = measure(db.kernel).position
    refine(db.kernel, block, [1, 4], 8.0, 4.0)
    spent, asked = db.kernel.spent(), len(told.asked)
    with pytest.raises(Stale, match="finer meanwhile"):
        refine(db.kernel, block, rows, before, 1.0)
    assert (db.kernel.spent(), len(told.asked)) == (spent, asked)


def test_rows_of_another_version_meet_stale(db: Bursar) -> None:
    block = measure(db.kernel).position
    for missing in (1, block + 1, 99):
        with pytest.raises(Stale, match="present version"):
            refine(db.kernel, missing, [0], 8.0, 4.0)
    db.owner.declare_version(same_rows=True)
    with pytest.raises(Stale, match="present version"):
        refine(db.kernel, block, [0], 8.0, 4.0)
    block = measure(db.kernel).position
    assert refine(db.kernel, block, [0], 8.0, 4.0)[1] == ONE // 8


def test_a_version_declared_between_plan_and_data_meets_stale(db: Bursar) -> None:
    block = measure(db.kernel).position
    opened = db.kernel._opened

    def late() -> tuple[int, Any]:
        db.owner.declare_version()
        db.kernel.version()
        return opened()

    db.kernel._opened = late  # type: ignore[method-assign]
    with pytest.raises(Stale, match="version changed"):
        refine(db.kernel, block, [0], 8.0, 4.0)


def test_a_price_that_rose_and_a_budget_that_is_used_up(db: Bursar) -> None:
    block = measure(db.kernel).position
    with pytest.raises(Stale, match="price"):
        refine(db.kernel, block, [0], 8.0, 4.0, at_most=ONE // 8 - 1)
    with pytest.raises(BudgetError):
        refine(db.kernel, block, [0], 8.0, 0.2)
    assert refine(db.kernel, block, [0], 8.0, 0.25)[1] == 4 * ONE - ONE // 8
    assert db.kernel.left() == 0


@pytest.mark.parametrize(
    ("rows", "after"), [([], 4.0), ([10], 4.0), ([1, 0], 4.0), ([0.5], 4.0), ([0], 8.0), ([0], 9.0)]
)
def test_what_is_no_refinement_is_refused(db: Bursar, rows: list[int], after: float) -> None:
    block = measure(db.kernel).position
    with pytest.raises(QueryError):
        refine(db.kernel, block, rows, 8.0, after)
    assert len(db.ledger.records()) == 2


def test_gaussian_rows_are_bought_afresh() -> None:
    kernel = engine(settings=config(budget=Budget.of(rho=1.0))).kernel
    normal = Noise(kind=NoiseKind.GAUSSIAN, scale=8.0)
    facts: dict[str, Any] = {"analyst": "ana", "purpose": Purpose("why", "test"), "at_most": PLENTY}
    block = kernel.measure(BY_AGE, normal, **facts)[0].position
    with pytest.raises(Unsupported, match="buy a fresh row"):
        kernel.refine(block, [0], Noise(kind=NoiseKind.GAUSSIAN, scale=4.0), before=normal, **facts)
    with pytest.raises(Unsupported, match="buy a fresh row"):
        refine(kernel, block, [0], 8.0, 4.0)
    assert len(kernel.ledger.records()) == 2


# -- plans --------------------------------------------------------------------------------------------------


def planned(block: int, rows: list[int], before: float, after: float) -> Refined:
    laws = {"before": laplace(before), "after": laplace(after)}
    return Refined(block=block, measured=BY_AGE, rows=np.array(rows), version=1, **laws)


def grant(kernel: Kernel, *events: Event) -> Grant:
    return Grant(kernel, "ana", "why", events, kernel.price(events))


def test_a_plan_of_one_refinement(db: Bursar) -> None:
    block = measure(db.kernel).position
    with grant(db.kernel, planned(block, [0, 3], 8.0, 2.0)) as allowed:
        allowed.refine(block, [0, 3], laplace(2.0))
        for place, rows, scale in ((block, [0], 2.0), (block, [0, 3], 1.0), (9, [0, 3], 2.0)):
            with pytest.raises(Stale, match="not part of the plan"):
                allowed.refine(place, rows, laplace(scale))
    assert allowed.charged.total == ONE // 2 - ONE // 8 == db.kernel.spent() - ONE // 8


def test_a_hold_of_measurements_and_refinements_is_used_up_step_by_step(db: Bursar) -> None:
    block = measure(db.kernel).position
    again = Measured(strategy=BY_AGE, noise=laplace(1.0), version=1)
    plan = (planned(block, [0, 3], 8.0, 2.0), again, planned(block, [0], 2.0, 1.0))
    with grant(db.kernel, *plan) as allowed:
        held = [db.kernel.held()]
        allowed.refine(block, [0, 3], laplace(2.0))
        held.append(db.kernel.held())
        allowed.measure(BY_AGE, laplace(1.0))
        held.append(db.kernel.held())
        with pytest.raises(Stale, match="finer meanwhile"):
            allowed.refine(block, [0, 3], laplace(2.0))
        allowed.refine(block, [0], laplace(1.0))
        held.append(db.kernel.held())
    assert held == [ONE * 15 // 8, ONE * 3 // 2, ONE // 2, 0]
    assert db.kernel.spent() == 2 * ONE


def test_a_refinement_that_was_not_held_does_not_fit(db: Bursar) -> None:
    block = measure(db.kernel).position
    hold = db.kernel.hold([planned(block, [0], 8.0, 2.0), planned(block, [1], 8.0, 2.0)], analyst="ana", seconds=60)
    with pytest.raises(Stale, match="not part of the plan"):
        refine(db.kernel, block, [0], 8.0, 1.0, fence=hold.fence)
    refine(db.kernel, block, [0], 8.0, 2.0, fence=hold.fence)
    with pytest.raises(Stale, match="expired"):
        refine(db.kernel, block, [1], 8.0, 2.0, fence=hold.fence + 1)


# -- the state of the rows ----------------------------------------------------------------------------------


def record(position: int, event: Event, values: Sequence[int]) -> Record:
    array = np.array(values, np.int64)
    return Record(position=position, at=0.0, analyst="ana", question="", proposer="", run=0, event=event, values=array)


MEASURED = record(2, Measured(strategy=BY_AGE, noise=laplace(8.0), version=1), range(10))


@pytest.mark.parametrize(
    "event",
    [
        planned(3, [0], 8.0, 4.0),
        planned(2, [0], 7.0, 4.0),
        Refined(block=2, measured=BY_AGE, rows=np.array([0]), before=laplace(8.0), after=laplace(4.0), version=2),
    ],
)
def test_a_log_that_does_not_fit_together_is_refused(event: Refined) -> None:
    blocks = Blocks()
    blocks.add(MEASURED)
    with pytest.raises(LedgerError, match="record 3 refines rows") as refusal:
        blocks.add(record(3, event, [7]))
    assert type(refusal.value) is LedgerError
    assert blocks.values(planned(2, [0], 8.0, 4.0)).tolist() == [0]


def test_a_position_before_the_checkpoint_is_read_from_the_log_or_from_nowhere() -> None:
    with pytest.raises(LedgerError, match="there is no record 2"):
        Blocks(earlier=2).find(2)
    assert Blocks(read=lambda position: MEASURED, earlier=2).find(2) == MEASURED.event


def test_records_that_are_not_added_yet_count() -> None:
    blocks = Blocks()
    blocks.add(MEASURED)
    blocks.add(record(3, planned(2, [0, 1, 2], 8.0, 4.0), [10, 11, 12]))
    pending = [
        record(4, planned(2, [1, 2], 4.0, 2.0), [21, 22]),
        record(5, planned(9, [0], 4.0, 2.0), [99]),
        record(6, Versioned(version=1), []),
    ]
    assert blocks.values(planned(2, [1, 2], 2.0, 1.0), pending).tolist() == [21, 22]
    assert blocks.values(planned(2, [0], 4.0, 1.0), pending).tolist() == [10]
    for stale in (planned(2, [0, 1], 4.0, 1.0), planned(2, [1], 4.0, 1.0)):
        with pytest.raises(Stale):
            blocks.values(stale, pending)
    assert blocks.values(planned(2, [0, 1, 2], 4.0, 1.0)).tolist() == [10, 11, 12]
    assert MEASURED.values.tolist() == list(range(10))


def test_another_process_finds_the_rows_as_they_are(db: Bursar, told: Told) -> None:
    block = measure(db.kernel).position
    refine(db.kernel, block, [1], 8.0, 4.0)
    other = engine(settings=db.config, ledger=db.ledger, randomness=told).kernel
    told.next = 0
    refine(other, block, [1], 4.0, 2.0)
    with pytest.raises(Stale):
        refine(db.kernel, block, [1], 4.0, 2.0)
    assert refine(db.kernel, block, [1], 2.0, 1.0)[1] == ONE // 2
    assert told.asked[-1] == ([0], 2.0, 1.0)


# -- works that share a disk write --------------------------------------------------------------------------


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[tuple[Kernel, SqliteLedger]]:
    settings = config(unit=Unit(neighbours=Neighbours.ADD_REMOVE))
    source = TableSource(counts())
    with closing(SqliteLedger.create(tmp_path / "ledger.sqlite", charter(settings))) as ledger:
        declare_version(ledger=ledger, open_source=lambda key: source, randomness=SystemRandomness())
        yield engine(settings=settings, ledger=ledger, table=source.counts).kernel, ledger


def together(ledger: SqliteLedger, calls: list[Any]) -> list[Any]:
    """What becomes of calls whose commits wait for one another, in their order, and then share one disk write."""
    outcomes: list[Any] = [None] * len(calls)
    gate = threading.Event()
    waiting = ledger._process.group._waiting

    def run(place: int) -> None:
        try:
            outcomes[place] = calls[place]()
        except BursarError as error:
            outcomes[place] = error

    first = threading.Thread(target=lambda: ledger.commit(lambda _: gate.wait()))
    first.start()
    while ledger._process.group._leader is None:
        pass
    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for place, thread in enumerate(threads):
        thread.start()
        while len(waiting) <= place:
            pass
    gate.set()
    for thread in [first, *threads]:
        thread.join()
    return outcomes


def test_a_row_is_refined_once_in_a_group(shared: tuple[Kernel, SqliteLedger]) -> None:
    kernel, ledger = shared
    block = measure(kernel).position
    refine(kernel, block, [9], 8.0, 4.0)  # opens the data
    calls = [lambda: refine(kernel, block, [0, 1], 8.0, 4.0)] * 3 + [lambda: refine(kernel, block, [1], 4.0, 2.0)]
    outcomes = together(ledger, calls)
    assert [isinstance(outcome, Stale) for outcome in outcomes] == [False, True, True, False]
    assert len(ledger.records()) == 5
    assert kernel.spent() == ONE // 2
    kernel.ledger.verify()


def test_a_version_declared_in_the_same_group_comes_first(shared: tuple[Kernel, SqliteLedger]) -> None:
    kernel, ledger = shared
    block = measure(kernel).position
    refine(kernel, block, [9], 8.0, 4.0)
    event = Versioned(version=2)
    nothing = np.zeros(0, np.int64)
    calls = [
        lambda: ledger.commit(
            lambda t: t.append(analyst="owner", purpose=Purpose("", "test"), event=event, values=nothing)
        ),
        lambda: refine(kernel, block, [0], 8.0, 4.0),
        lambda: measure(kernel),
    ]
    outcomes = together(ledger, calls)
    assert [type(outcome) for outcome in outcomes] == [Record, Stale, Stale]
    assert kernel.version() == 2


def test_a_thousand_rows_are_a_few_products() -> None:
    """A thousand rows of two columns, every other one: what is priced and counted stays small."""
    wide = Domain(
        (IntegerRange(name="x", lower=0, upper=99, null=0), IntegerRange(name="y", lower=0, upper=19, null=0))
    )
    kernel = engine(settings=config(domain=wide), table=np.ones((100, 20), np.int64)).kernel
    grid = Product((Mask(("x",), (100,), Steps.identity(100)), Mask(("y",), (20,), Steps.identity(20))))
    block = measure(kernel, 64.0, grid).position
    record, charge = refine(kernel, block, list(range(0, 2000, 2)), 64.0, 32.0)
    assert len(record.values) == 1000
    assert charge == ONE // 64
    assert isinstance(record.event, Refined)
    assert len(record.event.priced.norms(1)) == 10
