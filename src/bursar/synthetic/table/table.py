"""A table of synthetic rows whose marginals are near those of the data, from noisy counts alone; and its errors.

Columns by themselves, pairs of columns and the workload's own marginals are measured. The table starts with every joint
cell, or with a tree of dependent pairs where these are too many; its rows are then weighted until they follow first the
pairs, then the larger marginals, each as far as it stands out from the ones before; and drawn by weight. Where a
workload is too large for that, the weights are corrected in rounds of picking and measuring, as in RAP; but what is
corrected are rows that already follow every column and pair, not relaxed rows that begin at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.random import Generator

from bursar.arrays import Codes, Integers, Reals
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.source.source import MOST_ROWS
from bursar.errors import QueryError
from bursar.planner.grant import Verbs
from bursar.synthetic.entropy import entropy
from bursar.synthetic.marginals.answers import (
    Aim,
    Allowance,
    MarginalAnswers,
    MarginalPurchase,
    Sets,
    Shape,
    buy,
    marginals_from,
    ordered_sets,
    whole_marginals,
)
from bursar.synthetic.marginals.estimates import Consistent
from bursar.synthetic.marginals.evidence import Names
from bursar.synthetic.plan.bought import Bought, RunProgress
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.rap.rounds import Adaptivity, Round
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload
from bursar.synthetic.table.fit import (
    CACHED_CELL_NUMBERS,
    FitProgress,
    Target,
    cell_numbers,
    column_shares,
    dispersion,
    fit_weights,
    pair_shares,
    penalised_target,
    resample,
    sample_tree,
    threshold,
)
from bursar.tails.marginals import Cells, largest_error

WORKLOAD_SHARE, SUPPORT_SHARE = 0.7, 0.1
"""Of the budget, for the workload's own marginals, which fix the largest error; and for columns, for pairs inside the
workload's sets and for all other pairs, each of the three. A table is used beyond its workload, and pairs carry far."""

MOST_OTHER_PAIR_CELLS = 2**18
"""Pairs beyond the workload are measured from the smallest on, up to this number of cells together."""

MOST_JOINT_CELLS = 2**20
"""Most joint cells of all columns that are all weighted; of more, some are drawn."""

SUPPORT_FACTOR = 4
"""Rows that are weighted, for each row of the data."""

FEWEST_SUPPORT_ROWS, MOST_SUPPORT_ROWS = 2**15, 2**19
"""Bounds on the number of rows that are weighted."""

INDEPENDENT_SHARE = 0.1
"""The part of these rows with independent columns, so that no joint cell of values that occur is out of reach."""

INDEPENDENT_WEIGHT = 0.01
"""What those rows weigh at first: the tree is the better guess."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticTable:
    """Synthetic rows, as codes of the domain's cells, and the answers that they were fitted to."""

    domain: Domain
    codes: Codes  # a row each, a column for each of the domain's
    answers: MarginalAnswers

    @property
    def names(self) -> Names:
        return self.domain.names

    def counts(self, columns: Sequence[str]) -> Reals:
        """A marginal of the table, scaled to the number of rows of the data, public or estimated."""
        names = self.domain.ordered(columns)
        cells = np.bincount(cell_numbers(self.domain, self.codes, names), minlength=self.domain.cells(names))
        scale = np.float64(self.answers.consistent.total() / len(self.codes))
        return cells.reshape(self.domain.sizes(names)).astype(np.float64) * scale


