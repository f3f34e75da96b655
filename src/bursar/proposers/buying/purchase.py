"""Which precision to buy: candidate rows are refined or bought so that questions keep their error at the least loss.

State: the information M = sum_j q_j q_j^T / v_j of everything measured, over merged cells, and the loss L of each of
them. Candidates: rows that may be bought or refined, each with its present loss l_j per unit of its coefficients (zero
for a row that is new). With discrete Laplace noise of scale b the loss is 1/b and the variance 1 / (2 sinh^2(1/2b)),
so the precision 2 sinh^2(l/2); with Gaussian noise the loss is 1/(2 s^2) and the precision 2 l. Refined rows count
once, at their finest.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from statistics import NormalDist
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Measured, Mode, Noise, NoiseKind, Refined
from bursar.core.extensions.refine import rows_of
from bursar.core.queries import LinearMap
from bursar.errors import BudgetError, GoalError
from bursar.estimation.estimate import Estimate, WeightedRows, meets
from bursar.estimation.least_squares import Block, Finer, Reconstruction
from bursar.goal import GoalKind
from bursar.lazy_dataclass import dataclass
from bursar.planner.grant import Verbs
from bursar.planner.offer import Offer, Price, Views
from bursar.planner.request import PlanningRequest
from bursar.tails import near_tails, pitches
from bursar.views.measurements import products_of
from bursar.views.nodes import Box, Node

PRECISION_OF_UNMEASURED = 1e-9
"""Precision, as a share of what the questions need, that directions nobody has measured are given."""

SMALLEST_PRECISION_SHARE = 1e-14
"""The same as a share of the largest precision there is: less would be lost in the arithmetic."""

SECANT_STEPS = 60
LEVEL_TOLERANCE = 1e-4
"""The search stops at this relative width of the loss, or of what is kept below its bound."""

PRECISION_RANGE = 1e6
"""Precision is sought within this factor of what the questions need."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PrecisionSearch:
    """The least loss of candidate rows at which questions keep a variance or a tail, over one set of merged cells."""

    mode: Mode
    information: Reals  # (cells, cells)
    questions: Reals  # (questions, cells)
    candidates: Reals  # (rows, cells)
    present: Reals  # (rows,) the loss of each candidate per unit of its coefficients
    along: Reals | None = None  # (sums, cells) what the information is about, where that is sums of cells: then
    # `information` is (sums, sums)

    def level(self, variance: float, *, mean: bool) -> float | None:
        """The least loss to which all coarser candidates must be brought, so that the variances asked for keep a bound.

        The bound is on each of them, or on their mean. None where the candidates do not determine the questions,
        or the numbers are too far apart to tell.
        Rows all alike are not only simple: rows of one level are disjoint, so their losses do not add up, and making
        some finer than others costs as much as making all of them as fine.
        """

        def excess(after: Posterior) -> float:
            each = after.variances()
            return _log((each.mean() if mean else each.max(initial=0.0)) / variance)

        return self.level_by(excess, variance)

    def level_by(self, excess: Callable[[Posterior], float], variance: float) -> float | None:
        """The least loss at which an excess is not positive; `variance` says about where to look. None as for `level`.

        The excess falls as the loss grows: the logarithm of something that is about a power of it, best of its inverse.
        """
        held, need = self.held(variance), 1 / variance
        if held is None:
            return None

        def at(place: float) -> float:
            return excess(self.after(held, math.exp(place)))

        low, start, high = (math.log(self._loss(need * times)) for times in (1 / PRECISION_RANGE, 1.0, PRECISION_RANGE))
        least = math.log(max(self.present.min(initial=math.inf), math.exp(low)))  # below it nothing changes
        try:
            return _root(at, least, min(max(start, least), high), max(high, least))
        except np.linalg.LinAlgError:
            return None

    def after(self, held: PriorCovariance, level: float) -> Posterior:
        """What is known of the questions once no candidate is below a level of loss."""
        total = self._precision(np.maximum(self.present, level))
        # A Gaussian row is bought beside the one that is there; a Laplace row becomes the finer one.
        return Posterior(held=held, more=total - self._precision(self.present), total=total)

    def held(self, variance: float) -> PriorCovariance | None:
        """What is known now, for questions that are to keep about this variance; None where numbers are too far apart.

        Directions that nobody has measured get a little precision d, so that the information has the inverse X. With
        an orthonormal basis Q of the sums that it is about, X = Q (Q^T M Q + d)^-1 Q^T + (1 - Q Q^T) / d.
        """
        queries, size = np.concatenate([self.candidates, self.questions]), len(self.candidates)
        told = self.information if self.along is None else self.information @ self.along
        heard = self.information.diagonal() if self.along is None else np.einsum("ij,ij->j", told, self.along)
        least = max(PRECISION_OF_UNMEASURED / variance, SMALLEST_PRECISION_SHARE * float(heard.max(initial=0.0)))
        information, outside = self.information, None
        if self.along is not None:
            basis, corner = np.linalg.qr(self.along.T)
            information, inside = corner @ self.information @ corner.T, queries @ basis
            outside = queries - inside @ basis.T
            outside, queries = (outside - (outside @ basis) @ basis.T) / math.sqrt(least), inside
        try:
            solved = np.linalg.solve(information + least * np.eye(len(information)), queries.T)
        except np.linalg.LinAlgError:
            return None
        candidates, questions = queries[:size], queries[size:]
        base = np.einsum("ij,ji->i", questions, solved[:, size:])
        among, shared = candidates @ solved[:, :size], candidates @ solved[:, size:]
        if outside is not None:
            beyond, open_ = outside[:size], outside[size:]
            base = base + np.square(open_).sum(axis=1)
            among, shared = among + beyond @ beyond.T, shared + beyond @ open_.T
        return PriorCovariance(base=base, among=among, shared=shared)

    def _precision(self, losses: Reals) -> Reals:
        return 2 * np.square(np.sinh(losses / 2)) if self.mode is Mode.PURE else 2 * losses

    def _loss(self, precision: float) -> float:
        return 2 * math.asinh(math.sqrt(precision / 2)) if self.mode is Mode.PURE else precision / 2


