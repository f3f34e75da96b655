"""RAP's rounds, with a buyer that knows the data, and with the real kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind, Selected
from bursar.core.budget import Budget
from bursar.core.domain import Neighbours, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.kernel import Kernel
from bursar.core.ledger import MemoryLedger, Record
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import LinearMap
from bursar.errors import BudgetError, GoalError, QueryError
from bursar.planner.grant import Grant
from bursar.synthetic.entropy import entropy
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.rap import threshold_workload
from bursar.synthetic.rap.projection import Patience, after
from bursar.synthetic.rap.rap import rap
from bursar.synthetic.rap.relaxed import table_answers
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload
from harness.small import DOMAIN, TableSource, charter, config, counts

SIZES = (4, 3, 2, 1)
NAMES = ("a", "b", "c", "d")
SETS = (("a", "b", "c"), ("b", "d"), ("c",))
WORKLOAD = ThresholdWorkload(names=NAMES, sizes=SIZES, sets=SETS)
PLENTY = Spend.rho(1e9)
QUICK = Patience(most=400)


def table(size: int = 500) -> np.ndarray:
    rng = np.random.default_rng(7)
    first = rng.choice(4, size, p=[0.6, 0.2, 0.15, 0.05])
    second = np.where(rng.random(size) < 0.8, first % 3, rng.integers(0, 3, size))
    return np.stack([first, second, (first > 1).astype(int), np.zeros(size, int)], axis=1)


class Shop:
    """Sells from a table it knows: noise as ordered unless silent; everything sold is kept."""

    def __init__(self, codes: np.ndarray, workload: ThresholdWorkload = WORKLOAD, *, silent: bool = True) -> None:
        self.codes, self.workload, self.silent = codes, workload, silent
        self.records: list[Record] = []
        self.orders: list[dict[str, Any]] = []
        self.rng = np.random.default_rng(1)
        self.refuse_after = 10**9

    def _counts(self, names: tuple[str, ...]) -> np.ndarray:
        shape = self.workload.shape(names)
        cells = np.ravel_multi_index([self.codes[:, self.workload.names.index(name)] for name in names], shape)
        return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)

    def _sold(self, event: object, values: np.ndarray) -> Record:
        if len(self.records) >= self.refuse_after:
            raise BudgetError(asked=1.0, left=0.0, unit="rho")
        at = len(self.records) + 1
        record = Record(position=at, at=0.0, analyst="", question="", proposer="", run=0, event=event, values=values)
        self.records.append(record)
        return record

    def measure(self, strategy: LinearMap, noise: Noise) -> Record:
        exact = strategy.apply(self._counts)
        drawn = 0 if self.silent else np.rint(self.rng.normal(size=len(exact)) * noise.scale).astype(np.int64)
        return self._sold(Measured(strategy=strategy, noise=noise, version=1), exact + drawn)

    def select(
        self, candidates: LinearMap, estimates: np.ndarray, *, count: int, scale: float, barred: np.ndarray
    ) -> Record:
        self.orders.append({"estimates": estimates, "count": count, "scale": scale, "barred": barred})
        scores = np.abs(candidates.apply(self._counts) - estimates).astype(float)
        scores[barred] = -1
        event = Selected(candidates=candidates, count=count, scale=scale, version=1)
        return self._sold(event, np.argsort(-scores, kind="stable")[:count])


def released(shop: Shop, **changes: Any) -> Any:
    facts: dict[str, Any] = {"rounds": 3, "picks": 5, "spend": PLENTY, "size": len(shop.codes), "rows": 60}
    return rap(shop.workload, shop, **{"patience": QUICK, **facts, **changes})


def picked(shop: Shop) -> np.ndarray:
    return np.concatenate([r.values for r in shop.records if isinstance(r.event, Selected)])


@pytest.fixture
def larger_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the published rate: a small table is there in hundreds of steps."""
    monkeypatch.setattr("bursar.synthetic.rap.projection.RATE", 1e-3)


@pytest.mark.heavy
@pytest.mark.usefixtures("larger_steps")
def test_it_comes_close_to_what_it_measured_and_to_what_it_did_not() -> None:
    shop = Shop(table())
    found = released(shop, rounds=5, picks=4, patience=Patience(most=800))
    truth = table_answers(WORKLOAD, shop.codes) / 500
    assert found.finished
    assert np.abs(found.answers() - truth).max() < 0.06
    assert np.abs(truth).max() > 0.4  # all zero would be far off


