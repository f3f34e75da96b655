"""The diagonal search for T and K, in which every trial is paid for (RAP, section 3.4.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from numpy.random import Generator

from bursar.core.grant import Verbs
from bursar.errors import QueryError
from bursar.synthetic.entropy import entropy
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.rap.projection import Stop, never
from bursar.synthetic.rap.rap import RapResult, rap
from bursar.synthetic.rap.relaxed import relaxed_counts
from bursar.synthetic.rap.rounds import Adaptivity
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload

ROUNDS = (1, 4, 16, 64)
PICKS = (4, 16, 64, 256)
"""The published grid (RAP, Table 3)."""

JUDGED = 1 / 16
"""The part of a trial's budget that goes into measuring how good it came out."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """One setting that was tried: what came out, and a noisy count of how far its worst answer is off."""

    adaptivity: Adaptivity
    projected: RapResult
    error: float


def diagonal_search(
    workload: ThresholdWorkload,
    verbs: Verbs,
    *,
    spend: Spend,
    size: int,
    rounds: Sequence[int] = ROUNDS,
    picks: Sequence[int] = PICKS,
    rows: int = 1000,
    rng: Generator | None = None,
    stop: Stop = never,
) -> tuple[Trial, ...]:
    """Bisects c = T K on the diagonal (T_i, K_i) of a grid, then tries all settings of the grid with that c.

    Returns the trials, the best first. The error of a trial is noisy too: the worst query is picked and measured.
    Guarantees: all trials together cost at most `spend`. Each gets an equal part, by the largest number of trials that
    the search could take, which is known beforehand; a search that takes fewer leaves the rest unspent.
    Edge cases: a search that is stopped returns the trials that it has, and at least one.
    """
    if len(rounds) != len(picks) or not rounds or min(*rounds, *picks) < 1:
        raise QueryError("the grid of a search has as many numbers of rounds as of picks, all at least 1")
    diagonal = [Adaptivity(rounds=t, picks=k) for t, k in zip(sorted(rounds), sorted(picks), strict=True)]
    grid = [Adaptivity(rounds=t, picks=k) for t in sorted(rounds) for k in sorted(picks)]
    part = spend.part(1 / most_trials(diagonal, grid))
    rng = entropy() if rng is None else rng
    done: dict[Adaptivity, Trial] = {}

    def error(setting: Adaptivity) -> float:
        if setting not in done and not (done and stop()):
            projected = rap(
                workload,
                verbs,
                rounds=setting.rounds,
                picks=setting.picks,
                spend=part.part(1 - JUDGED),
                size=size,
                rows=rows,
                rng=rng,
                stop=stop,
            )
            done[setting] = Trial(
                adaptivity=setting, projected=projected, error=_worst(verbs, projected, part.part(JUDGED))
            )
        return done[setting].error if setting in done else float("inf")

    best = bisected(diagonal, error)
    for setting in _alike(grid, best):
        error(setting)
    return tuple(sorted(done.values(), key=lambda trial: trial.error))


def bisected(diagonal: Sequence[Adaptivity], error: Callable[[Adaptivity], float]) -> Adaptivity:
    """The setting with the least error, if errors fall and then rise along the diagonal."""
    low, high = 0, len(diagonal) - 1
    while low < high:
        middle = (low + high) // 2
        if error(diagonal[middle]) <= error(diagonal[middle + 1]):
            high = middle
        else:
            low = middle + 1
    return diagonal[low]


def most_trials(diagonal: Sequence[Adaptivity], grid: Sequence[Adaptivity]) -> int:
    """How many different settings a search can come to, whichever setting turns out to be the best."""
    most = 0
    for place, target in enumerate(diagonal):
        tried = {target}

        def error(setting: Adaptivity, place: int = place, tried: set[Adaptivity] = tried) -> float:
            tried.add(setting)
            return abs(diagonal.index(setting) - place)

        most = max(most, len(set(_alike(grid, bisected(diagonal, error))) | tried))
    return most


def _alike(grid: Sequence[Adaptivity], setting: Adaptivity) -> list[Adaptivity]:
    return [other for other in grid if other.rounds * other.picks == setting.rounds * setting.picks]


def _worst(verbs: Verbs, projected: RapResult, spend: Spend) -> float:
    """How many people the worst answer is off by: a query picked as in a round of RAP, and measured."""
    half, candidates = spend.part(1 / 2), projected.workload.candidates
    estimates = relaxed_counts(projected.workload, projected.relaxed, size=projected.size)
    picked = verbs.select(candidates, estimates, count=1, scale=half.selection_scale(1)).values
    measured = verbs.measure(projected.workload.taken(picked), half.noise(1)).values
    return abs(float(measured[0] - estimates[picked[0]]))
