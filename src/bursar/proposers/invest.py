"""Buy a strategy for every question about some columns, once enough rent has been paid on them.

The rule of ski rental: with R the rent paid since the last such purchase, p the price of answering this question in
the cheapest other way and P the price of the strategy, buy as soon as R + p > theta P. For one set of columns, one goal
and theta = 1 that costs at most twice the better of always renting and buying at the start. As a bid: theta P - R.

Nodes are an investment themselves where there is one column: few of them make up any range of it, so they are no rent,
and under the cap of `views/baseline.py` with Laplace noise they are the only one.
With Gaussian noise, few ranges of one ordered column are left to `incremental`, which buys ahead itself. For questions
of more numbers the strategy is for ranges like those that were bought (`nearby_ranges`), and what is known is filled up
to it. Rent is then by how much single purchases raised what is spent: many rows fit into
the slack of others, and their loss, counted as rent, would invest too soon.
Over several columns a box takes the product of as many, which hardly another box shares: there they are rent like
everything else where anything may be bought. Under the cap they wait for a second question about the same columns, and
are no rent either. A strategy for some of the columns is rent on all of them, so
R + p > theta P is asked with its price as p: where that holds, it would not be the last purchase, and the larger
strategy is bought at once. Where a table of all cells is near, neither nodes over several columns nor a strategy
for some of them are bought before it (`Invest.near`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from statistics import NormalDist

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Measured, Mode, Noise, NoiseKind, from_units
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Mask, Product, Steps
from bursar.errors import BudgetError, GoalError
from bursar.estimation.estimate import ErrorLaw, Estimate, WeightedRows, meets, unknown_rows
from bursar.estimation.least_squares import (
    EXACT_TOTAL,
    EXACT_TOTAL_FAILS,
    Block,
    Classes,
    Reconstruction,
    first_cells,
    told_apart,
)
from bursar.goal import Goal, GoalKind
from bursar.planner.grant import Verbs
from bursar.planner.offer import Offer, Price, Proposer, PublicTotal, Views, from_log
from bursar.planner.request import PlanningRequest
from bursar.proposers.incremental import buys_ahead
from bursar.proposers.tree import all_nodes
from bursar.strategies.nearby_ranges import nearby, ranges_between
from bursar.strategies.universal import Universal, universal
from bursar.tails import Noises
from bursar.views.baseline import Investing
from bursar.views.measurements import ALL_ROWS, INVESTS, noise_of, products_of

Columns = tuple[str, ...]

MOST_CELLS = 1024
"""Most merged cells over which what is known and what is bought are put together beforehand."""

SHARE_OF_NORMAL_VARIANCE = 0.985
"""Of the variance that a goal would allow if errors were exactly normal; whole numbers are a little worse."""

BISECTION_STEPS = 60


@dataclass(frozen=True, kw_only=True, eq=False)
class Investment:
    """What to measure, with which noise, and what that does to the question."""

    product: Product
    noise: Noise
    law: ErrorLaw
    run: Callable[[Verbs], Estimate]
    total: PublicTotal | None = None


def by_itself(plan: Universal, noise: Noise, workload: LinearMap, total: PublicTotal | None) -> Investment:
    """The question is answered from the strategy alone, and from the number of rows where that is public."""
    answers = _Answers.of(plan, noise, workload, beside=total is not None)
    run = partial(_alone, plan, answers, noise, total)
    return Investment(product=plan.product, noise=noise, law=answers.law, run=run, total=total)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Answers:
    """Weights of a question on the rows of a strategy, which are the law's, and on the total where it takes part."""

    law: WeightedRows
    share: Reals | None

    @staticmethod
    def of(plan: Universal, noise: Noise, workload: LinearMap, *, beside: bool) -> _Answers:
        weights, noises = plan.weights(workload), Noises.alike(noise, plan.product.rows)
        if not beside:
            return _Answers(law=WeightedRows(weights=weights, noises=noises), share=None)
        weights, share = plan.beside_total(weights)
        return _Answers(law=WeightedRows(weights=weights, noises=noises, chance=EXACT_TOTAL_FAILS), share=share)

    def estimate(self, values: Integers, total: int) -> Estimate:
        estimates = self.law.weights @ values.astype(float)
        return Estimate(values=estimates if self.share is None else estimates + self.share * total, law=self.law)


