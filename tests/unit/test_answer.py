"""Answers as people and programs see them."""

from __future__ import annotations

import json
from datetime import date

import pytest

from bursar.answer import Answer

ANSWER = Answer(
    question="SELECT month, COUNT(*) AS n FROM t GROUP BY month",
    keys=("month", "kind"),
    outputs=("n",),
    labels=((date(2024, 1, 1), "a<b"), (None, "other")),
    values=((1200.0,), (-3.25,)),
    low=((1150.0,), (-53.0,)),
    high=((1250.0,), (46.5,)),
    goal="WITH ERROR 50 CONFIDENCE 95%",
    confidence=0.95,
    contract="per-query",
    source="direct",
    note="laplace noise of scale 12",
    reused=0,
    bought=2,
    unit="epsilon",
    charge=0.0625,
    left=0.9375,
    total=1.0,
)


def test_rows_have_values_and_error_bars() -> None:
    assert ANSWER.rows[0] == {"month": date(2024, 1, 1), "kind": "a<b", "n": 1200.0, "n_low": 1150.0, "n_high": 1250.0}


def test_text_shows_value_error_cost_source_and_rest() -> None:
    text = str(ANSWER)
    shown = (
        "1,200.0 ± 50.0",
        "NULL",
        "2024-01-01",
        "±50",
        "95%",
        "per-query",
        "epsilon 0.0625",
        "0.9375 of 1",
        "direct",
    )
    assert [part for part in shown if part not in text] == []


def test_the_stored_form_keeps_dates_and_nulls() -> None:
    assert Answer.from_bytes(ANSWER.to_bytes()) == ANSWER


def test_json_is_plain() -> None:
    plain = json.loads(json.dumps(ANSWER.to_json()))
    assert plain["rows"][0]["month"] == "2024-01-01"
    assert plain["error"] == 50.0
    assert plain["free"] is False


def test_html_is_escaped() -> None:
    assert "a&lt;b" in ANSWER._repr_html_()
    assert "a<b" not in ANSWER._repr_html_()


def test_a_data_frame() -> None:
    frame = ANSWER.df()
    assert list(frame.columns) == ["month", "kind", "n", "n_low", "n_high"]
    assert len(frame) == 2


def test_the_one_value_of_many_is_an_error() -> None:
    with pytest.raises(ValueError, match="more than one"):
        _ = ANSWER.value