def plan_table(
    domain: Domain,
    sets: Sequence[Names],
    allowance: Allowance,
    *,
    size: int | None = None,
    about: int | None = None,
) -> tuple[MarginalPurchase, ...]:
    """Whole marginals: every column, every pair inside a set, other pairs, and the sets themselves.

    Columns aim at total variation; of the others only cells count that stand out, so they aim at the largest error.

    Guarantees: the purchases cost the allowance together, at most. The data are not looked at.
    Edge cases: sets and pairs are left out that have more cells than can be measured at once, and all pairs where noise
    would drown any count that `size` rows can give, or inside a single set: pairs tie sets to each other, and those of
    one set are sums of its cells. Other pairs are left out where their noise would be more than all rows, of which
    there are `about` so many where the number is not public. What is left out goes to the others.
    """
    measurable = [columns for columns in sets if 1 < domain.cells(columns) <= MOST_ROWS]
    columns = [(name,) for name in domain.names if domain[name].size > 1 and (name,) not in measurable]
    tied = () if len(sets) == len(measurable) == 1 else pairs_within(sets)
    inside = [pair for pair in tied if pair not in measurable and 1 < domain.cells(pair) <= MOST_ROWS]
    if inside and size is not None:
        noise = allowance.part(SUPPORT_SHARE / len(inside)).noise(allowance.cells_price)
        if threshold(noise.variance(), min(map(domain.cells, inside)), heavy=allowance.pure) > size:
            inside = []
    others = _other_pairs(domain, sets, allowance.part(SUPPORT_SHARE), size if about is None else about)
    kinds = [
        (marginals, share, aim)
        for marginals, share, aim in (
            (columns, SUPPORT_SHARE, Aim.TOTAL),
            (inside, SUPPORT_SHARE, Aim.LARGEST),
            (others, SUPPORT_SHARE, Aim.LARGEST),
            (measurable, WORKLOAD_SHARE, Aim.LARGEST),
        )
        if marginals
    ]
    total = sum(share for _, share, _ in kinds)
    plans = [whole_marginals(domain, marginals, allowance.part(share / total), aim) for marginals, share, aim in kinds]
    return tuple(purchase for plan in plans for purchase in plan)


def _other_pairs(domain: Domain, sets: Sequence[Names], allowance: Allowance, rows: int | None) -> list[Names]:
    """Pairs that no set contains, the smallest first: as many as can be told from noise if they share the allowance.

    The more of them, the less each gets; they end where the noise in all cells of the last would be more than all rows.
    """
    varying = [name for name in domain.names if domain[name].size > 1]
    inside = set(pairs_within(sets))
    pairs: list[Names] = [pair for pair in combinations(varying, 2) if pair not in inside]
    cells = 0
    for number, pair in enumerate(pairs := sorted(pairs, key=domain.cells)):
        cells += domain.cells(pair)
        deviation = math.sqrt(allowance.part(1 / (number + 1)).noise(allowance.cells_price).variance())
        if cells > MOST_OTHER_PAIR_CELLS or (rows is not None and domain.cells(pair) * deviation > rows):
            return pairs[:number]
    return pairs


def pairs_within(sets: Sequence[Names]) -> list[Names]:
    """Every pair of columns that some set contains."""
    return list(dict.fromkeys(pair for columns in sets for pair in combinations(columns, 2)))


