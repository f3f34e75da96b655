"""Several private tables over one ledger: what each event looks at, what is spent, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Event, Measured, Noise, NoiseKind, Opened, Versioned
from bursar.core.accounting.events import read_event
from bursar.core.accounting.kind import ROOT
from bursar.core.budget import Budget
from bursar.core.domain import Neighbours, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.extensions.relations import Added, Relation, Versions, check_relations
from bursar.core.kernel import Kernel
from bursar.core.ledger import MemoryLedger, Purpose, Record
from bursar.errors import BudgetError, ConfigError, LedgerError, Stale
from bursar.planner.grant import Grant
from harness.small import Silence
from harness.two_tables import PEOPLE, VISITS, TwoTables, book_of, relations, rows_over

NOISE = Noise(kind=NoiseKind.LAPLACE, scale=1.0)
ONE = 2**50
SEXES, AGES = rows_over(PEOPLE, [[1, 0], [0, 1]]), rows_over(VISITS, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
ROWS = (((0,), (1,)), ((0,), (2,), (2,)))


@pytest.fixture
def both() -> TwoTables:
    return TwoTables(rows=ROWS, randomness=Silence(), most=(1, 3))


def measure(kernel: Kernel, noise: Noise = NOISE, analyst: str = "ana") -> Record:
    strategy = SEXES if kernel.table == ROOT else AGES
    terms: Any = {"analyst": analyst, "purpose": Purpose("", "test"), "at_most": 2**60}
    return kernel.measure(strategy, noise, **terms)[0]


# -- events ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [Versioned(version=3), Versioned(version=3, table="visits"), relations()[1].added],
    ids=["of the first table", "of another", "added"],
)
def test_events_are_read_back_as_they_were_written(event: Event) -> None:
    assert read_event(event.fields(), lambda digest: SEXES) == event


def test_the_first_table_has_no_name_in_the_log() -> None:
    assert Versioned(version=1).fields() == {"kind": "versioned", "version": 1, "same_rows": False}
    with pytest.raises(LedgerError, match="empty name"):
        read_event({**Versioned(version=1).fields(), "table": ""}, lambda digest: SEXES)


def test_a_version_is_of_one_table() -> None:
    versions = Versions()
    for event in (Versioned(version=1), Versioned(version=1), Versioned(version=2, table="visits")):
        versions.add(event)
    assert (versions.present, versions.tables) == ({ROOT: 1, "visits": 2}, {1: ROOT, 2: "visits"})
    with pytest.raises(LedgerError, match="one version of the data for two tables"):
        versions.add(Versioned(version=2))


# -- what goes together ------------------------------------------------------------------------------------------------

PERSON = Unit(column="person")


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (Unit(), "whose each row is"),
        (Unit(column="person", neighbours=Neighbours.REPLACE_ONE), "replace-one"),
    ],
)
def test_units_that_do_not_add_up_are_refused(unit: Unit, words: str) -> None:
    other = Relation(table="visits", domain=VISITS, unit=unit, max_rows=9)
    first = Relation(table=ROOT, domain=PEOPLE, unit=PERSON, max_rows=9)
    with pytest.raises(ConfigError, match=words):
        check_relations([first, other])
    with pytest.raises(ConfigError, match=words):
        check_relations([Relation(table=ROOT, domain=PEOPLE, unit=unit, max_rows=9), relations()[1]])


def test_tables_have_names_of_their_own() -> None:
    first, second = relations()
    with pytest.raises(ConfigError, match="a name of its own"):
        check_relations([first, second, second])
    with pytest.raises(ConfigError, match="a name of its own"):
        check_relations([second])


def test_a_kernel_has_the_bound_of_its_table(both: TwoTables) -> None:
    facts: Any = {"budget": both.budget, "max_rows": 1000, "ledger": both.ledger, "open_source": None}
    with pytest.raises(ConfigError, match="visits is declared in two ways"):
        Kernel(domain=VISITS, unit=PERSON, randomness=Silence(), table="visits", relations=both.relations, **facts)


# -- the book ----------------------------------------------------------------------------------------------------------


def test_losses_of_two_tables_add_up_each_with_its_bound(both: TwoTables) -> None:
    measure(both.people)
    measure(both.visits)
    assert both.people.spent() == both.visits.spent() == ONE + 3 * ONE
    assert both.visits.spent_by_table() == {ROOT: ONE, "visits": 3 * ONE}
    assert both.visits.spent_by_partition() == [ONE]  # the first table alone has partitions


def test_within_a_table_people_are_told_apart_by_their_cells(both: TwoTables) -> None:
    for place in range(3):
        row = rows_over(VISITS, [[int(place == cell) for cell in range(3)]])
        terms: Any = {"analyst": "ana", "purpose": Purpose("", "test"), "at_most": 2**60}
        both.visits.measure(row, NOISE, **terms)
    assert both.visits.spent() == 3 * ONE


def test_an_event_of_no_declared_version_has_no_price(both: TwoTables) -> None:
    event = Measured(strategy=SEXES, noise=NOISE, version=7)
    with pytest.raises(LedgerError, match="not declared"):
        both.people.price([event])
    with pytest.raises(LedgerError, match="not declared"):
        book_of(*both.relations).add(event)


def test_a_book_adds_up_no_table_that_it_does_not_know(both: TwoTables) -> None:
    unknown = book_of(both.relations[0], relations(1, 3)[1])
    unknown.further = {}
    with pytest.raises(LedgerError, match="visits that the config does not have"):
        unknown.add(both.relations[1].added)
    with pytest.raises(LedgerError, match="visits that the config does not have"):
        unknown.add(Versioned(version=1, table="visits"))
    with pytest.raises(LedgerError, match="visits that the config has otherwise"):
        book_of(*relations(1, 2)).add(both.relations[1].added)


def test_a_book_is_copied_and_saved_with_all_tables(both: TwoTables) -> None:
    measure(both.people)
    measure(both.visits)
    assert both.people.spent() == 4 * ONE
    book = both.people._accounts.total
    copied, restored = book.copy(), book_of(*both.relations).restore(book.state())
    assert copied.spent() == restored.spent() == book.spent()
    assert copied.spent_by_table() == restored.spent_by_table() == book.spent_by_table()
    for each in (copied, restored):
        each.add(Measured(strategy=AGES, noise=NOISE, version=2), 9)
        assert each.spent_by_table()["visits"] == 6 * ONE
    assert book.spent_by_table()["visits"] == 3 * ONE


def test_the_price_of_an_event_is_that_of_its_table(both: TwoTables) -> None:
    assert both.people.price([Measured(strategy=AGES, noise=NOISE, version=2)]) == 3 * ONE
    assert both.people.empty_book().price([Measured(strategy=SEXES, noise=NOISE, version=1)]) == ONE


# -- kernels over one ledger -------------------------------------------------------------------------------------------


def test_the_budget_is_one_over_all_tables() -> None:
    both = TwoTables(rows=ROWS, randomness=Silence(), most=(1, 3), budget=Budget.of(epsilon=3.5))
    measure(both.visits)
    with pytest.raises(BudgetError):
        measure(both.people)
    assert both.people.spent() == 3 * ONE


def test_what_a_plan_about_another_table_holds_is_not_given_away() -> None:
    both = TwoTables(rows=ROWS, randomness=Silence(), most=(1, 3), budget=Budget.of(epsilon=6.5))
    planned = [Measured(strategy=AGES, noise=NOISE, version=2)] * 2
    with Grant(both.visits, "ana", "", planned, 2**60) as grant:
        assert both.people.held() == 6 * ONE
        with pytest.raises(BudgetError):
            measure(both.people)
        grant.measure(AGES, NOISE)
    measure(both.people)
    assert both.people.spent() == 4 * ONE


def test_a_kernel_measures_its_own_table_alone(both: TwoTables) -> None:
    assert measure(both.people).values.tolist() == [1, 1]
    assert measure(both.visits).values.tolist() == [1, 0, 2]
    assert [record.event.version for record in both.ledger.records()[3:]] == [1, 2]


def test_a_block_of_another_table_is_not_refined(both: TwoTables) -> None:
    block = measure(both.visits).position
    terms: Any = {"analyst": "ana", "purpose": Purpose("", "test"), "at_most": 2**60}
    finer = Noise(kind=NoiseKind.LAPLACE, scale=0.5)
    with pytest.raises(Stale, match="another table"):
        both.people.refine(block, [0], finer, before=NOISE, **terms)
    record, _ = both.visits.refine(block, [0], finer, before=NOISE, **terms)
    assert record.values.tolist() == [1]
    assert both.people.spent_by_table() == {ROOT: 0, "visits": 6 * ONE}


def test_a_new_version_of_one_table_leaves_the_other_as_it_is(both: TwoTables) -> None:
    block = measure(both.visits).position
    opened = Opened(scope=rows_over(VISITS, [[1, 1, 1]]), cut=2, threshold=NOISE, test=NOISE, version=2)
    with Grant(both.visits, "ana", "", (opened,), 2**60) as grant:
        instance = grant.above(opened, rows_over(VISITS, [[1, 0, 0]]), 1).instance
    assert both.people.live("ana") == {}
    with pytest.raises(Stale, match="another version or table"):
        both.people.test(
            instance, rows_over(VISITS, [[1, 0, 0]]), 1, fence=1, analyst="ana", purpose=Purpose("", "test")
        )
    both.declare(0)
    assert (both.people.version(), both.visits.version()) == (3, 2)
    assert both.people.live("ana") == {}
    assert list(both.visits.live("ana")) == [instance]
    terms: Any = {"analyst": "ana", "purpose": Purpose("", "test"), "at_most": 2**60}
    finer = Noise(kind=NoiseKind.LAPLACE, scale=0.5)
    both.visits.refine(block, [0], finer, before=NOISE, **terms)
    both.declare(1)
    assert both.visits.live("ana") == {}
    with pytest.raises(Stale, match="present version"):
        both.visits.refine(block, [0], finer, before=finer, **terms)


def test_tables_of_the_log_are_told(both: TwoTables) -> None:
    assert both.people.tables() == {1: ROOT, 2: "visits"}
    assert both.visits.further() == {"visits": VISITS}
    assert [type(record.event) for record in both.ledger.records()] == [Versioned, Added, Versioned]


def test_a_table_is_added_once_and_declared_as_often_as_it_changes(both: TwoTables) -> None:
    both.rows = (ROWS[0], ((1,),))
    assert both.declare(1) == 3
    assert sum(isinstance(record.event, Added) for record in both.ledger.records()) == 1
    assert measure(both.visits).values.tolist() == [0, 1, 0]


def test_accounts_of_analysts_know_all_tables(both: TwoTables) -> None:
    measure(both.visits, analyst="ana")
    both.people.allot({"ana": Fraction(1, 2), "bob": Fraction(1, 2)})
    measure(both.people, analyst="bob")
    spent = {name: both.visits.account(name).spent for name in ("ana", "bob")}
    assert spent == {"ana": 3 * ONE, "bob": ONE}


# -- checkpoints -------------------------------------------------------------------------------------------------------


def test_a_checkpoint_has_all_tables_whichever_kernel_saves_it(both: TwoTables) -> None:
    measure(both.people)
    block = measure(both.visits).position
    both.people.checkpoint()
    again = both.kernel(1)
    assert again.begun == block
    assert (again.spent(), again.version(), again.tables()) == (4 * ONE, 2, {1: ROOT, 2: "visits"})
    assert again.checkpoint_checked() == block
    terms: Any = {"analyst": "ana", "purpose": Purpose("", "test"), "at_most": 2**60}
    again.refine(block, [0], Noise(kind=NoiseKind.LAPLACE, scale=0.5), before=NOISE, **terms)
    both.declare(0)
    assert np.isclose(both.kernel(0).spent() / ONE, 7)


def test_no_checkpoint_hides_that_a_table_is_known_otherwise(both: TwoTables) -> None:
    measure(both.visits)
    both.people.checkpoint()
    both.relations = relations(1, 2)
    with pytest.raises(LedgerError, match="the config has otherwise"):
        both.kernel(0).spent()
    facts: Any = {"budget": both.budget, "max_rows": 1000, "ledger": both.ledger, "open_source": None}
    alone = Kernel(domain=PEOPLE, unit=PERSON, randomness=Silence(), **facts)
    with pytest.raises(LedgerError, match="the config does not have"):
        alone.spent()


def test_the_first_version_adds_a_table_to_a_ledger_that_is_in_use() -> None:
    ledger, second = MemoryLedger({}), relations(1, 3)[1]
    both = TwoTables(rows=ROWS, randomness=Silence(), most=(1, 3))
    declare_version(ledger, lambda key: both.source(0), Silence())
    both.ledger = ledger
    measure(both.kernel(0))
    declare_version(ledger, lambda key: both.source(1), Silence(), relation=second)
    assert both.kernel(0).spent() == ONE
    measure(both.kernel(1))
    assert both.kernel(0).spent() == 4 * ONE
