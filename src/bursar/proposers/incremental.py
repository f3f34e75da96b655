"""Buy just what the log lacks to answer this question: one row, chosen for the least rise of what is spent.

The row is rarely the question itself. It leaves out what is known, and it leans on cells whose loss is below the
maximum: their loss may rise for free, since what is spent is the largest loss. `best_row` finds the row, and
`Rehearsal` says what least squares would know after it; neither depends on values, so everything is known beforehand.

What one question needs is often of little use to the next. So where ranges of one column are asked, more is bought with
each row that costs something: up to half as much again as that costs, and whatever fits below the largest loss then,
for ranges like those that were asked (`strategies.ranges_to_come`, `strategies.within_slack`).

Noise is Gaussian. Over n cells, M = sum q q^T / sigma^2 is what has been bought (the information), and a cell's loss is
half of l_j, by default M_jj. A new row q, at noise of variance one, leaves the query w with variance
w^T (M + q q^T)^-1 w and lifts cell j to l_j + q_j^2. What counts is the largest loss, the *cap*: cells below it have
slack, and what uses nothing but slack is free.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.queries import LARGEST_JOINT, LinearMap, Mask, Product, Steps
from bursar.errors import BudgetError, GoalError, QueryError
from bursar.estimation.estimate import Estimate, WeightedRows, meets
from bursar.estimation.gaussian_state import GaussianState
from bursar.estimation.least_squares import FEW_ROWS, Block, Classes, Reconstruction, count, first_cells, told_apart
from bursar.goal import Goal, GoalKind
from bursar.planner.grant import Verbs
from bursar.planner.offer import ACCURACIES, GAUSSIAN_MODES, Offer, Price, Proposer, Scope, Views
from bursar.planner.request import PlanningRequest
from bursar.strategies.integers import span_of, towards_zero
from bursar.strategies.measure import checked_gram
from bursar.strategies.optimal import FEW_CELLS
from bursar.strategies.ranges_to_come import AskedRange, RangesToCome
from bursar.strategies.within_slack import within_slack
from bursar.threads import one_thread
from bursar.views.measurements import products_of
from bursar.views.nodes import ranges_of

SMALLEST_SLACK = 1e-12
"""Slack below this share of the cap is none."""

SMALLEST_SHARE = 1e-12
"""No cell's dual weight falls below this, so that none divides by zero; a bound holds for all weights."""

LARGEST_GAP_OF_CAP = 0.02
"""How far, as a share of the rise, the cap may stay above the least possible."""

MARGIN_OF_FREE_ROWS = 1e-3
"""A row is taken for free only if it would leave the query this much below its target: rounding needs some room."""

MOST_STEPS = 60


@dataclass(frozen=True, kw_only=True, eq=False)
class RowPurchase:
    """A row to buy: a multiple of `blend` = query - M k for some k, which is what M lacks to answer the query."""

    row: Reals  # to be measured with noise of variance one
    blend: Reals
    cap: float  # the largest l_j + row_j^2
    bound: float  # no row that keeps the target has a lower cap
    free: bool  # nothing but slack is used
    steps: int


@dataclass(frozen=True, kw_only=True, eq=False)
class _Iterate:
    """What weights p give at a cap C with slack c = C - l: K = (M + diag(c/p))^-1 w and b = (c/p) K = w - M K.

    For every p of sum one, lower = w^T K is below what any row within the cap can reach; and b / sqrt(max g),
    g = b^2/c, is a row within the cap. With S = M^-1 and u = w^T S w, w^T S b = u - lower and
    b^T S b = u - lower - K.b, so what a multiple of b reaches takes no other matrix. Where M does not determine the
    query, u is infinite.
    """

    blend: Reals
    loads: Reals  # g
    lower: float
    inner: float  # K . b
    slope: float  # -d lower / dC

    def upper(self, before: float) -> float:
        """The variance of the query after the row b / sqrt(max g), from u before it."""
        noise = float(self.loads.max())
        if math.isinf(before):
            return self.lower - self.inner + noise
        gained = before - self.lower
        return before - gained**2 / (noise + gained - self.inner)

    def scaled(self, before: float, variance: float) -> Reals | None:
        """The least multiple of b that reaches the variance; None where none does."""
        if math.isinf(before):
            room = variance - self.lower + self.inner
        else:
            missing = before - variance
            room = (before - self.lower) * (variance - self.lower) / missing + self.inner
        return self.blend / math.sqrt(room) if room > 0 else None