def on_top(
    plan: Universal, reconstruction: Reconstruction, workload: LinearMap, goal: Goal, total: PublicTotal | None
) -> Investment | None:
    """As little of the strategy as the question needs beside what is known: Gaussian precisions add up.

    With M the information there is and p G that of the strategy at noise of precision p, a question w has the variance
    w^T (M + p G)^-1 w. With G^-1 = L L^T and L^T M L = U diag(m) U^T that is the sum of (U^T L^T w)^2 / (m + p).
    Where the total is known, cells are those that it leaves free.
    None where question and log tell too many cells apart.
    """
    reconstruction = reconstruction.copy()
    if total is not None:
        reconstruction.add(Block(ALL_ROWS, np.zeros(1, np.int64), EXACT_TOTAL))
    if (
        not all(reconstruction.split_by(part) for part in products_of(workload))
        or len(reconstruction.state.cells) > MOST_CELLS
    ):
        return None
    root = np.sqrt(reconstruction.state.cells)
    covariance = np.ones((1, 1))
    for column in plan.columns:
        labels = reconstruction.classes[column.mask.attrs[0]]
        into = (labels[:, None] == np.arange(int(labels.max()) + 1)).astype(np.float64)
        rows = into.T if column.inverse is None else into.T @ column.inverse
        covariance = np.kron(covariance, rows @ rows.T)
    information = reconstruction.state.information / np.outer(root, root)
    queries = np.concatenate([reconstruction.coordinates(part) for part in products_of(workload)]) / root
    if total is not None:
        everybody = covariance.sum(axis=1)
        covariance = (covariance - np.outer(everybody, everybody) / everybody.sum())[:-1, :-1]
        queries = reconstruction.free_of_total(queries)
        information = reconstruction.free_of_total(reconstruction.free_of_total(information).T)
        if not np.any(queries):
            return None
    lower = np.linalg.cholesky(covariance)
    strengths, turn = np.linalg.eigh(lower.T @ information @ lower)
    energy = np.square(queries @ lower @ turn)
    precision = _needed(energy, np.maximum(strengths, 0.0), goal)
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=1 / math.sqrt(precision))
    variances = energy @ (1 / (np.maximum(strengths, 0.0) + precision))
    law = TopUpLaw(
        reconstruction=reconstruction,
        product=plan.product,
        noise=noise,
        workload=workload,
        variances=np.asarray(variances),
        total=total,
    )
    return Investment(product=plan.product, noise=noise, law=law, run=law.run, total=total)


LARGEST_COEFFICIENT = 2**16
"""The largest coefficient, in whole numbers, of rows that fill up what is known."""

SHARE_OF_OTHERS = 1e-8
"""What rows that fill up tell about cells that were told apart before and that no range nearby does."""

SHARE_FOR_ROUNDING = 1e-4
"""Precision is this much above what is needed, for what rounding of the coefficients does."""


