"""Answers from rows that were measured before: the same again, by least squares, or refined.

exact        the same strategy was measured: its rows answer again, free, with the same numbers
reconstruct  rows of the log determine the answer together, free: least squares, or the inverse of a transform
apart        they do so for every question of a batch, or every number of a SELECT, by itself
refine       rows are made as exact as the goal needs: what they have cost counts towards what they will
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import Measured, Mode
from bursar.core.ledger import Purpose
from bursar.core.queries import LinearMap, Predicate
from bursar.estimation.estimate import (
    Certain,
    ErrorLaw,
    Estimate,
    IndependentRows,
    LawOfQuestions,
    NearlyNormal,
    WeightedRows,
    meets,
)
from bursar.estimation.least_squares import Block, LaterRows
from bursar.estimation.sine_columns import answers
from bursar.goal import GoalKind
from bursar.planner.grant import Verbs
from bursar.planner.numbers_alone import numbers_alone
from bursar.planner.offer import Offer, Price, Proposer, Scope, Views, from_log
from bursar.planner.request import MOST_APART, PlanningRequest
from bursar.proposers.buying.purchase import CandidateRows, PurchaseProblem
from bursar.proposers.direct import Partwise
from bursar.views.measurements import ALL_ROWS, noise_of, products_of
from bursar.views.nodes import Node, boxes_of


class Exact(Proposer):
    """The same strategy was measured before: its rows answer again, free, with the same numbers."""

    name = "exact"
    any_map = same_rows = reads_rows = True

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload = request.workload.map
        if workload.rows == 0:
            nothing = Estimate(values=np.zeros(0), law=Certain())
            note = "0 by definition: no row can match" if request.workload.outputs else "declared, and public"
            return [Offer(proposer=self.name, price=Price(), law=Certain(), run=lambda verbs: nothing, note=note)]
        record = views.measurements.finest.get(workload.digest)
        if record is None:
            return []
        law = IndependentRows(noise=noise_of(record), rows=workload.rows)
        estimate = Estimate(values=record.values.astype(float), law=law)
        return [
            Offer(
                proposer=self.name,
                price=Price(),
                law=law,
                run=lambda verbs: estimate,
                reuses=workload.rows,
                note=f"measured before, record {record.position}",
                same_rows=True,
            )
        ]


class Reconstruct(Proposer):
    """Weighted least squares over rows of the log, or the inverse of a measured transform: free."""

    name = "reconstruct"
    reads_rows = True

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        """The reconstruction with the least mean squared error, if any determines the question.

        Where that does not do, what the log said when the question was asked before. Where nothing does and the number
        of rows is public, it is taken in, with the first question that it helps.
        """
        offers = self.now(request, views)
        if any(meets(offer.law, request.goal) for offer in offers):
            return offers
        offers += self._as_before(request, views)
        total = views.free_total()
        if total is None or any(meets(offer.law, request.goal) for offer in offers):
            return offers
        return [*offers, *self._with_total(total, request, views)]

    def _as_before(self, request: PlanningRequest, views: Views) -> list[Offer]:
        """What was answered once is free for ever with the same goal, whatever was measured beside it or since."""
        workload = request.workload.map
        bought_at = views.measurements.bought_for.get(Purpose(request.text, self.name).question, ())
        asked_at = views.asked_at(request.analyst, workload.digest)
        if request.goal.kind is GoalKind.SPEND or not (bought_at or asked_at) or not products_of(workload):
            return []
        estimate = views.reconstructions.earlier(workload, request.goal, bought_at=bought_at, asked_at=asked_at)
        return [] if estimate is None else [_offered(estimate, "as when it was first asked")]

    def _with_total(self, total: Measured, request: PlanningRequest, views: Views) -> list[Offer]:
        workload = request.workload.map
        if workload.rows == 0 or not products_of(workload):
            return []
        offers: list[Offer] = []
        for reconstruction in views.reconstructions.over(workload):
            twin = reconstruction.copy()
            twin.add(Block(ALL_ROWS, np.zeros(1, np.int64), total.noise))  # the last row
            weights = twin.weights_of(workload)
            if weights is None or not np.any(weights[:, -1]):
                continue
            law, rows = twin.law_of(weights), len(reconstruction.values)
            offers.append(
                Offer(
                    proposer=self.name,
                    price=Price(events=(total,)),
                    law=law,
                    run=partial(_with_public_total, weights, law, reconstruction.values, total),
                    reuses=rows,
                    buys=1,
                    note=f"least squares over {rows} measured rows and the number of all rows, which is public",
                )
            )
        return sorted(offers, key=lambda offer: offer.law.mean_square())[:1]

    def now(self, request: PlanningRequest, views: Views) -> list[Offer]:
        """The best of what all rows of the log say, whether that is exact enough or not."""
        workload = request.workload.map
        if workload.rows == 0 or isinstance(workload, Predicate):
            return []
        reconstructions = views.reconstructions.over(workload)
        if request.goal.kind is GoalKind.ERROR and not request.explain:  # whoever asks for all ways gets this one too
            reconstructions = (each for each in reconstructions if not each.too_coarse(workload, request.goal.amount))
        estimates = [reconstruction.answered(workload) for reconstruction in reconstructions]
        if views.measurements.lines:
            estimates += answers(views.measurements.lines, workload)
        estimate = min((each for each in estimates if each is not None), key=_mean_square, default=None)
        if estimate is None:
            return []
        return [_offered(estimate)]


def _offered(estimate: Estimate, *remarks: str) -> Offer:
    reuses, how = _origin(estimate)
    return Offer(
        proposer=Reconstruct.name,
        price=Price(),
        law=estimate.law,
        run=partial(from_log, estimate),
        reuses=reuses,
        note=", ".join((f"{how} over {reuses} measured rows", *remarks)),
    )


def _mean_square(estimate: Estimate) -> float:
    return estimate.law.mean_square()


def _origin(estimate: Estimate) -> tuple[int, str]:
    """How many rows of the log an estimate is made of, and how."""
    if isinstance(estimate.law, NearlyNormal):
        return estimate.law.draws, "inverse sine transform"
    assert isinstance(estimate.law, WeightedRows | LaterRows)
    return len(estimate.law.noises), "least squares"


def _with_public_total(weights: Reals, law: ErrorLaw, values: Reals, total: Measured, verbs: Verbs) -> Estimate:
    everybody = verbs.measure(total.strategy, total.noise).values
    return Estimate(values=weights @ np.concatenate([values, everybody]), law=law)


def one_by_one(request: PlanningRequest) -> tuple[PlanningRequest, ...]:
    """The questions, or numbers, each with an even share of the chance to fail; none where there is one, or very many.

    All of them hold together then, as chances add up.
    """
    every = request.alone or numbers_alone(request)
    goals = [each.goal.shared(len(every)) for each in every]
    shared = [replace(goal, most=None) for goal in goals if goal is not None]
    if not 2 <= len(every) <= MOST_APART or len(shared) < len(every):
        return ()
    return tuple(replace(each, goal=goal) for each, goal in zip(every, shared, strict=True))


def named(request: PlanningRequest) -> str:
    """What they are called."""
    return "questions" if request.alone else "numbers"


def answered_by(request: PlanningRequest, every: Sequence[PlanningRequest], laws: Sequence[ErrorLaw]) -> LawOfQuestions:
    """The law of their rows, one after the other, each answered with a law that keeps its goal."""
    return LawOfQuestions(
        laws=tuple(laws),
        goals=tuple(each.goal for each in every),
        sizes=tuple(each.workload.map.rows for each in every),
        questions=tuple(each.workload for each in every),
        amount=request.goal.amount,
    )


class Known(Proposer):
    """Every question of a batch, or number of a SELECT, from what the log knows: as they were bought by `Apart`."""

    name = "apart"
    scope = Scope(goals=(GoalKind.ERROR,), several=True)
    reads_rows = True

    def __init__(self) -> None:
        self._proposers: tuple[Proposer, ...] = (Exact(), Partwise(), Reconstruct())

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        every, known = one_by_one(request), []
        for each in every:
            offer = self.known(each, views)
            if offer is None:
                return []
            known.append(offer)
        if not known:
            return []
        law, kind = answered_by(request, every, [offer.law for offer in known]), named(request)
        return [
            Offer(
                proposer=self.name,
                price=Price(events=tuple(event for offer in known for event in offer.price.events)),
                law=law,
                run=partial(_each_of, known, law),
                reuses=sum(offer.reuses for offer in known),
                buys=sum(offer.buys for offer in known),
                note=f"{len(known)} {kind} one by one: {', '.join(dict.fromkeys(offer.proposer for offer in known))}",
            )
        ]

    def known(self, request: PlanningRequest, views: Views) -> Offer | None:
        """What answers one of them for nothing, if anything does."""
        offered = (offer for proposer in self._proposers for offer in proposer.offers(request, views))
        return next((offer for offer in offered if offer.free and meets(offer.law, request.goal)), None)


def _each_of(offers: Sequence[Offer], law: ErrorLaw, verbs: Verbs) -> Estimate:
    return Estimate(values=np.concatenate([offer.run(verbs).values for offer in offers]), law=law)


MOST_REFINED_ROWS = 512
"""Most rows of a question that are looked up one by one."""


class Refine(Proposer):
    """Rows that were measured before are made as exact as the goal needs.

    Laplace noise only: a fresh Gaussian row adds its precision to the old one, and `direct` or `tree` buys it.
    """

    name = "refine"

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload = request.workload.map
        if (
            views.mode is not Mode.PURE
            or request.goal.kind is GoalKind.SPEND
            or not 1 <= workload.rows <= MOST_REFINED_ROWS
        ):
            return []
        nodes = _measured_nodes(workload, views)
        measured = sum(node is not None for node in nodes)
        problem = PurchaseProblem.of(CandidateRows(rows=workload, nodes=nodes), request, views) if measured else None
        purchase = None if problem is None else problem.cheapest()
        price = None if problem is None or purchase is None else problem.price(purchase)
        if purchase is None or price is None:
            return []
        note = f"{measured} of {workload.rows} rows were measured before"
        return [purchase.offer(self.name, price, note=note)]


def _measured_nodes(workload: LinearMap, views: Views) -> list[Node | None]:
    """Where the question's own rows stand in the log."""
    nodes: list[Node | None] = []
    for part in products_of(workload):
        columns = views.domain.ordered(part.attrs)
        boxes = boxes_of(part, columns, views.domain)
        finest = views.nodes.over(columns)
        nodes += [None] * part.rows if boxes is None else [finest.get(box) for box in boxes]
    return nodes
