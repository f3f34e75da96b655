"""Three ways to make a synthetic table, and which one to take: by the error to expect, before anything is drawn.

    marginals    every marginal of the workload is measured as a whole, and a table is fitted to all of them
    rap          only the answers that a table gets most wrong are picked and measured, again and again
    both         columns and pairs are measured as wholes; then the table's worst answers are picked and measured

Nothing here looks at data: plans and errors follow from the workload, the noise and public numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from bursar.core.accounting import NoiseKind
from bursar.core.domain import Domain
from bursar.core.extensions.select import MOST_CANDIDATES
from bursar.core.source.source import MOST_ROWS
from bursar.errors import GoalError, QueryError
from bursar.synthetic.marginals.answers import Allowance, MarginalPurchase, whole_marginals
from bursar.synthetic.marginals.estimates import MarginalAccuracy
from bursar.synthetic.marginals.evidence import LogEvidence, Names
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.plan.workload import Method
from bursar.synthetic.rap.rounds import Adaptivity, adaptivity
from bursar.synthetic.rap.threshold_workload import MOST_TOGETHER, ThresholdWorkload
from bursar.synthetic.report import counted
from bursar.synthetic.table.table import pairs_within, plan_table
from bursar.tails.marginals import HALF, Cells, largest_error

if TYPE_CHECKING:
    from bursar.synthetic.rap.diagonal_search import SearchPlan

EVENLY = 0.5
"""Where marginals count differently, the part of the budget that all of them share evenly."""

FIRST = 0.5
"""The part of the budget for columns and pairs, where the rest is for what the table gets wrong."""

FEWER = 4
"""A table that knows every column and pair leaves fewer large errors to find: picks are divided by this."""


RELAXED_ROWS = 1000
"""n' of the published runs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What is wanted, and what may be spent on it; all of it public."""

    domain: Domain
    sets: tuple[Names, ...]
    allowance: Allowance
    weights: Mapping[Names, float] | None = None  # how much each set counts, where they do not all count alike
    size: int | None = None  # the number of rows, where that is public
    about: int = 1  # roughly the number of rows: a public bound where nothing better is known
    evidence: Sequence[LogEvidence] = ()  # what the log has already
    setting: Adaptivity | None = None  # T and K of RAP, where they are named
    relaxed: int = RELAXED_ROWS  # n' of RAP
    agree: int | None = None  # r of RAP's thresholds; None for marginals
    search: bool = False  # whether RAP searches for T and K

    @property
    def spend(self) -> Spend:
        """The same for single counts: a unit of k rows changes each by k."""
        return self.allowance.spend.part(self.allowance.contributions ** (-1 if self.allowance.pure else -2))

    @property
    def workload(self) -> ThresholdWorkload:
        """The counts that RAP picks from: marginals of the named sets, or their thresholds."""
        return ThresholdWorkload.of(self.domain, self.sets, self.agree)


@dataclass(frozen=True, kw_only=True, eq=False)
class TablePlan:
    """What a method would buy, and the largest error over all cells of the workload to expect.

    The error is one that is exceeded every other time: for marginals a bound that follows from the noise, for the
    others what cannot be found by picking, which supposes that whatever is found is put right.
    """

    method: Method
    error: float
    purchases: tuple[MarginalPurchase, ...] = ()
    adaptivity: Adaptivity | None = None
    picking: Spend | None = None  # for all rounds together, or all trials of a search
    search: SearchPlan | None = None  # instead of one T and K
    why: str = ""  # why it cannot be done, where it cannot

    @property
    def possible(self) -> bool:
        return math.isfinite(self.error)


def plans(task: Task) -> dict[Method, TablePlan]:
    """Every method's plan; one that cannot be carried out has an infinite error and says why."""
    by_method = {}
    methods = ((Method.MARGINALS, _marginals), (Method.RAP, _rap), (Method.BOTH, _both))
    for method, plan in methods:
        if task.agree is not None and method is not Method.RAP:
            continue  # the others are right about marginals, and say nothing about thresholds
        try:
            by_method[method] = plan(task)
        except (QueryError, GoalError) as refused:
            by_method[method] = TablePlan(method=method, error=math.inf, why=str(refused))
    return by_method


def plan_from_log(task: Task) -> dict[Method, TablePlan]:
    """A table of what is measured already; there is no bound where that does not say all of the workload."""
    try:
        error = _expected(task, ())
    except QueryError:
        error = math.inf
    return {Method.MARGINALS: TablePlan(method=Method.MARGINALS, error=error)}


def reasons(by_method: Mapping[Method, TablePlan], taken: TablePlan, task: Task) -> str:
    """In words: which method, what error to expect from each, and why this one."""
    cells = sum(task.domain.cells(columns) for columns in task.sets)
    listed = "; ".join(
        f"{plan.method.value} about {plan.error:,.0f} rows" if plan.possible else f"{plan.method.value} impossible"
        for plan in by_method.values()
    )
    best = min(by_method.values(), key=lambda plan: plan.error)
    why = "the least of these" if taken is best else "as asked for"
    things = (
        f"cells of {counted(len(task.sets), 'marginal')}"
        if task.agree is None
        else f"thresholds, {task.agree} columns of each of {counted(len(task.sets), 'set')}"
    )
    drowned = (
        " That is as many as there are rows: nothing can be seen for the noise." if taken.error >= task.about else ""
    )
    return f"{taken.method.value}: {why}. Largest error to expect over {cells:,} {things}: {listed}.{drowned}"


