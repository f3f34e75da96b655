"""Labelled queries that are asked together, and what is made of their answers: HAVING, ORDER BY, LIMIT and OFFSET.

Lines are made when somebody looks at them: there may be millions of numbers, and no object for each.

The choice of lines looks at noisy numbers only, so it costs nothing. What can be said of the true numbers follows from
the error bars of all groups, shown or not, which hold together with the stated confidence. Let alpha be the widest.

    HAVING x >= t     a true number that is more than alpha from t is on the same side of t as the noisy one: of any
                      condition made of comparisons, no group is misplaced whose numbers are that far from all bounds.
    ORDER BY x        if x_i >= x_j for the noisy numbers, then x_i >= x_j - 2 alpha for the true ones.
    LIMIT k           let c be the noisy number of the last group that is shown. Those shown have noisy numbers >= c and
                      true ones >= c - alpha; those left out have noisy numbers <= c and true ones <= c + alpha.
    OFFSET m          let f be the noisy number of the first group that is shown. Those shown have true numbers from
                      c - alpha to f + alpha; those left out before them >= f - alpha, those behind <= c + alpha.
"""

from __future__ import annotations

import base64
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bursar.arrays import Reals
from bursar.core.domain import Value
from bursar.core.queries import LinearMap
from bursar.estimation.derived import Box, Combination, Derived, Form, Quantile, Ratio, Variance, single
from bursar.estimation.estimate import ErrorLaw, LawOfQuestions
from bursar.estimation.joint_quantiles import ends_of, quantile_ends, transform_ranks
from bursar.estimation.joint_ratios import JointRows, ratio_ends
from bursar.estimation.joint_variances import variance_ends
from bursar.lazy_dataclass import dataclass
from bursar.sql import TRUE, And, AtLeast, Between, Compare, Condition, Constant, IsTrue, Not, Op, Or
from bursar.sql.query import Leaf, leaves
from bursar.sql.render import render_condition
from bursar.sql.terms import Stage

Label = tuple[Value, ...]


@dataclass(frozen=True)
class Labels(Sequence[Label]):
    """Lazy labels: of each set of columns all joint values, last column fastest; of several sets, columns in front."""

    sets: tuple[tuple[str, ...], ...]
    values: tuple[tuple[str, tuple[Value, ...]], ...]  # for each column its values, in the order of its cells

    @cached_property
    def _of(self) -> dict[str, tuple[Value, ...]]:
        return dict(self.values)

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum([math.prod(self._sizes(names)) for names in self.sets])

    def _sizes(self, names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(len(self._of[name]) for name in names)

    def __len__(self) -> int:
        return int(self._ends[-1])

    @overload
    def __getitem__(self, line: int) -> Label: ...

    @overload
    def __getitem__(self, line: slice) -> tuple[Label, ...]: ...

    def __getitem__(self, line: int | slice) -> Label | tuple[Label, ...]:
        if isinstance(line, slice):
            return tuple(self[each] for each in range(*line.indices(len(self))))
        number = range(len(self))[line]
        place = int(np.searchsorted(self._ends, number, side="right"))
        names = self.sets[place]
        sizes = self._sizes(names)
        cells = np.unravel_index(number - int(self._ends[place]) + math.prod(sizes), sizes)
        values = tuple(self._of[name][int(cell)] for name, cell in zip(names, cells, strict=True))
        return values if len(self.sets) == 1 else (", ".join(names), *values)

    def __iter__(self) -> Iterator[Label]:
        return (self[line] for line in range(len(self)))

    def facts(self) -> dict[str, object]:
        """What makes the labels, as plain JSON values but for dates."""
        return {"label_sets": self.sets, "label_values": self.values}


@dataclass(frozen=True, eq=False)
class Numbers(Sequence[tuple[float, ...]]):
    """Lazy tuples of numbers, one for each line: the rows of an array."""

    array: Reals

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, line: int) -> tuple[float, ...]: ...

    @overload
    def __getitem__(self, line: slice) -> tuple[tuple[float, ...], ...]: ...

    def __getitem__(self, line: int | slice) -> tuple[float, ...] | tuple[tuple[float, ...], ...]:
        numbers = self.array[line].tolist()
        return tuple(numbers) if isinstance(line, int) else tuple(map(tuple, numbers))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Reals:
        return np.asarray(self.array, dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbers) and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return hash(self.array.tobytes())

    def facts(self) -> dict[str, object]:
        """The array as text."""
        text = base64.b64encode(np.ascontiguousarray(self.array, "<f8").tobytes()).decode()
        return {"number_shape": self.array.shape, "numbers": text}


