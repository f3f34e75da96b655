"""Looking for texts of an open column: what it costs in rho and in delta, what is released, and what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bursar.core.accounting import Accountant, Found, Mode, Noise, NoiseKind
from bursar.core.accounting.events import read_event, same_purchase
from bursar.core.budget import Budget, charter_of, rho_of
from bursar.core.domain import Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.extensions.discovery import KeyDeltas, _tail, weigh
from bursar.core.extensions.open_keys import Keyed, OpenText
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.kernel import Kernel
from bursar.core.ledger import MemoryLedger, Purpose
from bursar.core.noise.law import DELTA_BITS, UNIT_BITS
from bursar.core.queries import Predicate, Product, Within
from bursar.core.source.duckdb import DuckDBSource
from bursar.core.tables import Tables
from bursar.errors import BudgetError, ConfigError, LedgerError, QueryError, SourceError, Stale, Unsupported
from bursar.report.status import budget_words
from harness.cases import examples
from harness.masses import mass_of
from harness.small import Silence, TableSource

BUDGET = Budget.of(rho=20.0, delta_keys=0.05)
CITY = OpenText(name="city", capacity=4)
DOMAIN = Domain((CITY,))
ROWS = (
    ["Rome"] * 9
    + ["Oslo"] * 7
    + ["Bern"] * 5
    + ["Kiel"] * 4
    + ["other"] * 20
    + ["a\x07"] * 20
    + [None] * 20
    + ["alone"]
)
TERMS: Any = {"analyst": "owner", "purpose": Purpose("", "test"), "at_most": 2**60}


def gaussian(scale: float) -> Noise:
    return Noise(kind=NoiseKind.GAUSSIAN, scale=scale)


def looking(**changes: Any) -> Found:
    facts: dict[str, Any] = {"column": "city", "most": 1, "weight": 10, "noise": gaussian(10.0), "version": 1}
    return Found(**{**facts, "threshold": 45, **changes})


def frame(rows: list[str | None]) -> pd.DataFrame:
    return pd.DataFrame({"city": pd.Series(rows, dtype="object")})


def kernel_of(
    rows: list[str | None] = ROWS,
    *,
    budget: Budget = BUDGET,
    domain: Domain = DOMAIN,
    data: Any = None,
    unit: Unit | None = None,
    ledger: Any = None,
    randomness: Any = None,
) -> Kernel:
    unit, randomness = unit or Unit(), randomness or Silence()
    data = frame(rows) if data is None else data

    def source(key: bytes) -> DuckDBSource:
        return DuckDBSource(data, domain, unit, key, 10_000)

    if ledger is None:
        ledger = MemoryLedger(charter_of(dataset="d", domain=domain, unit=unit, budget=budget, max_rows=10_000))
        axis = PartitionAxis.of(domain, unit)
        declare_version(ledger, source, randomness, axis=axis, through=-1 if axis is None else domain.partitions - 1)
    facts: dict[str, Any] = {"domain": domain, "unit": unit, "budget": budget, "max_rows": 10_000, "ledger": ledger}
    return Kernel(open_source=source, randomness=randomness, **facts)


def texts(kernel: Kernel) -> list[str]:
    return [key.text for key in kernel.known_keys()["city"]]


# -- the event ---------------------------------------------------------------------------------------------------------


def test_it_is_read_back_as_it_was_written() -> None:
    event = looking(most=7, noise=gaussian(10.3))
    assert read_event(event.fields(), lambda digest: Product(())) == event
    assert same_purchase(event, looking(most=7, noise=gaussian(10.3)))
    assert not same_purchase(event, looking(most=7))
    assert event.looks_at.rows == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"weight": 0},
        {"weight": 2**20 + 1, "threshold": 2**30},
        {"most": 0},
        {"threshold": 10},
        {"threshold": 2**50 + 1},
        {"threshold": 45.0},
        {"noise": Noise(kind=NoiseKind.LAPLACE, scale=3.0)},
    ],
)
def test_what_one_person_could_reach_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="Gaussian noise, and above what one person weighs"):
        looking(**wrong)


def test_shares_are_rounded_down_and_never_weigh_more_than_a_person() -> None:
    for weight in (1, 2, 7, 1000, 2**20):
        event = looking(weight=weight, threshold=2**30)
        for count in range(1, 200):
            share = event.share(count)
            assert count * share**2 <= weight**2 < count * (share + 1) ** 2


@pytest.mark.parametrize("scale", [0.3, 0.9, 2.0, 7.5, 40.0])
def test_tails_are_never_too_small(scale: float) -> None:
    mass = mass_of(gaussian(scale))
    masses = {x: mass(x) for x in range(int(14 * scale) + 30)}
    for least in (1, 2, 3, int(2 * scale) + 1, int(5 * scale) + 1):
        true = sum((m for x, m in masses.items() if x >= least), Decimal(0))
        bound = _tail(scale, least)
        assert Decimal(bound.numerator) / Decimal(bound.denominator) >= true
        assert least < 2 * scale or float(bound) < 1.4 * float(true)


def test_delta_is_rounded_up_and_counts_every_text() -> None:
    one, four = looking(), looking(most=4)
    assert one.delta >= _tail(10.0, 35) * 2**DELTA_BITS > one.delta - 1
    worst = max(j * _tail(10.0, 45 - four.share(j)) for j in range(1, 5))
    assert four.delta >= worst * 2**DELTA_BITS > four.delta - 1
    assert four.delta == one.delta  # somebody with one text is likelier to be alone above the threshold
    light = looking(most=4, weight=2, threshold=30)
    assert light.delta >= 4 * _tail(10.0, 29) * 2**DELTA_BITS > light.delta - 1
    assert looking(threshold=2**40).delta >= 1
    assert looking(noise=gaussian(2.0**30), threshold=11).delta <= 2**DELTA_BITS


# -- what it costs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "order"), [(Mode.CONCENTRATED, None), (Mode.RENYI, 8)])
@pytest.mark.parametrize("most", [1, 3])
def test_everybody_loses_the_square_of_the_weight(mode: Mode, order: int | None, most: int) -> None:
    unit = Unit(column="who", max_contributions=most)
    (footprint,) = Accountant(mode=mode, unit=unit, order=order).footprints(looking(most=most))
    assert Fraction(footprint.units, 2 ** (UNIT_BITS + footprint.finer)) == Fraction(1, 2)
    assert footprint.norm.attrs == ()


def test_it_is_refused_where_it_has_no_price() -> None:
    with pytest.raises(Unsupported, match="Gaussian"):
        Accountant(mode=Mode.PURE, unit=Unit()).footprints(looking())
    with pytest.raises(Unsupported, match="as many rows of a unit as are counted"):
        Accountant(mode=Mode.CONCENTRATED, unit=Unit()).footprints(looking(most=2))


def test_a_budget_keeps_a_part_of_delta() -> None:
    budget = Budget.of(epsilon=3.0, delta=1e-3, delta_keys=5e-4)
    assert budget.amount == rho_of(3.0, 5e-4)
    assert budget.key_units == Fraction(5e-4) * 2**DELTA_BITS // 1
    renyi = Budget.of(epsilon=3.0, delta=1e-3, delta_keys=5e-4, accountant="rdp")
    assert renyi.amount == Budget.of(epsilon=3.0, delta=5e-4, accountant="rdp", order=renyi.order).amount
    alone = Budget.of(rho=0.1, delta_keys=1e-7)
    assert (alone.amount, budget_words(alone)) == (0.1, "rho 0.1 but for a chance of 1e-07")
    plain = charter_of(dataset="d", domain=DOMAIN, unit=Unit(), budget=Budget.of(rho=0.1), max_rows=1)
    bound = charter_of(dataset="d", domain=DOMAIN, unit=Unit(), budget=alone, max_rows=1)
    assert "delta_keys" not in str(plain)
    assert plain != bound


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 1.0, "delta_keys": 1e-7},
        {"epsilon": 1.0, "delta": 1e-6, "delta_keys": 1e-6},
        {"epsilon": 1.0, "delta": 1e-6, "delta_keys": -1e-9},
        {"rho": 0.1, "delta_keys": 1.0},
        {"epsilon": 1.0, "delta": 1e-6, "delta_keys": float("nan")},
    ],
)
def test_a_part_that_is_no_part_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="delta_keys is a part of delta"):
        Budget.of(**wrong)


# -- the verb ----------------------------------------------------------------------------------------------------------


def test_texts_that_enough_people_have_are_found() -> None:
    kernel = kernel_of()
    found, charge = kernel.discover(looking(), **TERMS)
    assert found == ["Bern", "Oslo", "Rome"]
    assert texts(kernel) == found
    assert charge.total == kernel.spent() == 2**49
    assert kernel.delta_spent() == looking().delta
    kinds = [record.event.kind for record in kernel.ledger.records()]
    assert kinds == ["versioned", "found", "keyed", "keyed", "keyed"]
    assert {record.analyst for record in kernel.ledger.records()} == {"owner"}


def test_a_second_round_leaves_out_what_has_a_cell() -> None:
    kernel = kernel_of()
    kernel.discover(looking(), **TERMS)
    assert kernel.discover(looking(threshold=38), **TERMS)[0] == ["Kiel"]
    assert texts(kernel) == ["Bern", "Oslo", "Rome", "Kiel"]
    assert kernel.delta_spent() == looking().delta + looking(threshold=38).delta


def test_noise_is_added_to_every_text_and_nothing_below_the_threshold_is_released() -> None:
    class Told(Silence):
        def draw(self, noise: Noise, size: int) -> np.ndarray:
            assert noise == gaussian(10.0)
            order = [text for text, _ in weigh(kernel._opened()[1], looking())]  # which a secret decides
            assert size == len(order)
            return np.array([{"Rome": -46, "alone": 35}[text] for text in order], np.int64)

    kernel = kernel_of(["Rome"] * 9 + ["alone"], randomness=Told())
    assert kernel.discover(looking(), **TERMS)[0] == ["alone"]


SEX = IntegerRange(name="sex", lower=0, upper=1)
WOMEN = Predicate(("sex",), (SEX.size,), Within("sex", ((0, 1),)))
PEOPLE = pd.DataFrame(
    [
        *[(f"a{n}", city, sex) for n in range(6) for city, sex in (("Rome", 0), ("Oslo", 1))],
        *[(f"b{n}", "Oslo", 1) for n in range(9)],
        *[(f"c{n}", city, 0) for n in range(4) for city in ("Rome", "Kiel")],
        *[("d", "Kiel", sex) for sex in (0, 1)],
    ],
    columns=["who", "city", "sex"],
)


def looked_among(scope: Predicate | None) -> dict[str, int]:
    unit, domain = Unit(column="who", max_contributions=2), Domain((CITY, SEX))
    kernel = kernel_of(domain=domain, data=PEOPLE, unit=unit)
    event = looking(most=2, weight=100, noise=gaussian(100.0), threshold=600, scope=scope)
    weights = dict(weigh(kernel._opened()[1], event))
    kernel.discover(event, **TERMS)
    assert kernel.ledger.records()[1].event == event
    assert kernel.spent() == kernel_of(domain=domain, data=PEOPLE, unit=unit).price([replace(event, scope=None)])
    return weights


def test_where_there_is_a_scope_only_rows_in_it_count_and_the_price_is_the_same() -> None:
    assert looked_among(WOMEN) == {"Rome": 6 * 100 + 4 * 70, "Kiel": 4 * 70 + 100}
    assert looked_among(None) == {"Rome": 6 * 70 + 4 * 70, "Oslo": 6 * 70 + 9 * 100, "Kiel": 4 * 70 + 100}


def test_a_scope_is_read_back_and_tells_purchases_apart() -> None:
    event = looking(scope=WOMEN)
    read = read_event(event.fields(), lambda digest: WOMEN)
    assert same_purchase(read, event)
    assert not same_purchase(looking(), event)
    assert event.stored.digest == WOMEN.digest
    with pytest.raises(LedgerError, match="is a condition"):
        read_event(event.fields(), lambda digest: Product(()))
    with pytest.raises(QueryError, match="for which a condition holds"):
        looking(scope=Product(()))


def test_a_scope_that_does_not_fit_or_tells_free_cells_apart_is_refused() -> None:
    with pytest.raises(QueryError, match="does not fit the columns"):
        kernel_of().discover(looking(scope=WOMEN), **TERMS)
    free = Predicate(("city",), (CITY.size,), Within("city", ((1, 2),)))
    with pytest.raises(QueryError, match="that have no cell of their own"):
        kernel_of().discover(looking(scope=free), **TERMS)


def test_the_largest_are_kept_where_cells_run_out() -> None:
    kernel = kernel_of()
    kernel.name_keys([("city", "x"), ("city", "y")], analyst="ana")
    assert kernel.discover(looking(threshold=31), **TERMS)[0] == ["Oslo", "Rome"]
    with pytest.raises(QueryError, match="all cells of city are taken"):
        kernel.discover(looking(), **TERMS)


def test_delta_is_never_exceeded_and_nothing_happens_where_it_would_be() -> None:
    event = looking(threshold=40)
    kernel = kernel_of(budget=replace(BUDGET, delta_keys=1.5 * event.delta / 2**DELTA_BITS))
    kernel.discover(event, **TERMS)
    before = len(kernel.ledger.records()), kernel.spent()
    with pytest.raises(BudgetError, match="is left of delta_keys") as refusal:
        kernel.discover(event, **TERMS)
    assert refusal.value.unit == "delta"
    assert before == (len(kernel.ledger.records()), kernel.spent())
    kernel.ledger.commit(lambda transaction: None)
    again = kernel_of(budget=kernel.budget, ledger=kernel.ledger)
    assert again.delta_spent() == event.delta
    with pytest.raises(BudgetError):
        again.discover(event, **TERMS)


def test_a_new_version_and_a_checkpoint_keep_what_was_used_up() -> None:
    kernel = kernel_of()
    kernel.discover(looking(), **TERMS)
    data = frame(ROWS)
    declare_version(kernel.ledger, lambda key: DuckDBSource(data, DOMAIN, Unit(), key, 10_000), Silence())
    assert kernel.delta_spent() == looking().delta
    with pytest.raises(Stale):
        kernel.discover(looking(), **TERMS)
    kernel.discover(looking(version=2), **TERMS)
    assert kernel.delta_spent() == 2 * looking().delta
    kernel.checkpoint()
    later = kernel_of(ledger=kernel.ledger)
    assert later.begun > 0
    assert later.delta_spent() == kernel.delta_spent()
    assert KeyDeltas(spent=3).state() == "3"


def test_members_of_one_commit_and_plans_count_too() -> None:
    event = looking(threshold=40)
    kernel = kernel_of(budget=replace(BUDGET, delta_keys=1.5 * event.delta / 2**DELTA_BITS))
    hold = kernel.hold([event], analyst="ana", seconds=60)
    with pytest.raises(BudgetError, match="is left of delta_keys"):
        kernel.discover(event, **TERMS)
    kernel.drop_hold(hold.fence)
    work: list[Any] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kernel.ledger, "commit", work.append)
        kernel._data = None
        patched.undo()
        kernel._opened()
        patched.setattr(kernel.ledger, "commit", work.append)
        kernel.discover(event, **TERMS)
        kernel.discover(event, **TERMS)
    first, second = work

    def both(transaction: Any) -> None:
        first(transaction)
        with pytest.raises(BudgetError, match="is left of delta_keys"):
            second(transaction)

    kernel.ledger.commit(both)
    assert kernel.delta_spent() == event.delta


def test_what_cannot_be_looked_for_is_refused() -> None:
    kernel = kernel_of()
    with pytest.raises(QueryError, match="age is no open column"):
        kernel.discover(looking(column="age"), **TERMS)
    kernel.max_rows = 2**50
    with pytest.raises(QueryError, match="too large for max_rows"):
        kernel.discover(looking(weight=2**20, threshold=2**21), **TERMS)
    with pytest.raises(BudgetError):
        kernel_of().discover(looking(noise=gaussian(1.0), threshold=60), **TERMS)
    parts = Domain((CITY, IntegerRange(name="part", lower=0, upper=1)), partition="part")
    data = pd.DataFrame({"city": ["a"], "part": [0]})
    with pytest.raises(Unsupported, match="data without partitions"):
        kernel_of(domain=parts, data=data).discover(looking(), **TERMS)
    with pytest.raises(SourceError, match="cannot be looked for in this kind of source"):
        weigh(Tables(TableSource(np.zeros(CITY.size, np.int64), DOMAIN)), looking())


def test_a_text_that_was_named_meanwhile_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kernel_of()

    def late(tables: Tables, event: Found) -> list[tuple[str, int]]:
        weighed = weigh(tables, event)
        kernel.name_keys([("city", "Rome")], analyst="ana")
        return weighed

    monkeypatch.setattr("bursar.core.extensions.discovery.weigh", late)
    assert kernel.discover(looking(), **TERMS)[0] == ["Bern", "Oslo"]
    assert texts(kernel) == ["Rome", "Bern", "Oslo"]


def test_a_log_with_another_bound_is_refused() -> None:
    kernel = kernel_of()
    other = kernel_of(unit=Unit(column="who", max_contributions=2), data=pd.DataFrame({"city": ["a"], "who": ["u"]}))
    kernel.discover(looking(), **TERMS)
    (record,) = (record for record in kernel.ledger.records() if isinstance(record.event, Found))
    with pytest.raises(Unsupported, match="as many rows of a unit as are counted"):
        other._accounts.add(record)


# -- weights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_people_share_their_weight_among_their_own_texts(seed: int) -> None:
    rng = Random(seed)
    rows = [(rng.choice("abcdef") + rng.choice(["", " "]), rng.choice("uvwxyz")) for _ in range(25)]
    rows += [("named", "u"), ("other", "v")]
    data = pd.DataFrame(rows, columns=["city", "who"])
    unit = Unit(column="who", max_contributions=40)
    source = DuckDBSource(data, DOMAIN, unit, bytes(32), 100)
    source.assign({"city": ["named", "a"]})
    event = looking(most=40, weight=1000, threshold=2000)
    own: dict[str, set[str]] = {}
    for text, who in rows:
        if text.strip() not in ("named", "a"):
            own.setdefault(who, set()).add(text.strip())
    weights: Counter[str] = Counter()
    for mine in own.values():
        for text in mine:
            weights[text] += event.share(len(mine))
    del weights["other"]
    assert dict(source.unlisted(event)) == dict(weights)


def test_rows_that_are_not_counted_weigh_nothing() -> None:
    data = pd.DataFrame([(text, "u") for text in "abcdef"], columns=["city", "who"])
    source = DuckDBSource(data, DOMAIN, Unit(column="who", max_contributions=2), bytes(32), 100)
    weighed = source.unlisted(looking(most=2))
    assert [weight for _, weight in weighed] == [7, 7]


def test_a_text_in_several_rows_of_a_person_weighs_once() -> None:
    domain = Domain((CITY, IntegerRange(name="age", lower=0, upper=9)))
    data = pd.DataFrame([("a", 1, "u"), ("a", 2, "u"), ("b", 3, "u"), ("a", 1, "v")], columns=["city", "age", "who"])
    source = DuckDBSource(data, domain, Unit(column="who", max_contributions=5), bytes(32), 100)
    event = looking(most=5, weight=1000, threshold=2000)
    assert dict(source.unlisted(event)) == {"a": 707 + 1000, "b": 707}


def test_the_order_is_nobodys_order() -> None:
    rows = [f"t{n}" for n in range(30)]
    orders = []
    for key, listed in ((bytes(32), rows), (bytes(32), rows[::-1]), (bytes([1]) * 32, rows)):
        source = DuckDBSource(frame(list(listed)), DOMAIN, Unit(), key, 100)
        orders.append([text for text, _ in source.unlisted(looking())])
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[0] not in (rows, sorted(rows))


@pytest.mark.hypothesis
def test_neighbours_differ_by_one_persons_weights() -> None:
    rng = Random(3)
    unit = Unit(column="who", max_contributions=3)
    event = looking(most=3, weight=1000, threshold=2000)
    for _ in range(examples(20)):
        rows = [(rng.choice("abcd"), rng.choice("uvw")) for _ in range(8)]
        more = [(rng.choice("abcdef"), "eve") for _ in range(rng.randint(1, 6))]
        both = []
        for listed in (rows, rows + more):
            data = pd.DataFrame(listed, columns=["city", "who"])
            both.append(dict(DuckDBSource(data, DOMAIN, unit, bytes(32), 100).unlisted(event)))
        moved = [both[1].get(text, 0) - both[0].get(text, 0) for text in "abcdef"]
        assert min(moved) >= 0
        assert len({each for each in moved if each}) <= 1
        assert sum(each**2 for each in moved) <= event.weight**2


def test_replaced_people_and_shares_go_their_own_way() -> None:
    unit = Unit(neighbours=Neighbours.REPLACE_ONE)
    kernel = kernel_of(unit=unit)
    _, charge = kernel.discover(looking(), **TERMS)
    assert charge.total == 2**50
    assert [record.event.text for record in kernel.ledger.records() if isinstance(record.event, Keyed)] == texts(kernel)
