"""Sealed partitions, enumerated: what is asked while they come in tells no more than the book claims."""

from __future__ import annotations

from decimal import Decimal

import pytest

from bursar.core.accounting import AddRemove, Footprint, Profile, ReplaceOne
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.replace_one import Change
from bursar.core.kernel import Kernel
from harness.adversaries import EITHER, GROWN, OLD_WOMEN, OTHER_ROW, SEXES, TWICE, WOMEN, once, plus, worst
from harness.enumeration import ALLOWED, worst_ratio
from harness.kernels import CELLS, DOMAIN, ROW, Session, Versions, enumerated

GROWING = Domain(DOMAIN.attributes, partition="sex")
UNITS = pytest.mark.parametrize("unit", [ROW, OTHER_ROW], ids=["add-remove", "replace-one"])


def pairs(unit: Unit) -> list[tuple[Versions, Versions]]:
    """One row more; or, since the sizes of partitions are public, another one in the same partition."""
    if unit is ROW:
        return [(plus(), plus(cell)) for cell in CELLS]
    return [(plus(v), plus(w)) for v in CELLS for w in CELLS if v < w and v[0] == w[0]]


def waiting(session: Session) -> None:
    """What is asked next, and whether the second partition is waited for, depends on what was seen of the first."""
    assert session.measure(WOMEN, 1.0) is None
    session.seal(0)
    assert session.measure(GROWN, 1.0) is None
    (first,) = session.measure(OLD_WOMEN, 1.5)
    if first > 0:
        session.seal(1)
        session.measure(EITHER, 1.0)
    else:
        session.measure(TWICE, 0.75)


def everything(session: Session) -> None:
    session.seal(1)
    (first,) = session.measure(EITHER, 1.25)
    session.measure(GROWN if first > 2 else OLD_WOMEN, 1.0)


@pytest.mark.heavy
@pytest.mark.sampled(6)
@UNITS
@pytest.mark.parametrize("adversary", [waiting, everything])
def test_partitions_tell_no_more_than_the_book_claims(unit: Unit, adversary: object) -> None:
    mechanism = enumerated(adversary, reach=2, margin=2, unit=unit, domain=GROWING)
    assert worst(mechanism, pairs(unit)) <= ALLOWED
    assert max(worst_ratio(mechanism, *pair).ratio for pair in pairs(unit)) > Decimal("0.6")


@pytest.mark.heavy
def test_sizes_of_partitions_are_public_where_rows_are_replaced() -> None:
    def counting(session: Session) -> None:
        session.seal(1)
        session.measure(SEXES, 1.0)

    mechanism = enumerated(counting, reach=2, margin=2, unit=OTHER_ROW, domain=GROWING)
    assert max(worst_ratio(mechanism, *pair).ratio for pair in pairs(OTHER_ROW)) == 0
    private = enumerated(counting, reach=2, margin=2, unit=ROW, domain=GROWING)
    assert worst(private, pairs(ROW)) <= ALLOWED


class OnePays(ReplaceOne):
    """Wrong: of all partitions that a question looks at, the first one pays."""

    @staticmethod
    def _changes(footprint: Footprint, domain: Domain) -> list[tuple[Change, list[int]]]:
        return [(change, places[:1]) for change, places in ReplaceOne._changes(footprint, domain)[:1]]


class OnePaysKernel(Kernel):
    def _profile_of(self, domain: Domain, unit: Unit) -> Profile:
        return OnePays(domain, AddRemove(domain))


@pytest.mark.heavy
def test_a_partition_that_does_not_pay_is_found() -> None:
    def adversary(session: Session) -> None:
        session.seal(1)
        once(GROWN, 1.0)(session)

    setting = {"reach": 3, "margin": 2, "unit": OTHER_ROW, "domain": GROWING}
    assert worst(enumerated(adversary, **setting), pairs(OTHER_ROW)) <= ALLOWED
    assert worst(enumerated(adversary, **setting, kernel=OnePaysKernel), pairs(OTHER_ROW)) > Decimal("0.9")
