"""Weighted least squares over the log: what measured rows say together about the joint cells of some columns.

Cells that no measured row tells apart are merged, which loses nothing: a query that cuts through a merged cell is not
determined by the rows at all. Merged cells are a product of per-column classes and are split when new rows come.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial, reduce
from itertools import groupby
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Noise, NoiseKind
from bursar.core.domain import Domain
from bursar.core.extensions.pairs import classes
from bursar.core.noise.law import SMALLEST_SCALE
from bursar.core.queries import LinearMap, Mask, Product, Stack
from bursar.estimation.estimate import Estimate, WeightedRows, unknown_rows
from bursar.estimation.gaussian_state import IN_SPAN, GaussianState, PrefixSums
from bursar.estimation.turned_columns import ProductRows, StateInParts, solved_apart
from bursar.lazy_dataclass import dataclass
from bursar.tails import Noises, single_tail

Classes = dict[str, Integers]
"""Per column, in the order of the domain: the class of each of its cells."""

Split = tuple[Integers, Reals]
"""For each merged cell the one that it was split from, and the root of its share of that."""

MOST_MERGED_CELLS = 2048
"""Most merged cells of one reconstruction."""

REMEMBERED_LABELS, LONGEST_REMEMBERED = 2048, 4096
"""Of how many masks what they tell apart is remembered, and of how many cells at most."""


@dataclass(frozen=True, eq=False)
class MergedMask:
    """A mask as it is over merged cells; what is asked for is worked out once."""

    mask: Mask
    classes: Classes

    @property
    def numbers(self) -> int:
        """How many numbers the grid has."""
        return self.mask.rows * math.prod(count(self.classes[name]) for name in self.mask.attrs)

    @cached_property
    def whole(self) -> bool:
        """Whether no row of the mask cuts through a merged cell."""
        finer = told_apart(self.classes, Product((self.mask,)))
        return finer is not None and all(count(finer[name]) == count(self.classes[name]) for name in self.mask.attrs)

    @cached_property
    def grid(self) -> Reals:
        """The values of the rows, with an axis for each column, of length 1 where the mask is about others.

        That the mask is whole is assumed.
        """
        columns, firsts = list(self.classes), {name: first_cells(self.classes[name]) for name in self.mask.attrs}
        values = self.mask.at(firsts).astype(float)
        order = np.argsort([columns.index(name) for name in self.mask.attrs])
        grid = values.reshape(len(values), *(len(firsts[name]) for name in self.mask.attrs))
        shape = [len(firsts[name]) if name in firsts else 1 for name in columns]
        return np.transpose(grid, [0, *(1 + order)]).reshape(len(values), *shape)


def _coordinates(product: Product, classes: Classes, roots: Reals, merged: Callable[[Mask], MergedMask]) -> Reals:
    """The rows of a product over merged cells, scaled; constant on merged cells is assumed."""
    result = np.ones((1,) * (1 + len(classes)))
    for mask in product.masks:
        grid = merged(mask).grid
        result = (result[:, None] * grid[None]).reshape(-1, *np.broadcast_shapes(result.shape[1:], grid.shape[1:]))
    full = [count(labels) for labels in classes.values()]
    return np.broadcast_to(result, (len(result), *full)).reshape(len(result), len(roots)) * roots


@dataclass(frozen=True, eq=False)
class RowsOfProducts:
    """Rows of many products, one product behind the other, over merged cells; worked out when they are looked at.

    A long log has more rows than anything else, and a question that a look at the variances dismisses needs none.
    """

    products: Sequence[Product]
    classes: Classes
    roots: Reals

    @cached_property
    def by_product(self) -> dict[str, Reals]:
        """By the digest of a product, its rows."""
        masks: dict[tuple[object, ...], MergedMask] = {}

        def merged(mask: Mask) -> MergedMask:
            return masks.setdefault(_content(mask), MergedMask(mask, self.classes))

        products = {product.digest: product for product in self.products}
        return {digest: _coordinates(each, self.classes, self.roots, merged) for digest, each in products.items()}

    @cached_property
    def all(self) -> Reals:
        """Every row."""
        return np.concatenate([self.by_product[product.digest] for product in self.products])


Stored = tuple["Reals | RowsOfProducts", "Split | None"]
"""Rows over merged cells, and how these were split since."""


def _looked_at(rows: Reals | RowsOfProducts, split: Split | None) -> Reals:
    whole = rows.all if isinstance(rows, RowsOfProducts) else rows
    return whole if split is None else whole[:, split[0]] * split[1]


def told_apart(classes: Mapping[str, Integers], product: Product) -> Classes | None:
    """The classes after a product's rows are taken in; None where a column would need too many."""
    finer = dict(classes)
    for mask in product.masks:
        for name in mask.attrs:
            labels = _labels(mask, name)
            if labels is None:
                return None
            finer[name] = _numbered(finer[name] * (int(labels.max()) + 1) + labels)
    return finer


