"""Marginals in any dimension by the residual basis: the constant and the residual of every column.

A marginal over columns A is a sum over S <= A of parts that look at the residuals of the columns of S and at the sum
over all others (Xiao et al., ResidualPlanner). Each S is measured by one product of whole-number rows per column with
noise of its own variance; the parts are independent, so any marginal and its variance follow on demand, and neither
planning nor reconstruction ever sees the full domain.

ResidualPlanner measures differences with correlated noise. Here the rows of a column of n values are n e_i - 1, for
which sum_i (n e_i - 1)(n e_i - 1)^T = n^2 (1 - J/n) exactly: independent noise does the same, in whole numbers and at
no loss, for one row more than the residual has dimensions.

With Laplace noise tables are measured themselves (`laplace_marginals`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse

from bursar.arrays import Integers, Reals
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import QueryError
from bursar.strategies.cells import MergedCells
from bursar.strategies.largest_error import QueryWeights, error_at
from bursar.strategies.optimal import integer_optimum

Set = tuple[int, ...]

MOST_PAIRS = 2**24
"""Most pairs of a marginal and one of its parts."""

NORM_BITS = 58
MOST_STEPS = 2000
MOST_STEPS_OF_QUERIES = 60
"""Steps of weighing every query by itself."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualColumn:
    """What is asked about one column wherever it is asked about, and the rows that measure its residual.

    W x = W (1 - J/n) x + (W 1/n) (1^T x): the first part comes from the rows H, as W (1 - J/n) H^+, the second from the
    sum over the column.
    """

    mask: Mask  # H
    norm: int  # the largest squared length of a column of H
    residual: float  # tr(W (1 - J/n) (H^T H)^+ (1 - J/n) W^T), 0 where there is no residual
    mean: float  # |W 1/n|^2
    queries: int  # rows of W
    weights: Reals | None  # W (1 - J/n) H^+; None where every value is asked for
    shares: Reals  # W 1/n

    def lift(self, table: Reals, axis: int) -> Reals:
        """Measured rows of H along an axis become the residual part of the queries."""
        if self.weights is None:
            n = self.queries
            lifted: Reals = (table - table.mean(axis=axis, keepdims=True)) / n
            return lifted
        return np.moveaxis(np.tensordot(self.weights, table, (1, axis)), 0, axis)


def every_value(name: str, size: int) -> ResidualColumn:
    """All values of a column, as in a marginal."""
    two = size == 2
    norm, length = (1, 2.0) if two else (size * (size - 1), float(size * size))  # H^T H = length (1 - J/n)
    return ResidualColumn(
        mask=Mask((name,), (size,), Steps.dense([[1, -1]]) if two else _centred(size)),
        norm=norm,
        residual=(size - 1) / length,
        mean=1 / size,
        queries=size,
        weights=np.array([[0.5], [-0.5]]) if two else None,
        shares=np.full(size, 1 / size),
    )


def some_queries(cells: MergedCells, queries: Reals, *, bits: int, gap: float = 1e-3) -> ResidualColumn:
    """Any queries about a column, given over its merged cells: the optimum for their residual, in whole numbers.

    Merged cells stand for their sums, and the residual is what is left of these after a share of 1/n of the total.
    Cells that no query looks at count in the total, so they are a merged cell like others.
    Edge cases: queries that tell no two cells apart have no residual, and no part measures one.
    """
    cells, queries = _with_unused(cells, queries)
    shares = queries.mean(axis=1)
    left = queries - shares[:, None]
    V = left.T @ left
    flat = float(np.abs(V).max(initial=0.0)) <= 1e-12 * float(np.square(queries).max(initial=0.0))
    rows = np.zeros((1, cells.count), np.int64) if flat else integer_optimum(V, gap=gap, bits=bits).rows
    weights = left @ np.linalg.pinv(rows.astype(np.float64))
    return ResidualColumn(
        mask=cells.mask(rows),
        norm=int(np.square(rows).sum(axis=0).max()),
        residual=0.0 if flat else float(np.square(weights).sum()),
        mean=float(np.square(shares).sum()),
        queries=len(queries),
        weights=weights,
        shares=shares,
    )


