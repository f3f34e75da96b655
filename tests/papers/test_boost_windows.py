"""Algorithm 2 of "Boost: Effective Caching in Differentially-Private Databases", as the package runs it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from bursar.core.accounting import Event, Failed, Measured, Noise, NoiseKind, Opened
from bursar.core.queries import Product
from bursar.papers.boost.calibration import Published
from bursar.papers.boost.learning import Always, ConstantRate
from bursar.planner.choose import Preset
from bursar.planner.offer import Offer
from bursar.proposers.pmw import TIGHT, Tight, reach
from bursar.proposers.pmw_windows import PmwWindows
from bursar.tails import tail
from bursar.views.learner import Adaptive, Learning
from bursar.views.learner_tree import Node, largest_run, split, windowed
from harness.learning import Stage, cells, request

LEVEL = 1e-6
LAPLACE = NoiseKind.LAPLACE


def eager(**how: object) -> Preset:
    """A node is tested as soon as it has learnt anything."""
    learning = Learning(schedule=ConstantRate(value=0.1), heuristic=Always())
    return Preset("", (PmwWindows(replace(TIGHT, learning=learning), **how),))  # type: ignore[arg-type]


def windows(event: Event, stage: Stage) -> list[Node]:
    strategy = event.scope if isinstance(event, Opened) else event.strategy  # type: ignore[union-attr]
    parts = getattr(strategy, "parts", (strategy,))
    return [found[0] for part in parts if (found := windowed(part, stage.domain)) is not None]


def over(stage: Stage, window: Node, query: Product) -> Product:
    return Product((*cells(stage.domain, a=range(window[0], window[1] + 1)).masks, *query.masks))


@pytest.mark.heavy
@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(3))
def test_lines_4_to_9_and_27_split_and_branches(seed: int) -> None:
    """Every question: what is tested is the largest run of ready nodes of its split, and the others are bought."""
    rng = np.random.default_rng(seed)
    table = rng.integers(50, 150, (16, 2, 4))
    learning = Learning(schedule=ConstantRate(value=0.1), heuristic=Adaptive(first=2), tau=0.0)
    preset = Preset("", (PmwWindows(replace(TIGHT, cache=False, learning=learning)),))
    stage = Stage(table=table, preset=preset, seed=seed, partition="a", through=15)
    tests = 0
    for _ in range(60):
        low, high = sorted(rng.integers(0, 16, 2).tolist())
        query = cells(stage.domain, b=[int(rng.integers(2))])
        within = 0.2 * table[low : high + 1].sum()
        tree = preset.proposers[0].tree(stage.planner.views())  # type: ignore[attr-defined]
        nodes = split((low, high))
        sizes = {node: int(table[node[0] : node[1] + 1].sum()) for node in nodes}
        run = largest_run(nodes, [node for node in nodes if tree.ready(node, query)], sizes)
        others = [node for node in nodes if node not in run]
        start = len(stage.records)
        offer, _ = stage.ask(over(stage, (low, high), query), within=within, beta=0.05)
        planned = [windows(event, stage) for event in offer.price.events if isinstance(event, Measured)]
        assert planned == [own for own in (others, run) if own]
        new = [record.event for record in stage.records[start:]]
        tested = [event for event in offer.price.events if isinstance(event, Opened | Failed)]
        assert bool(tested) is bool(run)
        for event in new:
            if isinstance(event, Opened):
                assert windows(event, stage) == [(run[0][0], run[-1][1])]
        if any(isinstance(event, Failed) for event in new):
            assert windows(new[-1], stage) == run
        tests += bool(run)
    assert tests > 10


def failures(*, whole: bool, error: int, beta: float, shift: float, trials: int) -> int:
    """How often an answer is off by more than `error` where four nodes together are off by just that."""
    table = np.full((8, 2, 3), 100)
    table[1:7, 0] += (error + 1) // 18
    table[1:7, 1] -= (error + 1) // 18
    stage = Stage(table=table, preset=eager(whole=whole, warm=False), seed=3, shift=shift, partition="a", through=7)
    for node in split((1, 6)):
        stage.ask(over(stage, node, cells(stage.domain, c=[0])), within=300.0, beta=0.05)
    query = over(stage, (1, 6), cells(stage.domain, b=[0]))
    offer: Offer = stage.planner.choose(request(query, within=float(error), beta=beta))
    assert isinstance(offer.price.events[0], Opened)
    assert len(windows(offer.price.events[-1], stage)) == 4
    values = [offer.run(stage).values[0] for _ in range(trials)]  # type: ignore[arg-type]
    return sum(abs(value - int(stage.truth(query)[0])) > error for value in values)


@pytest.mark.heavy
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_theorem_a_6_end_to_end(whole: bool) -> None:
    """Pr[error > alpha] <= beta where the estimate is as bad as can be; a cut that is 20 % too high is noticed."""
    trials, beta, error = 3000, 0.05, 539
    bound = int(binom.isf(LEVEL, trials, beta))
    assert 0.8 * beta * trials < failures(whole=whole, error=error, beta=beta, shift=1.0, trials=trials) <= bound
    assert failures(whole=whole, error=error, beta=beta, shift=1.2, trials=trials) > bound


@pytest.mark.sampled(4)
@pytest.mark.parametrize("parts", [1, 2, 5, 9])
@pytest.mark.parametrize("beta", [0.05, 1e-3])
def test_calibrate_budget_laplace_without_a_simulation(parts: int, beta: float) -> None:
    """The least epsilon with Pr[|sum of Lap(1/epsilon)| > n alpha] <= beta, within what 10^6 draws can tell."""
    rng = np.random.default_rng(parts)
    sums = np.abs(rng.laplace(size=(10**6, parts)).sum(axis=1))
    chance = float((sums > reach(LAPLACE, parts, beta)).mean())
    assert chance == pytest.approx(beta, abs=5.5 * np.sqrt(beta / 10**6) + 0.02 * beta)


@pytest.mark.parametrize("parts", [2, 6])
def test_exact_noise_of_parts_keeps_beta_and_little_more(parts: int) -> None:
    made = Tight().of(500.0, 0.01, 1, LAPLACE, parts)
    assert made is not None
    assert 0.0095 < tail([1.0] * parts, [made.bypass] * parts, 500.0) <= 0.01
    assert made.honest <= 0.01
    published = Published().of(500.0, 0.01, 1, LAPLACE, parts)
    assert published is not None
    assert published.answer.scale == pytest.approx(500.0 / reach(LAPLACE, parts, 0.01))
    finer = Noise(kind=LAPLACE, scale=made.bypass.scale / 3)
    mixed = [finer, *[made.bypass] * (parts - 1)]
    assert tail([1.0] * parts, mixed, 500.0) < 0.01  # caches with less noise are no worse