@one_thread()
def best_row(
    information: ArrayLike,
    query: ArrayLike,
    variance: float,
    *,
    before: float = math.inf,
    losses: ArrayLike | None = None,
) -> RowPurchase:
    """The row after which the query has at most the given variance, at the least cap that can be found.

    `before` is the variance that the information gives it now: infinite where it is not determined.

    min over X >= 0 with diag X <= c of w^T (M + X)^-1 w = max over p >= 0 with sum p = 1 of
    w^T (M + diag(c/p))^-1 w, solved by p <- p sqrt(g / max g). First at the present cap, where a row would be free;
    then at falling and rising caps between the bounds that every iterate gives: `lower` is convex in C, so its tangent
    meets the target below the least cap, and a blend scaled to the target is a row with a cap that suffices.

    Guarantees: `bound <= cap`, and `cap` is at most that of asking the query itself. Cells without slack get 0 in a
    free row. M may be singular, and nothing at all may be known.
    Edge cases: a query of zeros and a target that is not positive are refused, and a query that has its target already.
    """
    M, w = checked_gram(information), np.asarray(query, np.float64)
    l = np.asarray(M.diagonal() if losses is None else losses, np.float64)  # noqa: E741
    if w.shape != (len(M),) or l.shape != w.shape or not (np.all(np.isfinite(w)) and np.any(w)):
        raise QueryError("a query is a list of finite numbers, one for each cell, and not all zero")
    if not (math.isfinite(variance) and 0 < variance < before):
        raise QueryError("a variance to keep is a positive number, below the present one")
    return _Search(M, w, l, variance, before).found()


