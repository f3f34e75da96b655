"""Compiled questions mean what DuckDB answers to the same text over the public view (public_view.py)."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from public_view import NAMES, View, shows_other

from bursar.compile import Workload, compile
from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, IntegerRange, Period, Stray
from bursar.errors import QueryError
from bursar.sql import parse, render
from harness.asking import compiled

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


# ---------------------------------------------------------------------------------------------------- domains


@st.composite
def attributes(draw: st.DrawFn, name: str) -> Attribute:
    """A column of any kind with any combination of `outside` and `null`."""
    kind = draw(st.sampled_from(["text", "codes", "flag", "integer", "bins", "day", "week", "month"]))
    shape: dict[str, Any] = {"name": name}
    match kind:
        case "text":
            values = ("F", "it's", "ß", *draw(st.sampled_from([(), (), ("other",)])))
            build, shape = Categories, {**shape, "values": values}
        case "codes":
            build, shape = Categories, {**shape, "values": (1, 2, 7)}
        case "flag":
            build, shape = Categories, {**shape, "values": (True,)}
        case "integer":
            build, shape = IntegerRange, {**shape, "lower": -2, "upper": 3}
        case "bins":
            build, shape = Bins, {**shape, "edges": (-1.5, 0.0, 0.1, 10.0)}
        case _:
            last = {"day": date(2024, 1, 5), "week": date(2024, 1, 24), "month": date(2024, 3, 9)}[kind]
            build, shape = Dates, {**shape, "first": date(2024, 1, 3), "last": last, "by": Period(kind)}
    one: Attribute = build(**shape)
    somewhere = st.integers(0, one.declared - 1)
    clip = [Stray.CLIP] if one.ordered else []
    outside = draw(st.sampled_from([*clip, Stray.OTHER, None])) or draw(somewhere)
    null = draw(st.sampled_from([Stray.CELL, Stray.CELL, Stray.OTHER, None])) or draw(somewhere)
    return build(**shape, outside=outside, null=null)


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    return Domain(tuple(draw(attributes(name)) for name in NAMES))


# ------------------------------------------------------------------------------------------------------- texts


def literals(attribute: Attribute, named: bool) -> st.SearchStrategy[str]:
    match attribute:
        case Categories():
            kinds: dict[type, list[str]] = {
                str: ["'F'", "'it''s'", "'ß'", "'F'", "'it''s'", "'zzz'", "'--'"],
                int: ["1", "2", "7", "9", "2.0", "1.5", "-1"],
                bool: ["TRUE", "FALSE"],
            }
            found = kinds[type(attribute.values[0])]
            return st.sampled_from(
                found + ["'other'"] * 2 * (shows_other(attribute, named) or "other" in attribute.values)
            )
        case IntegerRange():
            return st.sampled_from(["-2", "-1", "0", "1", "2", "3", "4", "-3", "7", "1.5", "-2.5", "3.0", "1e0", "- 1"])
        case Bins():
            return st.sampled_from(["-1.5", "0", "0.1", ".1", "10", "-1.5", "0.0", "10", "5", "-9", "11.5"])
    days = ["01-01", "01-03", "01-04", "01-05", "01-06", "01-07", "01-08", "01-15", "01-28", "01-29", "01-31", "02-01"]
    days += ["02-29", "03-01", "03-31", "04-01", "02-11", "05-01"]
    return st.sampled_from([f"{word}'2024-{day}'" for word in ("", "DATE ") for day in days])


@st.composite
def comparisons(draw: st.DrawFn, domain: Domain, named: bool) -> str:
    attribute = draw(st.sampled_from(domain.attributes))
    name = {"age": ["age", "AGE", "people.age"], "sex": ["sex", '"sex"']}.get(attribute.name, ['"Home Town"'])
    column = draw(st.sampled_from(name))
    stranger = draw(st.sampled_from(domain.attributes)) if draw(st.integers(0, 14)) == 0 else attribute
    literal = literals(stranger, named)  # now and then a literal that fits another column
    order = ["<", "<=", ">", ">="] if attribute.ordered or draw(st.integers(0, 9)) == 0 else []
    form = draw(st.sampled_from(["column", "column", "literal", "between", "in", "in", "null", "distinct"]))
    negation = draw(st.sampled_from(["", "NOT "]))
    match form:
        case "column":
            return f"{column} {draw(st.sampled_from(['=', '<>', '!=', *order, *order]))} {draw(literal)}"
        case "literal":
            return f"{draw(literal)} {draw(st.sampled_from(['=', '<>', *order]))} {column}"
        case "between" if order:
            return f"{column} {negation}BETWEEN {draw(literal)} AND {draw(literal)}"
        case "null":
            return f"{column} IS {negation}NULL"
        case "distinct":
            return f"{column} IS {negation}DISTINCT FROM {draw(literal)}"
    return f"{column} {negation}IN ({', '.join(draw(st.lists(literal, min_size=1, max_size=4)))})"


def conditions(domain: Domain, named: bool) -> st.SearchStrategy[str]:
    """Any text of comparisons, AND, OR, NOT and brackets; what binds tighter is for the two readers to agree on."""
    leaf = comparisons(domain, named)
    return st.recursive(
        leaf | leaf | st.sampled_from(["TRUE", "FALSE", "1 = 1"]),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from([" AND ", " AND ", " OR "]), inner).map("".join),
            st.tuples(leaf, st.sampled_from([" AND ", " AND ", " OR "]), inner).map("".join),
            inner.map(lambda text: f"({text})"),
            inner.map(lambda text: f"NOT {text}"),
            inner.map(lambda text: f"NOT ({text})"),
        ),
        max_leaves=5,
    )


@st.composite
def questions(draw: st.DrawFn, domain: Domain, named: bool) -> str:
    condition = conditions(domain, named)
    quoted = {name: f'"{name}"' for name in NAMES}
    columns = draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True))
    counts = draw(st.lists(st.sampled_from(["COUNT(*)", "FILTER", "COLUMN"]), min_size=1, max_size=3))
    items = [f"{quoted[name]} AS k{n}" for n, name in enumerate(columns)]
    for n, kind in enumerate(counts):
        what = f"COUNT({quoted[draw(st.sampled_from(NAMES))]})" if kind == "COLUMN" else "COUNT(*)"
        what += f" FILTER (WHERE {draw(condition)})" if kind == "FILTER" else ""
        items.append(f"{what} AS n{n}")
    order = draw(st.permutations(range(len(items))))
    selected = [items[i] for i in order]
    groups = []
    for n, name in enumerate(columns):
        groups.append(draw(st.sampled_from([quoted[name], f"k{n}", str(order.index(n) + 1)])))
    text = f"SELECT {', '.join(selected)} FROM people"
    if draw(st.integers(0, 3)):
        text += f" WHERE {draw(condition)}"
    return text + (f" GROUP BY {', '.join(draw(st.permutations(groups)))}" if groups else "")


# ------------------------------------------------------------------------------------------------ the comparison


def compare(view: View, text: str, workload: Workload) -> None:
    """The compiled question applied to exact counts, line by line, against DuckDB's own answers."""
    columns = [view.domain.place(view.column(key.column.text)) for key in parse(text).keys]

    def labels(row: dict[str, Any]) -> tuple[Any, ...]:
        shown = [(n, view.cells[n][row[key]]) for n, key in zip(columns, workload.keys, strict=True)]
        return tuple(view.domain.attributes[n].label(cell) for n, cell in shown)

    # DuckDB groups by value and we by cell; a value called 'other' and the cell other share a label on both sides
    exact = np.append(workload.map.apply(view.counts), 0)  # index -1: zero by definition
    ours: Counter[tuple[Any, ...]] = Counter()
    for line, row in zip(workload.labels, workload.index, strict=True):
        ours.update({(line, output): int(exact[place]) for output, place in zip(workload.outputs, row, strict=True)})
    theirs: Counter[tuple[Any, ...]] = Counter()
    for row in view.answers(text, "everything JOIN range(4) r(i) ON r.i < often"):
        theirs.update({(labels(row), output): row[output] for output in workload.outputs})
    assert +ours == +theirs

    possible = {labels(row) for row in view.answers(text, "everything")} if columns else {()}
    assert set(workload.labels) == possible
    cells = [[view.domain.attributes[n].label(c) for c in range(view.domain.attributes[n].size)] for n in columns]
    if all(len(set(column)) == len(column) for column in cells):
        assert len(workload.labels) == len(possible)