@dataclass(frozen=True, kw_only=True, eq=False)
class PriorCovariance:
    """Covariances of questions and candidates before a purchase."""

    base: Reals  # variances of the questions
    among: Reals  # covariances of the candidates
    shared: Reals  # of candidates and questions


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """Variances and weights of the questions after candidates gained precision, by Woodbury's formula."""

    held: PriorCovariance
    more: Reals  # (rows,) precision that each candidate gains
    total: Reals  # (rows,) precision of what is measured of it by then

    def variances(self) -> Reals:
        """Of the questions."""
        gain = self.held.shared[self._changed]
        return np.asarray(self.held.base - np.einsum("ij,ij->j", gain, self._solved))

    def weights(self) -> Reals:
        """(questions, rows) how much each candidate's own measurement counts in each question."""
        shared = self.held.shared - self.held.among[:, self._changed] @ self._solved
        return np.asarray(shared.T * self.total)

    @cached_property
    def _changed(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.more > 0)

    @cached_property
    def _solved(self) -> Reals:
        inner = self.held.among[np.ix_(self._changed, self._changed)] + np.diag(1 / self.more[self._changed])
        return np.asarray(np.linalg.solve(inner, self.held.shared[self._changed]))


def _root(excess: Callable[[float], float], low: float, start: float, high: float) -> float | None:
    """exp(x) for the least x between low and high at which a falling function is not positive, if there is one.

    By the secant through the last two places; by halving where that leaves the bracket, or does not get on. It aims a
    hair below zero, so that what is found is on the right side.
    """
    x, slope, farthest, last = start, -1.0, high, (math.nan, math.inf)
    for _ in range(SECANT_STEPS):
        y = excess(x)
        low, high = (x, high) if y > 0 else (low, x)
        if -LEVEL_TOLERANCE <= y <= 0 or high - low <= LEVEL_TOLERANCE:
            break
        slope = (y - last[1]) / (x - last[0]) if math.isfinite(last[0]) else slope
        following = x - (y + LEVEL_TOLERANCE / 2) / slope if slope < 0 and abs(y) < 0.5 * abs(last[1]) else math.nan
        last, x = (x, y), following if low < following < high else (low + high) / 2
    return math.exp(high) if high < farthest or excess(high) <= 0 else None


