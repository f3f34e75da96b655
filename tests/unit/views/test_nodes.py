"""The log as a cache of boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from bursar.core.accounting import Measured, Noise, NoiseKind, Refined, Versioned
from bursar.core.ledger import Record
from bursar.core.queries import Mask, Product, Stack, Steps
from bursar.views.nodes import Nodes, boxes_of, ranges_of, runs_of, sums_of
from harness.small import DOMAIN


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def ages(*ranges: tuple[int, int]) -> Mask:
    lows, highs = zip(*ranges, strict=True)
    return Mask(("age",), (10,), Steps.ranges(lows, highs, 10))


SEXES = Mask(("sex",), (2,), Steps.identity(2))


def record(position: int, event: Any, values: list[int]) -> Record:
    numbers = np.array(values, np.int64)
    return Record(
        position=position, at=0.0, analyst="ana", question="", proposer="", run=0, event=event, values=numbers
    )


def measured(position: int, strategy: Any, scale: float, values: list[int]) -> Record:
    return record(position, Measured(strategy=strategy, noise=laplace(scale), version=1), values)


def test_rows_are_boxes_in_the_order_of_the_domain() -> None:
    nodes = Nodes(DOMAIN)
    nodes.advance([measured(2, Product((SEXES, ages((0, 5), (3, 10)))), 4.0, [1, 2, 3, 4])])
    found = nodes.over(("age", "sex"))
    assert {box: (node.block, node.row, node.value) for box, node in found.items()} == {
        ((0, 5), (0, 1)): (2, 0, 1),
        ((3, 10), (0, 1)): (2, 1, 2),
        ((0, 5), (1, 2)): (2, 2, 3),
        ((3, 10), (1, 2)): (2, 3, 4),
    }
    assert nodes.over(("age",)) == {}


def test_the_finer_measurement_stays() -> None:
    nodes, strategy = Nodes(DOMAIN), Product((ages((0, 5)),))
    nodes.advance([measured(2, strategy, 4.0, [1]), measured(3, strategy, 2.0, [2]), measured(4, strategy, 3.0, [3])])
    (node,) = nodes.over(("age",)).values()
    assert (node.block, node.noise.scale, node.value) == (3, 2.0, 2)


def test_refined_rows_get_their_new_values() -> None:
    nodes, strategy = Nodes(DOMAIN), Stack((Product((SEXES,)), Product((ages((0, 5), (5, 10), (1, 2)),))))
    first = measured(2, strategy, 4.0, [1, 2, 3, 4, 5])
    event = Refined(
        block=2, measured=strategy, rows=np.array([1, 3]), before=laplace(4.0), after=laplace(1.5), version=1
    )
    for records in ([first, record(3, event, [20, 40])],):
        nodes.advance(records)
    assert {box: (n.row, n.noise.scale, n.value) for box, n in nodes.over(("age",)).items()} == {
        ((0, 5),): (2, 4.0, 3),
        ((5, 10),): (3, 1.5, 40),
        ((1, 2),): (4, 4.0, 5),
    }
    assert nodes.over(("sex",))[((1, 2),)].value == 20
    assert nodes.strategies[2] is strategy


def test_it_is_advanced_piece_by_piece() -> None:
    strategy = Product((ages((0, 5), (5, 10)),))
    event = Refined(block=2, measured=strategy, rows=np.array([1]), before=laplace(4.0), after=laplace(1.0), version=1)
    nodes = Nodes(DOMAIN)
    nodes.advance([measured(2, strategy, 4.0, [1, 2])])
    assert nodes.over(("age",))[((5, 10),)].value == 2
    nodes.advance([record(3, event, [9])])
    assert nodes.over(("age",))[((5, 10),)].value == 9


def test_a_new_version_forgets() -> None:
    nodes = Nodes(DOMAIN)
    nodes.advance([measured(2, Product((ages((0, 5)),)), 4.0, [1])])
    nodes.over(("age",))
    nodes.advance([record(3, Versioned(version=2), [])])
    assert nodes.over(("age",)) == {}
    assert nodes.strategies == {}


def test_rows_that_are_no_box_are_left_out() -> None:
    two_runs = Mask(("age",), (10,), Steps.dense([[1, 0, 1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0, 0, 0]]))
    weighted = Mask(("age",), (10,), Steps.dense([[2, 0, 0, 0, 0, 0, 0, 0, 0, 0]]))
    joint = Mask(("age", "sex"), (10, 2), Steps.dense(np.eye(20, dtype=np.int64)[:1]))
    nodes = Nodes(DOMAIN)
    nodes.advance(
        [
            measured(2, Product((two_runs,)), 4.0, [1, 2]),
            measured(3, Product((weighted,)), 1.0, [3]),
            measured(4, Product((joint,)), 1.0, [4]),
        ]
    )
    assert {box: node.row for box, node in nodes.over(("age",)).items()} == {((0, 2),): 1}
    assert nodes.over(("age", "sex")) == {}


def test_sums_of_boxes() -> None:
    two_runs = Mask(("age",), (10,), Steps.dense([[1, 0, 1, 0, 0, 0, 0, 0, 0, 1]]))
    product = Product((two_runs, SEXES))
    sums = sums_of(product, ("age", "sex", "region"), DOMAIN)
    assert sums == [[((a, b), own, (0, 3)) for a, b in [(0, 1), (2, 3), (9, 10)]] for own in [(0, 1), (1, 2)]]
    assert boxes_of(product, ("age", "sex"), DOMAIN) is None
    assert boxes_of(Product((SEXES,)), ("sex",), DOMAIN) == [((0, 1),), ((1, 2),)]
    assert boxes_of(Product(()), (), DOMAIN) == [()]


def test_runs() -> None:
    steps = Steps.dense([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1]])
    assert runs_of(steps) == [[], [(0, 3)], [(1, 2)], [(0, 1), (2, 3)]]
    assert ranges_of(steps) is None
    assert ranges_of(steps.take([1, 2])) == [(0, 3), (1, 2)]
    assert runs_of(Steps.dense([[0, -1, 0]])) is None
