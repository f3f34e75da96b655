"""The verb `above`: what a test compares, who may run it, what it leaves behind, and what it refuses."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Closed, Failed, Measured, Noise, NoiseKind, Opened, Versioned
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.extensions.sparse_vector import SparseVectors, Threshold, check_query
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose, Record, SqliteLedger, Transaction, chain
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps, Transform
from bursar.core.source.source import MOST_CELLS
from bursar.errors import AnalystError, BudgetError, Busy, LedgerError, QueryError, Stale, Unsupported
from bursar.planner.grant import TEST_SECONDS, Grant, new_claim
from bursar.report.status import log_lines
from bursar.session import Bursar
from harness.kernels import history
from harness.small import TableSource, charter, config, counts, engine

ONE = 2**50
PLENTY = 2**60
BY_SEX = Mask(("sex",), (2,), Steps.total(2))
BY_AGE = Mask(("age",), (10,), Steps.total(10))
SCOPE = Product((BY_SEX, BY_AGE))
WOMEN = Product((Mask(("sex",), (2,), Steps.dense([[1, 0]])),))
TRUTH = int(counts().sum(axis=(0, 2))[0])


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def opened(scope: Product = SCOPE, cut: int = 100, version: int = 1, b_t: float = 8.0, b_q: float = 16.0) -> Opened:
    return Opened(scope=scope, cut=cut, threshold=laplace(b_t), test=laplace(b_q), version=version)


def planned(instance: int, query: Product = WOMEN, estimate: int = 0, version: int = 1) -> Failed:
    return Failed(instance=instance, query=query, estimate=estimate, version=version)


class Told:
    """Noise as it was told, and the laws that it was asked for."""

    def __init__(self) -> None:
        self.next = 0
        self.asked: list[float] = []
        self.secret = SystemRandomness().secret

    def draw(self, noise: Noise, size: int) -> np.ndarray:
        self.asked.append(noise.scale)
        return np.full(size, self.next)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def db(told: Told) -> Bursar:
    return engine(settings=config(budget=Budget.of(epsilon=4.0)), randomness=told)


def grant(kernel: Kernel, *events: Any, analyst: str = "ana", **rest: Any) -> Grant:
    return Grant(kernel, analyst, "why", events, PLENTY, **rest)


def start(kernel: Kernel, event: Opened | None = None, analyst: str = "ana") -> int:
    """An instance that has passed one test."""
    event = event or opened()
    with grant(kernel, event, analyst=analyst) as allowed:
        first = allowed.above(event, WOMEN, TRUTH)
    assert not first.above
    return first.instance


def again(kernel: Kernel, instance: int, estimate: int = TRUTH, query: Product = WOMEN, **rest: Any) -> bool:
    with grant(kernel, planned(instance, query, estimate), **rest) as allowed:
        return allowed.above(instance, query, estimate).above


def kinds(kernel: Kernel) -> list[str]:
    return [type(record.event).__name__ for record in kernel.ledger.records()]


def secret(kernel: Kernel, instance: int) -> Threshold | None:
    body = kernel.ledger.commit(lambda t: t.secret(f"sparse vector {instance}"))
    return None if body is None else Threshold.of(body)


# -- tests --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("away", "noise", "above"), [(103, -1, True), (102, -1, False), (-103, -1, True), (-99, 4, True)]
)
def test_what_is_compared(db: Bursar, told: Told, away: int, noise: int, above: bool) -> None:
    """|q(D) - estimate| + noise >= cut + the threshold's noise, 100 + 2."""
    told.next = 2
    event = opened()
    with grant(db.kernel, event) as allowed:
        instance = allowed.above(event, WOMEN, TRUTH).instance
        told.next = noise
        assert allowed.above(instance, WOMEN, TRUTH - away).above == above
    assert told.asked == [8.0, 16.0, 16.0]
    assert kinds(db.kernel) == ["Versioned", "Opened"] + ["Failed"] * above


