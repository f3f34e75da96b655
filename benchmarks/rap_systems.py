"""The systems of RAP's evaluation, each as a function that prepares a run, and is then given the feature sets.

`all-zero` and `gaussian-naive` are the paper's baselines; the latter charges each cell by itself, with the paper's own
conversion from epsilon. `gaussian` measures whole marginals, which is sqrt(m / 2|W|) less noise. Both baselines,
`rap` and `rap-nonadaptive` are charged by sequential composition, `default` by the profile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.rap_data import Coded, Codes
from benchmarks.rap_measures import Reals
from benchmarks.rap_workloads import Sets, queries
from benchmarks.rap_world import NEIGHBOURS, World, budget_of, published_rho
from bursar.core.accounting import Noise, NoiseKind

if TYPE_CHECKING:
    from benchmarks.rap_run import Setting

Answers = Callable[[Sets], Iterable[Reals]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Released:
    """What a system gives away: answers to feature sets as fractions, and a table if it makes one.

    Without a synthetic table, only the sets of the workload can be answered, and in their order.
    """

    answers: Answers
    spent: float  # of rho
    table: Codes | None = None


EVERY_QUERY = 2**62
"""More picks than any workload has queries: K = m."""

Prepared = Callable[[Sets], Released]
System = Callable[[Coded, "Setting"], Prepared]


def all_zero(data: Coded, setting: Setting) -> Prepared:
    """0 is the answer to every query."""

    def answers(sets: Sets) -> Iterator[Reals]:
        return (np.zeros(data.cells(features)) for features in sets)

    return lambda sets: Released(answers=answers, spent=0.0)


def gaussian_naive(data: Coded, setting: Setting) -> Prepared:
    """The paper's GM: every query by itself with rho/m, sigma = sqrt(m / (2 rho)) people (RAP, Def. 2.10)."""
    world = World(data, budget_of(setting.epsilon, data.rows), sequential=True)
    rho = published_rho(setting.epsilon, data.rows**-2.0)
    return lambda sets: _measured(world, sets, setting.least, math.sqrt(queries(data, sets) / (2 * rho)))


def gaussian(data: Coded, setting: Setting) -> Prepared:
    """Whole thresholds, each with an equal part of rho.

    Somebody who is replaced leaves one cell of a marginal and enters another: two cells change by 1, and
    sigma = sqrt(|W| / rho) people. In an r-of-k threshold many more cells change, and the kernel knows how many.
    """
    world = World(data, budget_of(setting.epsilon, data.rows), sequential=True)

    def release(sets: Sets) -> Released:
        return _measured(world, sets, setting.least, world.calibrated(sets, setting.least))

    return release


def _measured(world: World, sets: Sets, least: int, sigma: float) -> Released:
    noise, rows = Noise(kind=NoiseKind.GAUSSIAN, scale=sigma), world.data.rows
    with world.grant() as grant:
        records = [grant.measure(world.workload([features], least).candidates, noise) for features in sets]
    return Released(answers=lambda sets: (record.values / rows for record in records), spent=world.spent)


def rap(data: Coded, setting: Setting) -> Prepared:
    """The package's RAP with T = `rounds` and K = `picks`; its rows are rounded to a table of the data's size."""
    from benchmarks.rap_projected import prepared  # here, for the compiler that comes with it takes memory

    return prepared(data, setting)


def rap_nonadaptive(data: Coded, setting: Setting) -> Prepared:
    """T = 1, K = m: every query is measured, each by itself as the paper has it, and then projected."""
    return rap(data, replace(setting, rounds=1, picks=EVERY_QUERY))


def default(data: Coded, setting: Setting) -> Prepared:
    """The package's own release of marginals: one purchase for the answers and for a table of as many rows."""
    from bursar.synthetic.marginals.answers import Allowance  # here, so that the memory of the others is their own
    from bursar.synthetic.table.table import synthesize

    world = World(data, budget_of(setting.epsilon, data.rows), sequential=False)

    def release(sets: Sets) -> Released:
        with world.grant() as grant:
            allowance = Allowance(spend=world.spend, neighbours=NEIGHBOURS)
            made = synthesize(world.names(sets), grant, world.domain, budget=allowance, size=data.rows)

        def answers(sets: Sets) -> Iterator[Reals]:
            return (made.answers.counts(columns).ravel() / data.rows for columns in world.names(sets))

        return Released(answers=answers, spent=world.spent, table=made.codes)

    return release


SYSTEMS: dict[str, System] = {
    "all-zero": all_zero,
    "gaussian-naive": gaussian_naive,
    "gaussian": gaussian,
    "rap-nonadaptive": rap_nonadaptive,
    "rap": rap,
    "default": default,
}
"""In the order of the tables."""
