"""Histograms that learn by multiplicative weights (Boost, Algorithm 1, UPDATE), and products of them.

A query q with values in [0, 1] is answered by q . h, and learnt from by h(v) <- h(v) e^(s q(v)), then h <- h / sum h.
Weights are kept without the division and their sum beside them, so both touch the bins of the query and no others.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import product as combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Codes
from bursar.core.domain import Domain
from bursar.core.queries import Mask, Product
from bursar.lazy_dataclass import dataclass

Names = tuple[str, ...]
Shape = tuple[int, ...]
Weights = NDArray[np.float32]
Index = slice | NDArray[np.intp]
Scalar = TypeVar("Scalar", bound=np.generic)

MOST_BINS = 2**22
"""Most bins of one histogram: 48 MB at worst."""

LEAST_WEIGHT = np.float32(2.0**-100)
"""No weight falls below this, where a uniform histogram has 1: a bin that was pushed down can always come back."""

UPDATES_BETWEEN_REFRESHES = 4096
"""After this many updates weights are divided by their mean and summed afresh, so that rounding cannot pile up."""

LARGEST_MEAN = 2.0**20
"""The same is done at once where the mean weight leaves 1/this .. this."""

REMEMBERED_QUERIES, REMEMBERED_BINS = 2**16, 2**23
"""How many queries a grid remembers the bins of, and how many bins that are listed one by one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryBins:
    """Where a query is not zero on a grid, and its values there, divided by the largest."""

    index: tuple[Index, ...]  # one slice or list of cells per column; or one list of bins, numbered through
    listed: bool  # whether it is the latter
    values: Weights | None  # None where they are all 1
    even: float  # the answer of a uniform histogram
    largest: int = 1  # what the values were divided by

    def of(self, grid: NDArray[Scalar]) -> NDArray[Scalar]:
        """What an array over the grid holds there; a view of it if the bins are slices."""
        values: NDArray[Scalar] = (grid.reshape(-1) if self.listed else grid)[self.index]
        return values

    def put(self, grid: NDArray[Scalar], new: NDArray[Scalar]) -> None:
        (grid.reshape(-1) if self.listed else grid)[self.index] = new

    @property
    def remembered(self) -> int:
        """How many numbers are kept for it."""
        lists = sum(axis.size for axis in self.index if not isinstance(axis, slice))
        return lists + (0 if self.values is None else self.values.size)


@dataclass(eq=False)
class Histogram:
    """A distribution over a grid of bins. Nothing is allocated before the first update: it is uniform until then.

    Guarantees: a function of the sequence of updates alone; an estimate lies in [0, 1].
    Differs: weights are single floats and have a least value, so after k updates of a bin its share is right to about
    k parts in 10^7; updates are counted per bin, as the readiness heuristic needs it (Boost, Fig. 2, variable C).
    """

    shape: Shape
    weights: Weights | None = None
    total: float = 0.0
    updates: Codes | None = None
    thresholds: Codes | None = None  # of readiness; 0 where a bin's was never raised
    steps: int = 0

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return sum(0 if array is None else array.nbytes for array in (self.weights, self.updates, self.thresholds))

    def estimate(self, bins: QueryBins) -> float:
        """q . h."""
        if self.weights is None:
            return bins.even
        weights = bins.of(self.weights)
        weighted = weights if bins.values is None else weights * bins.values
        return min(1.0, float(weighted.sum(dtype=np.float64)) / self.total)

    def update(self, bins: QueryBins, step: float) -> None:
        """h(v) <- h(v) e^(step q(v)), normalised (Algorithm 1, lines 3 and 4)."""
        if self.weights is None or self.updates is None:
            self.weights, self.total = np.ones(self.shape, np.float32), float(self.size)
            self.updates = np.zeros(self.shape, np.int32)
        weights = bins.of(self.weights)
        before = float(weights.sum(dtype=np.float64))
        new = weights * (np.float32(math.exp(step)) if bins.values is None else np.exp(np.float32(step) * bins.values))
        np.maximum(new, LEAST_WEIGHT, out=new)
        self.total += float(new.sum(dtype=np.float64)) - before
        bins.put(self.weights, new)
        bins.put(self.updates, bins.of(self.updates) + np.int32(1))
        self.steps += 1
        if (
            self.steps % UPDATES_BETWEEN_REFRESHES == 0
            or not 1 / LARGEST_MEAN <= self.total / self.size <= LARGEST_MEAN
        ):
            self._refresh(self.weights)

    def least_updates(self, bins: QueryBins) -> int:
        """How often the bin of the query that was updated least was updated."""
        return 0 if self.updates is None else int(bins.of(self.updates).min(initial=np.iinfo(np.int32).max))

    def distribution(self) -> NDArray[np.float64]:
        """h itself, normalised."""
        if self.weights is None:
            return np.full(self.shape, 1 / self.size)
        whole = self.weights.astype(np.float64)
        return np.asarray(whole / whole.sum())

    def copy(self) -> Histogram:
        """A warm start from a trained histogram, which goes on by itself (Boost, section 4.4)."""
        return replace(
            self, weights=_copy(self.weights), updates=_copy(self.updates), thresholds=_copy(self.thresholds)
        )

    @staticmethod
    def average(children: Sequence[Histogram]) -> Histogram:
        """A warm start of an inner node: the average of distributions, of updates and of thresholds, per bin."""
        shape, count = children[0].shape, len(children)
        average = Histogram(shape)
        if all(child.weights is None for child in children):
            return average
        mean = sum((child.distribution() for child in children), np.zeros(shape)) * (average.size / count)
        average.weights = np.maximum(mean.astype(np.float32), LEAST_WEIGHT)
        average.total = float(average.weights.sum(dtype=np.float64))
        average.updates = _mean(shape, [child.updates for child in children])
        if any(child.thresholds is not None for child in children):
            average.thresholds = _mean(shape, [child.thresholds for child in children])
        average.steps = sum(child.steps for child in children) // count
        return average

    def _refresh(self, weights: Weights) -> None:
        weights *= np.float32(self.size / self.total)
        np.maximum(weights, LEAST_WEIGHT, out=weights)
        self.total = float(weights.sum(dtype=np.float64))


