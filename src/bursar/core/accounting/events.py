"""Events: what happened, without what it cost. Accountants price them; an event they do not know is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting.rows import gathered, rows_of
from bursar.core.extensions.select import CandidateReach
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE, UNIT_BITS, Noise, NoiseKind
from bursar.core.queries import Ceiling, LinearMap, Product, Stack, Thresholds, Transform
from bursar.errors import ConfigError, QueryError, Unsupported

MOST_PARTS = 10**60
"""Largest denominator of a share."""

LARGEST_NUMBER = 2**61
"""Largest cut and largest estimate of a sparse vector; exact answers end there too."""

DIGEST_NUMBERS = 2
"""How many whole numbers the record of an opened sparse vector holds: the keyed digest of its noisy threshold."""

MOST_PICKS = 2**16
"""Most rows of one selection."""

MOST_JOINT_PICKS = 2**8
"""Most rows that are picked in one draw: sequences of so many picks are counted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """All rows of a strategy were answered on one version of the data, each with independent noise of one law."""

    strategy: LinearMap
    noise: Noise
    version: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Refined:
    """Some rows of a measurement got finer noise under the noise that they had: a row's noises are one process.

    Guarantees: `rows` is a copy that cannot be written to.
    Edge cases: refused are rows that are not there or do not rise, noise that is not Laplace or does not get finer by
    at least 2^-50 in 1/scale, and the rounded answers of a transform, which another machine may round differently.
    """

    block: int  # the position of the measurement in the log
    measured: LinearMap  # its strategy
    rows: NDArray[np.int64]
    before: Noise
    after: Noise
    version: int

    def __post_init__(self) -> None:
        rows = np.array(self.rows)
        if rows.dtype != np.int64 or rows.ndim != 1 or rows.size == 0:
            raise QueryError("the rows to refine are a list of whole numbers")
        if rows[0] < 0 or rows[-1] >= self.measured.rows or np.any(np.diff(rows) <= 0):
            raise QueryError("the rows to refine rise, and are rows of the measurement")
        rows.setflags(write=False)
        object.__setattr__(self, "rows", rows)
        if any(noise.kind is not NoiseKind.LAPLACE for noise in (self.before, self.after)):
            raise Unsupported("only Laplace noise can be refined; buy a fresh row instead: precisions add")
        if isinstance(self.measured, Transform):
            raise Unsupported("the rows of a transform cannot be refined; measure it again")
        if 1 / Fraction(self.after.scale) - 1 / Fraction(self.before.scale) < Fraction(1, 1 << UNIT_BITS):
            raise QueryError("a refinement makes noise finer, by no less than 2^-50 in 1/scale")

    @cached_property
    def strategy(self) -> LinearMap:
        """The map of exactly these rows."""
        return rows_of(self.measured, self.rows)

    @cached_property
    def priced(self) -> LinearMap:
        """The same rows in another order, which is quicker to price."""
        return gathered(self.measured, self.rows)


@dataclass(frozen=True, kw_only=True)
class Versioned:
    """The data owner declared a version of the data.

    `same_rows` says that rows were only added since the version before: no row changed its cell or went away,
    so the losses of both versions fall on the same people and count once.
    """

    version: int
    same_rows: bool = False


@dataclass(frozen=True, kw_only=True)
class Allotted:
    """The data owner gave out shares of the budget; those of the last such event are in force. No shares: one budget.

    Guarantees: everybody has one share, above 0; together they are at most 1.
    Edge cases: refused are fractions of more than 60 digits, which the ledger would not read back.
    """

    shares: tuple[tuple[str, Fraction], ...]

    def __post_init__(self) -> None:
        names, fractions = [name for name, _ in self.shares], [fraction for _, fraction in self.shares]
        if not all(names) or len(set(names)) < len(names):
            raise ConfigError("every analyst has a name of their own")
        if any(fraction <= 0 for fraction in fractions) or sum(fractions) > 1:
            raise ConfigError("shares lie above 0 and are at most 1 together")
        if any(fraction.denominator > MOST_PARTS for fraction in fractions):
            raise ConfigError("a share has too many digits")


@dataclass(frozen=True, kw_only=True)
class Sealed:
    """The data owner sealed the partitions up to the one with the number `through`: they can be asked about.

    `sizes` are the numbers of rows of the partitions sealed by this event, where sizes are public (replace-one); None
    elsewhere, since a size would reveal whether somebody is there.
    """

    through: int
    version: int
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.through < 0 or any(size < 0 for size in self.sizes or ()):
            raise ConfigError("partitions and their sizes are counted from 0")