def _with_unused(cells: MergedCells, queries: Reals) -> tuple[MergedCells, Reals]:
    unused = cells.groups < 0
    if not unused.any():
        return cells, queries
    groups = np.where(unused, cells.count, cells.groups)
    return replace(cells, groups=groups, count=cells.count + 1), np.pad(queries, ((0, 0), (0, 1)))


def _centred(size: int) -> Steps:
    """Rows n e_i - 1, with three jumps each."""
    i = np.arange(size)
    at = np.stack([np.zeros(size, np.int64), i, i + 1], axis=1)
    jump = np.tile(np.array([-1, size, -size], np.int64), (size, 1))
    if size == 1:
        return Steps.dense(np.zeros((1, 1), np.int64))
    at[0], jump[0] = (0, 1, size), (size - 1, -size, 0)
    keep = (at < size) & (jump != 0)
    starts = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    return Steps(size, starts, at[keep], jump[keep])


@dataclass(frozen=True, kw_only=True, eq=False)
class Residuals:
    """The parts of a set of marginals, before it is decided how much noise each gets.

    coefficients[A, S] is the sum over the queries of marginal A of their variances, per variance of part S.
    """

    columns: tuple[ResidualColumn, ...]
    marginals: tuple[Set, ...]
    parts: tuple[Set, ...]
    prices: Reals  # p_S: the squared sensitivity of part S
    coefficients: scipy.sparse.csr_array

    @cached_property
    def queries(self) -> Reals:
        """How many queries each marginal has."""
        return np.array([math.prod(self.columns[i].queries for i in A) for A in self.marginals], np.float64)

    def least_total(self, weights: Sequence[float] | Reals | None = None) -> ResidualPlan:
        """The least sum of variances over all queries, each marginal's counted `weights` times.

        sigma_S^2 = T sqrt(p_S / v_S), T = sum_S sqrt(p_S v_S), at sum_S p_S / sigma_S^2 = 1; the sum is T^2. For plain
        marginals that is the singular value bound, so no strategy does better.
        """
        w = np.ones(len(self.marginals)) if weights is None else np.asarray(weights, np.float64)
        if w.shape != (len(self.marginals),) or not np.all(np.isfinite(w) & (w > 0)):
            raise QueryError("every marginal has one weight above zero")
        v, T = self._closed_form(w)
        return ResidualPlan(residuals=self, noise=_noise(self.prices, v, T), gap=0.0)

    def least_largest(self, gap: float = 1e-3) -> ResidualPlan:
        """The least largest variance of a query, where marginals' queries have equal variances, to a relative gap.

        Every weighting of the marginals gives a bound, T^2 of the weighted mean, and a plan; weights move to the
        marginals whose variance is largest (multiplicative weights).
        """
        w = np.full(len(self.marginals), 1 / len(self.marginals))
        best: ResidualPlan | None = None
        least, bound, rate = math.inf, 0.0, 1.0
        for _ in range(MOST_STEPS):
            v, T = self._closed_form(w / self.queries)
            noise = _noise(self.prices, v, T)
            each = (self.coefficients @ noise) / self.queries
            bound, largest = max(bound, T * T), float(each.max())
            if largest < least:
                least, best = largest, ResidualPlan(residuals=self, noise=noise, gap=0.0)
            elif largest > least * 1.01:
                rate = max(rate / 2, 0.1)
            if least <= (1 + gap) * bound:
                break
            w = w * (each / largest) ** rate
            w = np.maximum(w / w.sum(), 1e-300)
        assert best is not None
        return ResidualPlan(residuals=self, noise=best.noise, gap=least / bound - 1)

    def least_largest_error(self, beta: float, gap: float = 1e-3) -> ResidualPlan:
        """The least largest error of a query but for a chance of beta, to a relative gap of its square.

        The variance of a query is linear in the noise of the parts, and for each weighting of queries the least mean is
        known in closed form, T^2: a bound for all plans over these parts. For plain marginals, whose queries are alike
        and so are their weights, it is a bound for all strategies.
        """
        each = self._variances_by_part()
        weights = QueryWeights.even(each, beta)
        least, bound, noise = math.inf, 0.0, np.ones(len(self.parts))
        for _ in range(MOST_STEPS_OF_QUERIES):
            v = each.T @ weights.shares
            T = float(np.sqrt(self.prices * v).sum())
            tried = _noise(self.prices, v, T)
            variances = each @ tried
            error = error_at(variances, beta)
            if error < least:
                least, noise = error, tried
            bound = max(bound, weights.least_error(T * T))
            if least**2 <= (1 + gap) * bound**2:
                break
            weights.move(variances, error)
        return ResidualPlan(residuals=self, noise=noise, gap=(least / bound) ** 2 - 1)

    def _variances_by_part(self) -> Reals:
        """The variance of every query of every marginal, one below the other, per variance of each part."""
        numbers = {part: number for number, part in enumerate(self.parts)}
        blocks = []
        for A in self.marginals:
            block = np.zeros((math.prod(self.columns[i].queries for i in A), len(self.parts)))
            for S in _subsets(A):
                if S in numbers:
                    block[:, numbers[S]] = _part_variances(self.columns, A, S)
            blocks.append(block)
        return np.concatenate(blocks)

    def _closed_form(self, weights: Reals) -> tuple[Reals, float]:
        v = np.asarray(self.coefficients.T @ weights)
        return v, float(np.sqrt(self.prices * v).sum())