def _marginals(task: Task) -> TablePlan:
    purchases = marginal_purchases(task)
    return TablePlan(method=Method.MARGINALS, error=_expected(task, purchases), purchases=purchases)


def _expected(task: Task, purchases: Sequence[MarginalPurchase]) -> float:
    """The largest error over all cells, of what is in the log and what would be bought."""
    sources = [evidence.source for evidence in task.evidence]
    sources += [source for purchase in purchases for source in purchase.sources]
    accuracy = MarginalAccuracy(task.domain, sources, sized=task.size is not None)
    cells = []
    for columns in task.sets:
        variance = accuracy.variance(columns)
        if variance is None:
            raise QueryError(f"{', '.join(columns)} have too many cells together to be measured at once")
        cells.append(Cells(count=task.domain.cells(columns), variance=variance))
    return largest_error(cells, heavy=accuracy.heavy, beta=HALF)


def marginal_purchases(task: Task) -> tuple[MarginalPurchase, ...]:
    """Columns, pairs and the workload; where sets count differently, half of the budget by how much they count.

    What a set of weight w gets of that half is least for the weighted mean of errors: a part in proportion to w^(2/3)
    with Gaussian noise, w^(1/2) with Laplace noise. Weights within a factor of two are taken for equal, so that few
    purchases are made.
    """
    weights = task.weights
    if weights is None or len({weights[columns] for columns in task.sets}) <= 1:
        return plan_table(task.domain, task.sets, task.allowance, size=task.size, about=task.about)
    alike: dict[int, list[Names]] = {}
    for columns in task.sets:
        alike.setdefault(round(math.log2(weights[columns])), []).append(columns)
    power = 1 / 2 if task.allowance.pure else 2 / 3
    parts = {level: len(members) * 2.0 ** (level * power) for level, members in alike.items()}
    evenly = task.allowance.part(EVENLY)
    purchases = [*plan_table(task.domain, task.sets, evenly, size=task.size, about=task.about)]
    for level, members in sorted(alike.items()):
        share = (1 - EVENLY) * parts[level] / sum(parts.values())
        purchases += whole_marginals(task.domain, members, task.allowance.part(share))
    return tuple(purchases)


def _rap(task: Task) -> TablePlan:
    _check_picking(task)
    if task.search:
        return _search(task)
    setting = task.setting or adaptivity(task.workload, task.spend, size=task.about)
    error = unnoticed(task.workload.queries, task.spend, setting)
    return TablePlan(method=Method.RAP, error=error, adaptivity=setting, picking=task.spend)


def _search(task: Task) -> TablePlan:
    """The least error that a trial can be hoped to have: each has its part of the budget only."""
    from bursar.synthetic.rap.diagonal_search import SearchGrid, SearchPlan  # with RAP's compiler

    search = SearchPlan(
        workload=task.workload, spend=task.spend, sized=task.size is not None, grid=SearchGrid.of(task.workload)
    )
    error = min(unnoticed(task.workload.queries, search.rounds, setting) for setting in search.grid.settings)
    return TablePlan(method=Method.RAP, error=error, picking=task.spend, search=search)


def _both(task: Task) -> TablePlan:
    _check_picking(task)
    pairs = tuple(pair for pair in pairs_within(task.sets) if task.domain.cells(pair) <= MOST_ROWS)
    purchases = plan_table(task.domain, pairs, task.allowance.part(FIRST), size=task.size, about=task.about)
    spend = task.spend.part(1 - FIRST)
    full = adaptivity(task.workload, spend, size=task.about)
    setting = Adaptivity(
        rounds=math.ceil(full.rounds / math.sqrt(FEWER)), picks=math.ceil(full.picks / math.sqrt(FEWER))
    )
    error = unnoticed(task.workload.queries, spend, setting)
    return TablePlan(method=Method.BOTH, error=error, purchases=purchases, adaptivity=setting, picking=spend)


def unnoticed(queries: int, spend: Spend, setting: Adaptivity) -> float:
    """What picking cannot find, and the noise of what it finds.

    With Gumbel noise of scale g on m scores, an error of less than about g ln m does not stand out; what is measured
    is wrong by the largest of T K draws of noise, here the bound that is exceeded every other time.
    """
    total = setting.rounds * setting.picks
    half = spend.part(1 / 2)
    noise = half.noise(total)
    heavy = spend.kind is NoiseKind.LAPLACE
    drawn = largest_error([Cells(count=total, variance=noise.variance())], heavy=heavy, beta=HALF)
    return half.part(1 / setting.rounds).selection_scale(setting.picks) * math.log(max(queries, 2)) + drawn


def _check_picking(task: Task) -> None:
    if find_spec("numba") is None:
        raise QueryError("it needs a compiler: pip install numba")
    for columns in task.sets:
        if len(columns) > MOST_TOGETHER:
            raise QueryError(f"a marginal has at most {MOST_TOGETHER} columns here")
    if (cells := sum(task.domain.cells(columns) for columns in task.sets)) > MOST_CANDIDATES:
        raise QueryError(f"the workload has {cells:,} cells; {MOST_CANDIDATES:,} can be picked from")
