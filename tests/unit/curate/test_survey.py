"""What the data owner's look at the rows lets out: the right kinds, round numbers, and nothing that few rows hold."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Sequence
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.curate.guess import calendar_spans, names_identifiers
from bursar.curate.survey import FEWEST, SurveyedColumn, SurveyedKind, rounded_up, widened
from bursar.curate.survey import survey as survey_by_name
from bursar.errors import SourceError

survey = partial(survey_by_name, named=names_identifiers)


def write(path: Path, columns: dict[str, Sequence[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def seen(folder: Path, values: Iterable[object], name: str = "x") -> SurveyedColumn:
    """One column, beside another so that empty fields are fields."""
    values = list(values)
    found = survey(write(folder / "a.csv", {name: values, "y": ["y"] * len(values)}))
    return found.columns[0]


def spread(*values: object) -> list[object]:
    return [value for value in values for _ in range(FEWEST)]


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (spread("F", "M"), SurveyedKind.VALUES),
        (spread("true", "f", "T"), SurveyedKind.TRUTHS),
        (["f"] * 90 + ["m"] * 10, SurveyedKind.VALUES),
        (spread(17, 45, 90), SurveyedKind.WHOLE),
        (spread(1.5, 2.25), SurveyedKind.NUMBERS),
        (spread("2020-02-03", "2021-01-01 10:00:00"), SurveyedKind.DATES),
        (spread("01234", "00071"), SurveyedKind.VALUES),  # codes, not numbers
        ([f"P{n}" for n in range(200)], SurveyedKind.IDENTIFIER),
        (range(1000, 1200), SurveyedKind.IDENTIFIER),  # serial numbers
        (
            [n * n * 40 for n in range(200)],
            SurveyedKind.UNIQUE,
        ),  # all different, and far apart: amounts, or identifiers
        ([n % 150 * 977 for n in range(300)], SurveyedKind.WHOLE),
        ([f"a long letter, number {n}, about this and that and some more" for n in range(200)], SurveyedKind.TEXT),
        ([f"town {n % 220}" for n in range(2000)], SurveyedKind.TEXT),
        ([f"name {n}" for n in range(50)], SurveyedKind.SPARSE),  # nobody shares one
        (["", "", *range(FEWEST - 1)], SurveyedKind.SPARSE),
        (["inf"] * 20, SurveyedKind.SPARSE),  # numbers without an end
        (["infinity"] * 3 + ["-infinity"] * 3 + ["1e300"] * 200, SurveyedKind.SPARSE),
        (["12345-01-01"] * 30, SurveyedKind.SPARSE),  # days that no config could name
        ([*range(20, 100), *["NA"] * 20], SurveyedKind.WHOLE),  # some that are no numbers do not matter
        ([*range(20, 95), *["NA"] * 60], SurveyedKind.WHOLE),  # nor do many that are missing
        ([*range(20, 95), *["none of it"] * 25], SurveyedKind.VALUES),  # other words do
        ([*([n / 10 for n in range(30)] * 9), *["n/a", "?", "-", "N.A."] * 40], SurveyedKind.NUMBERS),
        (
            [*[n % 500 for n in range(700)], *["NA"] * 411],
            SurveyedKind.WHOLE,
        ),  # more than 100 different ones, 37 % missing
        ([10] * 980 + [0.25] * 20, SurveyedKind.NUMBERS),  # 2 % have decimals
        ([n % 60 for n in range(996)] + [0.5] * 4, SurveyedKind.WHOLE),  # too few rows to say so
        (["NA"] * 40 + [1, 2, 3, 4], SurveyedKind.SPARSE),
        (spread("Not enough blood for a test.", "The patient left early!", "no sample"), SurveyedKind.TEXT),
        (
            spread("Some college but no degree", "High school", "Adelie Penguin (Pygoscelis adeliae)"),
            SurveyedKind.VALUES,
        ),
    ],
)
def test_kinds(tmp_path: Path, values: Iterable[object], kind: SurveyedKind) -> None:
    assert seen(tmp_path, values).kind is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("customer_id", SurveyedKind.IDENTIFIER),
        ("customerId", SurveyedKind.IDENTIFIER),
        ("ID", SurveyedKind.IDENTIFIER),
        ("pidnum", SurveyedKind.IDENTIFIER),
        ("Kunde Nr.", SurveyedKind.IDENTIFIER),
        ("nr_rooms", SurveyedKind.WHOLE),
        ("paid", SurveyedKind.WHOLE),
        ("valid", SurveyedKind.WHOLE),
        ("monkey", SurveyedKind.WHOLE),
    ],
)
def test_a_name_tells_an_identifier(tmp_path: Path, name: str, kind: SurveyedKind) -> None:
    found = seen(tmp_path, [n % 150 for n in range(900)], name)
    assert found.kind is kind
    assert found.repeats == (10 if kind is SurveyedKind.IDENTIFIER else 1)  # 6 each, rounded up


def test_a_small_table_has_identifiers_too(tmp_path: Path) -> None:
    assert seen(tmp_path, range(300, 900, 10), "patient_id").kind is SurveyedKind.IDENTIFIER
    assert seen(tmp_path, [n % 30 for n in range(60)], "region_id").kind is SurveyedKind.WHOLE


def test_words_for_missing_are_no_values(tmp_path: Path) -> None:
    found = seen(tmp_path, spread("ill", "well", "NA", "n/a", "?", "-", "None"))
    assert found.values == ("None", "ill", "well")  # none may be one to choose


@pytest.mark.parametrize(
    ("name", "values", "ends"),
    [
        ("month", range(2, 12), (1, 12)),
        ("birthMonth", range(12), (0, 11)),
        ("day", range(1, 31), (1, 31)),
        ("hour", range(5, 24), (0, 23)),
        ("minute", range(1, 60), (0, 59)),
        ("wday", range(1, 8), (1, 7)),
        ("day_of_week", range(7), (0, 6)),
        ("year", [2013], (2013, 2013)),
        ("year", [1956, 1990, 2013], (1956, 2013)),
        ("month", range(40), (0, 40)),  # no months of a year
        ("days", range(1, 31), (0, 30)),  # a number of days
    ],
)
def test_calendars(tmp_path: Path, name: str, values: Sequence[int], ends: tuple[int, int]) -> None:
    path = write(tmp_path / "a.csv", {name: spread(*values)})
    (found,) = survey(path, calendar=calendar_spans).columns
    assert (found.kind, found.low, found.high) == (SurveyedKind.WHOLE, *ends)


@pytest.mark.parametrize(
    ("values", "places", "heaped"),
    [
        ([0] * 50 + [0.25] * 9 + [0.5] * 9, 2, True),
        ([n / 10 for n in range(30)] * 9 + [0.123456], 1, False),  # one row says nothing
        (["1e-5", "2.50", "3e-5"] * 9, 16, False),
        (range(0, 370, 10), -1, False),
        (range(0, 9000, 300), -2, False),
        (range(0, 90000, 3000), -3, False),
        ([0] * 9, 0, True),
    ],
)
def test_how_finely_numbers_are_written(tmp_path: Path, values: Sequence[object], places: int, heaped: bool) -> None:
    found = seen(tmp_path, values)
    assert (found.places, found.heaped) == (places, heaped)


def test_what_is_looked_at_is_told(tmp_path: Path) -> None:
    steps: list[str] = []
    survey(write(tmp_path / "a.csv", {"x": [1] * 9, "y": [2] * 9}), told=steps.append)
    assert [step.split(str(tmp_path))[0] for step in steps] == [
        *("reading ", "looking at x, column 1 of 2", "looking at y, column 2 of 2"),
    ]


def test_few_numbered_regions_are_no_identifiers(tmp_path: Path) -> None:
    assert seen(tmp_path, [n % 8 for n in range(800)], "region_id").kind is SurveyedKind.WHOLE


def test_fractions_called_key_are_no_identifiers(tmp_path: Path) -> None:
    assert seen(tmp_path, [n + 0.5 for n in range(800)], "key").kind is SurveyedKind.NUMBERS


def test_identifiers_that_occur_once(tmp_path: Path) -> None:
    assert seen(tmp_path, [f"P{n}" for n in range(200)], "person_id").repeats == 1


def test_a_value_that_few_rows_hold_stays_inside(tmp_path: Path) -> None:
    rare = ["Zaphod"] * (FEWEST - 1)
    assert seen(tmp_path, [*spread("F", "M"), *rare]).values == ("F", "M")
    assert seen(tmp_path, [*spread("F", "M"), *rare, "Zaphod"]).values == ("F", "M", "Zaphod")


def test_the_order_of_values_says_nothing_about_how_many_hold_them(tmp_path: Path) -> None:
    assert seen(tmp_path, ["b"] * 7 + ["c"] * 90 + ["a"] * 30).values == ("a", "b", "c")


def test_an_end_that_few_rows_reach_stays_inside(tmp_path: Path) -> None:
    millionaires = [9_100_000] * (FEWEST - 1)
    found = seen(tmp_path, [*spread(20, 30, 70), *millionaires])
    assert (found.low, found.high) == (0, 80)
    assert seen(tmp_path, [*spread(20, 30, 70), *millionaires, 9_100_000]).high == 10_000_000


def test_dates_are_widened_to_years(tmp_path: Path) -> None:
    found = seen(tmp_path, [*spread("2020-02-03", "2023-01-05"), "1890-01-01", "9999-12-31"])
    assert (found.low, found.high) == (date(2020, 1, 1), date(2023, 12, 31))


@pytest.mark.parametrize(("rows", "most"), [(6, 1000), (499, 1000), (500, 2000), (30_000, 100_000)])
def test_the_number_of_rows_is_rounded(tmp_path: Path, rows: int, most: int) -> None:
    assert survey(write(tmp_path / "a.csv", {"x": [1] * rows})).max_rows == most


@pytest.mark.parametrize(
    ("low", "high", "whole", "ends"),
    [
        (17, 90, True, (0, 100)),
        (0, 0, True, (0, 1)),
        (0, 1, True, (0, 1)),
        (1, 5, True, (1, 5)),
        (0, 7, True, (0, 7)),
        (1, 2400, True, (0, 2500)),
        (0, 59, True, (0, 60)),
        (1998, 2024, True, (1995, 2025)),
        (5, 5, True, (5, 6)),
        (-43, 1301, False, (-50, 1500)),
        (-31, 0, False, (-40, 0)),
        (-90, -80, False, (-90, -79)),
        (Fraction(3, 4), Fraction(4, 5), False, (Fraction(3, 4), Fraction(161, 200))),
    ],
)
def test_ends(low: int, high: int, whole: bool, ends: tuple[int, int]) -> None:
    assert widened(Fraction(low), Fraction(high), whole=whole) == ends


numbers = st.floats(-1e15, 1e15, allow_subnormal=False).map(Fraction)


@given(one=numbers, two=numbers, whole=st.booleans())
def test_ends_hold_what_lies_between_them(one: Fraction, two: Fraction, whole: bool) -> None:
    low, high = min(one, two), max(one, two)
    low, high = (Fraction(int(low)), Fraction(int(high))) if whole else (low, high)
    wide_low, wide_high = widened(low, high, whole=whole)
    assert wide_low <= low <= high <= wide_high
    assert wide_low < wide_high
    assert not whole or wide_low.denominator == wide_high.denominator == 1


@given(amount=st.floats(1e-15, 1e15).map(Fraction))
def test_round_numbers(amount: Fraction) -> None:
    found = rounded_up(amount)
    assert amount <= found < Fraction(5, 2) * amount
    assert f"{float(found):e}"[0] in "125"
    assert f"{float(found):.3e}"[1:5] == ".000"


def test_every_place_tells_the_same(tmp_path: Path) -> None:
    columns = {"age": spread(17, 45, 90), "sex": spread("F", "M", "F"), "member": spread(True, False, True)}
    path = write(tmp_path / "a.csv", columns)
    frame = pd.DataFrame(columns)
    frame.to_parquet(tmp_path / "a.parquet")
    with gzip.open(tmp_path / "a.csv.gz", "wb") as file:
        file.write(path.read_bytes())
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    wanted = survey(path)
    assert [one.kind for one in wanted.columns] == [SurveyedKind.WHOLE, SurveyedKind.VALUES, SurveyedKind.TRUTHS]
    assert survey(str(tmp_path / "a.csv.gz")) == wanted
    assert survey(tmp_path / "a.parquet") == wanted
    assert survey(tmp_path / "a.duckdb", "people") == wanted
    assert survey(frame) == survey(pl.DataFrame(columns)) == wanted


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("39,State-gov,77516\n50,Private,83311\n", "must begin with a line of column names"),
        ("name,1970-01-01\nZaphod,1\n", "must begin with a line of column names"),
        ("a;b\n1;2\n", "must have commas between its fields"),
        ("a\tb\n1\t2\n", "must have commas between its fields"),
        ("a,b\n1,2,3\n", "cannot be read as CSV"),
        ("a,b\n1,2\n1,2,39\n", "line 3 is the first that cannot"),
        ("name,39\nZaphod,1\n", "the name of column 2 is a number"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(SourceError, match=reason) as refused:
        survey(path)
    assert not {"39", "77516", "1970", "Zaphod"} & set(str(refused.value).replace(",", " ").split())


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no file"):
        survey(tmp_path / "none.csv")


def test_a_table_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age,sex\n")
    assert [one.kind for one in survey(path).columns] == [SurveyedKind.SPARSE, SurveyedKind.SPARSE]
