"""A real table whose marginals are near those of the data, from noisy counts alone.

Columns by themselves, pairs of columns and the workload's own marginals are measured. The table starts as a tree of
dependent pairs; its rows are then weighted until they meet every marginal beyond its noise, and drawn by weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.random import Generator

from bursar.arrays import Codes, Reals
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.limits import MOST_ROWS
from bursar.core.verbs import Verbs
from bursar.errors import QueryError
from bursar.synthetic.entropy import entropy
from bursar.synthetic.marginals.choice import Aim, Allowance, MarginalPurchase, whole_marginals
from bursar.synthetic.marginals.evidence import Names
from bursar.synthetic.marginals.release import MarginalAnswers, Sets, Shape, buy, marginals_from, ordered_sets
from bursar.synthetic.table.fit import FitProgress, Target, cell_numbers, fit_weights, resampled
from bursar.synthetic.table.start import column_shares, pair_shares, threshold, tree_rows

WORKLOAD_SHARE = 0.6
"""Of the budget, for the workload's own marginals: they fix the largest error. Columns and pairs share the rest."""

SUPPORT = 4
"""Rows that are weighted, for each row of the data."""

FEWEST, MOST = 2**15, 2**19
"""Bounds on the rows that are weighted."""

INDEPENDENT = 0.1
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
    domain: Domain, sets: Sequence[Names], allowance: Allowance, *, size: int | None = None
) -> tuple[MarginalPurchase, ...]:
    """Whole marginals of three kinds: every column, every pair inside a set, and the sets themselves.

    Columns aim at total variation; of the others only cells count that stand out, so they aim at the largest error.

    Guarantees: the purchases cost the allowance together, at most. The data are not looked at.
    Edge cases: sets and pairs are left out that have more cells than can be measured at once, and all pairs where noise
    would drown any count that `size` rows can give, or where a single set is measured: pairs tie sets to each other,
    and those of one set are sums of its cells. What is left out goes to the others.
    """
    wanted = [columns for columns in sets if 1 < domain.cells(columns) <= MOST_ROWS]
    columns = [(name,) for name in domain.names if domain[name].size > 1 and (name,) not in wanted]
    tied = () if len(sets) == len(wanted) == 1 else pairs_within(sets)
    pairs = [pair for pair in tied if pair not in wanted and 1 < domain.cells(pair) <= MOST_ROWS]
    rest = (1 - WORKLOAD_SHARE) / 2
    if pairs and size is not None:
        noise = allowance.part(rest / len(pairs)).noise(allowance.cells_price)
        if threshold(noise.variance(), min(map(domain.cells, pairs)), heavy=allowance.pure) > size:
            pairs = []
    kinds = ((columns, rest, Aim.TOTAL), (pairs, rest, Aim.LARGEST), (wanted, WORKLOAD_SHARE, Aim.LARGEST))
    whole = sum(share for own, share, _ in kinds if own)
    plans = [whole_marginals(domain, own, allowance.part(share / whole), aim) for own, share, aim in kinds if own]
    return tuple(purchase for plan in plans for purchase in plan)


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
    wanted = ordered_sets(domain, sets)
    plan = plan_table(domain, wanted, budget, size=size)
    have = buy(plan, verbs, records, on_step=on_step, stop=stop)
    return table_from(have, wanted, domain, size=size, rows=rows, rng=rng, on_sweep=on_sweep, stop=stop)


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
    wanted = math.ceil(total) if rows is None else rows
    if wanted < 1:
        raise QueryError("a synthetic table has at least one row")
    singles = column_shares(consistent)
    pairs = pairs_within(answers.sets)
    fitting = [pair for pair in pairs if domain.cells(pair) <= MOST_ROWS]
    support = min(max(SUPPORT * math.ceil(total), FEWEST), MOST)
    free = math.ceil(INDEPENDENT * support)
    dependent = pair_shares(consistent, fitting, singles)
    codes = np.concatenate(
        [
            tree_rows(domain, singles, dependent, rows=support - free, rng=rng),
            tree_rows(domain, singles, (), rows=free, rng=rng),
        ]
    )
    kept = 1 - INDEPENDENT_WEIGHT
    weights = np.repeat([kept * total / (support - free), (1 - kept) * total / free], [support - free, free])
    targets = _targets(answers, singles, fitting)
    weights = fit_weights(domain, codes, weights, targets, on_step=on_sweep, stop=stop)
    return SyntheticTable(domain=domain, codes=resampled(codes, weights, rows=wanted, rng=rng), answers=answers)


def _targets(answers: MarginalAnswers, singles: dict[str, Reals], pairs: Sequence[Names]) -> list[Target]:
    """Columns as they were made to sum to the total, then pairs and the workload, within their noise."""
    consistent = answers.consistent
    total = consistent.total()
    made = [
        Target(columns=(name,), counts=(total * own).astype(np.float32), least=0.0) for name, own in singles.items()
    ]
    for columns in dict.fromkeys((*pairs, *answers.sets)):
        estimate, variance = consistent.estimate(columns), consistent.variance(columns)
        if estimate is not None and variance is not None and len(columns) > 1:
            least = threshold(variance, estimate.size, heavy=consistent.heavy)
            made.append(Target(columns=columns, counts=estimate.ravel().astype(np.float32), least=least))
    return made