def _copy(array: NDArray[Scalar] | None) -> NDArray[Scalar] | None:
    return None if array is None else array.copy()


def _mean(shape: Shape, arrays: Sequence[Codes | None]) -> Codes:
    whole = np.zeros(shape, np.int64)
    for array in arrays:
        if array is not None:
            whole += array
    return (whole // len(arrays)).astype(np.int32)


@dataclass(frozen=True, eq=False)
class _AlongColumn:
    """One row of a mask along its column: where it is not zero, and its values there, divided by the largest."""

    axis: int
    cells: Index
    values: Weights | None  # None where they are all 1
    even: float
    largest: int


@dataclass(eq=False)
class HistogramGrid:
    """The joint cells of some columns, and the bins of queries about them, which are found once."""

    names: Names
    shape: Shape
    cached: OrderedDict[str, list[QueryBins]] = field(default_factory=OrderedDict, repr=False)  # of rows of products
    queries: int = 0  # that are remembered
    listed: int = 0  # bins that are remembered one by one

    def bins(self, query: Product) -> QueryBins:
        """The bins of a query of one row, all of whose columns are the grid's and no value of which is negative."""
        (bins,) = self.bins_of_rows(query)
        return bins

    def bins_of_rows(self, product: Product) -> list[QueryBins]:
        """The same of every row of a product; of a row with negative values they are of no use."""
        known = self.cached.get(product.digest)
        if known is not None:
            self.cached.move_to_end(product.digest)
            return known
        rows = self.cached[product.digest] = self._bins_of_rows(product)
        self._remember(rows, 1)
        while len(self.cached) > 1 and (self.queries > REMEMBERED_QUERIES or self.listed > REMEMBERED_BINS):
            self._remember(self.cached.popitem(last=False)[1], -1)
        return rows

    def _remember(self, rows: Sequence[QueryBins], times: int) -> None:
        self.queries += times * len(rows)
        self.listed += times * sum(bins.remembered for bins in rows)

    def _bins_of_rows(self, product: Product) -> list[QueryBins]:
        if any(len(mask.attrs) > 1 for mask in product.masks):
            return [self._joint(product.row(row).masks) for row in range(product.rows)]
        along = [[self._along(mask, row) for row in range(mask.rows)] for mask in product.masks]
        return [self._crossed(row) for row in combinations(*along)]

    def _along(self, mask: Mask, row: int) -> _AlongColumn:
        values, largest = _values(mask, row)
        cells = np.flatnonzero(values)
        nonzero = values[cells]
        axis, some = self.names.index(mask.attrs[0]), len(nonzero) and nonzero.min() < 1
        shape = [-1 if place == axis else 1 for place in range(len(self.names))]
        even = float(nonzero.sum()) / len(values)
        return _AlongColumn(axis, _slice(cells), nonzero.reshape(shape) if some else None, even, largest)

    def _crossed(self, row: Sequence[_AlongColumn]) -> QueryBins:
        index: list[Index] = [slice(None)] * len(self.names)
        values: Weights | None = None
        even, largest = 1.0, 1
        for along in row:
            index[along.axis], even, largest = along.cells, even * along.even, largest * along.largest
            if along.values is not None:
                values = along.values if values is None else values * along.values
        if not all(isinstance(cells_of_axis, slice) for cells_of_axis in index):
            lists = [
                np.arange(size)[cells_of_axis] if isinstance(cells_of_axis, slice) else cells_of_axis
                for cells_of_axis, size in zip(index, self.shape, strict=True)
            ]
            index = list(np.ix_(*lists))
        return QueryBins(index=tuple(index), listed=False, values=values, even=even, largest=largest)

    def _joint(self, masks: Sequence[Mask]) -> QueryBins:
        """For conditions that do not fall apart into columns: every bin, one by one."""
        whole, largest = np.ones(self.shape, np.float32), 1
        for mask in masks:
            places = [self.names.index(name) for name in mask.attrs]
            row, most = _values(mask, 0)
            table = row.reshape(mask.sizes).transpose(np.argsort(places))
            whole *= table.reshape([size if place in places else 1 for place, size in enumerate(self.shape)])
            largest *= most
        cells = np.flatnonzero(whole)
        values = whole.reshape(-1)[cells]
        even = float(values.sum(dtype=np.float64)) / whole.size
        ones = bool(values.min(initial=1) == 1)
        return QueryBins(index=(cells,), listed=True, values=None if ones else values, even=even, largest=largest)


def _values(mask: Mask, row: int) -> tuple[Weights, int]:
    """A row of a mask over all its cells, divided by its largest value; and that."""
    steps = mask.steps
    here = slice(int(steps.starts[row]), int(steps.starts[row + 1]))
    at, levels = steps.at[here], steps.levels[here]
    values, largest = np.zeros(steps.size, np.float32), int(np.abs(levels).max(initial=0))
    if len(at):
        values[at[0] :] = np.repeat(levels / largest, np.diff(at, append=steps.size))
    return values, largest


def _slice(cells: NDArray[np.intp]) -> Index:
    """Cells at equal distances as a slice; others as they are."""
    if len(cells) <= 1:
        return slice(int(cells[0]), int(cells[0]) + 1) if len(cells) else slice(0, 0)
    step = int(cells[1] - cells[0])
    if int(cells[-1] - cells[0]) == step * (len(cells) - 1) and np.all(np.diff(cells) == step):
        return slice(int(cells[0]), int(cells[-1]) + 1, step)
    return cells


Grids = dict[Names, HistogramGrid]
"""Where the bins of queries are found, per group of columns: the same for all histograms over one domain."""


class HistogramFactor:
    """The histogram of one group of columns."""

    def __init__(self, names: Names, histogram: Histogram, grid: HistogramGrid | None = None) -> None:
        self.names, self.histogram = names, histogram
        self._grid = HistogramGrid(names, histogram.shape) if grid is None else grid

    def bins(self, query: Product) -> QueryBins:
        return self._grid.bins(query)

    def bins_of_rows(self, product: Product) -> list[QueryBins]:
        return self._grid.bins_of_rows(product)


class Factored:
    """A distribution over all columns as a product of histograms, one for each group of columns asked about together.

    While no question spans two groups this is exactly the histogram over all columns at once: multiplicative weights on
    one factor leave a product a product. A question that spans them joins them, by the outer product, exactly too.
    Groups follow from what was learnt, in its order; a column that was never asked about is a group by itself.

    Differs: each group counts its own updates, where one histogram over all columns would add up those of all groups.
    """

    def __init__(self, domain: Domain, most_bins: int = MOST_BINS, grids: Grids | None = None) -> None:
        self._domain, self._most = domain, most_bins
        self._grids: Grids = {} if grids is None else grids
        self._of = {name: self._factor((name,), Histogram(domain.sizes((name,)))) for name in domain.names}

    @property
    def groups(self) -> list[Names]:
        return list(dict.fromkeys(factor.names for factor in self._of.values()))

    @property
    def bytes(self) -> int:
        return sum(factor.histogram.bytes for factor in {id(factor): factor for factor in self._of.values()}.values())

    def group(self, columns: Iterable[str]) -> Names:
        """The columns of the factors that a question about these columns touches."""
        return self._domain.ordered(name for factor in self._touched(columns) for name in factor.names)

    def holds(self, columns: Iterable[str]) -> bool:
        """Whether the joint cells of these columns, with all that were asked about together with them, are not too
        many."""
        return self._domain.cells(self.group(columns)) <= self._most

    def single(self, columns: Iterable[str]) -> HistogramFactor | None:
        """The factor that holds all these columns; None where there are several."""
        touched = self._touched(columns)
        return touched[0] if len(touched) == 1 else None

    def estimate(self, query: Product) -> float:
        """q . h, for the values of q divided by the largest."""
        touched = self._touched(query.attrs)
        if len(touched) == 1:
            return touched[0].histogram.estimate(touched[0].bins(query))
        parts = [Product(tuple(m for m in query.masks if set(m.attrs) <= set(factor.names))) for factor in touched]
        if sum(len(part.masks) for part in parts) == len(query.masks):
            pairs = zip(touched, parts, strict=True)
            return math.prod(factor.histogram.estimate(factor.bins(part)) for factor, part in pairs)
        joined = self._joined(touched)
        return joined.histogram.estimate(joined.bins(query))

    def join(self, columns: Iterable[str]) -> HistogramFactor | None:
        """The one factor that these columns have from now on; None where it would have too many bins."""
        touched = self._touched(columns)
        if len(touched) == 1:
            return touched[0]
        if math.prod(factor.histogram.size for factor in touched) > self._most:
            return None
        joined = self._joined(touched)
        self._of.update(dict.fromkeys(joined.names, joined))
        return joined

    def copy(self) -> Factored:
        """A warm start: all that was learnt, to go on by itself."""
        twin = Factored(self._domain, self._most, self._grids)
        for names in self.groups:
            twin._of.update(dict.fromkeys(names, twin._factor(names, self._of[names[0]].histogram.copy())))
        return twin

    @staticmethod
    def average(children: Sequence[Factored]) -> Factored:
        """A warm start from several, group by group; groups are joined until all have the same.

        Differs: an average of products is no product; of each group the averages are exact. Where joining would take
        too many bins it is the uniform distribution.
        """
        copies = [child.copy() for child in children]
        first = copies[0]
        while any(set(child.groups) != set(first.groups) for child in copies):
            for names in [names for child in copies for names in child.groups]:
                if any(child.join(names) is None for child in copies):
                    return Factored(first._domain, first._most, first._grids)
        for names in first.groups:
            mean = Histogram.average([child._of[names[0]].histogram for child in copies])
            first._of.update(dict.fromkeys(names, first._factor(names, mean)))
        return first

    def _touched(self, columns: Iterable[str]) -> list[HistogramFactor]:
        factors = {id(factor): factor for factor in map(self._of.__getitem__, columns)}
        return list(factors.values()) or [next(iter(self._of.values()))]

    def _joined(self, factors: Sequence[HistogramFactor]) -> HistogramFactor:
        names = self._domain.ordered(name for factor in factors for name in factor.names)
        joint = Histogram(self._domain.sizes(names))
        histograms = [factor.histogram for factor in factors]
        if any(histogram.weights is not None for histogram in histograms):
            weights = np.ones(joint.shape, np.float32)
            for factor in factors:
                if factor.histogram.weights is not None:
                    mean = factor.histogram.total / factor.histogram.size
                    weights *= _spread(factor.histogram.weights / np.float32(mean), factor.names, names)
            joint.weights, joint.total = weights, float(weights.sum(dtype=np.float64))
            joint.updates = np.zeros(joint.shape, np.int32)
            for factor in factors:
                if factor.histogram.updates is not None:
                    joint.updates += _spread(factor.histogram.updates, factor.names, names)
        for factor in factors:
            if factor.histogram.thresholds is not None:
                raised = _spread(factor.histogram.thresholds, factor.names, names)
                before = 0 if joint.thresholds is None else joint.thresholds
                joint.thresholds = np.maximum(np.zeros(joint.shape, np.int32), np.maximum(raised, before))
        joint.steps = sum(histogram.steps for histogram in histograms)
        return self._factor(names, joint)

    def _factor(self, names: Names, histogram: Histogram) -> HistogramFactor:
        return HistogramFactor(names, histogram, self._grids.setdefault(names, HistogramGrid(names, histogram.shape)))


def _spread(array: NDArray[Scalar], columns: Names, names: Names) -> NDArray[Scalar]:
    """An array over some columns, ready to be multiplied with one over more; both in the order of the domain."""
    sizes = dict(zip(columns, array.shape, strict=True))
    return array.reshape([sizes.get(name, 1) for name in names])