def _labels(mask: Mask, name: str) -> Integers | None:
    """The class of each cell of a column that a mask tells apart; None where there are too many.

    Remembered: a measurement is taken into a reconstruction of every column set above its own, and into copies; and
    many measurements have masks in common.
    """
    if mask.steps.size > LONGEST_REMEMBERED:
        return classes(mask, name, MOST_MERGED_CELLS)
    key = (name, mask.sizes, MOST_MERGED_CELLS, *_content(mask))
    try:
        return _remembered_labels[key]
    except KeyError:  # never there, or cleared meanwhile by another thread
        if len(_remembered_labels) >= REMEMBERED_LABELS:
            _remembered_labels.clear()
        _remembered_labels[key] = labels = classes(mask, name, MOST_MERGED_CELLS)
        return labels


_remembered_labels: dict[tuple[object, ...], Integers | None] = {}


def _content(mask: Mask) -> tuple[object, ...]:
    """The content of a mask, as a key of caches."""
    return (mask.attrs, mask.steps.starts.tobytes(), mask.steps.at.tobytes(), mask.steps.jump.tobytes())


def _fitting(classes: Classes, product: Product, rows: int) -> Classes | None:
    """The classes after a product's rows are taken in; None where `rows` rows would take too many cells or numbers."""
    finer = told_apart(classes, product)
    return finer if finer is not None and _enough_room(finer, rows) else None


def _enough_room(classes: Classes, rows: int) -> bool:
    """Whether `rows` rows over the products of classes are within the limits on cells and numbers."""
    cells = math.prod(count(labels) for labels in classes.values())
    return cells <= MOST_MERGED_CELLS and rows * cells <= MOST_ROW_NUMBERS


def count(classes: Integers) -> int:
    """How many classes there are."""
    return int(classes.max(initial=0)) + 1


def first_cells(classes: Integers) -> Integers:
    """The first cell of each class."""
    first = np.empty(count(classes), np.int64)
    first[classes[::-1]] = np.arange(len(classes))[::-1]  # where a class comes again, the last assignment stays
    return first


def _numbered(classes: Integers) -> Integers:
    """The same classes in the same order, numbered without gaps; in time that grows with the cells, not by sorting."""
    used = np.bincount(classes) > 0
    return (np.cumsum(used) - 1)[classes]


MOST_ROW_NUMBERS = 2**24
"""Most numbers that the rows of one reconstruction may take up; rows that come after that are left out."""


MANY_ROW_NUMBERS, CLEARLY_MORE = 2**16, 1.01
"""From this many numbers on it is worth a look at variances before rows are weighed; and what is clearly more."""

FEWEST_AT_ONCE = 8
"""From this many measurements on they are taken in at once, as when a long log is read."""

FEW_ROWS = 16
"""Measurements of up to this many rows show which cells questions tell apart; larger ones are strategies for them."""

REMEMBERED_ANSWERS = 256
"""Most answers that are remembered."""

REMEMBERED_MASKS, REMEMBERED_MASK_NUMBERS = 4096, 256
"""Most masks that are remembered, and most numbers of each."""

LARGEST_RESIDUAL, RESIDUAL_ROUNDS, LAST_ROUNDS = 1e-11, 4, 2
"""Weighted rows may differ from a query by this share of its largest value in a cell; and how often that is tried, by
the covariance and then without it."""

LARGEST_RATIO_OF_PRECISIONS = 1e10
"""Precisions may differ by such a factor, those of rows before they were refined among them, where the covariance is
used as it is."""

NEGLIGIBLE_VARIANCE = 1e-6
"""A variance that is larger by this part is as good."""

SMALLEST_WEIGHT_SHARE = 1e-12
"""How far a weight is from a whole number, 0 among them, is rounding where it lets its row say less than this share of
what the query says most of a cell; it is left out of estimate and error law alike."""


EXACT_TOTAL = Noise(kind=NoiseKind.LAPLACE, scale=SMALLEST_SCALE)
EXACT_TOTAL_GAUSSIAN = Noise(kind=NoiseKind.GAUSSIAN, scale=2 * SMALLEST_SCALE)
"""A count of all rows with one of these noises is a constraint: as one more row it would drown the others by rounding.

The least that has a price: under a budget in rho that is the second.
"""

