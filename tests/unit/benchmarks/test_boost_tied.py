"""The preset `boost` of the package and the simulated Boost of the tables are one system: they cost the same."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from benchmarks.boost_data import Blocks, covid
from benchmarks.boost_package import PRESETS, Single
from benchmarks.boost_questions import Pool, covid_pool, single
from benchmarks.boost_run import Trace, ask, noise_of, world_of
from benchmarks.systems.boost_reference import COVID, Printed, Published
from benchmarks.systems.boost_world import PATH, System, World

from bursar.papers.boost import PUBLISHED
from bursar.planner.choose import Preset
from bursar.proposers.pmw import Pmw
from bursar.views.learner import Adaptive

QUESTIONS = 1_000
SOON = replace(COVID, ready=5, step=5)
"""Histograms are asked after few updates, so that tests begin within few questions."""


@cache
def setting() -> tuple[Blocks, Pool, World]:
    blocks, pool = covid(1), covid_pool()
    return blocks, pool, world_of(blocks, pool)


def run(system: System, seed: int) -> Trace:
    _, pool, world = setting()
    return ask(system, world, single(len(pool), 1, QUESTIONS, seed), Trace(system="", seed=seed), QUESTIONS)


def soon() -> Preset:
    blocks = setting()[0]
    learning = replace(PUBLISHED.learning, heuristic=Adaptive(first=SOON.ready, step=SOON.step))
    return Preset("soon", (Pmw(replace(PUBLISHED, learning=learning)).grouped((blocks.columns,)),), sequential=True)


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["package-boost", pytest.param("package-boost-profile", marks=pytest.mark.soak)])
def test_before_anything_is_tested_both_buy_the_very_same(name: str) -> None:
    blocks, pool, world = setting()
    simulated = run(Published(world, COVID, noise_of(0, "boost")), 0)
    package = run(PRESETS["single"][name](blocks, pool, world), 0)
    assert package.paths == simulated.paths
    assert set(package.paths) == {PATH.bought, PATH.cached}
    if name == "package-boost":
        assert package.epsilon[-1] == pytest.approx(simulated.epsilon[-1], rel=1e-6)
    else:
        assert package.epsilon[-1] < 0.5 * simulated.epsilon[-1]  # the same purchases, counted by cell


@pytest.mark.soak
def test_once_histograms_are_asked_both_go_the_same_ways() -> None:
    """And Algorithm 1 as printed, which is another system, does not."""
    blocks, pool, world = setting()
    package = [run(Single(blocks, pool, world, soon()), seed) for seed in (0, 1)]
    simulated = [run(Published(world, SOON, noise_of(seed, "boost")), seed) for seed in (0, 1)]
    printed = [run(Printed(world, SOON, noise_of(seed, "printed")), seed) for seed in (0, 1)]
    spent, expected, other = (sum(trace.epsilon[-1] for trace in runs) for runs in (package, simulated, printed))
    assert 0.7 < spent / expected < 1.4
    assert not 0.7 < other / expected < 1.4
    estimated = [sum(trace.paths[PATH.estimated] for trace in runs) for runs in (package, simulated)]
    assert 0.7 < estimated[0] / estimated[1] < 1.4
    assert min(estimated) > 100
