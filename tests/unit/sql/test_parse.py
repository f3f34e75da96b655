"""What a text is read as."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from bursar.errors import QueryError
from bursar.sql import (
    FALSE,
    TRUE,
    Aggregate,
    And,
    Between,
    Compare,
    Condition,
    Function,
    In,
    IsNull,
    Key,
    Literal,
    Name,
    Not,
    Op,
    Or,
    Query,
    Sort,
    parse,
    render,
)
from bursar.sql.query import IsTrue
from bursar.sql.terms import Call, refs_of
from bursar.sql.tokens import DEEPEST, LARGEST_TEXT, LONGEST_CHAIN, MOST_ITEMS, MOST_KEYS, MOST_NAMED_SELECTS


def where(text: str) -> Condition:
    return parse(f"SELECT COUNT(*) FROM t WHERE {text}").where


def compare(column: str, op: str, literal: Literal) -> Compare:
    return Compare(column=Name(text=column), op=Op(op), literal=literal)


def test_the_simplest_question() -> None:
    assert parse("select count(*) from people") == Query(
        table=Name(text="people"), aggregates=(Aggregate(name="count"),), keys=(), where=TRUE, goal=None, explain=False
    )


def test_everything_at_once() -> None:
    query = parse(
        """EXPLAIN -- how many
        SELECT COUNT(*) AS "all of them", p.Sex, COUNT(*) FILTER (WHERE age >= 30) older
        FROM people AS p /* one table */ WHERE p."Home Town" = 'it''s' GROUP BY 2;"""
    )
    assert query == Query(
        table=Name(text="people"),
        keys=(Key(column=Name(text="Sex")),),
        aggregates=(
            Aggregate(name="all of them"),
            Aggregate(name="older", condition=compare("age", ">=", 30)),
        ),
        where=Compare(column=Name(text="Home Town", quoted=True), op=Op.EQ, literal="it's"),
        explain=True,
    )


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a = 1", compare("a", "=", 1)),
        ("a != 1", compare("a", "<>", 1)),
        ("1 < a", compare("a", ">", 1)),
        ("(a) >= (-1.50)", compare("a", ">=", Decimal("-1.50"))),
        ("a < - -3", compare("a", "<", 3)),
        ("a < .5", compare("a", "<", Decimal("0.5"))),
        ("a = 1_000", compare("a", "=", 1000)),
        ("a = TRUE", compare("a", "=", True)),
        ("a = DATE '2024-02-29'", compare("a", "=", date(2024, 2, 29))),
        ("a = '2024-02-29'::DATE", compare("a", "=", date(2024, 2, 29))),
        ("a = '2024-02-29'", compare("a", "=", "2024-02-29")),
        ("a = '-- no comment'", compare("a", "=", "-- no comment")),
        ("a BETWEEN 1 AND 2", Between(column=Name(text="a"), low=1, high=2)),
        ("a NOT BETWEEN 1 AND 2", Not(part=Between(column=Name(text="a"), low=1, high=2))),
        ("a IN ('x', 'y')", In(column=Name(text="a"), literals=("x", "y"))),
        ("a NOT IN (1)", Not(part=In(column=Name(text="a"), literals=(1,)))),
        ("a IS NULL", IsNull(column=Name(text="a"))),
        ("a IS NOT NULL", Not(part=IsNull(column=Name(text="a")))),
        ("TRUE", TRUE),
        ("NOT FALSE", Not(part=FALSE)),
        ("1 = 1", TRUE),
        ("2 <= 1.5", FALSE),
        ("a = 1 AND (b = 2 AND c = 3)", And(parts=tuple(compare(n, "=", i) for i, n in enumerate("abc", 1)))),
        ("a = 1 OR b = 2 OR c = 3", Or(parts=tuple(compare(n, "=", i) for i, n in enumerate("abc", 1)))),
        (
            "a = 1 OR b = 2 AND c = 3",
            Or(parts=(compare("a", "=", 1), And(parts=(compare("b", "=", 2), compare("c", "=", 3))))),
        ),
        ("NOT a = 1 AND b = 2", And(parts=(Not(part=compare("a", "=", 1)), compare("b", "=", 2)))),
        ("a IS NOT DISTINCT FROM 1", And(parts=(compare("a", "=", 1), Not(part=IsNull(column=Name(text="a")))))),
        ("a IS TRUE", IsTrue(part=compare("a", "=", True))),
        ("a IS DISTINCT FROM NULL", Not(part=IsNull(column=Name(text="a")))),
    ],
)
def test_conditions(text: str, condition: Condition) -> None:
    assert where(text) == condition


def test_booleans_and_numbers_are_not_confused() -> None:
    assert [type(part.literal) for part in where("a = 1 AND a = TRUE AND a = 1.0").parts] == [int, bool, Decimal]


def test_positions_are_offsets_in_the_text() -> None:
    text = "SELECT COUNT(*) FROM t -- é\nWHERE 'ß' = \"x\" AND NOT (b IS NULL OR 3 < c)"
    first, second = parse(text).where.parts
    assert text[first.position :].startswith("'ß'")
    assert text[first.column.position :].startswith('"x"')
    assert text[second.part.parts[1].position :].startswith("3 < c")
    assert text[parse(text).table.position :].startswith("t --")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sex, COUNT(*) FROM t GROUP BY sex",
        "SELECT COUNT(*), sex FROM t GROUP BY SEX",
        "SELECT COUNT(*), sex FROM t GROUP BY 2",
        "SELECT COUNT(*) FROM t GROUP BY sex",
        "SELECT COUNT(*) FROM t GROUP BY (t.sex), sex",
    ],
)
def test_ways_to_group(text: str) -> None:
    keys = parse(text).keys
    assert [(key.column.text.lower(), key.alias, key.through) for key in keys] == [("sex", None, None)]


def test_a_group_named_by_its_alias() -> None:
    (key,) = parse('SELECT sex AS "S", COUNT(*) FROM t GROUP BY s').keys
    assert (key.column.text, key.alias, key.through) == ("sex", "S", Name(text="s"))


def test_in_group_by_a_column_comes_before_an_alias() -> None:
    keys = parse("SELECT sex AS age, age AS a, COUNT(*) FROM t GROUP BY age, sex").keys
    assert [(key.column.text, key.alias, key.through) for key in keys] == [("sex", "age", None), ("age", "a", None)]


def test_selected_columns_come_first_then_those_left_out() -> None:
    keys = parse("SELECT c, COUNT(*), a FROM t GROUP BY a, b, c").keys
    assert [key.column.text for key in keys] == ["c", "a", "b"]


def test_what_is_computed_from_lines_is_called_after_its_function() -> None:
    declared = parse("SELECT MIN(age), MAX(age), MIN(hours) FROM people")
    assert [name for name, _ in declared.stages[-1].columns] == ["min", "max", "min_2"]
    windows = parse("SELECT sex, RANK() OVER (ORDER BY COUNT(*)), SUM(COUNT(*)) OVER () FROM people GROUP BY sex")
    assert [name for name, _ in windows.stages[-1].columns] == ["sex", "rank", "sum"]


def test_counts_without_a_name_get_one() -> None:
    query = parse("SELECT COUNT(*), COUNT(*) AS count_2, COUNT(*), count_3, COUNT(1), COUNT() FROM t GROUP BY count_3")
    assert [a.name for a in query.aggregates] == ["count", "count_2", "count_4", "count_5", "count_6"]


def test_counting_a_column_counts_what_is_not_null() -> None:
    (first, second) = parse("SELECT COUNT(a) x, COUNT(a) FILTER (WHERE b = 1) y FROM t").aggregates
    assert (first.of, first.condition) == (Name(text="a"), TRUE)
    assert (second.of, second.condition) == (Name(text="a"), compare("b", "=", 1))


@pytest.mark.parametrize(
    "text",
    [
        'EXPLAIN SELECT a x, "B b", COUNT(*), COUNT(*) FILTER (WHERE a < 1) AS "n 1" FROM t GROUP BY x, 2 WITH RHO .1',
        "SELECT COUNT(*) FROM \"T\" WHERE NOT (a = 1 OR b IN ('it''s', '')) AND (c IS NULL OR NOT d BETWEEN 1 AND 2)",
        "SELECT COUNT(*) FROM t WHERE a <> DATE '2024-01-01' OR NOT b = FALSE AND TRUE WITH ERROR .5% CONFIDENCE 99.9%",
        'SELECT COUNT(*) AS "select" FROM t WHERE a = 99999999999999999999999999999.5 WITH RMSE 3',
    ],
)
def test_a_question_written_out_is_read_as_the_same_question(text: str) -> None:
    query = parse(text)
    again = parse(render(query))
    assert again == parse(render(again))
    assert (again.where, again.aggregates, again.goal, again.explain) == (
        query.where,
        query.aggregates,
        query.goal,
        query.explain,
    )


def test_the_limits_are_exactly_where_they_are_stated() -> None:
    text = "SELECT COUNT(*) FROM t WHERE a = 'é"
    fits = text + "x" * (LARGEST_TEXT - len(text.encode()) - 1) + "'"
    assert (len(fits.encode()), parse(fits).where.literal[:2]) == (LARGEST_TEXT, "éx")
    with pytest.raises(QueryError, match=f"at most {LARGEST_TEXT} bytes"):
        parse(fits + " ")

    items = ", ".join(map(str, range(MOST_ITEMS)))
    assert len(where(f"a IN ({items})").literals) == MOST_ITEMS
    with pytest.raises(QueryError, match=f"at most {MOST_ITEMS} items"):
        where(f"a IN ({items}, 1)")

    assert where("(" * DEEPEST + "a = 1" + ")" * DEEPEST) == compare("a", "=", 1)
    for deep in ("(" * (DEEPEST + 1) + "a = 1" + ")" * (DEEPEST + 1), "NOT " * (DEEPEST + 1) + "a = 1"):
        with pytest.raises(QueryError, match=f"at most {DEEPEST} deep"):
            where(deep)

    casts = "SELECT COUNT(*){} FROM people"
    assert parse(casts.format("::int" * (LONGEST_CHAIN // 2))).aggregates
    sums = "SELECT SUM(age" + " + age" * (LONGEST_CHAIN + 1) + ") FROM people"
    for long in (casts.format("::int" * (LONGEST_CHAIN + 1)), casts.format("::int" * 1500), sums):
        with pytest.raises(QueryError, match=f"at most {LONGEST_CHAIN} parts in a row"):
            parse(long)
    groups = "SELECT COUNT(*) FROM people GROUP BY {}"
    assert len(parse(groups.format(", ".join(f"c{i}" for i in range(MOST_KEYS)))).keys) == MOST_KEYS
    many = ", ".join(f"age % {i}" for i in range(2, 700))
    for long in (
        groups.format(many),
        f"SELECT {many}, COUNT(*) FROM people GROUP BY ALL",
        f"SELECT DISTINCT {many} FROM p",
    ):
        with pytest.raises(QueryError, match=f"GROUP BY takes at most {MOST_KEYS} items"):
            parse(long)

    def chain(length: int) -> str:
        steps = ", ".join(f"a{i} AS (SELECT age FROM {f'a{i - 1}' if i else 'people'})" for i in range(length))
        return f"WITH {steps} SELECT COUNT(*) FROM a{length - 1}"

    assert parse(chain(MOST_NAMED_SELECTS)).aggregates
    with pytest.raises(QueryError, match=f"WITH takes at most {MOST_NAMED_SELECTS} sub-selects"):
        parse(chain(MOST_NAMED_SELECTS + 1))


def test_long_chains_are_not_deep() -> None:
    assert len(where(" OR ".join(["a = 1"] * 700)).parts) == 700


def test_a_question_is_text() -> None:
    with pytest.raises(QueryError, match="is text"):
        parse(b"SELECT COUNT(*) FROM t")  # type: ignore[arg-type]


LEVEL = "CASE WHEN {} < 3 OR sex = 'F' THEN 1 ELSE 2 END"


@pytest.mark.parametrize(("one", "other"), [("age", "AGE"), ("Age", '"age"'), ('"Age"', "aGE")])
def test_letter_case_of_names_does_not_matter_inside_of_anything(one: str, other: str) -> None:
    text = f"SELECT {LEVEL.format(one)} AS c, SUM({one}) - SUM({other}) + COUNT(*) AS n, AVG({one}) FROM people "
    text += f"GROUP BY {LEVEL.format(other)} HAVING AVG({other}) > 3 ORDER BY {LEVEL.format(other)}"
    query = parse(text)
    assert (len(query.keys), query.order[0].key) == (1, 0)
    assert [item.function for item in query.aggregates] == [Function.COUNT, Function.AVG]


def test_quoted_names_are_compared_letter_for_letter() -> None:
    with pytest.raises(QueryError, match="selected but not in GROUP BY"):
        parse("SELECT {}, COUNT(*) FROM people GROUP BY {}".format(LEVEL.format('"Age"'), LEVEL.format('"age"')))


def test_sets_that_having_leaves_out_are_not_asked_for() -> None:
    query = parse(
        "SELECT sex, age, COUNT(*) FROM people GROUP BY CUBE (sex, age) HAVING GROUPING(sex) = 0 AND count > 5"
    )
    assert (query.sets, query.unasked) == (((0, 1), (0,)), ((1,), ()))
    assert parse(render(query)) == query


@pytest.mark.parametrize(
    ("order", "sort"),
    [
        ("sex", Sort(output="sex")),
        ('("SEX")', Sort(output="sex")),
        ("a", Sort(key=0)),
        ("t.s", Sort(key=0)),
        ("s", Sort(key=0)),
    ],
)
def test_in_order_by_an_alias_comes_before_a_column(order: str, sort: Sort) -> None:
    inner = "(SELECT sex AS s FROM people) AS t"
    assert parse(f"SELECT s AS a, COUNT(*) AS sex FROM {inner} GROUP BY t.s ORDER BY {order}").order == (sort,)


def test_in_order_by_a_name_that_nobody_gave_comes_after_a_column() -> None:
    assert parse("SELECT count AS c, COUNT(*) FROM t GROUP BY count ORDER BY count").order == (Sort(key=0),)


def test_in_having_a_group_column_comes_before_an_alias() -> None:
    query = parse("SELECT n AS m, COUNT(*) AS n FROM (SELECT change AS n FROM t) GROUP BY n HAVING n > 5")
    condition = query.stages[0].where
    assert isinstance(condition, Call)
    assert [name.text for name in refs_of(condition)] == ["m"]


def test_a_total_is_ordered_by_under_its_own_name_only() -> None:
    named = "CASE WHEN GROUPING(sex) = 1 THEN '{}' ELSE sex END"
    text = f"SELECT {named.format('Aa')} AS a, COUNT(*) FROM t GROUP BY ROLLUP (sex) ORDER BY {{}}"
    assert parse(text.format(named.format("Aa"))).order == (Sort(key=0),)
    assert parse(text.format("sex")).order == (Sort(key=0, unnamed=True),)
    with pytest.raises(QueryError, match="this CASE is not selected"):
        parse(text.format(named.format("Zz")))


@pytest.mark.parametrize("group", ["change, shop", "shop, change", "1, shop", "ROLLUP (change, shop)"])
def test_a_column_is_not_grouped_by_as_it_is_and_by_its_alias(group: str) -> None:
    text = f"SELECT change AS shop, COUNT(*) FROM t GROUP BY {group}"
    with pytest.raises(QueryError, match="names the same groups twice, once as shop") as refusal:
        parse(text)
    assert refusal.value.position == text.rindex("shop")


@pytest.mark.parametrize(("list_of_all", "share"), [("4)[OFFSET(1)]", "0.25"), ("100)[ORDINAL(91)]", "0.9")])
def test_one_of_a_list_of_quantiles(list_of_all: str, share: str) -> None:
    quantile = parse(f"SELECT APPROX_QUANTILES(age, {list_of_all} AS m FROM people")
    assert quantile == parse(f"SELECT QUANTILE_CONT(age, {share}) AS m FROM people")


@pytest.mark.parametrize("ends", ["4)[OFFSET(0)]", "4)[OFFSET(4)]", "4)[ORDINAL(1)]", "4)[1]", "4)"])
def test_the_ends_of_that_list_are_a_single_persons(ends: str) -> None:
    with pytest.raises(QueryError):
        parse(f"SELECT APPROX_QUANTILES(age, {ends} AS m FROM people")
