"""Answers as data frames of real libraries: names, types, NULLs, and errors that say what to install."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import date

import pandas
import polars
import pyarrow
import pytest

from bursar.answer import Answer
from bursar.errors import Unsupported
from unit.test_answer import ANSWER

NAMES = ["month", "kind", "n", "n_low", "n_high"]

MIXED = replace(
    ANSWER,
    keys=("age", "member", "size"),
    labels=((30, True, 1), ("other", None, None)),
)


def test_pandas_has_types_and_facts() -> None:
    frame = ANSWER.to_pandas()
    assert list(frame.columns) == NAMES
    assert frame["month"].dtype.kind == "M"
    assert frame["month"][0] == pandas.Timestamp(2024, 1, 1)
    assert frame["month"].isna().tolist() == [False, True]
    assert frame["kind"].tolist() == ["a<b", "other"]
    assert frame["n_low"].tolist() == [1150.0, -53.0]
    assert frame.attrs["confidence"] == 0.95
    assert frame.attrs["goal"] == ANSWER.goal
    pandas.testing.assert_frame_equal(ANSWER.df(), frame)


def test_pandas_keeps_whole_numbers_and_truth_values_beside_null() -> None:
    frame = MIXED.to_pandas()
    assert frame["age"].tolist() == ["30", "other"]  # of several types: text
    assert str(frame["member"].dtype) == "boolean"
    assert str(frame["size"].dtype) == "Int64"
    whole = replace(MIXED, labels=((30, True, 1), (31, False, 2))).to_pandas()
    assert [str(whole[name].dtype) for name in ("age", "member", "size")] == ["int64", "bool", "int64"]


def test_polars_has_types() -> None:
    frame = ANSWER.to_polars()
    assert frame.columns == NAMES
    assert frame.schema["month"] == polars.Date
    assert frame["month"].to_list() == [date(2024, 1, 1), None]
    assert frame["n_high"].to_list() == [1250.0, 46.5]
    mixed = MIXED.to_polars()
    assert mixed["age"].to_list() == ["30", "other"]
    assert [mixed.schema[name] for name in ("member", "size")] == [polars.Boolean, polars.Int64]


def test_arrow_has_types_and_facts() -> None:
    table = ANSWER.to_arrow()
    assert table.column_names == NAMES
    assert table.schema.field("month").type == pyarrow.date32()
    assert table.column("month").to_pylist() == [date(2024, 1, 1), None]
    facts = json.loads(table.schema.metadata[b"bursar"])
    assert facts["charge"] == ANSWER.charge
    assert facts["question"] == ANSWER.question
    assert MIXED.to_arrow().column("age").to_pylist() == ["30", "other"]


def test_the_three_agree_with_the_rows() -> None:
    for answer in (ANSWER, MIXED):
        arrow, frame = answer.to_arrow().to_pylist(), answer.to_polars().to_dicts()
        assert arrow == frame
        assert [row["n"] for row in arrow] == [row["n"] for row in answer.rows]


def test_a_group_named_like_a_bar_loses_nothing() -> None:
    clash = replace(ANSWER, keys=("n_low", "kind"))
    assert list(clash.to_pandas().columns) == ["n_low", "kind", "n", "n_low_2", "n_high"]
    assert clash.rows[0] == {
        "n_low": date(2024, 1, 1),
        "kind": "a<b",
        "n": 1200.0,
        "n_low_2": 1150.0,
        "n_high": 1250.0,
    }


def test_an_answer_without_groups_or_lines() -> None:
    one = replace(ANSWER, keys=(), labels=((),), values=((1.5,),), low=((0.5,),), high=((2.5,),))
    assert one.to_polars().to_dicts() == [{"n": 1.5, "n_low": 0.5, "n_high": 2.5}]
    none = replace(ANSWER, labels=(), values=(), low=(), high=())
    assert [none.to_pandas().shape, none.to_polars().shape, none.to_arrow().shape] == [(0, 5)] * 3


def test_numbers_that_no_frame_can_hold_are_text() -> None:
    huge = replace(ANSWER, keys=("big", "kind"), labels=((2**70, "a"), (1, "b")))
    assert huge.to_arrow().column("big").to_pylist() == [str(2**70), "1"]


@pytest.mark.parametrize(
    ("method", "module", "extra"),
    [
        (Answer.to_pandas, "pandas", "pandas"),
        (Answer.df, "pandas", "pandas"),
        (Answer.to_polars, "polars", "polars"),
        (Answer.to_arrow, "pyarrow", "arrow"),
        (lambda answer: answer.to_parquet("x.parquet"), "pyarrow", "arrow"),
        (Answer.plot, "matplotlib", "plot"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, method: object, module: str, extra: str
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    ways = rf"pip install {module}, or pip install '\.\[{extra}\]' in a checkout"
    with pytest.raises(Unsupported, match=rf"needs {module}\ntry: {ways}"):
        method(ANSWER)  # type: ignore[operator]
