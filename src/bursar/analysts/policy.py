"""Policies: whose measurements an analyst's planner may use, and who pays for what.

    shared         everybody uses everything; who asks first is served first
    independent    everybody has an own share and sees the own measurements only
    seeded-cache   Seeded Cache and Reconstruct: own shares, a seed for everyone, identical questions are free

What is bought is charged to the account of whoever asked for it, under every policy; the seed to that of `everyone`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from bursar.analysts.shares import AnalystSettings, Seed
from bursar.core.accounting import Closed, Failed, Mode, Paid
from bursar.core.domain import Domain
from bursar.core.ledger import Ledger, Record
from bursar.core.queries import LinearMap
from bursar.errors import ConfigError
from bursar.goal import Horizon
from bursar.lazy_dataclass import dataclass
from bursar.planner.choose import Preset
from bursar.planner.explain import Explanation, explain
from bursar.planner.offer import SyntheticRows, Views
from bursar.planner.planner import Planner, Prices, Promised
from bursar.planner.request import PlanningRequest
from bursar.views.measurements import Measurements
from bursar.views.question_notes import QuestionNotes

Records = Callable[[int], Sequence[Record]]
Before = Callable[[LinearMap], Measurements | None]
"""Knows everybody's measurements of a map without reading the log."""

Table = Callable[[], SyntheticRows | None]
"""Looks for the synthetic table that is kept."""


@dataclass(frozen=True, kw_only=True)
class PlannerParts:
    """What an analyst's planner is made of; `prices` are those of this analyst's account."""

    domain: Domain
    mode: Mode
    preset: Preset
    prices: Prices
    ledger: Ledger
    records: Records  # of the ledger
    analyst: str
    synthetic: Table = lambda: None
    promised: Promised | None = None
    notes: QuestionNotes | None = None
    horizon: Horizon = Horizon.SOME
    before: Before | None = None
    kept: Records | None = None  # what counts of them


class Policy(Protocol):
    """What the engine asks: who plans for an analyst, and what is measured before the first question."""

    @property
    def name(self) -> str:
        """What the config calls it."""

    @property
    def seed(self) -> Seed | None:
        """What is measured for everyone before the first question is planned; None: nothing."""

    def planner(self, parts: PlannerParts) -> Planner:
        """The planner of one analyst's questions."""


class Shared:
    """Everybody uses everything."""

    name = "shared"
    seed: Seed | None = None

    def planner(self, parts: PlannerParts) -> Planner:
        """A planner that sees the whole log."""
        return _planner(Planner, parts, parts.records, parts.before, parts.kept)


class OwnPlanner(Planner):
    """Sees the own account alone: not even ties are decided by what others have spent."""

    def views(self, analyst: str = "") -> Views:
        """The views without what others have spent."""
        return replace(super().views(analyst), total=None)

    def _explained(self, request: PlanningRequest) -> Explanation:
        total = super().views(request.analyst).total  # shown, and no part of the choice
        return explain(self.preset, request, replace(self._views_for(request), total=total))


class Independent:
    """Everybody sees the own measurements only, and pays from an own share."""

    name = "independent"
    seed: Seed | None = None

    def planner(self, parts: PlannerParts) -> Planner:
        """A planner that sees the own records alone."""
        return _planner(OwnPlanner, parts, own_records(parts.records, parts.analyst))


@dataclass(frozen=True)
class SeededCache:
    """A seed for everyone, own shares, and identical questions free."""

    seed: Seed
    name = "seeded-cache"

    def planner(self, parts: PlannerParts) -> Planner:
        """A planner that goes through phases 2 and 3."""
        if parts.preset.family is not None:
            raise ConfigError(
                'policy = "seeded-cache" cannot keep contract = "simultaneous": there the noise of a purchase depends '
                'on how many others have bought before\ntry: policy = "independent", or contract = "per-query"'
            )
        from bursar.papers.multi_analyst.seeded_cache import Phases, SeededCachePlanner

        return SeededCachePlanner(
            parts.domain,
            parts.mode,
            parts.preset,
            parts.prices,
            parts.records,
            phases=Phases(parts.ledger),
            analyst=parts.analyst,
            synthetic=parts.synthetic,
            promised=parts.promised,
        )


def _planner(
    kind: type[Planner],
    parts: PlannerParts,
    records: Records,
    before: Before | None = None,
    kept: Records | None = None,
) -> Planner:
    return kind(
        parts.domain,
        parts.mode,
        parts.preset,
        parts.prices,
        records,
        synthetic=parts.synthetic,
        promised=parts.promised,
        notes=parts.notes,
        horizon=parts.horizon,
        before=before,
        kept=kept,
    )


def policy_of(settings: AnalystSettings) -> Policy:
    """The policy that a config names."""
    if settings.policy == "seeded-cache" and settings.seed is not None:
        return SeededCache(settings.seed)
    return Independent() if settings.policy == "independent" else Shared()


def own_records(records: Records, analyst: str) -> Records:
    """The log as an analyst sees it who shares nothing: other people's measurements are not there."""

    def own(after: int) -> Sequence[Record]:
        return [record for record in records(after) if _own(record, analyst)]

    return own


def _own(record: Record, analyst: str) -> bool:
    bought = isinstance(record.event, Paid | Failed | Closed)
    return record.analyst == analyst or not bought