class _Search:
    """The state of one search: weights and what has been certified so far."""

    def __init__(self, M: Reals, w: Reals, losses: Reals, variance: float, before: float) -> None:
        self.M, self.w, self.losses, self.variance, self.before = M, w, losses, variance, before
        self.present = float(losses.max())
        self.row, self.blend = w / math.sqrt(variance), w
        self.cap = float(np.max(losses + np.square(self.row)))  # of asking the query itself
        self.tiny = SMALLEST_SLACK * self.cap
        self.bound = self.present
        self.p = np.full(len(w), 1 / len(w))
        self.steps = 0

    def found(self) -> RowPurchase:
        if self.cap > self.present:
            row = self._within_slack()
            if row is not None:
                return self._purchase(row, self.present, free=True)
            self._least_cap()
        return self._purchase(self.row, self.cap, free=self.cap <= self.present)

    def _purchase(self, row: Reals, cap: float, *, free: bool) -> RowPurchase:
        return RowPurchase(row=row, blend=self.blend, cap=cap, bound=min(self.bound, cap), free=free, steps=self.steps)

    def _within_slack(self) -> Reals | None:
        """A row that keeps the target at the present cap, or None as soon as it is certain that there is none."""
        if self.present <= 0:
            return None
        open_cells, target = self.present - self.losses > self.tiny, (1 - MARGIN_OF_FREE_ROWS) * self.variance
        for _ in range(MOST_STEPS):
            now = self._iterate(self.present)
            if now is None or now.lower > self.variance:
                return None
            row = now.scaled(self.before, target) if now.upper(self.before) <= target else None
            if row is not None:
                self.blend = np.where(open_cells, now.blend, 0.0)
                return np.where(open_cells, row, 0.0)
        return None

    def _least_cap(self) -> None:
        cap = self.cap
        self.p = (self.p + 1 / len(self.p)) / 2  # cells that had no slack have some now, and regain weight slowly
        for _ in range(MOST_STEPS):
            now = self._iterate(cap)
            if now is None:
                return
            self.bound = max(self.bound, cap + (now.lower - self.variance) / now.slope)
            row = now.scaled(self.before, self.variance)
            if row is not None:
                enough = float(np.max(self.losses + np.square(row)))
                if enough < self.cap:
                    self.cap, self.row, self.blend = enough, row, now.blend
            rise = self.cap - self.present
            if self.cap - self.bound <= LARGEST_GAP_OF_CAP * rise:
                return
            # Far from the end the tangent's meeting point moves slowly; halving is safe.
            cap = self.bound if self.cap - self.bound < 0.5 * rise else (self.bound + self.cap) / 2

    def _iterate(self, cap: float) -> _Iterate | None:
        """One solution at the present weights, and the next weights; None where rounding has made it meaningless."""
        slack = np.maximum(cap - self.losses, self.tiny)
        ridge = slack / self.p
        matrix = self.M.copy()
        matrix[np.diag_indices_from(matrix)] += ridge
        try:
            factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            return None
        K = scipy.linalg.cho_solve(factor, self.w, check_finite=False)
        b = ridge * K
        g = np.square(b) / slack
        lower = float(self.w @ K)
        now = _Iterate(blend=b, loads=g, lower=lower, inner=float(K @ b), slope=float((np.square(K) / self.p).sum()))
        weights = np.maximum(self.p * np.sqrt(g / g.max()), SMALLEST_SHARE)
        self.p = weights / weights.sum()
        self.steps += 1
        return now


