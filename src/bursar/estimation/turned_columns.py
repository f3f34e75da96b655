"""Least squares over products of masks, as one small problem for each direction of the columns that need no other.

Rows F (x) R are products of F over some columns and R over the others. Where the F^T F of all measurements have the
same eigenvectors u_i, as those of GROUP BY over a column and of no mention of it have, F = W diag(s) U^T for a W with
orthonormal columns. Independent noise of one variance stays that under a rotation, so the rows may as well be
s_i u_i (x) R: what is unknown falls into parts along each u_i that no row ties together. A reconstruction over 1,500
cells becomes fifteen over a hundred, which takes a hundredth of the time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from bursar.arrays import Reals
from bursar.estimation.gaussian_state import GaussianState, settled
from bursar.lazy_dataclass import dataclass

MOST_FACTORS = 8
"""Most masks of a column that are looked at for eigenvectors in common: those of ranges have none."""

ROUNDING = 1e-12
"""What eigenvectors may leave of a matrix beside its diagonal, and what is zero on it, as a share of the largest."""

CLEARLY_POSITIVE = 1e-6
"""An eigenvalue is beyond doubt from this share of the largest on."""


@dataclass(frozen=True, eq=False)
class CommonEigenvectors:
    """Eigenvectors that all masks of one column have in common, and how each mask's rows look along them."""

    ways: Reals  # (ways, classes)
    sizes: Mapping[bytes, Reals]  # of each mask along each way
    turns: Mapping[bytes, Reals]  # (rows of the mask, ways): W, with zeros where the mask says nothing of a way

    @staticmethod
    def of(factors: Mapping[bytes, Reals]) -> CommonEigenvectors | None:
        """None where the masks, over classes, have no eigenvectors in common, or that is in doubt."""
        if len(factors) > MOST_FACTORS:
            return None
        grams = [factor.T @ factor / np.square(factor).sum() for factor in factors.values() if np.any(factor)]
        if len(grams) < len(factors):
            return None
        # Matrices that commute have the eigenvectors of a sum in which no two eigenvalues meet by chance.
        mixed = sum(gram / np.sqrt(2.0 + number) for number, gram in enumerate(grams))
        ways = np.linalg.eigh(mixed)[1].T
        sizes: dict[bytes, Reals] = {}
        turns: dict[bytes, Reals] = {}
        for name, factor in factors.items():
            along = factor @ ways.T
            gram = along.T @ along
            squares = gram.diagonal().copy()
            largest = float(squares.max())
            squares[squares <= ROUNDING * largest] = 0.0
            doubtful = (squares > 0) & (squares < CLEARLY_POSITIVE * largest)
            if np.abs(gram - np.diag(gram.diagonal())).max() > ROUNDING * largest or np.any(doubtful):
                return None
            sizes[name] = np.sqrt(squares)
            turns[name] = np.where(squares > 0, along / np.where(squares > 0, sizes[name], 1.0), 0.0)
        return CommonEigenvectors(ways, sizes, turns)


@dataclass(frozen=True, kw_only=True, eq=False)
class ProductRows:
    """A measurement of a product of masks, one for each column of a reconstruction."""

    factors: tuple[Reals, ...]  # (rows, classes) of each column; a row of the total where the product has no mask
    values: Reals  # with an axis for each column
    variance: float

    def over(self, columns: Sequence[int]) -> Reals:
        """The rows over the joint classes of some columns."""
        return kronecker([self.factors[column] for column in columns])


@dataclass(frozen=True, eq=False)
class TurnedRows:
    """Measurements that have the same masks over the turned columns."""

    sizes: Reals  # of these masks along each direction
    rows: Reals  # over the other columns
    values: Reals  # (directions, rows)
    variances: Reals

    @staticmethod
    def of(
        measured: Sequence[ProductRows], turns: Mapping[int, CommonEigenvectors], others: Sequence[int]
    ) -> TurnedRows:
        factors = measured[0].factors
        sizes = kronecker([turn.sizes[factors[column].tobytes()][None] for column, turn in turns.items()])[0]
        values = [_turned(each, turns, others) for each in measured]
        rows = [each.over(others) for each in measured]
        variances = [np.full(len(some), each.variance) for some, each in zip(rows, measured, strict=True)]
        return TurnedRows(sizes, np.concatenate(rows), np.concatenate(values, axis=1), np.concatenate(variances))


def _turned(measured: ProductRows, turns: Mapping[int, CommonEigenvectors], others: Sequence[int]) -> Reals:
    """The values along each direction of the turned columns: (directions, rows of the others)."""
    values = measured.values
    for column, turn in turns.items():
        along = turn.turns[measured.factors[column].tobytes()]
        values = np.moveaxis(np.tensordot(along, values, (0, column)), 0, column)
    values = values.transpose(*turns, *others)
    return values.reshape(np.prod(values.shape[: len(turns)], dtype=int), -1)