def filled_up(reconstruction: Reconstruction, workload: LinearMap, goal: Goal) -> Investment | None:
    """What is known about one ordered column, filled up to a strategy for ranges like those that were bought.

    With p G the information of that strategy at the precision p, M = F diag(m) F^T that there is and G = F F^T, rows
    worth F diag(max(p - m, 0)) F^T are bought: directions in which enough is known cost nothing, and together they tell
    at least p G. `on_top` adds p G whatever is known.
    None where question and log tell too many cells apart, and where nothing is missing.
    """
    reconstruction = reconstruction.copy()
    parts = products_of(workload)
    (column,) = reconstruction.columns
    question_classes: Classes | None = reconstruction.question_classes
    for part in parts:
        question_classes = None if question_classes is None else told_apart(question_classes, part)
    if question_classes is None:
        return None
    size = len(question_classes[column])
    ends = nearby(np.flatnonzero(np.diff(question_classes[column])) + 1, size)
    from_ends = Product((Mask((column,), (size,), Steps.ranges(ends, np.full(len(ends), size), size)),))
    if not all(reconstruction.split_by(part) for part in (*parts, from_ends)):
        return None
    labels, root = reconstruction.classes[column], np.sqrt(reconstruction.state.cells)
    if len(root) > MOST_CELLS:
        return None
    information = reconstruction.state.information / np.outer(root, root)
    queries = np.concatenate([reconstruction.coordinates(part) for part in parts]) / root
    touched = np.flatnonzero(((information.diagonal() > 0) | np.any(queries, axis=0))[labels])
    ends = np.union1d(ends, [touched[0], touched[-1] + 1])  # nothing that is known lies outside
    inside, strategy = ranges_between(first_cells(labels).tobytes(), ends.tobytes())
    lower = np.linalg.cholesky(strategy.T @ strategy + SHARE_OF_OTHERS * np.eye(strategy.shape[1]))
    inverse = scipy.linalg.solve_triangular(lower, np.eye(len(lower)), lower=True)
    strengths, turn = np.linalg.eigh(inverse @ information[np.ix_(inside, inside)] @ inverse.T)
    precision = _needed(np.square(queries[:, inside] @ inverse.T @ turn), np.maximum(strengths, 0.0), goal, fill=True)
    missing = np.maximum((1 + SHARE_FOR_ROUNDING) * precision - np.maximum(strengths, 0.0), 0.0)
    if not np.any(missing):
        return None
    rows = np.sqrt(missing)[:, None] * (lower @ turn).T
    scale = LARGEST_COEFFICIENT / float(np.abs(rows).max())
    whole = np.zeros((len(rows), len(root)), np.int64)
    whole[:, inside] = np.rint(scale * rows)
    whole = whole[whole.any(axis=1)]
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=scale)
    product = Product((Mask((column,), (size,), Steps.dense(whole[:, labels])),))
    after = information + whole.T @ (whole / noise.variance())
    solved = np.linalg.solve(after[np.ix_(inside, inside)], queries[:, inside].T)
    law = TopUpLaw(
        reconstruction=reconstruction,
        product=product,
        noise=noise,
        workload=workload,
        variances=np.einsum("ij,ji->i", queries[:, inside], solved),
        total=None,
    )
    return Investment(product=product, noise=noise, law=law, run=law.run)


@dataclass(frozen=True, kw_only=True, eq=False)
class TopUpLaw:
    """The law of least squares over what is known and the strategy; weights are found when a tail is asked for."""

    reconstruction: Reconstruction
    product: Product
    noise: Noise
    workload: LinearMap
    variances: Reals
    total: PublicTotal | None

    def tail(self, alpha: float, enough: float) -> float:
        if self.variances.max(initial=0.0) > alpha**2:
            return 1.0
        return self._rows.tail(alpha, enough)

    def half_widths(self, beta: float) -> Reals:
        return self._rows.half_widths(beta)

    def mean_square(self) -> float:
        return float(self.variances.mean())

    def run(self, verbs: Verbs) -> Estimate:
        values = verbs.measure(self.product, self.noise).values
        after = self._after(values)
        if self.total is not None:
            after.values[after.total] = self.total.values(verbs)[0]
        # The strategy determines every question on its columns, but rounding may hide that.
        return after.answer(self.workload) or Estimate(values=np.zeros(self.workload.rows), law=self._rows)

    @cached_property
    def _rows(self) -> WeightedRows:
        after = self._after(np.zeros(self.product.rows, np.int64))
        weights = after.weights_of(self.workload)
        return unknown_rows(self.workload.rows) if weights is None else after.law_of(weights)

    def _after(self, values: NDArray[np.int64]) -> Reconstruction:
        after = self.reconstruction.copy()
        after.add(Block(self.product, values, self.noise))
        return after


def _needed(energy: Reals, strengths: Reals, goal: Goal, *, fill: bool = False) -> float:
    """The least precision at which the variances keep the goal, by bisection to a relative 1e-4.

    It is added to what is known in each direction; or what is known is filled up to it.
    """
    mean = goal.kind is GoalKind.RMSE
    z = -NormalDist().inv_cdf(goal.beta / (2 * len(energy)))
    bound = goal.amount**2 * (1 - 1e-9) if mean else SHARE_OF_NORMAL_VARIANCE * (goal.amount / z) ** 2
    high = float(energy.sum(axis=1).max()) / bound  # enough where nothing is known
    low = high * 1e-9
    for _ in range(BISECTION_STEPS):
        if high <= 1.0001 * low:
            break
        middle = math.sqrt(low * high)
        each = energy @ (1 / (np.maximum(strengths, middle) if fill else strengths + middle))
        low, high = (low, middle) if (each.mean() if mean else each.max()) <= bound else (middle, high)
    return high


