"""Predicates in front of the kernel: measured, refined, priced on their hull, and kept off partitions not sealed."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind, Opened
from bursar.core.budget import Budget
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.extensions.partitions import check_sealed, looked_at
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose
from bursar.core.queries import Mask, Predicate, Product, Quorum, Steps, Within
from bursar.errors import QueryError, Unsupported
from harness.maps import domain_of
from harness.small import DOMAIN, Silence, config, counts, engine

SIZES = DOMAIN.sizes(DOMAIN.names)
YOUNG, WOMEN, NORTH = Within("age", ((0, 3),)), Within("sex", ((0, 1),)), Within("region", ((0, 1),))
TWO_OF_THREE = Predicate(DOMAIN.names, SIZES, Quorum(2, (YOUNG, WOMEN, NORTH)))
OLD_AND_ANY = Predicate(DOMAIN.names, SIZES, Quorum(2, (Within("age", ((8, 10),)), Quorum(1, (WOMEN, NORTH)))))
PLENTY = 2**60
ONE = 2**50


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def kernel(neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Kernel:
    settings = config(budget=Budget.of(epsilon=4.0), unit=Unit(neighbours=neighbours), public_size=int(counts().sum()))
    return engine(settings=settings, randomness=Silence()).kernel


def measured(found: Kernel, strategy: Predicate | Product, scale: float = 8.0) -> tuple[list[int], int]:
    record, charge = found.measure(strategy, laplace(scale), analyst="ana", purpose=Purpose("", "test"), at_most=PLENTY)
    return record.values.tolist(), charge.total


def test_it_is_measured_and_refined() -> None:
    age, sex, region = np.indices(SIZES)
    holds = (age < 3).astype(int) + (sex == 0) + (region == 0) >= 2
    truth = int(counts()[holds].sum())
    found = kernel()
    assert measured(found, TWO_OF_THREE) == ([truth], ONE // 8)
    block = found.ledger.records()[-1].position
    facts = {"before": laplace(8.0), "analyst": "ana", "purpose": Purpose("", "test"), "at_most": PLENTY}
    record, charge = found.refine(block, [0], laplace(4.0), **facts)
    assert (record.values.tolist(), charge.total) == ([truth], ONE // 8)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_it_costs_a_row_on_its_hull(neighbours: Neighbours) -> None:
    found = kernel(neighbours)
    assert measured(found, OLD_AND_ANY)[1] == ONE // 8
    young = Product((Mask(("age",), (10,), Steps.ranges([0], [8], 10)),))
    apart = 0 if neighbours is Neighbours.ADD_REMOVE else ONE // 8  # a person who is replaced may be on both sides
    assert measured(found, young)[1] == apart
    assert measured(found, TWO_OF_THREE)[1] == ONE // 8


def test_what_does_not_fit_the_data_is_refused_and_costs_nothing() -> None:
    found = kernel()
    with pytest.raises(QueryError, match="does not fit the columns of the data"):
        measured(found, Predicate(("age",), (4,), Within("age", ((0, 1),))))
    assert found.spent() == 0


def test_a_sparse_vector_does_not_test_it() -> None:
    laws = {"threshold": laplace(8.0), "test": laplace(8.0), "cut": 1, "version": 1}
    with pytest.raises(Unsupported):
        Opened(scope=TWO_OF_THREE, **laws)


def test_it_stays_off_partitions_that_are_not_sealed() -> None:
    domain = Domain(domain_of(week=4, age=3, sex=2).attributes, partition="week")
    either = Quorum(1, (Within("age", ((0, 1),)), Within("sex", ((0, 1),))))
    names = ("week", "age", "sex")
    first = Within("week", ((0, 2),))
    inside = Predicate(names, (4, 3, 2), Quorum(2, (first, either)))
    assert looked_at(inside, domain) == 2
    check_sealed(inside, domain, 2)
    with pytest.raises(QueryError, match="not sealed yet"):
        check_sealed(inside, domain, 1)
    for loose in (either, Quorum(1, (first, either)), Quorum(2, (first, *either.parts))):
        with pytest.raises(QueryError, match="not sealed yet"):
            check_sealed(Predicate(names, (4, 3, 2), loose), domain, 3)
        check_sealed(Predicate(names, (4, 3, 2), loose), domain, 4)
    nowhere = Predicate(names, (4, 3, 2), Quorum(2, (Within("week", ()), either)))
    check_sealed(nowhere, domain, 0)
