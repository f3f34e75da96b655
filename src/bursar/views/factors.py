"""A distribution over all columns as a product of histograms, one for each group of columns that were asked together.

While no question spans two groups this is exactly the histogram over all columns at once: multiplicative weights on one
factor leave a product a product. A question that does span them joins them, by the outer product, which is exact too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bursar.core.domain import Domain
from bursar.core.queries import Product
from bursar.views.multiplicative_weights import MOST_BINS, Histogram, HistogramGrid, Names, QueryBins, Scalar

Grids = dict[Names, HistogramGrid]
"""Where the bins of queries are found, per group of columns: the same for all histograms over one domain."""


class HistogramFactor:
    """The histogram of one group of columns."""

    def __init__(self, names: Names, histogram: Histogram, grid: HistogramGrid | None = None) -> None:
        self.names, self.histogram = names, histogram
        self._grid = HistogramGrid(names, histogram.shape) if grid is None else grid

    def bins(self, query: Product) -> QueryBins:
        return self._grid.bins(query)


class Factored:
    """Groups follow from what was learnt, in its order; a column that was never asked about is a group by itself.

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
        return sum(factor.histogram.bytes for factor in {id(one): one for one in self._of.values()}.values())

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
        parts = [Product(tuple(m for m in query.masks if set(m.attrs) <= set(one.names))) for one in touched]
        if sum(len(part.masks) for part in parts) == len(query.masks):
            pairs = zip(touched, parts, strict=True)
            return math.prod(one.histogram.estimate(one.bins(part)) for one, part in pairs)
        joined = self._joined(touched)
        return joined.histogram.estimate(joined.bins(query))

    def join(self, columns: Iterable[str]) -> HistogramFactor | None:
        """The one factor that these columns have from now on; None where it would have too many bins."""
        touched = self._touched(columns)
        if len(touched) == 1:
            return touched[0]
        if math.prod(one.histogram.size for one in touched) > self._most:
            return None
        joined = self._joined(touched)
        self._of.update(dict.fromkeys(joined.names, joined))
        return joined

    def copy(self) -> Factored:
        """A warm start: all that was learnt, to go on by itself."""
        made = Factored(self._domain, self._most, self._grids)
        for names in self.groups:
            made._of.update(dict.fromkeys(names, made._factor(names, self._of[names[0]].histogram.copy())))
        return made

    @staticmethod
    def average(children: Sequence[Factored]) -> Factored:
        """A warm start from several, group by group; groups are joined until all have the same.

        Differs: an average of products is no product; of each group the averages are exact. Where joining would take
        too many bins it is the uniform distribution.
        """
        own = [child.copy() for child in children]
        first = own[0]
        while any(set(one.groups) != set(first.groups) for one in own):
            for names in [names for one in own for names in one.groups]:
                if any(one.join(names) is None for one in own):
                    return Factored(first._domain, first._most, first._grids)
        for names in first.groups:
            mean = Histogram.average([one._of[names[0]].histogram for one in own])
            first._of.update(dict.fromkeys(names, first._factor(names, mean)))
        return first

    def _touched(self, columns: Iterable[str]) -> list[HistogramFactor]:
        found = {id(factor): factor for factor in map(self._of.__getitem__, columns)}
        return list(found.values()) or [next(iter(self._of.values()))]

    def _joined(self, factors: Sequence[HistogramFactor]) -> HistogramFactor:
        names = self._domain.ordered(name for factor in factors for name in factor.names)
        made = Histogram(self._domain.sizes(names))
        own = [factor.histogram for factor in factors]
        if any(one.weights is not None for one in own):
            weights = np.ones(made.shape, np.float32)
            for factor in factors:
                if factor.histogram.weights is not None:
                    mean = factor.histogram.total / factor.histogram.size
                    weights *= _spread(factor.histogram.weights / np.float32(mean), factor.names, names)
            made.weights, made.total = weights, float(weights.sum(dtype=np.float64))
            made.updates = np.zeros(made.shape, np.int32)
            for factor in factors:
                if factor.histogram.updates is not None:
                    made.updates += _spread(factor.histogram.updates, factor.names, names)
        for factor in factors:
            if factor.histogram.thresholds is not None:
                raised = _spread(factor.histogram.thresholds, factor.names, names)
                known = 0 if made.thresholds is None else made.thresholds
                made.thresholds = np.maximum(np.zeros(made.shape, np.int32), np.maximum(raised, known))
        made.steps = sum(one.steps for one in own)
        return self._factor(names, made)

    def _factor(self, names: Names, histogram: Histogram) -> HistogramFactor:
        return HistogramFactor(names, histogram, self._grids.setdefault(names, HistogramGrid(names, histogram.shape)))


def _spread(array: NDArray[Scalar], own: Names, names: Names) -> NDArray[Scalar]:
    """An array over some columns, ready to be multiplied with one over more; both in the order of the domain."""
    sizes = dict(zip(own, array.shape, strict=True))
    return array.reshape([sizes.get(name, 1) for name in names])