def _alone(plan: Universal, answers: _Answers, noise: Noise, total: PublicTotal | None, verbs: Verbs) -> Estimate:
    values = verbs.measure(plan.product, noise).values
    return answers.estimate(values, 0 if total is None else int(total.values(verbs)[0]))


MOST_ROWS = 2048
"""Most queries of a question that may call for an investment."""

MOST_COLUMN_SETS = 3
"""How many sets of columns are considered for one question: its own, and larger ones that were asked about."""

REFERENCE_SCALE = 2.0**20
"""The noise scale, large enough to be like continuous noise, at which a family's worst question is looked at once."""

SHARE_OF_REFERENCE = 0.999
"""Noise is set this much finer than the reference says, for what rounding to whole numbers does."""

SEARCH_STEPS = 14

SURE_SHARE_OF_NORMAL, TAILS_MOVE_BY = 0.85, 0.02
"""Errors hardly ever reach less far than this share of normal ones; and by how much a bound on tails that is not
tight may move a reach."""

RENT_WORTH_PLANNING = 4.0
"""What is missing of a strategy is looked at once the rent is this part of what would pay for the whole of it."""


NEAR = 12
"""A table of all cells is worth waiting for where it costs at most this many times what the question does."""


class Invest(Proposer):
    """Ski rental: a strategy for every question about some columns is bought once enough rent was paid on them.

    `theta` says from which share of the price on rent justifies buying: one per mode, fixed in the preset.

    Without `top_up` the strategy is bought as a whole with Gaussian noise too, and answers without other rows. `rival`
    is asked beside it anyway: where it is certainly cheaper, no time is spent on how much noise a strategy may have.
    """

    name = INVESTS

    def __init__(self, *, theta: dict[Mode, float], top_up: bool = True, rival: Proposer | None = None) -> None:
        self._theta, self._top_up, self._rival = theta, top_up, rival
        self._plans: dict[tuple[str, tuple[str, ...], Mode], Universal | None] = {}
        self._reaches: dict[_Reaching, float] = {}
        self._least_reaches: dict[_Reaching, float] = {}

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload = request.workload.map
        if request.goal.kind is GoalKind.SPEND or not 1 <= workload.rows <= MOST_ROWS:
            return []
        column_sets = _candidates(request, views)
        if views.mode is not Mode.PURE and buys_ahead(request, views):  # `incremental` does, for ranges of one column
            column_sets = [columns for columns in column_sets if len(columns) > 1]
        if not request.explain and all(self._certainly_beaten(columns, request, views) for columns in column_sets):
            return []
        candidates = [self._offer(columns, request, views) for columns in column_sets]
        offers = sorted((offer for offer in candidates if offer is not None), key=lambda offer: offer.bid)
        larger = [offer for offer in offers[1:] if offer.buys > offers[0].buys and offer.bid < offers[0].price.at_most]
        return (larger or offers)[:1]

    def known(self, request: PlanningRequest, views: Views) -> Offer | None:
        """What a strategy that was bought says by itself, if that keeps the goal, as it does for all it was bought for.

        Least squares over everything that is known looks at few sets of columns, and has the least variance, not always
        the least tail.
        """
        workload = request.workload.map
        if request.goal.kind is GoalKind.SPEND or workload.rows > MOST_ROWS or not products_of(workload):
            return None
        for columns in _candidates(request, views):
            plan = self._plan(views.domain, columns, views.mode) if _may_be_bought(columns, views) else None
            record = None if plan is None else views.measurements.finest.get(plan.product.digest)
            if plan is None or record is None:
                continue
            total = views.measurements.total
            answers = _Answers.of(plan, noise_of(record), workload, beside=total is not None)
            if meets(answers.law, request.goal):
                return _free(record, answers.estimate(record.values, total or 0))
        return None

    def near(self, request: PlanningRequest, views: Views) -> Columns | None:
        """All columns that were asked about together with these, where a strategy for all questions about them costs
        little more than a few questions do; None elsewhere.

        What may be spent for later questions waits for that: nodes, or a strategy for some of the columns, would use it
        up, and be of no use once the whole is there. That is so where the whole is a table of all cells, and nodes are
        some of these; nodes of longer columns are ranges, and cheaper.
        """
        if views.mode is not Mode.PURE or views.investing is None or request.goal.kind is GoalKind.SPEND:
            return None
        key = (Invest.near, request.workload.map.digest, request.goal)
        return views.remember(key, partial(self._near, request, views, views.investing))

    def _near(self, request: PlanningRequest, views: Views, investing: Investing) -> Columns | None:
        columns = max(_candidates(request, views), key=len, default=())
        plan = self._plan(views.domain, columns, views.mode) if len(columns) > 1 else None
        if plan is None or not all(column.inverse is None for column in plan.columns):
            return None
        beside = self._top_up and views.public_total() is not None
        try:
            scale = self._unit(plan, columns, request, views, beside=beside) * plan.sensitivity
            whole = Measured(
                strategy=plan.product, noise=Noise(kind=NoiseKind.LAPLACE, scale=scale), version=views.version
            )
            price = views.price((whole,))
        except (BudgetError, GoalError):
            return None
        question = investing.room.baseline.empty_book().price(investing.room.question.plain)
        return columns if price <= NEAR * question else None

    def _certainly_beaten(self, columns: tuple[str, ...], request: PlanningRequest, views: Views) -> bool:
        """Whether a strategy with too much noise to keep the goal would already cost too much to make a difference.

        It makes one where it bids no more than the rival asks, or where it is cheaper than what bids with credit for
        rows; beside a rival that is free, where it is free as well. Prices grow as the noise falls.
        """
        plan, rent = self._with_rent(columns, views)
        if plan is None:
            return True
        rivals = [] if self._rival is None else self._rival.offers(request, views)
        rival = min(rivals, key=lambda offer: offer.price.at_most, default=None)
        total, goal = views.public_total(), request.goal
        if rival is None or views.mode is not Mode.PURE or views.total is not None or goal.kind is not GoalKind.ERROR:
            return False
        credited = [offer.price.at_most for offer in views.rivals if offer.credit > 0]
        limit = 0 if rival.free else max([math.ceil((rival.price.at_most + rent) / self._theta[views.mode]), *credited])
        worst = _Reaching.of(plan, columns, request, views, beside=total is not None)
        try:
            if worst not in self._least_reaches:
                self._least_reaches[worst] = _least_reach(worst.questions(plan), plan.mode, worst.beta)
            noise = Noise(kind=NoiseKind.LAPLACE, scale=_scale(goal, self._least_reaches[worst]))
        except GoalError:
            return False  # finer noise may be possible, or there is nothing to offer
        try:
            return views.price((Measured(strategy=plan.product, noise=noise, version=views.version),)) > limit
        except BudgetError:
            return True

    def _with_rent(self, columns: tuple[str, ...], views: Views) -> tuple[Universal | None, int]:
        """The strategy for some columns, and the rent that was paid on them; no strategy where it is not due."""
        if len(columns) == 1 and views.mode is Mode.PURE and views.investing is not None:
            return None, 0  # nodes of one column are bought for all questions about it: a strategy beside pays twice
        plan = self._plan(views.domain, columns, views.mode)
        if plan is None:
            return None, 0
        shared = all_nodes if len(columns) == 1 or views.investing is not None else None
        if self._fills(plan, views):
            rent = views.rents.risen(columns, all_nodes)
        else:
            rent = views.rents.since(columns, self.name, partial(_is, plan.product.digest), shared)
        return (None, 0) if rent == 0 else (plan, rent)

    def _offer(self, columns: tuple[str, ...], request: PlanningRequest, views: Views) -> Offer | None:
        plan, rent = self._with_rent(columns, views)
        if plan is None:
            return None
        theta = self._theta[views.mode]
        try:
            investment = self._investment(plan, columns, request, views, least=RENT_WORTH_PLANNING * rent / theta)
            price = None if investment is None else _price(investment, views)
        except (BudgetError, GoalError):
            return None
        if investment is None or price is None:
            return None
        credit = price.at_most - math.ceil(theta * price.at_most) + rent
        # One dear question about more columns is no sign that others about these will come.
        first = views.investing is not None and not views.investing.room.repeated
        waits = self.near(request, views) not in (None, columns)
        return Offer(
            proposer=self.name,
            price=price,
            law=investment.law,
            run=investment.run,
            buys=investment.product.rows,
            note=_note(columns, rent, theta * from_units(price.at_most), views),
            credit=0 if first or waits else views.credit(price.at_most, credit),
        )

    def _investment(
        self, plan: Universal, columns: tuple[str, ...], request: PlanningRequest, views: Views, *, least: float
    ) -> Investment | None:
        """With Laplace noise the strategy for the family's worst question; with Gaussian noise what is still missing.

        Laplace noise is dear to top up, so the whole is bought at once. None where the whole is far from being due.
        """
        total = views.public_total() if self._top_up else None
        scale = self._unit(plan, columns, request, views, beside=total is not None) * plan.sensitivity
        workload = request.workload.map
        if views.mode is Mode.PURE or not self._top_up:
            kind = NoiseKind.LAPLACE if views.mode is Mode.PURE else NoiseKind.GAUSSIAN
            return by_itself(plan, Noise(kind=kind, scale=scale), workload, total)
        whole = Noise(kind=NoiseKind.GAUSSIAN, scale=scale)
        if views.price((Measured(strategy=plan.product, noise=whole, version=views.version),)) > least:
            return None
        reconstruction = views.reconstructions.on(columns)
        filled = filled_up(reconstruction, workload, request.goal) if self._fills(plan, views) else None
        above = filled or on_top(plan, reconstruction, workload, request.goal, total)
        return above or by_itself(plan, whole, workload, total)

    def _fills(self, plan: Universal, views: Views) -> bool:
        """Whether what is known is filled up to a strategy for ranges like those that were asked."""
        gaussian = self._top_up and views.mode is not Mode.PURE
        return gaussian and plan.ranges and views.public_total() is None

    def _plan(self, domain: Domain, columns: tuple[str, ...], mode: Mode) -> Universal | None:
        key = (domain.digest, columns, mode)
        if key not in self._plans:
            self._plans[key] = universal(domain, columns, mode)
        return self._plans[key]

    def _unit(
        self, plan: Universal, columns: tuple[str, ...], request: PlanningRequest, views: Views, *, beside: bool
    ) -> float:
        """The noise per sensitivity at which the worst question of the family keeps the request's goal.

        `beside` a known total, that is another question.
        """
        goal = request.goal
        worst = _Reaching.of(plan, columns, request, views, beside=beside)
        questions = worst.questions(plan)
        if goal.kind is GoalKind.RMSE:
            each = 2.0 if views.mode is Mode.PURE else 1.0
            return goal.amount / math.sqrt(each * float(np.square(plan.sensitivity * questions).sum(axis=1).max()))
        if worst not in self._reaches:
            self._reaches[worst] = max(_reach(row, plan.mode, worst.beta) for row in questions)
        return _scale(goal, self._reaches[worst]) / plan.sensitivity


