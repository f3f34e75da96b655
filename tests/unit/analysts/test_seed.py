"""The seed: what is measured, for how much, and what happens when that is interrupted."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bursar.analysts.seed_measurements import PURPOSE, events_of, plan_of, plant
from bursar.analysts.shares import BASES, EVERYONE, AnalystSettings, Seed, Shares
from bursar.core.accounting import Mode
from bursar.core.budget import Budget
from bursar.core.domain import Neighbours, Unit
from bursar.core.kernel import Kernel
from bursar.core.ledger import chain
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import Busy
from harness.collective import Collective, settings_of
from harness.small import DOMAIN, Silence, config, engine

HALVES = {"ana": 0.5, "bob": 0.5}


def kernel_of(seed: Seed, **changes: Any) -> Kernel:
    settings = AnalystSettings(policy="seeded-cache", shares=Shares.of(HALVES), seed=seed)
    bursar = engine(settings=config(analysts=settings, **changes), randomness=Silence(), analyst="owner")
    bursar.owner.declare_shares()
    return bursar.kernel


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("columns", [("age",), ("age", "sex"), ("region",)])
@pytest.mark.parametrize("mode", list(Mode))
def test_every_basis_determines_every_cell(basis: str, columns: tuple[str, ...], mode: Mode) -> None:
    seed = Seed(fraction=Fraction(1, 4), basis=basis, columns=columns)
    plan = plan_of(seed, DOMAIN, mode, max_rows=1000)
    cells = DOMAIN.cells(columns)
    eye = np.eye(cells, dtype=np.int64).reshape(cells, *DOMAIN.sizes(columns))
    rows = np.concatenate([[part.map.apply(lambda names, cell=cell: cell) for cell in eye] for part in plan.parts], 1)
    assert np.linalg.matrix_rank(rows.astype(float)) == cells


@pytest.mark.parametrize("mode", list(Mode))
def test_a_declared_workload_is_answered_more_exactly_than_by_a_histogram(mode: Mode) -> None:
    """The best strategy for it, at the same price, has a smaller error on it; a histogram's seed is the wrong twin."""
    size = DOMAIN["age"].size
    halves = np.array([[0, size // 2], [size // 2, size]])
    workload = Product((Mask(("age",), (size,), Steps.ranges(halves[:, 0], halves[:, 1], size)),))
    facts: Any = {"fraction": Fraction(1, 4), "columns": ("age",)}

    def variance(seed: Seed) -> float:
        (part,) = plan_of(seed, DOMAIN, mode, max_rows=1000).parts
        cells = np.eye(size, dtype=np.int64)
        rows = np.array([part.map.apply(lambda names, cell=cell: cell) for cell in cells]).T.astype(float)
        wanted = np.array([(np.arange(size) >= low) & (np.arange(size) < high) for low, high in halves], float)
        weights = wanted @ np.linalg.pinv(rows)
        assert np.allclose(weights @ rows, wanted)
        return float(np.square(weights).sum() * np.square(part.scale))

    declared = Seed(basis="best", workload=workload, **facts)
    assert variance(declared) < 0.5 * variance(Seed(basis="histogram", **facts))


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"budget": Budget.of(rho=0.1)},
        {"unit": Unit(neighbours=Neighbours.REPLACE_ONE), "public_size": 1000},
        {"unit": Unit(column="id", max_contributions=3)},
    ],
)
def test_the_seed_costs_what_everyone_has(basis: str, changes: dict[str, Any]) -> None:
    seed = Seed(fraction=Fraction(1, 4), basis=basis, columns=("age",))
    kernel = kernel_of(seed, **changes)
    plant(kernel, seed)
    account = kernel.account(EVERYONE)
    assert 0.99 * account.cap < account.spent <= account.cap
    before = len(kernel.ledger.records())
    plant(kernel, seed)
    assert len(kernel.ledger.records()) == before


def test_nothing_is_measured_before_shares_are_given_out() -> None:
    seed = Seed(fraction=Fraction(1, 4), columns=("age",))
    settings = AnalystSettings(policy="seeded-cache", shares=Shares.of(HALVES), seed=seed)
    bursar = engine(settings=config(analysts=settings), analyst="owner")
    plant(bursar.kernel, seed)
    assert bursar.kernel.spent() == 0


def test_a_new_version_has_no_seed_of_its_own() -> None:
    people = Collective(settings_of(HALVES))
    people.ask("ana", 1, 30.0)
    people.owner.owner.declare_version()
    people.ask("ana", 1, 30.0)
    paid = [record for record in people.owner.ledger.records() if record.analyst == EVERYONE]
    assert len(paid) == 1


def test_a_seed_that_is_being_measured_elsewhere_is_waited_for() -> None:
    seed = Seed(fraction=Fraction(1, 4), columns=("age",))
    kernel = kernel_of(seed)
    plan = plan_of(seed, kernel.domain, Mode.PURE, max_rows=kernel.max_rows)
    cap = kernel.account(EVERYONE).cap
    events = events_of(plan, cap, version=kernel.version(), empty_book=kernel.empty_book)
    hold = kernel.hold(events, analyst=EVERYONE, seconds=60)
    with pytest.raises(Busy, match="seed"):
        plant(kernel, seed)
    kernel.ledger.commit(lambda transaction: transaction.drop_hold(hold.fence))
    plant(kernel, seed)
    paid = [(record.question, record.proposer) for record in kernel.ledger.records() if record.analyst == EVERYONE]
    assert paid == [(chain.question(PURPOSE), "seed")]
