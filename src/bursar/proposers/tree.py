"""Answer from the nodes of sparse trees: what one question buys, the next ones reuse and refine.

A question's own rows are the cheapest thing to measure for it alone, and of little use to any other. Nodes are dearer
for one question, and shared by all. So nodes bid below their price, with credit for what was paid for other rows on the
same columns since nodes were last bought: the rule of ski rental, as for `invest`.

The levels are sparse. A column is halved again and again down to single cells. Measured are the cells, the nodes three
halvings above them, six above, and so on, but never the root. Fewer levels mean fewer rows over each person, and a row
costs its whole loss again; more levels mean fewer rows to a question. With Laplace noise, where precision grows with
the square of the loss, eight children to a node are about right for questions of all sizes; the rule looks at the size
of the domain only.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from itertools import product as combinations
from typing import Protocol

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Measured, Mode
from bursar.core.domain import Domain
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.errors import BudgetError
from bursar.estimation.least_squares import Reconstruction
from bursar.goal import GoalKind
from bursar.planner.offer import Offer, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.buying.purchase import (
    Bought,
    CandidateRows,
    LevelledPurchase,
    PurchaseProblem,
    alone_fall_short,
    finer,
    least_price_at,
    loss_at,
    price_at,
)
from bursar.proposers.direct import Direct
from bursar.views.measurements import products_of
from bursar.views.nodes import Box, Range, boxes_of, ranges_of

Columns = tuple[str, ...]

HALVINGS = 3
"""Halvings between two levels that are measured."""

FEW_CELLS = 16
"""Columns of so few cells have one level: their cells."""

MOST_NODES = 512
"""Most nodes that one question may need."""

EXACT_PRICE_SHARE = 0.85
"""The exact price is hardly ever below this share of what the approximate tails say."""

LEVEL_TO_LOOK_AT = 1.2
"""Nodes with so many times the loss of the question's own rows cost more than these, by that share, unless nodes are
better placed: where their price is looked at first."""


class Whole(Protocol):
    """What a strategy for all questions costs."""

    def near(self, request: PlanningRequest, views: Views) -> Columns | None:
        """The columns of one that is worth waiting for; None where there is none."""


class Tree(Proposer):
    """The nodes of a sparse tree of ranges that make up a question, reused, refined or bought.

    `theta` says from which share of the nodes' price on rent justifies them; 1 where they bid their price. `rival` is
    asked beside the nodes anyway: where it is certainly cheaper, no time is spent on them.
    """

    name = "tree"

    def __init__(self, *, theta: dict[Mode, float], rival: Proposer | None = None, whole: Whole | None = None) -> None:
        self._theta, self._rival, self._whole = theta, rival, whole

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload = request.workload.map
        if request.goal.kind is GoalKind.SPEND or workload.rows == 0:
            return []
        columns = views.domain.ordered(workload.attrs)
        candidates = candidate_nodes(workload, columns, views)
        if candidates is None:
            return []
        if len(columns) > 1 and self._whole is not None and self._whole.near(request, views) is not None:
            views = views.buying_nothing_ahead()
        direct = min(Direct().offers(request, views), key=lambda offer: offer.price.at_most, default=None)
        dear_level = None if direct is None else self._dear_level(candidates, direct, columns, views)
        if dear_level is not None and alone_fall_short(candidates, dear_level, request, views):
            return []
        problem = PurchaseProblem.of(candidates, request, views)
        if problem is None:
            return []
        purchase = problem.cheapest() if self._worthwhile(problem, direct, dear_level, columns) else None
        offer = None if purchase is None else self._offer(problem, purchase, columns)
        return [] if offer is None else [offer]

    def _offer(self, problem: PurchaseProblem, purchase: LevelledPurchase, columns: Columns) -> Offer | None:
        views, price = problem.views, problem.price(purchase)
        if price is None:
            return None
        more = proactive(purchase, columns, views)
        try:
            more = more if more and views.slack(purchase.events, more) else ()
        except BudgetError:
            more = ()
        note = f"{len(problem.candidates.nodes)} nodes of a tree"
        if more:
            note += f", {sum(event.strategy.rows for event in more)} more at no cost"
        return purchase.offer(self.name, price, more=more, note=note, credit=self._credit(price, columns, views))

    def _credit(self, price: int, columns: Columns, views: Views) -> int:
        """What nodes bid below their price: all of it, where that may be spent for later questions.

        Where anything may be bought, it is the rule of ski rental: the share that `theta` leaves, and the rent so far.
        Nodes over several columns help questions about the same ones only, so they wait for the second one; and what is
        spent on the columns stays below the cap by itself, too.
        """
        theta = self._theta[views.mode]
        if theta >= 1:
            return 0
        if views.investing is None:
            return price - math.ceil(theta * price) + views.rents.since(columns, self.name, all_nodes)
        if len(columns) > 1 and not views.investing.room.repeated:
            return 0
        credit = views.credit(price, price)
        shared = views.analyst is not None  # what is spent on the columns is not the account's alone
        if not credit or shared or views.investing.room.allows_on_columns(price, views.rents.spent_on(columns)):
            return credit
        return 0

    def _worthwhile(
        self, problem: PurchaseProblem, direct: Offer | None, dear_level: float | None, columns: Columns
    ) -> bool:
        """Whether the nodes could win at about their least price, before time is spent on finding the exact one.

        Early on, nodes over several columns do not win where the question itself is free: they would fill up what is
        free for the next questions, of which hardly any can use them.
        """
        investing = problem.views.investing
        free = direct is not None and direct.price.at_most == 0
        if len(columns) > 1 and free and investing is not None and investing.room.early:
            return False
        if dear_level is not None and problem.falls_short(dear_level):
            return False
        if direct is not None and self._beaten(problem, direct, columns):
            return False
        if problem.least is None or direct is None:
            return problem.least is not None
        return self._least_bid(problem.least, columns, problem.views) <= direct.price.at_most

    def _dear_level(self, candidates: CandidateRows, direct: Offer, columns: Columns, views: Views) -> float | None:
        """A level of loss at which nodes would bid more than the question itself; None where none is known.

        Prices and bids grow with the level, so where nodes of this level fall short of the goal, those that keep it bid
        no less.
        """
        direct_price, event = direct.price.at_most, direct.price.events[0]
        if self._least_bid(math.ceil(LEVEL_TO_LOOK_AT * direct_price) + 1, columns, views) <= direct_price:
            return None  # what they may bid below their price decides
        assert isinstance(event, Measured)
        level = LEVEL_TO_LOOK_AT * loss_at(event.noise.scale, views.mode)
        for price_of in (least_price_at, price_at):
            price = price_of(candidates, level, views)
            if price is not None and self._least_bid(price, columns, views) > direct_price:
                return level
        if not price or not direct_price:
            return None
        level *= LEVEL_TO_LOOK_AT / EXACT_PRICE_SHARE * direct_price / price  # of rows with other coefficients
        price = price_at(candidates, level, views)
        return level if price is not None and self._least_bid(price, columns, views) > direct_price else None

    def _beaten(self, problem: PurchaseProblem, direct: Offer, columns: Columns) -> bool:
        """The same, beside the rival: nodes that would bid more than it asks fall short of the goal already.

        A price is about proportional to the level, which tells the level to look at; what is found there decides.
        Beside a cheaper offer of as many rows, nodes bid their price.
        """
        offers = [] if self._rival is None else self._rival.offers(problem.request, problem.views)
        rival = min(offers, key=lambda offer: offer.price.at_most, default=None)
        event = direct.price.events[0]
        assert isinstance(event, Measured)
        level = loss_at(event.noise.scale, problem.views.mode)
        price = None if rival is None else price_at(problem.candidates, level, problem.views)
        if rival is None or not price:
            return False
        rival_price = rival.price.at_most
        level *= LEVEL_TO_LOOK_AT * rival_price / price
        price = price_at(problem.candidates, level, problem.views)
        if price is None:
            return False
        as_many = rival.reuses + rival.buys >= len(problem.candidates.nodes)
        least = math.floor(EXACT_PRICE_SHARE * price) if as_many else self._least_bid(price, columns, problem.views)
        return least > rival_price and problem.falls_short(level)

    def _least_bid(self, price: int, columns: Columns, views: Views) -> int:
        """What nodes of about this price would bid at least."""
        least = math.floor(EXACT_PRICE_SHARE * price)
        return least - self._credit(least, columns, views)


def candidate_nodes(workload: LinearMap, columns: Columns, views: Views) -> CandidateRows | None:
    """The nodes that make up a question; None where it is not about ranges, or is made of too many nodes.

    Edge cases: None as well where the nodes are the question's own rows, all new: that is asking directly.
    """
    parts = products_of(workload)
    if not columns or any(views.domain.ordered(part.attrs) != columns for part in parts):
        return None
    made_of = [_nodes_of(part, columns) for part in parts]
    nodes_of_parts = [nodes for each in made_of if each is not None for nodes, _ in [each]]
    if len(nodes_of_parts) < len(parts):
        return None
    boxes = list(dict.fromkeys(box for nodes in nodes_of_parts for box in combinations(*nodes)))
    if len(boxes) > MOST_NODES:
        return None
    finest = views.nodes.over(columns)
    nodes = [finest.get(box) for box in boxes]
    if not any(nodes):
        own_boxes = [boxes_of(part, columns, views.domain) for part in parts]
        if set(boxes) == {box for part in own_boxes for box in part or ()}:
            return None
    rows = rows_for(boxes, nodes_of_parts[0] if len(parts) == 1 else None, columns, views.domain)
    disjoint = made_of[0][1] if len(parts) == 1 and made_of[0] is not None else 0
    return CandidateRows(rows=rows, nodes=nodes, boxes=boxes, fewest=disjoint)


def _nodes_of(part: Product, columns: Columns) -> tuple[list[list[Range]], int] | None:
    """Per column, the nodes that make up every range between two cells that the product's rows tell apart.

    And the fewest that a row is a sum of, with coefficients 1 and -1; 0 where one has others.
    """
    if any(len(mask.attrs) != 1 for mask in part.masks):
        return None
    nodes: dict[str, list[Range]] = {}
    total, fewest = 1, 1
    for mask in part.masks:
        breaks = mask.steps.breaks()
        if len(breaks) > MOST_NODES:
            return None
        ends, cuts = [*breaks[1:].tolist(), mask.steps.size], levels(mask.steps.size)
        coefficients = np.abs(mask.steps.at_cells(breaks))
        nonzero: list[bool] = np.any(coefficients, axis=0).tolist()
        nodes_of_pieces = [
            decompose(low, high, cuts) if some else []
            for low, high, some in zip(breaks.tolist(), ends, nonzero, strict=True)
        ]
        nodes[mask.attrs[0]] = [node for piece in nodes_of_pieces for node in piece]
        total *= len(nodes[mask.attrs[0]])
        if total > MOST_NODES:
            return None
        sizes = coefficients @ np.array([len(piece) for piece in nodes_of_pieces])
        fewest *= int(sizes.min(initial=total)) if coefficients.max(initial=0) <= 1 else 0
    return [nodes[name] for name in columns], fewest


def rows_for(boxes: list[Box], grid: list[list[Range]] | None, columns: Columns, domain: Domain) -> LinearMap:
    """Boxes as queries: one product where they are a grid or have one column, else one each."""
    sizes = domain.sizes(columns)
    if grid is not None:
        return Product(tuple(_mask(*each) for each in zip(columns, map(tuple, grid), sizes, strict=True)))
    if len(columns) == 1:
        return Product((_mask(columns[0], tuple(low_high for (low_high,) in boxes), sizes[0]),))
    each = [
        Product(tuple(_mask(name, (low_high,), size) for name, low_high, size in zip(columns, box, sizes, strict=True)))
        for box in boxes
    ]
    return each[0] if len(each) == 1 else Stack(tuple(each))


@lru_cache(maxsize=4096)
def _mask(name: str, ranges: tuple[Range, ...], size: int) -> Mask:
    """Remembered: most questions about a column are made of the same nodes."""
    lows, highs = np.array(ranges).T
    return Mask((name,), (size,), Steps.ranges(lows, highs, size))


def all_nodes(strategy: LinearMap) -> bool:
    """Whether everything that a strategy measures is a node, or a product of nodes."""
    masks = [mask for part in products_of(strategy) for mask in part.masks]
    if not masks or any(len(mask.attrs) != 1 for mask in masks):
        return False
    rows = [(ranges_of(mask.steps), levels(mask.steps.size)) for mask in masks]
    return all(ranges is not None and all(is_node(*low_high, cuts) for low_high in ranges) for ranges, cuts in rows)


LONGEST_PROACTIVE_COLUMN = 2048
"""Longest column whose levels are bought where that costs nothing."""

LEAST_PROACTIVE_SHARE = 0.3
"""Nodes are bought if there is room for at least this share of the loss that the question's own nodes need."""