@dataclass(frozen=True)
class _Reaching:
    """The worst questions of a family of them, and how likely their errors may reach beyond some bound."""

    domain: str
    columns: tuple[str, ...]
    mode: Mode
    beta: float
    beside: bool  # a known total

    @staticmethod
    def of(
        plan: Universal, columns: tuple[str, ...], request: PlanningRequest, views: Views, *, beside: bool
    ) -> _Reaching:
        beta = request.goal.beta / request.workload.map.rows
        return _Reaching(views.domain.digest, columns, plan.mode, beta, beside)

    def questions(self, plan: Universal) -> Reals:
        worst = plan.worst_beside_total if self.beside else plan.worst[None]
        if not np.any(worst):
            raise GoalError("the total tells everything")
        return worst


def _scale(goal: Goal, reach: float) -> float:
    """The scale of the noise at which errors keep the goal that reach so far at the reference scale."""
    amount = max(goal.amount - 0.5, goal.amount / 2)  # whole numbers reach an error half a step sooner
    return SHARE_OF_REFERENCE * amount * REFERENCE_SCALE / reach


def _may_be_bought(columns: tuple[str, ...], views: Views) -> bool:
    """Whether something as large as a strategy for every question was measured: it has a row for each cell, or more.

    Which strategy that would be takes long to find for long columns.
    """
    cells = views.domain.cells(columns)
    blocks = views.measurements.blocks.get(columns, ())
    return any(isinstance(block, Block) and block.product.rows >= cells for block in blocks)


