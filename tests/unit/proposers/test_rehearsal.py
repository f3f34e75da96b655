"""What one more row would tell, before it is bought."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.queries import Mask, Product, Steps
from bursar.estimation.least_squares import Block, Reconstruction
from bursar.proposers.incremental import Rehearsal
from harness.maps import domain_of

DOMAIN = domain_of(x=6, y=2)


def gaussian(scale: float) -> Noise:
    return Noise(kind=NoiseKind.GAUSSIAN, scale=scale)


def over(name: str, *rows: list[int]) -> Product:
    return Product((Mask((name,), (len(rows[0]),), Steps.dense(rows)),))


def known(*measured: tuple[Product, Noise], columns: tuple[str, ...] = ("x",)) -> Reconstruction:
    found = Reconstruction(DOMAIN, columns)
    for product, noise in measured:
        assert found.add(Block(product, np.zeros(product.rows, np.int64), noise))
    return found


def test_a_rehearsal_leaves_the_original_alone() -> None:
    found = known((over("x", [1, 1, 1, 0, 0, 0]), gaussian(2.0)))
    rehearsal = Rehearsal(found)
    assert rehearsal.take(over("x", [1, 0, 0, 0, 0, 0]), gaussian(1.0))
    assert len(found.noises) == len(found.rows) == 1
    assert found.rows.shape == (1, 2)
    assert found.state.information.shape == (2, 2)
    assert len(rehearsal.reconstruction.noises) == 2


@pytest.mark.parametrize("row", [[4, 4, 1, 0, 0, 0], [4, 0, 0, 0, 0, 0], [4, 3, 3, 0, 0, 0]])
def test_the_scale_just_keeps_the_variance(row: list[int]) -> None:
    """Where the question is determined already, and where it is the row together with what is known."""
    query = over("x", [1, 1, 1, 0, 0, 0])
    cells = [([1, 0, 0, 0, 0, 0], 3.0), ([0, 1, 0, 0, 0, 0], 5.0), ([0, 0, 1, 0, 0, 0], 2.0)]
    found = known(*((over("x", cell), gaussian(scale)) for cell, scale in cells))
    rehearsal = Rehearsal(found)
    values = np.array(row)[[int(np.flatnonzero(found.classes["x"] == i)[0]) for i in range(4)]]
    scale = rehearsal.scale(query, values.astype(float), 30.0)
    assert scale is not None
    assert rehearsal.take(over("x", row), gaussian(scale))
    assert rehearsal.variance(query) == pytest.approx(30.0)


def test_the_scale_where_the_question_was_open() -> None:
    query = over("x", [1, 1, 1, 1, 0, 0])
    rehearsal = Rehearsal(known((over("x", [1, 1, 0, 0, 0, 0]), gaussian(3.0))))
    assert rehearsal.reconstruction.split_by(query)
    assert math.isinf(rehearsal.variance(query))
    labels = rehearsal.reconstruction.classes["x"]
    row = np.zeros(labels.max() + 1)
    row[labels[0]], row[labels[2]] = 1.0, 2.0  # twice the question, less the row that is known
    scale = rehearsal.scale(query, row, 20.0)
    assert scale is not None
    assert rehearsal.take(over("x", [1, 1, 2, 2, 0, 0]), gaussian(scale))
    assert rehearsal.variance(query) == pytest.approx(20.0)


def test_no_scale_where_the_row_does_not_help_enough() -> None:
    query = over("x", [1, 1, 1, 1, 0, 0])
    rehearsal = Rehearsal(known((over("x", [1, 1, 0, 0, 0, 0]), gaussian(3.0))))
    assert rehearsal.reconstruction.split_by(query)
    labels = rehearsal.reconstruction.classes["x"]
    other, beside = np.zeros(labels.max() + 1), np.zeros(labels.max() + 1)
    other[labels[5]], beside[labels[2]] = 1.0, 1.0
    assert rehearsal.scale(query, other, 20.0) is None
    assert rehearsal.scale(query, beside, 5.0) is None  # what is known beside it has variance 9 by itself


def test_losses_are_those_of_the_accountant() -> None:
    laplace = Noise(kind=NoiseKind.LAPLACE, scale=4.0)
    found = known((over("x", [1, 1, 2, 0, 0, 0]), gaussian(2.0)), (over("x", [0, 0, 1, 1, 1, 1]), laplace))
    losses = Rehearsal(found).losses()
    per_cell = losses[found.classes["x"]]
    assert per_cell == pytest.approx([1 / 4, 1 / 4, 1 + 1 / 16, 1 / 16, 1 / 16, 1 / 16])


def test_groups_are_what_questions_told_apart_and_know_what_is_known_about_their_sums() -> None:
    """A histogram has many rows and no say in the groups; the two questions have."""
    histogram = Product((Mask(("x",), (6,), Steps.dense(np.repeat(np.eye(6, dtype=np.int64), 3, axis=0))),))
    found = known((over("x", [1, 1, 1, 0, 0, 0]), gaussian(2.0)), (histogram, gaussian(5.0)))
    groups = Rehearsal(found).groups(over("x", [0, 1, 1, 0, 0, 0]), 10)
    assert groups is not None
    assert len(groups.query) == 3
    sums = np.zeros((3, 6))
    sums[groups.classes["x"], np.arange(6)] = 1
    cells = 3 * np.eye(6) / 25 + np.outer([1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0]) / 4
    assert groups.information == pytest.approx(np.linalg.inv(sums @ np.linalg.inv(cells) @ sums.T))
    assert groups.query[groups.classes["x"]].tolist() == [0, 1, 1, 0, 0, 0]
    row = groups.product(np.array([7, 8, 9]))
    assert row.masks[0].steps.at_cells(np.arange(6))[0].tolist() == np.array([7, 8, 9])[groups.classes["x"]].tolist()


def test_many_groups_become_those_of_the_question_alone() -> None:
    found = known(*((over("x", np.eye(6, dtype=int)[i].tolist()), gaussian(1.0)) for i in range(6)))
    query = over("x", [1, 1, 0, 0, 0, 0])
    few, none = Rehearsal(found).groups(query, 4), Rehearsal(found).groups(query, 1)
    assert few is not None
    assert len(few.query) == 2
    assert none is None
