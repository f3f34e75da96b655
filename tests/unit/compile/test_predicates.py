"""Conditions over more joint cells than a mask can have: they mean what DuckDB says, and are counted one by one.

Each block of tests/fixtures/predicates.sql has a question and its answer. DuckDB itself must give that answer, and so
must the predicate that the question becomes, counted by a source over the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar import presets
from bursar.compile import Workload, compile
from bursar.compile.masks import predicate
from bursar.compile.partwise import MOST_GROUPS, PartwiseMap
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange, Neighbours, Stray, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.ledger import MemoryLedger, Purpose
from bursar.core.queries import Predicate
from bursar.core.source.duckdb import DuckDBSource
from bursar.errors import BudgetError, QueryError, Unsupported
from bursar.estimation.simultaneous import Family
from bursar.planner.choose import Preset
from bursar.proposers.direct import SeveralNoises
from bursar.session import Bursar
from bursar.sql import parse
from bursar.tails import single_tail
from bursar.views.measurements import joined
from harness.asking import compiled
from harness.cases import every
from harness.maps import Table
from harness.small import Silence, charter, config

FIXTURE = Path(__file__).parents[2] / "fixtures" / "predicates.sql"


def blocks() -> list[list[str]]:
    return [block.strip().splitlines() for block in FIXTURE.read_text().split("\n\n")[1:]]


CHECKS = tuple(f"x{place}" for place in range(10))
DOMAIN = Domain(
    (
        IntegerRange(name="x0", lower=0, upper=3, outside=Stray.OTHER),
        *(IntegerRange(name=name, lower=0, upper=3) for name in CHECKS[1:]),  # 0, 1, 2, 3, NULL
        Categories(name="sex", values=("F", "M")),
        IntegerRange(name="age", lower=0, upper=99, outside=0),
    )
)
RNG = np.random.default_rng(11)
ROWS = [
    (
        *(None if value == 4 else int(value) for value in RNG.integers(0, 5, len(CHECKS))),
        [None, "F", "M", "M"][RNG.integers(4)],
        None if RNG.integers(9) == 0 else int(RNG.integers(0, 100)),
    )
    for _ in range(500)
]


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    columns = [*(f"{name} BIGINT" for name in CHECKS), "sex VARCHAR", "age BIGINT"]
    connection.execute(f"CREATE TABLE people ({', '.join(columns)})")
    connection.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(columns))})", ROWS)
    return connection


@pytest.fixture(scope="module")
def source(database: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBSource]:
    path = tmp_path_factory.mktemp("wide") / "people.parquet"
    database.execute(f"COPY people TO '{path}'")
    found = DuckDBSource(path, DOMAIN, Unit(), b"a key that nobody else has......", 1000)
    yield found
    found.close()


def spoken(text: str) -> str:
    """The question for DuckDB, which has no AT_LEAST."""
    head, found, rest = text.rpartition("AT_LEAST(")
    if not found:
        return text
    parts, depth = [""], 1
    while depth:
        letter, rest = rest[0], rest[1:]
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 1:
            parts.append("")
        elif depth:
            parts[-1] += letter
    flags = ", ".join(f"CAST(coalesce({part}, FALSE) AS INTEGER)" for part in parts[1:])
    return spoken(f"{head}(list_sum([{flags}]) >= {parts[0]}){rest}")


def ask(text: str, domain: Domain = DOMAIN) -> Workload:
    return compiled(text, domain)


def counted(text: str, source: DuckDBSource) -> int:
    workload = ask(text)
    assert isinstance(workload.map, Predicate)
    assert workload.index.tolist() == [[0]]
    return source.count(workload.map)


@every("block", blocks, lambda block: block[1], nth=3)
def test_duckdb_and_the_predicate_count_as_written(
    block: list[str], database: duckdb.DuckDBPyConnection, source: DuckDBSource
) -> None:
    answer, text = int(block[0].removeprefix("-- ")), block[1]
    assert database.execute(spoken(text)).fetchone() == (answer,)
    assert counted(text, source) == answer


def test_there_are_some_and_they_differ() -> None:
    assert len(blocks()) >= 15
    assert len({block[0] for block in blocks()}) > 12


SMALL = Domain((*(IntegerRange(name=name, lower=0, upper=2, outside=0) for name in ("a", "b")), DOMAIN["sex"]))
LEAVES = ["a = 1", "a < 2", "a IS NULL", "b IN (0, 2)", "NOT b = 1", "b <> 2", "sex = 'F'", "sex IS NOT NULL"]


def trees(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        inner.map(lambda one: f"NOT ({one})"),
        inner.map(lambda one: f"({one}) IS TRUE"),
        inner.map(lambda one: f"({one}) IS NOT TRUE"),
        several.map(lambda parts: f"({' AND '.join(parts)})"),
        several.map(lambda parts: f"({' OR '.join(parts)})"),
        several.map(lambda parts: f"AT_LEAST(2, {', '.join([*parts, 'TRUE', 'FALSE'])})"),
        several.map(lambda parts: f"AT_LEAST(2, {', '.join(parts)})"),
    )


@settings(max_examples=300, deadline=None)
@given(st.recursive(st.sampled_from(LEAVES), trees, max_leaves=8))
def test_a_predicate_means_what_a_mask_means(where: str) -> None:
    """Where both are possible they count the same, NULLs and all."""
    query = parse(f"SELECT COUNT(*) FROM people WHERE {where}")
    masks = compile(query, SMALL, "people")
    table = Table(SMALL, np.arange(SMALL.cells(SMALL.names)) ** 2 + 1)
    wanted = 0 if masks.index[0, 0] < 0 else int(masks.map.apply(table)[0])
    try:
        found = predicate(query.where, SMALL)
    except AssertionError:  # a condition that is a constant is no predicate
        assert masks.map.attrs == ()
        return
    assert (0 if found is None else int(found.apply(table)[0])) == wanted


def test_the_partition_comes_first_in_the_hull() -> None:
    domain = Domain((*DOMAIN.attributes, IntegerRange(name="week", lower=0, upper=51, outside=0, null=0)), "week")
    where = f"({' OR '.join(f'{name} = 1' for name in CHECKS)})"
    found = compile(parse(f"SELECT COUNT(*) FROM people WHERE {where} AND age < 50"), domain, "people", 10).map
    assert isinstance(found, Predicate)
    assert [mask.attrs for mask in found.hull] == [("week",), ("age",)]
    assert found.hull[0].steps.at_cells(np.arange(52)).sum() == 10


def test_what_cannot_hold_is_0_by_definition() -> None:
    where = f"({' OR '.join(f'{name} = 1' for name in CHECKS)}) AND age < 5 AND age > 7"
    assert ask(f"SELECT COUNT(*) FROM people WHERE {where}").index.tolist() == [[-1]]
    tied = " OR ".join(f"({name} = 1 AND age < 5)" for name in CHECKS)
    assert ask(f"SELECT COUNT(*) FROM people WHERE ({tied}) AND (age > 7 OR sex = 'F') AND age IS NULL").map.rows == 0


ANY = "SELECT COUNT(*) AS n FROM people WHERE " + " OR ".join(f"{name} = 1" for name in CHECKS)


def test_the_same_count_twice_is_one_row() -> None:
    workload = ask(ANY.replace("AS n", "AS n, 2 * COUNT(*) AS twice"))
    assert isinstance(workload.map, Predicate)
    assert workload.index.tolist() == [[0, 0]]


def test_values_kept_together_are_told_apart_by_no_predicate() -> None:
    with pytest.raises(QueryError, match="kept together as other"):
        ask(ANY.replace("x0 = 1", "x0 > 1"))
    ask(ANY.replace("x0 = 1", "(x0 > 1 AND x0 < 4)"))  # together they agree


def engine(source: DuckDBSource, preset: Preset = presets.default, **changes: object) -> Bursar:
    facts = {"domain": DOMAIN, "budget": Budget.of(epsilon=1.0), "max_rows": 1000, **changes}
    settings_ = config(**facts)
    ledger = MemoryLedger(charter(settings_))
    axis = PartitionAxis.of(settings_.domain, settings_.unit)
    kept = _Kept(source)
    declare_version(ledger, lambda key: kept, Silence(), axis=axis)
    return Bursar(settings_, ledger, open_source=lambda key: kept, randomness=Silence(), analyst="ana", preset=preset)


class _Kept:
    """The source, left open for the next test."""

    def __init__(self, inner: DuckDBSource) -> None:
        self.content, self.table, self.count = inner.content, inner.table, inner.count

    def close(self) -> None: ...


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("preset", [presets.default, presets.boost], ids=lambda preset: preset.name)
def test_it_is_answered_paid_for_once_and_remembered(
    preset: Preset, neighbours: Neighbours, source: DuckDBSource
) -> None:
    db = engine(source, preset, unit=Unit(neighbours=neighbours), public_size=500)
    truth = counted(ANY, source)
    first = db.query(f"{ANY} WITH ERROR 50")
    assert np.array(first.values).tolist() == [[truth]]
    assert first.charge > 0
    again = db.query(f"{ANY} WITH ERROR 50")
    assert (again.charge, again.values) == (0, first.values)
    finer = db.query(f"{ANY} WITH ERROR 30")
    assert finer.charge > 0
    other = db.query("SELECT x0, COUNT(*) AS n FROM people GROUP BY x0 WITH ERROR 80")
    assert sum(value for (value,) in other.values) == len(ROWS)


def test_others_answer_no_part_of_it(source: DuckDBSource) -> None:
    """What was measured before about its columns answers nothing of it, and it answers nothing else."""
    db = engine(source)
    db.query("SELECT x0, COUNT(*) AS n FROM people GROUP BY x0 WITH ERROR 60")
    asked = db.query(f"{ANY} WITH ERROR 60")
    assert (asked.source, asked.charge > 0) == ("direct", True)
    assert db.query("SELECT COUNT(*) AS n FROM people WHERE sex = 'F' WITH ERROR 60").charge > 0


TIED = f"({' OR '.join(f'{name} = 1' for name in CHECKS)})"
TWOS = f"({' OR '.join(f'{name} = 2' for name in CHECKS)})"
SEVERAL = [
    f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(*) FILTER (WHERE {TWOS}) AS b, COUNT(*) AS n FROM people",
    f"SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(age) AS b FROM people WHERE age < 50",
    f"SELECT COUNT(*) FILTER (WHERE {TIED}) * 1.0 / COUNT(*) AS share FROM people",
    f"SELECT COUNT(*) FILTER (WHERE sex = 'F') * 1.0 / COUNT(*) AS share FROM people WHERE {TIED}",
    f"SELECT sex, COUNT(*) AS n FROM people WHERE {TIED} GROUP BY sex",
    f"SELECT sex, COUNT(*) AS n, COUNT(*) FILTER (WHERE {TWOS}) AS m FROM people GROUP BY sex",
    f"SELECT sex, COUNT(*) FILTER (WHERE {TWOS}) * 1.0 / COUNT(*) AS share FROM people GROUP BY sex",
    f"SELECT FLOOR(age / 10) * 10 AS tens, COUNT(*) AS n FROM people WHERE {TIED} AND age BETWEEN 20 AND 59 GROUP BY 1",
    f"SELECT x1, sex, COUNT(*) AS n FROM people WHERE {TIED} AND x1 > 1 AND sex IS NOT NULL GROUP BY x1, sex",
    f"SELECT sex, COUNT(*) AS n FROM people WHERE {TIED} GROUP BY sex HAVING COUNT(*) > 150 ORDER BY n DESC",
]


@pytest.mark.parametrize("text", SEVERAL, ids=lambda text: text[:60])
def test_several_counts_fractions_and_groups_are_what_duckdb_says(
    text: str, database: duckdb.DuckDBPyConnection, source: DuckDBSource
) -> None:
    found = engine(source, budget=Budget.of(epsilon=20.0)).query(f"{text} WITH ERROR 30")
    lines = dict(zip(found.labels, found.values, strict=True))
    truth = {line[: len(found.keys)]: line[len(found.keys) :] for line in database.execute(text).fetchall()}
    assert {label for label, values in lines.items() if any(values)} == set(truth)  # groups without rows count 0
    for label, values in truth.items():
        assert lines[label] == pytest.approx(values)


def test_groups_are_different_people_and_cost_what_the_dearest_does(source: DuckDBSource) -> None:
    """A wrong twin would add up: the price of four groups is that of one at the same noise, not four times it."""
    db = engine(source)
    by_sex = db.explain(f"SELECT sex, COUNT(*) AS n FROM people WHERE {TIED} GROUP BY sex", within=30)
    one = db.explain(f"SELECT COUNT(*) AS n FROM people WHERE {TIED} AND sex = 'F'", within=30, confidence=0.987)
    assert by_sex.price == pytest.approx(one.price, rel=0.05)


def test_parts_that_were_measured_answer_again_and_only_the_rest_is_bought(source: DuckDBSource) -> None:
    db = engine(source, budget=Budget.of(epsilon=20.0))
    first = db.query(f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(*) AS n FROM people WITH ERROR 20")
    again = db.query(f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(*) AS n FROM people WITH ERROR 20")
    assert (again.charge, again.values, again.source) == (0, first.values, "one-by-one")
    alone = db.query(f"SELECT COUNT(*) AS n FROM people WHERE {TIED} WITH ERROR 20")
    assert (alone.charge, alone.source) == (0, "exact")
    more = db.query(
        f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(*) FILTER (WHERE {TWOS}) AS b FROM people", within=20
    )
    assert (more.source, more.reused, more.bought) == ("one-by-one", 1, 1)
    assert 0 < more.charge < first.charge
    finer = db.query(f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(*) AS n FROM people WITH ERROR 5")
    assert (finer.source, finer.reused, finer.bought) == ("apart", 1, 1)  # n is refined


def test_the_kernel_takes_no_map_that_is_measured_part_by_part(source: DuckDBSource) -> None:
    db = engine(source)
    wanted = ask(f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(*) AS n FROM people").map
    assert isinstance(wanted, PartwiseMap)
    noise = Noise(kind=NoiseKind.LAPLACE, scale=50.0)
    with pytest.raises(Unsupported):
        db.kernel.price([Measured(strategy=wanted, noise=noise, version=db.kernel.version())])
    with pytest.raises(Unsupported):
        db.kernel.measure(wanted, noise, analyst="ana", purpose=Purpose("wrong", "test"), at_most=2**50)
    assert db.kernel.spent() == 0


def test_rows_of_different_noise_err_together_as_the_law_says() -> None:
    """1 - prod (1 - p_i), and bars of one's own; the twin that takes the finer noise for both is too sure."""
    fine, coarse = (Noise(kind=NoiseKind.LAPLACE, scale=scale) for scale in (2.0, 9.0))
    law = SeveralNoises(rows=((fine, 1), (coarse, 1)))
    each = [single_tail(noise, 20.0) for noise in (fine, coarse)]
    assert law.tail(20.0, 1.0) == pytest.approx(1 - (1 - each[0]) * (1 - each[1]))
    assert law.tail(20.0, 1.0) > 5 * SeveralNoises(rows=((fine, 1), (fine, 1))).tail(20.0, 1.0)
    assert law.half_widths(0.05)[0] < law.half_widths(0.05)[1]
    assert law.mean_square() == pytest.approx((fine.variance() + coarse.variance()) / 2)
    thrice = SeveralNoises(rows=((fine, 3),))
    assert thrice.tail(20.0, 1.0) == pytest.approx(single_tail(fine, 20.0 / 3))
    assert thrice.half_widths(0.05)[0] == 3 * SeveralNoises(rows=((fine, 1),)).half_widths(0.05)[0]
    assert thrice.mean_square() == pytest.approx(9 * fine.variance())