class Invested(Proposer):
    """Answers, free, from the strategies that were bought: asked before those who would buy something else."""

    name = Invest.name

    def __init__(self, invest: Invest) -> None:
        self._invest = invest

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        key = (self, request.workload.map.digest, request.goal)
        offer = views.remember(key, lambda: self._invest.known(request, views))
        return [] if offer is None else [offer]


def _free(record: Record, estimate: Estimate) -> Offer:
    note, reuses = f"the strategy that was measured before, record {record.position}", len(record.values)
    run = partial(from_log, estimate)
    return Offer(proposer=Invest.name, price=Price(), law=estimate.law, run=run, reuses=reuses, note=note)


def _note(columns: tuple[str, ...], rent: int, due: float, views: Views) -> str:
    """Under shares it says nothing of the columns and the rent: both would tell what other analysts have asked."""
    if views.analyst is not None:
        return "answers many questions at once, where enough has been spent on them one by one"
    return f"answers all about {', '.join(columns)}; rent so far {from_units(rent):.3g}, bought at {due:.3g}"


def _candidates(request: PlanningRequest, views: Views) -> list[tuple[str, ...]]:
    """The question's own columns; then all that were asked about together with them, and the sets in between."""
    asked_columns = frozenset(request.workload.map.attrs)
    measured = views.rents.sets()
    if not any((columns and columns <= asked_columns) or asked_columns <= columns for columns in measured):
        return []  # no rent was paid on anything that would answer this
    everything = asked_columns.union(*measured)
    between = sorted((columns for columns in measured if asked_columns < columns), key=lambda c: (len(c), sorted(c)))
    sets = dict.fromkeys([asked_columns, everything, *between])
    return [views.domain.ordered(columns) for columns in sets][:MOST_COLUMN_SETS]


