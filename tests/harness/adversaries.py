"""Questions that adversaries ask a small kernel, and the neighbours they try to tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from bursar.core.accounting import NoiseKind
from bursar.core.budget import Budget
from bursar.core.domain import Neighbours, Unit
from bursar.core.queries import LinearMap, Mask, Predicate, Product, Quorum, Stack, Steps, Within
from harness.cells import Cell
from harness.enumeration import Enumerated, worst_ratio
from harness.kernels import CELLS, Adversary, Session, Versions

CONCENTRATED = Budget.of(rho=100.0)
OTHER_ROW = Unit(neighbours=Neighbours.REPLACE_ONE)
TWO_ROWS = Unit(column="person", max_contributions=2)
BASE: tuple[Cell, ...] = ((0, 0), (1, 1), (1, 2))


def over(columns: tuple[str, ...], rows: Sequence[Sequence[int]]) -> Product:
    sizes = tuple({"sex": 2, "age": 3}[name] for name in columns)
    return Product((Mask(columns, sizes, Steps.dense(rows)),))


ALL = Product(())
WOMEN = over(("sex",), [[1, 0]])
SEXES = over(("sex",), [[1, 0], [0, 1]])
TWICE = over(("sex",), [[2, 0]])
APART = over(("sex",), [[1, -1]])
AGES = over(("age",), [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
GROWN = over(("age",), [[0, 1, 1]])
EITHER = over(("sex", "age"), [[1, 1, 1, 0, 0, 1]])
OLD_WOMEN = Product((WOMEN.masks[0], GROWN.masks[0]))
BOTH = Stack((GROWN, APART))
ANY = Predicate(("sex", "age"), (2, 3), Quorum(1, (Within("sex", ((0, 1),)), Within("age", ((2, 3),)))))
NOT_YOUNG = Predicate(
    ("age", "sex"),
    (3, 2),
    Quorum(2, (Within("age", ((1, 3),)), Quorum(1, (Within("sex", ((0, 1),)), Within("age", ((2, 3),)))))),
)
STRATEGIES: dict[str, LinearMap] = {
    "all": ALL,
    "women": WOMEN,
    "sexes": SEXES,
    "twice": TWICE,
    "apart": APART,
    "either": EITHER,
    "old women": OLD_WOMEN,
    "both": BOTH,
    "any": ANY,
    "not young": NOT_YOUNG,
}


def once(strategy: LinearMap, scale: float = 1.0, kind: NoiseKind = NoiseKind.LAPLACE) -> Adversary:
    def adversary(session: Session) -> None:
        session.measure(strategy, scale, kind)

    return adversary


def branching(session: Session) -> None:
    """The second strategy and its scale depend on the first value."""
    (first,) = session.measure(ALL, 1.5)
    if first > 4:
        session.measure(SEXES, 2.0)
    elif first == 4:
        session.measure(TWICE, 0.75)
    else:
        session.measure(EITHER, 0.5 + abs(int(first)))


def chasing(session: Session) -> None:
    """Three steps: where a value looks telling, it is asked again, finer and finer."""
    scale, strategy = 2.0, WOMEN
    for _ in range(3):
        (value,) = session.measure(strategy, scale)
        strategy = (OLD_WOMEN, WOMEN, GROWN)[int(value) % 3]
        scale = scale / 2 if value > 1 else scale * 1.5


def greedy(session: Session) -> None:
    """Asks until it is refused; what is asked next depends on the last value."""
    strategy: LinearMap = WOMEN
    for _ in range(4):
        values = session.measure(strategy, 1.0)
        if values is None:
            return
        strategy = GROWN if values[0] > 0 else OLD_WOMEN


def two_looks(session: Session) -> None:
    session.measure(WOMEN, 1.0)
    session.measure(OLD_WOMEN, 1.0)


def same_look_twice(session: Session) -> None:
    session.measure(WOMEN, 1.0)
    session.measure(WOMEN, 1.0)


def plus(*added: Cell) -> Versions:
    return (tuple(sorted((*BASE, *added))),)


def neighbours(unit: Unit, cells: Sequence[Cell] = CELLS) -> list[tuple[Versions, Versions]]:
    """A data set with one more row in each of the cells; or one row in each instead of in each other."""
    if unit.neighbours is Neighbours.ADD_REMOVE:
        return [(plus(), plus(cell)) for cell in cells]
    return [(plus(v), plus(w)) for v in cells for w in cells if v < w]


def worst(mechanism: Enumerated[Versions], pairs: Iterable[tuple[Versions, Versions]]) -> Decimal:
    return max(worst_ratio(mechanism, left, right).excess for left, right in pairs)
