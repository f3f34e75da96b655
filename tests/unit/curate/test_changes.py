"""What the owner is told about the values that a declaration changes is what an answer over them would have."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import bursar
from bursar.compile.values import Represented
from bursar.config import Config, load_draft
from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Period, Stray, Unit
from bursar.curate import edit
from bursar.curate.changes import ColumnChange, changes, rows_left_out
from bursar.curate.check import check
from bursar.curate.confirm import change
from bursar.curate.draft_from_data import init
from harness.small import config


def changed(attribute: IntegerRange | Bins | Categories | Dates, values: list[object]) -> ColumnChange:
    (found,) = changes(config(domain=Domain((attribute,))), pd.DataFrame({attribute.name: values}))
    return found


def test_decimals_that_are_rounded_away() -> None:
    rain = [0.0] * 90 + [0.5] * 8 + [1.0, 2.0, None]
    found = changed(IntegerRange(name="rain", lower=0, upper=1), list(rain))
    assert (found.filled, found.rounded, found.outside, found.unread) == (100, 8, 1, 0)
    assert (found.stored_sum, found.declared_sum) == (7, 2)
    assert found.text == (
        "of 100 values: 8 rounded down to whole numbers; 1 beyond the ends, counted as the nearest end; "
        "the sum is 7, and 2 as declared (-71 %)"
    )


def test_words_among_numbers() -> None:
    found = changed(IntegerRange(name="age", lower=0, upper=99), ["12", "NA", "-5", "inf", "30"])
    assert (found.filled, found.rounded, found.outside, found.unread) == (5, 0, 2, 1)
    assert (found.stored_sum, found.declared_sum) == (37, 42)  # infinity is in no sum
    assert "1 not readable as numbers, counted as NULL" in found.text


def test_bins_count_as_their_middle_or_what_stands_for_them() -> None:
    values: list[object] = [0.0, 0.0, 0.0, 5.0]
    found = changed(Bins(name="x", edges=(0, 2, 10)), values)
    assert (found.stored_sum, found.declared_sum) == (5, 9)
    assert found.text == "the sum is 5, and 9 as declared (+80 %)"
    stood = Represented(name="x", edges=(0, 2, 10), representatives=(0, 5))
    assert changed(stood, values).text == ""
    assert changed(Bins(name="x", edges=(0, 2)), [-1.0, 1.0]).text.endswith("the sum is 0, and 2 as declared")


def test_what_counts_as_other_is_in_no_sum() -> None:
    found = changed(IntegerRange(name="x", lower=0, upper=9, outside=Stray.OTHER), [3, 40, 50])
    assert (found.outside, found.declared_sum) == (2, 3)
    assert "2 beyond the ends, counted as other" in found.text


def test_texts_and_days() -> None:
    states = changed(Categories(name="state", values=("ill", "well")), ["ill", "well", "NA", None])
    assert states.text == "of 3 values: 1 not listed, counted as other"
    sent = Categories(name="state", values=("ill", "well"), outside=1)
    assert changed(sent, ["dead"]).text == "of 1 values: 1 not listed, counted as well"
    truths = changed(Categories(name="m", values=(True, False)), ["true", "f", "perhaps"])
    assert truths.text == "of 3 values: 1 not readable as true or false, counted as other"
    days = Dates(name="day", first=date(2020, 1, 1), last=date(2020, 12, 31), by=Period.MONTH)
    found = changed(days, ["2020-02-01", "2021-01-01", "soon"])
    assert (found.outside, found.unread, found.stored_sum) == (1, 1, None)
    assert "1 not readable as days, counted as NULL" in found.text


def test_texts_that_a_collation_calls_equal_are_told_apart(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE data AS SELECT unnest(['a', 'A', 'A']) COLLATE NOCASE AS x")
    attribute = Categories(name="x", values=("a",))
    (found,) = changes(config(domain=Domain((attribute,)), table="data"), tmp_path / "a.duckdb")
    assert (found.filled, found.outside) == (3, 2)


def weather(rows: int) -> pd.DataFrame:
    """Hours of which few have rain, in hundredths, and a sight that is nearly always 10."""
    chance = random.Random(11)
    rain = [chance.choice([0.01, 0.02, 0.3, 1.2]) if chance.random() < 0.07 else 0.0 for _ in range(rows)]
    sight = [chance.choice([0.25, 0.5, 2.5]) if chance.random() < 0.02 else 10.0 for _ in range(rows)]
    return pd.DataFrame({"rain": rain, "sight": sight, "month": [chance.randrange(1, 13) for _ in range(rows)]})


@pytest.mark.heavy
def test_a_drafted_sum_of_rain_is_the_sum(tmp_path: Path) -> None:
    path, frame = tmp_path / "bursar.toml", weather(6000)
    drafted = init(frame, path, table="weather", unit="row", epsilon=1000.0).config
    for place in drafted.unconfirmed:
        change(path, lambda text, place=place: edit.confirm(text, place))  # type: ignore[misc]
    told = {one.name: one for one in changes(load_draft(path), frame)}
    assert told["rain"].declared_sum == pytest.approx(told["rain"].stored_sum)
    assert told["sight"].declared_sum == pytest.approx(told["sight"].stored_sum, rel=0.01)
    with bursar.create(path, data=frame) as db:
        answer = db.query("SELECT SUM(rain) FROM weather", within=5)
        assert answer.value == pytest.approx(float(frame["rain"].sum()), abs=30)  # six times the error: e^-18
        months = db.query("SELECT month, COUNT(*) FROM weather GROUP BY month", within=5)
        assert [label for (label,) in months.labels] == [*range(1, 13)]


def test_check_says_what_is_changed_if_it_may_look() -> None:
    settings = config(domain=Domain((IntegerRange(name="a", lower=0, upper=9),)))
    assert check(settings).changes is None
    assert "What the declarations change" not in str(check(settings))
    found = check(settings, data=pd.DataFrame({"a": [1.5, 2.0]}))
    assert "a: of 2 values: 1 rounded down to whole numbers; the sum is 3.5" in str(found)
    assert found.to_json()["changes"][0]["rounded"] == 1
    assert "every row counts, and every value as what it is" in str(check(settings, data=pd.DataFrame({"a": [1, 2]})))


def test_rows_that_no_answer_counts() -> None:
    who = ["ada"] * 3 + ["bob"] * 2 + ["eve"] + [None] * 4
    rows = pd.DataFrame({"who": who, "a": [1] * 10})
    domain = Domain((IntegerRange(name="a", lower=0, upper=9),))

    def bounded(most: int) -> Config:
        return config(domain=domain, unit=Unit(column="who", max_contributions=most))

    found = rows_left_out(bounded(1), rows)
    assert found is not None
    assert (found.rows, found.nobodys, found.further) == (10, 4, 3)
    one = "of 10 rows, 3 count; left out: 3 beyond 1 row of each who, 4 without a who"
    assert found.text == one
    assert f"rows of people: {one}" in " ".join(str(check(bounded(1), data=rows)).split())
    few = rows_left_out(bounded(2), rows.dropna())
    assert few is not None
    assert few.text == "of 6 rows, 5 count; left out: 1 beyond 2 rows of each who"
    all_ = rows_left_out(bounded(3), rows.dropna())
    assert all_ is not None
    assert (all_.text, all_.further) == ("", 0)
    assert "every row counts" in str(check(bounded(3), data=rows.dropna()))
    assert rows_left_out(config(domain=domain), rows) is None