def _noise(prices: Reals, v: Reals, T: float) -> Reals:
    noise: Reals = T * np.sqrt(prices / v)
    return noise


@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualPlan:
    """How much noise every part gets, at a total sensitivity of one.

    Guarantees: the parts' squared sensitivities over their variances sum to one, in exact norms of the rows measured.
    """

    residuals: Residuals
    noise: Reals  # the variance of each part
    gap: float  # how far above the least the objective can be, relatively

    @cached_property
    def numbers(self) -> dict[Set, int]:
        return {part: number for number, part in enumerate(self.residuals.parts)}

    @cached_property
    def totals(self) -> Reals:
        """The sum over each marginal's queries of their variances."""
        return np.asarray(self.residuals.coefficients @ self.noise)

    def product(self, number: int) -> Product:
        """The map that measures a part."""
        return Product(tuple(self.residuals.columns[i].mask for i in self.residuals.parts[number]))

    def variances(self, marginal: Set) -> Reals:
        """The variance of every query of a marginal, the last column running fastest."""
        result = np.zeros(math.prod(self.residuals.columns[i].queries for i in marginal))
        for S in _subsets(marginal):
            if S in self.numbers:
                result += self.noise[self.numbers[S]] * _part_variances(self.residuals.columns, marginal, S)
        return result

    def estimate(self, marginal: Set, values: Mapping[Set, Reals | Integers]) -> Reals:
        """The answers of a marginal (any subset of a planned one) from the measured parts."""
        columns = self.residuals.columns
        result = np.zeros([columns[i].queries for i in marginal])
        for S in _subsets(marginal):
            if S in self.numbers:
                table = np.asarray(values[S], np.float64).reshape([columns[i].mask.rows for i in S])
                for axis, i in enumerate(S):
                    table = columns[i].lift(table, axis)
                for axis, i in enumerate(marginal):
                    if i not in S:
                        shape = [-1 if a == axis else 1 for a in range(table.ndim + 1)]
                        table = np.expand_dims(table, axis) * columns[i].shares.reshape(shape)
                result = result + table
        return result.ravel()