def test_the_whole_price_is_paid_by_the_opening(db: Bursar) -> None:
    event = opened()
    assert db.kernel.price([event]) == ONE // 4
    with grant(db.kernel, event) as allowed:
        first = allowed.above(event, WOMEN, TRUTH)
        assert (allowed.charged.total, db.kernel.spent()) == (ONE // 4, ONE // 4)
        assert not any(allowed.above(first.instance, WOMEN, TRUTH + step).above for step in range(50))
        assert allowed.above(first.instance, WOMEN, TRUTH + 500).above
        assert allowed.charged.total == ONE // 4
    assert [charge.total for _, charge in history(db.kernel)] == [0, ONE // 4, 0]
    assert again(db.kernel, start(db.kernel), TRUTH + 500)
    assert db.kernel.spent() == ONE // 2


def test_a_pass_writes_nothing_to_the_log(db: Bursar) -> None:
    instance = start(db.kernel)
    before = db.ledger.verify().head
    assert not again(db.kernel, instance)
    assert db.ledger.verify().head == before


def test_the_log_says_what_was_opened_and_what_failed(db: Bursar) -> None:
    instance = start(db.kernel)
    assert list(db.kernel.live("bob")) == [instance]
    assert again(db.kernel, instance, TRUTH - 500)
    _, first, last = db.ledger.records()
    assert isinstance(first.event, Opened)
    assert (first.event.scope.digest, first.event.cut, first.event.version) == (SCOPE.digest, 100, 1)
    assert (first.event.threshold, first.event.test) == (laplace(8.0), laplace(16.0))
    assert isinstance(last.event, Failed)
    facts = (last.event.instance, last.event.query.digest, last.event.estimate, last.event.version)
    assert facts == (instance, WOMEN.digest, TRUTH - 500, 1)
    assert (last.question, last.values.tolist()) == (chain.question("why"), [])
    told = [(line.kind, line.noise, line.rows) for line in log_lines(history(db.kernel), {})[1:]]
    assert told == [("opened", "laplace 8 and 16", 0), ("above #2", "", 0)]
    assert db.kernel.live("ana") == {}


def test_the_threshold_is_a_secret_and_its_digest_is_in_the_log(db: Bursar, told: Told) -> None:
    told.next = 3
    numbers = [start(db.kernel) for _ in range(2)]
    secrets = [secret(db.kernel, number) for number in numbers]
    assert [s.noisy for s in secrets if s is not None] == [103, 103]
    digests = [record.values.tolist() for record in db.ledger.records()[1:]]
    assert [s.digest().tolist() for s in secrets if s is not None] == digests
    assert digests[0] != digests[1]  # equal thresholds do not look equal
    assert again(db.kernel, numbers[0], TRUTH + 500)
    assert secret(db.kernel, numbers[0]) is None


def test_a_closed_instance_meets_stale(db: Bursar, told: Told) -> None:
    instance = start(db.kernel)
    with grant(db.kernel, planned(instance)) as allowed:
        assert allowed.above(instance, WOMEN, TRUTH + 500).above
        drawn = len(told.asked)
        with pytest.raises(Stale, match="not open"):
            allowed.above(instance, WOMEN, TRUTH)
    for missing in (instance, 1, 99):
        with pytest.raises(Stale, match="not open"):
            again(db.kernel, missing)
    assert len(told.asked) == drawn


def test_a_version_ends_all_instances(db: Bursar, told: Told) -> None:
    instance, other = start(db.kernel), start(db.kernel)
    with grant(db.kernel, planned(instance)) as allowed:
        db.owner.declare_version(same_rows=True)
        drawn = len(told.asked)
        with pytest.raises(Stale, match="version changed"):
            allowed.above(instance, WOMEN, TRUTH)
    assert secret(db.kernel, instance) is None
    with pytest.raises(Stale, match="not open"):
        again(db.kernel, other)
    with pytest.raises(Stale, match="version changed"):
        start(db.kernel)
    assert len(told.asked) == drawn
    assert db.kernel.live("ana") == {}
    start(db.kernel, opened(version=2))


def test_a_test_that_was_not_planned(db: Bursar) -> None:
    instance, other = start(db.kernel), start(db.kernel)
    single = Measured(strategy=WOMEN, noise=laplace(8.0), version=1)
    with grant(db.kernel, single) as allowed, pytest.raises(Stale, match="not part of the plan"):
        allowed.above(instance, WOMEN, TRUTH)
    with grant(db.kernel, planned(instance)) as allowed:
        with pytest.raises(Stale, match="not leased"):
            allowed.above(other, WOMEN, TRUTH)
        with pytest.raises(Stale, match="not part of the plan"):
            allowed.above(opened(), WOMEN, TRUTH)
    assert not again(db.kernel, other)


def test_a_plan_that_tests_and_then_buys(db: Bursar) -> None:
    """The worst case is held; on a pass, nothing of it is spent."""
    bought = Measured(strategy=WOMEN, noise=laplace(2.0), version=1)
    with grant(db.kernel, opened(), bought) as allowed:
        assert db.kernel.held() == ONE * 3 // 4
        instance = allowed.above(opened(), WOMEN, TRUTH).instance
        assert db.kernel.held() == ONE // 2
    assert (db.kernel.held(), db.kernel.spent()) == (0, ONE // 4)
    with grant(db.kernel, planned(instance), bought) as allowed:
        assert allowed.above(instance, WOMEN, TRUTH + 500).above
        allowed.measure(WOMEN, laplace(2.0))
    assert db.kernel.spent() == ONE * 3 // 4


def test_what_does_not_fit_into_the_budget(db: Bursar, told: Told) -> None:
    start(db.kernel, opened(b_t=0.5, b_q=2.0))  # 3 of 4
    with pytest.raises(BudgetError):
        start(db.kernel, opened(b_t=0.5, b_q=2.0))
    with pytest.raises(Stale, match="price"), Grant(db.kernel, "ana", "why", (opened(),), ONE // 4 - 1) as allowed:
        allowed.above(opened(), WOMEN, TRUTH)
    assert kinds(db.kernel) == ["Versioned", "Opened"]
    assert told.asked == [0.5, 2.0]


def test_a_key_that_was_answered_meanwhile(db: Bursar, told: Told) -> None:
    instance = start(db.kernel)
    facts: Any = {"analyst": "ana", "key": "k", "question": "q", "now": db.ledger.now()}
    claim, other = (new_claim(SystemRandomness(), **facts) for _ in range(2))
    assert not again(db.kernel, instance, claim=claim)
    db.ledger.commit(lambda t: t.answer(claim, b"done"))
    drawn = len(told.asked)
    with pytest.raises(Stale, match="answered meanwhile"):
        again(db.kernel, instance, claim=other)
    assert len(told.asked) == drawn


# -- what is refused ----------------------------------------------------------------------------------------


def over(columns: tuple[str, ...], row: list[int]) -> Product:
    sizes = {"sex": 2, "age": 10, "region": 3}
    return Product((Mask(columns, tuple(sizes[name] for name in columns), Steps.dense([row])),))


EVEN = [1, 0] * 5
SCOPES = {
    "ones": SCOPE,
    "joint": over(("age", "sex"), [1] * 20),
    "weighted": Product((Mask(("sex",), (2,), Steps.dense([[3, 1]])), Mask(("age",), (10,), Steps.dense([EVEN])))),
    "constant": Product((BY_SEX, Mask((), (), Steps.dense([[2]])))),
}


@pytest.mark.parametrize(
    ("scope", "query", "fits"),
    [
        ("ones", WOMEN, True),
        ("ones", Product(()), True),
        ("ones", over(("age",), EVEN), True),
        ("ones", over(("age",), [-1, 1] * 5), True),
        ("ones", over(("sex", "age"), EVEN + [0] * 10), True),
        ("ones", over(("age", "sex"), [0, 1] * 10), True),
        ("ones", over(("age",), [2] + [0] * 9), False),
        ("ones", over(("sex", "age"), EVEN + [0] * 9 + [2]), False),
        ("ones", over(("region",), [1, 0, 0]), False),
        ("ones", over(("sex", "region"), [1, 0, 0, 0, 0, 0]), False),
        ("ones", Product((Mask(("sex",), (3,), Steps.dense([[1, 0, 0]])),)), False),
        ("joint", over(("sex", "age"), EVEN + [0] * 10), True),
        ("joint", over(("age",), EVEN), False),
        ("joint", Product(()), True),
        ("weighted", Product((*over(("sex",), [3, -1]).masks, *over(("age",), EVEN).masks)), True),
        ("weighted", Product((*over(("sex",), [2, 1]).masks, *over(("age",), EVEN).masks)), True),
        ("weighted", Product((*over(("sex",), [3, 2]).masks, *over(("age",), EVEN).masks)), False),
        ("weighted", over(("age", "sex"), [3, 1, 0, 0] * 5), True),
        ("weighted", over(("age", "sex"), [3, 2, 0, 0] * 5), False),
        ("weighted", over(("age", "sex"), [3, 1, 0, 1] * 5), False),
        ("weighted", over(("sex",), [3, 1]), False),
        ("weighted", over(("age",), EVEN), True),
        ("constant", over(("sex",), [2, 1]), True),
        ("constant", over(("sex",), [3, 1]), False),
        ("constant", Product((Mask((), (), Steps.dense([[2]])),)), True),
        ("constant", Product((Mask((), (), Steps.dense([[3]])),)), False),
    ],
)
def test_a_query_stays_within_its_scope(scope: str, query: Product, fits: bool) -> None:
    event = opened(SCOPES[scope])
    if not fits:
        with pytest.raises(QueryError, match="scope"):
            check_query(event, query, 0, one_sign=False)
        return
    assert check_query(event, query, 0, one_sign=False) is query
    cells = {"sex": 2, "age": 10, "region": 3}
    grid = {name: np.arange(size) for name, size in cells.items()}

    def spelt(product: Product) -> np.ndarray:
        values = np.ones((1, 1, 1), np.int64)
        for mask in product.masks:
            own = np.abs(mask.at(grid)).reshape(mask.sizes)
            order = [list(mask.attrs).index(name) for name in cells if name in mask.attrs]
            shape = [size if name in mask.attrs else 1 for name, size in cells.items()]
            values = values * own.transpose(order).reshape(shape)
        return np.broadcast_to(values, tuple(cells.values()))

    assert np.all(spelt(query) <= spelt(event.scope))


def test_queries_of_replaced_rows_have_one_sign() -> None:
    kernel = engine(settings=config(unit=Unit(neighbours=Neighbours.REPLACE_ONE))).kernel
    with grant(kernel, opened()) as allowed, pytest.raises(QueryError, match="negative"):
        allowed.above(opened(), over(("age",), [-1, 1] * 5), 0)
    assert kinds(kernel) == ["Versioned"]


def sine() -> Transform:
    weights = np.ones(3, np.int64)
    numbers: Any = {"column": "a", "size": 3, "first": 0, "start": 1, "period": 4, "shift": 0, "max_rows": 10}
    return Transform(**numbers, row_weights=weights, cell_weights=weights)


@pytest.mark.parametrize("query", [Stack((WOMEN,)), Product((Mask(("sex",), (2,), Steps.identity(2)),)), sine()])
def test_a_test_asks_one_query_that_is_a_product(db: Bursar, query: LinearMap) -> None:
    instance = start(db.kernel)
    with grant(db.kernel, planned(instance)) as allowed, pytest.raises((QueryError, Unsupported)):
        allowed.above(instance, query, 0)
    for facts in ({"scope": query, "cut": 0}, {"scope": SCOPE, "cut": 2**61 + 1}, {"scope": SCOPE, "cut": True}):
        with pytest.raises((QueryError, Unsupported)):
            Opened(**facts, threshold=laplace(1.0), test=laplace(1.0), version=1)
    with pytest.raises((QueryError, Unsupported)):
        planned(instance, query)


@pytest.mark.parametrize("estimate", [2**61 + 1, -(2**61) - 1, 1.0, True, None])
def test_estimates_are_whole_numbers_that_fit(db: Bursar, told: Told, estimate: Any) -> None:
    instance = start(db.kernel)
    drawn = len(told.asked)
    with grant(db.kernel, planned(instance)) as allowed, pytest.raises(QueryError, match="whole numbers"):
        allowed.above(instance, WOMEN, estimate)
    assert len(told.asked) == drawn
    assert again(db.kernel, instance, 2**61)


def test_scopes_that_are_none() -> None:
    with pytest.raises(QueryError, match="negative"):
        opened(over(("sex",), [1, -1]))
    gaussian = Noise(kind=NoiseKind.GAUSSIAN, scale=8.0)
    for laws in ({"threshold": gaussian, "test": laplace(1.0)}, {"threshold": laplace(1.0), "test": gaussian}):
        with pytest.raises(Unsupported, match="Laplace"):
            Opened(scope=SCOPE, cut=0, **laws, version=1)


def test_sizes_are_checked_before_anything_is_paid(db: Bursar) -> None:
    many = engine(settings=config(max_rows=2**40)).kernel
    large = opened(over(("sex",), [2**25, 0]), b_t=2.0**40, b_q=2.0**40)
    with pytest.raises(QueryError, match="max_rows"), grant(many, large) as allowed:
        allowed.above(large, WOMEN, 0)
    assert kinds(many) == ["Versioned"]
    foreign = opened(Product((Mask(("size",), (4,), Steps.total(4)),)))
    with pytest.raises(QueryError, match="does not fit"), grant(db.kernel, foreign):
        pass
    assert db.kernel.spent() == 0


def test_a_query_over_too_many_cells_is_refused() -> None:
    names = ("a", "b", "c")
    wide = Domain(tuple(IntegerRange(name=name, lower=0, upper=511, null=0) for name in names))
    kernel = engine(settings=config(domain=wide), table=np.ones((1,), np.int64)).kernel
    event = opened(Product(tuple(Mask((name,), (512,), Steps.total(512)) for name in names)))
    query = Product(tuple(Mask((name,), (512,), Steps.ranges([0], [3], 512)) for name in names))
    with pytest.raises(QueryError, match=str(MOST_CELLS)), grant(kernel, event) as allowed:
        allowed.above(event, query, 0)


# -- leases -------------------------------------------------------------------------------------------------


def test_one_plan_at_a_time(db: Bursar) -> None:
    instance = start(db.kernel)
    with grant(db.kernel, planned(instance)) as allowed:
        with pytest.raises(Busy, match="another plan"):
            again(db.kernel, instance)
        assert not allowed.above(instance, WOMEN, TRUTH).above
    assert not again(db.kernel, instance)


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    true = time.time
    monkeypatch.setattr(time, "time", lambda: true() + seconds)


def test_an_instance_that_a_dead_plan_was_testing_is_closed(db: Bursar, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = start(db.kernel)
    dead = grant(db.kernel, planned(instance)).__enter__()
    later(monkeypatch, TEST_SECONDS + 1)
    with pytest.raises(Stale, match="had to be closed"):
        again(db.kernel, instance)
    assert kinds(db.kernel)[-1] == "Closed"
    assert (db.ledger.records()[-1].analyst, secret(db.kernel, instance)) == ("ana", None)
    with pytest.raises(Stale, match="not open"):
        dead.above(instance, WOMEN, TRUTH)
    dead.__exit__(None, None, None)
    spent = db.kernel.spent()
    start(db.kernel)
    assert db.kernel.spent() == spent + ONE // 4
    assert log_lines(history(db.kernel), {})[2].kind == f"closed #{instance}"


def test_a_plan_that_opened_and_died_leaves_it_closed(db: Bursar, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = grant(db.kernel, opened()).__enter__()
    instance = dead.above(opened(), WOMEN, TRUTH).instance
    later(monkeypatch, TEST_SECONDS + 1)
    with pytest.raises(Stale, match="had to be closed"):
        again(db.kernel, instance)


def test_a_hold_that_expired_opens_nothing(db: Bursar, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    with grant(db.kernel, opened()) as allowed:
        later(monkeypatch, TEST_SECONDS + 1)
        with pytest.raises(Stale, match="expired"):
            allowed.above(opened(), WOMEN, TRUTH)
    assert told.asked == []


def test_a_plan_that_is_slow_goes_on_as_long_as_nobody_looked(db: Bursar, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = start(db.kernel)
    with grant(db.kernel, planned(instance)) as allowed:
        later(monkeypatch, TEST_SECONDS + 1)
        assert not allowed.above(instance, WOMEN, TRUTH).above
    assert not again(db.kernel, instance)


class LostCommit(Exception):
    """The disk is gone after the work was done."""


def lose_next(db: Bursar, monkeypatch: pytest.MonkeyPatch, times: int = 1) -> None:
    """The next commits that were drawn for, or that follow, fail when everything in them is done."""
    real, left = db.ledger._medium.commit, [times]

    def commit() -> None:
        if left[0] > 0:
            left[0] -= 1
            raise LostCommit
        real()

    monkeypatch.setattr(db.ledger._medium, "commit", commit)


@pytest.mark.parametrize("away", [0, 500])
def test_a_test_whose_commit_failed_closes_the_instance(db: Bursar, monkeypatch: pytest.MonkeyPatch, away: int) -> None:
    """Whatever came out: whether a commit fails may depend on whether there was something to write."""
    instance = start(db.kernel)
    with grant(db.kernel, planned(instance)) as allowed:
        lose_next(db, monkeypatch)
        with pytest.raises(LedgerError, match="interrupted"):
            allowed.above(instance, WOMEN, TRUTH + away)
        with pytest.raises(Stale, match="did not end"):
            allowed.above(instance, WOMEN, TRUTH)
    assert kinds(db.kernel) == ["Versioned", "Opened", "Closed"]
    with pytest.raises(Stale, match="not open"):
        again(db.kernel, instance)


def test_if_even_the_closing_fails_the_mark_stays(db: Bursar, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = start(db.kernel)
    allowed = grant(db.kernel, planned(instance)).__enter__()
    lose_next(db, monkeypatch, times=2)
    with pytest.raises(LedgerError):
        allowed.above(instance, WOMEN, TRUTH + 500)
    with pytest.raises(LedgerError):
        allowed.__exit__(None, None, None)
    with pytest.raises(Busy):
        again(db.kernel, instance)
    later(monkeypatch, TEST_SECONDS + 1)
    with pytest.raises(Stale, match="had to be closed"):
        again(db.kernel, instance)
    assert kinds(db.kernel) == ["Versioned", "Opened", "Closed"]


def test_an_opening_that_failed_leaves_nothing(db: Bursar, monkeypatch: pytest.MonkeyPatch) -> None:
    with grant(db.kernel, opened()) as allowed:
        lose_next(db, monkeypatch)
        with pytest.raises(LedgerError):
            allowed.above(opened(), WOMEN, TRUTH)
    assert kinds(db.kernel) == ["Versioned"]
    assert (secret(db.kernel, 2), db.kernel.spent(), db.kernel.held()) == (None, 0, 0)


@pytest.mark.parametrize("fence", [None, 7])
def test_an_opening_that_no_plan_holds(db: Bursar, fence: int | None) -> None:
    with pytest.raises(Stale):
        db.kernel.open(opened(), fence=fence, analyst="ana", purpose=Purpose("why", "test"), at_most=PLENTY)
    assert (kinds(db.kernel), db.kernel.spent()) == (["Versioned"], 0)


def test_an_instance_between_two_plans_is_as_it_was(db: Bursar, told: Told) -> None:
    with grant(db.kernel, opened()) as allowed:
        event = opened()
        instance = allowed._charged(lambda **facts: db.kernel.open(event, **facts)).position
    told.next = -500
    assert not again(db.kernel, instance, TRUTH + 500)
    kept = secret(db.kernel, instance)
    assert kept is not None
    assert (kept.noisy, kept.holder) == (100, None)


@pytest.mark.parametrize("change", ["lost", "swapped"])
def test_a_lost_secret_ends_the_instance(db: Bursar, told: Told, change: str) -> None:
    instance, other = start(db.kernel), start(db.kernel)

    def work(transaction: Transaction) -> None:
        if change == "lost":
            transaction.drop_secret(f"sparse vector {instance}")
        else:
            body = transaction.secret(f"sparse vector {other}")
            assert body is not None
            transaction.put_secret(f"sparse vector {instance}", body)

    db.ledger.commit(work)
    drawn = len(told.asked)
    with pytest.raises(Stale, match="had to be closed"):
        again(db.kernel, instance)
    assert (kinds(db.kernel)[-1], len(told.asked)) == ("Closed", drawn)
    assert not again(db.kernel, other)


def test_a_secret_that_is_lost_under_a_lease(db: Bursar, told: Told) -> None:
    instance = start(db.kernel)
    with grant(db.kernel, planned(instance)) as allowed:
        db.ledger.commit(lambda t: t.drop_secret(f"sparse vector {instance}"))
        drawn = len(told.asked)
        with pytest.raises(Stale, match="not leased"):
            allowed.above(instance, WOMEN, TRUTH)
    assert len(told.asked) == drawn
    with pytest.raises(Stale, match="had to be closed"):
        again(db.kernel, instance)


def test_a_fork_has_no_leases(db: Bursar, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = start(db.kernel)
    parent = os.getpid()
    with grant(db.kernel, planned(instance)) as allowed:
        monkeypatch.setattr(os, "getpid", lambda: parent + 1)
        with pytest.raises(Stale, match="not leased"):
            allowed.above(instance, WOMEN, TRUTH)
    monkeypatch.undo()
    with pytest.raises(Stale, match="had to be closed"):  # the child left without giving anything back
        again(db.kernel, instance)


def test_another_process_goes_on(db: Bursar, told: Told) -> None:
    instance = start(db.kernel)
    other = engine(settings=db.config, ledger=db.ledger, randomness=told).kernel
    assert not again(other, instance)
    assert again(other, instance, TRUTH + 500)
    with pytest.raises(Stale, match="not open"):
        again(db.kernel, instance)


# -- shares -------------------------------------------------------------------------------------------------


def test_under_shares_whoever_opened_it_tests_it(db: Bursar) -> None:
    early = start(db.kernel, analyst="bob")
    db.kernel.allot({"ana": Fraction(1, 2), "bob": Fraction(1, 4)})
    instance = start(db.kernel)
    assert (list(db.kernel.live("ana")), list(db.kernel.live("bob"))) == ([instance], [early])
    assert db.kernel.account("ana").spent == db.kernel.account("bob").spent == ONE // 4
    with pytest.raises(AnalystError, match="whoever opened it"):
        again(db.kernel, instance, analyst="bob")
    assert not again(db.kernel, instance)
    assert not again(db.kernel, early, analyst="bob")
    with pytest.raises(AnalystError, match="no share"):
        start(db.kernel, analyst="eve")


# -- the log ------------------------------------------------------------------------------------------------


def record(position: int, event: Any) -> Record:
    nothing = np.zeros(0, np.int64)
    return Record(
        position=position, at=0.0, analyst="ana", question="", proposer="", run=0, event=event, values=nothing
    )


@pytest.mark.parametrize("event", [planned(3), Closed(instance=3, version=1)])
def test_a_log_that_does_not_fit_together_is_refused(event: Failed | Closed) -> None:
    vectors = SparseVectors()
    vectors.add(record(2, opened()))
    with pytest.raises(LedgerError, match="record 4 closes") as refusal:
        vectors.add(record(4, event))
    assert type(refusal.value) is LedgerError
    assert list(vectors.opened) == [2]
    vectors.add(record(5, Versioned(version=2)))
    assert vectors.opened == {}


@pytest.mark.parametrize("event", [planned(2), Closed(instance=2, version=1), Versioned(version=2)])
def test_records_that_are_not_added_yet_count(event: Any) -> None:
    vectors = SparseVectors()
    vectors.add(record(2, opened()))
    vectors.find(2, [record(3, opened()), record(4, Closed(instance=3, version=1))])
    with pytest.raises(Stale, match="not open"):
        vectors.find(2, [record(3, opened()), record(4, event)])


def test_what_was_open_is_opened_again_from_its_own_record() -> None:
    vectors, again = SparseVectors(), SparseVectors()
    for kept in (record(2, opened()), record(3, opened()), record(4, Closed(instance=3, version=1))):
        vectors.add(kept)
    again.restore(vectors.state(), lambda position: record(position, opened()))
    assert again.find(2)[0].position == 2
    with pytest.raises(Stale, match="not open"):
        again.find(3)


# -- works that share a disk write --------------------------------------------------------------------------


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[tuple[Kernel, SqliteLedger]]:
    settings = config(budget=Budget.of(epsilon=4.0))
    source = TableSource(counts())
    with closing(SqliteLedger.create(tmp_path / "ledger.sqlite", charter(settings))) as ledger:
        declare_version(ledger=ledger, open_source=lambda key: source, randomness=SystemRandomness())
        yield engine(settings=settings, ledger=ledger, table=source.counts, randomness=Told()).kernel, ledger


def test_on_disk_it_is_the_same(shared: tuple[Kernel, SqliteLedger]) -> None:
    kernel, ledger = shared
    instance = start(kernel)
    assert not again(kernel, instance)
    assert again(kernel, instance, TRUTH + 500)
    assert kinds(kernel) == ["Versioned", "Opened", "Failed"]
    health = ledger.verify()
    assert (health.records, health.holds) == (3, 0)
    other = engine(settings=config(budget=Budget.of(epsilon=4.0)), ledger=ledger, table=counts()).kernel
    assert (other.spent(), other.live("ana")) == (ONE // 4, {})
