"""What is carried over from one ledger to another: the event, both ends of it, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Carried, Found, Measured, Noise, NoiseKind
from bursar.core.accounting.events import read_event
from bursar.core.budget import Budget
from bursar.core.domain import Neighbours, Unit
from bursar.core.extensions.carried import HANDED
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose, SqliteLedger
from bursar.core.noise.law import to_units
from bursar.core.queries import Product
from bursar.errors import AnalystError, BudgetError, BursarError, ConfigError, LedgerError, QueryError
from harness.small import Silence
from harness.two_ledgers import PERSON, TwoLedgers, charter
from harness.two_tables import PEOPLE, VISITS, rows_over

ROWS = (((0,), (1,)), ((0,), (2,)))
HASH = "0123456789abcdef" * 4
EPSILON = (Budget.of(epsilon=2.0), Budget.of(epsilon=3.0))


def carried(**changes: Any) -> Carried:
    return Carried(**{"units": 5, "delta": 2**90, "ledger": HASH, "onward": True, **changes})


def two(budgets: tuple[Budget, Budget] = EPSILON, **facts: Any) -> TwoLedgers:
    return TwoLedgers(rows=ROWS, randomness=Silence(), budgets=budgets, **facts)


def measure(kernel: Kernel, *row: int, scale: float = 2.0, analyst: str = "ann") -> int:
    noise = Noise(kind=NoiseKind.LAPLACE, scale=scale)
    terms: Any = {"analyst": analyst, "purpose": Purpose("", "test"), "at_most": 2**60}
    return kernel.measure(rows_over(kernel.domain, [row]), noise, **terms)[1].total


def test_it_is_read_back_as_it_was_written() -> None:
    for event in (carried(), carried(units=0, delta=0, onward=False)):
        assert read_event(event.fields(), lambda digest: Product(())) == event
    with pytest.raises(LedgerError):
        read_event({**carried().fields(), "units": True}, lambda digest: Product(()))


@pytest.mark.parametrize(
    "wrong", [{"units": -1}, {"delta": -1}, {"units": 1.0}, {"ledger": "ab"}, {"ledger": HASH + "\n"}]
)
def test_nothing_that_lowers_a_loss_is_an_event(wrong: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="is not below 0"):
        carried(**wrong)
    with pytest.raises(BursarError):
        read_event({**carried().fields(), **wrong}, lambda digest: Product(()))


def test_the_new_one_begins_with_what_the_old_one_has_spent() -> None:
    both = two()
    measure(both.old, 1, 0)
    new = both.handed_over()
    assert new.spent() == new.carried() == to_units(0.5)
    assert new.left() == to_units(2.5)
    assert measure(new, 0, 1, 1) == to_units(0.5)
    assert new.spent() == to_units(1.0)
    assert new.spent_by_table() == {"": to_units(1.0)}
    assert new.spent_by_partition() == [to_units(1.0)]
    (event,) = [record.event for record in both.old.ledger.records() if isinstance(record.event, Carried)]
    assert (event.units, event.onward) == (to_units(1.5), True)
    first = new.ledger.records()[0].event
    assert isinstance(first, Carried)
    assert first.ledger == both.old.ledger.verify().head


def test_a_copy_of_the_accounts_has_what_was_carried_over() -> None:
    """Later members of a group are admitted by a copy to which the earlier ones are added."""
    both = two()
    measure(both.old, 1, 0)
    accounts = both.handed_over()._advanced()
    assert accounts.copy().spent() == accounts.spent() == to_units(0.5)
    assert HANDED in both.old.ledger.texts().values()


def test_the_old_one_spends_no_more() -> None:
    both = two()
    measure(both.old, 1, 0)
    both.handed_over()
    assert (both.old.left(), both.old.carried()) == (0, to_units(1.5))
    with pytest.raises(BudgetError):
        measure(both.old, 1, 0)
    with pytest.raises(BudgetError):
        both.old.hold([_measured(both.old)], analyst="ann", seconds=60)
    assert measure(both.old, 0, 1) == 0  # others, of whom no more is known than of the first
    with pytest.raises(BudgetError):
        measure(both.old, 0, 1)


def _measured(kernel: Kernel) -> Any:
    noise = Noise(kind=NoiseKind.LAPLACE, scale=2.0)
    return Measured(strategy=rows_over(kernel.domain, [[1, 0]]), noise=noise, version=1)


def test_what_was_held_before_is_not_admitted_afterwards() -> None:
    both = two()
    hold = both.old.hold([_measured(both.old)], analyst="ann", seconds=60)
    both.handed_over()
    terms: Any = {"analyst": "ann", "purpose": Purpose("", "test"), "at_most": 2**60, "fence": hold.fence}
    with pytest.raises(BudgetError):
        both.old.measure(rows_over(PEOPLE, [[1, 0]]), Noise(kind=NoiseKind.LAPLACE, scale=2.0), **terms)
    assert both.old.spent() == both.old.carried() == to_units(2.0)


def test_done_again_it_gives_the_same_numbers_also_after_free_purchases() -> None:
    both = two()
    measure(both.old, 1, 0)
    once = both.handed_over()
    measure(both.old, 0, 1)
    again = both.handed_over()
    assert once.spent() == again.spent() == to_units(0.5)
    assert sum(isinstance(record.event, Carried) for record in both.old.ledger.records()) == 1


def test_it_is_handed_over_to_one_charter() -> None:
    both = two()
    both.handed_over()
    with pytest.raises(LedgerError, match="cannot be had twice"):
        both.old.hand_over(charter(VISITS, budget=Budget.of(epsilon=4.0)), Budget.of(epsilon=4.0))


def test_it_goes_on_from_ledger_to_ledger() -> None:
    both = two()
    measure(both.old, 1, 0)
    second = both.handed_over()
    measure(second, 0, 1, 1)
    third = TwoLedgers(rows=ROWS, randomness=Silence(), budgets=(EPSILON[1], Budget.of(epsilon=5.0)))
    third.old = second
    last = third.handed_over()
    assert last.spent() == to_units(1.0)
    assert second.left() == both.old.left() == 0


@pytest.mark.parametrize(
    ("budgets", "units", "differs"),
    [
        ((Budget.of(epsilon=2.0), Budget.of(rho=2.0)), (PERSON, PERSON), "mode"),
        ((Budget.of(rho=2.0), Budget.of(epsilon=2.0)), (PERSON, PERSON), "mode"),
        (
            tuple(Budget.of(epsilon=2.0, delta=1e-6, accountant="rdp", order=order) for order in (8, 9)),
            (PERSON, PERSON),
            "order",
        ),
        (EPSILON, (PERSON, Unit(column="household")), "unit"),
        (EPSILON, (PERSON, Unit()), "unit"),
        (EPSILON, (Unit(), Unit(neighbours=Neighbours.REPLACE_ONE)), "neighbours"),
    ],
)
def test_other_people_or_another_way_of_counting_are_refused(budgets: Any, units: Any, differs: str) -> None:
    both = two(budgets, unit=units[0])
    with pytest.raises(ConfigError, match=differs):
        both.old.hand_over(charter(VISITS, budget=budgets[1], unit=units[1]), budgets[1])
    assert both.old.carried() == 0


def test_another_bound_and_another_budget_are_welcome() -> None:
    both = two()
    unit = Unit(column="person", max_contributions=4)
    assert both.old.hand_over(charter(VISITS, budget=EPSILON[1], unit=unit), EPSILON[1]).units == 0


@pytest.mark.parametrize("promised", [0, to_units(2.6)])
def test_a_budget_that_is_too_small_is_refused_and_nothing_happens(promised: int) -> None:
    budgets = EPSILON if promised else (EPSILON[0], Budget.of(epsilon=0.4))
    both = two(budgets)
    measure(both.old, 1, 0)
    with pytest.raises(ConfigError, match="beside its shares" if promised else "is smaller than what was spent"):
        both.handed_over(promised=promised)
    assert both.old.carried() == 0
    assert two(EPSILON).handed_over(promised=to_units(3.0)).spent() == 0


def test_delta_is_carried_over_too() -> None:
    budgets = (Budget.of(rho=2.0, delta_keys=0.01), Budget.of(rho=3.0, delta_keys=0.02))
    both = two(budgets)
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=10.0)
    found = Found(column="city", most=1, weight=10, noise=noise, threshold=45, version=1)
    append(both.old, found)
    new = both.handed_over()
    assert new.delta_spent() == found.delta
    assert both.old.delta_spent() == budgets[0].key_units
    assert both.handed_over().delta_spent() == found.delta
    small = two((budgets[0], Budget.of(rho=3.0)))
    append(small.old, found)
    with pytest.raises(ConfigError, match="try: delta_keys = "):
        small.handed_over()
    assert small.old.carried() == 0


def append(kernel: Kernel, event: Any) -> None:
    values, purpose = np.zeros(0, np.int64), Purpose("", "test")
    kernel.ledger.commit(lambda t: t.append(analyst="owner", purpose=purpose, event=event, values=values))


def test_under_shares_it_counts_for_the_rest() -> None:
    both = two()
    measure(both.old, 1, 0)
    new = both.handed_over()
    with pytest.raises(AnalystError, match="can be given out"):
        new.allot({"ann": Fraction(1, 2), "bob": Fraction(1, 2)})
    new.allot({"ann": Fraction(1, 2), "bob": Fraction(1, 3)})
    assert new.account("ann").spent == 0
    measure(new, 0, 1, 1)
    assert new.account("ann").spent == to_units(0.5)
    assert new.spent() == to_units(1.0)


def test_shares_of_the_old_one_end() -> None:
    both = two()
    both.old.allot({"ann": Fraction(1, 2), "bob": Fraction(1, 2)})
    measure(both.old, 1, 0)
    assert both.handed_over().spent() == to_units(0.5)
    with pytest.raises(BudgetError):
        measure(both.old, 1, 0, analyst="bob")


def test_a_file_begins_with_it_or_does_not_exist(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "ledger.sqlite"
    monkeypatch.setattr("bursar.core.extensions.carried.first_record", lambda event: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        SqliteLedger.create(place, charter(VISITS), carried=carried())
    assert not place.exists()
