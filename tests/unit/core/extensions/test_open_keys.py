"""Open columns in the core: which texts have cells, what may be told apart, and what becomes of old answers."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind, Opened
from bursar.core.accounting.events import read_event
from bursar.core.domain import Domain, IntegerRange, Neighbours, Stray, Unit
from bursar.core.extensions import open_keys
from bursar.core.extensions.open_keys import Keyed, KeyLists, OpenText, alike, check_keys, is_key, normalised
from bursar.core.extensions.open_texts import give_cells
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose, Record
from bursar.core.queries import (
    Distinct,
    LinearMap,
    Mask,
    PerPerson,
    Predicate,
    Product,
    Quorum,
    Stack,
    Steps,
    Thresholds,
    Transform,
    Within,
)
from bursar.core.tables import Tables
from bursar.errors import ConfigError, LedgerError, QueryError, SourceError
from bursar.planner.grant import Grant
from harness.cells import coefficients
from harness.open_texts import CAPACITY, CITIES, CITY, OTHER, TextSource, kernel_of, rows_over
from harness.small import Silence, TableSource

NOISE = Noise(kind=NoiseKind.LAPLACE, scale=1.0)
TERMS: Any = {"analyst": "ana", "purpose": Purpose("", "test"), "at_most": 2**60}
ROWS = ("Rome", "Rome", " Rome", "Oslo", None, "other")
FIRST, SECOND, REST = rows_over([[1, 0, 0, 0]]), rows_over([[0, 1, 0, 0]]), rows_over([[0, 1, 1, 0]])


def record(event: Keyed, analyst: str = "ana", position: int = 1) -> Record:
    facts = {"question": "", "proposer": "", "run": 0, "at": 0.0}
    return Record(position=position, analyst=analyst, event=event, values=np.zeros(0, np.int64), **facts)  # type: ignore[arg-type]


def value(kernel: Kernel, strategy: LinearMap) -> list[int]:
    return kernel.measure(strategy, NOISE, **TERMS)[0].values.tolist()


# -- texts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Rome", "Rome"),
        (" \t\u00a0Rome\r\n", "Rome"),
        ("e\u0301", "\u00e9"),
        ("a" * 250, "a" * 200),
        ("a" * 199 + " b", "a" * 199),
        ("", ""),
        ("a  b", "a  b"),
    ],
)
def test_texts_are_compared_in_one_spelling(text: str, plain: str) -> None:
    assert normalised(text) == plain == normalised(plain)


@pytest.mark.parametrize("text", [" Rome", "e\u0301", "a" * 201, "other", "a\x00b", "\ud800", "a\x1bb"])
def test_some_texts_are_no_keys(text: str) -> None:
    assert not is_key(text)
    assert is_key("Rome")
    assert is_key("")


# -- lists -------------------------------------------------------------------------------------------------------------


def test_events_are_read_back_as_they_were_written() -> None:
    for event in (Keyed(column="city", text="Rome", cell=3), Keyed(column="city", text="é", cell=0, table="visits")):
        assert read_event(event.fields(), lambda digest: FIRST) == event


def test_texts_get_cells_in_order_and_keep_them() -> None:
    lists = KeyLists.of({"": CITIES, "visits": CITIES})
    for text in ("Rome", "Oslo"):
        event = lists.next("", "city", text)
        assert event is not None
        lists.add(record(event))
    assert lists.texts("") == {"city": ("Rome", "Oslo")}
    assert lists.texts("visits") == {"city": ()}
    assert lists.next("", "city", "Rome") is None
    again = KeyLists.of({"": CITIES, "visits": CITIES})
    again.restore(lists.state())
    assert again == lists == lists.copy()
    twin = lists.copy()
    twin.keys["", "city"].pop()
    assert twin != lists


@pytest.mark.parametrize(
    "event",
    [
        Keyed(column="city", text="Rome", cell=1),
        Keyed(column="city", text="Oslo", cell=0),
        Keyed(column="city", text="Oslo", cell=2),
        Keyed(column="town", text="Oslo", cell=1),
        Keyed(column="city", text="Oslo", cell=1, table="visits"),
        Keyed(column="city", text=" Oslo", cell=1),
        Keyed(column="city", text="other", cell=1),
    ],
    ids=["a second cell", "a second text", "a gap", "no such column", "no such table", "another spelling", "other"],
)
def test_a_log_that_gives_a_cell_wrongly_is_refused(event: Keyed) -> None:
    lists = KeyLists.of({"": CITIES})
    lists.add(record(Keyed(column="city", text="Rome", cell=0)))
    with pytest.raises(LedgerError, match="a cell that it cannot have"):
        lists.add(record(event))


def test_a_log_cannot_go_beyond_the_capacity() -> None:
    lists = KeyLists.of({"": CITIES})
    for cell in range(CAPACITY):
        lists.add(record(Keyed(column="city", text=f"t{cell}", cell=cell)))
    with pytest.raises(LedgerError, match="a cell that it cannot have"):
        lists.add(record(Keyed(column="city", text="Rome", cell=CAPACITY)))


# -- what may be told apart --------------------------------------------------------------------------------------------

AGE = IntegerRange(name="age", lower=0, upper=1, null=0)
BOTH = Domain((CITY, AGE))


def random_masks(rng: Random) -> list[Mask]:
    size = CITY.size
    few = [[rng.randint(0, 1) for _ in range(size)] for _ in range(rng.randint(1, 2))]
    joint = [[rng.randint(0, 1) for _ in range(2 * size)] for _ in range(rng.randint(1, 2))]
    ages = Mask(("age",), (2,), Steps.dense([[1, rng.randint(0, 1)]]))
    return rng.choice(
        [
            [Mask(("city",), (size,), Steps.dense(few))],
            [Mask(("city",), (size,), Steps.dense(few)), ages],
            [Mask(("city", "age"), (size, 2), Steps.dense(joint))],
            [Mask(("age", "city"), (2, size), Steps.dense(joint))],
            [ages],
        ]
    )


def spelt_out(strategy: LinearMap, first: int) -> bool:
    """Whether all rows are constant on first .. other, by the definition."""
    table = coefficients(strategy, BOTH).reshape(-1, CITY.size, 2)
    return all(np.array_equal(table[:, cell], table[:, OTHER]) for cell in range(first, OTHER))


@pytest.mark.parametrize("seed", range(60))
def test_products_and_stacks_are_read_as_they_are(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(seed)
    monkeypatch.setattr(open_keys, "COMPARED", rng.choice([1, 2**24]))
    parts = [Product(tuple(random_masks(rng))) for _ in range(rng.randint(1, 2))]
    strategy = parts[0] if len(parts) == 1 else Stack(tuple(parts))
    for first in range(OTHER + 1):
        told = "city" not in strategy.attrs or alike(strategy, "city", first, OTHER)
        assert told == spelt_out(strategy, first)


def test_conditions_are_told_from_their_sets() -> None:
    sets = [
        tuple((low, high) for low, high in pairs)
        for pairs in ([], [(0, 1)], [(1, 3)], [(0, 2)], [(2, 4)], [(0, 1), (2, 3)], [(0, 4)], [(3, 4)])
    ]
    for city, least in itertools.product(sets, (1, 2)):
        parts = (Within("city", city), Within("age", ((0, 1),)))
        predicate = Predicate(("city", "age"), (CITY.size, 2), Quorum(least, parts))
        for first in range(OTHER + 1):
            assert alike(predicate, "city", first, OTHER) <= spelt_out(predicate, first)
    fine = Predicate(("city", "age"), (CITY.size, 2), Quorum(2, (Within("city", ((1, 3),)), Within("age", ((0, 1),)))))
    assert alike(fine, "city", 1, OTHER)
    assert not alike(fine, "city", 0, OTHER)


def test_counts_of_people_are_told_from_their_groups() -> None:
    apart, together = rows_over([[1, 0, 0, 0], [0, 1, 1, 0]]), rows_over([[1, 1, 1, 0]])
    ages = Product((Mask(("age",), (2,), Steps.identity(2)),))
    assert alike(Distinct(ages, "city"), "city", 0, OTHER)
    for groups, first in ((apart, 1), (together, 0)):
        counts: tuple[LinearMap, ...] = (
            Distinct(groups),
            Distinct(groups, "city"),
            PerPerson(groups, ages.row(0), 0, 5, ((0, 6),)),
            PerPerson(ages, groups.row(0), 0, 5, ((0, 6),)),
        )
        for counted in counts:
            assert alike(counted, "city", first, OTHER)
            assert first == 0 or not alike(counted, "city", first - 1, OTHER)


def test_what_is_not_known_is_refused() -> None:
    two = Domain((CITY, OpenText(name="town", capacity=1)))
    thresholds = Thresholds(("city", "town"), two.sizes(two.names), 1)
    assert not alike(thresholds, "city", OTHER, OTHER)
    with pytest.raises(QueryError, match="this tells texts of city apart that have no cell of their own"):
        check_keys(thresholds, two, {"city": ("a", "b"), "town": ()})
    weights = {"row_weights": np.ones(4, np.int64), "cell_weights": np.ones(4, np.int64)}
    sines = Transform(column="city", size=4, first=0, start=1, period=5, shift=0, max_rows=10, **weights)
    assert not alike(sines, "city", OTHER, OTHER)


def test_other_columns_are_nobodys_business() -> None:
    check_keys(Product((Mask(("age",), (2,), Steps.identity(2)),)), BOTH, {"city": ()})


# -- the kernel --------------------------------------------------------------------------------------------------------


def test_a_text_is_told_apart_once_it_has_a_cell_and_not_before() -> None:
    kernel = kernel_of(ROWS, Silence())
    with pytest.raises(QueryError, match="no cell of their own"):
        value(kernel, FIRST)
    spent = kernel.spent()
    assert spent == 0
    kernel.name_keys([("city", "Rome")], analyst="ana")
    assert kernel.spent() == 0
    assert value(kernel, FIRST) == [3]
    assert value(kernel, REST) == [2]
    with pytest.raises(QueryError, match="no cell of their own"):
        value(kernel, SECOND)
    assert [key.text for key in kernel.known_keys()["city"]] == ["Rome"]


def test_a_text_brings_along_what_other_has_lost() -> None:
    kernel = kernel_of(ROWS, Silence())
    value(kernel, rows_over([[1, 1, 1, 0]]))
    kernel.name_keys([("city", "Rome")], analyst="ana")
    value(kernel, FIRST)
    assert kernel.spent() == 2 * 2**50
    value(kernel, REST)
    assert kernel.spent() == 2 * 2**50  # somebody is in one of the two


def test_old_rows_are_refined_as_they_were_bought() -> None:
    kernel = kernel_of(ROWS, Silence())
    bought, _ = kernel.measure(rows_over([[1, 1, 1, 0]]), NOISE, **TERMS)
    kernel.name_keys([("city", "Rome"), ("city", "Oslo")], analyst="ana")
    inputs: list[list[int]] = []
    answers = Tables.answers

    def seen(self: Tables, strategy: LinearMap) -> Any:
        inputs.append(answers(self, strategy).tolist())
        return answers(self, strategy)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Tables, "answers", seen)
        finer = Noise(kind=NoiseKind.LAPLACE, scale=0.5)
        refined, charge = kernel.refine(bought.position, [0], finer, before=NOISE, **TERMS)
    assert inputs == [[5]]
    assert refined.values.tolist() == [5]
    assert charge.total == 2**50


def test_tests_of_sparse_vectors_are_checked_too() -> None:
    kernel = kernel_of(ROWS, Silence())
    scope = Product((Mask(("city",), (CITY.size,), Steps.total(CITY.size)),))
    event = Opened(scope=scope, threshold=NOISE, test=NOISE, cut=4, version=1)
    with Grant(kernel, "ana", "why", (event,), 2**60) as grant:
        instance = grant.above(event, rows_over([[1, 1, 1, 0]]), 5).instance
        with pytest.raises(QueryError, match="no cell of their own"):
            grant.above(instance, FIRST, 0)
        kernel.name_keys([("city", "Rome")], analyst="ana")
        assert not grant.above(instance, FIRST, 0).above
        assert grant.above(instance, FIRST, -1).above


def test_naming_twice_is_naming_once() -> None:
    kernel = kernel_of(ROWS, Silence())
    kernel.name_keys([("city", "Rome"), ("city", "Rome"), ("city", " no key"), ("town", "x")], analyst="ana")
    kernel.name_keys([("city", "Rome")], analyst="bob")
    assert kernel.known_keys() == {"city": (("Rome", "ana"),)}
    assert len(kernel.ledger.records()) == 2


def test_nothing_is_named_where_not_all_of_it_can_be() -> None:
    kernel = kernel_of(ROWS, Silence())
    with pytest.raises(QueryError, match="city has cells for 2 texts, and all of them are taken"):
        kernel.name_keys([("city", text) for text in ("a", "b", "c")], analyst="ana")
    assert kernel.known_keys() == {"city": ()}


def test_members_of_one_commit_do_not_give_one_cell_twice() -> None:
    kernel = kernel_of(ROWS, Silence())
    work: list[Any] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kernel.ledger, "commit", work.append)
        kernel.name_keys([("city", "Rome")], analyst="ana")
        kernel.name_keys([("city", "Oslo")], analyst="bob")
    first, second = work
    kernel.ledger.commit(lambda transaction: (first(transaction), second(transaction)))
    assert [key.text for key in kernel.known_keys()["city"]] == ["Rome", "Oslo"]


def test_another_process_finds_the_keys_in_the_log_and_in_a_checkpoint() -> None:
    kernel = kernel_of(ROWS, Silence())
    kernel.name_keys([("city", "Rome")], analyst="ana")
    again = kernel_of(ROWS, Silence(), ledger=kernel.ledger)
    assert again.known_keys() == kernel.known_keys()
    assert value(again, FIRST) == [3]
    kernel.checkpoint()
    later = kernel_of(ROWS, Silence(), ledger=kernel.ledger)
    assert later.begun > 0
    assert later.known_keys() == kernel.known_keys()
    assert value(later, FIRST) == [3]
    assert later.checkpoint_checked() is not None


def test_a_source_without_texts_is_refused() -> None:
    with pytest.raises(SourceError, match="open columns are read from files and data frames"):
        give_cells(TableSource(np.zeros(CITY.size, np.int64), CITIES), {"city": ()})


def test_tables_without_a_domain_check_nothing() -> None:
    assert Tables(TextSource(ROWS)).answers(rows_over([[0, 0, 1, 0]])).tolist() == [5]


# -- the column --------------------------------------------------------------------------------------------------------


def test_an_open_column_has_its_cells_for_life() -> None:
    assert (CITY.size, CITY.other, CITY.null_cell, CITY.declared) == (4, OTHER, 3, 2)
    assert CITY.to_json() == {"name": "city", "kind": "open", "capacity": 2, "outside": "other", "null": "cell"}
    assert [CITY.label(cell) for cell in range(4)] == ["key 1", "key 2", "other", None]
    assert not CITY.ordered
    without = OpenText(name="city", capacity=2, null=Stray.OTHER)
    assert (without.size, without.null_cell) == (3, OTHER)


@pytest.mark.parametrize("wrong", [{"capacity": 0}, {"capacity": 2, "null": 0}, {"capacity": 2, "outside": Stray.CLIP}])
def test_wrong_columns_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        OpenText(name="city", **wrong)


def test_partitions_are_declared() -> None:
    with pytest.raises(ConfigError, match="the partition column city is open"):
        Domain((CITY,), partition="city")
    assert PartitionAxis.of(CITIES, Unit(neighbours=Neighbours.ADD_REMOVE)) is None


def test_measured_events_say_what_they_always_said() -> None:
    event = Measured(strategy=REST, noise=NOISE, version=1)
    assert set(event.fields()) == {"kind", "strategy", "version", "noise", "scale"}
