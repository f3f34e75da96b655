"""Which column sets a table is to be right about."""

from __future__ import annotations

import pytest

from bursar.core.domain import Categories, Domain, IntegerRange
from bursar.errors import QueryError
from bursar.planner.goals import Wanted
from bursar.synthetic.plan.column_sets import asked, digest, fitting, named, ways
from harness.small import DOMAIN, engine

ONE = Categories(name="one", values=("only",), outside=0, null=0)


def test_all_sets_of_so_many_columns() -> None:
    assert ways(DOMAIN, 2) == (("age", "sex"), ("age", "region"), ("sex", "region"))
    assert ways(DOMAIN, 5) == (("age", "sex", "region"),)
    with pytest.raises(QueryError, match="from 1 to 5"):
        ways(DOMAIN, 6)


def test_columns_of_one_value_teach_nothing() -> None:
    wide = Domain((*DOMAIN.attributes, ONE))
    assert ways(wide, 2) == ways(DOMAIN, 2)
    assert fitting(wide, [("one", "sex")]) == (("sex",),)
    with pytest.raises(QueryError, match="nothing to learn"):
        ways(Domain((ONE,)), 1)
    with pytest.raises(QueryError, match="no set of columns is left"):
        fitting(wide, [("one",)])


def test_too_many_sets_are_refused_with_what_would_work() -> None:
    wide = Domain(tuple(IntegerRange(name=f"c{i}", lower=0, upper=1, null=0) for i in range(40)))
    with pytest.raises(QueryError, match="--ways 2"):
        ways(wide, 3)


def test_sets_by_name() -> None:
    assert named(DOMAIN, "sex, age; region ;") == (("age", "sex"), ("region",))
    with pytest.raises(QueryError, match="no column 'wage'"):
        named(DOMAIN, "age, wage")
    large = Domain(tuple(IntegerRange(name=f"c{i}", lower=0, upper=9999, null=0) for i in range(2)))
    with pytest.raises(QueryError, match="cannot be learnt together"):
        named(large, "c0,c1")


def test_the_columns_of_a_question() -> None:
    db = engine()
    text = "SELECT region, COUNT(*) FROM people WHERE age < 5 GROUP BY region"
    assert asked(db.engine.prepare(text, _free(), None).asked.workload.map) == [("age", "region")]
    assert asked(db.engine.prepare("SELECT COUNT(*) FROM people", _free(), None).asked.workload.map) == []


def _free() -> Wanted:
    return Wanted(synthetic=True)


def test_long_lists_have_short_names() -> None:
    assert digest([("a", "b"), ("c",)]) == "a,b;c"
    many = [(f"column {i}",) for i in range(40)]
    assert len(digest(many)) < 20
    assert digest(many) != digest(many[1:])
