"""`refine`, enumerated: coarse and fine answers together tell what the fine one would have told alone."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest

from bursar.core.accounting import NoiseKind
from bursar.core.budget import Budget
from bursar.core.domain import Unit
from bursar.core.kernel import Kernel
from bursar.core.queries import LinearMap
from harness.adversaries import (
    APART,
    BOTH,
    OTHER_ROW,
    SEXES,
    STRATEGIES,
    TWICE,
    TWO_ROWS,
    WOMEN,
    neighbours,
    plus,
    worst,
)
from harness.cells import Cell
from harness.enumeration import ALLOWED, Transcript, worst_ratio
from harness.kernels import CELLS, ROW, Adversary, Session, enumerated
from harness.masses import laplace


def chain(strategy: LinearMap, *scales: float, rows: tuple[int, ...] = (0,)) -> Adversary:
    """Measured with the first scale, then refined to each of the others."""

    def adversary(session: Session) -> None:
        session.measure(strategy, scales[0])
        for before, scale in pairwise(scales):
            session.refine(scale, before=before, rows=rows)

    return adversary


def answers(transcript: Transcript) -> tuple[int, ...]:
    """The values of all records of a transcript."""
    bodies = [seen[0] for seen in transcript]
    return tuple(int(n) for body in bodies for n in np.frombuffer(body[body.index(b"\n") + 1 :], "<i8"))


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("coarse", "fine"), [(2.0, 1.0), (2.5, 0.4), (1.25, 1.2), (40.0, 0.75)])
def test_the_joint_loss_is_that_of_the_finer_noise(coarse: float, fine: float) -> None:
    mechanism = enumerated(chain(WOMEN, coarse, fine), reach=5)
    found = worst_ratio(mechanism, plus(), plus((0, 1)))
    assert abs(found.excess) <= ALLOWED  # the claim is reached, and not passed
    assert abs(found.ratio - 1 / Decimal(fine)) <= ALLOWED


@pytest.mark.heavy
def test_the_marginals_are_those_of_each_noise_by_itself() -> None:
    """The women of the base data number 1."""
    law = enumerated(chain(WOMEN, 0.75, 0.5), reach=10, margin=0).transcripts(plus())
    assert law.missing < Decimal("1e-5")
    seen = {answers(transcript): outcome.mass for transcript, outcome in law.outcomes.items()}
    with localcontext(Context(prec=60)):
        for place, scale in enumerate((0.75, 0.5)):
            for noise in range(-3, 4):
                lacking = laplace(scale)(noise) - sum(m for values, m in seen.items() if values[place] == noise + 1)
                assert -Decimal("1e-50") <= lacking <= law.missing


@pytest.mark.heavy
@pytest.mark.sampled(14)
@pytest.mark.parametrize("unit", [ROW, OTHER_ROW], ids=["add-remove", "replace-one"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_a_refined_row_of_any_strategy(name: str, unit: Unit) -> None:
    several = STRATEGIES[name].rows > 1
    mechanism = enumerated(chain(STRATEGIES[name], 2.5, 1.0), reach=0 if several else 1, margin=2, unit=unit)
    assert worst(mechanism, neighbours(unit)[:: 2 if several else 1]) <= ALLOWED


@pytest.mark.heavy
def test_chains_of_refinements() -> None:
    mechanism = enumerated(chain(WOMEN, 3.0, 1.5, 0.8), reach=2)
    found = worst_ratio(mechanism, plus(), plus((0, 0)))
    assert abs(found.excess) <= ALLOWED
    assert abs(found.ratio - 1 / Decimal("0.8")) <= ALLOWED


@pytest.mark.heavy
def test_rows_are_refined_together_and_by_themselves() -> None:
    def adversary(session: Session) -> None:
        session.measure(SEXES, 2.0)
        session.refine(1.5, before=2.0, rows=(0, 1))
        session.refine(1.0, before=1.5, rows=(1,))

    mechanism = enumerated(adversary, reach=0, margin=1)
    assert worst(mechanism, [(plus(), plus((0, 1))), (plus(), plus((1, 1)))]) <= ALLOWED
    assert abs(worst_ratio(mechanism, plus(), plus((1, 1))).ratio - 1) <= ALLOWED


def adaptive(session: Session) -> None:
    """Whether, how far and what else: all depends on what was seen."""
    (first,) = session.measure(WOMEN, 2.0)
    if first > 1:
        (second,) = session.refine(1.0, before=2.0)
        if second == first:
            session.refine(0.5, before=1.0)
    elif first == 1:
        session.refine(1.75, before=2.0)
    else:
        session.measure(APART, 1.0 + abs(int(first)))


def stubborn(session: Session) -> None:
    """Believes the wrong noise, the wrong rows and the wrong direction before it is right."""
    session.measure(TWICE, 2.0)
    session.refine(1.0, before=1.5)
    session.refine(3.0, before=2.0)
    session.refine(1.0, before=2.0, rows=(1,))
    session.refine(1.0, before=2.0)


@pytest.mark.heavy
@pytest.mark.sampled(6)
@pytest.mark.parametrize("unit", [ROW, OTHER_ROW], ids=["add-remove", "replace-one"])
@pytest.mark.parametrize("adversary", [adaptive, stubborn])
def test_adaptive_refinements_tell_no_more_than_the_book_claims(adversary: Adversary, unit: Unit) -> None:
    mechanism = enumerated(adversary, reach=1, margin=2, unit=unit)
    assert worst(mechanism, neighbours(unit)) <= ALLOWED


@pytest.mark.heavy
def test_refusals_tell_nothing_beyond_the_budget() -> None:
    def greedy(session: Session) -> None:
        scale = 1.0
        (value,) = session.measure(WOMEN, scale)
        while value is not None:
            finer = scale / (2 if value > 1 else 1.5)
            refined = session.refine(finer, before=scale)
            value = None if refined is None else refined[0]
            scale = finer

    mechanism = enumerated(greedy, reach=1, budget=Budget.of(epsilon=2.0))
    for left, right in neighbours(ROW):
        found = worst_ratio(mechanism, left, right)
        assert found.excess <= ALLOWED
        assert found.ratio <= 2 + ALLOWED
    assert all(t[-1][0] == "BudgetError" for t in mechanism.transcripts(plus()).outcomes)


@pytest.mark.heavy
def test_units_with_several_rows_are_covered_together() -> None:
    mechanism = enumerated(chain(WOMEN, 3.0, 1.0), reach=3, margin=2, unit=TWO_ROWS)
    found = worst_ratio(mechanism, plus(), plus((0, 1), (0, 2)))
    assert abs(found.excess) <= ALLOWED
    assert abs(found.ratio - 2) <= ALLOWED


@pytest.mark.heavy
def test_rows_of_an_older_version_are_left_alone() -> None:
    def adversary(session: Session) -> None:
        session.measure(WOMEN, 2.0)
        session.next_version(same_rows=True)
        assert session.refine(1.0, before=2.0) is None
        session.measure(WOMEN, 2.0)
        session.refine(1.0, before=2.0)

    mechanism = enumerated(adversary, reach=1)
    assert worst(mechanism, [(plus() + plus(), plus((0, 1)) + plus((0, 1)))]) <= ALLOWED


class OneNumber(Kernel):
    """Charges as the published systems do."""

    def __init__(self, **parts: object) -> None:
        super().__init__(**parts, sequential=True)


@pytest.mark.heavy
@pytest.mark.parametrize("unit", [ROW, OTHER_ROW], ids=["add-remove", "replace-one"])
def test_sequential_composition_claims_enough(unit: Unit) -> None:
    for adversary in (adaptive, chain(BOTH, 2.0, 1.0)):
        mechanism = enumerated(adversary, reach=0, margin=2, unit=unit, kernel=OneNumber)
        assert worst(mechanism, neighbours(unit)[:4]) <= ALLOWED


def test_a_gaussian_row_is_not_refined() -> None:
    def adversary(session: Session) -> None:
        session.measure(WOMEN, 2.0, NoiseKind.GAUSSIAN)
        session.refine(1.0, before=2.0)

    mechanism = enumerated(adversary, reach=1, budget=Budget.of(rho=10.0))
    last = {t[-1] for t in mechanism.transcripts(plus()).outcomes}
    assert {kind for kind, _ in last} == {"Unsupported"}


@pytest.mark.parametrize("unit", [ROW, OTHER_ROW], ids=["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("adversary", "reach", "cells"),
    [
        pytest.param(adaptive, 4, CELLS, id="adaptive", marks=pytest.mark.heavy),
        pytest.param(chain(WOMEN, 3.0, 1.5, 0.8), 1, CELLS, id="chain", marks=pytest.mark.soak),
        pytest.param(
            chain(SEXES, 2.0, 1.0, rows=(0, 1)), 1, ((0, 0), (0, 1), (1, 0)), id="rows together", marks=pytest.mark.soak
        ),
    ],
)
def test_further_out(adversary: Adversary, reach: int, cells: Sequence[Cell], unit: Unit) -> None:
    """Counts by sex do not see the age: rows of two ages stand for all."""
    mechanism = enumerated(adversary, reach=reach, margin=2, unit=unit)
    assert worst(mechanism, neighbours(unit, cells)) <= ALLOWED