VARIANCE_OF_UNKNOWN = 1e8
"""Variance of what no row determines, over the largest variance, where knowledge is summed up over groups."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MergedGroups:
    """Merged cells in groups, one number each: what a new row would be made of."""

    classes: Classes  # per column: class of each of its cells; groups are the products of classes
    member: Integers  # the group of each merged cell
    query: Reals
    information: Reals
    losses: Reals  # twice the largest loss of a cell in the group

    def product(self, row: Integers) -> Product:
        """A row over groups as a question about the joint cells."""
        names = tuple(self.classes)
        place: Integers = np.zeros((), np.int64)
        for labels in self.classes.values():
            place = np.add.outer(place * count(labels), labels)
        sizes = tuple(len(labels) for labels in self.classes.values())
        return Product((Mask(names, sizes, Steps.dense(row[place.ravel()])),))


class Rehearsal:
    """A copy of a reconstruction that takes rows in without values."""

    def __init__(self, reconstruction: Reconstruction) -> None:
        self.reconstruction = reconstruction.copy()

    def take(self, product: Product, noise: Noise) -> bool:
        return self.reconstruction.add(Block(product, np.zeros(product.rows, np.int64), noise))

    def variance(self, query: Product) -> float:
        """The variance of a query of one row; infinite where the rows do not determine it."""
        return _variance_in(self.reconstruction.known, self.reconstruction.coordinates(query)[0])

    def scale(self, query: Product, row: Reals, variance: float) -> float | None:
        """The largest standard deviation of noise on a row (over merged cells) at which the query has the variance.

        With S the covariance, w^T S w - (w^T S r)^2 / (s^2 + r^T S r) where the query is determined already; otherwise
        the query is a multiple m of the row plus something known, and the variance m^2 s^2 + that of the rest.
        """
        state = self.reconstruction.known
        w, r = self.reconstruction.coordinates(query)[0], row * np.sqrt(state.cells)
        if state.spans(w[None]):
            gain = state.covaried(r[None])[0]
            spare = float(w @ gain) ** 2 / max(float(state.variances(w[None])[0]) - variance, 1e-300) - float(r @ gain)
        else:
            outside = state.outside(r)
            factor = float(outside @ w) / max(float(outside @ r), 1e-300)
            remainder = w - factor * r
            if not state.spans(remainder[None]):
                return None
            spare = (variance - float(state.variances(remainder[None])[0])) / max(factor**2, 1e-300)
        return math.sqrt(spare) if spare > 0 else None

    def losses(self) -> Reals:
        """Twice the loss of each merged cell, per row of a unit: the sum of q^2 / scale^2 over all rows."""
        weights = self.reconstruction.noisy / np.array([noise.scale**2 for noise in self.reconstruction.noises])
        result: Reals = weights @ np.square(self.reconstruction.rows) / self.reconstruction.state.cells
        return result

    def groups(self, query: Product, most: int) -> MergedGroups | None:
        """The cells that questions with few rows have told apart, this one included; only this one if they are many.

        Where measurements leave something open, those that any of them told apart, if these are not many: what is known
        must not cut through a group.
        """
        reconstruction = self.reconstruction
        for before in (
            reconstruction.question_classes if reconstruction.state.complete else reconstruction.classes,
            reconstruction.question_classes,
            {name: np.zeros_like(c) for name, c in reconstruction.question_classes.items()},
        ):
            classes = told_apart(before, query)
            if classes is not None and math.prod(count(labels) for labels in classes.values()) <= most:
                return self.grouped(query, classes)
        return None

    def grouped(self, query: Product, classes: Classes) -> MergedGroups:
        """What is known of the sums over groups of cells."""
        grid: Integers = np.zeros((), np.int64)
        for name, labels in classes.items():
            grid = np.add.outer(grid * count(labels), labels[first_cells(self.reconstruction.classes[name])])
        member = grid.ravel()
        size = math.prod(count(labels) for labels in classes.values())
        w = self.reconstruction.coordinates(query)[0] / np.sqrt(self.reconstruction.state.cells)
        values, losses = np.zeros(size), np.zeros(size)
        values[member] = w
        np.maximum.at(losses, member, self.losses())
        information = self._information(member, size)
        return MergedGroups(classes=classes, member=member, query=values, information=information, losses=losses)

    def _information(self, member: Integers, size: int) -> Reals:
        """About the sums over groups."""
        state = self.reconstruction.state
        root = np.sqrt(state.cells)
        if size == len(member):
            order = np.argsort(member)
            per_cell: Reals = (state.information / np.outer(root, root))[np.ix_(order, order)]
            return per_cell
        if not np.any(state.reduced_covariance):
            return np.zeros((size, size))  # rows of zeros tell nothing
        return information_of(_variances_of_sums(state, member))


def information_of(covariance: Reals) -> Reals:
    """The inverse of a covariance, with nothing negative on its diagonal.

    Where variances are too far apart for the arithmetic, the smallest count as larger: less is known then than might
    be, and a row is bought that could be better chosen. How exact it has to be is found without the inverse.
    """
    inverse = np.linalg.inv(covariance)
    result: Reals = (inverse + inverse.T) / 2
    if result.diagonal().min() >= 0:
        return result
    variances, turn = np.linalg.eigh(covariance)
    variances = np.maximum(variances, len(variances) * np.finfo(float).eps * variances[-1])
    return np.asarray((turn / variances) @ turn.T)


def _variances_of_sums(state: GaussianState, member: Integers) -> Reals:
    """The covariance of the sums over groups, where what no row determines has a very large variance of its own.

    With S = B^T C B and the groups' sums G of cells, G S G^T = (G B^T) C (G B^T)^T: never a matrix over all cells.
    """
    root = np.sqrt(state.cells)
    if state.basis is None:
        return _summed(_summed(state.reduced_covariance * np.outer(root, root), member).T, member)
    along = _summed((state.basis * root).T, member)  # (groups, rank)
    covariance = along @ state.reduced_covariance @ along.T
    if state.complete:
        return np.asarray(covariance)
    largest = np.einsum("ij,ij->j", state.reduced_covariance @ state.basis, state.basis).max()
    outside = np.diag(np.bincount(member, weights=state.cells)) - along @ along.T
    return np.asarray(covariance + VARIANCE_OF_UNKNOWN * largest * outside)


def _variance_in(state: GaussianState, query: Reals) -> float:
    return float(state.variances(query[None])[0]) if state.spans(query[None]) else math.inf


def _summed(matrix: Reals, member: Integers) -> Reals:
    """Rows added up by group; no group is empty."""
    order = np.argsort(member, kind="stable")
    firsts = np.flatnonzero(np.diff(member[order], prepend=-1))
    return np.asarray(np.add.reduceat(matrix[order], firsts, axis=0))


MOST_ROWS = FEW_ROWS
"""Most queries of a question: each may need a search of milliseconds, and many are better measured by a strategy."""

MOST_GROUPS = 384
"""Most groups of cells that a row is chosen over: a step of the search grows with the cube."""

MOST_CELLS_WITH_UNKNOWN = 512
"""Most merged cells where some are unknown: a row then has to be rounded within the span of the others."""

LARGEST_COEFFICIENT = 2**12
"""The largest coefficient of a row in whole numbers, about."""

SHARE_OF_NORMAL_VARIANCE = 0.99
"""Errors are nearly normal; a goal on their tail is aimed at with this share of the variance that normal ones need."""

SHARES_OF_VARIANCE = (1.0, 0.97, 0.9, 0.75)
"""What is tried where the tail of the discrete error turns out heavier."""

SAME_ROW_WITHIN = 1e-9
"""A row this close to a multiple of the question, as a share of its largest coefficient, is the question."""

SCALE_LESS_ROUNDING = 1 - 1e-9
"""Noise is set this much finer than the target needs, for the sake of rounding."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowPlan:
    """Rows to measure, each with its noise, and the weights of the log's rows and theirs in each answer."""

    rows: tuple[tuple[Product, Noise], ...]
    log_values: Reals
    weights: Reals
    law: WeightedRows
    after: Reconstruction  # what is known once they are measured
    rounding: float  # the largest error of a coefficient, as a share of the largest coefficient

    def events(self, version: int) -> tuple[Measured, ...]:
        return tuple(Measured(strategy=product, noise=noise, version=version) for product, noise in self.rows)


