"""The kernel where it is rarely met: works that share a disk write, keys answered meanwhile, sizes beyond limits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.domain import Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose, SqliteLedger
from bursar.core.ledger.transaction import RowTransaction
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import LinearMap, Mask, Product, Steps
from bursar.errors import BudgetError, QueryError, Stale
from bursar.planner.grant import Grant, new_claim
from harness.small import Silence, TableSource, charter, config, counts, engine

BY_AGE = Product((Mask(("age",), (10,), Steps.identity(10)),))
EIGHT = Noise(kind=NoiseKind.LAPLACE, scale=8.0)


def measure(kernel: Kernel, strategy: LinearMap = BY_AGE, **options: Any) -> int:
    """One measurement; returns its charge."""
    return kernel.measure(strategy, EIGHT, analyst="ana", purpose=Purpose("why", "test"), at_most=2**60, **options)[
        1
    ].total


def together(ledger: SqliteLedger, calls: list[Callable[[], int]]) -> list[int | Exception]:
    """What becomes of calls whose commits all wait while another one is held up, and then share one disk write."""
    outcomes: list[int | Exception] = []
    gate = threading.Event()

    def run(call: Callable[[], int]) -> None:
        try:
            outcomes.append(call())
        except BudgetError as error:
            outcomes.append(error)

    first = threading.Thread(target=lambda: ledger.commit(lambda _: gate.wait()))
    first.start()
    while ledger._process.group._leader is None:
        time.sleep(0.001)
    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    while len(ledger._process.group._waiting) < len(calls):
        time.sleep(0.001)
    gate.set()
    for thread in [first, *threads]:
        thread.join()
    return outcomes


@contextmanager
def opened(folder: Path, neighbours: Neighbours) -> Iterator[tuple[Kernel, SqliteLedger]]:
    settings = config(unit=Unit(neighbours=neighbours), public_size=1000)
    source = TableSource(counts())
    with closing(SqliteLedger.create(folder / "ledger.sqlite", charter(settings))) as ledger:
        declare_version(ledger=ledger, open_source=lambda key: source, randomness=SystemRandomness())
        yield engine(settings=settings, ledger=ledger, randomness=Silence(), table=source.counts).kernel, ledger


@pytest.mark.parametrize(("neighbours", "price"), [(Neighbours.ADD_REMOVE, 2**47), (Neighbours.REPLACE_ONE, 2**48)])
def test_works_of_one_group_see_each_other(tmp_path: Path, neighbours: Neighbours, price: int) -> None:
    """Ten wait together, and the budget is enough for some of them: exactly so many are granted."""
    with opened(tmp_path, neighbours) as (kernel, ledger):
        assert measure(kernel) == price
        outcomes = together(ledger, [lambda: measure(kernel)] * 10)
        granted = [outcome for outcome in outcomes if outcome == price]
        assert len(granted) == 2**50 // price - 1
        assert sum(isinstance(outcome, BudgetError) for outcome in outcomes) == 10 - len(granted)
        assert kernel.spent() == 2**50
        assert len(ledger.records()) == 2 + len(granted)


def test_works_that_did_not_see_each_other_would_overspend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong twin: with what is durable as the only guide, all ten would be granted."""
    with opened(tmp_path, Neighbours.ADD_REMOVE) as (kernel, ledger):
        measure(kernel)
        monkeypatch.setattr(RowTransaction, "pending", lambda self: [])
        assert together(ledger, [lambda: measure(kernel)] * 10) == [2**47] * 10
        assert kernel.spent() > kernel.budget.units


def test_a_key_that_was_answered_meanwhile_is_not_paid_again() -> None:
    kernel = engine().kernel
    claims = [new_claim(SystemRandomness(), analyst="ana", key="k", question="q", now=time.time()) for _ in range(2)]
    assert measure(kernel, claim=claims[0]) > 0
    kernel.ledger.commit(lambda transaction: transaction.answer(claims[0], b"the answer"))
    spent = kernel.spent()
    with pytest.raises(Stale, match="answered meanwhile"):
        measure(kernel, claim=claims[1])
    assert kernel.spent() == spent


WIDE = Domain(tuple(IntegerRange(name=name, lower=0, upper=2**12 - 1, null=0) for name in ("x", "y")))


def test_too_many_numbers_at_once_are_refused() -> None:
    kernel = engine(settings=config(domain=WIDE), table=np.zeros((1, 1), np.int64)).kernel
    cells = Steps.identity(2**12)

    def grid(rows: int) -> Product:
        return Product((Mask(("x",), (2**12,), cells), Mask(("y",), (2**12,), cells.take(range(rows)))))

    kernel.check(grid(2**10))
    with pytest.raises(QueryError, match="numbers at once"):
        kernel.check(grid(2**10 + 1))


def test_answers_that_could_overflow_are_refused() -> None:
    kernel = engine(settings=config(max_rows=2**32)).kernel
    kernel.check(Product((Mask(("age",), (10,), Steps.dense([[2**29] * 10])),)))
    with pytest.raises(QueryError, match="too large for max_rows"):
        kernel.check(Product((Mask(("age",), (10,), Steps.dense([[2**29 + 1] * 10])),)))


def test_a_plan_that_would_be_refused_half_way_does_not_begin() -> None:
    db = engine(settings=config(max_rows=2**32))
    huge = Product((Mask(("age",), (10,), Steps.dense([[2**29 + 1] * 10])),))
    fine, refused = (Measured(strategy=strategy, noise=EIGHT, version=1) for strategy in (BY_AGE, huge))
    with (
        pytest.raises(QueryError, match="too large for max_rows"),
        Grant(db.kernel, "ana", "why", (fine, refused), 2**60),
    ):
        pytest.fail("it began")
    assert len(db.ledger.records()) == 1  # the version
    assert db.kernel.held() == 0
    with Grant(db.kernel, "ana", "why", (fine, fine), 2**60) as grant:
        grant.measure(BY_AGE, EIGHT)
    assert len(db.ledger.records()) == 2