def synthesize(
    sets: Sets,
    verbs: Verbs,
    domain: Domain,
    *,
    budget: Allowance,
    size: int | None = None,
    rows: int | None = None,
    records: Sequence[Record] = (),
    rng: Generator | None = None,
    on_step: Callable[[int, int], None] | None = None,
    on_sweep: Callable[[FitProgress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> SyntheticTable:
    """Spend the budget on a workload of marginals and what supports it, and make a table of `rows` rows.

    `size` is the public number of rows of the data; without it, it is estimated. Records of the log are used, and what
    is among them is not bought again, so a run that was stopped goes on at no further cost.
    """
    ordered = ordered_sets(domain, sets)
    plan = plan_table(domain, ordered, budget, size=size)
    logged = buy(plan, verbs, records, on_step=on_step, stop=stop)
    return table_from(logged, ordered, domain, size=size, rows=rows, rng=rng, on_sweep=on_sweep, stop=stop)


def table_from(
    records: Sequence[Record],
    sets: Sets,
    domain: Domain,
    *,
    size: int | None = None,
    rows: int | None = None,
    rng: Generator | None = None,
    on_sweep: Callable[[FitProgress], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> SyntheticTable:
    """A table from what is in the log already; nothing is bought.

    Guarantees: only noisy values are looked at, so the table costs nothing beyond them.
    Edge cases: a column that nothing is known about gets equal shares; marginals that were not measured follow from
    the others, as far as these go. A fit that is stopped ends with the best weights so far.
    """
    answers = marginals_from(records, sets, domain, size=size, shape=Shape.LOWERED)
    consistent, rng = answers.consistent, entropy() if rng is None else rng
    total = consistent.total()
    rows = math.ceil(total) if rows is None else rows
    if rows < 1:
        raise QueryError("a synthetic table has at least one row")
    singles = column_shares(consistent)
    known_sets = _known_sets(answers)
    codes, weights = _start(consistent, singles, known_sets, rng)
    exact = [
        Target(columns=(name,), counts=(total * shares).astype(np.float32), penalty=0.0)
        for name, shares in singles.items()
    ]
    for ways in sorted({len(columns) for columns in known_sets}):  # what pairs say already, larger sets need not
        targets = [_target(consistent, columns, codes, weights) for columns in known_sets if len(columns) == ways]
        noticed = [target for target in targets if target is not None]
        weights = fit_weights(domain, codes, weights, [*exact, *noticed], on_step=on_sweep, stop=stop)
    cells = [cell_numbers(domain, codes, columns) for columns in answers.sets[: CACHED_CELL_NUMBERS // len(codes)]]
    drawn = resample(codes, weights, rows=rows, rng=rng, marginals=cells)
    return SyntheticTable(domain=domain, codes=drawn, answers=answers)


def _known_sets(answers: MarginalAnswers) -> list[Names]:
    """Pairs of all columns and the workload's sets, as far as something is known of them."""
    consistent = answers.consistent
    pairs = [pair for pair in combinations(consistent.domain.names, 2) if consistent.domain.cells(pair) <= MOST_ROWS]
    listed = dict.fromkeys((*pairs, *answers.sets))
    return [columns for columns in listed if len(columns) > 1 and consistent.variance(columns) is not None]


def _start(
    consistent: Consistent, singles: Mapping[str, Reals], known_sets: Sequence[Names], rng: Generator
) -> tuple[Codes, Reals]:
    """All joint cells with independent columns, or rows of a tree and a few independent ones; and their weights."""
    domain, total = consistent.domain, consistent.total()
    sizes = domain.sizes(domain.names)
    if math.prod(sizes) <= MOST_JOINT_CELLS:
        grid: Codes = np.stack(np.unravel_index(np.arange(math.prod(sizes)), sizes), axis=1).astype(np.int32)
        shares = np.full(len(grid), total)
        for place, name in enumerate(domain.names):
            shares *= singles[name][grid[:, place]]
        return grid[shares > 0], shares[shares > 0]
    support = min(max(SUPPORT_FACTOR * math.ceil(total), FEWEST_SUPPORT_ROWS), MOST_SUPPORT_ROWS)
    free = math.ceil(INDEPENDENT_SHARE * support)
    dependent = pair_shares(consistent, [columns for columns in known_sets if len(columns) == 2], singles)
    codes = np.concatenate(
        [
            sample_tree(domain, singles, dependent, rows=support - free, rng=rng),
            sample_tree(domain, singles, (), rows=free, rng=rng),
        ]
    )
    each = [(1 - INDEPENDENT_WEIGHT) * total / (support - free), INDEPENDENT_WEIGHT * total / free]
    return codes, np.repeat(each, [support - free, free])


def _target(consistent: Consistent, columns: Names, codes: Codes, weights: Reals) -> Target | None:
    """A marginal, believed as far as it stands out from what the weighted rows say."""
    estimate, variance = consistent.estimate(columns), consistent.variance(columns)
    assert estimate is not None
    assert variance is not None
    cells = cell_numbers(consistent.domain, codes, columns)
    expected: Reals = np.bincount(cells, weights, minlength=estimate.size).astype(np.float64)
    return penalised_target(columns, estimate.ravel(), expected, variance)


@dataclass(frozen=True, kw_only=True)
class MarginalError:
    """One marginal of a table, in rows of the data.

    |table - truth| <= |table - noisy| + |noisy - truth| in every cell: the first is `measured`, at its largest, and the
    second is at most `noise` with the confidence asked for. All are None where nothing measured says anything.
    """

    columns: Names
    cells: int
    measured: float | None
    noise: float | None

    @property
    def bound(self) -> float | None:
        """No cell is wrong by more, with the confidence asked for."""
        return None if self.measured is None or self.noise is None else self.measured + self.noise


def table_errors(
    table: SyntheticTable, sets: Sets | None = None, *, confidence: float = 0.95
) -> tuple[MarginalError, ...]:
    """The errors of marginals of a table, those of its workload unless others are named.

    Guarantees: with this confidence all bounds hold together, whatever was done with the noisy counts to make the
    table: each marginal is given an equal part of the chance to fail, and each of its cells an equal part of that. In
    add-or-remove mode the number of rows is estimated, and the table is scaled to that.
    """
    if not 0 < confidence < 1:
        raise QueryError("a confidence lies between 0 and 1")
    consistent, domain = table.answers.consistent, table.domain
    named = table.answers.sets if sets is None else tuple(domain.ordered(columns) for columns in sets)
    errors = []
    for columns in named:
        estimate, variance = consistent.estimate(columns), consistent.variance(columns)
        cells = domain.cells(columns)
        if estimate is None or variance is None:
            errors.append(MarginalError(columns=columns, cells=cells, measured=None, noise=None))
            continue
        drawn = Cells(count=cells, variance=variance)
        noise = largest_error([drawn], heavy=consistent.heavy, beta=(1 - confidence) / len(named))
        measured = float(np.abs(table.counts(columns) - estimate).max())
        errors.append(MarginalError(columns=columns, cells=cells, measured=measured, noise=noise))
    return tuple(errors)


Step = Callable[[int, int], None]
Stop = Callable[[], bool]


def corrected(
    table: SyntheticTable,
    workload: ThresholdWorkload,
    verbs: Verbs,
    *,
    spend: Spend,
    setting: Adaptivity,
    rows: int,
    rng: Generator,
    records: Sequence[Record] = (),
    on_step: Step | None = None,
    stop: Stop | None = None,
) -> tuple[Codes, bool]:
    """The codes of a corrected table of `rows` rows, and whether all rounds were made.

    In each round the queries are picked on which the weighted rows are worst, half of the round's budget, and measured,
    the other half. `records` are those of an interrupted run: what they hold is not bought again.
    Guarantees: what it buys costs at most `spend`; what a stopped run has bought is in the log.
    Edge cases: rounds end when no query is left to pick.
    """
    domain, total = table.domain, table.answers.consistent.total()
    codes = np.asfortranarray(table.codes)
    uniform = np.full(len(codes), total / len(codes))
    weights = uniform
    progress, rounds = RunProgress.of(workload, records), setting.rounds
    for number in range(rounds):
        if number >= len(progress.rounds):
            left = min(setting.picks, workload.queries - len(progress.queries))
            if left < 1 or (stop is not None and stop()):
                break
            estimates = np.rint(_answers(table, workload, weights)).astype(np.int64)
            progress = progress.plus(_round(workload, verbs, Round.of(spend, rounds, left), estimates, progress))
        if on_step is not None:
            on_step(number + 1, rounds)
        targets = _round_targets(table, workload, progress.rounds, uniform)
        weights = fit_weights(domain, codes, uniform, targets, stop=stop)
    done = len(progress.rounds) >= rounds or len(progress.queries) >= workload.queries
    return resample(codes, weights, rows=rows, rng=rng), done


def _round(
    workload: ThresholdWorkload, verbs: Verbs, planned: Round, estimates: Integers, progress: RunProgress
) -> Bought:
    picked, barred = progress.picked, progress.queries
    if picked is None:
        picked = verbs.select(
            workload.candidates, estimates, count=planned.count, scale=planned.scale, barred=barred
        ).values
    noise = replace(planned, count=len(picked)).noise
    return Bought.of(np.sort(picked), verbs.measure(workload.taken(picked), noise), noise)


def _answers(table: SyntheticTable, workload: ThresholdWorkload, weights: Reals) -> Reals:
    """Every query of the workload on the weighted rows."""
    return np.concatenate([_held(table, names, weights) for names in workload.sets])


def _held(table: SyntheticTable, names: tuple[str, ...], weights: Reals) -> Reals:
    cells = cell_numbers(table.domain, table.codes, names)
    return np.bincount(cells, weights, minlength=table.domain.cells(names)).astype(np.float64)


def _round_targets(
    table: SyntheticTable, workload: ThresholdWorkload, rounds: Sequence[Bought], weights: Reals
) -> list[Target]:
    """Columns as they are; and each set with measured cells, which are believed as far as all of them stand out."""
    domain, names = table.domain, workload.names
    targets = [
        Target(columns=(name,), counts=_held(table, (name,), weights).astype(np.float32), penalty=0.0) for name in names
    ]
    queries = np.concatenate([bought.queries for bought in rounds])
    counts = np.concatenate([bought.counts for bought in rounds]).astype(np.float64)
    variance = max(bought.variance for bought in rounds)
    expected = _answers(table, workload, weights)[queries]
    spread = dispersion(counts - expected, expected, variance)
    owner = np.searchsorted(workload.starts, queries, side="right") - 1
    for number in np.unique(owner).tolist() if spread > 0 else []:
        members, columns = owner == number, workload.sets[number]
        inside = queries[members] - int(workload.starts[number])
        goal, penalty = np.zeros(domain.cells(columns)), np.full(domain.cells(columns), np.inf)
        goal[inside], penalty[inside] = counts[members], variance / spread
        targets.append(Target(columns=domain.ordered(columns), counts=goal.astype(np.float32), penalty=penalty))
    return targets
