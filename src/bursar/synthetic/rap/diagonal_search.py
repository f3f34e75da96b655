"""The diagonal search for T and K, in which every trial is paid for (RAP, section 3.4.2).

It bisects c = T K on the diagonal (T_i, K_i) of a grid, then tries all settings of the grid with that c. How good a
trial came out is measured too: its worst query is picked, with noise. How many trials there are is known before, and
each gets an equal part of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from numpy.random import Generator

from bursar.core.accounting import Event, Measured, Selected
from bursar.core.ledger import Record
from bursar.errors import QueryError
from bursar.planner.grant import Verbs
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.rap.projection import Stop, never, project, targets
from bursar.synthetic.rap.rap import RapResult, measured_size, rap
from bursar.synthetic.rap.relaxed import relaxed_counts
from bursar.synthetic.rap.rounds import (
    SIZE_SHARE,
    Adaptivity,
    Round,
    feasible_adaptivity,
    recorded_total,
    remaining_rap_events,
    total_query,
)
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload

ROUNDS = (1, 4, 16, 64)
PICKS = (4, 16, 64, 256)
"""The published grid (RAP, Table 3)."""

JUDGED = 1 / 16
"""The part of a trial's budget that goes into measuring how good it came out."""

LEFT_OVER = 2.0**-20
"""The part of a trial's budget that it leaves, so that whatever it rounds up fits into what is kept aside for it."""


@dataclass(frozen=True, kw_only=True)
class SearchGrid:
    """The settings that a search may try on a workload: those of a grid, as far as the workload has queries for them.

    Settings that come to the same on a small workload are one.
    """

    diagonal: tuple[Adaptivity, ...]
    settings: tuple[Adaptivity, ...]

    @staticmethod
    def of(workload: ThresholdWorkload, rounds: Sequence[int] = ROUNDS, picks: Sequence[int] = PICKS) -> SearchGrid:
        if len(rounds) != len(picks) or not rounds or min(*rounds, *picks) < 1:
            raise QueryError("the grid of a search has as many numbers of rounds as of picks, all at least 1")

        def possible(t: int, k: int) -> Adaptivity:
            return feasible_adaptivity(workload, Adaptivity(rounds=t, picks=min(k, workload.queries)))

        diagonal = [possible(t, k) for t, k in zip(sorted(rounds), sorted(picks), strict=True)]
        settings = [possible(t, k) for t in sorted(rounds) for k in sorted(picks)]
        return SearchGrid(diagonal=tuple(dict.fromkeys(diagonal)), settings=tuple(dict.fromkeys(settings)))

    @property
    def trials(self) -> int:
        """How many settings a search tries: as many as it could need, whichever turns out to be the best."""
        most = 0
        for place in range(len(self.diagonal)):
            tried: dict[Adaptivity, float] = {}
            while (setting := self.needed(tried)) is not None:
                tried[setting] = abs(self.diagonal.index(setting) - place) if setting in self.diagonal else math.inf
            most = max(most, len(tried))
        return most

    def needed(self, errors: Mapping[Adaptivity, float]) -> Adaptivity | None:
        """The next setting: bisects c = T K on the diagonal, then takes all settings of the grid with that c."""
        low, high = 0, len(self.diagonal) - 1
        while low < high:
            middle = (low + high) // 2
            for setting in self.diagonal[middle : middle + 2]:
                if setting not in errors:
                    return setting
            lower = errors[self.diagonal[middle]] <= errors[self.diagonal[middle + 1]]
            low, high = (low, middle) if lower else (middle + 1, high)
        alike = (setting for setting in self.settings if _picked(setting) == _picked(self.diagonal[low]))
        return next((setting for setting in alike if setting not in errors), None)

    def following(self, errors: Mapping[Adaptivity, float]) -> Adaptivity | None:
        """The next setting; a search that needs fewer than it has paid for goes on with those most like the best."""
        if len(errors) >= self.trials:
            return None
        if (setting := self.needed(errors)) is not None:
            return setting
        best = math.log(_picked(min(errors, key=lambda tried: errors[tried])))
        untried = (setting for setting in self.settings if setting not in errors)
        return min(untried, key=lambda setting: abs(math.log(_picked(setting)) - best))


