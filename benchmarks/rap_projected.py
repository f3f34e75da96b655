"""RAP as the package has it, prepared for a run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.rap_data import Coded
from benchmarks.rap_measures import Reals
from benchmarks.rap_run import Setting
from benchmarks.rap_systems import EVERY_QUERY, Prepared, Released
from benchmarks.rap_workloads import Sets
from benchmarks.rap_world import World, budget_of
from bursar.synthetic.entropy import entropy
from bursar.synthetic.plan.bought import Bought
from bursar.synthetic.rap.projection import Hook, Patience, no_hook, project, targets
from bursar.synthetic.rap.rap import rap
from bursar.synthetic.rap.relaxed import Relaxed, randomized_rounding, relaxed_answers, start
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload


def prepared(data: Coded, setting: Setting) -> Prepared:
    """A run of RAP, and its rows as answers and as a table."""
    world = World(data, budget_of(setting.epsilon, data.rows), sequential=True)
    compile_ahead()

    def release(sets: Sets) -> Released:
        relaxed = projected(world, setting, sets)

        def answers(sets: Sets) -> Iterator[Reals]:
            return (relaxed_answers(world.workload([features], setting.least), relaxed) for features in sets)

        return Released(answers=answers, spent=world.spent, table=randomized_rounding(relaxed, size=data.rows))

    return release


def projected(world: World, setting: Setting, sets: Sets, on_step: Hook = no_hook) -> Relaxed:
    """One run of RAP for the whole budget."""
    adaptive = setting.picks < EVERY_QUERY
    until = math.inf if adaptive else time.process_time() + setting.seconds
    with world.grant() as grant:
        found = rap(
            world.workload(sets, setting.least),
            grant,
            rounds=setting.rounds,
            picks=setting.picks,
            spend=world.spend,
            size=world.data.rows,
            rows=setting.rows,
            on_step=on_step,
            stop=lambda: time.process_time() > until,
        )
    return found.relaxed


def compile_ahead() -> None:
    """The inner loops as machine code, made or read from disk before any time is taken."""
    workload = ThresholdWorkload(names=("a", "b"), sizes=(2, 2), sets=(("a", "b"),))
    bought = Bought(queries=np.arange(4), counts=np.ones(4, np.int64), variance=1.0)
    rng = entropy()
    rows = start(workload, rows=4, rng=rng)
    project(rows, targets(workload, [bought], size=4), rng=rng, patience=Patience(most=2))