def _log(ratio: float) -> float:
    return math.log(max(ratio, 1e-300))


Bought = Measured | Refined

MOST_CELLS = 1024
"""Most merged cells that are planned over: the plan inverts a matrix of that size."""

MOST_TRIES = 16
"""Most purchases whose exact tails are looked at. The first one is right nearly always."""

FIRST_LEVEL_ABOVE = 1e-3
"""How far above the approximate level the first one that is tried lies: as high as it would come to lie on average."""

LEVEL_STEP = 2e-3
"""By how much the second level that is tried differs from the first; twice as much from each to the next one."""

SLACK_NOT_WORTH_A_TRY = 0.01
"""Room that is not worth another try, as a share of the level."""

DISCRETE_BELOW_SCALE = 1.5
"""Below this scale whole numbers count, and the first level that keeps the goal may leave much room."""

LATTICE_STEP_SHARE = 2e-3
"""Lattices are taken into account where a whole step is more than this share of the error."""

OFF_LATTICE_SHARE = 0.1
"""And where other draws take a sum off its lattice by less than this share of a step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CandidateRows:
    """Rows that would answer a question, and where each stands in the log, if it does."""

    rows: LinearMap
    nodes: Sequence[Node | None]
    boxes: Sequence[Box] = ()  # of the rows, where they are boxes
    fewest: int = 0  # of the rows that any answer is a sum of, with coefficients 1 and -1; 0 where it may be none

    def losses(self, mode: Mode) -> Reals:
        """The present loss of each row per unit; zero for Gaussian rows, where what is bought adds to what is known."""
        if mode is not Mode.PURE:
            return np.zeros(len(self.nodes))
        return np.array([0.0 if node is None else 1 / node.noise.scale for node in self.nodes])


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelledPurchase:
    """Events that bring candidate rows to one level of loss, and what will be known after them."""

    candidates: CandidateRows
    level: float  # the loss per unit that no candidate row is below
    events: tuple[Bought, ...]
    places: tuple[Integers, ...]  # for each event, where its values go
    after: Reconstruction  # values of events are missing
    weights: Reals
    law: WeightedRows

    def offer(self, proposer: str, price: int, *, note: str, more: Sequence[Bought] = (), credit: int = 0) -> Offer:
        """The offer to carry out the events, and after them `more` that nobody asked for."""
        bought = sum(event.strategy.rows for event in self.events if isinstance(event, Measured))
        return Offer(
            proposer=proposer,
            price=Price(events=(*self.events, *more), at_most=price),
            law=self.law,
            run=partial(self._run, more),
            reuses=sum(node is not None for node in self.candidates.nodes),
            buys=bought,
            note=note,
            credit=credit,
            rows_for_later=len(self.candidates.nodes),
        )

    def _run(self, more: Sequence[Bought], verbs: Verbs) -> Estimate:
        values = self.after.values.copy()
        for event, places in zip(self.events, self.places, strict=True):
            values[places[places >= 0]] = _carried_out(event, verbs)[places >= 0]
        for event in more:
            _carried_out(event, verbs)
        return Estimate(values=self.weights @ values, law=self.law)


def _carried_out(event: Bought, verbs: Verbs) -> Integers:
    if isinstance(event, Measured):
        return verbs.measure(event.strategy, event.noise).values
    return verbs.refine(event.block, event.rows.tolist(), event.after).values


_FOUND: WeakKeyDictionary[PlanningRequest, dict[tuple[object, ...], LevelledPurchase | None]] = WeakKeyDictionary()
"""The purchases of requests that are being planned, by the log and the rows that they were found for."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PurchaseProblem:
    """Which level of loss candidate rows must be brought to for one question, and what that does to the question."""

    candidates: CandidateRows
    request: PlanningRequest
    views: Views
    reconstruction: Reconstruction
    search: PrecisionSearch

    @staticmethod
    def of(candidates: CandidateRows, request: PlanningRequest, views: Views) -> PurchaseProblem | None:
        """None where question and rows tell too many cells apart."""
        workload = request.workload.map
        reconstruction = views.reconstructions.on(
            views.domain.ordered([*workload.attrs, *candidates.rows.attrs])
        ).copy()
        parts = [*products_of(workload), *products_of(candidates.rows)]
        if not all(reconstruction.split_by(part) for part in parts) or len(reconstruction.state.cells) > MOST_CELLS:
            return None
        root = np.sqrt(reconstruction.state.cells)
        free, basis = reconstruction.free_of_total, reconstruction.state.basis
        information = reconstruction.state.reduced_information
        search = PrecisionSearch(
            mode=views.mode,
            information=free(free(information / np.outer(root, root)).T) if basis is None else information,
            along=None if basis is None else free(basis / root),
            questions=free(np.concatenate([reconstruction.coordinates(part) for part in products_of(workload)]) / root),
            candidates=free(
                np.concatenate([reconstruction.coordinates(part) for part in products_of(candidates.rows)]) / root
            ),
            present=candidates.losses(views.mode),
        )
        return PurchaseProblem(
            candidates=candidates, request=request, views=views, reconstruction=reconstruction, search=search
        )

    @cached_property
    def level(self) -> float | None:
        """About the least level that keeps the goal; for a goal on tails by the saddlepoint approximation."""
        goal = self.request.goal
        if goal.kind is GoalKind.RMSE:
            return self.search.level(goal.amount**2 * (1 - 1e-9), mean=True)
        level = self.search.level_by(self._excess, self._variance)
        return None if level is None else (1 + FIRST_LEVEL_ABOVE) * level

    @property
    def _variance(self) -> float:
        """About the variance that keeps a goal on tails: that of a normal error."""
        goal = self.request.goal
        return (goal.amount / NormalDist().inv_cdf(goal.beta / (2 * self.request.workload.map.rows))) ** 2

    def falls_short(self, level: float) -> bool:
        """Whether the least level that `level` would find is certainly above this one: one look instead of a search."""
        if self.request.goal.kind is not GoalKind.ERROR:
            return False
        held = self.search.held(self._variance)
        try:
            return held is not None and self._excess(self.search.after(held, level)) > 0
        except np.linalg.LinAlgError:  # a level so far from what the rows need that nothing can be told
            return False

    def cheapest(self) -> LevelledPurchase | None:
        """The purchase at the coarsest level that is found to keep the goal, which the exact tails decide.

        Found once for each request: where nodes are the question's own rows, two proposers ask for the same.
        """
        purchases = _FOUND.setdefault(self.request, {})
        key = (self.views.position, self.candidates.rows.digest, tuple(self.candidates.nodes))
        if key not in purchases:
            purchases[key] = self._cheapest()
        purchase = purchases[key]
        return None if purchase is None else replace(purchase, candidates=self.candidates)

    def _cheapest(self) -> LevelledPurchase | None:
        found, goal = self._searched(partial(meets, goal=self.request.goal, searching=True)), self.request.goal
        if found is not None and meets(found.law, goal):
            return found
        return self._searched(partial(meets, goal=goal))

    def _searched(self, keeps: Callable[[WeightedRows], bool]) -> LevelledPurchase | None:
        """The coarsest purchase that is found to keep the goal, in the eyes of whoever says so."""
        level, step, fails = self.level, LEVEL_STEP, 0.0
        best: LevelledPurchase | None = None
        for _ in range(MOST_TRIES):
            purchase = None if level is None else self._purchase(level)
            if level is None or purchase is None:
                break
            if keeps(purchase.law):
                best = purchase
                if fails == 0 and _scale_at(level, self.views.mode) > DISCRETE_BELOW_SCALE:
                    break
            else:
                fails = level
            if best is None:
                level, step = level * (1 + step), 2 * step
            elif fails == 0:
                level, step = level / (1 + step), 2 * step
            elif best.level > (1 + SLACK_NOT_WORTH_A_TRY) * fails:
                level = math.sqrt(fails * best.level)
            else:
                break
        return best

    @cached_property
    def least(self) -> int | None:
        """About the least price of what keeps the goal; None where there is nothing to buy, or too much."""
        return None if self.level is None else price_at(self.candidates, self.level, self.views)

    def price(self, purchase: LevelledPurchase) -> int | None:
        """What a purchase costs; None where that is beyond any budget."""
        try:
            return self.least if purchase.level == self.level else self.views.price(purchase.events)
        except BudgetError:
            return None

    def _excess(self, after: Posterior) -> float:
        """How far about the failure probability p is from the goal's, in log(-log p): that is linear in the log loss.

        What is not bought counts as one more draw.
        """
        laplace, amount = self.views.mode is Mode.PURE, self.request.goal.amount
        weights, spreads = np.abs(after.weights()), 1 / np.sqrt(after.total)
        other_spread = np.sqrt(np.maximum(after.variances() - np.square(weights) @ np.square(spreads), 0.0))
        scales = np.column_stack([weights * spreads, other_spread]) / (math.sqrt(2) if laplace else 1.0)
        reached = np.full(len(weights), amount)
        if (
            weights.max(initial=0.0) > LATTICE_STEP_SHARE * amount
        ):  # on a lattice a tail falls in steps: about its value half a step on
            pitch = pitches(weights, spreads)
            on = (pitch > 0) & (other_spread <= OFF_LATTICE_SHARE * pitch)
            pitch = pitch[on]
            first = np.maximum(np.ceil(amount / pitch - OFF_LATTICE_SHARE), 1.0)  # point of the lattice beyond the goal
            reached[on] = pitch * (np.where(amount % pitch == 0.0, amount / pitch + 1.0, first) - 0.5)
        kind = NoiseKind.LAPLACE if laplace else NoiseKind.GAUSSIAN
        each = float(near_tails(scales, kind, reached).mean())
        aim = self.request.goal.beta / len(weights)
        return math.log(math.log(aim) / math.log(min(max(each, 1e-300), 1 - 1e-6)))

    def _purchase(self, level: float) -> LevelledPurchase | None:
        events = _events_at(self.candidates, level, self.views)
        if events is None:
            return None
        after = self.reconstruction.copy()
        places = after.refine(
            Finer(event.block, event.rows, np.zeros(len(event.rows), np.int64), event.after)
            for event in events
            if isinstance(event, Refined)
        )
        for event in events:  # what is bought comes last
            if isinstance(event, Refined):
                continue
            start = len(after.values)
            for part in products_of(event.strategy):
                if not after.add(Block(part, np.zeros(part.rows, np.int64), event.noise)):
                    return None
            places.append(np.arange(start, len(after.values)))
        weights = after.weights_of(self.request.workload.map)
        if weights is None:
            return None
        return LevelledPurchase(
            candidates=self.candidates,
            level=level,
            events=events,
            places=tuple(places),
            after=after,
            weights=weights,
            law=after.law_of(weights),
        )