def _picked(setting: Adaptivity) -> int:
    return setting.rounds * setting.picks


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """One setting that was tried: what came out, and a noisy count of how far its worst answer is off."""

    adaptivity: Adaptivity
    projected: RapResult
    error: float


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialRecords:
    """What the log has of one trial: its rounds, and the query that it was judged by."""

    setting: Adaptivity
    rounds: Sequence[Record]
    judged: Sequence[Record]


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchPlan:
    """How the budget of a search is divided: the number of rows first, unless it is public, then equal trials."""

    workload: ThresholdWorkload
    spend: Spend
    sized: bool  # whether the number of rows is public
    grid: SearchGrid

    @property
    def place(self) -> Spend:
        """What is kept aside for a trial."""
        return self.spend.part((1 if self.sized else 1 - SIZE_SHARE) / self.grid.trials)

    @property
    def rounds(self) -> Spend:
        """What RAP may spend in a trial."""
        return self.place.part((1 - JUDGED) * (1 - LEFT_OVER))

    @property
    def judged(self) -> Round:
        """How a trial is judged: one query is picked and measured, as in a round of RAP."""
        return Round.of(self.place.part(JUDGED * (1 - LEFT_OVER)), 1, 1)

    def trials(self, records: Sequence[Record]) -> list[TrialRecords]:
        """The trials of an interrupted search. The first purchase of a trial tells its setting by its noise."""
        total = total_query(self.workload).digest
        bought = [
            record
            for record in records
            if isinstance(record.event, Selected)
            or (isinstance(record.event, Measured) and record.event.strategy.digest != total)
        ]
        trials: list[TrialRecords] = []
        while bought:
            setting = self._setting(bought[0].event)
            if setting is None:
                return trials
            judged = bought[self._purchases(setting) :][:2]
            trials.append(TrialRecords(setting=setting, rounds=bought[: self._purchases(setting)], judged=judged))
            bought = bought[self._purchases(setting) + 2 :]
        return trials

    def _setting(self, event: Event) -> Adaptivity | None:
        for setting in self.grid.settings:
            if self._all(setting):
                if isinstance(event, Measured) and event.noise == self.rounds.noise(self.workload.queries):
                    return setting
            elif isinstance(event, Selected):
                first = Round.of(self.rounds, setting.rounds, setting.picks)
                if (event.count, event.scale) == (first.count, first.scale):
                    return setting
        return None

    def _all(self, setting: Adaptivity) -> bool:
        """Whether the setting measures all queries at once."""
        return setting.picks >= self.workload.queries

    def _purchases(self, setting: Adaptivity) -> int:
        return len(self.workload.portions) if self._all(setting) else 2 * setting.rounds

    def remaining_events(self, records: Sequence[Record], version: int) -> Iterator[Event]:
        """What a search with these records will still buy, at most; what it has begun comes first."""
        if not self.sized and recorded_total(self.workload, records) is None:
            yield self._size(version)
        trials = self.trials(records)
        for trial in trials:
            yield from self._trial(trial, version)
        yield from self._later(self.grid.trials - len(trials), version)

    def trial_events(self, trial: TrialRecords, *, later: int, sized: bool, version: int) -> tuple[Event, ...]:
        """What a trial will still buy, and the `later` ones after it; also the number of rows, unless that is known."""
        first = () if sized else (self._size(version),)
        return (*first, *self._trial(trial, version), *self._later(later, version))

    def _size(self, version: int) -> Measured:
        noise = self.spend.part(SIZE_SHARE).noise(1)
        return Measured(strategy=total_query(self.workload), noise=noise, version=version)

    def _trial(self, trial: TrialRecords, version: int) -> Iterator[Event]:
        yield from remaining_rap_events(self.workload, trial.setting, self.rounds, trial.rounds, version, sized=True)
        if len(trial.judged) < 2:
            yield from self.judged.events(self.workload.candidates, version, picked=len(trial.judged) == 1)

    def _later(self, trials: int, version: int) -> Iterator[Event]:
        """Which settings these will have is not known: each keeps the place of a pick that costs a trial's part."""
        scale = self.place.selection_scale(1)
        for _ in range(trials):
            yield Selected(candidates=self.workload.candidates, count=1, scale=scale, version=version)


