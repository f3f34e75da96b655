"""Which column sets a table is to be right about."""

from __future__ import annotations

import pytest

from bursar.core.domain import Categories, Domain, IntegerRange
from bursar.errors import QueryError
from bursar.planner.goals import Wanted
from bursar.synthetic.plan.workload import fitting_sets, named_sets, sets_digest, sets_in, sets_of_size
from harness.small import DOMAIN, engine

ONE = Categories(name="one", values=("only",), outside=0, null=0)


def test_all_sets_of_so_many_columns() -> None:
    assert sets_of_size(DOMAIN, 2) == (("age", "sex"), ("age", "region"), ("sex", "region"))
    assert sets_of_size(DOMAIN, 5) == (("age", "sex", "region"),)
    with pytest.raises(QueryError, match="from 1 to 5"):
        sets_of_size(DOMAIN, 6)


def test_columns_of_one_value_teach_nothing() -> None:
    wide = Domain((*DOMAIN.attributes, ONE))
    assert sets_of_size(wide, 2) == sets_of_size(DOMAIN, 2)
    assert fitting_sets(wide, [("one", "sex")]) == (("sex",),)
    with pytest.raises(QueryError, match="nothing to learn"):
        sets_of_size(Domain((ONE,)), 1)
    with pytest.raises(QueryError, match="no set of columns is left"):
        fitting_sets(wide, [("one",)])


def test_too_many_sets_are_refused_with_what_would_work() -> None:
    wide = Domain(tuple(IntegerRange(name=f"c{i}", lower=0, upper=1, null=0) for i in range(40)))
    with pytest.raises(QueryError, match="--ways 2"):
        sets_of_size(wide, 3)


def test_sets_by_name() -> None:
    assert named_sets(DOMAIN, "sex, age; region ;") == (("age", "sex"), ("region",))
    with pytest.raises(QueryError, match="no column 'wage'"):
        named_sets(DOMAIN, "age, wage")
    large = Domain(tuple(IntegerRange(name=f"c{i}", lower=0, upper=9999, null=0) for i in range(2)))
    with pytest.raises(QueryError, match="cannot be learnt together"):
        named_sets(large, "c0,c1")


def test_the_columns_of_a_question() -> None:
    db = engine()
    text = "SELECT region, COUNT(*) FROM people WHERE age < 5 GROUP BY region"
    assert sets_in(db.engine.prepare(text, _free(), None).asked.workload.map) == [("age", "region")]
    assert sets_in(db.engine.prepare("SELECT COUNT(*) FROM people", _free(), None).asked.workload.map) == []


def _free() -> Wanted:
    return Wanted(synthetic=True)


def test_long_lists_have_short_names() -> None:
    assert sets_digest([("a", "b"), ("c",)]) == "a,b;c"
    many = [(f"column {i}",) for i in range(40)]
    assert len(sets_digest(many)) < 20
    assert sets_digest(many) != sets_digest(many[1:])