class Incremental(Proposer):
    """For each query the one Gaussian row that answers it, with the log, at the least rise of the largest loss."""

    name = "incremental"
    scope = Scope(goals=ACCURACIES, modes=GAUSSIAN_MODES)

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload = request.workload.map
        if not 1 <= workload.rows <= MOST_ROWS or sum(part.rows for part in products_of(workload)) != workload.rows:
            return []
        offers: list[Offer] = []
        for reconstruction in views.reconstructions.over(workload):
            offer = self._offer(reconstruction, request, views)
            if offer is None:
                continue
            offers.append(offer)
            if offer.free and views.total is None and not request.explain and views.possible(offer, workload):
                break  # it keeps the goal, and what is free ends the search
        return offers

    def _offer(self, reconstruction: Reconstruction, request: PlanningRequest, views: Views) -> Offer | None:
        if views.domain.cells(reconstruction.columns) > LARGEST_JOINT:
            return None
        plan = _plan(reconstruction, request)
        if plan is None:
            return None
        events = plan.events(views.version)
        try:
            price = Price(events=events, at_most=views.price(events))
        except BudgetError:
            return None
        more, at_most = _more(reconstruction, plan, price, request, views)
        used = int(np.count_nonzero(np.abs(plan.weights[:, : len(plan.log_values)]).max(axis=0, initial=0)))
        slack = ", within the slack of what was bought" if price.at_most == 0 else ""
        note = f"what {used} measured rows lack{slack}; coefficients rounded by {plan.rounding:.1g} of the largest"
        if more:
            note += f"; {sum(event.strategy.rows for event in more)} more rows for ranges like those asked"
        return Offer(
            proposer=self.name,
            price=Price(events=(*events, *more), at_most=at_most),
            law=plan.law,
            run=partial(_measure, plan, more),
            reuses=used,
            buys=len(plan.rows) + sum(event.strategy.rows for event in more),
            note=note,
            credit=at_most - price.at_most,
        )


