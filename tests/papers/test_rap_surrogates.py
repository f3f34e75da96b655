"""RAP, section 4.2: polynomial threshold queries agree with r-of-k predicates on every one-hot row."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from bursar.arrays import Reals
from bursar.errors import QueryError
from bursar.synthetic.rap.threshold_workload import Expansion, expansion, generalized_products, inclusion_exclusion

THRESHOLDS = [(k, r) for k in range(1, 6) for r in range(1, k + 1)]


def one_hot_rows(k: int) -> list[Reals]:
    """The numbers that a threshold's k variables take on all one-hot rows."""
    return list(np.array(list(product([0.0, 1.0], repeat=k))).T)


def predicate(k: int, r: int) -> Reals:
    return np.array([float(sum(row) >= r) for row in product([0, 1], repeat=k)])


def relaxed_rows(k: int) -> list[Reals]:
    """Rows that are not one-hot: the powers of an irrational number modulo 1."""
    return [np.modf(np.arange(1, 201) * (0.5 + i) * np.sqrt(5.0))[0] for i in range(k)]


@pytest.mark.parametrize(("k", "r"), THRESHOLDS)
def test_surrogates_equal_the_predicate_on_one_hot_rows(k: int, r: int) -> None:
    rows = one_hot_rows(k)
    for answers in (
        generalized_products(rows, r),
        inclusion_exclusion(k, r).evaluate(rows),
        expansion(k, r).evaluate(rows),
        1 - inclusion_exclusion(k, k - r + 1).evaluate([1 - x for x in rows]),
    ):
        assert np.array_equal(answers, predicate(k, r))


@pytest.mark.parametrize(("k", "r"), THRESHOLDS)
def test_all_forms_are_one_polynomial_on_relaxed_rows(k: int, r: int) -> None:
    rows = relaxed_rows(k)
    reference = generalized_products(rows, r)
    assert reference.min() >= 0
    assert reference.max() <= 1
    assert np.allclose(inclusion_exclusion(k, r).evaluate(rows), reference, atol=1e-12)
    assert np.allclose(expansion(k, r).evaluate(rows), reference, atol=1e-12)


def wrong_twins(k: int, r: int) -> list[Expansion]:
    """The expansion with one coefficient off by one, or read with the wrong sign of the row."""
    right = expansion(k, r)
    moved = [
        replace(right, coefficients=(*right.coefficients[:j], c + 1, *right.coefficients[j + 1 :]))
        for j, c in enumerate(right.coefficients)
    ]
    self_dual = 2 * r == k + 1  # then phi(x) = 1 - phi(1 - x), and both readings are right
    return moved if self_dual else [*moved, replace(right, negated=not right.negated)]


@pytest.mark.parametrize(("k", "r"), THRESHOLDS)
def test_a_wrong_coefficient_is_caught(k: int, r: int) -> None:
    rows = one_hot_rows(k)
    assert not any(np.array_equal(twin.evaluate(rows), predicate(k, r)) for twin in wrong_twins(k, r))


def test_a_printed_sum_without_binomials_is_caught() -> None:
    right = inclusion_exclusion(4, 2)
    plain = replace(right, coefficients=tuple((-1) ** (len(s) - 2) for s in right.subsets))
    assert not np.array_equal(plain.evaluate(one_hot_rows(4)), predicate(4, 2))


def test_the_terms_of_two_of_three() -> None:
    assert expansion(3, 2) == Expansion(
        k=3, subsets=((0, 1), (0, 2), (1, 2), (0, 1, 2)), coefficients=(1, 1, 1, -2), negated=False
    )
    assert expansion(3, 1) == Expansion(k=3, subsets=((0, 1, 2),), coefficients=(1,), negated=True)


@pytest.mark.parametrize(("k", "r"), THRESHOLDS)
def test_at_most_half_of_the_sizes_are_expanded(k: int, r: int) -> None:
    sizes = {len(subset) for subset in expansion(k, r).subsets}
    assert len(sizes) <= (k + 1) // 2
    assert expansion(k, r).negated == (r <= k / 2)


class Counted:
    """A number that counts what is done with it."""

    done = 0

    def __mul__(self, other: object) -> Counted:
        Counted.done += 1
        return self

    __add__ = __rsub__ = __mul__


def operations(evaluate: Any, k: int) -> int:
    Counted.done = 0
    evaluate([Counted() for _ in range(k)])
    return Counted.done


@pytest.mark.parametrize(("k", "r", "most"), [(4, 3, 0.7), (5, 3, 0.6), (7, 4, 0.53), (9, 5, 0.5)])
def test_inclusion_exclusion_needs_about_half_of_the_operations(k: int, r: int, most: float) -> None:
    reference = operations(lambda x: generalized_products(x, r), k)
    assert 0.4 < operations(inclusion_exclusion(k, r).evaluate, k) / reference < most


def test_negation_saves_the_most_where_r_is_small() -> None:
    for k in range(2, 7):
        assert operations(expansion(k, 1).evaluate, k) == 2 * k
        assert operations(inclusion_exclusion(k, 1).evaluate, k) >= 2**k - 1


@pytest.mark.parametrize(("k", "r"), [(3, 0), (3, 4), (0, 0), (0, 1), (2, -1)])
def test_thresholds_that_make_no_sense_are_refused(k: int, r: int) -> None:
    with pytest.raises(QueryError, match="at least 1 and at most all"):
        expansion(k, r)
    with pytest.raises(QueryError):
        inclusion_exclusion(k, r)
    with pytest.raises(QueryError):
        generalized_products([np.zeros(1)] * k, r)