@dataclass(frozen=True, kw_only=True, eq=False)
class StateInParts:
    """What is known along each direction of the turned columns. To look up a query takes a look at each part, and a
    hundredth of the time that all of them take to be put together.
    """

    directions: Reals  # (directions, joint classes of the turned columns), orthonormal
    parts: Mapping[int, GaussianState]  # by the number of the direction, over the other columns
    order: Sequence[int]  # the turned columns, and then the others
    shape: Sequence[int]  # how many classes each column has
    cells: Reals  # how many cells each joint class stands for

    @property
    def rank(self) -> int:
        return sum(state.rank for state in self.parts.values())

    @property
    def bytes(self) -> int:
        """About how much memory it takes once it is put together."""
        return self.cells.itemsize * self.rank * (len(self.cells) + 2 * self.rank)

    def spans(self, queries: Reals) -> bool:
        """Whether every query lies in the span of the measured rows."""
        if self.rank == len(self.cells):
            return True
        left = self._along(queries)
        for number, state in self.parts.items():
            left[:, number] = state.outside(left[:, number])
        sizes = [self.shape[column] for column in self.order]
        turned_back = (self.directions.T @ left).reshape(-1, *sizes).transpose(0, *(1 + np.argsort(self.order)))
        return bool(np.all(settled(queries, turned_back.reshape(queries.shape), self.cells)))

    def variances(self, queries: Reals) -> Reals:
        """Of queries in the span, or else of the part of each that is."""
        along = self._along(queries)
        each = [state.variances(along[:, number]) for number, state in self.parts.items()]
        return np.asarray(sum(each, np.zeros(len(queries))))

    def _along(self, queries: Reals) -> Reals:
        """Queries along each direction: (queries, directions, joint classes of the other columns)."""
        by_column = queries.reshape(len(queries), *self.shape).transpose(0, *(1 + np.array(self.order)))
        return np.asarray(self.directions @ by_column.reshape(len(queries), self.directions.shape[1], -1))

    @cached_property
    def together(self) -> GaussianState:
        """The same over the joint classes of all columns; not to be added to, others may look at it."""
        end, rank, cells = 0, self.rank, self.cells
        basis, estimate = np.empty((rank, len(cells))), np.empty(rank)
        covariance, information = np.zeros((2, rank, rank))
        for number, state in self.parts.items():
            here, end = slice(end, end + state.rank), end + state.rank
            ways = np.eye(state.rank) if state.basis is None else state.basis
            joint = kronecker([self.directions[number][None], ways])
            joint = joint.reshape(state.rank, *(self.shape[column] for column in self.order))
            basis[here] = joint.transpose(0, *(1 + np.argsort(self.order))).reshape(state.rank, len(cells))
            estimate[here] = state.reduced_estimate
            covariance[here, here], information[here, here] = state.reduced_covariance, state.reduced_information
        return GaussianState(basis, estimate, covariance, information, cells)


def solved_apart(measured: Sequence[ProductRows], cells: Sequence[Reals]) -> StateInParts | None:
    """What measured products say together; `cells` are how many each class of each column stands for.

    None where no column can be turned: then there is but one problem, of all of them.
    """
    turns = _turns(measured, [len(some) for some in cells])
    if not turns:
        return None
    others = [column for column in range(len(cells)) if column not in turns]
    groups: dict[tuple[bytes, ...], list[ProductRows]] = defaultdict(list)
    for each in measured:
        groups[tuple(each.factors[column].tobytes() for column in turns)].append(each)
    rows = [TurnedRows.of(group, turns, others) for group in groups.values()]
    directions = kronecker([turn.ways for turn in turns.values()])
    return StateInParts(
        directions=directions,
        parts=_solved_parts(len(directions), rows, kronecker([cells[column][None] for column in others])[0]),
        order=[*turns, *others],
        shape=[len(some) for some in cells],
        cells=kronecker([some[None] for some in cells])[0],
    )


def _turns(measured: Sequence[ProductRows], sizes: Sequence[int]) -> dict[int, CommonEigenvectors]:
    """The columns that can be turned, all but the longest, which is left to be solved in each part."""
    turns: dict[int, CommonEigenvectors] = {}
    for column in sorted(range(len(sizes)), key=sizes.__getitem__)[:-1]:
        turn = CommonEigenvectors.of({each.factors[column].tobytes(): each.factors[column] for each in measured})
        if turn is not None and sizes[column] > 1:
            turns[column] = turn
    return turns


def _solved_parts(directions: int, measured: Sequence[TurnedRows], cells: Reals) -> dict[int, GaussianState]:
    """What is known along each direction of the turned columns, by its number; `cells` are those of the other columns.

    Where the sizes are those of a direction before, what is known differs in its values alone.
    """
    parts: dict[int, GaussianState] = {}
    solved: dict[tuple[str, ...], tuple[GaussianState, Reals]] = {}
    for number in range(directions):
        heard = [some for some in measured if some.sizes[number] > 0]
        if not heard:
            continue
        values = np.concatenate([some.values[number] for some in heard])
        variances = np.concatenate([some.variances for some in heard])
        sizes = tuple(f"{some.sizes[number]:.12g}" for some in measured)
        if sizes not in solved:
            rows = np.concatenate([some.sizes[number] * some.rows for some in heard])
            state = GaussianState.empty(cells)
            state.take_all(rows, values, variances)
            solved[sizes] = state, state.reduced(rows)
            parts[number] = state
        else:
            state, rows = solved[sizes]
            parts[number] = state.hearing((values / variances) @ rows)
    return parts


def kronecker(factors: Sequence[Reals]) -> Reals:
    """The product of matrices, the last one running fastest."""
    product = np.ones((1, 1))
    for factor in factors:
        shape = (len(product) * len(factor), product.shape[1] * factor.shape[1])
        product = (product[:, None, :, None] * factor[None, :, None, :]).reshape(shape)
    return product