def _measure(plan: RowPlan, more: tuple[Measured, ...], verbs: Verbs) -> Estimate:
    bought = [verbs.measure(product, noise).values for product, noise in plan.rows]
    for event in more:
        verbs.measure(event.strategy, event.noise)
    return Estimate(values=plan.weights @ np.concatenate([plan.log_values, *bought]), law=plan.law)


SHARE_AHEAD = 0.5
"""Of what a question costs: so much more is spent on ranges that may come."""

MOST_ENDS = 256
"""Most places at which ranges that may come begin or end: of wider ones too much would be told apart."""

LEAST_RISE = 0.003
"""A question that raises the largest loss by less than this share of it buys nothing more: that takes time."""

LARGEST_AHEAD = 2**16
"""The largest coefficient of rows for ranges that may come, in whole numbers."""

SHARE_OF_UNKNOWN = 1e-3
"""Of what is told ahead: about all that next to nothing is known of."""

SHARE_OF_COMMON = 1e-6
"""Cells that ranges to come hold less often than this, beside those that they hold most often, are left out."""


def buys_ahead(request: PlanningRequest, views: Views) -> bool:
    """Whether more than the question is bought, for ranges of its one column like those that were asked before.

    Not with other budgets, about several columns or one without order, or of so few cells that counts of each do as
    well, where the number of rows is public, where no range was noted, and where they end at too many places.
    """
    workload = request.workload.map
    if len(workload.attrs) != 1 or workload.rows > MOST_ROWS or views.mode not in GAUSSIAN_MODES:
        return False
    column = views.domain[workload.attrs[0]]
    if not column.ordered or column.size <= FEW_CELLS or _ranges(workload, 1.0) is None:
        return False
    if views.public_total() is not None:
        return False
    to_come = _to_come(request, views)
    return to_come is not None and len(to_come.ends()) <= MOST_ENDS


def _to_come(request: PlanningRequest, views: Views) -> RangesToCome | None:
    """Ranges like those that were asked, this question's among them; None where it is the first."""
    before = list(_asked_before(request, views))
    now = _ranges(request.workload.map, _variance(request.goal, request.workload.map.rows)) or []
    return RangesToCome.like([*before, *now], views.domain[request.workload.map.attrs[0]].size) if before else None


def _asked_before(request: PlanningRequest, views: Views) -> Iterator[AskedRange]:
    """The ranges of the question's column among the last questions."""
    for event in views.recently(views.domain.ordered(request.workload.map.attrs)):
        if event.version == views.version:
            yield from _ranges(event.strategy, event.noise.variance()) or []


def _ranges(queries: LinearMap, variance: float) -> list[AskedRange] | None:
    """Queries about one column as ranges of its cells; None where one of them is not a range."""
    if not isinstance(queries, Product) or len(queries.masks) != 1:
        return None
    ranges = ranges_of(queries.masks[0].steps)
    return None if ranges is None else [(low, high, variance) for low, high in ranges]