def residuals(columns: Sequence[ResidualColumn], marginals: Sequence[Sequence[int]]) -> Residuals:
    """All parts of the given marginals (sets of column numbers, each in increasing order), found once each."""
    sets = tuple(tuple(A) for A in marginals)
    if any(sorted(set(A)) != list(A) or (A and not 0 <= A[0] <= A[-1] < len(columns)) for A in sets):
        raise QueryError("a marginal is an increasing list of columns that are there")
    if sum(2 ** len(A) for A in sets) > MOST_PAIRS:
        raise QueryError(f"these marginals have more than {MOST_PAIRS} parts together")
    factors = np.array([(c.norm, c.residual, c.mean) for c in columns]).reshape(-1, 3)
    owners: list[Integers] = []
    amounts: list[Reals] = []
    keys: list[Integers] = []
    width = max((len(A) for A in sets), default=0)
    for arity in sorted({len(A) for A in sets}):
        which = np.array([number for number, A in enumerate(sets) if len(A) == arity], np.int64)
        members = np.array([sets[number] for number in which], np.int64).reshape(len(which), arity)
        for pattern in range(2**arity):
            inside = np.array([bool(pattern >> place & 1) for place in range(arity)], bool)
            products = np.where(inside, factors[members, 1], factors[members, 2]).prod(axis=1)
            chosen = np.full((len(which), width), -1, np.int64)
            chosen[:, : inside.sum()] = members[:, inside]
            owners.append(which)
            amounts.append(products)
            keys.append(chosen)
    parts, number = _numbered(np.concatenate(keys), len(columns))
    amount = np.concatenate(amounts)
    owner = np.concatenate(owners)
    listed = tuple(tuple(i for i in row if i >= 0) for row in parts.tolist())
    real = np.array([all(columns[i].residual > 0 for i in S) for S in listed], bool)
    place = np.cumsum(real) - 1
    keep = real[number]
    shape = (len(sets), int(real.sum()))
    matrix = scipy.sparse.coo_array((amount[keep], (owner[keep], place[number[keep]])), shape=shape)
    measured = tuple(S for S, is_real in zip(listed, real, strict=True) if is_real)
    prices = np.append(factors[:, 0], 1.0)[parts[real]].prod(axis=1)
    if prices.max(initial=1.0) > 2.0**NORM_BITS:
        raise QueryError("these columns have too many values together")
    return Residuals(columns=tuple(columns), marginals=sets, parts=measured, prices=prices, coefficients=matrix.tocsr())


def _numbered(keys: Integers, columns: int) -> tuple[Integers, Integers]:
    """Distinct rows, and which of them each row is; rows are packed into as few 64-bit words as they need."""
    base = columns + 1
    per_word = max(int(62 / math.log2(base + 1)), 1)
    words = []
    for low in range(0, max(keys.shape[1], 1), per_word):
        word = np.zeros(len(keys), np.int64)
        for digit in keys[:, low : low + per_word].T:
            word = word * base + digit + 1
        words.append(word)
    if len(words) == 1:
        _, first, number = np.unique(words[0], return_index=True, return_inverse=True)
    else:
        _, first, number = np.unique(np.stack(words, axis=1), axis=0, return_index=True, return_inverse=True)
    return keys[first], number.ravel()


def _subsets(members: Set) -> list[Set]:
    chosen = range(2 ** len(members))
    return [tuple(i for place, i in enumerate(members) if bits >> place & 1) for bits in chosen]


def _part_variances(columns: Sequence[ResidualColumn], marginal: Set, part: Set) -> Reals:
    """What one part adds to the variance of every query of a marginal, at noise of variance one."""
    result = np.ones(1)
    for i in marginal:
        of_column = _own_variance(columns[i]) if i in part else np.square(columns[i].shares)
        result = np.multiply.outer(result, of_column).ravel()
    return result


def _own_variance(column: ResidualColumn) -> Reals:
    """The variance of each query's residual part at noise of variance one."""
    if column.weights is None:
        return np.full(column.queries, column.residual / column.queries)
    variances: Reals = np.square(column.weights).sum(axis=1)
    return variances


COVERED_SETS = 2000
"""Most marginals among which larger ones are sought to answer smaller ones."""

LARGEST_TABLE = 2**20
"""Most cells of a table that nobody asked for."""

MOST_JOINED = 12
"""Most tables of which pairs are tried as one: each pair takes a search of a millisecond or two."""

TABLE_STEPS, TABLE_GAP = 200, 1e-5
"""Most steps of the search for scales, and the relative gain below which it ends."""

