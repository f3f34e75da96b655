"""Lower bounds on what transcripts reveal, and how large a fault would have been seen.

Transcripts are rows of numbers, from two neighbouring tables. The first half of them chooses the event that tells the
tables apart best; the second half, which the choice has not seen, gives Clopper-Pearson bounds on its two
probabilities. Whatever is chosen, the bound is at most the true loss with probability 1 - alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, betaincinv, ndtr

from bursar.arrays import Reals
from bursar.core.accounting import Mode

Score = Callable[[Reals], Reals]
Loss = Callable[[Reals, Reals], Reals]
"""The least loss, in the unit of the budget, under which an event can have probabilities p and q <= p."""

BINS = 16
"""Most bins of one number of a transcript."""

THRESHOLDS = 199
ORDERS = (1.01, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0)
"""Orders of the divergence at which rho is looked for."""

POWER = 0.99
"""The probability with which a fault that is called detectable is found."""

LARGEST_LOSS = 60.0
SMALLEST_PROBABILITY = 1e-300


def loss_of(mode: Mode, order: int | None) -> Loss:
    """What two probabilities of one event say about the loss: epsilon, rho, or the divergence over its order."""
    if mode is Mode.PURE:
        return lambda p, q: np.maximum(
            np.log(np.maximum(p, SMALLEST_PROBABILITY) / np.maximum(q, SMALLEST_PROBABILITY)), 0.0
        )
    orders = ORDERS if order is None else (float(order),)
    return lambda p, q: np.max([_divergence(p, q, each) / each for each in orders], axis=0)


def _divergence(p: Reals, q: Reals, order: float) -> Reals:
    """The Renyi divergence of a bit with probability p from one with q; 0 where p does not exceed q."""
    p, q = np.clip(p, SMALLEST_PROBABILITY, 1 - 1e-15), np.clip(q, SMALLEST_PROBABILITY, 1 - 1e-15)
    ones = order * np.log(p) + (1 - order) * np.log(q)
    zeros = order * np.log1p(-p) + (1 - order) * np.log1p(-q)
    return np.where(p > q, np.logaddexp(ones, zeros) / (order - 1), 0.0)


def bound(likely: Reals, unlikely: Reals, count: int, *, alpha: float, loss: Loss) -> Reals:
    """A number that is at most the loss with probability 1 - alpha, of an event with these hits of `count`."""
    low = np.where(likely > 0, betaincinv(np.maximum(likely, 1), count - likely + 1, alpha / 2), 0.0)
    high = np.where(unlikely < count, betaincinv(unlikely + 1, np.maximum(count - unlikely, 1), 1 - alpha / 2), 1.0)
    return np.where(low > high, loss(low, high), 0.0)


@dataclass(frozen=True, kw_only=True)
class _Event:
    """A score that reaches a threshold, or does not."""

    score: Score
    threshold: float
    below: bool  # the event is that it does not
    swap: bool  # it is the right table on which the event is likely

    def hits(self, left: Reals, right: Reals) -> tuple[Reals, Reals]:
        reached = [np.sum(self.score(side) >= self.threshold) for side in (left, right)]
        a, b = (float(len(left) - n if self.below else n) for n in reached)
        return (np.array(b), np.array(a)) if self.swap else (np.array(a), np.array(b))


def lower_bound(left: Reals, right: Reals, *, alpha: float, loss: Loss) -> float:
    """A number that is at most the true loss with probability 1 - alpha; both arrays are (transcripts, numbers)."""
    half = len(left) // 2
    event = _chosen(left[:half], right[:half], alpha, loss)
    likely, unlikely = event.hits(left[half:], right[half:])
    return float(bound(likely, unlikely, len(left) - half, alpha=alpha, loss=loss))


def _chosen(left: Reals, right: Reals, alpha: float, loss: Loss) -> _Event:
    """The event that would give the largest bound if these were the transcripts it is tested on."""
    best, event = -1.0, _Event(score=_column(0), threshold=0.0, below=False, swap=False)
    count = len(left)
    for score in _scores(left, right):
        a, b = np.sort(score(left)), np.sort(score(right))
        at = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0.002, 0.998, THRESHOLDS)))
        reached = [count - np.searchsorted(side, at).astype(float) for side in (a, b)]
        for below in (False, True):
            ours, theirs = (count - n if below else n for n in reached)
            for swap in (False, True):
                likely, unlikely = (theirs, ours) if swap else (ours, theirs)
                seen = bound(likely, unlikely, count, alpha=alpha, loss=loss)
                place = int(np.argmax(seen))
                if seen[place] > best:
                    best = float(seen[place])
                    event = _Event(score=score, threshold=float(at[place]), below=below, swap=swap)
    return event


def _scores(left: Reals, right: Reals) -> Iterator[Score]:
    """Each number by itself; and the log ratios of its bins, added up over the numbers that tell the most."""
    telling, ratios = [], []
    for column in range(left.shape[1]):
        if np.ptp(left[:, column]) == 0 and np.ptp(right[:, column]) == 0 and left[0, column] == right[0, column]:
            continue
        yield _column(column)
        ratio, apart = _log_ratios(left[:, column], right[:, column])
        telling.append((apart, column))
        ratios.append((column, ratio))
    order = [column for _, column in sorted(telling, reverse=True)]
    for many in sorted({1, 2, 4, 8, 16, len(order)}):
        if order and many <= len(order):
            columns = set(order[:many])
            yield _added([(column, ratio) for column, ratio in ratios if column in columns])


def _column(place: int) -> Score:
    return lambda transcripts: transcripts[:, place]


def _added(ratios: list[tuple[int, Score]]) -> Score:
    return lambda transcripts: np.sum([ratio(transcripts[:, column]) for column, ratio in ratios], axis=0)


def _log_ratios(left: Reals, right: Reals) -> tuple[Score, float]:
    """The log ratio of the bin that a number falls into, and how far apart the bins say that the tables are."""
    both = np.concatenate([left, right])
    values = np.unique(both)
    cuts = values[1:] if len(values) <= BINS else np.unique(np.quantile(both, np.linspace(0, 1, BINS + 1)[1:-1]))
    a, b = (np.bincount(np.searchsorted(cuts, side, "right"), minlength=len(cuts) + 1) + 1.0 for side in (left, right))
    ratio = np.log(a / a.sum()) - np.log(b / b.sum())
    apart = float(np.sum((a / a.sum() - b / b.sum()) * ratio))
    return lambda numbers: ratio[np.searchsorted(cuts, numbers, "right")], apart


def detectable(transcripts: int, claimed: float, *, alpha: float, mode: Mode, order: int | None) -> float | None:
    """The least true loss that `lower_bound` would put above the claim with probability `POWER`; None where none is.

    The loss is taken to show as that of noise does: for epsilon in an event that has probability 1/2 on one table
    (Laplace noise), for rho in the two halves of a Gaussian that is shifted. Hits are taken at their quantiles.
    """
    count, loss = transcripts - transcripts // 2, loss_of(mode, order)

    def detected(true: float) -> bool:
        if mode is Mode.PURE:
            p, q = 0.5, 0.5 * math.exp(-true)
        else:
            p = float(ndtr(math.sqrt(true / 2)))
            q = 1 - p
        likely, unlikely = _quantile(count, p, (1 - POWER) / 2), _quantile(count, q, (1 + POWER) / 2)
        return float(bound(np.array(likely), np.array(unlikely), count, alpha=alpha, loss=loss)) > claimed

    low, high = claimed, LARGEST_LOSS
    if not detected(high):
        return None
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if detected(middle) else (middle, high)
    return high


def _quantile(count: int, p: float, chance: float) -> float:
    """The least number of hits that is not exceeded with at least this chance."""
    low, high = -1, count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bdtr(middle, count, p) >= chance else (middle, high)
    return float(high)