def _more(
    reconstruction: Reconstruction, plan: RowPlan, price: Price, request: PlanningRequest, views: Views
) -> tuple[tuple[Measured, ...], int]:
    """What to measure beside the rows for the question, and the price of all together.

    Nothing where the question costs nothing, or hardly anything, and where nothing may be spent on later questions.
    """
    nothing = (), price.at_most
    dearest = price.at_most + math.floor(SHARE_AHEAD * price.at_most)
    if price.at_most == 0 or len(reconstruction.columns) != 1 or views.credit(dearest, 1) == 0:
        return nothing
    if not buys_ahead(request, views):
        return nothing
    least, most = Rehearsal(reconstruction).losses().max(), Rehearsal(plan.after).losses().max()
    if most - least < LEAST_RISE * most:
        return nothing
    most += SHARE_AHEAD * (most - least)
    to_come = _to_come(request, views)
    bought = None if to_come is None else _filled(plan.after, to_come, most)
    if bought is None:
        return nothing
    event = Measured(strategy=bought[0], noise=bought[1], version=views.version)
    try:
        at_most = views.price((*price.events, event))
    except BudgetError:
        return nothing
    return ((event,), at_most) if at_most <= dearest else nothing


def _filled(after: Reconstruction, to_come: RangesToCome, most: float) -> tuple[Product, Noise] | None:
    """Rows for ranges to come that lift no loss above `most`; None where these end at too many places."""
    (column,), ends, size = after.columns, to_come.ends(), to_come.size
    from_ends = Product((Mask((column,), (size,), Steps.ranges(ends, np.full(len(ends), size), size)),))
    after = after.copy()
    if not len(ends) or not after.split_by(from_ends):
        return None
    classes = {column: np.searchsorted(ends, np.arange(size), side="right")}
    groups = Rehearsal(after).grouped(from_ends.row(0), classes)
    gram = to_come.gram(np.concatenate([[0], ends]))
    inside = np.flatnonzero(gram.diagonal() > SHARE_OF_COMMON * gram.max())
    some = np.ix_(inside, inside)
    information, room = groups.information[some], most - groups.losses[inside]
    # Next to nothing would be known of what rounding alone opens: so something is told about everything first.
    strengths, axes = np.linalg.eigh(information)
    information = (axes * np.maximum(strengths, 0.0)) @ axes.T  # rounding may have left something negative
    least = SHARE_OF_UNKNOWN * float(room.min())
    opened = math.sqrt(least) * axes[:, strengths < least].T
    filled = within_slack(information + opened.T @ opened, (1 - SHARE_OF_UNKNOWN) * room, gram[some])
    rows = np.concatenate([opened, filled])
    largest = float(np.abs(rows).max(initial=0.0))
    if largest == 0:
        return None
    scale = LARGEST_AHEAD / largest
    whole = np.zeros((len(rows), len(ends) + 1), np.int64)
    whole[:, inside] = towards_zero(scale * rows)
    whole = whole[whole.any(axis=1)]
    product = Product((Mask((column,), (size,), Steps.dense(whole[:, classes[column]])),))
    return product, Noise(kind=NoiseKind.GAUSSIAN, scale=scale)


def _plan(reconstruction: Reconstruction, request: PlanningRequest) -> RowPlan | None:
    """The first of a few targets whose plan keeps the goal."""
    goal, workload = request.goal, request.workload.map
    for share in SHARES_OF_VARIANCE:
        plan = _plan_for(reconstruction, workload, share * _variance(goal, workload.rows))
        if plan is None or _kept(plan.law, goal):
            return plan
    return None


def _variance(goal: Goal, rows: int) -> float:
    """The variance of each query that keeps the goal, if errors are normal."""
    if goal.kind is GoalKind.RMSE:
        return goal.amount**2
    return SHARE_OF_NORMAL_VARIANCE * (goal.amount / NormalDist().inv_cdf(goal.beta / (2 * rows))) ** 2


def _kept(law: WeightedRows, goal: Goal) -> bool:
    try:
        return meets(law, goal)
    except GoalError:
        return False