EXACT_TOTAL_FAILS = max(single_tail(noise, 0.0) for noise in (EXACT_TOTAL, EXACT_TOTAL_GAUSSIAN))
"""How likely it is that such noise is not zero: 4e-28, which laws count in."""


@dataclass(frozen=True, eq=False)
class Block:
    """One measurement as the reconstruction sees it."""

    product: Product
    values: Integers
    noise: Noise
    position: int = 0  # of its record in the log
    first: int = 0  # the row of the record that is the product's first
    for_many: bool = False  # whether it was bought for questions to come, of which it tells nothing

    @property
    def about_questions(self) -> bool:
        """Whether it shows which cells questions tell apart."""
        return self.product.rows <= FEW_ROWS and not self.for_many

    @property
    def exact_total(self) -> bool:
        """Whether it is a count of all rows with next to no noise, as is free where the number of rows is public."""
        exact = self.noise in (EXACT_TOTAL, EXACT_TOTAL_GAUSSIAN)
        return exact and not self.product.attrs and self.product.rows == 1


@dataclass(frozen=True, eq=False)
class Finer:
    """Rows of an earlier measurement that have less noise now."""

    position: int  # of the record that measured them
    rows: Integers
    values: Integers
    noise: Noise
    since: int = 0  # the position of the record that made them finer


SPARE_PART = 4
"""What part of their length arrays have as space behind them: each row is then moved five times at most, on average."""

Rows = TypeVar("Rows", bound=NDArray[Any])