NEGLIGIBLE_TABLE = 1e-3
"""A table with less than this share of another's budget is not measured: larger ones tell what it does."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredTables:
    """Tables, their scales at sum 1/b = 1, and least squares over all of them.

    The cells of a table have independent noise of one variance, so its projections onto the residuals of different sets
    of columns are independent: least squares weighs, for each set S by itself, the tables B that have the columns of S,
    each by its precision there, 1 / (b^2 times the number of cells of B for one of S).
    """

    sizes: tuple[int, ...]
    marginals: tuple[Set, ...]
    tables: tuple[Set, ...]
    scales: Reals

    def variance(self, marginal: int) -> float:
        """Of each count of a marginal, over the variance of a draw of scale one: the sum of its residuals' parts."""
        members = self.marginals[marginal]
        cells = _cells(self.sizes, members)
        parts = [
            math.prod(self.sizes[i] - 1 for i in S) / (self._precisions[S] * (cells / _cells(self.sizes, S)))
            for S in _subsets(members)
        ]
        return sum(parts) / cells

    def parts(self, values: Sequence[Reals | Integers]) -> dict[Set, Reals]:
        """What all tables say about the counts over each set of columns, of which only the residual will be used."""
        said: dict[Set, Reals] = {}
        for table, scale, numbers in zip(self.tables, self.scales.tolist(), values, strict=True):
            grid = np.asarray(numbers, np.float64).reshape([self.sizes[i] for i in table])
            for S in _subsets(table):
                counts = grid.sum(axis=tuple(axis for axis, i in enumerate(table) if i not in S))
                weight = 1 / (scale**2 * (grid.size / counts.size) * self._precisions[S])
                said[S] = said.get(S, 0.0) + weight * counts
        return said

    def estimate(self, marginal: int, parts: Mapping[Set, Reals]) -> Reals:
        """The counts of a marginal from the `parts` of the measured values."""
        members = self.marginals[marginal]
        result = np.zeros([self.sizes[i] for i in members])
        for S in _subsets(members):
            part = parts[S]
            for axis in range(part.ndim):
                part = part - part.mean(axis=axis, keepdims=True)
            spread = part.reshape([self.sizes[i] if i in S else 1 for i in members])
            result += spread * (part.size / result.size)
        return result.ravel()

    def total(self) -> float:
        """The sum of the variances of all counts, over that of a draw of scale one."""
        cells = [_cells(self.sizes, A) for A in self.marginals]
        return sum(count * self.variance(number) for number, count in enumerate(cells))

    @cached_property
    def _precisions(self) -> dict[Set, float]:
        precisions: dict[Set, float] = {}
        for table, scale in zip(self.tables, self.scales.tolist(), strict=True):
            for S in _subsets(table):
                more = 1 / (scale**2 * (_cells(self.sizes, table) / _cells(self.sizes, S)))
                precisions[S] = precisions.get(S, 0.0) + more
        return precisions


def _cells(sizes: Sequence[int], members: Set) -> int:
    return math.prod(sizes[i] for i in members)


def laplace_marginals(sizes: Sequence[int], marginals: Sequence[Set]) -> MeasuredTables:
    """Tables to measure for marginals, with the least sum of all counts' variances that is found.

    Every row of data falls into one cell of each table, so tables with scales b_B cost sum 1/b_B. The search begins
    with all marginals, with those that are contained in no other, and with the one table of all columns, and goes on
    by joining two tables or leaving one out.

    Guarantees: no worse than counting every cell, where these are few enough to count.
    """
    search = _TableSearch(tuple(sizes), tuple(marginals))
    listed = tuple(dict.fromkeys(marginals))
    choices = [search.best(listed)]
    if len(listed) <= COVERED_SETS:
        largest = tuple(A for A in listed if not any(set(A) < set(B) for B in listed))
        choices += [search.best(largest)] if len(largest) < len(listed) else []
    every = tuple(sorted({i for A in listed for i in A}))
    if _cells(sizes, every) <= LARGEST_TABLE:
        choices.append(search.best((every,)))
    _, tables, u = min((search.improved(*choice) for choice in choices), key=lambda choice: choice[0])
    return MeasuredTables(sizes=search.sizes, marginals=search.marginals, tables=tables, scales=1 / u)


