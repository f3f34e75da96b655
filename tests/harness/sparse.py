"""Sparse vectors as something to enumerate: a run for every sequence of outcomes, not for every value of hidden noise.

A test shows one bit. With Z the noise of the threshold and X_i that of test i at distance d_i, its outcomes have the
joint mass sum_z P(Z = z) prod_i P(d_i + X_i >= cut + z, or not), which is added up here to fifty digits. The kernel is
run with Z = 0 and values of X_i that are just enough for each outcome, so that it has to compare exactly.
`ValueByValue` instead runs it once for every value of Z; both must give the same law.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np

from bursar.core.accounting import Noise, NoiseKind, Opened
from bursar.core.accounts import Charge
from bursar.core.kernel import Kernel
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Mask, Product, Steps
from harness.cells import Numbers, coefficients
from harness.enumeration import BranchingTape, Enumerated
from harness.kernels import DOMAIN, Adversary, Versions, enumerated
from harness.masses import DIGITS, mass_of, reaches

EVERYBODY = Product((Mask(("sex",), (2,), Steps.total(2)), Mask(("age",), (3,), Steps.total(3))))
FAR_OUT = 140
"""Thresholds are added up over so many scales to each side; what lies beyond has a mass of e^-140."""

Outcome = tuple[int, bool]
"""The least noise, less that of the threshold, with which a test is above; and whether it was."""


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


@cache
def opened(
    cut: int = 0, threshold: float = 1.0, test: float = 1.0, scope: Product = EVERYBODY, version: int = 1
) -> Opened:
    return Opened(scope=scope, cut=cut, threshold=laplace(threshold), test=laplace(test), version=version)


def thresholds(noise: Noise) -> range:
    most = int(FAR_OUT * noise.scale)
    return range(-most, most + 1)


@cache
def with_thresholds(threshold: Noise, test: Noise, outcomes: tuple[Outcome, ...]) -> list[Decimal]:
    """The mass of outcomes of tests of one instance together with each value of the threshold's noise."""
    with localcontext(Context(prec=DIGITS)):
        if not outcomes:
            return [mass_of(threshold)(z) for z in thresholds(threshold)]
        *before, (critical, above) = outcomes
        reached = [reaches(test, critical + z) for z in thresholds(threshold)]
        terms = with_thresholds(threshold, test, tuple(before))
        return [term * (r if above else 1 - r) for term, r in zip(terms, reached, strict=True)]


@cache
def joint(threshold: Noise, test: Noise, outcomes: tuple[Outcome, ...]) -> Decimal:
    """The mass of outcomes of tests of one instance."""
    with localcontext(Context(prec=DIGITS)):
        return sum(with_thresholds(threshold, test, outcomes), Decimal(0))


class Comparing:
    """Branches at every test into its two outcomes, with their masses given what the instance showed before."""

    def __init__(self, tape: BranchingTape) -> None:
        self.tape, self.secret = tape, tape.secret
        self.shown: dict[int, tuple[Outcome, ...]] = {}  # by instance
        self.testing: tuple[int, Opened, int] | None = None  # the instance and the distance that are tested next

    def draw(self, noise: Noise, size: int) -> Numbers:
        testing, self.testing = self.testing, None
        return np.full(size, self.threshold(noise) if testing is None else self.test(*testing))

    def threshold(self, noise: Noise) -> int:
        return 0

    def test(self, instance: int, event: Opened, distance: int) -> int:
        critical, before = event.cut - distance, self.shown.get(instance, ())
        above = self.branch(event, before, critical)
        self.shown[instance] = (*before, (critical, above))
        return critical if above else critical - 1

    def branch(self, event: Opened, before: tuple[Outcome, ...], critical: int) -> bool:
        laws = (event.threshold, event.test)
        with localcontext(Context(prec=DIGITS)):
            so_far = self.joint(*laws, before)
            options = [(side, self.joint(*laws, (*before, (critical, side))) / so_far) for side in (False, True)]
        return bool(self.tape.among([(int(side), mass) for side, mass in options if mass]))

    def joint(self, threshold: Noise, test: Noise, outcomes: tuple[Outcome, ...]) -> Decimal:
        return joint(threshold, test, outcomes)


class ValueByValue(Comparing):
    """Branches at the threshold into all its values up to a reach, and at every test, given the threshold."""

    def __init__(self, tape: BranchingTape) -> None:
        super().__init__(tape)
        self.noises: list[int] = []
        self.order: list[int] = []

    def threshold(self, noise: Noise) -> int:
        self.noises.append(self.tape.choose(mass_of(noise)))
        return self.noises[-1]

    def test(self, instance: int, event: Opened, distance: int) -> int:
        self.order += [] if instance in self.order else [instance]
        critical = event.cut + self.noises[self.order.index(instance)] - distance
        above = reaches(event.test, critical)
        with localcontext(Context(prec=DIGITS)):
            return self.tape.among([(critical - 1, 1 - above), (critical, above)])


def telling(kernel: type[Kernel]) -> type[Kernel]:
    """The kernel, telling its tape what the next draw decides; exact answers are counted apart from it."""

    class Telling(kernel):  # type: ignore[misc, valid-type]
        def test(self, instance: int, query: LinearMap, estimate: int, **rest: Any) -> bool:
            event = next((r.event for r in self.ledger.records() if r.position == instance), None)
            if isinstance(event, Opened) and isinstance(query, Product):
                table = self._opened()[1].counts(DOMAIN.names).ravel()
                distance = abs(int((coefficients(query, DOMAIN) @ table)[0]) - estimate)
                self._randomness.testing = (instance, event, distance)
            return bool(super().test(instance, query, estimate, **rest))

        def open(self, event: Opened, **rest: Any) -> tuple[Record, Charge]:
            self._randomness.testing = None
            return super().open(event, **rest)

    return Telling


def played(
    adversary: Adversary, *, reach: int = 1, kernel: type[Kernel] = Kernel, tape: Any = Comparing, **setting: Any
) -> Enumerated[Versions]:
    """The law of everything that an adversary sees who tests sparse vectors."""
    return enumerated(adversary, reach=reach, margin=0, kernel=telling(kernel), tape=tape, **setting)


def asked_in_turn(questions: Sequence[tuple[LinearMap, int]], event: Opened) -> Adversary:
    """One instance is opened and tested, question after question, until it is closed."""

    def adversary(session: Any) -> None:
        for number, (query, estimate) in enumerate(questions):
            if session.above(session.instance if number else event, query, estimate):
                return

    return adversary