STEPS_PER_OCTAVE = 4
"""Losses come in steps, so that few purchases are needed."""

ROUNDING_OF_PRICES = 1e-9
"""Room that is left unused, since prices are rounded up."""


def proactive(purchase: LevelledPurchase, columns: tuple[str, ...], views: Views) -> tuple[Bought, ...]:
    """What fits below the largest loss on one column after the purchase.

    Edge cases: nothing for joint or very long columns; nor with Gaussian noise, where `incremental` fills the room.
    """
    if views.mode is not Mode.PURE or len(columns) != 1 or views.domain[columns[0]].size > LONGEST_PROACTIVE_COLUMN:
        return ()
    name, size = columns[0], views.domain[columns[0]].size
    loss = _losses(purchase.after)[purchase.after.classes[name]]
    cap = float(loss.max(initial=0.0)) * (1 - ROUNDING_OF_PRICES)
    finest, taken = views.nodes.over(columns), set(purchase.candidates.boxes)
    events: list[Bought] = []
    used = [cuts for cuts in levels(size) if any(is_node(low, high, (cuts,)) for ((low, high),) in taken)]
    for cuts in reversed(used):
        boxes = [box for box in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True) if (box,) not in taken]
        if not boxes:
            continue
        lows, highs = np.array(boxes).T
        mask = Mask(columns, (size,), Steps.ranges(lows, highs, size))
        candidates = CandidateRows(rows=Product((mask,)), nodes=[finest.get((box,)) for box in boxes])
        present = candidates.losses(views.mode)
        room = cap - np.array([loss[low:high].max() for low, high in boxes])
        after = _in_steps(np.minimum(present + np.maximum(room, 0.0), purchase.level), purchase.level)
        after = np.where((after >= LEAST_PROACTIVE_SHARE * purchase.level) & (after > present), after, 0.0)
        events += finer(candidates, after, views)
        for (low, high), more in zip(boxes, np.where(after > 0, after - present, 0.0), strict=True):
            loss[low:high] += more
    return tuple(events)