def price_at(candidates: CandidateRows, level: float, views: Views) -> int | None:
    """About what it costs to bring rows to a level; None where there is nothing to buy, or too much."""
    events = _events_at(candidates, level, views)
    try:
        return None if events is None else views.price(events)
    except BudgetError:
        return None


def least_price_at(candidates: CandidateRows, level: float, views: Views) -> int | None:
    """What that costs at least, found sooner: as if all rows had lost as much as the finest has.

    None where there is nothing to buy then, or too much.
    """
    missing = level - float(candidates.losses(views.mode).max(initial=0.0))
    if missing <= 0:
        return None
    try:
        event = Measured(strategy=candidates.rows, noise=_noise_at(missing, views.mode), version=views.version)
        return views.price((event,))
    except (BudgetError, GoalError):
        return None


def alone_fall_short(candidates: CandidateRows, level: float, request: PlanningRequest, views: Views) -> bool:
    """Whether rows of a level certainly leave larger errors than the goal's, as nothing that is known helps them.

    Let every answer be a sum a.n, |a_j| = 1, of k candidate rows n_j that are measured with precision p, and let m be
    the most precision that the log has at one cell. Take a vector with sum 1 inside each of the c candidates: along
    these the log has precision at most t = cm, so whatever it says of (a - w).n has a variance of at least
    |a - w|^2 / t. The best estimate gives n_j some weight w_j, and is no worse than the candidates alone:

        |w|^2 / p + |a - w|^2 / t <= |a|^2 / p,   so   |a_j - w_j| <= |a - w| <= sqrt(k t / p).

    So its error has k independent draws with weights of at least 1 - sqrt(k t / p), and its tail is no less than
    theirs, which is looked at one step further than the goal, since they are whole numbers.

    A row that was coarser before counts twice in this, in the log and as one of the candidates.

    Edge cases: False where it is not certain, as where one of the rows is finer already.
    """
    goal, draws = request.goal, candidates.fewest
    finest = candidates.losses(views.mode).max(initial=0.0)
    if goal.kind is not GoalKind.ERROR or draws == 0 or finest > level:
        return False
    log_precision = views.reconstructions.on(views.domain.ordered(candidates.rows.attrs)).most_precision
    precision = 1 / _noise_at(level, views.mode).variance()
    weight = 1 - math.sqrt(draws * len(candidates.nodes) * log_precision / precision)
    tail = _tail_of_draws(draws, _kind_in(views.mode), (goal.amount + 1) * math.sqrt(precision) / max(weight, 0.5))
    return weight > 0.5 and tail > goal.beta / request.workload.map.rows