REFUSED = [
    (f"SELECT age, COUNT(*) AS n FROM people WHERE {TIED} GROUP BY age", f"more than {MOST_GROUPS} of them"),
    (f"SELECT age, COUNT(*) FILTER (WHERE {TIED}) AS n FROM people GROUP BY age", f"more than {MOST_GROUPS} of them"),
    (f"SELECT SUM(age) AS n FROM people WHERE {TIED}", "COUNT, in few groups"),
    (f"SELECT sex, AVG(age) AS a, COUNT(*) AS n FROM people WHERE {TIED} GROUP BY sex", "COUNT, in few groups"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[text[:40] for text, _ in REFUSED])
def test_what_cannot_be_counted_one_by_one_is_refused_with_what_can(text: str, reason: str) -> None:
    with pytest.raises(QueryError, match=reason) as refusal:
        ask(text)
    assert refusal.value.rewrite
    assert ask(refusal.value.rewrite).map.rows > 0


def test_parts_of_which_some_rows_were_refined_since_answer_again(source: DuckDBSource) -> None:
    db = engine(source, budget=Budget.of(epsilon=20.0))
    text = f"SELECT sex, COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(*) AS n FROM people GROUP BY sex"
    assert not db.query(text, within=40).free
    for within in (10, 5):
        refined = db.query("SELECT COUNT(*) FROM people WHERE sex = 'F'", within=within)
        assert (refined.free, refined.bought) == (False, 0)
        again = db.query(text, within=40)
        assert (again.free, again.source) == (True, "one-by-one")
        assert again.values[again.labels.index(("F",))][1] == refined.values[0][0]  # as it is known now


def test_errors_cost_nothing(source: DuckDBSource) -> None:
    db = engine(source)
    both = f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(*) AS n FROM people"
    many = [f"SELECT COUNT(*) FROM people WHERE {TIED} AND age = {age}" for age in range(MOST_GROUPS + 1)]
    with pytest.raises(QueryError, match="counted one by one"):
        db.batch(many, within=50)
    with pytest.raises(QueryError, match="not in a batch"):
        joined([ask(ANY).map])
    with pytest.raises(BudgetError):
        db.query(both, within=0.9, confidence=0.9999)
    assert db.kernel.spent() == 0


def test_a_declared_family_has_no_such_counts(source: DuckDBSource) -> None:
    family = Family(domain=DOMAIN, sets=(("age",),))
    with pytest.raises(QueryError, match="the declared family has no questions that tie"):
        engine(source, family=family).query(
            f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(*) AS n FROM people", within=50
        )


OWN_ERRORS = [
    (f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(*) AS n FROM people", "60 ON a, 20 ON n"),
    (
        f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(*) FILTER (WHERE {TWOS}) AS b FROM people",
        "20 ON a, 90 ON b",
    ),
    (f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, SUM(age) AS s, AVG(age) AS m FROM people", "40, 4000 ON s"),
    (f"SELECT sex, COUNT(*) FILTER (WHERE {TIED}) AS a, COUNT(*) AS n FROM people GROUP BY sex", "45 ON a, 15 ON n"),
]


@pytest.mark.parametrize(("text", "errors"), OWN_ERRORS, ids=[errors for _, errors in OWN_ERRORS])
def test_each_output_has_its_own_error_and_costs_less_for_it(
    text: str, errors: str, database: duckdb.DuckDBPyConnection, source: DuckDBSource
) -> None:
    db = engine(source, budget=Budget.of(epsilon=20.0))
    found = db.query(f"{text} WITH ERROR {errors}")
    lines = dict(zip(found.labels, found.values, strict=True))
    for line in database.execute(text).fetchall():
        assert lines[line[: len(found.keys)]] == pytest.approx(line[len(found.keys) :])
    wanted = {part.output: part.amount for part in parse(f"{text} WITH ERROR {errors}").goal.parts}
    for place, name in enumerate(found.outputs):
        bars = [high[place] - low[place] for low, high in zip(found.low, found.high, strict=True)]
        if name in wanted:
            assert wanted[name] / 2 < max(bars) / 2 <= wanted[name]
    tightest = min(wanted.values())
    assert found.charge < engine(source, budget=Budget.of(epsilon=20.0)).explain(text, within=tightest).price
    again = db.query(f"{text} WITH ERROR {errors}")
    assert again.charge == 0
    np.testing.assert_allclose(again.values, found.values, rtol=1e-12)  # put together from the same rows once more


@pytest.mark.parametrize("goal", [{"epsilon": 0.5}, {"rmse": 20.0}], ids=str)
def test_other_goals_share_the_money_by_what_a_person_weighs(goal: dict[str, float], source: DuckDBSource) -> None:
    """A sum of ages may err by more than a count does; a wrong twin would give both the same noise."""
    db = engine(source, budget=Budget.of(epsilon=20.0))
    found = db.query(f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, AVG(age) AS m FROM people", **goal)
    assert found.charge <= goal.get("epsilon", 20.0) * (1 + 1e-6)
    scales = [record.event.noise.scale for record in db.ledger.records(0) if isinstance(record.event, Measured)]
    assert max(scales) / min(scales) > 10


def test_in_a_batch_they_are_asked_along_with_others(database: duckdb.DuckDBPyConnection, source: DuckDBSource) -> None:
    texts = [
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
        ANY,
        f"SELECT COUNT(*) FILTER (WHERE {TIED}) AS a, AVG(age) AS m FROM people",
        f"SELECT sex, COUNT(*) AS n FROM people WHERE {TWOS} GROUP BY sex",
        ANY,
    ]
    db = engine(source, budget=Budget.of(epsilon=20.0))
    batch = db.batch(texts, within=30)
    assert batch.charge > 0
    for text, answer in zip(texts, batch.answers, strict=True):
        truth = {line[: len(answer.keys)]: line[len(answer.keys) :] for line in database.execute(text).fetchall()}
        lines = dict(zip(answer.labels, answer.values, strict=True))
        for label, values in truth.items():
            assert lines[label] == pytest.approx(values)
    assert db.query(f"{ANY} WITH ERROR 60").free
    alone = engine(source).batch([ANY, ANY], within=30)
    assert [answer.value for answer in alone.answers] == [counted(ANY, source)] * 2


def test_a_comparison_of_too_long_columns_says_how_long_they_are() -> None:
    delays = Domain(tuple(IntegerRange(name=name, lower=-30, upper=1500) for name in ("left", "came")))
    for text in ("came - left > 60", "came > left"):
        with pytest.raises(QueryError, match="left and came have 2,347,024 joint values, and up to 1,048,576 can"):
            compiled(f"SELECT COUNT(*) FROM people WHERE {text}", delays)
