"""Selection: rows picked by their scores, without replacement, exactly. The argument is in `select.proof.md`.

Event, price, the verb, and the sampler. Rows of equal score are one class, so millions of rows are some thousands of
classes. A class is proposed by whole numbers that are a little too large, and what is too large about them is rejected,
exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial, reduce
from hashlib import blake2b
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.core.accounting.kind import Fields, Measured, PaidEvent
from bursar.core.accounting.profile import Footprint, columns_of, fine_units
from bursar.core.domain import Domain, Neighbours
from bursar.core.noise.exact_sampler import Words, agreed, exp_between, place, system_words
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE, UNIT_BITS
from bursar.core.queries import Ceiling, Hull, LinearMap, Mask, Product, Stack, Steps, Thresholds
from bursar.core.source.source import LARGEST_ANSWER, check_strategy
from bursar.errors import QueryError, Unsupported

if TYPE_CHECKING:
    from bursar.core.accounting.accountant import Accountant
    from bursar.core.accounting.events import Event
    from bursar.core.accounts import Charge
    from bursar.core.kernel import Kernel, PaymentTerms
    from bursar.core.ledger import Record

MOST_CANDIDATES = 2**25
"""Most rows that one selection may pick from."""

MOST_PICKS = 2**16
"""Most rows of one selection."""

MOST_JOINT_PICKS = 2**8
"""Most rows that are picked in one draw: sequences of so many picks are counted."""

NONE_BARRED: Integers = np.zeros(0, np.int64)
NONE_BARRED.setflags(write=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Selected(PaidEvent):
    """Rows of some candidates were picked by their scores |q_i(D) - e_i|, with estimates e_i that are public.

    `count` rows, one after the other without replacement, each with a probability proportional to exp(score / scale)
    among those left; rows that are barred, which is public too, are never picked. Where they are `joint`, which only
    ledgers of earlier versions have, it was one draw: different rows s_1, s_2, ... with a probability proportional to
    exp(-t / scale), t = max_j (c_(j) - c_{s_j}), c_(1) >= c_(2) >= ... the scores sorted. Of estimates and barred rows,
    which may be millions, the event has digests; in a plan, which need not know them yet, these may be empty.

    Edge cases: refused are candidates that are no products or thresholds, counts beyond 2^16, joint ones beyond 2^8, or
    beyond the candidates, and scales that are no float from 2^-6 to 2^40.
    """

    kind = "selected"
    JOINT = "jointly selected"
    candidates: LinearMap
    count: int
    scale: float
    version: int
    estimates: str = ""
    barred: str = ""
    joint: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.candidates, Product | Stack | Thresholds):
            raise Unsupported(f"rows of a map of kind {type(self.candidates).__name__} cannot be selected")
        if type(self.joint) is not bool:
            raise QueryError("a selection is joint or it is not")
        most = min(self.candidates.rows, MOST_JOINT_PICKS if self.joint else MOST_PICKS)
        if type(self.count) is not int or not 1 <= self.count <= most:
            raise QueryError(f"between 1 and {most} of these rows can be selected at once")
        if not (isinstance(self.scale, float) and SMALLEST_SCALE <= self.scale <= LARGEST_SCALE):
            raise QueryError("the scale of a selection lies between 2^-6 and 2^40")
        if any(re.fullmatch("([0-9a-f]{32})?", digest) is None for digest in (self.estimates, self.barred)):
            raise QueryError("a selection has digests of its estimates and of the rows that are barred")

    @property
    def reach(self) -> CandidateReach:
        """Priced over and over while a plan is made, so computed once for all selections from the same candidates."""
        return _reach(self.candidates)  # type: ignore[arg-type]  # maps of these kinds are hashed by who they are

    @property
    def looks_at(self) -> LinearMap:
        return self.candidates

    @property
    def answers(self) -> int:
        return self.count

    @property
    def purchase(self) -> Hashable:
        return self.kind, self.candidates.digest, self.count, self.scale, self.joint, self.version

    def footprints(self, accountant: Accountant, filed: Hashable) -> tuple[Footprint, ...]:
        units, finer = fine_units(partial(accountant.selected_units, self))
        norm = self.reach.norms[accountant.power]
        return (Footprint(norm=norm, units=units, version=self.version, finer=finer, block=filed),)

    def fields(self) -> dict[str, object]:
        given = {"estimates": self.estimates, "barred": self.barred, "scale": self.scale.hex(), "count": self.count}
        kind = self.JOINT if self.joint else self.kind
        return {"kind": kind, "strategy": self.candidates.digest, "version": self.version, **given}

    @staticmethod
    def read(fields: Fields) -> Selected:
        return Selected(
            candidates=fields.strategy(),
            count=fields.take("count", int),
            scale=fields.scale("scale"),
            version=fields.take("version", int),
            estimates=fields.take("estimates", str),
            barred=fields.take("barred", str),
            joint=fields.kind == Selected.JOINT,
        )


@lru_cache(maxsize=16)
def _reach(candidates: LinearMap) -> CandidateReach:
    return CandidateReach(candidates)


def selected_units(accountant: Accountant, selected: Selected, finer: int = 0) -> int:
    """The loss of a selection where each row of a unit changes every score by at most one: 2kn/g for n picks, and
    4k/g for any number of joint ones beyond the first.

    In concentrated mode n k^2/(2g^2), or 2k^2/g^2, which bounds the divergences of every order a, each over a, and
    so holds in RENYI mode too. In units of 2^-(50 + finer), rounded up. A row that is replaced may change a
    candidate by twice its reach, where that takes values of both signs.
    """
    twice = accountant.unit.neighbours is Neighbours.REPLACE_ONE and not selected.reach.one_sign
    change = accountant.unit.max_contributions * (2 if twice else 1) / Fraction(selected.scale)
    draws = 1 if selected.joint else selected.count
    spread = change * (2 if draws == selected.count else 4)  # how far the log ratios of one draw lie apart
    loss = spread if accountant.power == 1 else spread**2 / 8
    return math.ceil(draws * loss * (1 << (UNIT_BITS + finer)))


def check_candidates(
    candidates: LinearMap, estimates: Integers, barred: Integers, count: int, domain: Domain, max_rows: int
) -> tuple[Integers, Integers]:
    """Copies of the estimates and, sorted, of the barred rows of a selection; refused if they do not fit.

    Nobody else has the copies: what is checked is what is scored.
    """
    check_strategy(candidates, domain, max_rows, MOST_CANDIDATES)
    for norm in candidates.norms(1):
        columns_of(norm, domain)  # its price may not know all of its columns
    around, out = np.array(estimates), np.unique(barred)
    if around.dtype != np.int64 or around.shape != (candidates.rows,):
        raise QueryError("a selection needs one whole number as the estimate of each candidate")
    if int(around.min(initial=0)) < -LARGEST_ANSWER or int(around.max(initial=0)) > LARGEST_ANSWER:
        raise QueryError("the estimates of a selection are whole numbers of at most 2^61")
    if out.dtype != np.int64 or np.any((out < 0) | (out >= candidates.rows)):
        raise QueryError("barred rows are numbers of candidates")
    if count > candidates.rows - len(out):
        raise QueryError(f"{candidates.rows - len(out)} candidates are left, too few for this selection")
    return around, out


def select_rows(
    kernel: Kernel,
    candidates: LinearMap,
    estimates: Integers,
    *,
    count: int,
    scale: float,
    barred: Integers = NONE_BARRED,
    **terms: Unpack[PaymentTerms],
) -> tuple[Record, Charge]:
    """The numbers of `count` candidates, picked by their distances |q_i(D) - estimate_i|, one after the other,
    one commit; with what it was charged.

    Stale is raised where `measure` raises it.
    """
    version = kernel.version()
    around, out = check_candidates(candidates, estimates, barred, count, kernel.domain, kernel.max_rows)
    near, bars = _digest(around), _digest(out)
    event = Selected(candidates=candidates, count=count, scale=scale, version=version, estimates=near, barred=bars)
    scores = np.subtract(kernel._answers(event, candidates), around, out=around)  # millions: no more copies
    np.abs(scores, out=scores)
    scores[out] = -1
    return kernel._buy(event, lambda: kernel._randomness.select(scores, count=count, scale=scale), **terms)


def _digest(numbers: NDArray[np.int64]) -> str:
    return blake2b(numbers.astype("<i8", copy=False).data, digest_size=16).hexdigest()


UNIT = 36
"""A weight of 1 is 2^36 in a proposal; with 2^25 rows, all of them together stay below 2^62."""

FADED = 2**30
"""Weights are taken anew from the highest score left when its own falls below this; else too much is rejected."""


def select(scores: Integers, *, count: int, scale: float, words: Words = system_words) -> Integers:
    """`count` places of the scores, one after the other without replacement, each with a probability proportional to
    exp(score / scale) among the places left; places of negative scores are never picked.

    Guarantees: exact for at most 2^25 scores of any size and every float `scale` from 2^-6 to 2^40. One pass makes the
    classes and one finds the rows; a pick costs one pass over the classes.
    Edge cases: needs a count of at least 1, and at least so many scores that are not negative.
    Differs: "Gumbel noise of this scale on every score, the `count` largest in order" has the same law, and takes as
    many draws as there are scores, none of them exact.
    """
    urn = Urn(*classes_of(scores), scale=scale)
    return places_of(scores, [urn.pick(words) for _ in range(count)])


@dataclass
class Urn:
    """Classes of rows, the highest score first, from which rows are taken one after the other."""

    scores: Integers
    left: Integers  # rows left in each class
    scale: float
    best: int = 0  # the first class with a row left
    weights: Integers = field(init=False)  # of a row of each class, no less than 2^36 exp((score - reference) / scale)
    reference: int = field(init=False)
    swapped: dict[tuple[int, int], int] = field(default_factory=dict)  # rows that stand in for others, by class

    def __post_init__(self) -> None:
        self._refer()

    def _refer(self) -> None:
        self.reference = int(self.scores[self.best])
        self.weights = proposal_weights(np.maximum(self.reference - self.scores, 0), self.scale)

    def pick(self, words: Words) -> tuple[int, int]:
        """The score of the class that a row is taken from, and which of the rows of the class it is."""
        while True:
            ends = np.cumsum(self.left * self.weights)
            number = below(int(ends[-1]), words)
            at = int(np.searchsorted(ends, number, side="right"))
            weight, gap = int(self.weights[at]), self.reference - int(self.scores[at])
            if kept(gap / Fraction(self.scale), weight, words):
                return int(self.scores[at]), self._take(at, (int(ends[at]) - 1 - number) // weight)

    def _take(self, at: int, rank: int) -> int:
        """The row of this rank among those left: the last of them stands in its place from now on."""
        last = int(self.left[at]) - 1
        row = self.swapped.pop((at, rank), rank)
        if rank < last:
            self.swapped[at, rank] = self.swapped.pop((at, last), last)
        self.left[at] = last
        while self.best < len(self.left) - 1 and self.left[self.best] == 0:
            self.best += 1
        if self.weights[self.best] < FADED:
            self._refer()
        return row


def proposal_weights(gaps: Integers, scale: float) -> Integers:
    """Whole numbers of at least 2^36 exp(-gap / scale) and at most 2 more, and a little; 2^36 for a gap of 0."""
    weights = np.floor(np.ldexp(np.exp(-gaps / scale), UNIT)).astype(np.int64) + 2
    return np.where(gaps == 0, 1 << UNIT, weights)


def below(limit: int, words: Words) -> int:
    """A uniform whole number from 0 to limit - 1, limit < 2^64: the first bits of a word; too large ones go."""
    spare = 64 - limit.bit_length()
    while (number := int(words(1)[0]) >> spare) >= limit:
        pass
    return number


def kept(q: Fraction, weight: int, words: Words) -> bool:
    """True with probability 2^36 exp(-q) / weight, which is below 1, or 1 where q = 0."""
    return q == 0 or place(int(words(1)[0]), partial(kept_floors, q, weight), words) == 0


def kept_floors(q: Fraction, weight: int, bits: int) -> list[int]:
    """floor(2^bits F), F = 2^36 exp(-q) / weight, one cut: a uniform lies below it with probability F. Needs q > 0."""

    def bounds(guard: int) -> tuple[list[int], list[int]]:
        low, high = exp_between(q, bits + guard)
        return [(low << UNIT) // (weight << guard)], [(high << UNIT) // (weight << guard)]

    return agreed(bounds, bits)


def classes_of(scores: Integers) -> tuple[Integers, Integers]:
    """The scores that there are, from the highest to 0, and how many rows have each."""
    largest = int(scores.max(initial=0))
    if largest <= len(scores):
        counts = np.bincount(scores[scores >= 0])
        values = np.flatnonzero(counts)
        return values[::-1].astype(np.int64), counts[values][::-1].astype(np.int64)
    values, counts = np.unique(scores[scores >= 0], return_counts=True)
    return values[::-1].copy(), counts[::-1].astype(np.int64)


def places_of(scores: Integers, picked: Sequence[tuple[int, int]]) -> Integers:
    """The places of picked rows, each given by its score and its number among the places of that score."""
    picks = np.array(picked, np.int64).reshape(-1, 2)
    rows = np.zeros(len(picks), np.int64)
    for score in np.unique(picks[:, 0]):  # one class at a time: all of them together can be nearly all places
        in_class = picks[:, 0] == score
        rows[in_class] = np.flatnonzero(scores == score)[picks[in_class, 1]]
    return rows


Tops = dict[tuple[tuple[str, ...], tuple[int, ...]], NDArray[np.int64]]
"""By the columns of a mask and their sizes: in each cell the most that any of its rows is."""


@dataclass(frozen=True, eq=False)
class CandidateReach:
    """D(v) >= max_i |q_i(v)| over the rows of some candidates; equal to it for a product of rows of 0 and 1.

    D is a product over the masks that all parts of a stack have, times a number for all the others; among these are
    the masks without columns, of which a product may have several.
    """

    candidates: LinearMap

    @cached_property
    def norms(self) -> dict[int, Hull]:
        """D(v)^power by power; v in place of w changes a candidate of one sign by at most max(D(v), D(w))."""
        kind = Ceiling if self._looks_nowhere_else else Hull
        return {power: kind(self._masks, power) for power in (1, 2)}

    @cached_property
    def one_sign(self) -> bool:
        """Whether no candidate takes values of both signs."""
        return all(norm.one_sign for norm in self.candidates.norms(1))

    @cached_property
    def _parts(self) -> tuple[LinearMap, ...]:
        return self.candidates.parts if isinstance(self.candidates, Stack) else (self.candidates,)

    @cached_property
    def _tops(self) -> list[Tops]:
        return [_tops(part) for part in self._parts]

    @cached_property
    def _shared(self) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
        return [key for key in self._tops[0] if all(key in tops for tops in self._tops)]

    @property
    def _looks_nowhere_else(self) -> bool:
        return all(isinstance(part, Product) for part in self._parts) and all(
            len(tops) == len(self._shared) for tops in self._tops
        )

    @cached_property
    def _masks(self) -> tuple[Mask, ...]:
        masks = [
            Mask(*key, Steps.dense([reduce(np.maximum, [tops[key] for tops in self._tops])])) for key in self._shared
        ]
        others = [
            bare_largest(part) * math.prod(int(top.max()) for key, top in tops.items() if key not in self._shared)
            if isinstance(part, Product)
            else part.largest()
            for part, tops in zip(self._parts, self._tops, strict=True)
        ]
        return (*masks, Mask((), (), Steps.dense([[max(others)]])))


def _tops(part: LinearMap) -> Tops:
    """No row of a mask is larger in a cell than all of them together, nor than its largest entry anywhere.

    Masks of a product share no column, so those that have columns have keys of their own.
    """
    masks = [mask for mask in part.masks if mask.attrs] if isinstance(part, Product) else []
    return {(mask.attrs, mask.sizes): np.minimum(mask.steps.norms(1), mask.steps.largest()) for mask in masks}


def bare_largest(product: Product) -> int:
    """The largest entry of the product of all masks without columns, of which there may be any number."""
    return math.prod(mask.steps.largest() for mask in product.masks if not mask.attrs)


def stands_in(planned: Event, event: Event) -> bool:
    """Whether a planned selection keeps budget aside for measuring what is picked, which no plan can name before.

    Nothing is admitted by it: how much was kept aside is for whoever plans, and the measurement is admitted as it is.
    """
    if not (isinstance(planned, Selected) and isinstance(event, Measured)):
        return False
    return event.strategy.rows <= planned.count and event.version == planned.version