class Search:
    """A search under way: the trials that it has finished, and the one that is next."""

    def __init__(
        self, plan: SearchPlan, *, size: int | None, rows: int, rng: Generator, records: Sequence[Record], stop: Stop
    ) -> None:
        """`size` is the number of rows where it is public; `records` are those of an interrupted search."""
        self.plan, self._rows, self._rng, self._stop = plan, rows, rng, stop
        self.size = recorded_total(plan.workload, records) if size is None else size
        self._begun = plan.trials(records)
        self.finished: dict[Adaptivity, Trial] = {}

    def following(self) -> TrialRecords | None:
        """The next trial: first those that were begun, then as the errors of the finished ones say."""
        if self._begun:
            return self._begun[0]
        setting = self.plan.grid.following({tried: trial.error for tried, trial in self.finished.items()})
        return None if setting is None else TrialRecords(setting=setting, rounds=(), judged=())

    def events(self, trial: TrialRecords, version: int) -> tuple[Event, ...]:
        """What is to be kept aside while the trial runs, for it and for those after it."""
        later = self.plan.grid.trials - len(self.finished) - max(len(self._begun), 1)
        return self.plan.trial_events(trial, later=later, sized=self.size is not None, version=version)

    def run(self, trial: TrialRecords, verbs: Verbs) -> None:
        """Buy what is missing of the trial. Where it is stopped before its end, it does not count."""
        setting, plan = trial.setting, self.plan
        if self.size is None:
            self.size = measured_size(plan.workload, verbs, plan.spend.part(SIZE_SHARE), ())
        projected = rap(
            plan.workload,
            verbs,
            rounds=setting.rounds,
            picks=setting.picks,
            spend=plan.rounds,
            size=self.size,
            rows=self._rows,
            rng=self._rng,
            records=trial.rounds,
            stop=self._stop,
        )
        self._begun = self._begun[1:]
        if projected.finished and (len(trial.judged) == 2 or not self._stop()):
            error = self._worst(projected, trial.judged, verbs)
            self.finished[setting] = Trial(adaptivity=setting, projected=projected, error=error)

    def _worst(self, projected: RapResult, judged: Sequence[Record], verbs: Verbs) -> float:
        """How many people the worst answer is off by: a query picked as in a round of RAP, and measured."""
        workload, judge = projected.workload, self.plan.judged
        estimates = relaxed_counts(workload, projected.relaxed, size=projected.size)
        records = list(judged)
        if not records:
            records.append(verbs.select(workload.candidates, estimates, count=1, scale=judge.scale))
        picked = records[0].values
        if len(records) == 1:
            records.append(verbs.measure(workload.taken(picked), judge.noise))
        return abs(float(records[1].values[0] - estimates[picked[0]]))

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The finished trials, the best first."""
        return tuple(sorted(self.finished.values(), key=lambda trial: trial.error))


def combined(trials: Sequence[Trial], *, rng: Generator, stop: Stop = never) -> RapResult:
    """The best trial, fitted once more to what all trials have measured: it is paid for, so nothing of it is wasted.

    Differs: the paper keeps the best trial as it is.
    """
    best = trials[0].projected
    rounds = tuple(bought for trial in trials for bought in trial.projected.rounds)
    fitted = project(best.relaxed, targets(best.workload, rounds, size=best.size), rng=rng, stop=stop)
    return replace(best, relaxed=fitted, rounds=rounds)
