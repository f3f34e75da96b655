"""Rounded strategies answer everything, lose next to nothing, and have exact norms."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import QueryError
from bursar.papers.eigen_design import workloads
from bursar.papers.eigen_design.eigen_design import eigen_design
from bursar.papers.eigen_design.fourier import wavelet
from bursar.strategies.integers import IntegerStrategy, spans, to_integers
from bursar.strategies.measure import pure_error, rms_error
from bursar.strategies.optimal import optimum
from bursar.strategies.p_identity import p_identity

RNG = np.random.default_rng(8)
CASES = {
    "ranges": workloads.all_ranges(64),
    "prefix": workloads.prefix(64),
    "predicates": workloads.gram_of(RNG.integers(0, 2, (80, 40))),
    "low rank, flat": workloads.marginals((4, 4, 4), workloads.ways(3, 1)),
    "low rank": workloads.gram_of(RNG.integers(0, 2, (9, 30))),
    "equal columns": workloads.gram_of(RNG.integers(0, 2, (9, 5))[:, RNG.integers(0, 5, 30)]),
    "unused cells": workloads.gram_of(RNG.integers(0, 2, (30, 20)) * (np.arange(20) % 3 > 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_rounding_loses_less_than_a_thousandth(name: str) -> None:
    V = CASES[name]
    for A in (optimum(V, gap=1e-4).strategy, eigen_design(V)):
        made = to_integers(A, V)
        assert made.loss < 1e-3
        assert rms_error(V, made.rows) / rms_error(V, A) - 1 == pytest.approx(made.loss, abs=1e-9)
        assert spans(made.rows, V)


def test_rounding_for_laplace_noise() -> None:
    V = workloads.all_ranges(64)
    A = p_identity(V)
    made = to_integers(A, V, power=1)
    assert pure_error(V, made.rows) / pure_error(V, A) - 1 == pytest.approx(made.loss, abs=1e-9)
    assert made.loss < 1e-3


def test_whole_numbers_stay() -> None:
    made = to_integers(wavelet(16), workloads.prefix(16))
    assert made.rows.tolist() == wavelet(16).astype(int).tolist()
    assert (made.bits, made.loss) == (0, 0)


def test_norms_are_exact_integers_and_the_mask_has_them_too() -> None:
    made = to_integers(optimum(workloads.prefix(12)).strategy, workloads.prefix(12))
    for power in (1, 2):
        by_hand = max(sum(abs(int(a)) ** power for a in column) for column in made.rows.T)
        assert made.norm(power) == by_hand
        assert made.mask(("age", "sex"), (6, 2)).steps.norms(power).max() == by_hand
    assert made.mask(("age", "sex"), (6, 2)).rows == len(made.rows)


def test_rows_that_rounding_has_turned_away_are_noticed() -> None:
    query = np.array([[1.0, 0.3, 0.7]])
    V = query.T @ query
    assert spans(query, V)
    assert not spans(np.round(query * 2**10), V)
    assert not spans(np.round(query * 2**20), V)
    assert spans(to_integers(query, V).rows, V)


def test_what_does_not_answer_is_refused() -> None:
    with pytest.raises(QueryError, match="does not answer"):
        to_integers(np.ones((1, 3)), np.eye(3))
    with pytest.raises(QueryError, match="different cells"):
        to_integers(np.eye(2), np.eye(3))


def test_no_rows_for_no_question() -> None:
    made = to_integers(np.zeros((0, 3)), np.zeros((3, 3)))
    assert isinstance(made, IntegerStrategy)
    assert made.norm(2) == 0