def test_the_worst_queries_are_picked_each_once_by_their_number_in_the_whole_workload() -> None:
    shop = Shop(table())
    found = released(shop)
    numbers = picked(shop)
    assert len(set(numbers.tolist())) == 15
    for at, order in enumerate(shop.orders):
        assert sorted(order["barred"]) == sorted(numbers[: 5 * at])
        scores = np.abs(table_answers(WORKLOAD, shop.codes) - order["estimates"])
        left = np.setdiff1d(np.arange(WORKLOAD.queries), order["barred"])
        mine = numbers[5 * at : 5 * at + 5]
        assert scores[mine].min() >= np.sort(scores[left])[-5]
    for bought in found.rounds:
        assert np.array_equal(bought.counts, table_answers(WORKLOAD, shop.codes)[bought.queries])


@pytest.mark.parametrize("kind", [NoiseKind.GAUSSIAN, NoiseKind.LAPLACE])
def test_half_of_a_round_picks_and_half_measures(kind: NoiseKind) -> None:
    shop = Shop(table())
    released(shop, spend=Spend(kind=kind, amount=0.3))
    scale, part = shop.orders[0]["scale"], 0.1
    noise = next(r.event.noise for r in shop.records if isinstance(r.event, Measured))
    assert noise.kind is kind
    if kind is NoiseKind.GAUSSIAN:
        assert scale == pytest.approx(np.sqrt(5 / part))  # the printed sqrt(5 / (2 part)) would spend 1.5 times as much
        assert noise.scale == pytest.approx(np.sqrt(5 / part))
    else:
        assert scale == pytest.approx(2 * 5 / (part / 2))
        assert noise.scale == pytest.approx(5 / (part / 2))


def test_picks_for_the_whole_workload_measure_it_once_without_picking() -> None:
    shop = Shop(table())
    found = released(shop, rounds=4, picks=WORKLOAD.queries + 3, spend=Spend.rho(2.0))
    assert [type(r.event) for r in shop.records] == [Measured]
    assert shop.records[0].event.noise.scale == pytest.approx(np.sqrt(WORKLOAD.queries / 4.0))
    assert found.finished


def test_more_picks_than_queries_make_fewer_rounds() -> None:
    shop = Shop(table())
    found = released(shop, rounds=50, picks=20)
    assert WORKLOAD.queries == 29
    assert [order["count"] for order in shop.orders] == [20, 9]
    assert sorted(picked(shop)) == list(range(29))
    assert found.finished


def test_an_interrupted_run_goes_on_with_what_was_bought() -> None:
    whole, cut = Shop(table()), Shop(table())
    cut.refuse_after = 3  # the second round has picked and not measured
    with pytest.raises(BudgetError):
        released(cut)
    bought = list(cut.records)
    cut.refuse_after = 10**9
    found = released(cut, records=bought)
    assert found.finished
    assert [type(r.event) for r in cut.records[:3]] == [Selected, Measured, Selected]
    assert [type(r.event) for r in cut.records] == [Selected, Measured] * 3
    assert np.array_equal(found.rounds[0].counts, bought[1].values)
    assert np.array_equal(found.rounds[1].queries, np.sort(bought[2].values))
    again = released(whole, records=cut.records)
    assert whole.records == []  # nothing is bought twice
    assert [r.counts.tolist() for r in again.rounds] == [r.counts.tolist() for r in found.rounds]
    assert [r.queries.tolist() for r in again.rounds] == [r.queries.tolist() for r in found.rounds]


def test_a_measurement_of_everything_is_found_again_and_other_records_are_passed_over() -> None:
    shop, other = Shop(table()), Shop(table())
    other.measure(WORKLOAD.taken(np.array([3])), PLENTY.noise(1))
    first = released(shop, picks=99)
    again = released(other, picks=99, records=[*other.records, *shop.records])
    assert len(other.records) == 1
    assert np.array_equal(first.rounds[0].counts, again.rounds[0].counts)