def read(plain: Mapping[str, object]) -> Labels | Numbers | None:
    """What `facts` were made from; None for the facts of anything else."""
    match plain:
        case {"label_sets": (list() | tuple()) as sets, "label_values": (list() | tuple()) as columns, **others}:
            values = tuple((name, tuple(labels)) for name, labels in columns)
            return None if others else Labels(tuple(map(tuple, sets)), values)
        case {"number_shape": (list() | tuple()) as shape, "numbers": str() as text, **others}:
            numbers = np.frombuffer(base64.b64decode(text), "<f8").astype(np.float64)
            return None if others else Numbers(numbers.reshape(shape))
    return None


Lines = NDArray[np.int64]

_OPS = {Op.LT: np.less, Op.LE: np.less_equal, Op.GT: np.greater, Op.GE: np.greater_equal}


@dataclass(frozen=True, kw_only=True, eq=False)
class Order:
    """By an output, or by a rank that every line has whatever the numbers are."""

    name: str
    output: int = -1
    ranks: Lines | None = None
    descending: bool = False
    nulls_first: bool = False  # of outputs; ranks have it in them


@dataclass(frozen=True, kw_only=True)
class ChoiceCertainty:
    """What is known of a choice between lines, with the confidence of the error bars."""

    words: str
    margins: tuple[tuple[int, float], ...] = ()  # alpha for each output that chose
    cut: float | None = None  # the last number that is shown, where LIMIT cut something off


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenLines:
    """The lines that are shown, in order, and what is known of the choice."""

    lines: Lines
    claims: tuple[ChoiceCertainty, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class ResultClauses:
    """What is done with the answers to a workload."""

    outputs: tuple[str, ...]
    having: Condition = TRUE  # its columns are outputs
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0

    def facts(self) -> list[object]:
        """What identifies it, as plain JSON values."""
        order = [
            [sort.name, sort.output, None if sort.ranks is None else sort.ranks.tolist(), sort.descending]
            + ["nulls first"] * sort.nulls_first
            for sort in self.order
        ]
        return [render_condition(self.having), order, self.limit, *([self.offset] if self.offset else [])]

    def pick(self, numbers: Sequence[Derived], lines: int, confidence: float) -> ChosenLines:
        """The lines that are shown. `numbers` has every output on all lines."""
        shown: Lines = np.flatnonzero(np.broadcast_to(self._holds(self.having, numbers), lines)).astype(np.int64)
        sure = f"with {100 * confidence:g}% confidence"
        claims = [] if self.having == TRUE else [self._of_having(numbers, lines, sure)]
        if self.order:
            keys = [_sort_key(sort, numbers)[shown] for sort in self.order]
            shown = shown[np.lexsort(keys[::-1])]
            first = min(self.offset, len(shown))
            cut = len(shown) if self.limit is None else min(first + self.limit, len(shown))
            claims += _of_order(self.order[0], numbers, shown, (first, cut), sure)
            shown = shown[first:cut]
        elif self.limit is not None or self.offset:
            first = min(self.offset, len(shown))
            cut = len(shown) if self.limit is None else min(first + self.limit, len(shown))
            if cut - first < len(shown):
                words = f"{cut - first} of {len(shown)} groups are shown, in the order in which they are declared"
                claims.append(ChoiceCertainty(words=f"{words}; all of them were paid for"))
            shown = shown[first:cut]
        return ChosenLines(lines=shown, claims=tuple(claims))

    def _holds(self, condition: Condition, numbers: Sequence[Derived], truth: bool = True) -> NDArray[np.bool_]:
        """Where the condition is true; where it is false, if that is wanted. It is neither where it depends on NULL."""
        match condition:
            case And() | Or():
                every = isinstance(condition, And) == truth
                parts = [self._holds(part, numbers, truth) for part in condition.parts]
                return functools.reduce(np.logical_and if every else np.logical_or, parts)
            case Not():
                return self._holds(condition.part, numbers, not truth)
            case IsTrue():
                return np.asarray(np.equal(self._holds(condition.part, numbers), truth))
            case AtLeast():
                true = [self._holds(part, numbers).astype(np.int64) for part in condition.parts]
                return np.asarray((functools.reduce(np.add, true) >= condition.count) == truth)
            case Constant():
                return np.array(condition.value == truth)
            case Compare():
                values = numbers[self._place(condition)].value
                compared = _OPS[condition.op](values, _float(condition.literal))
                return np.equal(compared, truth) & ~np.isnan(values)
            case Between():
                values = numbers[self._place(condition)].value
                compared = (values >= _float(condition.low)) & (values <= _float(condition.high))
                return np.equal(compared, truth) & ~np.isnan(values)
        raise TypeError(f"HAVING has no {type(condition).__name__}")

    def _place(self, leaf: Leaf) -> int:
        return self.outputs.index(leaf.column.text)

    def _of_having(self, numbers: Sequence[Derived], lines: int, sure: str) -> ChoiceCertainty:
        compared = leaves(self.having)
        places = dict.fromkeys(map(self._place, compared))
        margins = {place: margin(numbers[place], np.arange(lines)) for place in places}
        words = f"HAVING chose among {lines} groups by noisy numbers, at no cost"
        if nobody := int(np.logical_or.reduce([_unknown(numbers[place]) for place in places]).sum()):
            words += f"; {nobody} may have nobody, and of the others"
        if not all(map(math.isfinite, margins.values())):
            return ChoiceCertainty(words=f"{words}; some error bars have no end, so any group may be misplaced")
        far = []
        for place, alpha in margins.items():
            bounds = sorted({bound for leaf in compared if self._place(leaf) == place for bound in _bounds(leaf)})
            near = " and ".join(f"{bound:,.10g}" for bound in bounds)
            far.append(f"whose true {self.outputs[place]} is more than {alpha:,.10g} from {near}")
        words += f": {sure}, no group is misplaced {' and '.join(far)}" if far else ""
        return ChoiceCertainty(words=words, margins=tuple(margins.items()))


def margin(numbers: Derived, lines: Lines) -> float:
    """The widest error bar on the lines that have a value for certain, rounded up to four digits."""
    spans = np.maximum(numbers.high - numbers.value, numbers.value - numbers.low)[lines]
    widest = float(spans.max(initial=0.0, where=~_unknown(numbers)[lines]))
    if not math.isfinite(widest) or widest == 0:
        return widest
    grain = 10.0 ** (math.floor(math.log10(widest)) - 3)
    return math.ceil(widest / grain * (1 - 1e-12)) * grain


def _unknown(numbers: Derived) -> NDArray[np.bool_]:
    """Where next to nothing is known: the value is NULL, or may be, since there may be nobody that it is about."""
    null = np.isnan(numbers.value)
    return null if numbers.sure is None else null | ~numbers.sure


def _of_order(
    order: Order, numbers: Sequence[Derived], lines: Lines, shown: tuple[int, int], sure: str
) -> list[ChoiceCertainty]:
    """What is known where lines stand in the order of an output."""
    first, cut = shown
    left_out = len(lines) - (cut - first)
    if order.output < 0:
        words = f"LIMIT shows {cut} of {len(lines)} groups, by {order.name}; all of them were paid for"
        if first:
            words = f"OFFSET leaves {cut - first} of {len(lines)} groups, by {order.name}; all of them were paid for"
        return [ChoiceCertainty(words=words)] if left_out else []
    name, alpha, unknown = order.name, margin(numbers[order.output], lines), _unknown(numbers[order.output])
    words = f"ordered by noisy {name}, at no cost"
    if left_out:
        words = f"the first {cut} of {len(lines)} groups by noisy {name}, at no cost"
        if first:
            words = f"{cut - first} of {len(lines)} groups, from number {first + 1} on by noisy {name}, at no cost"
    if not math.isfinite(alpha):
        return [ChoiceCertainty(words=f"{words}; some error bars have no end, so any group may be misplaced")]
    if nobody := int(unknown[lines].sum()):
        words += f"; {nobody} that may have nobody stand {'first' if order.nulls_first else 'last'}, and of the others"
    if not left_out:
        apart = f"{sure}, groups whose true {name} is more than {2 * alpha:,.10g} apart stand in the right order"
        return [ChoiceCertainty(words=f"{words}: {apart}", margins=((order.output, alpha),))]
    certain = lines[first:cut][~unknown[lines[first:cut]]]
    values = numbers[order.output].value[certain]
    if not len(values):
        return [ChoiceCertainty(words=words)]
    last = float(values[-1])
    if first:
        ends = sorted([last, float(values[0])])
        words += f": {sure}, the true {name} of every group here is {ends[0]:,.10g} to {ends[1]:,.10g}, give or take "
        return [ChoiceCertainty(words=f"{words}{alpha:,.10g}", margins=((order.output, alpha),), cut=last)]
    above, below = ("below", "above") if not order.descending else ("above", "below")
    words += (
        f": {sure}, every group whose true {name} is more than {alpha:,.10g} {above} {last:,.10g} is here, "
        f"none is here that is more than {alpha:,.10g} {below} it, "
        f"and no group left out is {above} one that is here by more than {2 * alpha:,.10g}"
    )
    return [ChoiceCertainty(words=words, margins=((order.output, alpha),), cut=last)]


def _sort_key(order: Order, numbers: Sequence[Derived]) -> NDArray[np.float64] | Lines:
    if order.ranks is not None:
        return order.ranks
    value = numbers[order.output].value
    key = -value if order.descending else value
    # An average of nobody is an extreme as likely as not, and would lead every list of the highest.
    return np.where(_unknown(numbers[order.output]), -np.inf if order.nulls_first else np.inf, key)


def _bounds(leaf: Leaf) -> list[float]:
    if isinstance(leaf, Compare):
        return [_float(leaf.literal)]
    return [_float(leaf.low), _float(leaf.high)] if isinstance(leaf, Between) else []


def _float(literal: object) -> float:
    return float(str(literal))


@dataclass(frozen=True, eq=False)
class Workload:
    """A table of answers to come: one line per group, one output per aggregate, made of columns of rows of `map`.

    Where no forms are given, every output is a column as it is.

    Guarantees: `map` has no row twice and no row of zeros unless the question is about nothing at all; the lines
    are the full public key set of the groups, in the order of the domain, whatever the data hold.
    """

    map: LinearMap
    keys: tuple[str, ...]  # names of the group columns
    labels: tuple[tuple[Value, ...], ...] | Labels  # one tuple of group values per line
    outputs: tuple[str, ...]  # names of the aggregates
    index: NDArray[np.int64]  # (lines, columns) -> row of the map, -1 where the number is 0 by definition
    forms: tuple[Form, ...] = ()  # how each output follows from columns
    largest: tuple[int, ...] = ()  # per column, the most that one row of the data can change it; 1 for a count
    remarks: tuple[str, ...] = ()  # what an analyst must know about the numbers, whatever they are
    after: ResultClauses | None = None  # what is done with the answers
    stages: tuple[Stage, ...] = ()  # what is done with the lines then, which is free
    counts: tuple[bool, ...] = ()  # for stages: whether each output is a number of rows, which is never below 0
    named: tuple[tuple[str, str], ...] = ()  # open columns, and texts that get a cell of their own with this question
    times: NDArray[np.int64] | None = None  # what each row of the map is a multiple of, where that is not 1

    def __post_init__(self) -> None:
        if not self.forms:
            object.__setattr__(self, "forms", tuple(single(column) for column in range(len(self.outputs))))
        if not self.largest:
            object.__setattr__(self, "largest", (1,) * self.index.shape[1])

    @property
    def plain(self) -> bool:
        """Whether every output is a column as it is."""
        return self.forms == tuple(single(column) for column in range(len(self.outputs)))

    @property
    def mixed(self) -> bool:
        """Whether outputs are other things than counts, so that no one error is for all of them."""
        return not self.plain or max(self.largest, default=1) > 1

    def derive(
        self, values: Reals, low: Reals, high: Reals, law: ErrorLaw | None = None, beta: float = 0.0
    ) -> list[Derived]:
        """Every output from estimates of the rows and the ends of their bars, which hold together but for beta.

        Where the law of the rows is a joint one, the ends of ratios, variances and quantiles follow from that. Plain
        outputs keep their bars, which fail with a part of beta only; what is left of it is for the others.
        """
        if isinstance(law, LawOfQuestions):
            return law.derive(values)
        scale = np.append(np.ones(len(values)) if self.times is None else self.times, 1.0)
        columns, lows, highs = ((np.append(part, 0.0) / scale)[self.index] for part in (values, low, high))
        box = Box(columns, lows, highs)
        others = [form for form in self.forms if form.columns and not isinstance(form, Combination)]
        rows, each = JointRows.of(law, self.index, scale) if others else None, 0.0
        if rows is not None:
            plain = np.unique(self.index[:, [c for form in self.forms if form not in others for c in form.columns]])
            each = (beta - rows.chance_beyond(values - low, plain[plain >= 0], beta)) / len(others)
            rows = rows if rows.worth_it(each / beta) else None  # bars of all rows leave more to each number
        numbers = [form.of(box) if rows is None else _jointly(form, box, rows, each) for form in self.forms]
        alone = transform_ranks(self.forms, law, self.index, beta) if others and self.times is None else None
        if alone is not None:
            (form,) = self.forms
            assert isinstance(form, Quantile)
            numbers = [form.of(box, ends_of(form, box.values, [alone]))]
        return [number.judged(form, box) for number, form in zip(numbers, self.forms, strict=True)]


def _jointly(form: Form, box: Box, rows: JointRows, beta: float) -> Derived:
    """An output with the ends that follow from the joint law of its rows, where there are such."""
    match form:
        case Ratio():
            return form.of(box, ratio_ends(form, box.values, rows, beta))
        case Variance():
            return form.of(box, variance_ends(form, box.values, rows, beta))
        case Quantile() if form.columns:
            return form.of(box, quantile_ends(form, box.values, rows, beta))
    return form.of(box)