def _in_steps(losses: Reals, level: float) -> Reals:
    """Rounded down to the level over a power of 2^(1/4)."""
    steps = np.ceil(STEPS_PER_OCTAVE * np.log2(level / np.maximum(losses, level * 2.0**-10)) - 1e-6)
    return np.asarray(level * 2.0 ** (-steps / STEPS_PER_OCTAVE))


def _losses(after: Reconstruction) -> Reals:
    """The loss of each merged cell, from everything known on its columns."""
    each = after.noisy / np.array([noise.scale for noise in after.noises])
    return np.asarray(each @ np.abs(after.rows / np.sqrt(after.state.cells)))


@lru_cache(maxsize=64)
def levels(size: int) -> tuple[Integers, ...]:
    """Where the nodes of each level begin, from the coarsest level to single cells; one begins where another ends."""
    halved = [np.array([0, size])]
    while len(halved[-1]) <= size:
        cuts = halved[-1]
        middles = cuts[:-1] + np.diff(cuts) // 2
        halved.append(np.union1d(cuts, middles))
    if size <= FEW_CELLS:
        return (halved[-1],)
    return tuple(halved[:0:-HALVINGS][::-1])


def decompose(low: int, high: int, cuts: tuple[Integers, ...]) -> list[tuple[int, int]]:
    """The fewest nodes of the levels that make up a range, from left to right."""
    if high - low <= 1:  # single cells are nodes of the finest level
        return [(low, high)] if low < high else []
    coarsest, finer = cuts[0], cuts[1:]
    first, last = np.searchsorted(coarsest, low), np.searchsorted(coarsest, high, side="right")
    inside = coarsest[first:last].tolist()
    if len(inside) < 2:
        return decompose(low, high, finer)
    nodes = list(itertools.pairwise(inside))
    return [*decompose(low, inside[0], finer), *nodes, *decompose(inside[-1], high, finer)]


def is_node(low: int, high: int, cuts: tuple[Integers, ...]) -> bool:
    """Whether a range is a node of one of the levels."""
    for level in cuts:
        place = int(np.searchsorted(level, low))
        if place + 1 < len(level) and level[place] == low and level[place + 1] == high:
            return True
    return False
