"""Seeded Cache and Reconstruct (Multi-Analyst DP, Alg. 1): nobody is worse off for sharing, whatever is asked and when.

    phase 1   a seed is measured for everyone, from a fraction of each share
    phase 2   the analyst has budget: the identical question from the log, else a purchase from the own share
    phase 3   the share could not pay once: everything in the log answers, free

Why it is analyst-monotone (Lemma 3), with prices taken from goals. Add an analyst j to a collective and compare.
(a) In phase 2 what is bought for a question depends on the question and its goal alone: never on the log. So somebody's
purchases with j are those without j, less the ones that j has made unnecessary, for as long as phase 2 lasts without j:
fewer events have a smaller loss in every cell, so what could be paid without j can be paid with j. (b) Hence phase 3
does not begin earlier, and since it is never left, nothing is bought without j that is not bought, or there already as
finely, with j. (c) So with j the log has every row that it has without j, with no more noise, and least squares over it
has no larger variance. A question that was answered well enough stays so: bought, found, or reconstructed.
Reconstructing in phase 2 would break (a), even from the own rows and the seed: what is free today was not bought, and
is missing tomorrow. So of a preset's proposers only `strategy` and `direct` buy here; the others look at the log.

Edge cases: (a) needs a bound of the loss that grows with the events. Over one set of columns it does; over several the
profile takes the least of some bounds, and which are tried depends on the columns in use. (c) is about variances, so it
is exact for goals on the root mean square error; a tail can be a little heavier at a smaller variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bursar.core.accounting import Measured, Mode, from_units, left_of
from bursar.core.domain import Domain
from bursar.core.ledger import Ledger, Record
from bursar.errors import BudgetError
from bursar.planner.choose import Preset, acceptable, choose, fits, refusal
from bursar.planner.explain import Explanation, explain
from bursar.planner.offer import Offer, Price, Proposer, SyntheticRows, Views
from bursar.planner.planner import Planner, Prices, Promised
from bursar.planner.request import PlanningRequest
from bursar.proposers.direct import Direct, Partwise
from bursar.proposers.reuse import Exact, Reconstruct
from bursar.proposers.strategy import Strategy
from bursar.views.measurements import Measurements, Reconstructions, Rents
from bursar.views.nodes import Nodes
from bursar.views.partition_measurements import PartitionViews

FREE: tuple[Proposer, ...] = (Exact(), Partwise(), Reconstruct())

NO_LIMIT = 2**62
"""Units of 2^-50: what is affordable is judged after the plan is made."""


@dataclass(frozen=True)
class Phases:
    """Which analysts have left phase 2: a mark in the ledger, which is never taken away."""

    ledger: Ledger

    def reconstructing(self, analyst: str) -> bool:
        """Whether the analyst is in phase 3."""
        return self.ledger.commit(lambda transaction: transaction.secret(_mark(analyst))) is not None

    def begin_reconstructing(self, analyst: str) -> None:
        """Leave phase 2 for good."""
        self.ledger.commit(lambda transaction: transaction.put_secret(_mark(analyst), b"phase 3"))


def _mark(analyst: str) -> str:
    return f"reconstructs: {analyst}"


class Alone(Proposer):
    """Phase 2: the identical question from the log, else what would be bought if the log were empty.

    Identical means that the log has every row that would be bought, with no more noise, whoever has bought it.
    A question that no purchase answers is reconstructed: nothing is bought for it in any collective.
    """

    name = "alone"

    def __init__(self, proposers: Sequence[Proposer], prices: Prices) -> None:
        buyers = tuple(proposer for proposer in proposers if isinstance(proposer, Strategy | Direct))
        self._buyers = Preset("alone", buyers if buyers else (Direct(),))
        self._prices = prices

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        """The identical rows of the log for nothing, else the purchase that an empty log would need."""
        plan = choose(self._buyers, request, self._empty(views))
        if plan is None or plan.free:
            return [offer for proposer in FREE for offer in proposer.offers(request, views)]
        identical = self._identical(plan, request, views)
        return [identical if identical is not None else _repriced(plan, views)]

    def _identical(self, plan: Offer, request: PlanningRequest, views: Views) -> Offer | None:
        rows = [_as_fine(event, views) for event in plan.price.events if isinstance(event, Measured)]
        records = [record for record in rows if record is not None]
        if len(records) < len(plan.price.events):
            return None
        only = self._empty(views)
        only.measurements.advance(records)
        free = [offer for proposer in FREE for offer in proposer.offers(request, only)]
        return next((offer for offer in free if acceptable(offer, request.goal)), None)

    def _empty(self, views: Views) -> Views:
        """An empty log of the same version, where nothing limits a price."""
        measurements = Measurements(views.domain, version=views.version)
        return replace(
            views,
            left=NO_LIMIT,
            measurements=measurements,
            reconstructions=Reconstructions(views.domain, measurements),
            rents=Rents(views.domain, self._prices.empty_book),
            nodes=Nodes(views.domain),
            partition_measurements=PartitionViews(views.domain, self._prices.empty_book),
            price=self._prices.empty_book().price,
            total=None,
        )


def _as_fine(purchase: Measured, views: Views) -> Record | None:
    """The finest measurement of the same rows, if it is no coarser than the one that is wanted."""
    record = views.measurements.finest.get(purchase.strategy.digest)
    if record is None or not isinstance(record.event, Measured):
        return None
    noise = record.event.noise
    return record if noise.kind is purchase.noise.kind and noise.scale <= purchase.noise.scale else None


def _repriced(plan: Offer, views: Views) -> Offer:
    """The same plan at what it would add now."""
    return replace(plan, price=Price(events=plan.price.events, at_most=views.price(plan.price.events)))


class SeededCachePlanner(Planner):
    """The planner of one analyst under Seeded Cache and Reconstruct."""

    def __init__(
        self,
        domain: Domain,
        mode: Mode,
        preset: Preset,
        prices: Prices,
        records: Callable[[int], Sequence[Record]],
        *,
        phases: Phases,
        analyst: str,
        synthetic: Callable[[], SyntheticRows | None] = lambda: None,
        promised: Promised | None = None,
    ) -> None:
        free = Preset(f"{preset.name}, reconstructing", FREE)
        super().__init__(domain, mode, free, prices, records, synthetic=synthetic, promised=promised)
        self._buying = Preset(f"{preset.name}, seeded cache", (Alone(preset.proposers, prices),))
        self._phases, self._analyst = phases, analyst

    def choose(self, request: PlanningRequest) -> Offer:
        """As `Planner.choose`; a question that the share cannot pay for ends phase 2, whatever becomes of it."""
        with self._lock:
            views = self.views(request.analyst)
            bought = choose(self._buying, request, views)
            if bought is not None and not self._phases.reconstructing(self._analyst):
                if views.payable(bought):
                    return bought
                self._phases.begin_reconstructing(self._analyst)
            offer = choose(self.preset, request, views)
            if offer is not None:
                return offer
            if bought is None:
                raise refusal(self.preset, request, views, None)
            raise self._spent_up(request, views, bought)

    def _explained(self, request: PlanningRequest) -> Explanation:
        """What would happen now; to look ends no phase."""
        reconstructing = self._phases.reconstructing(self._analyst)
        return explain(self.preset if reconstructing else self._buying, request, self.views(request.analyst))

    def _spent_up(self, request: PlanningRequest, views: Views, bought: Offer) -> BudgetError:
        goal = fits(self.preset, request, views, views.left, None)
        return BudgetError(
            asked=from_units(bought.price.at_most),
            left=left_of(views.left),
            unit=views.mode.unit,
            fits="" if goal is None else goal.describe(),
            limit=f"is left of the share of {self._analyst}, which buys nothing more: from now on its questions are "
            "answered by what has been measured",
        )
