"""Counted terms have the law of the same terms written out."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.estimation.estimate import WeightedRows
from bursar.tails import DrawTerm, GroupedRows, tail

COARSE, FINE = Noise(kind=NoiseKind.LAPLACE, scale=30.0), Noise(kind=NoiseKind.LAPLACE, scale=7.5)
NORMAL = Noise(kind=NoiseKind.GAUSSIAN, scale=12.0)


def written_out(law: GroupedRows) -> WeightedRows:
    drawn = [(term.weight, term.noise) for row in law.rows for term in row for _ in range(term.draws)]
    weights = np.zeros((len(law.rows), len(drawn)))
    place = 0
    for i, row in enumerate(law.rows):
        for term in row:
            weights[i, place : place + term.draws] = term.weight
            place += term.draws
    return WeightedRows(weights=weights, noises=tuple(noise for _, noise in drawn))


LAWS = [
    GroupedRows(rows=((DrawTerm(1.0, COARSE, 20),),)),
    GroupedRows(rows=((DrawTerm(1.0, COARSE, 3), DrawTerm(2.0, FINE, 9)),) * 2),
    GroupedRows(rows=((DrawTerm(0.5, NORMAL, 40),), (DrawTerm(1.0, COARSE, 1),))),
]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("beta", [0.2, 0.01, 1e-6])
def test_the_law_is_that_of_the_terms_written_out(law: GroupedRows, beta: float) -> None:
    plain = written_out(law)
    assert law.mean_square() == pytest.approx(plain.mean_square())
    for alpha in plain.half_widths(beta):
        exact = sum(tail(row, plain.noises, alpha) for row in plain.weights)
        assert exact <= law.tail(alpha, 0.0) * (1 + 1e-9)
        assert law.tail(alpha, 0.0) <= 1.05 * exact
    widths = law.half_widths(beta)
    assert np.all(widths >= plain.half_widths(beta) * (1 - 1e-9))
    assert np.all(widths <= 1.01 * plain.half_widths(beta) + 1.0)


def test_enough_spares_the_inversion_and_stays_a_bound() -> None:
    law = LAWS[0]
    alpha = float(law.half_widths(1e-3)[0])
    assert law.tail(alpha, 0.0) <= law.tail(alpha, 0.5) <= 0.5


def test_a_bounded_term_is_never_sharper_than_its_moments() -> None:
    alpha = 200.0
    exact = GroupedRows(rows=((DrawTerm(1.0, NORMAL, 30),),))
    bounded = GroupedRows(rows=((DrawTerm(1.0, NORMAL, 30, bounded=True),),))
    assert exact.tail(alpha, 0.0) < 0.5 * bounded.tail(alpha, 0.0)


def test_rows_without_terms_do_not_err() -> None:
    law = GroupedRows(rows=((), (DrawTerm(1.0, FINE, 2),)))
    assert law.half_widths(0.1)[0] == 0
    assert GroupedRows(rows=((),)).tail(1.0, 0.0) == 0
    assert GroupedRows(rows=()).mean_square() == 0
    assert law.tail(0.0, 0.0) == 1
