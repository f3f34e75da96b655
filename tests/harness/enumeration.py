"""Exact enumeration: the law of everything a mechanism releases, for neighbouring inputs, transcript by transcript.

A verb is added by giving `Enumerated` a program that calls it with the tape it is handed; a verb whose noise stays
hidden, so that enumerating its draws would leave too much mass out, writes its own `Mechanism` with closed forms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting import Noise
from harness.masses import DIGITS, Mass, finer, mass_of, picked

Data = TypeVar("Data")
Transcript = tuple[Hashable, ...]
Claims = Callable[[Data, Data], Decimal]
"""The loss that the mechanism's own books claim between two inputs."""

ALLOWED = Decimal("1e-9")
INFINITE = Decimal("Infinity")


@dataclass(frozen=True, kw_only=True)
class Outcome(Generic[Data]):
    """One transcript: its mass, and what the books said when it ended.

    `inner` is False at the rim of what was enumerated, where a neighbour's twin transcript may lie outside.
    """

    mass: Decimal
    claims: Claims[Data]
    inner: bool = True


@dataclass(frozen=True, kw_only=True)
class Law(Generic[Data]):
    """The law of the transcript. `slack` is how much mass any one transcript may lack; `missing` what all lack."""

    outcomes: dict[Transcript, Outcome[Data]]
    slack: Decimal
    missing: Decimal


class Mechanism(Protocol[Data]):
    """Anything whose law can be written down."""

    def transcripts(self, data: Data) -> Law[Data]: ...


@dataclass(frozen=True, kw_only=True)
class Worst:
    """The transcript on which log P(t|D)/P(t|D') goes furthest beyond the claim, in either direction."""

    excess: Decimal  # log ratio minus claim: the books are wrong where it is above 1e-9
    ratio: Decimal
    claim: Decimal
    transcript: Transcript


def worst_ratio(mechanism: Mechanism[Data], left: Data, right: Data) -> Worst:
    """The worst transcript of a pair of neighbours.

    Guarantees: an upper bound: mass that was not enumerated is given to the numerator. A transcript that the other
    side cannot produce has an infinite ratio.
    """
    here, there = mechanism.transcripts(left), mechanism.transcripts(right)
    found = [*_one_way(here, there, left, right), *_one_way(there, here, right, left)]
    return max(found, key=lambda worst: worst.excess)


def renyi_excess(mechanism: Mechanism[Data], left: Data, right: Data, order: Decimal) -> Decimal:
    """log sum_t P(t)^a Q(t)^(1-a) exp(-a (a-1) R_t), over a - 1, the larger of both directions; at most 0 if the
    books are right.

    R_t is what the books claim along the transcript t, so adaptive choices are covered: this is the statement that
    the Rényi filter makes (for a fixed R it says that the divergence of order a is at most a R).
    """
    here, there = mechanism.transcripts(left), mechanism.transcripts(right)
    return max(_renyi(here, there, left, right, order), _renyi(there, here, right, left, order))


def _one_way(here: Law[Data], there: Law[Data], left: Data, right: Data) -> list[Worst]:
    found = []
    with localcontext(Context(prec=DIGITS)):
        for transcript, outcome in here.outcomes.items():
            if outcome.inner:
                twin = there.outcomes.get(transcript)
                ratio = INFINITE if twin is None else ((outcome.mass + here.slack) / twin.mass).ln()
                claim = outcome.claims(left, right)
                found.append(Worst(excess=ratio - claim, ratio=ratio, claim=claim, transcript=transcript))
    return found


def _renyi(here: Law[Data], there: Law[Data], left: Data, right: Data, order: Decimal) -> Decimal:
    with localcontext(Context(prec=DIGITS)):
        total, rim = Decimal(0), Decimal(0)
        for transcript, outcome in here.outcomes.items():
            twin = there.outcomes.get(transcript)
            if twin is None:
                if outcome.inner:
                    return INFINITE
                continue
            paid = order * (order - 1) * outcome.claims(left, right)
            term = (order * outcome.mass.ln() + (1 - order) * twin.mass.ln() - paid).exp()
            total += term
            rim += 0 if outcome.inner else term
        least = min(outcome.mass for law in (here, there) for outcome in law.outcomes.values())
        if rim > ALLOWED / 1000 or here.slack > ALLOWED / 1000 * least:
            raise AssertionError("too little was enumerated to say anything about this order")
        return total.ln() / (order - 1)


