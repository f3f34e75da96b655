"""The kernel's verbs: admission, holds, limits, and what a failing commit leaves behind."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.core.kernel import Kernel
from bursar.core.ledger import MemoryLedger, Purpose, chain
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import BudgetError, LedgerError, QueryError, SourceError, Stale, Unsupported
from bursar.planner.grant import Grant
from bursar.report.status import budget_words
from harness.kernels import history
from harness.small import DOMAIN, Silence, TableSource, charter, config, counts, engine

BY_AGE = Product((Mask(("age",), (10,), Steps.identity(10)),))
ONE = Noise(kind=NoiseKind.LAPLACE, scale=1.0)
EIGHT = Noise(kind=NoiseKind.LAPLACE, scale=8.0)


def event(noise: Noise = EIGHT, version: int = 1) -> Measured:
    return Measured(strategy=BY_AGE, noise=noise, version=version)


def grant(kernel: Kernel, *events: Measured) -> Grant:
    return Grant(kernel, "ana", "why", events, kernel.price(events))


def test_a_measurement_is_in_the_log_with_its_values() -> None:
    kernel = engine(randomness=Silence()).kernel
    with grant(kernel, event()) as allowed:
        record = allowed.measure(BY_AGE, EIGHT)
    stored = kernel.ledger.records()[-1]
    assert record.values.tolist() == stored.values.tolist() == counts().sum(axis=(1, 2)).tolist()
    assert (stored.analyst, stored.question) == ("ana", chain.question("why"))
    assert kernel.spent() == allowed.charged.total == 2**47


def test_exactly_the_budget_can_be_spent() -> None:
    kernel = engine().kernel
    for _ in range(8):
        with grant(kernel, event()) as allowed:
            allowed.measure(BY_AGE, EIGHT)
    assert kernel.left() == 0
    with pytest.raises(BudgetError), grant(kernel, event()) as allowed:
        allowed.measure(BY_AGE, EIGHT)
    assert len(kernel.ledger.records()) == 1 + 8


def test_a_price_that_rose_is_not_charged() -> None:
    kernel = engine().kernel
    with pytest.raises(Stale), Grant(kernel, "ana", "why", (event(),), 2**47 - 1) as allowed:
        allowed.measure(BY_AGE, EIGHT)
    assert kernel.spent() == 0


def test_gaussian_noise_needs_a_delta() -> None:
    kernel = engine().kernel
    normal = Noise(kind=NoiseKind.GAUSSIAN, scale=8.0)
    with pytest.raises(Unsupported):
        kernel.price([event(normal)])


def test_a_hold_keeps_others_out_and_is_used_up_step_by_step() -> None:
    kernel = engine().kernel
    half = Noise(kind=NoiseKind.LAPLACE, scale=2.0)
    with grant(kernel, event(half), event(EIGHT)) as allowed:
        assert kernel.held() == 2**49 + 2**47
        with pytest.raises(BudgetError), grant(kernel, event(half)) as other:
            other.measure(BY_AGE, half)
        allowed.measure(BY_AGE, half)
        assert kernel.held() == 2**47
        with pytest.raises(Stale, match="not part of the plan"):
            allowed.measure(BY_AGE, half)
        allowed.measure(BY_AGE, EIGHT)
        assert kernel.held() == 0
    assert kernel.spent() == 2**49 + 2**47


def test_parts_of_a_plan_about_different_people_cost_the_dearest_once() -> None:
    """The first part is charged although the second, which is held beside it, would cost as much by itself."""
    kernel = engine().kernel
    parts = [Product((Mask(("age",), (10,), Steps.identity(10).take([cell])),)) for cell in (0, 1)]
    events = [Measured(strategy=part, noise=EIGHT, version=1) for part in parts]
    with grant(kernel, *events) as allowed:
        charged = []
        for part in parts:
            allowed.measure(part, EIGHT)
            charged.append(allowed.charged.total)
    assert charged == [2**47, 2**47]
    assert [charge.total for _, charge in history(kernel)] == [0, 2**47, 0]


def test_leaving_a_grant_frees_what_was_not_used() -> None:
    kernel = engine().kernel
    with grant(kernel, event(), event()):
        assert kernel.held() > 0
    assert kernel.held() == 0
    assert kernel.spent() == 0


def test_an_expired_hold_cannot_be_used() -> None:
    kernel = engine().kernel
    hold = kernel.hold([event(), event()], analyst="ana", seconds=-1.0)
    with pytest.raises(Stale, match="expired"):
        kernel.measure(BY_AGE, EIGHT, analyst="ana", purpose=Purpose("late", "test"), at_most=2**60, fence=hold.fence)
    assert kernel.spent() == 0


def test_a_new_version_overtakes_a_plan() -> None:
    db = engine()
    db.query("SELECT COUNT(*) FROM people", within=50)
    version, tables = db.kernel._opened()
    db.owner.declare_version()
    db.kernel._opened = lambda: (version, tables)  # type: ignore[method-assign]  # a verb that read its counts before
    with pytest.raises(Stale, match="version"):
        db.kernel.measure(BY_AGE, EIGHT, analyst="ana", purpose=Purpose("late", "test"), at_most=2**60)


def test_a_commit_that_fails_releases_and_charges_nothing() -> None:
    class Failing(MemoryLedger):
        broken = False

        def commit(self, work):  # type: ignore[no-untyped-def]
            def broken_work(transaction):  # type: ignore[no-untyped-def]
                result = work(transaction)
                if self.broken:
                    raise LedgerError("disk full")
                return result

            return super().commit(broken_work)

    settings = config()
    ledger = Failing(charter(settings))
    db = engine(settings=settings)
    for record in db.ledger.records():
        ledger.commit(
            lambda t, r=record: t.append(
                analyst=r.analyst, purpose=Purpose("", r.proposer), event=r.event, values=r.values
            )
        )
    source = TableSource(counts())
    ledger.commit(lambda t: (t.put_secret("data key", b"k" * 32), t.put_secret("content 1", b"as it was")))
    kernel = Kernel(
        domain=DOMAIN,
        unit=settings.unit,
        budget=settings.budget,
        max_rows=settings.max_rows,
        ledger=ledger,
        open_source=lambda key: source,
        randomness=SystemRandomness(),
    )
    with grant(kernel, event()) as allowed:
        allowed.measure(BY_AGE, EIGHT)
    ledger.broken = True
    with pytest.raises(LedgerError, match="disk full"):
        kernel.measure(BY_AGE, EIGHT, analyst="ana", purpose=Purpose("why", "test"), at_most=2**60)
    ledger.broken = False
    assert kernel.spent() == 2**47
    assert len(ledger.records()) == 2


def test_limits_are_checked_from_public_sizes() -> None:
    kernel = engine().kernel
    huge = Product((Mask(("age",), (10,), Steps.dense(np.full((1, 10), 2**50))),))
    with pytest.raises(QueryError, match="too large"):
        kernel.check(huge)
    columns = tuple(IntegerRange(name=f"c{i}", lower=0, upper=999, null=0) for i in range(3))
    wide = Kernel(
        domain=Domain(columns),
        unit=config().unit,
        budget=Budget.of(epsilon=1.0),
        max_rows=10,
        ledger=kernel.ledger,
        open_source=lambda key: TableSource(counts()),
        randomness=SystemRandomness(),
    )
    parts = tuple(Mask((c.name,), (1000,), Steps.identity(1000)) for c in columns)
    with pytest.raises(QueryError, match="joint cells"):
        wide.check(Product(parts))
    few = Mask(("c2",), (1000,), Steps.total(1000))
    with pytest.raises(QueryError, match="joint cells"):
        wide.check(Product((*parts[:2], few)))


def test_without_a_declared_version_nothing_is_measured() -> None:
    settings = config()
    kernel = Kernel(
        domain=DOMAIN,
        unit=settings.unit,
        budget=settings.budget,
        max_rows=settings.max_rows,
        ledger=MemoryLedger(charter(settings)),
        open_source=lambda key: TableSource(counts()),
        randomness=SystemRandomness(),
    )
    with pytest.raises(SourceError, match="bursar version"):
        kernel.measure(BY_AGE, EIGHT, analyst="ana", purpose=Purpose("why", "test"), at_most=2**60)


@pytest.mark.parametrize(
    "declared", [{}, {"epsilon": 1.0, "rho": 1.0}, {"delta": 0.1}, {"epsilon": -1.0}, {"rho": 1e9}]
)
def test_budgets_that_make_no_sense(declared: dict[str, float]) -> None:
    from bursar.errors import ConfigError

    with pytest.raises(ConfigError):
        Budget.of(**declared)


def test_budgets_in_words() -> None:
    assert budget_words(Budget.of(epsilon=2.0)) == "epsilon 2"
    assert budget_words(Budget.of(rho=0.5)) == "rho 0.5"
    assert budget_words(Budget.of(epsilon=1.0, delta=1e-6)).startswith("epsilon 1 at delta 1e-06 (rho ")