class RoomForRows:
    """Space behind arrays, so that rows are added to them in constant time, and what was handed out never changes.

    There is one for each reconstruction that grows: two that began alike may go on differently.
    """

    def __init__(self) -> None:
        self._spaces: dict[str, NDArray[Any]] = {}

    @property
    def bytes(self) -> int:
        """How much memory the arrays take, with the space behind them."""
        return sum(space.nbytes for space in self._spaces.values())

    def append(self, name: str, rows: Rows, *more: Rows) -> Rows:
        """The rows of the array with this name, and more of them, each moved once."""
        end, space = len(rows) + sum(map(len, more)), self._spaces.get(name)
        if space is None or rows.base is not space or end > len(space):
            space = self._spaces[name] = np.empty((end + end // SPARE_PART, *more[0].shape[1:]), more[0].dtype)
            space[: len(rows)] = rows
        start = len(rows)
        for some in more:
            space[start : start + len(some)] = some
            start += len(some)
        return cast(Rows, space[:end])


@dataclass
class Reconstruction:
    """Everything known about the joint cells of `columns` from measurements on these columns or fewer.

    Coordinates are merged cells scaled to unit length (a cell of k original cells stands for their sum over sqrt k),
    which keeps splitting an isometry.

    An exact total is one of the rows, since answers weigh it like the others. But it is kept out of the state and its
    information: what is known is the state, given the total.
    """

    domain: Domain
    columns: tuple[str, ...]
    classes: Classes = field(init=False)  # per column: class of each of its cells
    question_classes: Classes = field(init=False)  # the same, of measurements with few rows
    stored: tuple[Stored, ...] = field(init=False)  # the rows, one piece behind the other
    room: RoomForRows = field(default_factory=lambda: RoomForRows())
    values: Reals = field(init=False)
    precisions: Reals = field(init=False)  # of the rows: one over the variance; 0 for the exact total, a constraint
    total: int | None = None  # the row that is the exact total
    coarsest: float = math.inf  # the least precision that any row ever had: what rounding is relative to
    noises: Noises = field(default_factory=lambda: Noises.of(()))
    origins: Integers = field(init=False)  # of each row: the position of its record, and which of its rows it is
    told: GaussianState | StateInParts = field(init=False)  # what the rows with noise say
    constrained: GaussianState | None = None  # the present state, given the exact total
    sums: PrefixSums | None = None  # of the present state
    snapshot: Reconstruction | None = None  # a copy of the present state, which laws refer to
    answers: dict[str, Estimate | None] = field(default_factory=dict)  # to questions asked of the present state
    reach: Reals | None = None  # of the present rows: the largest coefficient of each in a cell
    roots: Reals = field(init=False)  # of the number of cells that each merged cell stands for
    seen: dict[tuple[object, ...], MergedMask] = field(default_factory=dict)  # masks over the present classes

    def __post_init__(self) -> None:
        self.classes = {name: np.zeros(self.domain[name].size, np.int64) for name in self.columns}
        self.question_classes, self.roots = self.classes, _roots(self.classes)
        self.told = GaussianState.empty(np.array([float(self.domain.cells(self.columns))]))
        self.stored, self.origins = ((np.zeros((0, 1)), None),), np.zeros((0, 2), np.int64)
        self.values, self.precisions = np.zeros(0), np.zeros(0)

    @property
    def rows(self) -> Reals:
        """The measured rows over the merged cells, scaled; worked out where they are looked at, since they are many."""
        pieces = [_looked_at(*piece) for piece in self.stored]
        rows = pieces[0] if len(pieces) == 1 else self.room.append("rows", *pieces)
        self.stored = ((rows, None),)
        return rows

    @property
    def state(self) -> GaussianState:
        """What the rows with noise say, put together where it is still in parts."""
        if isinstance(self.told, StateInParts):
            self.told = copy.copy(self.told.together)
        return self.told

    def copy(self) -> Reconstruction:
        """A reconstruction of its own that knows the same. Cheap, since arrays are shared and none is written to."""
        twin = copy.copy(self)
        twin.room = RoomForRows()
        if isinstance(self.told, GaussianState):  # parts are put together once, for all that share them
            twin.told = copy.copy(self.told)
        twin.answers, twin.seen = dict(self.answers), dict(self.seen)
        return twin

    def add(self, block: Block) -> bool:
        """Take a measurement in; False where it would need too many cells or rows, and nothing changed."""
        if not self.split_by(block.product, rows=block.product.rows):
            return False
        rows, variance = self.coordinates(block.product), block.noise.variance()
        if block.exact_total:
            return self._constrain(rows, block)
        self.state.take(rows, block.values.astype(float), variance)
        self._append(rows, [block], np.full(len(rows), 1 / variance))
        self._keep_sound()
        self.coarsest = min(self.coarsest, 1 / variance)
        if block.about_questions:
            self.question_classes = told_apart(self.question_classes, block.product) or self.question_classes
        return True

    def _keep_sound(self) -> None:
        """Where rounding broke the state, it is made of all rows at once, by the inverse of their information."""
        if isinstance(self.told, StateInParts) or self.told.sound:
            return
        state, noisy = GaussianState.empty(self.state.cells), self.noisy
        state.take_all(self.rows[noisy], self.values[noisy], 1 / self.precisions[noisy])
        self.told = state
        self._forget()

    def add_all(self, blocks: Sequence[Block]) -> list[Block]:
        """Take measurements in, many of them at once; those that do not fit are left out, and returned."""
        if len(blocks) < FEWEST_AT_ONCE:
            return [block for block in blocks if not self.add(block)]
        classes, rows = self.classes, len(self.values)
        taken: list[Block] = []
        left_out: list[Block] = []
        told: dict[str, bool] = {}  # whether what a product tells apart fits: what does not, will not later
        for block in blocks:
            product, after = block.product, rows + block.product.rows
            if block.exact_total:
                left_out += [] if self.add(block) else [block]
                continue
            if product.digest not in told:
                finer = _fitting(classes, product, after)
                told[product.digest] = finer is not None
                classes = classes if finer is None else finer
            if told[product.digest] and _enough_room(classes, after):
                taken.append(block)
                rows = after
            else:
                left_out.append(block)
        self._refine(classes)
        if not taken:
            return left_out
        unseen = RowsOfProducts([block.product for block in taken], self.classes, self.roots)
        self._take_together(taken, unseen)
        precisions = np.concatenate([np.full(block.product.rows, 1 / block.noise.variance()) for block in taken])
        self._append(unseen, taken, precisions)
        self._keep_sound()
        self.coarsest = min(self.coarsest, float(precisions.min(initial=math.inf)))
        for product in {block.product.digest: block.product for block in taken if block.about_questions}.values():
            self.question_classes = told_apart(self.question_classes, product) or self.question_classes
        return left_out

    def _take_together(self, blocks: Sequence[Block], rows: RowsOfProducts) -> None:
        """Take blocks into the state: what was measured several times, with precisions p_i, says as much as one
        measurement of precision sum_i p_i whose value is their weighted mean."""
        precisions: dict[str, float] = defaultdict(float)
        sums: dict[str, Reals] = {}
        products = {block.product.digest: block.product for block in blocks}
        for block in blocks:
            digest, precision = block.product.digest, 1 / block.noise.variance()
            precisions[digest] += precision
            said = precision * block.values.astype(float)
            sums[digest] = sums[digest] + said if digest in sums else said
        means = {digest: sums[digest] / precisions[digest] for digest in products}
        apart = (
            None
            if self.told.rank
            else self._solved_apart(
                [(product, means[digest], 1 / precisions[digest]) for digest, product in products.items()]
            )
        )
        if apart is not None:
            self.told = apart
            return
        matrix = np.concatenate([rows.by_product[digest] for digest in means])
        variances = np.concatenate([np.full(len(means[digest]), 1 / precisions[digest]) for digest in means])
        self.state.take_all(matrix, np.concatenate(list(means.values())), variances)

    def _solved_apart(self, measured: Sequence[tuple[Product, Reals, float]]) -> StateInParts | None:
        """What products with these values and variances say, nothing else being known; None where they are to be taken
        in together, since no column can be turned or a mask ties several columns."""
        if any(len(mask.attrs) != 1 for product, _, _ in measured for mask in product.masks):
            return None
        cells = [np.bincount(labels).astype(float) for labels in self.classes.values()]
        rows = [
            ProductRows(
                factors=self._factors(product, cells), values=self._by_column(product, values), variance=variance
            )
            for product, values, variance in measured
        ]
        return solved_apart(rows, cells)

    def _factors(self, product: Product, cells: Sequence[Reals]) -> tuple[Reals, ...]:
        """The masks of a product, one for each column, over its classes, scaled."""
        masks = {mask.attrs[0]: mask for mask in product.masks}
        grids = [
            self._seen(masks[name]).grid.reshape(masks[name].rows, -1) if name in masks else 1.0
            for name in self.columns
        ]
        return tuple(np.atleast_2d(grid * np.sqrt(some)) for grid, some in zip(grids, cells, strict=True))

    def _by_column(self, product: Product, values: Reals) -> Reals:
        """The values of a product of masks of one column each, with an axis for each column."""
        places = [self.columns.index(mask.attrs[0]) for mask in product.masks]
        shape = np.ones(len(self.columns), int)
        shape[places] = [mask.rows for mask in product.masks]
        return values.reshape([mask.rows for mask in product.masks]).transpose(np.argsort(places)).reshape(shape)

    def _constrain(self, row: Reals, block: Block) -> bool:
        """Take the exact total in. A second one tells nothing new."""
        if self.total is None and np.any(row):
            self.total = len(self.values)
            self._append(row, [block], np.zeros(1))
        return True

    def _append(self, rows: Reals | RowsOfProducts, blocks: Sequence[Block], precisions: Reals) -> None:
        numbers = [block.first + np.arange(block.product.rows) for block in blocks]
        positions = [np.full(block.product.rows, block.position) for block in blocks]
        origins = np.column_stack([np.concatenate(positions), np.concatenate(numbers)])
        values = np.concatenate([block.values.astype(float) for block in blocks])
        if isinstance(rows, RowsOfProducts):
            self.stored = (*(self.stored if len(self.values) else ()), (rows, None))
        else:
            self.stored = ((self.room.append("rows", self.rows, rows), None),)
        self.values = self.room.append("values", self.values, values)
        self.precisions = self.room.append("precisions", self.precisions, precisions)
        self.origins = self.room.append("origins", self.origins, origins)
        more = [(block.noise, block.product.rows) for block in blocks]
        self.noises = self.noises.plus(more, partial(self.room.append, "noises"))
        self._forget()

    @property
    def known(self) -> GaussianState:
        """What all rows say, the exact total included. Not to be added to: that is done to `state`."""
        if self.total is None:
            return self.state
        if self.constrained is None:
            self.constrained = self.state.given(self.rows[self.total], float(self.values[self.total]))
        return self.constrained

    @property
    def _looks(self) -> GaussianState | StateInParts:
        """What is known, for looks at it that need not have it put together."""
        return self.told if self.total is None else self.known

    @property
    def noisy(self) -> NDArray[np.bool_]:
        """Which rows have noise: all but an exact total, which costs no cell anything."""
        return self.precisions > 0

    @property
    def most_precision(self) -> float:
        """The precision that all rows have together at one cell, each times its coefficient there squared; the most of
        any cell.

        Edge cases: infinite where the exact total is known.
        """
        if self.total is not None:
            return math.inf
        information, basis = self.state.reduced_information, self.state.basis
        of_cells = information.diagonal() if basis is None else np.einsum("ij,ij->j", information @ basis, basis)
        return float((of_cells / self.state.cells).max(initial=0.0))

    def free_of_total(self, queries: Reals) -> Reals:
        """Queries, with an entry for each merged cell, over all cells but the last, which is the total less the others.

        Edge cases: as they are where the total is not known.
        """
        return queries if self.total is None else queries[..., :-1] - queries[..., -1:]

    def take(self, news: Iterable[Block | Finer]) -> list[Block]:
        """Take in what the log has next; what does not fit is left out, and returned."""
        left_out: list[Block] = []
        for finer, some in groupby(news, lambda block: isinstance(block, Finer)):
            if finer:
                self.refine([block for block in some if isinstance(block, Finer)])
            else:
                left_out += self.add_all([block for block in some if isinstance(block, Block)])
        return left_out

    def refine(self, news: Iterable[Finer]) -> list[Integers]:
        """Rows of measurements get finer values and noise; where the rows of each piece of news stand among all rows.

        The coarser value is the finer one with independent noise added to it, so it has nothing to say any more. What a
        row of precision p and value y says is p y; the state gets the difference, as from a row measured beside.
        Edge cases: a row of a measurement that did not fit stands at -1, and nothing changes for it.
        """
        self.values, self.precisions = self.values.copy(), self.precisions.copy()
        standing = [np.zeros(0, np.int64)]
        said, more = [np.zeros(0)], [np.zeros(0)]
        places: list[Integers] = []
        for finer in news:
            places.append(self._places(finer.position, finer.rows))
            here = places[-1] >= 0
            rows_found, values, after = places[-1][here], finer.values[here].astype(float), 1 / finer.noise.variance()
            before = self.precisions[rows_found]
            said.append((after * values - before * self.values[rows_found]) / (after - before))
            more.append(after - before)
            standing.append(rows_found)
            self.values[rows_found], self.precisions[rows_found] = values, after
            self.noises = self.noises.changed(rows_found, finer.noise)
        rows_found = np.concatenate(standing)
        if len(rows_found):
            self.state.sharpen(self.rows[rows_found], np.concatenate(said), 1 / np.concatenate(more))
            self._forget()
            self._keep_sound()
        return places

    def _places(self, position: int, rows: Integers) -> Integers:
        """Where rows of a record stand, in their order, whatever the order in which its products were taken in."""
        places = np.flatnonzero(self.origins[:, 0] == position)
        numbers = self.origins[places, 1]
        order = np.argsort(numbers)
        nearest = np.minimum(np.searchsorted(numbers, rows, sorter=order), len(numbers) - 1)
        if not len(numbers):
            return np.full(len(rows), -1)
        return np.where(numbers[order[nearest]] == rows, places[order[nearest]], -1)

    def law_of(self, weights: Reals) -> WeightedRows:
        """The law of estimates that weigh all rows like this. An exact total counts as the chance that it is not."""
        used = np.abs(weights).max(axis=0, initial=0) > 0
        exact = self.total is not None and bool(used[self.total])
        used &= self.noisy
        chance = EXACT_TOTAL_FAILS if exact else 0.0
        return WeightedRows(weights=weights[:, used], noises=self.noises.take(used), chance=chance)

    def split_by(self, product: Product, *, rows: int = 0) -> bool:
        """Split merged cells so that no row of the product cuts through one; False where that needs too many cells.

        `rows` more rows must fit as well.
        """
        finer = _fitting(self.classes, product, len(self.values) + rows)
        if finer is None:
            return False
        self._refine(finer)
        return True

    @property
    def bytes(self) -> int:
        """About how much memory it takes once its rows are looked at, with the space behind them."""
        rows = len(self.values) * self.roots.nbytes
        return self.told.bytes + max(self.room.bytes, rows + rows // SPARE_PART)

    def answered(self, queries: LinearMap) -> Estimate | None:
        """As `answer`, by the quickest way, and remembered until more is known: tails that were found stay found."""
        if queries.digest not in self.answers:
            if len(self.answers) >= REMEMBERED_ANSWERS:
                self.answers.clear()
            self.answers[queries.digest] = self.quick(queries) or self.answer(queries)
        return self.answers[queries.digest]

    def _forget(self) -> None:
        self.sums, self.snapshot, self.constrained, self.reach, self.answers = None, None, None, None, {}

    def answer(self, queries: LinearMap) -> Estimate | None:
        """The best linear estimate of the queries, or None where the rows do not determine them."""
        weights = self.weights_of(queries)
        if weights is None:
            return None
        return Estimate(values=weights @ self.values, law=self.law_of(weights))

    def quick(self, queries: LinearMap) -> Estimate | None:
        """The same answer from prefix sums, where the queries are about one column and change at few cells.

        Its law works the weights out only when a tail is asked for. None says nothing: `answer` may still know.
        """
        if len(self.columns) != 1 or not isinstance(queries, Product) or len(queries.masks) != 1:
            return None
        if self.precisions.max(initial=0) > LARGEST_RATIO_OF_PRECISIONS * self.coarsest or not self.known.sound:
            return None
        if self.sums is None or self.snapshot is None:
            self.snapshot = self.copy()
            self.snapshot.answers = {}  # these refer to it: a circle
            self.sums = PrefixSums(state=self.snapshot.known, labels=self.classes[self.columns[0]])
        estimates = self.sums.look_up(queries.masks[0].steps)
        if estimates is None:
            return None
        return Estimate(
            values=estimates[0], law=LaterRows(reconstruction=self.snapshot, queries=queries, variances=estimates[1])
        )

    def too_coarse(self, queries: LinearMap, amount: float) -> bool:
        """Whether it is known before the weights that a query's error has more variance than the square of an amount.

        Edge cases: False where there are few rows, whose weights are soon found; and where nothing is determined.
        """
        if len(self.values) * len(self.roots) < MANY_ROW_NUMBERS:
            return False
        matrix = self._determined(queries)
        return matrix is not None and float(self._looks.variances(matrix).max(initial=0.0)) > CLEARLY_MORE * amount**2

    def _determined(self, queries: LinearMap) -> Reals | None:
        """The queries over merged cells, scaled; None where the rows do not determine one."""
        parts = queries.parts if isinstance(queries, Stack) else (queries,)
        coordinates: list[Reals] = [np.zeros((0, len(self.roots)))]
        for part in parts:
            if not isinstance(part, Product) or not all(self._seen(mask).whole for mask in part.masks):
                return None
            coordinates.append(self.coordinates(part))
        matrix = np.concatenate(coordinates)
        return matrix if self._looks.spans(matrix) else None

    def weights_of(self, queries: LinearMap) -> Reals | None:
        """How much each measured row counts in each query's estimate; None where the rows do not determine one.

        Weights that do not add up to their query would make a number of something else, with an error bar that is wrong
        or even 0: whatever the state takes for known, there are none then.
        """
        matrix = self._determined(queries)
        if matrix is None:
            return None
        weights = self._adding_up_to(matrix)
        whole = np.rint(weights)  # .999... of a count is a count
        rounding = np.abs(weights - whole) * self._reach  # what it says of the cell that its row says most of
        largest = np.abs(matrix / self.roots).max(axis=1, keepdims=True, initial=0)
        near = rounding < SMALLEST_WEIGHT_SHARE * largest
        weights = np.where(near | self._as_good(whole, weights, matrix)[:, None], whole, weights)
        return weights if np.all(self._unsaid(weights, matrix) <= IN_SPAN) else None

    def _unsaid(self, weights: Reals, queries: Reals) -> Reals:
        """What weighted rows leave of each query in any cell, as a share of its largest value in one."""
        left = np.abs((queries - weights @ self.rows) / self.roots).max(axis=1, initial=0)
        largest = np.abs(queries / self.roots).max(axis=1, initial=0)
        return np.asarray(np.divide(left, largest, out=left, where=largest > 0))

    @property
    def _reach(self) -> Reals:
        """The largest coefficient of each row in a cell: a sum of values in fine steps has some of 10^10, and a weight
        that looks like rounding beside those of counts is none."""
        if self.reach is None:
            self.reach = np.abs(self.rows / self.roots).max(axis=1, initial=0)
        return self.reach

    def _as_good(self, whole: Reals, weights: Reals, queries: Reals) -> NDArray[np.bool_]:
        """For which queries whole weights do what the best ones do, up to `NEGLIGIBLE_VARIANCE`.

        Rows with a thousand times the noise get weights that hardly change a variance, but they take an error off its
        lattice, and the tail at a whole number grows by a whole step.
        """
        complete = self._unsaid(whole, queries) <= LARGEST_RESIDUAL
        variances = np.divide(1.0, self.precisions, out=np.zeros(len(self.precisions)), where=self.noisy)
        least = np.square(weights) @ variances
        return np.asarray(complete & (np.square(whole) @ variances <= (1 + NEGLIGIBLE_VARIANCE) * least))

    def _adding_up_to(self, queries: Reals) -> Reals:
        """Weights of the rows that make up the queries, with the least variance.

        A covariance that went from 10^14 down to 1 is wrong by a hundredth, and rows weighed by it do not add up to the
        query: counts in the millions would shine through. So what is left unsaid is weighed again, until nothing is.
        """
        prior, weights = self.known, np.zeros((len(queries), len(self.values)))
        unsaid, most = queries, LARGEST_RESIDUAL * np.abs(queries / self.roots).max(axis=1, keepdims=True, initial=0)
        for _ in range(RESIDUAL_ROUNDS):
            weights = self._with_total(weights + prior.covaried(unsaid) @ self.rows.T * self.precisions, queries)
            unsaid = queries - weights @ self.rows
            if np.all(np.abs(unsaid / self.roots) <= most):
                return weights
        loud = np.sqrt(self.precisions)
        rows = self._besides_total(self.rows * loud[:, None])
        weights, unsaid = np.zeros_like(weights), queries
        for _ in range(LAST_ROUNDS):
            more = np.linalg.lstsq(rows.T, self._besides_total(unsaid).T, rcond=None)[0].T * loud
            weights = self._with_total(weights + more, queries)
            unsaid = queries - weights @ self.rows
            if np.all(np.abs(unsaid / self.roots) <= most):
                break
        return weights

    def _besides_total(self, queries: Reals) -> Reals:
        """The part of each query that is orthogonal to an exact total."""
        if self.total is None:
            return queries
        total = self.rows[self.total]
        return queries - np.outer(queries @ total / float(total @ total), total)

    def _with_total(self, weights: Reals, queries: Reals) -> Reals:
        """The weights with that of an exact total, which has no noise that it could be weighed by: what is left along
        it."""
        if self.total is not None:
            total = self.rows[self.total]
            weights[:, self.total] += (queries - weights @ self.rows) @ total / float(total @ total)
        return weights

    def _refine(self, finer: Classes) -> None:
        old = [self.classes[name] for name in self.columns]
        new = [finer[name] for name in self.columns]
        if all(count(before) == count(after) for before, after in zip(old, new, strict=True)):
            return  # a refinement into as many classes is the same partition; keep the old numbers
        parents = [before[first_cells(after)] for before, after in zip(old, new, strict=True)]
        shape = [count(before) for before in old]
        parent = np.ravel_multi_index(np.ix_(*parents), shape).ravel() if parents else np.zeros(1, np.int64)
        kin = zip(old, new, parents, strict=True)
        shares = [np.bincount(after) / np.bincount(before)[parent_] for before, after, parent_ in kin]
        shrink = np.sqrt(_joint(shares))
        self.told = self.state.split(parent, shrink)
        self.stored = tuple(
            (rows, (parent, shrink) if before is None else (before[0][parent], before[1][parent] * shrink))
            for rows, before in self.stored
        )
        self.classes, self.roots, self.seen = finer, _roots(finer), {}
        self._forget()

    def coordinates(self, product: Product) -> Reals:
        """The rows of the product over the merged cells, scaled; constant on merged cells is assumed."""
        return _coordinates(product, self.classes, self.roots, self._seen)

    def _seen(self, mask: Mask) -> MergedMask:
        key = _content(mask)
        merged = self.seen.get(key)
        if merged is not None:
            return merged
        new = MergedMask(mask, self.classes)
        if new.numbers <= REMEMBERED_MASK_NUMBERS:
            if len(self.seen) >= REMEMBERED_MASKS:
                self.seen.clear()
            self.seen[key] = new
        return new


@dataclass(frozen=True, kw_only=True, eq=False)
class LaterRows:
    """The law of a weighted sum of measured rows, whose variance is known and whose weights are found when needed."""

    reconstruction: Reconstruction
    queries: LinearMap
    variances: Reals

    @property
    def noises(self) -> Sequence[Noise]:
        """Of all rows that may take part."""
        return self.reconstruction.noises

    @cached_property
    def rows(self) -> WeightedRows:
        weights = self.reconstruction.weights_of(self.queries)
        return unknown_rows(len(self.variances)) if weights is None else self.reconstruction.law_of(weights)

    def tail(self, alpha: float, enough: float) -> float:
        if self.variances.max(initial=0.0) > alpha**2:
            return 1.0  # as in WeightedRows: hopeless
        return self.rows.tail(alpha, enough)

    def half_widths(self, beta: float) -> Reals:
        return self.rows.half_widths(beta)

    def mean_square(self) -> float:
        return self._mean

    def as_draws(self, combinations: Reals) -> tuple[Reals, Sequence[Noise]]:
        return self.rows.as_draws(combinations)

    @cached_property
    def _mean(self) -> float:
        return float(self.variances.mean()) if len(self.variances) else 0.0


def _roots(classes: Classes) -> Reals:
    return np.sqrt(_joint(np.bincount(labels).astype(float) for labels in classes.values()))


def _joint(factors: Iterable[Reals]) -> Reals:
    """The products of numbers of each column, for all joint classes; the last column runs fastest."""
    return reduce(lambda left, right: np.multiply.outer(left, right).ravel(), factors, np.ones(1))