@lru_cache(maxsize=4096)
def _tail_of_draws(draws: int, kind: NoiseKind, deviations: float) -> float:
    """About the chance that a sum of equal draws exceeds so many standard deviations of one of them."""
    scale = math.sqrt(0.5) if kind is NoiseKind.LAPLACE else 1.0
    return float(near_tails(np.full((1, draws), scale), kind, np.array([deviations]))[0])


def _events_at(candidates: CandidateRows, level: float, views: Views) -> tuple[Bought, ...] | None:
    """What brings rows to a level; None where that takes a noise that cannot be drawn."""
    try:
        return finer(candidates, level, views)
    except GoalError:
        return None


def finer(candidates: CandidateRows, level: float | Reals, views: Views) -> tuple[Bought, ...]:
    """What brings every coarser row to a level, or each to a level of its own: refinements, then purchases."""
    present = candidates.losses(views.mode)
    target = np.broadcast_to(level, present.shape)
    refined: dict[tuple[int, Noise, Noise], list[int]] = defaultdict(list)
    bought: dict[Noise, list[int]] = defaultdict(list)
    coarser = np.flatnonzero(target > present * (1 + 1e-6)).tolist()
    noises = {loss: _noise_at(loss, views.mode) for loss in set(target[coarser].tolist())}
    for row in coarser:
        node, noise = candidates.nodes[row], noises[float(target[row])]
        if node is None or views.mode is not Mode.PURE:
            bought[noise].append(row)
        else:
            refined[node.block, node.noise, noise].append(node.row)
    events: list[Bought] = [
        Refined(
            block=block,
            measured=views.nodes.strategies[block],
            rows=np.array(sorted(rows)),
            before=before,
            after=after,
            version=views.version,
        )
        for (block, before, after), rows in refined.items()
    ]
    events += [
        Measured(strategy=rows_of(candidates.rows, np.array(rows)), noise=noise, version=views.version)
        for noise, rows in bought.items()
    ]
    return tuple(events)


def _scale_at(loss: float, mode: Mode) -> float:
    """The scale of the noise whose loss per unit is this, to rounding, whether it can be drawn or not."""
    return 1 / loss if mode is Mode.PURE else 1 / math.sqrt(2 * loss)


def loss_at(scale: float, mode: Mode) -> float:
    """The loss per unit of a noise of this scale: the other way round."""
    return 1 / scale if mode is Mode.PURE else 1 / (2 * scale**2)


def _noise_at(loss: float, mode: Mode) -> Noise:
    return Noise(kind=_kind_in(mode), scale=_scale_at(loss, mode))


def _kind_in(mode: Mode) -> NoiseKind:
    return NoiseKind.LAPLACE if mode is Mode.PURE else NoiseKind.GAUSSIAN