@pytest.mark.usefixtures("larger_steps")
def test_more_than_can_be_measured_at_once_is_measured_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """24, 3 and 2 queries, of which 26 at once: the last two sets go together, and all are projected onto."""
    monkeypatch.setattr(threshold_workload, "MOST_ROWS", 26)
    workload = ThresholdWorkload(names=NAMES, sizes=SIZES, sets=SETS)
    shop, cut, rest = (Shop(table(), workload) for _ in range(3))
    found = released(shop, picks=99, rng=np.random.default_rng(0))
    assert [record.event.strategy.rows for record in shop.records] == [24, 5]
    assert {record.event.noise for record in shop.records} == {PLENTY.noise(29)}
    assert np.concatenate([own.queries for own in found.rounds]).tolist() == list(range(29))
    assert found.finished
    assert np.abs(found.answers() - table_answers(workload, table()) / 500).max() < 0.1
    stopped = released(cut, picks=99, stop=lambda: len(cut.records) == 1)
    assert not stopped.finished
    assert released(rest, picks=99, records=cut.records).finished
    assert [record.event.strategy.rows for record in rest.records] == [5]


def test_it_can_be_stopped_and_keeps_what_it_measured() -> None:
    shop = Shop(table())
    found = released(shop, stop=lambda: len(shop.records) >= 2)
    assert not found.finished
    assert len(found.rounds) == 1
    assert after(-1.0)()
    assert not after(60.0)()


def test_the_hook_sees_every_step_of_all_rounds_and_the_rows() -> None:
    seen: list[tuple[int, float]] = []
    released(Shop(table()), on_step=lambda at, loss, now: seen.append((at, loss * now.rows)))
    assert [at for at, _ in seen] == list(range(len(seen)))
    assert min(loss for _, loss in seen) < seen[0][1]


def test_a_size_that_is_not_public_is_measured_once() -> None:
    shop = Shop(table())
    found = released(shop, size=None)
    assert found.size == 500
    assert shop.records[0].event.strategy.rows == 1
    again = Shop(table())
    released(again, size=None, records=shop.records)
    assert again.records == []


@pytest.mark.parametrize("rows", [1, 2])
def test_tiny_tables(rows: int) -> None:
    found = released(Shop(table(3)), rows=rows, rng=entropy())
    assert found.relaxed.rows == rows
    assert np.isfinite(found.answers()).all()


@pytest.mark.heavy
@pytest.mark.usefixtures("larger_steps")
def test_thresholds_below_all_columns() -> None:
    workload = ThresholdWorkload(names=NAMES, sizes=SIZES, sets=(("a", "b", "c"),), least=2)
    shop = Shop(table(), workload)
    found = released(shop, rounds=8, picks=2, patience=Patience(most=800))
    truth = table_answers(workload, shop.codes) / 500
    assert np.abs(found.answers() - truth).max() < 0.06


@pytest.mark.parametrize("changes", [{"rounds": 0}, {"picks": 0}, {"rows": 0}])
def test_nothing_to_do_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(QueryError):
        released(Shop(table()), **changes)


@pytest.mark.parametrize("amount", [0.0, -1.0, float("nan"), float("inf")])
def test_amounts_that_make_no_sense(amount: float) -> None:
    with pytest.raises(GoalError):
        Spend.epsilon(amount)


def test_too_little_for_so_many_queries() -> None:
    with pytest.raises(GoalError):
        Spend.rho(2.0**-49).noise(5)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("pure", [True, False])
def test_a_real_kernel_is_never_asked_for_more_than_the_budget(neighbours: Neighbours, pure: bool) -> None:
    budget = Budget.of(epsilon=1.0) if pure else Budget.of(epsilon=1.0, delta=1e-9)
    unit, people = Unit(neighbours=neighbours), counts()
    settings = config(unit=unit, budget=budget)
    ledger, source, randomness = MemoryLedger(charter(settings)), TableSource(people), SystemRandomness()
    door: Any = {"ledger": ledger, "open_source": lambda key: source, "randomness": randomness}
    declare_version(**door)
    kernel = Kernel(domain=DOMAIN, unit=unit, budget=budget, max_rows=100_000, **door)
    workload = ThresholdWorkload.of(DOMAIN, [("age", "sex"), ("region", "age")])
    spend = Spend.epsilon(budget.amount) if pure else Spend.rho(budget.amount)
    size = None if neighbours is Neighbours.ADD_REMOVE else int(people.sum())
    with Grant(kernel, "ana", "", (), budget.units) as grant:
        found = rap(workload, grant, rounds=3, picks=4, spend=spend, size=size, rows=40, patience=QUICK)
    assert found.finished
    assert 0 < kernel.spent() <= budget.units
    again = rap(
        workload, grant, rounds=3, picks=4, spend=spend, size=size, rows=40, patience=QUICK, records=ledger.records()
    )
    assert [r.counts.tolist() for r in again.rounds] == [r.counts.tolist() for r in found.rounds]
