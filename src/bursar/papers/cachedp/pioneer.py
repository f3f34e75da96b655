"""Pioneer (Peng et al., ICDE 2013): one range at a time, from past ranges and one fresh answer."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.noise.law import LARGEST_SCALE
from bursar.core.queries import LinearMap, Mask, Product, Steps
from bursar.estimation.estimate import Estimate
from bursar.estimation.least_squares import Block
from bursar.goal import Goal, GoalKind
from bursar.papers.cachedp.believed_errors import believed, laplace_scale
from bursar.planner.grant import Verbs
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.views.measurements import Measurements

Range = tuple[int, int]


@dataclass
class Past:
    """The ranges that were measured on one column: a graph of cuts, each range an edge as long as its variance.

    A range is the signed sum of any path between its ends; the shortest one has the least variance. All distances are
    kept: a new edge changes them in one pass.
    """

    measured: dict[Range, tuple[float, float]] = field(default_factory=dict)  # range -> value, variance
    place: dict[int, int] = field(default_factory=dict)  # of each cut in the matrices, in the order of the numbers
    length: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))  # of edges
    distance: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))

    def copy(self) -> Past:
        return Past(dict(self.measured), dict(self.place), self.length.copy(), self.distance.copy())

    def add(self, span: Range, value: float, variance: float) -> None:
        """Take an independent answer in; answers to the same range are weighted by their precisions."""
        if span in self.measured:
            old_value, old = self.measured[span]
            share = old / (old + variance)
            value, variance = share * value + (1 - share) * old_value, old * variance / (old + variance)
        self.measured[span] = value, variance
        low, high = (self._place(cut) for cut in span)
        self.length[low, high] = self.length[high, low] = variance
        d = self.distance
        if variance < d[low, high]:
            np.minimum(d, d[:, [low]] + variance + d[high], out=d)
            np.minimum(d, d[:, [high]] + variance + d[low], out=d)

    def variance(self, span: Range) -> float:
        """The least variance of the range as a sum of past ones; infinite where it is none."""
        if not all(cut in self.place for cut in span):
            return math.inf
        return float(self.distance[self.place[span[0]], self.place[span[1]]])

    def value(self, span: Range) -> float:
        """The estimate along the shortest path."""
        cuts = list(self.place)
        here, end = (self.place[cut] for cut in span)
        total = 0.0
        while here != end:
            ahead = int(np.argmin(self.length[here] + self.distance[end]))
            forward = self.measured.get((cuts[here], cuts[ahead]))
            total += forward[0] if forward is not None else -self.measured[cuts[ahead], cuts[here]][0]
            here = ahead
        return total

    def _place(self, cut: int) -> int:
        if cut not in self.place:
            self.place[cut] = len(self.place)
            self.length = np.pad(self.length, (0, 1), constant_values=math.inf)
            self.distance = np.pad(self.distance, (0, 1), constant_values=math.inf)
            self.distance[-1, -1] = 0.0
        return self.place[cut]


@dataclass(frozen=True, kw_only=True)
class Piece:
    """How one range is answered: from the past, from a fresh measurement, or from both, weighted by precision."""

    span: Range
    noise: Noise | None  # of the fresh measurement
    share: float  # of the fresh measurement in the answer
    variance: float


class Pioneer(Proposer):
    """Each range of a workload by itself, with the variance that an (alpha, beta) goal comes to.

    If past ranges add up to the range with variance v1 <= v, it is free. Else a fresh answer of variance v2,
    1/v2 = 1/v - 1/v1, is bought and averaged with the past one. Later ranges of the workload use earlier ones.
    Remembers one log at a time; another log starts it anew. Several threads may ask.

    Differs: the variance is that of the Laplace tail (Ge et al.), where CacheDP simulates it. Simulations differ a
    little each time, and the same range again would be charged.
    """

    name = "pioneer"

    def __init__(self) -> None:
        self._log: Measurements | None = None
        self._pasts: dict[tuple[str, ...], tuple[Past, int]] = {}  # by column, with how many blocks were taken in
        self._lock = threading.Lock()

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload, goal = request.workload.map, request.goal
        if goal.kind is GoalKind.SPEND or not isinstance(workload, Product) or not only_ranges(workload):
            return []
        history = self._advanced(views, workload.attrs)
        pieces = plan(spans_of(workload), target(goal, workload.rows), history)
        bought = [(piece, _single(workload.masks[0], piece.span)) for piece in pieces]
        events = tuple(
            Measured(strategy=query, noise=piece.noise, version=views.version)
            for piece, query in bought
            if piece.noise is not None
        )
        law = believed(np.array([piece.variance for piece in pieces]), goal)

        def run(verbs: Verbs) -> Estimate:
            past = history.copy() if len(pieces) > 1 else history
            return Estimate(values=_answers(bought, past, verbs), law=law)

        price = Price(events=events, at_most=views.price(events) if events else 0)
        known_rows = sum(piece.share < 1 for piece in pieces)
        note = f"{len(events)} of {len(pieces)} ranges measured, {known_rows} from earlier ones"
        return [
            Offer(proposer=self.name, price=price, law=law, run=run, reuses=known_rows, buys=len(events), note=note)
        ]

    def _advanced(self, views: Views, columns: tuple[str, ...]) -> Past:
        with self._lock:
            if self._log is not views.measurements:
                self._log, self._pasts = views.measurements, {}
            past, taken = self._pasts.get(columns, (Past(), 0))
            blocks = views.measurements.blocks.get(columns, [])
            past = past.copy() if len(blocks) > taken else past  # others may be reading it
            for block in blocks[taken:]:
                if isinstance(block, Block) and only_ranges(block.product):  # Pioneer refines nothing
                    take(past, block)
            self._pasts[columns] = past, len(blocks)
        return past


def target(goal: Goal, rows: int) -> float:
    """The variance that each range of a workload is asked with."""
    return 2 * laplace_scale(rows, goal) ** 2


def plan(spans: Sequence[Range], variance: float, past: Past) -> list[Piece]:
    """What to buy, range after range; depends on variances alone."""
    seen = past.copy() if len(spans) > 1 else past
    pieces = []
    for span in spans:
        piece = _piece(span, variance, seen.variance(span))
        pieces.append(piece)
        if piece.noise is not None and len(spans) > 1:
            seen.add(span, 0.0, piece.noise.variance())
    return pieces


def take(past: Past, block: Block) -> None:
    """A measured block of ranges."""
    for span, value in zip(spans_of(block.product), block.values.tolist(), strict=True):
        past.add(span, value, block.noise.variance())


def only_ranges(product: Product) -> bool:
    """Whether every row asks for one range of one column, each of its values once."""
    if len(product.masks) != 1 or len(product.attrs) != 1:
        return False
    steps = product.masks[0].steps
    cuts = np.diff(steps.starts)
    begins = steps.starts[:-1][cuts > 0]
    ends = np.setdiff1d(np.arange(len(steps.jump)), begins)
    return bool(
        np.all((cuts == 1) | (cuts == 2)) and np.all(steps.jump[begins] == 1) and np.all(steps.jump[ends] == -1)
    )


def spans_of(product: Product) -> list[Range]:
    """The ranges that the rows of a one-column product ask for."""
    steps = product.masks[0].steps
    cuts = np.split(steps.at, steps.starts[1:-1])
    return [(int(cut[0]), int(cut[1]) if len(cut) > 1 else steps.size) for cut in cuts]


def _piece(span: Range, variance: float, past: float) -> Piece:
    if past <= variance:
        return Piece(span=span, noise=None, share=0.0, variance=past)
    fresh = variance if math.isinf(past) else variance * past / (past - variance)  # 1/v2 = 1/v - 1/v1
    noise = Noise(kind=NoiseKind.LAPLACE, scale=min(math.sqrt(fresh / 2), LARGEST_SCALE))
    share = 1.0 if math.isinf(past) else past / (past + noise.variance())
    reached = noise.variance() if math.isinf(past) else past * noise.variance() / (past + noise.variance())
    return Piece(span=span, noise=noise, share=share, variance=reached)


def _single(mask: Mask, span: Range) -> Product:
    return Product((Mask(mask.attrs, mask.sizes, Steps.ranges([span[0]], [span[1]], mask.steps.size)),))


def _answers(bought: Sequence[tuple[Piece, LinearMap]], past: Past, verbs: Verbs) -> NDArray[np.float64]:
    answers = []
    for piece, query in bought:
        old_value = past.value(piece.span) if piece.share < 1 else 0.0
        if piece.noise is None:
            answers.append(old_value)
            continue
        value = float(verbs.measure(query, piece.noise).values[0])
        answers.append(piece.share * value + (1 - piece.share) * old_value)
        if len(bought) > 1:
            past.add(piece.span, value, piece.noise.variance())
    return np.array(answers)