REMEMBERED_REACHES = 64
"""How many reaches of questions are remembered: columns of the same sizes have the same worst questions."""


def _reach(question: Reals, mode: Mode, beta: float) -> float:
    """How far a question's error reaches, with probability beta, at noise of the reference scale."""
    return _found_reach(question.tobytes(), mode, beta)


@lru_cache(REMEMBERED_REACHES)
def _found_reach(question: bytes, mode: Mode, beta: float) -> float:
    law = _at_reference_scale(np.frombuffer(question), mode)
    low, high = _least_and_most(law)
    for _ in range(SEARCH_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _within(law, middle, beta) else (middle, high)
    return high


def _least_reach(questions: Reals, mode: Mode, beta: float) -> float:
    """What the largest `_reach` of the questions is not below, by one look: most reach about as far as normal ones."""
    widest = questions[int(np.argmax(np.square(questions).sum(axis=1)))]
    return _found_least_reach(widest.tobytes(), mode, beta)


@lru_cache(REMEMBERED_REACHES)
def _found_least_reach(question: bytes, mode: Mode, beta: float) -> float:
    law = _at_reference_scale(np.frombuffer(question), mode)
    least, most = _least_and_most(law)
    guess = min(-SURE_SHARE_OF_NORMAL * NormalDist().inv_cdf(beta / 2) * least, most)
    return guess if guess > least and not _within(law, (1 + TAILS_MOVE_BY) * guess, beta) else least


def _at_reference_scale(question: Reals, mode: Mode) -> WeightedRows:
    kind = NoiseKind.LAPLACE if mode is Mode.PURE else NoiseKind.GAUSSIAN
    weights = question[np.abs(question) > 0][None]
    noise = Noise(kind=kind, scale=REFERENCE_SCALE)
    return WeightedRows(weights=weights, noises=Noises.alike(noise, weights.shape[1]))


def _least_and_most(law: WeightedRows) -> tuple[float, float]:
    """Where a reach is looked for."""
    spread = math.sqrt(law.mean_square())
    return spread, 64 * spread


def _within(law: WeightedRows, amount: float, beta: float) -> bool:
    return meets(law, Goal(kind=GoalKind.ERROR, amount=amount, confidence=1 - beta))


def _is(digest: str, strategy: LinearMap) -> bool:
    return strategy.digest == digest


def _price(investment: Investment, views: Views) -> Price:
    event = Measured(strategy=investment.product, noise=investment.noise, version=views.version)
    events = (event, *(() if investment.total is None else investment.total.events))
    return Price(events=events, at_most=views.price(events))