Choice = tuple[float, tuple[Set, ...], Reals]
"""The sum of variances, the tables, and one over the scale of each."""


class _TableSearch:
    """Scales for given tables: the sum of variances is sum_S c_S / p_S over the residual sets S of the marginals.

    With u_B = 1/b_B, p_S = sum over B with S <= B of u_B^2 / n_(B - S), and c_S = sum over A with S <= A of
    prod_S (n_i - 1) / n_(A - S).
    """

    def __init__(self, sizes: tuple[int, ...], marginals: tuple[Set, ...]) -> None:
        self.sizes, self.marginals = sizes, marginals
        self.amounts: dict[Set, float] = {}
        for A in marginals:
            for S in _subsets(A):
                share = math.prod(sizes[i] - 1 for i in S) / (_cells(sizes, A) / _cells(sizes, S))
                self.amounts[S] = self.amounts.get(S, 0.0) + share
        self.place = {S: number for number, S in enumerate(self.amounts)}
        self.tried: dict[tuple[Set, ...], Choice] = {}

    def best(self, tables: tuple[Set, ...]) -> Choice:
        """The scales with the least sum of variances that is found for the tables, or for those that are worth it.

        At the least sum u_B g_B is the same for all tables, g_B = sum_S c_S / (p_S^2 n_(B - S)). For tables with no set
        in common that is u_B^-3 times a constant, so u_B (u_B g_B)^(1/3) is the solution; for others it is a step.
        """
        tables = tuple(sorted(set(tables)))
        if tables not in self.tried:
            chosen, (least, u) = tables, self._scales(tables, np.ones(len(tables)))
            worthwhile = u > NEGLIGIBLE_TABLE * u.max()
            if not worthwhile.all():
                chosen = tuple(itertools.compress(tables, worthwhile))
                least, u = self._scales(chosen, u[worthwhile])
            self.tried[tables] = least, chosen, u
        return self.tried[tables]

    def _scales(self, tables: tuple[Set, ...], start: Reals) -> tuple[float, Reals]:
        shares, amounts = self._shares(tables), np.array(list(self.amounts.values()))
        u = start / start.sum()
        least, best = math.inf, u
        for _ in range(TABLE_STEPS):
            precisions = np.asarray(shares.T @ np.square(u))
            total = float((amounts / precisions).sum())
            if total >= least * (1 - TABLE_GAP):
                break
            least, best = total, u
            u = u * np.cbrt(u * (shares @ (amounts / np.square(precisions))))
            u = u / u.sum()
        return least, best

    def improved(self, least: float, tables: tuple[Set, ...], u: Reals) -> Choice:
        """The best that joining two tables into one, or leaving one out, leads to."""
        while 1 < len(tables) <= MOST_JOINED:
            options = [
                tuple(sorted({*(C for C in tables if C not in gone), *new}))
                for A, B in itertools.combinations(tables, 2)
                for joined in [tuple(sorted({*A, *B}))]
                if _cells(self.sizes, joined) <= LARGEST_TABLE
                for gone, new in [((A, B), (joined,)), ((), (joined,)), ((A,), (joined,)), ((B,), (joined,))]
            ]
            options += [tuple(C for C in tables if C != A) for A in tables]
            better = min((self.best(option) for option in options if self._cover(option)), key=lambda each: each[0])
            if better[0] >= least * (1 - TABLE_GAP):
                break
            least, tables, u = better
        return least, tables, u

    def _cover(self, tables: tuple[Set, ...]) -> bool:
        return all(any(set(A) <= set(B) for B in tables) for A in self.marginals)

    def _shares(self, tables: tuple[Set, ...]) -> scipy.sparse.csr_array:
        """1 / n_(B - S) for each table and each residual set that it has."""
        entries = [
            (number, self.place[S], _cells(self.sizes, S) / _cells(self.sizes, table))
            for number, table in enumerate(tables)
            for S in _subsets(table)
            if S in self.place
        ]
        rows, places, shares = zip(*entries, strict=True)
        return scipy.sparse.csr_array((shares, (rows, places)), shape=(len(tables), len(self.place)))
