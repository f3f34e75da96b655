"""A table that is put right where it is most wrong: marginals first, then rounds of picking and measuring, as RAP has.

What differs from RAP is what is corrected: the weights of real rows that already follow every column and pair, not
relaxed rows that begin at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from bursar.arrays import Codes, Integers, Reals
from bursar.core.ledger import Record
from bursar.core.verbs import Verbs
from bursar.synthetic.plan.bought import Bought, RunProgress
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.rap.defaults import Adaptivity
from bursar.synthetic.rap.rounds import Round
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload
from bursar.synthetic.table.fit import Target, cell_numbers, fit_weights, resampled
from bursar.synthetic.table.start import threshold
from bursar.synthetic.table.table import SyntheticTable

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
    weights = np.full(len(codes), total / len(codes))
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
        weights = fit_weights(domain, codes, weights, _targets(table, workload, progress.rounds, weights), stop=stop)
    done = len(progress.rounds) >= rounds or len(progress.queries) >= workload.queries
    return resampled(codes, weights, rows=rows, rng=rng), done


def _round(workload: ThresholdWorkload, verbs: Verbs, own: Round, estimates: Integers, progress: RunProgress) -> Bought:
    picked, barred = progress.picked, progress.queries
    if picked is None:
        picked = verbs.select(workload.candidates, estimates, count=own.count, scale=own.scale, barred=barred).values
    noise = replace(own, count=len(picked)).noise
    return Bought.of(np.sort(picked), verbs.measure(workload.taken(picked), noise), noise)


def _answers(table: SyntheticTable, workload: ThresholdWorkload, weights: Reals) -> Reals:
    """Every query of the workload on the weighted rows."""
    return np.concatenate([_held(table, names, weights) for names in workload.sets])


def _held(table: SyntheticTable, names: tuple[str, ...], weights: Reals) -> Reals:
    cells = cell_numbers(table.domain, table.codes, names)
    return np.bincount(cells, weights, minlength=table.domain.cells(names)).astype(np.float64)


def _targets(
    table: SyntheticTable, workload: ThresholdWorkload, rounds: Sequence[Bought], weights: Reals
) -> list[Target]:
    """Columns as they are; and each set with measured cells as it is but for those, which count beyond their noise."""
    domain, names = table.domain, workload.names
    made = [
        Target(columns=(name,), counts=_held(table, (name,), weights).astype(np.float32), least=0.0) for name in names
    ]
    queries = np.concatenate([bought.queries for bought in rounds])
    counts = np.concatenate([bought.counts for bought in rounds]).astype(np.float64)
    variance = max(bought.variance for bought in rounds)
    least = threshold(variance, len(queries), heavy=table.answers.consistent.heavy)
    owner = np.searchsorted(workload.starts, queries, side="right") - 1
    for number in np.unique(owner).tolist():
        own, columns = owner == number, workload.sets[number]
        goal = _held(table, columns, weights)
        inside = queries[own] - int(workload.starts[number])
        goal[inside] = counts[own]
        made.append(Target(columns=domain.ordered(columns), counts=goal.astype(np.float32), least=least))
    return made