@dataclass(frozen=True, kw_only=True, eq=False)
class Opened:
    """A sparse vector with cut-off 1 was opened: tests may be run on it until the first of them is above.

    A test of a query q with an estimate e is above where |q(D) - e| + (noise of the test) >= cut + (noise of the
    threshold). The threshold's noise is drawn once, a test's for every test; all numbers are whole.

    Guarantees: `scope` is one row D >= 0, and pays for every query q with |q(v)| <= D(v) in all cells v.
    Edge cases: refused are scopes that are no product, and noise that is not Laplace.
    """

    scope: Product
    cut: int
    threshold: Noise
    test: Noise
    version: int

    def __post_init__(self) -> None:
        check_row(self.scope, self.cut)
        if any(np.any(mask.steps.levels < 0) for mask in self.scope.masks):
            raise QueryError("the scope of a sparse vector has no negative entries")
        if any(noise.kind is not NoiseKind.LAPLACE for noise in (self.threshold, self.test)):
            raise Unsupported("a sparse vector has Laplace noise, on its threshold and on its tests")

    @property
    def rate(self) -> Fraction:
        """epsilon of the whole instance for a unit that changes every tested query by at most one, 1/b_T + 2/b_Q."""
        return 1 / Fraction(self.threshold.scale) + 2 / Fraction(self.test.scale)

    @cached_property
    def norms(self) -> dict[int, Ceiling]:
        """D(v)^power by power: priced over and over while a plan is made, so computed once."""
        return {power: Ceiling(self.scope.masks, power) for power in (1, 2)}

    @cached_property
    def least(self) -> tuple[int, ...]:
        """The least entry of each factor of the scope: queries that stay below it need no look at single cells."""
        return tuple(int(vector.min()) for vector in self.norms[1].vectors)


@dataclass(frozen=True, kw_only=True, eq=False)
class Failed:
    """A test of a sparse vector was above, which closed the instance. It costs nothing: the opening was paid for it."""

    instance: int  # the position of its `Opened` in the log
    query: Product
    estimate: int
    version: int

    def __post_init__(self) -> None:
        check_row(self.query, self.estimate)


@dataclass(frozen=True, kw_only=True)
class Closed:
    """A sparse vector was closed although no test of it was above: it cannot be known to be as it was."""

    instance: int
    version: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Selected:
    """Rows of some candidates were picked by their scores |q_i(D) - e_i|, with estimates e_i that are public.

    `count` rows, one after the other without replacement, each with a probability proportional to exp(score / scale)
    among those left; rows that are barred, which is public too, are never picked. Where they are `joint`, which only
    ledgers of earlier versions have, it was one draw: different rows s_1, s_2, ... with a probability proportional to
    exp(-t / scale), t = max_j (c_(j) - c_{s_j}), c_(1) >= c_(2) >= ... the scores sorted. Of estimates and barred rows,
    which may be millions, the event has digests; in a plan, which need not know them yet, these may be empty.

    Edge cases: refused are candidates that are no products or thresholds, counts beyond 2^16, joint ones beyond 2^8, or
    beyond the candidates, and scales that are no float from 2^-6 to 2^40.
    """

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


@lru_cache(maxsize=16)
def _reach(candidates: LinearMap) -> CandidateReach:
    return CandidateReach(candidates)


def check_row(row: LinearMap, number: int) -> Product:
    """One row of a sparse vector with its whole number; anything else is refused."""
    if not isinstance(row, Product):
        raise Unsupported("a sparse vector tests queries that are a product of conditions on columns, and no others")
    if row.rows != 1:
        raise QueryError("a sparse vector tests one query at a time")
    if type(number) is not int or abs(number) > LARGEST_NUMBER:
        raise QueryError("cuts and estimates are whole numbers of at most 2^61")
    return row


Paid = Measured | Refined | Opened | Selected
"""What costs something."""

Event = Paid | Versioned | Allotted | Sealed | Failed | Closed


def same_purchase(one: Event, other: Event) -> bool:
    """Whether two events ask for the same rows with the same noise, of the same version.

    Edge cases: what costs nothing is no purchase.
    """
    match one, other:
        case Measured(), Measured():
            return (one.strategy.digest, one.noise, one.version) == (other.strategy.digest, other.noise, other.version)
        case Refined(), Refined():
            laws = one.before == other.before and one.after == other.after
            place = (one.block, one.version, one.measured.digest) == (other.block, other.version, other.measured.digest)
            return laws and place and np.array_equal(one.rows, other.rows)
        case Opened(), Opened():
            laws = (one.cut, one.threshold, one.test) == (other.cut, other.threshold, other.test)
            return laws and (one.scope.digest, one.version) == (other.scope.digest, other.version)
        case Selected(), Selected():
            laws = (one.count, one.scale, one.joint) == (other.count, other.scale, other.joint)
            return laws and (one.candidates.digest, one.version) == (other.candidates.digest, other.version)
    return False


def stands_in(planned: Event, event: Event) -> bool:
    """Whether a planned selection keeps budget aside for measuring what is picked, which no plan can name before.

    Nothing is admitted by it: how much was kept aside is for whoever plans, and the measurement is admitted as it is.
    """
    if not (isinstance(planned, Selected) and isinstance(event, Measured)):
        return False
    return event.strategy.rows <= planned.count and event.version == planned.version