class BranchingTape:
    """A `Randomness` that takes one path through all draws and remembers how likely it was.

    Every draw can be any whole number up to reach + margin; paths beyond `reach` are the rim, which is there so
    that the neighbour's twin of every inner transcript is found; `margin` is at least the most that inputs differ by.
    """

    def __init__(self, path: Sequence[int], *, reach: int, margin: int) -> None:
        self._path = list(path)
        self._reach, self._margin = reach, margin
        self.taken: list[tuple[int, int]] = []  # per draw: which value, out of how many
        self.mass = Decimal(1)
        self.inner = True

    def draw(self, noise: Noise, size: int) -> NDArray[np.int64]:
        return np.array([self.choose(mass_of(noise)) for _ in range(size)], np.int64)

    def refine(self, current: NDArray[np.int64], before: Noise, after: Noise) -> NDArray[np.int64]:
        return np.array([self.choose(finer(before, after, int(x))) for x in current], np.int64)

    def select(self, scores: NDArray[np.int64], *, count: int, scale: float) -> NDArray[np.int64]:
        left, places = scores.tolist(), []
        for _ in range(count):
            options = [(place, mass) for place, mass in enumerate(picked(tuple(left), scale)) if mass]
            places.append(self.among(options))
            left[places[-1]] = -1
        return np.array(places, np.int64)

    def choose(self, mass: Mass) -> int:
        """One draw of any law on the whole numbers; values without mass are not taken."""
        most = self._reach + self._margin
        value = self.among([(x, mass(x)) for x in range(-most, most + 1) if mass(x)])
        self.inner = self.inner and abs(value) <= self._reach
        return value

    def among(self, options: Sequence[tuple[int, Decimal]]) -> int:
        """One of some values with their masses. A value may stand for others of which nobody sees more than of it."""
        place = self._path[len(self.taken)] if len(self.taken) < len(self._path) else 0
        self.taken.append((place, len(options)))
        value, mass = options[place]
        with localcontext(Context(prec=DIGITS)):
            self.mass *= mass
        return value

    def secret(self, size: int) -> bytes:
        return bytes(range(size))

    def next_path(self) -> list[int] | None:
        """The path after this one in the order of a depth-first walk; None at the end."""
        taken = list(self.taken)
        while taken:
            place, count = taken.pop()
            if place + 1 < count:
                return [*(before for before, _ in taken), place + 1]
        return None


Program = Callable[[Data, BranchingTape], tuple[Transcript, Claims[Data]]]
"""Runs a mechanism once and returns all that leaves it, with the claims of its books at the end."""


@dataclass
class Enumerated(Generic[Data]):
    """The mechanism of a program, by running it on every path of draws.

    Edge cases: where two paths end in one transcript, paths that were not walked may end in it too, so all the
    missing mass counts as its slack; a wide margin then keeps it small beside the masses within reach. Where every
    transcript determines its draws there is none.
    """

    program: Program[Data]
    reach: int
    margin: int
    _known: dict[Data, Law[Data]] = field(default_factory=dict)

    def transcripts(self, data: Data) -> Law[Data]:
        if data not in self._known:
            self._known[data] = self._walk(data)
        return self._known[data]

    def _walk(self, data: Data) -> Law[Data]:
        outcomes: dict[Transcript, Outcome[Data]] = {}
        path: list[int] | None = []
        covered, merged = Decimal(0), False
        while path is not None:
            tape = BranchingTape(path, reach=self.reach, margin=self.margin)
            transcript, claims = self.program(data, tape)
            before = outcomes.get(transcript)
            with localcontext(Context(prec=DIGITS)):
                covered += tape.mass
                mass = tape.mass if before is None else before.mass + tape.mass
            merged = merged or before is not None
            inner = tape.inner or (before is not None and before.inner)
            outcomes[transcript] = Outcome(mass=mass, claims=claims, inner=inner)
            path = tape.next_path()
        with localcontext(Context(prec=DIGITS)):
            missing = 1 - covered
        return Law(outcomes=outcomes, slack=missing if merged else Decimal(0), missing=missing)