def check_rows(workload: Workload) -> None:
    """What a Workload promises about its map."""
    parts = getattr(workload.map, "parts", (workload.map,))
    for part in parts:
        assert all(np.diff(mask.steps.starts).all() for mask in part.masks), "a row of zeros"
    used = workload.index[workload.index >= 0]
    assert set(used.tolist()) == set(range(workload.map.rows))


def check_meaning(data: st.DataObject, domain: Domain, named: bool, seed: int) -> None:
    text = data.draw(questions(domain, named))
    try:
        workload = compiled(text, domain)
    except QueryError as refusal:
        event("refused with a rewrite" if refusal.rewrite else "refused without a rewrite")
        if not refusal.rewrite:
            return
        text = refusal.rewrite
        workload = compile(parse(text), domain, "people")  # a rewrite works
    else:
        event("accepted")
    if "'other'" in text and not all(shows_other(a, named) or a.ordered for a in domain.attributes):
        return  # the view of this example does not read 'other'
    check_rows(workload)
    compare(View(domain, named=named, seed=seed), text, workload)


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), domain=domains(), named=st.booleans(), seed=st.integers(0, 10**6))
def test_questions_mean_what_duckdb_answers(data: st.DataObject, domain: Domain, named: bool, seed: int) -> None:
    check_meaning(data, domain, named, seed)


@pytest.mark.heavy
@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), domain=domains(), named=st.booleans(), seed=st.integers(0, 10**6))
def test_many_questions_mean_what_duckdb_answers(data: st.DataObject, domain: Domain, named: bool, seed: int) -> None:
    check_meaning(data, domain, named, seed)


@settings(max_examples=80, deadline=None, suppress_health_check=SLOW)
@given(data=st.data(), domain=domains())
def test_a_question_survives_being_written_out(data: st.DataObject, domain: Domain) -> None:
    query = parse(data.draw(questions(domain, named=True)))
    assert parse(render(query)) == parse(render(parse(render(query))))
    try:
        workload = compile(query, domain, "people")
    except QueryError:
        return
    again = compile(parse(render(query)), domain, "people")
    assert (again.map.digest, again.labels) == (workload.map.digest, workload.labels)