def _plan_for(reconstruction: Reconstruction, workload: LinearMap, variance: float) -> RowPlan | None:
    """One query after the other, each with what is known and planned so far; None where one cannot be bought."""
    rehearsal = Rehearsal(reconstruction)
    bought: list[tuple[Product, Noise]] = []
    rounding = 0.0
    for query in (part.row(row) for part in products_of(workload) for row in range(part.rows)):
        if not rehearsal.reconstruction.split_by(query, rows=len(bought) + 1):
            return None
        if query.largest() == 0 or rehearsal.variance(query) <= variance:
            continue
        bought_row = _row(rehearsal, query, variance)
        if bought_row is None or not rehearsal.take(bought_row.product, bought_row.noise):
            return None
        bought.append((bought_row.product, bought_row.noise))
        rounding = max(rounding, bought_row.rounding)
    weights = rehearsal.reconstruction.weights_of(workload)
    if not bought or weights is None:
        return None
    law = rehearsal.reconstruction.law_of(weights)
    return RowPlan(
        rows=tuple(bought),
        log_values=reconstruction.values,
        weights=weights,
        law=law,
        after=rehearsal.reconstruction,
        rounding=rounding,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Row:
    product: Product
    noise: Noise
    rounding: float


def _row(rehearsal: Rehearsal, query: Product, variance: float) -> _Row | None:
    """The best row for one query, in whole numbers, with the noise that just keeps the variance."""

    groups = rehearsal.groups(query, MOST_GROUPS)
    if groups is None:
        return None
    # The row is chosen as if the total were not known: what it is worth beside the total, its noise is set by.
    before = _variance_in(rehearsal.reconstruction.state, rehearsal.reconstruction.coordinates(query)[0])
    blend = best_row(groups.information, groups.query, variance, before=before, losses=groups.losses).blend
    alone = _multiple(blend, groups.query)
    whole, rounding = (groups.query, 0.0) if alone else _whole(rehearsal, groups, blend)
    if whole is None:
        return None
    scale = rehearsal.scale(query, whole[groups.member], variance)
    if scale is None:
        return None
    try:
        product = query if alone else groups.product(whole.astype(np.int64))
        return _Row(
            product=product, noise=Noise(kind=NoiseKind.GAUSSIAN, scale=SCALE_LESS_ROUNDING * scale), rounding=rounding
        )
    except (GoalError, QueryError):
        return None


def _multiple(blend: Reals, query: Reals) -> bool:
    """Whether the best row is the query itself, as it is where nothing is known about its people."""
    factor = float(blend @ query) / float(query @ query)
    return bool(np.abs(blend - factor * query).max() <= SAME_ROW_WITHIN * np.abs(blend).max())


def _whole(rehearsal: Rehearsal, groups: MergedGroups, blend: Reals) -> tuple[Reals | None, float]:
    """The row on a grid, towards zero, so that no cell's loss grows by rounding; and how much that moved it."""
    state = rehearsal.reconstruction.known
    grid = math.ceil(LARGEST_COEFFICIENT / np.abs(blend).max())
    rank, touched = state.rank, np.any(rehearsal.reconstruction.rows, axis=0)
    if rank == np.count_nonzero(touched):
        whole = towards_zero(grid * blend)
    elif len(touched) > MOST_CELLS_WITH_UNKNOWN:
        return None, 0.0
    else:
        rows = np.rint(rehearsal.reconstruction.rows / np.sqrt(state.cells))
        tightest_first = np.argsort(-groups.losses[groups.member], kind="stable")
        span = span_of(rows, rank, tightest_first)
        coefficients = span.whole(blend[groups.member], groups.query[groups.member], grid)
        if coefficients is None:
            return None, 0.0
        whole = np.zeros(len(blend))
        whole[groups.member] = coefficients
        if not np.array_equal(whole[groups.member], coefficients):
            return None, 0.0  # what is known cuts through a group
    moved = float(np.abs(whole - grid * blend).max() / LARGEST_COEFFICIENT)
    return whole if whole.any() else None, moved
