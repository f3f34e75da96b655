"""Fig. 14 of the RAP paper: loss, present error and future error while the synthetic rows are fitted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.harness import Figures
from benchmarks.rap_bench import Bench
from benchmarks.rap_data import DATA, Coded
from benchmarks.rap_measures import Reals, fractions
from benchmarks.rap_plots import Axes, Line, page
from benchmarks.rap_run import Setting, sets_of
from benchmarks.rap_workloads import Sets, distinct, drawn, masses

if TYPE_CHECKING:
    from benchmarks.rap_world import World
    from bursar.synthetic.rap.relaxed import Relaxed

APART = 1.25
"""Errors are worked out at steps that are this factor apart: every answer of the workload is made for each."""


@dataclass(kw_only=True)
class Curve:
    """What the hook of the projection saw, step after step through all rounds."""

    world: World
    history: Sets
    later: Sets
    least: int
    steps: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    present: list[float] = field(default_factory=list)
    future: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        data = self.world.data
        every = distinct([*self.history, *self.later])
        self._truth: dict[tuple[int, ...], Reals] = {
            features: fractions(data.codes, data.sizes, features, self.least) for features in every
        }

    def __call__(self, step: int, loss: float, relaxed: Relaxed) -> None:
        """Steps count from 0; the first ones are all looked at."""
        if not self.steps or step + 1 >= APART * self.steps[-1]:
            self.steps.append(step + 1)
            self.losses.append(loss)
            errors = {features: self._largest(features, relaxed) for features in self._truth}
            self.present.append(max(errors[features] for features in self.history))
            self.future.append(float(np.mean([errors[features] for features in self.later])))

    def _largest(self, features: tuple[int, ...], relaxed: Relaxed) -> float:
        from bursar.synthetic.rap.relaxed import relaxed_answers

        answers = relaxed_answers(self.world.workload([features], self.least), relaxed)
        return float(np.abs(answers - self._truth[features]).max())


def training(bench: Bench) -> Figures:
    """Histories from a flat and from a concentrated distribution: does the future suffer as the present gets better?"""
    grid, data = bench.grid, DATA[bench.data]()
    panels: dict[str, dict[str, Line]] = {}
    figures: Figures = {}
    for distribution in grid.distributions:
        curve = trained(bench, data, distribution)
        lines = {"loss": curve.losses, "present error": curve.present, "future error": curve.future}
        panels[distribution] = {name: Line(x=curve.steps, y=values) for name, values in lines.items()}
        figures[distribution] = {
            "steps": curve.steps[-1],
            "loss_first": curve.losses[0],
            "loss_last": curve.losses[-1],
            "present_first": curve.present[0],
            "present_last": curve.present[-1],
            "future_first": curve.future[0],
            "future_last": curve.future[-1],
            "future_least": min(curve.future),
        }
    page(bench.out, bench.figure("fig14"), panels, Axes(x="iteration", y="loss, or error"))
    return figures


def trained(bench: Bench, data: Coded, distribution: str) -> Curve:
    """One run of rap that is watched."""
    from benchmarks.rap_projected import projected
    from benchmarks.rap_world import World, budget_of

    grid, seed = bench.grid, bench.seeds[0]
    (size,), (least,), ((rounds, picks),) = grid.sizes, grid.least, grid.pairs
    setting = Setting(
        data=bench.data,
        system="rap",
        sets=f"history-{distribution}",
        size=size,
        least=least,
        epsilon=grid.epsilons[0],
        rounds=rounds,
        picks=picks,
        seed=seed,
    )
    later = drawn(masses(distribution, data.features), setting.k, grid.future, np.random.default_rng([seed, 3]))
    world = World(data, budget_of(setting.epsilon, data.rows), sequential=True)
    curve = Curve(world=world, history=sets_of(setting, data), later=later, least=least)
    projected(world, setting, curve.history, on_step=curve)
    return curve
