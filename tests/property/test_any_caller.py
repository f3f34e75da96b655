"""Nothing rests on who calls the verbs: with any arguments, in any order, each admits by itself before it draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Event, Failed, Measured, Noise, NoiseKind, Opened, Selected
from bursar.core.accounts import FREE
from bursar.core.budget import Budget
from bursar.core.extensions.curator import declare_version
from bursar.core.kernel import Kernel
from bursar.core.ledger import Claim, MemoryLedger, Purpose, Record
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.errors import Unsupported
from harness.maps import Numbers
from harness.small import DOMAIN, Silence, TableSource, charter, config, counts

CALLERS, FOUND_WITHIN, CALLS = 30, 60, 40
SCALES = (2.0, 4.0, 16.0, 64.0)


def rows(name: str, steps: Steps) -> Product:
    return Product((Mask((name,), (steps.size,), steps),))


TOTAL, SOME = Product(()), rows("age", Steps.ranges([2], [5], 10))
BY_SEX, BY_AGE = rows("sex", Steps.identity(2)), rows("age", Steps.identity(10))
MAPS: tuple[LinearMap, ...] = (
    *(TOTAL, SOME, BY_SEX, BY_AGE, Stack((BY_SEX, BY_AGE)), Stack(())),
    *(rows("age", Steps.dense([[3, -2, *[0] * 8]])), rows("sex", Steps.dense([[2**40, 0]]))),
    *(rows("age", Steps.identity(11)), rows("nobody's", Steps.identity(2))),
)


class Counted(Silence):
    """Randomness that notes the law of whatever is drawn."""

    def __init__(self) -> None:
        self.laws: list[tuple[object, ...]] = []

    def draw(self, noise: Noise, size: int) -> Numbers:
        self.laws.append((noise, size))
        return super().draw(noise, size)

    def refine(self, current: Numbers, before: Noise, after: Noise) -> Numbers:
        self.laws.append((before, after, len(current)))
        return super().refine(current, before, after)

    def select(self, scores: Numbers, *, count: int, scale: float) -> Numbers:
        self.laws.append((count, scale))
        return super().select(scores, count=count, scale=scale)


@dataclass
class Caller:
    """Calls verbs of two kernels on one ledger as chance will have it, mostly with arguments that make some sense."""

    chance: Random
    kernels: Sequence[Kernel]
    plans: list[tuple[int, Event]] = field(default_factory=list)  # what is held, and the fence of its plan

    def call(self) -> object:
        return self.chance.choice(
            (self.measure, self.refine, self.follow, self.test, self.select, self.hold, self.drop)
        )()

    def one(self, *usual: Any, odd: Sequence[Any] = ()) -> Any:
        return self.chance.choice(odd if odd and self.chance.random() < 0.1 else usual)

    @property
    def kernel(self) -> Kernel:
        return self.chance.choice(self.kernels)

    def noise(self, *odd: NoiseKind) -> Noise:
        return Noise(kind=self.one(NoiseKind.LAPLACE, odd=odd), scale=self.chance.choice(SCALES))

    def recorded(self, kind: type[Event]) -> Record:
        """A record of the log, as a rule of such an event."""
        log = self.kernel.ledger.records()
        return self.one(*[each for each in log if isinstance(each.event, kind)][-2:] or log, odd=log)

    def terms(self, fence: int | None = None) -> Any:
        claim = Claim(analyst="ana", key=self.one("a", "b"), question=self.one("x", "y"), fence=1, expires=2.0**40)
        return {
            "analyst": self.one("ana", "bob", odd=["eve", ""]),
            "purpose": Purpose("", "test"),
            "at_most": self.one(2**60, odd=[0, -1]),
            "fence": self.one(fence, odd=[None, 99, *(held for held, _ in self.plans)]),
            "claim": self.one(None, odd=[claim]),
        }

    def measure(self) -> object:
        return self.kernel.measure(self.one(*MAPS[:5], odd=MAPS), self.noise(NoiseKind.GAUSSIAN), **self.terms())

    def refine(self) -> object:
        record = self.recorded(Measured)
        before = record.event.noise if isinstance(record.event, Measured) else self.noise()
        before, chosen = self.one(before, odd=[self.noise()]), self.one([0], [0, 1], odd=[[1, 0], [-1], [99], []])
        return self.kernel.refine(record.position, chosen, self.noise(), before=before, **self.terms())

    def select(self) -> object:
        given: Any = {"count": self.one(1, 2, odd=[-1, 0, 11]), "scale": self.one(64.0, odd=[0.0, -1.0])}
        estimates, barred = np.zeros(self.one(10, odd=[2]), np.int64), np.array(self.one([], [0], odd=[[99]]), np.int64)
        return self.kernel.select(BY_AGE, estimates, barred=barred, **given, **self.terms())

    def hold(self) -> object:
        events, seconds = [self.planned() for _ in range(self.one(1, 2, 3))], self.one(60, odd=[-1, float("nan")])
        held = self.kernel.hold(events, analyst=self.one("ana", "bob"), seconds=seconds)
        self.plans += [(held.fence, event) for event in events]
        return None

    def planned(self) -> Event:
        version, map_ = self.one(self.kernel.version(), odd=[0, 7]), self.one(*MAPS[:4], odd=MAPS)
        scope, laws = self.one(TOTAL, SOME, odd=MAPS), [Noise(kind=NoiseKind.LAPLACE, scale=16.0)] * 2
        plans: tuple[Callable[[], Event], ...] = (
            lambda: Measured(strategy=map_, noise=self.noise(NoiseKind.GAUSSIAN), version=version),
            lambda: Selected(candidates=BY_AGE, count=self.one(1, 2), scale=64.0, version=version),
            lambda: Failed(instance=self.recorded(Opened).position, query=TOTAL, estimate=0, version=version),
            lambda: Opened(scope=scope, cut=self.one(0, 50), threshold=laws[0], test=laws[1], version=version),
        )
        return self.chance.choice(plans)()

    def follow(self) -> object:
        """Buy what a plan holds; in place of a selection, a measurement that may be dearer."""
        fence, event = self.chance.choice(self.plans[-3:])
        match event:
            case Measured(strategy=strategy, noise=noise):
                return self.kernel.measure(self.one(strategy, odd=MAPS), noise, **self.terms(fence))
            case Selected():
                return self.kernel.measure(self.one(TOTAL, BY_SEX), self.noise(), **self.terms(fence))
            case Opened():
                return self.kernel.open(event, **self.terms(fence))
        return None

    def test(self) -> object:
        query, estimate = self.one(TOTAL, SOME, odd=MAPS), self.one(0, 50, odd=[2**62, 0.5])
        terms = self.terms(self.chance.choice(self.plans[-3:])[0])
        del terms["at_most"]
        return self.kernel.test(self.recorded(Opened).position, query, estimate, **terms)

    def drop(self) -> object:
        self.kernel.drop_hold(self.chance.choice(self.plans)[0])
        return None


def called(number: int, kernel: type[Kernel] = Kernel) -> list[str]:
    """What went wrong in the calls of one caller."""
    settings = config(budget=Budget.of(epsilon=1.0))
    ledger, source, randomness = MemoryLedger(charter(settings)), TableSource(counts()), Counted()
    declare_version(ledger, lambda key: source, SystemRandomness())
    facts: Any = {"domain": DOMAIN, "unit": settings.unit, "budget": settings.budget, "max_rows": settings.max_rows}
    facts |= {"ledger": ledger, "open_source": lambda key: source, "randomness": randomness}
    kernels = [kernel(**facts) for _ in range(2)]
    if number % 2:
        kernels[0].allot({"ana": Fraction(1, 3), "bob": Fraction(1, 2)})
    caller, wrong = Caller(Random(number), kernels), list[str]()
    for _ in range(CALLS):
        before, seen = len(ledger.records()), None
        randomness.laws.clear()
        try:
            seen = caller.call()
        except Exception:  # whatever is wrong with the arguments
            if randomness.laws:
                wrong.append("noise was drawn for a call that was refused")
        new = [record.event for record in ledger.records()[before:]]
        if isinstance(seen, tuple) and (len(new) != 1 or len(randomness.laws) != 1):
            wrong.append("something was seen that one record and one draw do not make up")
        if isinstance(new[0] if new else None, Measured) and randomness.laws != [(new[0].noise, new[0].strategy.rows)]:
            wrong.append("the law that was priced was not the one that was drawn")
        held = ledger.commit(lambda transaction: transaction.holds(ledger.now()))
        try:
            accounts = Kernel(**facts)._advanced()
        except Unsupported:
            return [*wrong, "the log has an event without a price"]
        kept_aside = [(hold.analyst, each) for hold in held for each in accounts.total.all_footprints(hold.events)]
        if accounts.spent(kept_aside) > settings.budget.units:
            wrong.append("more is spent, or kept aside, than there is")
        if any(accounts.account(who).spent > accounts.cap_of(who) for who in accounts.shares):
            wrong.append("an analyst has spent more than the share")
    return wrong


def test_verbs_admit_by_themselves() -> None:
    assert {number: wrong for number in range(CALLERS) if (wrong := called(number))} == {}


class DrawsFirst(Kernel):
    """Wrong: what is drawn is thrown away where it is refused."""

    def _buy(self, event: Any, draw: Any, **terms: Any) -> Any:
        drawn = draw()
        return super()._buy(event, lambda: drawn, **terms)


class TrustsPlans(Kernel):
    """Wrong: what a plan holds is not admitted again, though a selection stands in for a dearer measurement."""

    def _admit(self, transaction: Any, event: Any, **terms: Any) -> Any:
        if terms.get("fence") is None:
            return super()._admit(transaction, event, **terms)
        self._take_from_hold(transaction, event, terms["fence"])
        return FREE


class ForgetsOthers(Kernel):
    """Wrong: what other plans keep aside may be spent."""

    def _held(self, *_: Any, **besides: Any) -> Any:
        return []


@pytest.mark.parametrize("twin", [DrawsFirst, TrustsPlans, ForgetsOthers])
def test_a_kernel_that_trusts_its_caller_is_found(twin: type[Kernel]) -> None:
    assert any(called(number, twin) for number in range(FOUND_WITHIN))
